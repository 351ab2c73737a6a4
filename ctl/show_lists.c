/* The lists as tables: which columns, in which order. Names follow smcr and smcss where they have one. */
#include <inttypes.h>
#include <string.h>

#include "base/str.h"
#include "ctl/show.h"
#include "ctl/text.h"

#define CODE_NO_ACTIVE_LINK "0x030a0000" /* CLC_DIAG_NO_ACTIVE_LINK, as reports have codes */

enum column_kind {
	COLUMN_TEXT,
	COLUMN_NUMBER, /* with more: "3/255" */
	COLUMN_SUM,    /* with more: all of them together */
	COLUMN_BYTES,  /* with more: their sum */
	COLUMN_AGE,    /* milliseconds */
	COLUMN_MICRO,  /* microseconds */
	COLUMN_QPN,    /* a queue pair number, as a trace and other tools write it */
};

struct column {
	const char *heading;
	enum column_kind kind;
	const char *key, *more[6]; /* more ends with NULL */
	bool detail;               /* only with --detail */
	bool zero_unknown;         /* 0 stands for what is not known */
	/* Writes the cell in place of kind and key. */
	void (*call)(const json_t *item, char *buf, size_t cap);
};

/* Texts with commas between. */
static void
append_list(char *buf, size_t cap, const json_t *list)
{
	for (size_t i = 0; i < json_array_size(list); i++) {
		const char *text = json_string_value(json_array_get(list, i));

		str_append(buf, cap, "%s%s", i > 0 ? "," : "", text != NULL ? text : "");
	}
}

/* The reasons of a fallback of both sides, codes and words; nothing when there are none. */
static void
reason_cell(const json_t *c, char *buf, size_t cap)
{
	const json_t *r = json_object_get(c, "reason"), *offered = json_object_get(r, "offered");
	const char *local_text = get_string(r, "local_text"), *peer_text = get_string(r, "peer_text");
	const char *detail = get_string(r, "detail"), *mpa_peer = get_string(r, "mpa_peer");
	const char *over = get_string(r, "transport");
	bool held_off = get_bool(r, "held_off");

	buf[0] = '\0';
	if (local_text[0] == '\0' && peer_text[0] == '\0' && !held_off)
		return;
	str_append(buf, cap, "%s/%s %s", get_string(r, "local_code"), get_string(r, "peer_code"), local_text);
	if (detail[0] != '\0')
		str_append(buf, cap, ": %s", detail);
	if (mpa_peer[0] != '\0')
		str_append(buf, cap, " at %s", mpa_peer);
	if (peer_text[0] != '\0')
		str_append(buf, cap, "%speer: %s%s", local_text[0] != '\0' ? "; " : "", peer_text,
		    strcmp(get_string(r, "peer_code"), CODE_NO_ACTIVE_LINK) == 0
		        ? " (an smcrd that holds us off after failures says so, too)"
		        : "");
	if (over[0] != '\0')
		str_append(buf, cap, " (over %s%s)", over,
		    get_bool(r, "sctp_held_off") ? "; the peer's next go over another transport, where both have one"
		                                 : "");
	if (json_array_size(offered) > 0) {
		str_append(buf, cap, " (the client offers ");
		append_list(buf, cap, offered);
		str_append(buf, cap, ")");
	}
	if (get_bool(r, "out_of_sync"))
		str_append(buf, cap, " (out of sync)");
	if (held_off)
		str_append(buf, cap, " (peer held off after failures)");
}

const char *
show_mode(const json_t *connection)
{
	const char *mode = get_string(connection, "mode");

	if (strcmp(mode, "smcr") == 0)
		return "SMC-R";
	if (strcmp(mode, "tcp") == 0)
		return "TCP";
	return strcmp(mode, "setup") == 0 ? "set-up" : mode;
}

static void
mode_cell(const json_t *c, char *buf, size_t cap)
{
	snprintf(buf, cap, "%s", show_mode(c));
}

/* The uid of a program on a UNIX socket; nothing on TCP. */
static void
user_cell(const json_t *c, char *buf, size_t cap)
{
	buf[0] = '\0';
	if (get_int(c, "app_uid") >= 0)
		snprintf(buf, cap, "%" PRId64, get_int(c, "app_uid"));
}

/* On SMC-R the state of RFC 7609, otherwise the proxied connection's. */
static void
conn_state_cell(const json_t *c, char *buf, size_t cap)
{
	const char *smc = get_string(c, "smc_state");

	snprintf(buf, cap, "%s", smc[0] != '\0' ? smc : get_string(c, "state"));
}

