/* The parts of the confinement; each in a file of its own. Used by confine.c. */
#ifndef SMCRD_CONFINE_PARTS_H
#define SMCRD_CONFINE_PARTS_H

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
void confine_capabilities(const struct config *, enum confine_do, struct confine_part_state *out);
void confine_files(const struct config *, enum confine_do, struct confine_part_state *out);
void confine_system_calls(enum confine_do, struct confine_part_state *out);

#endif
