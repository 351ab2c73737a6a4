/* The daemon as a function, for main() and tests. */
#pragma once

enum {
	SMCRD_EXIT_OK = 0,
	SMCRD_EXIT_FAILURE = 1, /* start or run failed; a restart may help */
	SMCRD_EXIT_USAGE = 64,  /* sysexits.h: EX_USAGE */
	SMCRD_EXIT_CONFIG = 78, /* EX_CONFIG: the configuration is wrong; a restart does not help */
};

/* main() without the process around it; returns the exit code. */
int smcrd_main(int argc, char **argv);