/* "group/link", nothing before there is one. */
static void
group_link_cell(const json_t *c, char *buf, size_t cap)
{
	buf[0] = '\0';
	if (get_int(c, "group") != 0)
		snprintf(buf, cap, "%" PRId64 "/%" PRId64, get_int(c, "group"), get_int(c, "link"));
}

static void
blocked_cell(const json_t *c, char *buf, size_t cap)
{
	bool we = get_bool(c, "writer_blocked"), peer = get_bool(c, "peer_blocked");

	snprintf(buf, cap, "%s", we && peer ? "both" : we ? "we" : peer ? "peer" : "no");
}

/* IRD and ORD as an iWARP peer named them in the start-up; 0 is a value. */
static void
depths_cell(const json_t *l, char *buf, size_t cap)
{
	int64_t ird = get_int(l, "peer_ird"), ord = get_int(l, "peer_ord");
	char ird_text[24] = "-", ord_text[24] = "-";

	if (ird >= 0)
		snprintf(ird_text, sizeof(ird_text), "%" PRId64, ird);
	if (ord >= 0)
		snprintf(ord_text, sizeof(ord_text), "%" PRId64, ord);
	snprintf(buf, cap, ird < 0 && ord < 0 ? "-" : "%s/%s", ird_text, ord_text);
}

/* Of SMC-R: "1", "2.0", "2.1"; nothing for a connection that is not on it. */
static void
version_cell(const json_t *item, char *buf, size_t cap)
{
	int64_t version = get_int(item, "version");

	buf[0] = '\0';
	if (version >= 2)
		snprintf(buf, cap, "%" PRId64 ".%" PRId64, version, get_int(item, "release"));
	else if (version != 0)
		snprintf(buf, cap, "%" PRId64, version);
}

/* Who is at the other end of a group; nothing for a connection that has none. */
static void
peer_kind_cell(const json_t *item, char *buf, size_t cap)
{
	snprintf(buf, cap, "%s", get_int(item, "version") == 0 ? "" : get_bool(item, "foreign") ? "AF_SMC" : "smcrd");
}

static void
cursor_cell(const json_t *g, char *buf, size_t cap)
{
	snprintf(buf, cap, "%s", get_bool(g, "rfc_cursors") ? "RFC" : "Linux");
}

/* "3m12s ago, 17 connections in 4.1ms: port down" */
static void
failover_cell(const json_t *g, char *buf, size_t cap)
{
	const json_t *f = json_object_get(g, "last_failover");
	char age[HUMAN_MAX], took[HUMAN_MAX];

	buf[0] = '\0';
	if (json_is_object(f) && get_int(f, "age_ms") >= 0)
		snprintf(buf, cap, "%s ago, %" PRId64 " connections in %s: %s",
		    human_duration(age, get_int(f, "age_ms")), get_int(f, "connections"),
		    human_us(took, get_int(f, "duration_us")), get_string(f, "cause"));
}

/* "mlx5_0/1", nothing for a device of software. */
static void
card_cell(const json_t *d, char *buf, size_t cap)
{
	buf[0] = '\0';
	if (get_string(d, "card")[0] != '\0')
		snprintf(buf, cap, "%s/%" PRId64, get_string(d, "card"), get_int(d, "card_port"));
}

/* All addresses at which the device is reached. */
static void
addresses_cell(const json_t *d, char *buf, size_t cap)
{
	buf[0] = '\0';
	append_list(buf, cap, json_object_get(d, "addresses"));
}

static void
primary_cell(const json_t *p, char *buf, size_t cap)
{
	snprintf(buf, cap, "%s", get_bool(p, "primary") ? "yes" : "no");
}

/* clang-format off */
#define PEER_DETAIL \
	{ .heading = "PEER-KIND", .call = peer_kind_cell, .detail = true }, \
	{ .heading = "PEER-OS", .key = "peer_os", .detail = true }, \
	{ .heading = "PEER-HOST", .key = "peer_host", .detail = true }, \
	{ .heading = "EID", .key = "eid", .detail = true }
/* clang-format on */

