/* The command line of smcrd. */
#pragma once

enum options_action {
	OPTIONS_RUN,
	OPTIONS_TEST,  /* -t: check the configuration */
	OPTIONS_PRINT, /* -T: print it in canonical form */
	OPTIONS_DONE,  /* --help, --version: printed already */
	OPTIONS_BAD,   /* message printed already */
};

struct options {
	const char *path;
	int log_level; /* enum log_level, -1 = as the configuration says */
};

enum options_action options_parse(int argc, char **argv, struct options *out);
