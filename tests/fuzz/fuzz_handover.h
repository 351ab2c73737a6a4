/* The two sides of fuzz_handover.c: each runs a program against the product's code of that side. */
#pragma once

#include "steps.h"

/* Behind the byte that says which side it is: a: what that one has; b: what it does with it; c: the allocation that fails, 0: none. */
struct handover_header {
	uint8_t a, b, c;
};

/* daemon/control/control_handover.c, the process that runs already; the rivals are its control clients. */
void handover_old_run(const struct handover_header *, struct steps *);
/* daemon/handover/takeover.c, the process that takes over; the rival is the one that runs already. */
void handover_new_run(const struct handover_header *, struct steps *);