static const struct column connections[] = {
	{ .heading = "ID", .kind = COLUMN_NUMBER, .key = "id" },
	{ .heading = "WORKER", .kind = COLUMN_NUMBER, .key = "worker", .detail = true },
	{ .heading = "SERVICE", .key = "service" },
	{ .heading = "ROLE", .key = "role" },
	{ .heading = "APPLICATION", .key = "app" },
	{ .heading = "APP-USER", .call = user_cell, .detail = true },
	{ .heading = "PEER", .key = "peer" },
	{ .heading = "MODE", .call = mode_cell },
	{ .heading = "STATE", .call = conn_state_cell },
	{ .heading = "GROUP/LINK", .call = group_link_cell },
	{ .heading = "VERSION", .call = version_cell },
	PEER_DETAIL,
	{ .heading = "TOKEN", .key = "token", .detail = true },
	{ .heading = "PEER-TOKEN", .key = "peer_token", .detail = true },
	{ .heading = "SNDBUF", .kind = COLUMN_BYTES, .key = "sndbuf_bytes", .detail = true },
	{ .heading = "RMBE", .kind = COLUMN_BYTES, .key = "rmbe_bytes", .detail = true },
	{ .heading = "PEER-RMBE", .kind = COLUMN_BYTES, .key = "peer_rmbe_bytes", .detail = true },
	/* Of our data, of the peer's: bytes since the start. */
	{ .heading = "TX-WRITTEN/SENT/CONSUMED",
	    .kind = COLUMN_NUMBER,
	    .key = "tx_written",
	    .more = { "tx_sent", "tx_consumed" },
	    .detail = true },
	{ .heading = "RX-PRODUCED/CONSUMED",
	    .kind = COLUMN_NUMBER,
	    .key = "rx_produced",
	    .more = { "rx_consumed" },
	    .detail = true },
	{ .heading = "BLOCKED", .call = blocked_cell, .detail = true },
	{ .heading = "FROM-APP", .kind = COLUMN_BYTES, .key = "bytes_from_app" },
	{ .heading = "TO-APP", .kind = COLUMN_BYTES, .key = "bytes_to_app" },
	{ .heading = "IDLE", .kind = COLUMN_AGE, .key = "idle_ms", .detail = true },
	{ .heading = "AGE", .kind = COLUMN_AGE, .key = "age_ms" },
	{ .heading = "REASON (LOCAL/PEER)", .call = reason_cell },
	{ 0 },
};

static const struct column groups[] = {
	{ .heading = "ID", .kind = COLUMN_NUMBER, .key = "id" },
	{ .heading = "WORKER", .kind = COLUMN_NUMBER, .key = "worker", .detail = true },
	{ .heading = "ROLE", .key = "role" },
	{ .heading = "VERSION", .call = version_cell },
	{ .heading = "TYPE", .key = "type" },
	{ .heading = "STATE", .key = "state" },
	{ .heading = "CONNS", .kind = COLUMN_NUMBER, .key = "connections" },
	{ .heading = "CONNS-MAX", .kind = COLUMN_NUMBER, .key = "connections_limit", .detail = true },
	{ .heading = "LINKS/MAX", .kind = COLUMN_NUMBER, .key = "links", .more = { "links_limit" } },
	{ .heading = "RMBS", .kind = COLUMN_NUMBER, .key = "rmbs" },
	{ .heading = "PEER-RMBS", .kind = COLUMN_NUMBER, .key = "peer_rmbs" },
	{ .heading = "PEER-ID", .key = "peer_id" },
	{ .heading = "PEER", .key = "peer" },
	{ .heading = "PEER-KIND", .call = peer_kind_cell },
	{ .heading = "PEER-OS", .key = "peer_os" },
	{ .heading = "PEER-HOST", .key = "peer_host" },
	{ .heading = "EID", .key = "eid" },
	{ .heading = "MEMORY", .kind = COLUMN_BYTES, .key = "rmb_bytes", .more = { "sndbuf_bytes" } },
	{ .heading = "RMB-BYTES", .kind = COLUMN_NUMBER, .key = "rmb_bytes", .detail = true },
	{ .heading = "SNDBUF-BYTES", .kind = COLUMN_NUMBER, .key = "sndbuf_bytes", .detail = true },
	{ .heading = "CURSORS", .call = cursor_cell, .detail = true },
	{ .heading = "AGE", .kind = COLUMN_AGE, .key = "age_ms" },
	{ .heading = "RETRY-IN", .kind = COLUMN_AGE, .key = "add_link_retry_ms" },
	{ .heading = "WAITS-FOR", .key = "waits_for" },
	{ .heading = "LAST-FAILOVER", .call = failover_cell },
	{ 0 },
};

