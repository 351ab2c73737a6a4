/* Texts of the causes that end sessions, for the log and for counters by reason. Pure. */
#pragma once

#include "daemon/config/config.h"
#include "daemon/state/session_table.h"
#include "smcr/smcr.h"

/* The log text of an event that ends a session, or NULL. */
const char *end_cause_of_event(enum session_event, enum config_kind);

/* session.cause: 0 without a cause, then the events, then the engine's reasons. */
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
