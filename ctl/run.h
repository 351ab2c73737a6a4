/* Carries out what the command line asks for. */
#pragma once

#include "ctl/options.h"

enum {
	EXIT_WELL = 0,
	EXIT_NO = 1,      /* the daemon answered, and the answer is no */
	EXIT_TROUBLE = 2, /* usage, no daemon, no permission, broken answer */
};

/* The exit status of the program. */
int run(const struct options *);