static const struct column links[] = {
	{ .heading = "GROUP", .kind = COLUMN_NUMBER, .key = "group" },
	{ .heading = "LINK", .kind = COLUMN_NUMBER, .key = "number" },
	{ .heading = "WORKER", .kind = COLUMN_NUMBER, .key = "worker", .detail = true },
	{ .heading = "LINK-UID", .key = "user_id" },
	{ .heading = "PEER-UID", .key = "peer_user_id" },
	{ .heading = "VERSION", .call = version_cell },
	PEER_DETAIL,
	{ .heading = "STATE", .key = "state" },
	{ .heading = "DEVICE", .key = "device" },
	{ .heading = "TRANSPORT", .key = "transport" },
	{ .heading = "GID", .key = "gid" },
	{ .heading = "PEER-GID", .key = "peer_gid" },
	{ .heading = "MAC", .key = "mac", .detail = true },
	{ .heading = "PEER-MAC", .key = "peer_mac", .detail = true },
	{ .heading = "QPN", .kind = COLUMN_QPN, .key = "qpn" },
	{ .heading = "PEER-QPN", .kind = COLUMN_QPN, .key = "peer_qpn" },
	{ .heading = "MTU", .kind = COLUMN_NUMBER, .key = "mtu" },
	{ .heading = "PEER-IRD/ORD", .call = depths_cell, .detail = true },
	{ .heading = "CONNS", .kind = COLUMN_NUMBER, .key = "connections" },
	{ .heading = "IDLE", .kind = COLUMN_AGE, .key = "idle_ms" },
	{ .heading = "RTT", .kind = COLUMN_MICRO, .key = "rtt_us" },
	{ .heading = "RETRANSMITS", .kind = COLUMN_NUMBER, .key = "retransmits", .detail = true },
	{ .heading = "UNACKED", .kind = COLUMN_NUMBER, .key = "unacked", .detail = true },
	{ 0 },
};

static const struct column link_paths[] = {
	{ .heading = "GROUP", .kind = COLUMN_NUMBER, .key = "group" },
	{ .heading = "LINK", .kind = COLUMN_NUMBER, .key = "number" },
	{ .heading = "ADDRESS", .key = "address" },
	{ .heading = "STATE", .key = "state" },
	{ .heading = "PRIMARY", .call = primary_cell },
	{ .heading = "RTT", .kind = COLUMN_MICRO, .key = "rtt_us" },
	{ .heading = "RTO", .kind = COLUMN_MICRO, .key = "rto_us" },
	{ .heading = "MTU", .kind = COLUMN_NUMBER, .key = "mtu", .zero_unknown = true },
	{ .heading = "CWND", .kind = COLUMN_BYTES, .key = "cwnd_bytes", .zero_unknown = true },
	{ 0 },
};

static const struct column rmbs[] = {
	{ .heading = "GROUP", .kind = COLUMN_NUMBER, .key = "group" },
	{ .heading = "RMB", .kind = COLUMN_NUMBER, .key = "number" },
	{ .heading = "WORKER", .kind = COLUMN_NUMBER, .key = "worker", .detail = true },
	{ .heading = "SIDE", .key = "side" },
	{ .heading = "STATE", .key = "state" },
	{ .heading = "ELEMENT", .kind = COLUMN_BYTES, .key = "element_bytes" },
	{ .heading = "ELEMENTS", .kind = COLUMN_NUMBER, .key = "elements" },
	{ .heading = "USED", .kind = COLUMN_NUMBER, .key = "used" },
	{ .heading = "QUARANTINED", .kind = COLUMN_NUMBER, .key = "quarantined" },
	{ 0 },
};

/* Of an older daemon every service is open. */
static void
service_state_cell(const json_t *s, char *buf, size_t cap)
{
	snprintf(buf, cap, "%s", get_bool(s, "disabled") ? "disabled" : get_bool(s, "closed") ? "closed" : "open");
}

#define REFUSED_MORE "refused_max", "refused_per_peer", "refused_connect", "refused_fallback", "refused_disabled"

