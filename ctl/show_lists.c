/* The lists as tables: which columns, in which order. Names follow smcr and smcss where they have one. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/show.h"
#include "ctl/template.h"
#include "ctl/text.h"

#define COLUMNS_MAX 36
#define GAP 2                            /* between columns */
#define CODE_NO_ACTIVE_LINK "0x030a0000" /* CLC_DIAG_NO_ACTIVE_LINK, as reports have codes */

/* Of SMC-R: "1", "2.0", "2.1"; nothing for a connection that is not on it. */
#define VERSION "[version=1?1|version?{version:n}.{release:n}]"
/* What is at the other end of a group; nothing for a connection that has none. */
#define PEER_KIND "[version?[foreign?AF_SMC|smcrd]]"
/* clang-format off */
#define PEER_DETAIL \
	{ DETAIL, "PEER-KIND", PEER_KIND }, \
	{ DETAIL, "PEER-OS", "{peer_os}" }, \
	{ DETAIL, "PEER-HOST", "{peer_host}" }, \
	{ DETAIL, "EID", "{eid}" }
/* clang-format on */
/* IRD and ORD as an iWARP peer named them in the start-up; 0 is a value. */
#define DEPTHS "[!peer_ird=-1,!peer_ord=-1?{peer_ird:n}/{peer_ord:n}]"
/* "3m12s ago, 17 connections in 4.1ms: port down" */
static const char failover[] =
    "[last_failover*[!age_ms=-1?{age_ms:t} ago, {connections:n} connections in {duration_us:u}: "
    "{cause}]]";
/* The reasons of a fallback of both sides, codes and words; nothing when there are none. */
static const char reason[] =
    "[reason*[local_text,peer_text,held_off?{local_code}/{peer_code} {local_text}[detail?: {detail}]"
    "[mpa_peer? at {mpa_peer}]"
    "[peer_text?[local_text?; ]peer: {peer_text}[peer_code=" CODE_NO_ACTIVE_LINK
    "? (an smcrd that holds us off after failures says so, too)]]"
    "[transport? (over {transport}[sctp_held_off?; the peer's next go over another transport, where both have one])]"
    "[offered? (the client offers {offered})][out_of_sync? (out of sync)]"
    "[held_off? (peer held off after failures)]]]";

/* clang-format off */
static const struct column connections[] = {
	{ RIGHT, "ID", "{id:n}" }, { RIGHT | DETAIL, "WORKER", "{worker:n}" }, { LEFT, "SERVICE", "{service}" },
	{ MORE, "ROLE", "{role}" }, { LEFT, "APPLICATION", "{app}" }, { DETAIL, "APP-USER", "{app_uid:n}" },
	{ DETAIL, "DESTINATION", "{destination}" },
	{ LEFT, "PEER", "{peer}" }, { DETAIL, "PROTECTION", "{protection}" }, { DETAIL, "TLS-1.3-SUITE", "{tls_suite}" }, { DETAIL, "PROVEN-NAME", "{peer_name}" },
	{ LEFT, "MODE", SHOW_MODE }, { LEFT, "STATE", "[smc_state?{smc_state}|{state}]" },
	{ MORE, "GROUP/LINK", "[group?{group:n}/{link:n}]" }, { DETAIL, "OPENED", "[group?[over_link?link|CLC]]" },
	{ MORE, "VERSION", VERSION }, PEER_DETAIL,
	{ DETAIL, "TOKEN", "{token}" }, { DETAIL, "PEER-TOKEN", "{peer_token}" },
	{ RIGHT | DETAIL, "SNDBUF", "{sndbuf_bytes:b}" }, { RIGHT | DETAIL, "RMBE", "{rmbe_bytes:b}" },
	{ RIGHT | DETAIL, "PEER-RMBE", "{peer_rmbe_bytes:b}" },
	/* Of our data, of the peer's: bytes since the start. */
	{ RIGHT | DETAIL, "TX-WRITTEN/SENT/CONSUMED", "{tx_written:n}/{tx_sent:n}/{tx_consumed:n}" },
	{ RIGHT | DETAIL, "RX-PRODUCED/CONSUMED", "{rx_produced:n}/{rx_consumed:n}" },
	{ DETAIL, "BLOCKED", "[writer_blocked?[peer_blocked?both|we]|peer_blocked?peer|no]" },
	{ RIGHT, "FROM-APP", "{bytes_from_app:b}" }, { RIGHT, "TO-APP", "{bytes_to_app:b}" },
	{ RIGHT | DETAIL, "IDLE", "{idle_ms:t}" }, { RIGHT, "AGE", "{age_ms:t}" },
	{ LEFT, "REASON (LOCAL/PEER)", reason },
	{ 0 },
};

