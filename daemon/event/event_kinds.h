/* All kinds of events and their fields, one row each. Log lines, journal entries and the lines of smcrctl events are
 * made from these rows. check_event_kinds.c compares the documents with them. Pure. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"
#include "base/log.h"

enum event_kind {
	EVENT_PEER_UNREACHABLE,
	EVENT_PEER_REACHABLE,
	EVENT_SERVER_UNREACHABLE,
	EVENT_SERVER_REACHABLE,
	EVENT_UNKNOWN_PEER,
	EVENT_CIRCLE,
	EVENT_FALLBACK_BEGINS,
	EVENT_FALLBACK_ENDS,
	EVENT_MPA_BLOCKED,
	EVENT_MPA_OPEN,
	EVENT_HOLDOFF_BEGINS,
	EVENT_HOLDOFF_ENDS,
	EVENT_SCTP_HELD_OFF,
	EVENT_GROUP_UP,
	EVENT_GROUP_DOWN,
	EVENT_LINK_UP,
	EVENT_LINK_ENDED,
	EVENT_LINK_DOWN,
	EVENT_LINK_SILENT,
	EVENT_LINK_ANSWERS,
	EVENT_LINK_REFUSED,
	EVENT_PROTOCOL_VIOLATION,
	EVENT_DEVICE_TROUBLE,
	EVENT_ACCEPTING_PAUSED,
	EVENT_ACCEPTING_GOES_ON,
	EVENT_KIND_CNT,
};

#define EVENT_NAME_MAX 64
#define EVENT_HOST_MAX 256
#define EVENT_REASON_MAX 320
#define EVENT_TEXT_MAX 900 /* of the line, which is truncated */

/* Unknown fields are "" or 0. All strings are copies. */
struct event {
	enum event_kind kind;
	char service[EVENT_NAME_MAX];
	uint64_t group;
	uint64_t link;
	char peer[ADDR_STR_MAX];   /* its address; with port where this side connects */
	char server[ADDR_STR_MAX]; /* address of an egress's server, with port */
	char host[EVENT_HOST_MAX]; /* name of peer or server, as configured or as the peer reports it */
	char peer_id[48];
	char device[EVENT_NAME_MAX];
	char transport[24];
	char role[16];
	char mpa[ADDR_STR_MAX]; /* address for iWARP connections */
	char fallback[16];      /* of the connections: "tcp", "refuse" */
	uint64_t for_ms;
	char reason[EVENT_REASON_MAX];
	uint64_t connections; /* so far */
	uint64_t failures;    /* of accept(), so far */
	uint64_t after_ms;
};

struct event_field {
	const char *key;     /* in the line and in JSON */
	const char *journal; /* field name in the journal */
	size_t off;          /* in struct event: a string or a uint64_t */
	size_t cap;          /* of the string; 0: a number */
	const char *meaning; /* for doc/json-fields.md, as `when` below */
};

/* In the order of the line. */
enum event_field_nr {
	EVENT_F_SERVICE,
	EVENT_F_GROUP,
	EVENT_F_LINK,
	EVENT_F_PEER,
	EVENT_F_SERVER,
	EVENT_F_HOST,
	EVENT_F_PEER_ID,
	EVENT_F_DEVICE,
	EVENT_F_TRANSPORT,
	EVENT_F_ROLE,
	EVENT_F_MPA,
	EVENT_F_FALLBACK,
	EVENT_F_FOR_MS,
	EVENT_F_REASON,
	EVENT_F_CONNECTIONS,
	EVENT_F_FAILURES,
	EVENT_F_AFTER_MS,
	EVENT_FIELD_CNT,
};

struct event_kind_row {
	const char *word;   /* for programs */
	const char *phrase; /* start of the line */
	const char *id;     /* MESSAGE_ID, 32 hex digits; random, never changes */
	enum log_level level;
	unsigned fields; /* 1 << enum event_field_nr: the possible fields */
	const char *when;
};

extern const struct event_field event_fields[EVENT_FIELD_CNT];
extern const struct event_kind_row event_kinds[EVENT_KIND_CNT];

/* The value of a field: a string, or a number written to buf (24 bytes), "" for 0. */
const char *event_value(const struct event *, const struct event_field *, char *buf);
uint64_t event_number(const struct event *, const struct event_field *);
/* The line, "phrase: key=value ..."; buf has EVENT_TEXT_MAX bytes and is returned. */
char *event_text(const struct event *, char *buf);
/* Replaces control characters and quotation marks, which would break the line. */
void event_clean(struct event *);