/* Up to REFUSED it fits 100 columns, with a name and addresses of usual length. */
static const struct column services[] = {
	{ .heading = "SERVICE", .key = "name" },
	{ .heading = "KIND", .key = "kind" },
	{ .heading = "STATE", .call = service_state_cell },
	{ .heading = "LISTEN", .key = "listen" },
	{ .heading = "TO", .key = "to" },
	{ .heading = "CONNS/MAX", .kind = COLUMN_NUMBER, .key = "connections", .more = { "connections_max" } },
	{ .heading = "ACCEPTED", .kind = COLUMN_NUMBER, .key = "accepted" },
	{ .heading = "FALLBACKS", .kind = COLUMN_NUMBER, .key = "fallbacks" },
	{ .heading = "REFUSED", .kind = COLUMN_SUM, .key = "refused_allow", .more = { REFUSED_MORE } },
	{ .heading = "RESETS", .kind = COLUMN_NUMBER, .key = "resets", .detail = true },
	{ .heading = "REFUSED-ALLOW/MAX/PEER/CONNECT/FALLBACK/DISABLED",
	    .kind = COLUMN_NUMBER,
	    .key = "refused_allow",
	    .more = { REFUSED_MORE },
	    .detail = true },
	{ 0 },
};

static void
conn_count_cell(const json_t *w, const char *mode, char *buf, size_t cap)
{
	snprintf(buf, cap, "%" PRId64, get_int(json_object_get(w, "connections"), mode));
}

static void
smcr_count_cell(const json_t *w, char *buf, size_t cap)
{
	conn_count_cell(w, "smcr", buf, cap);
}

static void
tcp_count_cell(const json_t *w, char *buf, size_t cap)
{
	conn_count_cell(w, "tcp", buf, cap);
}

static void
setup_count_cell(const json_t *w, char *buf, size_t cap)
{
	conn_count_cell(w, "setup", buf, cap);
}

static const struct column workers[] = {
	{ .heading = "WORKER", .kind = COLUMN_NUMBER, .key = "worker" },
	{ .heading = "SMC-R", .call = smcr_count_cell },
	{ .heading = "TCP", .call = tcp_count_cell },
	{ .heading = "SET-UP", .call = setup_count_cell },
	{ .heading = "GROUPS", .kind = COLUMN_NUMBER, .key = "groups" },
	{ .heading = "LINKS", .kind = COLUMN_NUMBER, .key = "links" },
	{ .heading = "RMBS", .kind = COLUMN_BYTES, .key = "rmb_bytes" },
	{ .heading = "TURNS", .kind = COLUMN_NUMBER, .key = "turns" },
	{ 0 },
};

static const struct column devices[] = {
	{ .heading = "NAME", .key = "name" },
	{ .heading = "WORKER", .kind = COLUMN_NUMBER, .key = "worker" },
	{ .heading = "PROVIDER", .key = "provider" },
	{ .heading = "TRANSPORT", .key = "transport" },
	{ .heading = "STACK", .key = "stack" },
	{ .heading = "PROFILE", .key = "profile", .detail = true },
	{ .heading = "PORT", .key = "port" },
	{ .heading = "CARD", .call = card_cell },
	{ .heading = "INTERFACE", .key = "interface" },
	{ .heading = "GID", .key = "gid" },
	{ .heading = "ADDRESSES", .call = addresses_cell, .detail = true },
	{ .heading = "GID-TYPE", .key = "gid_type" },
	{ .heading = "GID-INDEX", .kind = COLUMN_NUMBER, .key = "gid_index", .detail = true },
	{ .heading = "LINK-LAYER", .key = "link_layer", .detail = true },
	{ .heading = "MAC", .key = "mac" },
	{ .heading = "MTU", .kind = COLUMN_NUMBER, .key = "mtu" },
	{ .heading = "IWARP-PORT", .kind = COLUMN_NUMBER, .key = "mpa_port" },
	{ .heading = "QPS/MAX", .kind = COLUMN_NUMBER, .key = "qps", .more = { "qps_max" } },
	{ .heading = "MRS/MAX", .kind = COLUMN_NUMBER, .key = "mrs", .more = { "mrs_max" } },
	{ .heading = "REGISTERED", .kind = COLUMN_BYTES, .key = "registered_bytes" },
	{ .heading = "SQ-MAX", .kind = COLUMN_NUMBER, .key = "sq_max", .detail = true },
	{ .heading = "RQ-MAX", .kind = COLUMN_NUMBER, .key = "rq_max", .detail = true },
	{ .heading = "SGE-MAX", .kind = COLUMN_NUMBER, .key = "sge_max", .detail = true },
	{ .heading = "INLINE-MAX", .kind = COLUMN_NUMBER, .key = "inline_max", .detail = true },
	{ 0 },
};