static const struct column groups[] = {
	{ RIGHT, "ID", "{id:n}" }, { RIGHT | DETAIL, "WORKER", "{worker:n}" }, { LEFT, "ROLE", "{role}" },
	{ MORE, "VERSION", VERSION }, { LEFT, "TYPE", "{type}" }, { LEFT, "STATE", "{state}" },
	{ RIGHT, "CONNS", "{connections:n}" }, { RIGHT | DETAIL, "CONNS-MAX", "{connections_limit:n}" },
	{ RIGHT, "LINKS/MAX", "{links:n}/{links_limit:n}" }, { RIGHT | MORE, "RMBS", "{rmbs:n}" },
	{ RIGHT | MORE, "PEER-RMBS", "{peer_rmbs:n}" }, { MORE, "PEER-ID", "{peer_id}" }, { LEFT, "PEER", "{peer}" },
	{ DETAIL, "PROTECTION", "{protection}" }, { DETAIL, "TLS-1.3-SUITE", "{tls_suite}" }, { DETAIL, "PROVEN-NAME", "{peer_name}" },
	{ MORE, "PEER-KIND", PEER_KIND }, { MORE, "PEER-OS", "{peer_os}" }, { MORE, "PEER-HOST", "{peer_host}" },
	{ MORE, "EID", "{eid}" }, { RIGHT, "MEMORY", "{rmb_bytes+sndbuf_bytes:b}" },
	{ RIGHT | DETAIL, "RMB-BYTES", "{rmb_bytes:n}" }, { RIGHT | DETAIL, "SNDBUF-BYTES", "{sndbuf_bytes:n}" },
	{ DETAIL, "CURSORS", "[rfc_cursors?RFC|Linux]" }, { RIGHT, "AGE", "{age_ms:t}" },
	{ RIGHT | MORE, "RETRY-IN", "{add_link_retry_ms:t}" }, { MORE, "WAITS-FOR", "{waits_for}" },
	{ MORE, "LAST-FAILOVER", failover },
	{ 0 },
};

static const struct column links[] = {
	{ RIGHT, "GROUP", "{group:n}" }, { RIGHT, "LINK", "{number:n}" }, { RIGHT | DETAIL, "WORKER", "{worker:n}" },
	{ MORE, "LINK-UID", "{user_id}" }, { MORE, "PEER-UID", "{peer_user_id}" }, { MORE, "VERSION", VERSION },
	PEER_DETAIL, { LEFT, "STATE", "{state}" }, { LEFT, "DEVICE", "{device}" },
	{ LEFT, "TRANSPORT", "{transport}" }, { MORE, "GID", "{gid}" }, { MORE, "PEER-GID", "{peer_gid}" },
	{ DETAIL, "MAC", "{mac}" }, { DETAIL, "PEER-MAC", "{peer_mac}" }, { MORE, "QPN", "{qpn:q}" },
	{ MORE, "PEER-QPN", "{peer_qpn:q}" }, { RIGHT | MORE, "MTU", "{mtu:n}" }, { DETAIL, "PEER-IRD/ORD", DEPTHS },
	{ RIGHT, "CONNS", "{connections:n}" }, { RIGHT, "IDLE", "{idle_ms:t}" }, { RIGHT, "RTT", "{rtt_us:u}" },
	{ RIGHT | DETAIL, "RETRANSMITS", "{retransmits:n}" }, { RIGHT | DETAIL, "UNACKED", "{unacked:n}" },
	{ 0 },
};

static const struct column link_paths[] = {
	{ RIGHT, "GROUP", "{group:n}" }, { RIGHT, "LINK", "{number:n}" }, { LEFT, "ADDRESS", "{address}" },
	{ LEFT, "STATE", "{state}" }, { LEFT, "PRIMARY", "[primary?yes|no]" }, { RIGHT, "RTT", "{rtt_us:u}" },
	{ RIGHT, "RTO", "{rto_us:u}" }, { RIGHT, "MTU", "[mtu?{mtu:n}]" },
	{ RIGHT, "CWND", "[cwnd_bytes?{cwnd_bytes:b}]" },
	{ 0 },
};

