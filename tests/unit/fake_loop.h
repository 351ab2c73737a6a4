/* A loop for tests: real descriptors, but turned by hand and in virtual time. Implements daemon/loop/loop.h. */
#pragma once

#include "daemon/loop/loop.h"

/* One turn at once, without waiting: true when a turn function wants another one now. */
bool fake_loop_turn(struct loop *);
void fake_loop_advance(struct loop *, int64_t ns);
/* When the turn functions of the last turn want to run again. */
int64_t fake_loop_next(const struct loop *);