static const struct column device_gids[] = {
	{ .heading = "DEVICE", .key = "name" },
	{ .heading = "INDEX", .kind = COLUMN_NUMBER, .key = "index" },
	{ .heading = "TYPE", .key = "type" },
	{ .heading = "GID", .key = "gid" },
	{ .heading = "INTERFACE", .key = "interface" },
	{ 0 },
};

static const struct column card_stats[] = {
	{ .heading = "DEVICE", .key = "name" },
	{ .heading = "SENDS", .kind = COLUMN_NUMBER, .key = "sends_posted" },
	{ .heading = "WRITES", .kind = COLUMN_NUMBER, .key = "writes_posted" },
	{ .heading = "DOORBELLS", .kind = COLUMN_NUMBER, .key = "doorbells" },
	{ .heading = "COMPLETIONS", .kind = COLUMN_NUMBER, .key = "completions" },
	{ .heading = "POLLS", .kind = COLUMN_NUMBER, .key = "polls" },
	{ .heading = "WAKE-UPS", .kind = COLUMN_NUMBER, .key = "wakeups" },
	{ .heading = "RNR-EXCEEDED", .kind = COLUMN_NUMBER, .key = "rnr_retry_exc" },
	{ .heading = "RETRY-EXCEEDED", .kind = COLUMN_NUMBER, .key = "retry_exc" },
	{ .heading = "REMOTE-ACCESS", .kind = COLUMN_NUMBER, .key = "remote_access_errs" },
	{ .heading = "FLUSHED", .kind = COLUMN_NUMBER, .key = "flushed" },
	{ .heading = "OTHER-ERRORS", .kind = COLUMN_NUMBER, .key = "other_errs" },
	{ .heading = "EVENTS", .kind = COLUMN_NUMBER, .key = "async_events" },
	{ 0 },
};

static const struct column soft_stats[] = {
	{ .heading = "DEVICE", .key = "name" },
	{ .heading = "SEGMENTS-OUT", .kind = COLUMN_NUMBER, .key = "fpdus_sent" },
	{ .heading = "SEGMENTS-IN", .kind = COLUMN_NUMBER, .key = "fpdus_received" },
	{ .heading = "READS-SENT", .kind = COLUMN_NUMBER, .key = "reads_sent" },
	{ .heading = "REFUSED-TOKEN", .kind = COLUMN_NUMBER, .key = "mpa_refused_token" },
	{ .heading = "REFUSED-EARLY", .kind = COLUMN_NUMBER, .key = "mpa_refused_parked" },
	{ .heading = "REFUSED-ADDRESS", .kind = COLUMN_NUMBER, .key = "mpa_refused_address" },
	{ .heading = "BAD-REQUESTS", .kind = COLUMN_NUMBER, .key = "mpa_bad" },
	{ .heading = "CRC-ERRORS", .kind = COLUMN_NUMBER, .key = "crc_errors" },
	{ .heading = "TERMINATES-OUT", .kind = COLUMN_NUMBER, .key = "terminates_sent" },
	{ .heading = "TERMINATES-IN", .kind = COLUMN_NUMBER, .key = "terminates_received" },
	{ .heading = "RECV-STALLS", .kind = COLUMN_NUMBER, .key = "recv_stalls" },
	{ .heading = "ACCEPT-PAUSES", .kind = COLUMN_NUMBER, .key = "accept_pauses" },
	{ .heading = "LINGER-REFUSED", .kind = COLUMN_NUMBER, .key = "linger_refused" },
	{ .heading = "STRANGERS-LIMITED", .kind = COLUMN_NUMBER, .key = "strangers_limited" },
	{ .heading = "SCTP-RETRANSMITS", .kind = COLUMN_NUMBER, .key = "sctp_retransmits" },
	{ .heading = "NO-MEMORY", .kind = COLUMN_NUMBER, .key = "no_memory" },
	{ 0 },
};

