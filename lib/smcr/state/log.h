/* Log lines of the engine and the trace of messages (smcr_next_log, smcr_set_trace). */
#pragma once

#include "smcr/smcr.h"

struct lgr;
struct link;

/* A row of a state table. */
struct state_row {
	const char *name; /* in the log */
	unsigned next;    /* bits: allowed next states */
};

/* Each queues one line, copied; counted as lost when SMCR_LOG_MAX are queued. link and text may be NULL. */
void engine_log(enum smcr_log_type, const struct lgr *, const struct link *, uint64_t value, const char *text);
/* About a peer: by its key at a client, or by its ID (key NULL); remote may be NULL. The line, or NULL if it is lost. */
struct smcr_log *engine_log_peer(struct smcr *, enum smcr_log_type, const char *key, const char *id,
    const struct smcr_identity *remote, uint64_t value, const char *text);
/* Logs a state change of a group's object while smcr_log_states is on: `what` such as "RMB 3"; why may be NULL. */
void engine_log_state(
    const struct lgr *, const struct link *, const char *what, const char *from, const char *to, const char *why);
void engine_log_device(struct smcr *, struct rnic_dev *, const char *text);
/* 8 bytes as 16 hex digits and a NUL. */
void engine_hex_id(const uint8_t id[8], char *buf);
void engine_trace(struct smcr *, enum smcr_trace_kind, bool sent, const struct link *, uint32_t conn_id,
    const uint8_t *msg, size_t len);
