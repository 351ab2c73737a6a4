/* The command line of smcrd. */
#pragma once

#include <stdbool.h>

#include "control/instance.h"

enum options_action {
	OPTIONS_RUN,
	OPTIONS_TEST,   /* -t: check the configuration */
	OPTIONS_RELOAD, /* --reload: request it from the running daemon, or take over */
	OPTIONS_PRINT,  /* -T: print it in canonical form */
	OPTIONS_DONE,   /* --help, --version: printed */
	OPTIONS_BAD,    /* the error is printed */
};

#define OPTIONS_USUAL_FILE SYSCONFDIR "/smcrd/smcrd.conf"

struct options {
	const char *path;     /* of the instance by default: instance_path */
	const char *instance; /* NULL: none */
	char instance_path[sizeof(OPTIONS_USUAL_FILE) + INSTANCE_NAME_MAX];
	bool take_over;
	const char *take_over_from; /* a control socket; NULL = that of the configuration */
	bool background;
	bool unit;     /* with a keeper, process/keeper.h; take_over is set */
	int log_level; /* enum log_level, -1 = as the configuration says */
};

/* Its file is that of the instance, so no other daemon is meant by the instance's paths. */
bool options_is_usual(const struct options *);
enum options_action smcrd_options_parse(int argc, char **argv, struct options *out);
