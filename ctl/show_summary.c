/* Summaries and answers of commands as text. */
#include <string.h>

#include "ctl/human.h"
#include "ctl/show.h"
#include "ctl/table.h"
#include "control/counters.h"

static void
print_conn_counts(FILE *f, const json_t *c)
{
	int64_t smcr = get_int(c, "smcr"), tcp = get_int(c, "tcp"), setup = get_int(c, "setup");

	fprintf(f, "%" PRId64 ": %" PRId64 " on SMC-R, %" PRId64 " on TCP, %" PRId64 " in set-up\n", smcr + tcp + setup,
	    smcr, tcp, setup);
}

static void
refused_cell(const json_t *s, char *buf, size_t cap)
{
	snprintf(buf, cap, "%" PRId64 "/%" PRId64 "/%" PRId64 "/%" PRId64 "/%" PRId64, get_int(s, "refused_allow"),
	    get_int(s, "refused_max"), get_int(s, "refused_per_peer"), get_int(s, "refused_connect"),
	    get_int(s, "refused_fallback"));
}

static void
show_services(FILE *f, const json_t *list, bool detail)
{
	static const struct column columns[] = {
		{ .heading = "SERVICE", .key = "name" },
		{ .heading = "KIND", .key = "kind" },
		{ .heading = "LISTEN", .key = "listen" },
		{ .heading = "TO", .key = "to" },
		{ .heading = "CONNS/MAX", .kind = COLUMN_PAIR, .key = "connections", .key2 = "connections_max" },
		{ .heading = "ACCEPTED", .kind = COLUMN_NUMBER, .key = "accepted" },
		{ .heading = "FALLBACKS", .kind = COLUMN_NUMBER, .key = "fallbacks" },
		{ .heading = "RESETS", .kind = COLUMN_NUMBER, .key = "resets" },
		{ .heading = "REFUSED-ALLOW/MAX/PEER/CONNECT/FALLBACK",
		    .kind = COLUMN_CALL,
		    .call = refused_cell,
		    .right = true },
		{ 0 },
	};

	show_list(f, list, columns, detail);
}

/* In one line what holds, in another what does not; the daemon's words with --detail. An older daemon says nothing. */
static void
show_confinement(FILE *f, const json_t *c, bool detail)
{
	static const struct {
		const char *key, *words;
	} parts[] = {
		{ "no_new_privs", "no new privileges" },
		{ "capabilities", "capabilities" },
		{ "files", "files" },
		{ "system_calls", "system calls" },
	};
	const char *head = "Confined     ", *sep = "Confined     ";

	if (c == NULL)
		return;
	for (unsigned on = 2; on-- > 0; head = sep = "Not confined ") {
		for (unsigned i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
			const json_t *p = json_object_get(c, parts[i].key);

			if (get_bool(p, "on") != (on == 1))
				continue;
			fprintf(f, "%s%s", sep, parts[i].words);
			sep = on == 1 && !detail ? ", " : "\n             ";
			if (on == 0 || detail) {
				fputs(": ", f);
				print_clean(f, get_string(p, "text"));
			}
		}
		if (sep != head)
			fputc('\n', f);
	}
}

void
show_status(FILE *f, const json_t *d, bool detail)
{
	char a[HUMAN_MAX], b[HUMAN_MAX], c[HUMAN_MAX], most[HUMAN_MAX];

	fprintf(f, "smcrd %s, pid %" PRId64 ", up %s%s\n", get_string(d, "version"), get_int(d, "pid"),
	    human_duration(a, get_int(d, "uptime_ms")), get_bool(d, "draining") ? ", DRAINING" : "");
	fputs("Connections  ", f);
	print_conn_counts(f, json_object_get(d, "connections"));
	fprintf(f, "Link groups  %" PRId64 " with %" PRId64 " links\n", get_int(d, "groups"), get_int(d, "links"));
	fprintf(
	    f, "Devices      %" PRId64 ", %" PRId64 " with port up\n", get_int(d, "devices"), get_int(d, "devices_up"));
	fprintf(f, "Memory       %s resident; RMBs %s of at most %s, send buffers %s\n",
	    human_bytes(a, (uint64_t)get_int(d, "rss_bytes")), human_bytes(b, (uint64_t)get_int(d, "rmb_bytes")),
	    human_bytes(most, (uint64_t)get_int(d, "rmb_bytes_max")),
	    human_bytes(c, (uint64_t)get_int(d, "sndbuf_bytes")));
	show_confinement(f, json_object_get(d, "confinement"), detail);
	fputc('\n', f);
	show_services(f, json_object_get(d, "services"), detail);
}

