/* The parts of the confinement, one file each. Used by confine.c. */
#pragma once

#include "daemon/confine/confine.h"

enum confine_do {
	CONFINE_LOOK, /* report what would be in force */
	CONFINE_APPLY,
};

void confine_part_set(struct confine_part_state *, bool on, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* Threads of this process; 1 when the kernel does not report them. */
unsigned confine_threads(void);

/* The parts: each sets its state. */
void confine_capabilities(const struct config *, enum confine_do, bool keep_bpf, struct confine_part_state *out);
void confine_files(const struct config *, enum confine_do, struct confine_part_state *out);
void confine_system_calls(enum confine_do, struct confine_part_state *out);

/* -- confine_table.c: the system calls of a running daemon, by libseccomp's names, each in the group that is the
 * reason for it. tests/tools/syscalls.py compares the table with the calls of the integration tests. -- */

#define CONFINE_ARGS_MAX 2

/* An allowed argument: (argument & mask) == value. */
struct confine_arg {
	uint64_t mask; /* 0: no condition */
	uint64_t value;
	uint8_t index;   /* of the argument, from 0 */
	uint8_t own_pid; /* the value is the process id */
};

/* Several rows may have the same call: one match allows it. A row without conditions allows all arguments. */
struct confine_call {
	const char *names; /* one, or several separated by blanks */
	struct confine_arg args[CONFINE_ARGS_MAX];
};

extern const struct confine_call confine_allowed[]; /* ends with names == NULL */
/* Refused with ENOSYS, also in tests, without a log line: the C library then uses a call with checkable arguments. */
extern const char *const confine_absent[]; /* ends with NULL */
