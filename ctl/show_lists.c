/* The lists as tables: which columns, in which order. Names follow smcr and smcss where they have one. */
#include <string.h>

#include "ctl/human.h"
#include "ctl/show_parts.h"

/* Both reasons of a fallback, codes and words; nothing when there are none. */
static void
reason_cell(const json_t *c, char *buf, size_t cap)
{
	const json_t *r = json_object_get(c, "reason");
	const char *local = get_string(r, "local_code"), *peer = get_string(r, "peer_code");
	const char *local_text = get_string(r, "local_text"), *peer_text = get_string(r, "peer_text");
	bool both = local_text[0] != '\0' && peer_text[0] != '\0';

	buf[0] = '\0';
	if (local_text[0] == '\0' && peer_text[0] == '\0' && !get_bool(r, "held_off"))
		return;
	snprintf(buf, cap, "%s/%s %s%s%s%s%s%s", local, peer, local_text, both ? "; " : "",
	    peer_text[0] != '\0' ? "peer: " : "", peer_text, get_bool(r, "out_of_sync") ? " (out of sync)" : "",
	    get_bool(r, "held_off") ? " (peer held off after failures)" : "");
}

static void
mode_cell(const json_t *c, char *buf, size_t cap)
{
	const char *mode = get_string(c, "mode");

	if (strcmp(mode, "smcr") == 0)
		mode = "SMC-R";
	else if (strcmp(mode, "tcp") == 0)
		mode = "TCP";
	else if (strcmp(mode, "setup") == 0)
		mode = "set-up";
	snprintf(buf, cap, "%s", mode);
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

/* written/sent/consumed of our data, produced/consumed of the peer's: bytes since the start. */
static void
tx_cell(const json_t *c, char *buf, size_t cap)
{
	snprintf(buf, cap, "%" PRId64 "/%" PRId64 "/%" PRId64, get_int(c, "tx_written"), get_int(c, "tx_sent"),
	    get_int(c, "tx_consumed"));
}

/* As a trace and other tools write queue pair numbers. */
static void
qpn_cell(const json_t *l, char *buf, size_t cap)
{
	snprintf(buf, cap, "0x%06" PRIx64, (uint64_t)get_int(l, "qpn"));
}

static void
peer_qpn_cell(const json_t *l, char *buf, size_t cap)
{
	snprintf(buf, cap, "0x%06" PRIx64, (uint64_t)get_int(l, "peer_qpn"));
}

static void
cursor_cell(const json_t *g, char *buf, size_t cap)
{
	snprintf(buf, cap, "%s", get_bool(g, "rfc_cursors") ? "RFC" : "Linux");
}

static void
memory_cell(const json_t *g, char *buf, size_t cap)
{
	char num[HUMAN_MAX];

	snprintf(buf, cap, "%s", human_bytes(num, (uint64_t)(get_int(g, "rmb_bytes") + get_int(g, "sndbuf_bytes"))));
}

/* "3m12s ago, 17 connections in 4.1ms: port down" */
static void
failover_cell(const json_t *g, char *buf, size_t cap)
{
	const json_t *f = json_object_get(g, "last_failover");
	char age[HUMAN_MAX], took[HUMAN_MAX];

	buf[0] = '\0';
	if (!json_is_object(f) || get_int(f, "age_ms") < 0)
		return;
	snprintf(buf, cap, "%s ago, %" PRId64 " connections in %s: %s", human_duration(age, get_int(f, "age_ms")),
	    get_int(f, "connections"), human_us(took, get_int(f, "duration_us")), get_string(f, "cause"));
}

void
show_connections(FILE *f, const json_t *data, bool detail)
{
	static const struct column columns[] = {
		{ .heading = "ID", .kind = COLUMN_NUMBER, .key = "id" },
		{ .heading = "SERVICE", .key = "service" },
		{ .heading = "ROLE", .key = "role" },
		{ .heading = "APPLICATION", .key = "app" },
		{ .heading = "PEER", .key = "peer" },
		{ .heading = "MODE", .kind = COLUMN_CALL, .call = mode_cell },
		{ .heading = "STATE", .kind = COLUMN_CALL, .call = conn_state_cell },
		{ .heading = "GROUP/LINK", .kind = COLUMN_CALL, .call = group_link_cell },
		{ .heading = "TOKEN", .key = "token", .detail = true },
		{ .heading = "PEER-TOKEN", .key = "peer_token", .detail = true },
		{ .heading = "SNDBUF", .kind = COLUMN_BYTES, .key = "sndbuf_bytes", .detail = true },
		{ .heading = "RMBE", .kind = COLUMN_BYTES, .key = "rmbe_bytes", .detail = true },
		{ .heading = "PEER-RMBE", .kind = COLUMN_BYTES, .key = "peer_rmbe_bytes", .detail = true },
		{ .heading = "TX-WRITTEN/SENT/CONSUMED",
		    .kind = COLUMN_CALL,
		    .call = tx_cell,
		    .right = true,
		    .detail = true },
		{ .heading = "RX-PRODUCED/CONSUMED",
		    .kind = COLUMN_PAIR,
		    .key = "rx_produced",
		    .key2 = "rx_consumed",
		    .detail = true },
		{ .heading = "BLOCKED", .kind = COLUMN_CALL, .call = blocked_cell, .detail = true },
		{ .heading = "FROM-APP", .kind = COLUMN_BYTES, .key = "bytes_from_app" },
		{ .heading = "TO-APP", .kind = COLUMN_BYTES, .key = "bytes_to_app" },
		{ .heading = "IDLE", .kind = COLUMN_AGE, .key = "idle_ms", .detail = true },
		{ .heading = "AGE", .kind = COLUMN_AGE, .key = "age_ms" },
		{ .heading = "REASON (LOCAL/PEER)", .kind = COLUMN_CALL, .call = reason_cell },
		{ 0 },
	};

	show_list(f, json_object_get(data, "connections"), columns, detail);
}

void
show_groups(FILE *f, const json_t *data, bool detail)
{
	static const struct column columns[] = {
		{ .heading = "ID", .kind = COLUMN_NUMBER, .key = "id" },
		{ .heading = "ROLE", .key = "role" },
		{ .heading = "TYPE", .key = "type" },
		{ .heading = "STATE", .key = "state" },
		{ .heading = "CONNS", .kind = COLUMN_NUMBER, .key = "connections" },
		{ .heading = "LINKS/MAX", .kind = COLUMN_PAIR, .key = "links", .key2 = "links_limit" },
		{ .heading = "RMBS", .kind = COLUMN_NUMBER, .key = "rmbs" },
		{ .heading = "PEER-RMBS", .kind = COLUMN_NUMBER, .key = "peer_rmbs" },
		{ .heading = "PEER-ID", .key = "peer_id" },
		{ .heading = "PEER", .key = "peer" },
		{ .heading = "MEMORY", .kind = COLUMN_CALL, .call = memory_cell, .right = true },
		{ .heading = "RMB-BYTES", .kind = COLUMN_NUMBER, .key = "rmb_bytes", .detail = true },
		{ .heading = "SNDBUF-BYTES", .kind = COLUMN_NUMBER, .key = "sndbuf_bytes", .detail = true },
		{ .heading = "CURSORS", .kind = COLUMN_CALL, .call = cursor_cell, .detail = true },
		{ .heading = "AGE", .kind = COLUMN_AGE, .key = "age_ms" },
		{ .heading = "RETRY-IN", .kind = COLUMN_AGE, .key = "add_link_retry_ms" },
		{ .heading = "WAITS-FOR", .key = "waits_for" },
		{ .heading = "LAST-FAILOVER", .kind = COLUMN_CALL, .call = failover_cell },
		{ 0 },
	};

	show_list(f, json_object_get(data, "groups"), columns, detail);
}

void
show_links(FILE *f, const json_t *data, bool detail)
{
	static const struct column columns[] = {
		{ .heading = "GROUP", .kind = COLUMN_NUMBER, .key = "group" },
		{ .heading = "LINK", .kind = COLUMN_NUMBER, .key = "number" },
		{ .heading = "LINK-UID", .key = "user_id" },
		{ .heading = "PEER-UID", .key = "peer_user_id" },
		{ .heading = "STATE", .key = "state" },
		{ .heading = "DEVICE", .key = "device" },
		{ .heading = "GID", .key = "gid" },
		{ .heading = "PEER-GID", .key = "peer_gid" },
		{ .heading = "MAC", .key = "mac", .detail = true },
		{ .heading = "PEER-MAC", .key = "peer_mac", .detail = true },
		{ .heading = "QPN", .kind = COLUMN_CALL, .call = qpn_cell },
		{ .heading = "PEER-QPN", .kind = COLUMN_CALL, .call = peer_qpn_cell },
		{ .heading = "MTU", .kind = COLUMN_NUMBER, .key = "mtu" },
		{ .heading = "CONNS", .kind = COLUMN_NUMBER, .key = "connections" },
		{ .heading = "IDLE", .kind = COLUMN_AGE, .key = "idle_ms" },
		{ .heading = "RTT", .kind = COLUMN_MICRO, .key = "rtt_us" },
		{ 0 },
	};

	show_list(f, json_object_get(data, "links"), columns, detail);
}

void
show_rmbs(FILE *f, const json_t *data, bool detail)
{
	static const struct column columns[] = {
		{ .heading = "GROUP", .kind = COLUMN_NUMBER, .key = "group" },
		{ .heading = "RMB", .kind = COLUMN_NUMBER, .key = "number" },
		{ .heading = "SIDE", .key = "side" },
		{ .heading = "STATE", .key = "state" },
		{ .heading = "ELEMENT", .kind = COLUMN_BYTES, .key = "element_bytes" },
		{ .heading = "ELEMENTS", .kind = COLUMN_NUMBER, .key = "elements" },
		{ .heading = "USED", .kind = COLUMN_NUMBER, .key = "used" },
		{ .heading = "QUARANTINED", .kind = COLUMN_NUMBER, .key = "quarantined" },
		{ 0 },
	};

	show_list(f, json_object_get(data, "rmbs"), columns, detail);
}

void
show_devices(FILE *f, const json_t *data, bool detail)
{
	static const struct column columns[] = {
		{ .heading = "NAME", .key = "name" },
		{ .heading = "PROVIDER", .key = "provider" },
		{ .heading = "TRANSPORT", .key = "transport" },
		{ .heading = "PORT", .key = "port" },
		{ .heading = "GID", .key = "gid" },
		{ .heading = "MAC", .key = "mac" },
		{ .heading = "MTU", .kind = COLUMN_NUMBER, .key = "mtu" },
		{ .heading = "MPA-PORT", .kind = COLUMN_NUMBER, .key = "mpa_port" },
		{ .heading = "QPS/MAX", .kind = COLUMN_PAIR, .key = "qps", .key2 = "qps_max" },
		{ .heading = "MRS/MAX", .kind = COLUMN_PAIR, .key = "mrs", .key2 = "mrs_max" },
		{ .heading = "REGISTERED", .kind = COLUMN_BYTES, .key = "registered_bytes" },
		{ .heading = "SQ-MAX", .kind = COLUMN_NUMBER, .key = "sq_max", .detail = true },
		{ .heading = "RQ-MAX", .kind = COLUMN_NUMBER, .key = "rq_max", .detail = true },
		{ .heading = "SGE-MAX", .kind = COLUMN_NUMBER, .key = "sge_max", .detail = true },
		{ .heading = "INLINE-MAX", .kind = COLUMN_NUMBER, .key = "inline_max", .detail = true },
		{ 0 },
	};

	show_list(f, json_object_get(data, "devices"), columns, detail);
}
