/* All kinds of events and their fields, one row each. Log lines, journal entries and the lines of smcrctl events are
 * made from these rows. check_event_kinds.c compares the documents with them. Pure. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"
#include "base/log.h"

/* clang-format off */
/* Fields, in the order of the line: X(constant, key, member of struct event, meaning). */
#define EVENT_FIELDS(X) \
	X(SERVICE, "service", TEXT(service), "name of the service") \
	X(GROUP, "group", NUMBER(group), "link group") \
	X(LINK, "link", NUMBER(link), "number of the link in the group") \
	X(PEER, "peer", TEXT(peer), "address of the other daemon; with port where it is the target of an ingress") \
	X(SERVER, "server", TEXT(server), "address and port, or path, of an egress's server") \
	X(HOST, "host", TEXT(host), "the name of peer or server: as in `to` of the configuration, or as a peer of SMC version 2 reports it") \
	X(PEER_ID, "peer_id", TEXT(peer_id), "the peer's id in SMC-R, in hex") \
	X(DEVICE, "device", TEXT(device), "of a link: our device") \
	X(TRANSPORT, "transport", TEXT(transport), "transport of the link") \
	X(ROLE, "role", TEXT(role), "ours in a link group: `client` or `server`") \
	X(MPA, "mpa", TEXT(mpa), "address and port for iWARP connections") \
	X(FALLBACK, "fallback", TEXT(fallback), "handling of the connections: `tcp` or `refuse`") \
	X(FOR_MS, "for_ms", NUMBER(for_ms), "planned duration") \
	X(REASON, "reason", TEXT(reason), "the reason as text") \
	X(CONNECTIONS, "connections", NUMBER(connections), "affected connections so far") \
	X(FAILURES, "failures", NUMBER(failures), "failed accept() calls so far") \
	X(AFTER_MS, "after_ms", NUMBER(after_ms), "since the condition began")
