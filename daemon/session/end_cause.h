/* Why sessions end, in words: for the log, and for counts by reason. Pure. */
#pragma once

#include "daemon/config/config.h"
#include "daemon/state/session_table.h"
#include "smcr/smcr.h"

/* What an event that ends a session is called in the log; NULL for one that has no words of its own. */
const char *end_cause_of_event(enum session_event, enum config_kind);

/* Session.cause is an event, or behind them a reason of the engine's; from 1, and 0 is none. */
static inline uint8_t
end_cause_event(enum session_event event)
{
	return (uint8_t)(1 + event);
}

static inline uint8_t
end_cause_engine(enum smcr_reason reason)
{
	return (uint8_t)(1 + SEV_EVENT_CNT + reason);
}

const char *end_cause_str(enum config_kind, unsigned cause);