static const struct column rmbs[] = {
	{ RIGHT, "GROUP", "{group:n}" }, { RIGHT, "RMB", "{number:n}" }, { RIGHT | DETAIL, "WORKER", "{worker:n}" },
	{ LEFT, "SIDE", "{side}" }, { LEFT, "STATE", "{state}" }, { RIGHT, "ELEMENT", "{element_bytes:b}" },
	{ RIGHT, "ELEMENTS", "{elements:n}" }, { RIGHT, "USED", "{used:n}" },
	{ RIGHT, "QUARANTINED", "{quarantined:n}" },
	{ 0 },
};

/* Up to REFUSED it fits 100 columns, with a name and addresses of usual length. */
static const struct column services[] = {
	{ LEFT, "SERVICE", "{name}" }, { MORE, "KIND", "{kind}" }, { LEFT, "STATE", SHOW_SERVICE_STATE },
	{ LEFT, "LISTEN", "{listen}" }, { LEFT, "TO", "{to}" },
	{ RIGHT, "CONNS/MAX", "{connections:n}/{connections_max:n}" }, { RIGHT | MORE, "ACCEPTED", "{accepted:n}" },
	{ RIGHT, "FALLBACKS", "{fallbacks:n}" },
	{ RIGHT, "REFUSED",
	    "{refused_allow+refused_max+refused_per_peer+refused_connect+refused_fallback+refused_disabled+refused_header+not_captured+no_via+dest_own+"
	    "dest_refused:n}" },
	{ RIGHT | DETAIL, "RESETS", "{resets:n}" },
	{ RIGHT | DETAIL, "REFUSED-ALLOW/MAX/PEER/CONNECT/FALLBACK/DISABLED/HEADER",
	    "{refused_allow:n}/{refused_max:n}/{refused_per_peer:n}/{refused_connect:n}/{refused_fallback:n}/{refused_disabled:n}/{refused_header:n}" },
	{ 0 },
};

static const struct column workers[] = {
	{ RIGHT, "WORKER", "{worker:n}" }, { LEFT, "SMC-R", "{connections.smcr:n}" },
	{ LEFT, "TCP", "{connections.tcp:n}" }, { LEFT, "SET-UP", "{connections.setup:n}" },
	{ RIGHT, "GROUPS", "{groups:n}" }, { RIGHT, "LINKS", "{links:n}" }, { RIGHT, "RMBS", "{rmb_bytes:b}" },
	{ RIGHT, "TURNS", "{turns:n}" },
	{ 0 },
};

static const struct column devices[] = {
	{ LEFT, "NAME", "{name}" }, { RIGHT, "WORKER", "{worker:n}" }, { MORE, "PROVIDER", "{provider}" },
	{ LEFT, "TRANSPORT", "{transport}" }, { MORE, "STACK", "{stack}" }, { DETAIL, "PROFILE", "{profile}" },
	{ LEFT, "PORT", "{port}" }, { LEFT, "CARD", "[card?{card}/{card_port:n}]" },
	{ LEFT, "INTERFACE", "{interface}" }, { MORE, "GID", "{gid}" }, { DETAIL, "ADDRESSES", "{addresses}" },
	{ MORE, "GID-TYPE", "{gid_type}" }, { RIGHT | DETAIL, "GID-INDEX", "{gid_index:n}" },
	{ DETAIL, "LINK-LAYER", "{link_layer}" }, { MORE, "MAC", "{mac}" }, { RIGHT, "MTU", "{mtu:n}" },
	{ RIGHT, "IWARP-PORT", "{mpa_port:n}" }, { RIGHT | MORE, "QPS/MAX", "{qps:n}/{qps_max:n}" },
	{ RIGHT | MORE, "MRS/MAX", "{mrs:n}/{mrs_max:n}" }, { RIGHT | MORE, "REGISTERED", "{registered_bytes:b}" },
	{ RIGHT | DETAIL, "SQ-MAX", "{sq_max:n}" }, { RIGHT | DETAIL, "RQ-MAX", "{rq_max:n}" },
	{ RIGHT | DETAIL, "SGE-MAX", "{sge_max:n}" }, { RIGHT | DETAIL, "INLINE-MAX", "{inline_max:n}" },
	{ 0 },
};

static const struct column device_gids[] = {
	{ LEFT, "DEVICE", "{name}" }, { RIGHT, "INDEX", "{index:n}" }, { LEFT, "TYPE", "{type}" },
	{ LEFT, "GID", "{gid}" }, { LEFT, "INTERFACE", "{interface}" },
	{ 0 },
};

