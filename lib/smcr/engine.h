/* Part of the engine's turn (smcr.h), for tests that call a room directly. */
#pragma once

#include "smcr/smcr.h"

/* Handles the marks of lower rooms (state/marks.h) until none is set. */
void engine_act_on_marks(struct smcr *);
