/* The engine's turn, as smcr.h has it, in pieces: for engine.c and for tests that call a room directly. */
#pragma once

#include "smcr/smcr.h"

/* Acts on what lower rooms have marked (state/marks.h), until nothing is marked. */
void engine_act_on_marks(struct smcr *);
