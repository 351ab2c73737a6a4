/* The parts of the confinement; each in a file of its own. Used by confine.c. */
#pragma once

#include <stdint.h>

#include "daemon/confine/confine.h"

enum confine_do {
	CONFINE_LOOK, /* what would be in force? */
	CONFINE_APPLY,
};

void confine_part_set(struct confine_part_state *, bool on, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* Threads of this process; 1 when the kernel does not tell. */
unsigned confine_threads(void);
bool confine_has_verbs(const struct config *);

/* The parts: each sets its state. */
void confine_capabilities(const struct config *, enum confine_do, unsigned keep, struct confine_part_state *out);
void confine_files(const struct config *, enum confine_do, struct confine_part_state *out);
void confine_system_calls(enum confine_do, struct confine_part_state *out);

/* -- confine_table.c: the system calls that a running daemon may make, by libseccomp's names, each with the group that is
 * the reason for it. tests/tools/syscalls.py compares the table with what the integration tests use. -- */

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
/* Refused with ENOSYS, also in tests, and without a line in the kernel's log: the C library then takes a call whose arguments can be
 * looked at. */
extern const char *const confine_absent[]; /* ends with NULL */