/* X(constant, word for programs, start of the line, MESSAGE_ID (random, never changes), level, fields, meaning). */
#define EVENT_KINDS(X) \
	X(PEER_UNREACHABLE, "peer-unreachable", "peer not available", "63386f12de80407d98a591a7cc5d295e", \
		WARNING, F_OUTAGE | F(PEER), "the ingress cannot connect to its peer, or the peer ends connections in their set-up") \
	X(PEER_REACHABLE, "peer-reachable", "peer available again", "bb310f05d34c4e5ebb85d796d66f9897", \
		NOTICE, F_OVER | F(PEER), "a connection of the ingress succeeded again") \
	X(SERVER_UNREACHABLE, "server-unreachable", "server not available", "64b65102294d4b738a90d3ff6b2de798", \
		WARNING, F_OUTAGE | F(SERVER), "the egress cannot connect to its server") \
	X(SERVER_REACHABLE, "server-reachable", "server available again", "6a353865d20e4c03a470a9e02029eb3a", \
		NOTICE, F_OVER | F(SERVER), "the egress can connect to its server again") \
	X(TARGET_DOWN, "target-down", "target down", "90aa94205f504dbcb764ec9f123a162f", \
		WARNING, F(SERVICE) | F(PEER) | F(SERVER) | F(HOST) | F(REASON), "probes say that a target of the service does not work (`probe`)") \
	X(TARGET_UP, "target-up", "target up", "f13980e0b03949139b86a6224e54ffc2", \
		NOTICE, F(SERVICE) | F(PEER) | F(SERVER) | F(HOST) | F(AFTER_MS), "they say that it works again") \
	X(UNKNOWN_PEER, "stranger", "no SMC-R peer, or a broken one", "181d79e43c2d487f8ac2c0e7f8059775", \
		NOTICE, F(SERVICE) | F(PEER) | F(REASON), "something that speaks no SMC-R connected to an egress") \
	X(PEER_ENDED, "peer-ended", "peer no longer permitted", "0b520e6010f1ba968c92b92a2f56ee70", \
		WARNING, F(SERVICE) | F(PEER) | F(REASON) | F(CONNECTIONS), "after a reload or changed files of `tls` the peer is no longer permitted: these connections were reset") \
	X(CERTIFICATE_EXPIRES, "certificate-expires", "certificate expires soon", "4ffffbc3ea5c4ba2a0577691f1f4a2af", \
		WARNING, F(REASON) | F(FOR_MS), "our certificate of `tls` ends in 14, 3, or 1 days, or has ended; reported once each, and once after a start") \
	X(CIRCLE, "circle", "services lead in a circle", "736bdb27466541b081325a7c5cca88cc", \
		WARNING, F(SERVICE) | F(PEER) | F(REASON), "a connection passed eight gateway services, which connect to each other, and was reset; `peer` is its source") \
	X(FALLBACK_BEGINS, "fallback-begins", "fallback begins", "e2433a1f399246269259c9bb5f127f4d", \
		WARNING, F_OUTAGE | F(PEER) | F(FALLBACK), "a connection with the peer is not on SMC-R; reported again when the reason changes") \
	X(FALLBACK_ENDS, "fallback-ends", "fallback ends", "d4a174f21c284a2dbb62e8146dbed2cc", \
		NOTICE, F_OVER | F(PEER), "the next connection with the peer is on SMC-R") \
	X(MPA_BLOCKED, "mpa-blocked", "MPA port cannot be used", "1aa8672841984c17b7394571d1d0c1f0", \
		WARNING, F(SERVICE) | F(PEER) | F(HOST) | F(MPA) | F(REASON), "the reason of a fallback: the iWARP connection to this address and port cannot be made") \
	X(MPA_OPEN, "mpa-open", "MPA port can be used again", "e619df5edf544d01849181fd8de19128", \
		NOTICE, F(SERVICE) | F(PEER) | F(HOST) | F(MPA) | F(AFTER_MS), "a link over this port came up again") \
	X(HOLDOFF_BEGINS, "holdoff-begins", "peer held off", "e9fb63dcf3954d7b8302f9c4c270c284", \
		WARNING, F_WHO | F(FOR_MS) | F(REASON), "making link groups with the peer failed repeatedly: connections fall back at once for a while") \
	X(HOLDOFF_ENDS, "holdoff-ends", "peer no longer held off", "45efb6e8036a4f0798a9bbd91209de39", \
		NOTICE, F_WHO | F(AFTER_MS), "a link group with the peer was made") \
	X(SCTP_HELD_OFF, "sctp-held-off", "SCTP to the peer held off", "be4950c191d444689d7904db7a417c71", \
		WARNING, F_WHO | F(FOR_MS) | F(REASON), "first contact over SCTP failed: other transports are used for a while") \
	X(GROUP_UP, "group-up", "link group up", "5e99780b169f40e19bd7370bde28dd2b", \
		NOTICE, F_GROUP | F(ROLE), "a link group was established") \
	X(GROUP_DOWN, "group-down", "link group down", "5ef0a5d9d14646c9beb235b376359490", \
		NOTICE, F_GROUP | F(REASON), "it has ended") \
	X(LINK_UP, "link-up", "link up", "d56e1c1abc884536a69a0ff6af0764b6", \
		NOTICE, F_LINK | F(DEVICE) | F(TRANSPORT), "a link of a group was established") \
	X(LINK_ENDED, "link-ended", "link ended", "c7a2b3d5c38f4a37a7fbf7d3bd69f6de", \
		NOTICE, F_LINK | F(REASON), "the link ended in order; for one that was removed from its group `reason` begins with \"peer: \" when the peer removed it") \
	X(LINK_DOWN, "link-down", "link down", "66d227b4488c4729a628b7ddf5c6c9a1", \
		WARNING, F_LINK | F(REASON), "the link failed") \
	X(LINK_SILENT, "link-silent", "link silent", "1dc5f8734e134228b6f97a10e4978fad", \
		WARNING, F_LINK | F(FOR_MS) | F(REASON), "the peer does not answer, and no other link can replace this one: it is kept for this time at most") \
	X(LINK_ANSWERS, "link-answers", "link answers again", "1b19b7e3a82f4800bf970af42cd68361", \
		NOTICE, F_LINK | F(AFTER_MS), "the peer answers over it again") \
	X(LINK_REFUSED, "link-refused", "link of the peer refused", "11fcd5a6f88243fcbf7d3b0ab05cc8aa", \
		WARNING, F_LINK | F(REASON), "the peer offered a link to an address that this host does not connect to") \
	X(PROTOCOL_VIOLATION, "protocol-violation", "protocol violation by the peer", "222f2230d3a0412badc2c0b6ddb2d668", \
		WARNING, F_LINK | F(REASON), "the peer broke the protocol") \
	X(DEVICE_TROUBLE, "device-trouble", "device trouble", "16028f60d92a498085786c47ccebb73f", \
		WARNING, F(DEVICE) | F(REASON), "an RDMA device has trouble") \
	X(ACCEPTING_PAUSED, "accepting-paused", "accepting paused", "f3db854af7ef4299ba1bac72e7a699e3", \
		WARNING, F(SERVICE) | F(REASON) | F(FAILURES), "descriptors or memory are exhausted: no connection is accepted for now. Reported once for all listening sockets; `service` is the first that failed, \"\" for a socket of control or metrics") \
	X(ACCEPTING_GOES_ON, "accepting-goes-on", "accepting goes on", "40401e68a1eb4ad9aa18b0983de35c39", \
		NOTICE, F(SERVICE) | F(FAILURES) | F(AFTER_MS), "no listening socket is paused now; `service` was the last")
/* clang-format on */

#define EVENT_FIELD_NR(constant, ...) EVENT_F_##constant,
#define EVENT_KIND(constant, ...) EVENT_##constant,
enum event_field_nr { EVENT_FIELDS(EVENT_FIELD_NR) EVENT_FIELD_CNT };
enum event_kind { EVENT_KINDS(EVENT_KIND) EVENT_KIND_CNT };

#define EVENT_NAME_MAX 64
#define EVENT_HOST_MAX 256
#define EVENT_REASON_MAX 320
#define EVENT_TEXT_MAX 900 /* of the line, which is truncated */

/* Unknown fields are "" or 0. All strings are copies. */
struct event {
	enum event_kind kind;
	char service[EVENT_NAME_MAX];
	uint64_t group, link;
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