static const struct column card_stats[] = {
	{ LEFT, "DEVICE", "{name}" }, { RIGHT, "SENDS", "{sends_posted:n}" }, { RIGHT, "WRITES", "{writes_posted:n}" },
	{ RIGHT, "DOORBELLS", "{doorbells:n}" }, { RIGHT, "COMPLETIONS", "{completions:n}" },
	{ RIGHT, "POLLS", "{polls:n}" }, { RIGHT, "WAKE-UPS", "{wakeups:n}" },
	{ RIGHT, "RNR-EXCEEDED", "{rnr_retry_exc:n}" }, { RIGHT, "RETRY-EXCEEDED", "{retry_exc:n}" },
	{ RIGHT, "REMOTE-ACCESS", "{remote_access_errs:n}" }, { RIGHT, "FLUSHED", "{flushed:n}" },
	{ RIGHT, "OTHER-ERRORS", "{other_errs:n}" }, { RIGHT, "EVENTS", "{async_events:n}" },
	{ 0 },
};

static const struct column soft_stats[] = {
	{ LEFT, "DEVICE", "{name}" }, { RIGHT, "SEGMENTS-OUT", "{fpdus_sent:n}" },
	{ RIGHT, "SEGMENTS-IN", "{fpdus_received:n}" }, { RIGHT, "READS-SENT", "{reads_sent:n}" },
	{ RIGHT, "REFUSED-TOKEN", "{mpa_refused_token:n}" }, { RIGHT, "REFUSED-EARLY", "{mpa_refused_parked:n}" },
	{ RIGHT, "REFUSED-ADDRESS", "{mpa_refused_address:n}" }, { RIGHT, "BAD-REQUESTS", "{mpa_bad:n}" },
	{ RIGHT, "CRC-ERRORS", "{crc_errors:n}" }, { RIGHT, "TERMINATES-OUT", "{terminates_sent:n}" },
	{ RIGHT, "TERMINATES-IN", "{terminates_received:n}" }, { RIGHT, "RECV-STALLS", "{recv_stalls:n}" },
	{ RIGHT, "ACCEPT-PAUSES", "{accept_pauses:n}" }, { RIGHT, "LINGER-REFUSED", "{linger_refused:n}" },
	{ RIGHT, "STRANGERS-LIMITED", "{strangers_limited:n}" }, { RIGHT, "SCTP-RETRANSMITS", "{sctp_retransmits:n}" },
	{ RIGHT, "NO-MEMORY", "{no_memory:n}" },
	{ 0 },
};
/* clang-format on */

/* Columns that UTF-8 text takes, one for each code point. */
static size_t
text_width(const char *s)
{
	size_t n = 0;

	for (; *s != '\0'; s++)
		if (((unsigned char)*s & 0xc0) != 0x80)
			n++;
	return n;
}

/* The headings, then the cells, row by row, each with a 0 behind it. An empty cell is "-". */
static void
write_cells(FILE *cells, const json_t *list, const struct column *const *shown, size_t cnt)
{
	for (size_t i = 0; i < cnt * (json_array_size(list) + 1); i++) {
		const json_t *item = json_array_get(list, i / cnt - 1);
		const struct column *c = shown[i % cnt];
		const long from = ftell(cells);

		if (i < cnt)
			fputs(c->heading, cells);
		else if (!template_is_missing(item, c->cell)) /* in another version of the daemon */
			template_write(cells, item, c->cell);
		fputs(ftell(cells) == from ? "-" : "", cells);
		fputc('\0', cells);
	}
}

static unsigned screen_width; /* 0: no limit */

void
show_set_width(unsigned columns)
{
	screen_width = columns;
}

/* The columns of a table, and its cells, each with a 0 behind it, row by row. */
struct table {
	const struct column *shown[COLUMNS_MAX];
	size_t cnt, width[COLUMNS_MAX], len;
	bool empty[COLUMNS_MAX], hidden[COLUMNS_MAX];
	char *cells;
};

/* The cell behind this one, or the first one behind NULL; NULL at the end. */
static const char *
next_cell(const struct table *t, const char *cell)
{
	const char *next = cell != NULL ? cell + strlen(cell) + 1 : t->cells;

	return t->cells != NULL && next < t->cells + t->len ? next : NULL;
}

