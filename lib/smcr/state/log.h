/* What the engine has to say to an operator: lines for the log and the trace of messages (smcr_next_log, smcr_set_trace). */
#pragma once

#include "smcr/smcr.h"

struct lgr;
struct link;

/* A row of a table of states. */
struct state_row {
	const char *name; /* in the log */
	unsigned next;    /* bits: which may follow */
};

/* Each queues one line, copied; counted as lost when SMCR_LOG_MAX wait already. lgr and link may be NULL. */
void engine_log(struct smcr *, enum smcr_log_type, const struct lgr *, const struct link *, const char *text);
/* Of a link, with a value. */
void engine_log_link(struct smcr *, enum smcr_log_type, const struct link *, uint64_t value, const char *text);
/* Of a peer of first contact: by its key at a client, or by its id (key NULL); remote may be NULL. */
void engine_log_peer(struct smcr *, enum smcr_log_type, const char *key, const char *id,
    const struct smcr_identity *remote, uint64_t value, const char *text);
/* A change of state of an object of the group, while smcr_log_states is on: `what` is the object with its number, such as
 * "RMB 3"; why may be NULL. */
void engine_log_state(
    const struct lgr *, const struct link *, const char *what, const char *from, const char *to, const char *why);
void engine_log_device(struct smcr *, struct rnic_dev *, const char *text);
/* 8 bytes as 16 hex digits and a NUL. */
void engine_hex_id(const uint8_t id[8], char *buf);
void engine_trace(struct smcr *, enum smcr_trace_kind, bool sent, const struct link *, uint32_t conn_id,
    const uint8_t *msg, size_t len);
