/*
 * The system calls that a running daemon may make, by libseccomp's names, each
 * with the group that is the reason for it. tests/tools/syscalls.py compares
 * the table with what the integration tests use. Read by confine_seccomp.c.
 */
#ifndef SMCRD_CONFINE_TABLE_H
#define SMCRD_CONFINE_TABLE_H

#include <stdint.h>

#define CONFINE_ARGS_MAX 2

/* An argument that is fit: (argument & mask) == value. */
struct confine_arg {
	uint64_t mask; /* 0: no condition */
	uint64_t value;
	uint8_t index;   /* of the argument, from 0 */
	uint8_t own_pid; /* the value is this process's id */
};

/* Several rows may have one call: any of them is enough. A row without conditions allows the call as it is. */
struct confine_call {
	const char *names; /* one, or several with a blank between them */
	struct confine_arg args[CONFINE_ARGS_MAX];
};

extern const struct confine_call confine_allowed[]; /* ends with names == NULL */
/* Refused with ENOSYS, also in tests: the C library then takes a call whose arguments can be looked at. */
extern const char *const confine_absent[]; /* ends with NULL */

#endif
