/* The lists as tables: which columns, in which order. Names follow smcr and smcss where they have one. */
#include <string.h>

#include "ctl/human.h"
#include "ctl/show.h"

/* The reasons of a fallback of both sides, codes and words; nothing when there are none. */
static void
reason_cell(const json_t *c, char *buf, size_t cap)
{
	const json_t *r = json_object_get(c, "reason");
	const char *local = get_string(r, "local_code"), *peer = get_string(r, "peer_code");
	const char *local_text = get_string(r, "local_text"), *peer_text = get_string(r, "peer_text");
	const char *detail = get_string(r, "detail"), *mpa_peer = get_string(r, "mpa_peer");
	bool both = local_text[0] != '\0' && peer_text[0] != '\0';

	buf[0] = '\0';
	if (local_text[0] == '\0' && peer_text[0] == '\0' && !get_bool(r, "held_off"))
		return;
	snprintf(buf, cap, "%s/%s %s%s%s%s%s%s%s%s%s%s", local, peer, local_text, detail[0] != '\0' ? ": " : "", detail,
	    mpa_peer[0] != '\0' ? " at " : "", mpa_peer, both ? "; " : "", peer_text[0] != '\0' ? "peer: " : "",
	    peer_text, get_bool(r, "out_of_sync") ? " (out of sync)" : "",
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

/* IRD and ORD as an iWARP peer named them in the start-up; 0 is a value. */
static void
depths_cell(const json_t *l, char *buf, size_t cap)
{
	int64_t ird = get_int(l, "peer_ird"), ord = get_int(l, "peer_ord");

	if (ird < 0 && ord < 0)
		snprintf(buf, cap, "-");
	else if (ird < 0)
		snprintf(buf, cap, "-/%" PRId64, ord);
	else if (ord < 0)
		snprintf(buf, cap, "%" PRId64 "/-", ird);
	else
		snprintf(buf, cap, "%" PRId64 "/%" PRId64, ird, ord);
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
		{ .heading = "QPN", .kind = COLUMN_QPN, .key = "qpn" },
		{ .heading = "PEER-QPN", .kind = COLUMN_QPN, .key = "peer_qpn" },
		{ .heading = "MTU", .kind = COLUMN_NUMBER, .key = "mtu" },
		{ .heading = "PEER-IRD/ORD", .kind = COLUMN_CALL, .call = depths_cell, .detail = true },
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

/* "mlx5_0/1", nothing for a device of software. */
static void
card_cell(const json_t *d, char *buf, size_t cap)
{
	buf[0] = '\0';
	if (get_string(d, "card")[0] != '\0')
		snprintf(buf, cap, "%s/%" PRId64, get_string(d, "card"), get_int(d, "card_port"));
}

static void
show_device_gids(FILE *f, const json_t *devices)
{
	static const struct column columns[] = {
		{ .heading = "DEVICE", .key = "device" },
		{ .heading = "INDEX", .kind = COLUMN_NUMBER, .key = "index" },
		{ .heading = "TYPE", .key = "type" },
		{ .heading = "GID", .key = "gid" },
		{ .heading = "INTERFACE", .key = "interface" },
		{ 0 },
	};
	json_t *list = json_array();

	for (size_t i = 0; i < json_array_size(devices); i++) {
		const json_t *d = json_array_get(devices, i), *gids = json_object_get(d, "gids");

		for (size_t k = 0; k < json_array_size(gids); k++) {
			json_t *item = json_copy(json_array_get(gids, k));

			(void)json_object_set_new(item, "device", json_string(get_string(d, "name")));
			(void)json_array_append_new(list, item);
		}
	}
	if (json_array_size(list) > 0) {
		fputs("\nGIDs of cards\n", f);
		show_list(f, list, columns, true);
	}
	json_decref(list);
}

/* One line for each device that is, or is not, a card. */
static void
show_stats_of(FILE *f, const json_t *devices, bool cards, const char *title, const struct column *columns)
{
	json_t *list = json_array();

	for (size_t i = 0; i < json_array_size(devices); i++) {
		const json_t *d = json_array_get(devices, i);
		json_t *item;

		if ((get_string(d, "card")[0] != '\0') != cards)
			continue;
		item = json_copy(json_object_get(d, "stats"));
		(void)json_object_set_new(item, "device", json_string(get_string(d, "name")));
		(void)json_array_append_new(list, item);
	}
	if (json_array_size(list) > 0) {
		fprintf(f, "\n%s\n", title);
		show_list(f, list, columns, true);
	}
	json_decref(list);
}

static void
show_device_stats(FILE *f, const json_t *devices)
{
	static const struct column columns[] = {
		{ .heading = "DEVICE", .key = "device" },
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
	static const struct column soft[] = {
		{ .heading = "DEVICE", .key = "device" },
		{ .heading = "FPDUS-OUT", .kind = COLUMN_NUMBER, .key = "fpdus_sent" },
		{ .heading = "FPDUS-IN", .kind = COLUMN_NUMBER, .key = "fpdus_received" },
		{ .heading = "READS-SENT", .kind = COLUMN_NUMBER, .key = "reads_sent" },
		{ .heading = "REFUSED-TOKEN", .kind = COLUMN_NUMBER, .key = "mpa_refused_token" },
		{ .heading = "REFUSED-EARLY", .kind = COLUMN_NUMBER, .key = "mpa_refused_parked" },
		{ .heading = "REFUSED-ADDRESS", .kind = COLUMN_NUMBER, .key = "mpa_refused_address" },
		{ .heading = "BAD-MPA", .kind = COLUMN_NUMBER, .key = "mpa_bad" },
		{ .heading = "CRC-ERRORS", .kind = COLUMN_NUMBER, .key = "crc_errors" },
		{ .heading = "TERMINATES-OUT", .kind = COLUMN_NUMBER, .key = "terminates_sent" },
		{ .heading = "TERMINATES-IN", .kind = COLUMN_NUMBER, .key = "terminates_received" },
		{ .heading = "RECV-STALLS", .kind = COLUMN_NUMBER, .key = "recv_stalls" },
		{ .heading = "ACCEPT-PAUSES", .kind = COLUMN_NUMBER, .key = "accept_pauses" },
		{ .heading = "LINGER-REFUSED", .kind = COLUMN_NUMBER, .key = "linger_refused" },
		{ .heading = "NO-MEMORY", .kind = COLUMN_NUMBER, .key = "no_memory" },
		{ 0 },
	};

	show_stats_of(f, devices, true, "Counters of cards", columns);
	show_stats_of(f, devices, false, "Counters of soft iWARP", soft);
}

void
show_devices(FILE *f, const json_t *data, bool detail)
{
	static const struct column columns[] = {
		{ .heading = "NAME", .key = "name" },
		{ .heading = "PROVIDER", .key = "provider" },
		{ .heading = "TRANSPORT", .key = "transport" },
		{ .heading = "PORT", .key = "port" },
		{ .heading = "CARD", .kind = COLUMN_CALL, .call = card_cell },
		{ .heading = "INTERFACE", .key = "interface" },
		{ .heading = "GID", .key = "gid" },
		{ .heading = "GID-TYPE", .key = "gid_type" },
		{ .heading = "GID-INDEX", .kind = COLUMN_NUMBER, .key = "gid_index", .detail = true },
		{ .heading = "LINK-LAYER", .key = "link_layer", .detail = true },
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
	if (detail) {
		show_device_gids(f, json_object_get(data, "devices"));
		show_device_stats(f, json_object_get(data, "devices"));
	}
}