static void
print_stat(FILE *f, const json_t *value, const char *words)
{
	char num[HUMAN_MAX];

	fprintf(f, "%16s  %s\n", human_count(num, (uint64_t)json_integer_value(value)), words);
}

static void
print_reasons(FILE *f, const char *heading, const json_t *list)
{
	char num[HUMAN_MAX];

	if (json_array_size(list) == 0)
		return;
	fprintf(f, "%s\n", heading);
	for (size_t i = 0; i < json_array_size(list); i++) {
		const json_t *r = json_array_get(list, i);

		fprintf(f, "%16s  %s %s\n", human_count(num, (uint64_t)get_int(r, "count")), get_string(r, "code"),
		    get_string(r, "text"));
	}
}

#define HEADING(text) { NULL, text },
#define COUNTER(source, field, words) { CONTROL_COUNTER_KEY(source, field), words },

/* Counters in words; headings have no key. */
static const struct {
	const char *key, *words;
} stats[] = { CONTROL_COUNTERS(HEADING, COUNTER) };

#define STATS_CNT (sizeof(stats) / sizeof(stats[0]))

static bool
has_words(const char *key)
{
	for (size_t i = 0; i < STATS_CNT; i++)
		if (stats[i].key != NULL && strcmp(stats[i].key, key) == 0)
			return true;
	return false;
}

void
show_stats(FILE *f, const json_t *d, bool detail)
{
	json_t *counters = json_object_get(d, "counters"), *v;
	const char *heading = NULL, *key;

	(void)detail;
	for (size_t i = 0; i < STATS_CNT; i++) {
		if (stats[i].key == NULL) {
			heading = stats[i].words;
			continue;
		}
		v = json_object_get(counters, stats[i].key);
		if (v == NULL) /* an older daemon */
			continue;
		if (heading != NULL)
			fprintf(f, "%s\n", heading);
		heading = NULL;
		print_stat(f, v, stats[i].words);
	}
	/* Counters of a newer daemon, by their bare names. */
	heading = "Other";
	json_object_foreach(counters, key, v)
	{
		if (has_words(key))
			continue;
		if (heading != NULL)
			fprintf(f, "%s\n", heading);
		heading = NULL;
		print_stat(f, v, key);
	}
	print_reasons(f, "Most frequent reasons against SMC-R, ours", json_object_get(d, "fallback_reasons_local"));
	print_reasons(
	    f, "Most frequent reasons against SMC-R, the peers'", json_object_get(d, "fallback_reasons_peer"));
}

void
show_drain(FILE *f, const json_t *d, bool detail)
{
	(void)detail;
	fputs("draining; connections left ", f);
	print_conn_counts(f, json_object_get(d, "connections"));
}

void
show_reload(FILE *f, const json_t *d, bool detail)
{
	(void)detail;
	fputs("the configuration was reloaded\n", f);
	print_clean(f, get_string(d, "messages"));
}

/* The daemon's sentence says it all: yes or no, the peer, whose reason, its code. */
void
show_check(FILE *f, const json_t *d, bool detail)
{
	(void)detail;
	print_clean(f, get_string(d, "text"));
	fputc('\n', f);
}

void
show_rebalance(FILE *f, const json_t *d, bool detail)
{
	(void)detail;
	fprintf(f, "connections to be moved: %" PRId64 "\n", get_int(d, "moving"));
}

void
show_link_delete(FILE *f, const json_t *d, bool detail)
{
	(void)detail;
	fprintf(f, "link %" PRId64 " of link group %" PRId64 " is being taken out\n", get_int(d, "link"),
	    get_int(d, "group"));
}
