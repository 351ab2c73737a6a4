/* Log lines for the engine's entries and diagnoses: a fixed phrase, then keys. Used by worker.c and session*.c. */
#pragma once

#include "base/addr.h"
#include "base/log.h"
#include "daemon/event/event_kinds.h"
#include "smcr/smcr.h"

#define LOG_TEXT_MAX 480

/* An entry of the engine's log as an event; false: it is a line only. */
bool log_text_event(const struct smcr_log *, struct event *);
/* Writes the line of such an entry; returns its level. */
enum log_level log_text_engine(const struct smcr_log *, char *buf, size_t cap);

/* Why a connection is not on SMC-R, as keys with a space before each; "" without a reason. */
const char *log_text_diag(const struct smcr_diag *, char *buf, size_t cap);
/* Where the peer accepts iWARP connections, if diag has it (mpa_port is not 0); returns buf. */
const char *log_text_mpa_peer(const struct smcr_diag *, char buf[ADDR_STR_MAX]);