static void
measure_cells(struct table *t)
{
	size_t i = 0;

	for (size_t k = 0; k < t->cnt; k++)
		t->empty[k] = true;
	for (const char *cell = NULL; (cell = next_cell(t, cell)) != NULL; i++) {
		if (text_width(cell) > t->width[i % t->cnt])
			t->width[i % t->cnt] = text_width(cell);
		if (i >= t->cnt && strcmp(cell, "-") != 0)
			t->empty[i % t->cnt] = false;
	}
}

static void
hide_columns(struct table *t, bool items)
{
	size_t wide = 0;

	for (size_t k = 0; k < t->cnt; k++)
		wide += t->width[k] + (k > 0 ? GAP : 0);
	for (int round = 0; round < 2; round++)
		for (size_t k = t->cnt; screen_width != 0 && wide > screen_width && k-- > 1;) {
			if (t->hidden[k] || (round == 0 ? !items || !t->empty[k] : (t->shown[k]->flags & MORE) == 0))
				continue;
			t->hidden[k] = true;
			wide -= t->width[k] + GAP;
		}
}

static void
print_cells(FILE *f, const struct table *t)
{
	size_t i = 0, last = t->cnt;

	while (last > 0 && t->hidden[last - 1])
		last--;
	for (const char *cell = NULL; (cell = next_cell(t, cell)) != NULL; i++) {
		const size_t k = i % t->cnt;
		const int pad = (int)(t->width[k] - text_width(cell));
		const bool right = (t->shown[k]->flags & RIGHT) != 0, ends = k + 1 == last;

		if (t->hidden[k])
			continue;
		fprintf(f, "%*s", right ? pad : 0, "");
		print_clean(f, cell, false);
		fprintf(f, "%*s", right || ends ? 0 : pad, "");
		fputs(ends ? "\n" : "  ", f);
	}
}

void
show_columns(FILE *f, const json_t *list, const struct column *columns, bool detail)
{
	struct table t = { .cnt = 0 };
	FILE *cells = open_memstream(&t.cells, &t.len);

	for (const struct column *c = columns; c->heading != NULL; c++) {
		assert(t.cnt < COLUMNS_MAX);
		if (detail || (c->flags & DETAIL) == 0)
			t.shown[t.cnt++] = c;
	}
	if (cells != NULL)
		write_cells(cells, list, t.shown, t.cnt);
	const bool complete = cells != NULL && fclose(cells) == 0;
	measure_cells(&t);
	if (!detail)
		hide_columns(&t, json_array_size(list) > 0);
	print_cells(f, &t);
	if (!complete)
		fputs("(out of memory: the table is cut short)\n", f);
	free(t.cells);
}

/* Tables of a list: of its items, or of what these have under a key, an object or a list of them. */
static const struct table_of {
	const char *list, *key;       /* NULL: the items */
	const struct column *columns; /* of the part, and of the item that it is of */
	const char *title;
	const char *has; /* what holds of an item that has one; NULL: every item */
} tables[] = {
	{ "connections", NULL, connections, NULL, NULL },
	{ "groups", NULL, groups, NULL, NULL },
	{ "links", NULL, links, NULL, NULL },
	{ "links", "paths", link_paths, "Paths of links", NULL },
	{ "rmbs", NULL, rmbs, NULL, NULL },
	{ "workers", NULL, workers, NULL, NULL },
	{ "services", NULL, services, NULL, NULL },
	{ "devices", NULL, devices, NULL, NULL },
	{ "devices", "gids", device_gids, "GIDs of cards", "card" },
	{ "devices", "stats", card_stats, "Counters of cards", "card" },
	{ "devices", "stats", soft_stats, "Counters of soft iWARP", "!card" },
};

static void
show_parts(FILE *f, const json_t *list, const struct table_of *p)
{
	json_t *lines = json_array();

	for (size_t i = 0; i < json_array_size(list); i++) {
		json_t *item = json_array_get(list, i), *part = json_object_get(item, p->key);
		size_t cnt = json_is_array(part) ? json_array_size(part) : part != NULL;

		for (size_t k = 0; k < cnt && (p->has == NULL || template_holds(item, p->has)); k++) {
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
	const json_t *list = json_object_get(data, key);

	for (const struct table_of *t = tables; t < tables + sizeof(tables) / sizeof(tables[0]); t++)
		if (strcmp(t->list, key) == 0 && t->key == NULL)
			show_columns(f, list, t->columns, detail);
		else if (strcmp(t->list, key) == 0 && detail)
			show_parts(f, list, t);
}