static void
format_cell(const struct column *c, const json_t *item, char *buf, size_t cap)
{
	int64_t v = get_int(item, c->key);
	char num[HUMAN_MAX];

	if (c->call != NULL) {
		c->call(item, buf, cap);
		return;
	}
	/* Another version of the daemon has none. */
	if (json_object_get(item, c->key) == NULL || (c->zero_unknown && v == 0)) {
		snprintf(buf, cap, "-");
		return;
	}
	switch (c->kind) {
	case COLUMN_TEXT:
		snprintf(buf, cap, "%s", get_string(item, c->key));
		break;
	case COLUMN_NUMBER:
		if (v < 0) { /* not known, or none */
			snprintf(buf, cap, "-");
			break;
		}
		snprintf(buf, cap, "%" PRId64, v);
		for (unsigned i = 0; c->more[i] != NULL; i++)
			str_append(buf, cap, "/%" PRId64, get_int(item, c->more[i]));
		break;
	case COLUMN_SUM:
		for (unsigned i = 0; c->more[i] != NULL; i++)
			v += get_int(item, c->more[i]);
		snprintf(buf, cap, "%" PRId64, v);
		break;
	case COLUMN_BYTES:
		for (unsigned i = 0; c->more[i] != NULL; i++)
			v += get_int(item, c->more[i]);
		snprintf(buf, cap, "%s", human_bytes(num, (uint64_t)v));
		break;
	case COLUMN_AGE:
		snprintf(buf, cap, "%s", human_duration(num, v));
		break;
	case COLUMN_QPN:
		snprintf(buf, cap, "0x%06" PRIx64, (uint64_t)v);
		break;
	case COLUMN_MICRO:
		snprintf(buf, cap, "%s", human_us(num, v));
		break;
	}
}

/* One line for each item of the list; a column without heading ends columns. */
static void
show_columns(FILE *f, const json_t *list, const struct column *columns, bool detail)
{
	char buf[512];
	struct table t = { 0 };

	for (const struct column *c = columns; c->heading != NULL; c++)
		if (detail || !c->detail)
			table_column(&t, c->heading, c->kind != COLUMN_TEXT && c->kind != COLUMN_QPN);
	for (size_t i = 0; i < json_array_size(list); i++) {
		for (const struct column *c = columns; c->heading != NULL; c++) {
			if (!detail && c->detail)
				continue;
			format_cell(c, json_array_get(list, i), buf, sizeof(buf));
			table_cell(&t, buf);
		}
	}
	table_print(&t, f);
	table_fini(&t);
}

/* A table of what items of a list have under a key, an object or a list of them, behind the list itself. */
struct parts {
	const char *list, *key, *title;
	const struct column *columns;    /* of the part, and of the item that it is of */
	bool (*has)(const json_t *item); /* NULL: every item */
};

static bool
is_card(const json_t *d)
{
	return get_string(d, "card")[0] != '\0';
}

static bool
is_soft(const json_t *d)
{
	return !is_card(d);
}

static const struct parts all_parts[] = {
	{ "links", "paths", "Paths of links", link_paths, NULL },
	{ "devices", "gids", "GIDs of cards", device_gids, is_card },
	{ "devices", "stats", "Counters of cards", card_stats, is_card },
	{ "devices", "stats", "Counters of soft iWARP", soft_stats, is_soft },
};

static void
show_parts(FILE *f, const json_t *list, const struct parts *p)
{
	json_t *lines = json_array();

	for (size_t i = 0; i < json_array_size(list); i++) {
		json_t *item = json_array_get(list, i), *part = json_object_get(item, p->key);
		size_t cnt = json_is_array(part) ? json_array_size(part) : part != NULL;

		for (size_t k = 0; k < cnt && (p->has == NULL || p->has(item)); k++) {
			json_t *line = json_copy(item);

			(void)json_object_update(line, json_is_array(part) ? json_array_get(part, k) : part);
			(void)json_array_append_new(lines, line);
		}
	}
	if (json_array_size(lines) > 0) {
		fprintf(f, "\n%s\n", p->title);
		show_columns(f, lines, p->columns, true);
	}
	json_decref(lines);
}

void
show_list(FILE *f, const json_t *data, const char *key, bool detail)
{
	static const struct {
		const char *key;
		const struct column *columns;
	} lists[] = {
		{ "connections", connections },
		{ "groups", groups },
		{ "links", links },
		{ "rmbs", rmbs },
		{ "workers", workers },
		{ "services", services },
		{ "devices", devices },
	};
	const json_t *list = json_object_get(data, key);

	for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++)
		if (strcmp(lists[i].key, key) == 0)
			show_columns(f, list, lists[i].columns, detail);
	for (size_t i = 0; i < sizeof(all_parts) / sizeof(all_parts[0]); i++)
		if (detail && strcmp(all_parts[i].list, key) == 0)
			show_parts(f, list, &all_parts[i]);
}
