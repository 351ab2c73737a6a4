/* Answers as text but for the lists (show_lists.c): summaries, results of commands, trace lines; see show.h. */
#include "ctl/show.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "ctl/text.h"
#include "control/counters.h"

const char *
get_string(const json_t *o, const char *key)
{
	const char *s = json_string_value(json_object_get(o, key));

	return s != NULL ? s : "";
}

int64_t
get_int(const json_t *o, const char *key)
{
	return json_integer_value(json_object_get(o, key));
}

bool
get_bool(const json_t *o, const char *key)
{
	return json_is_true(json_object_get(o, key));
}

static void
print_conn_counts(FILE *f, const json_t *c)
{
	int64_t smcr = get_int(c, "smcr"), tcp = get_int(c, "tcp"), setup = get_int(c, "setup");

	fprintf(f, "%" PRId64 ": %" PRId64 " on SMC-R, %" PRId64 " on TCP, %" PRId64 " in set-up\n", smcr + tcp + setup,
	    smcr, tcp, setup);
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

/* Where services want it; an older daemon says nothing. */
static void
show_option(FILE *f, const json_t *o)
{
	if (get_int(o, "services") == 0)
		return;
	fprintf(f, "TCP option   %s", get_bool(o, "usable") ? "SMC-R's is in use" : "SMC-R's cannot be used: ");
	print_clean(f, get_string(o, "text"));
	fputc('\n', f);
}

/* Services that have no address to connect to. */
static void
show_waiting(FILE *f, const json_t *services)
{
	for (size_t i = 0; i < json_array_size(services); i++) {
		const json_t *s = json_array_get(services, i);

		if (get_string(s, "waiting")[0] == '\0')
			continue;
		print_clean(f, get_string(s, "name"));
		fputs(" is ", f);
		print_clean(f, get_string(s, "waiting"));
		fputc('\n', f);
	}
}

static void
show_memory(FILE *f, const json_t *d)
{
	const json_t *send_max = json_object_get(d, "sndbuf_bytes_max"); /* an older daemon has none */
	char now[HUMAN_MAX], most[HUMAN_MAX];

	fprintf(f, "Memory       %s resident; ", human_bytes(now, (uint64_t)get_int(d, "rss_bytes")));
	fprintf(f, "RMBs %s of at most %s, ", human_bytes(now, (uint64_t)get_int(d, "rmb_bytes")),
	    human_bytes(most, (uint64_t)get_int(d, "rmb_bytes_max")));
	fprintf(f, "send buffers %s", human_bytes(now, (uint64_t)get_int(d, "sndbuf_bytes")));
	if (json_is_integer(send_max))
		fprintf(f, " of at most %s", human_bytes(most, (uint64_t)json_integer_value(send_max)));
	fputc('\n', f);
}

static void
show_status(FILE *f, const json_t *d, bool detail)
{
	char a[HUMAN_MAX];

	fprintf(f, "smcrd %s, pid %" PRId64 ", up %s%s\n", get_string(d, "version"), get_int(d, "pid"),
	    human_duration(a, get_int(d, "uptime_ms")), get_bool(d, "draining") ? ", DRAINING" : "");
	if (get_int(d, "successor") != 0)
		fprintf(f, "Successor    pid %" PRId64 " has the listening sockets\n", get_int(d, "successor"));
	fputs("Connections  ", f);
	print_conn_counts(f, json_object_get(d, "connections"));
	fprintf(f, "Link groups  %" PRId64 " with %" PRId64 " link%s\n", get_int(d, "groups"), get_int(d, "links"),
	    plural(get_int(d, "links")));
	fprintf(
	    f, "Devices      %" PRId64 ", %" PRId64 " with port up\n", get_int(d, "devices"), get_int(d, "devices_up"));
	show_memory(f, d);
	show_confinement(f, json_object_get(d, "confinement"), detail);
	show_option(f, json_object_get(d, "tcp_option"));
	fputc('\n', f);
	if (detail || json_array_size(json_object_get(d, "workers")) > 1) {
		show_list(f, d, "workers", detail);
		fputc('\n', f);
	}
	show_list(f, d, "services", detail);
	show_waiting(f, json_object_get(d, "services"));
}

/* A line for each; an older daemon says nothing of how it does. */
static void
show_address(FILE *f, const json_t *a)
{
	fputs("\n             ", f);
	print_clean(f, get_string(a, "address"));
	if (json_object_get(a, "state") == NULL)
		return;
	fprintf(f, " %s, connections %" PRId64 ", failures %" PRId64 ", passed over %" PRId64, get_string(a, "state"),
	    get_int(a, "connections"), get_int(a, "failures"), get_int(a, "passed_over"));
	if (get_string(a, "text")[0] == '\0')
		return;
	fputs(": ", f);
	print_clean(f, get_string(a, "text"));
}

/* One that is not found. */
static void
show_name(FILE *f, const json_t *t)
{
	if (get_string(t, "name_error")[0] == '\0')
		return;
	fputs("\nName         ", f);
	print_clean(f, get_string(t, "target"));
	fputs(" is not found: ", f);
	print_clean(f, get_string(t, "name_error"));
}

static void
show_service(FILE *f, const json_t *d)
{
	const json_t *modes = json_object_get(d, "modes"), *outage = json_object_get(d, "outage");
	const json_t *targets = json_object_get(d, "targets"), *addrs = json_object_get(d, "addresses");
	const json_t *settings = json_object_get(d, "settings");
	char age[HUMAN_MAX];

	fprintf(f, "%s ", get_string(d, "kind"));
	print_clean(f, get_string(d, "name"));
	fputs(get_bool(d, "disabled") ? ", DISABLED" : get_bool(d, "closed") ? ", CLOSED: no target works" : "", f);
	fputs("\nConnections  ", f);
	print_conn_counts(f, modes);
	fprintf(f, "Accepted     %" PRId64 ", gone to TCP %" PRId64 ", ended by a reset %" PRId64 "\n",
	    get_int(d, "accepted"), get_int(d, "fallbacks"), get_int(d, "resets"));
	fprintf(f,
	    "Refused      not allowed %" PRId64 ", too many %" PRId64 ", too many of one %" PRId64
	    ", far end not reached %" PRId64 ", no SMC-R %" PRId64 ", disabled %" PRId64 "\n",
	    get_int(d, "refused_allow"), get_int(d, "refused_max"), get_int(d, "refused_per_peer"),
	    get_int(d, "refused_connect"), get_int(d, "refused_fallback"), get_int(d, "refused_disabled"));
	fputs("Far end      ", f);
	print_clean(f, get_string(d, "to"));
	for (size_t i = 0; i < json_array_size(addrs); i++)
		show_address(f, json_array_get(addrs, i));
	for (size_t i = 0; i < json_array_size(targets); i++)
		show_name(f, json_array_get(targets, i));
	if (get_string(outage, "text")[0] != '\0') {
		fprintf(f, "\nOutage       for %s, %" PRId64 " connection%s failed: ",
		    human_duration(age, get_int(outage, "age_ms")), get_int(outage, "failed"),
		    plural(get_int(outage, "failed")));
		print_clean(f, get_string(outage, "text"));
	}
	fputs("\n\nSettings\n", f);
	for (size_t i = 0; i < json_array_size(settings); i++) {
		const json_t *s = json_array_get(settings, i);

		/* "allow = nothing" would be taken for the opposite of what it is. */
		bool is_set = get_string(s, "value")[0] != '\0';
		fprintf(f, "  %s%s", get_string(s, "name"), is_set ? " = " : " is not set");
		print_clean(f, get_string(s, "value"));
		fputc('\n', f);
	}
}

/* What print_stat needs to know: the heading if it was not printed yet, and of differences in which time they came about. */
struct stats_list {
	FILE *f;
	const char *heading;
	int64_t interval_ms; /* 0: since the start */
};

/* Of differences only what there is, with the rate. */
static void
print_stat(struct stats_list *l, const json_t *value, const char *words)
{
	char num[HUMAN_MAX];

	if (l->interval_ms > 0 && json_integer_value(value) == 0)
		return;
	if (l->heading != NULL)
		fprintf(l->f, "%s\n", l->heading);
	l->heading = NULL;
	fprintf(l->f, "%16s  ", human_count(num, (uint64_t)json_integer_value(value)));
	if (l->interval_ms > 0)
		fprintf(l->f, "%14.1f/s  ", (double)json_integer_value(value) * 1000 / (double)l->interval_ms);
	fprintf(l->f, "%s\n", words);
}

static void
print_reasons(struct stats_list *l, const char *heading, const json_t *list)
{
	char words[256];

	l->heading = heading;
	for (size_t i = 0; i < json_array_size(list); i++) {
		const json_t *r = json_array_get(list, i);

		snprintf(words, sizeof(words), "%s %s", get_string(r, "code"), get_string(r, "text"));
		print_stat(l, json_object_get(r, "count"), words);
	}
}

#define HEADING(text) { NULL, text },
#define COUNTER(source, field, words) { CONTROL_COUNTER_KEY(source, field), words },

static void
show_stats(FILE *f, const json_t *d)
{
	/* Counters in words; headings have no key. */
	static const struct {
		const char *key, *words;
	} stats[] = { CONTROL_COUNTERS(HEADING, COUNTER) };
	json_t *rest = json_copy(json_object_get(d, "counters")), *v;
	struct stats_list l = { .f = f, .interval_ms = get_int(d, "interval_ms") };
	const char *key;

	for (size_t i = 0; i < sizeof(stats) / sizeof(stats[0]); i++) {
		if (stats[i].key == NULL) {
			l.heading = stats[i].words;
			continue;
		}
		v = json_object_get(rest, stats[i].key);
		if (v == NULL) /* an older daemon */
			continue;
		print_stat(&l, v, stats[i].words);
		(void)json_object_del(rest, stats[i].key);
	}
	/* Counters of a newer daemon, by their bare names. */
	l.heading = "Other";
	json_object_foreach(rest, key, v)
	{
		print_stat(&l, v, key);
	}
	json_decref(rest);
	print_reasons(&l, "Most frequent reasons against SMC-R, ours", json_object_get(d, "fallback_reasons_local"));
	print_reasons(
	    &l, "Most frequent reasons against SMC-R, the peers'", json_object_get(d, "fallback_reasons_peer"));
}

static void
show_disabled(FILE *f, const json_t *d)
{
	fputs("service ", f);
	print_clean(f, get_string(d, "service"));
	fputs(get_bool(d, "disabled") ? " is disabled: new connections are refused, those that it has go on\n"
	                              : " is enabled\n",
	    f);
}

/* What waited; when nothing has, smcrctl says so. */
static void
show_retry(FILE *f, const json_t *d)
{
	static const struct {
		const char *key, *what;
	} kinds[] = {
		{ "peers", "peers held off no longer" },
		{ "links", "link groups that ask for a link now" },
		{ "prewarms", "link groups that are made ahead now" },
		{ "targets", "failed targets that are tried now" },
		{ "devices", "missing devices that are looked for now" },
		{ "names", "names that are looked up now" },
	};

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (get_int(d, kinds[i].key) != 0)
			fprintf(f, "%s: %" PRId64 "\n", kinds[i].what, get_int(d, kinds[i].key));
}

static void
show_level(FILE *f, const json_t *d)
{
	fprintf(f, "%s%s%s\n", get_string(d, "level"), get_bool(d, "set") ? ", until smcrd ends; configured: " : "",
	    get_bool(d, "set") ? get_string(d, "configured") : "");
}

/* Bytes of powers of 1024, with a unit that says so. */
static char *
bytes_unit(char buf[HUMAN_MAX], uint64_t bytes)
{
	strcat(human_bytes(buf, bytes), bytes >= 1024 ? "iB" : "B");
	return buf;
}

/* What took no microsecond has no rate. */
static void
show_bulk(FILE *f, const json_t *d)
{
	const json_t *bulk = json_object_get(d, "bulk");
	char rate[HUMAN_MAX], bytes[HUMAN_MAX], time[HUMAN_MAX];

	for (size_t i = 0; i < json_array_size(bulk); i++) {
		const json_t *b = json_array_get(bulk, i);
		int64_t n = get_int(b, "bytes"), us = get_int(b, "took_us");
		bool tcp = strcmp(get_string(b, "path"), "tcp") == 0,
		     back = strcmp(get_string(b, "direction"), "back") == 0;

		fprintf(f, "  %-18s %8s%s  %s in %s\n",
		    tcp        ? back ? "TCP, from peer" : "TCP, to peer"
		        : back ? "SMC-R, from peer"
		               : "SMC-R, to peer",
		    us > 0 ? bytes_unit(rate, (uint64_t)((double)n * 1e6 / (double)us)) : "-", us > 0 ? "/s" : "  ",
		    bytes_unit(bytes, (uint64_t)n), us > 0 ? human_us(time, us) : "less than 1us");
	}
	if (get_string(d, "bulk_text")[0] != '\0') {
		fputs("Not measured: ", f);
		print_clean(f, get_string(d, "bulk_text"));
		fputc('\n', f);
	}
}

/* The daemon's sentence says it all: yes or no, the peer, whose reason, its code; then how far it got, and in what time. */
static void
show_check(FILE *f, const json_t *d)
{
	static const struct {
		const char *step, *words;
	} names[] = {
		{ "tcp", "TCP connect" },
		{ "clc", "CLC" },
		{ "connect", "queue pair connect" },
		{ "link", "link confirmed" },
		{ "round-trip", "round trip" },
	};
	const json_t *steps = json_object_get(d, "steps");
	char time[HUMAN_MAX];

	print_clean(f, get_string(d, "text"));
	fputc('\n', f);
	for (size_t i = 0; i < json_array_size(steps); i++) {
		const json_t *s = json_array_get(steps, i);
		const char *words = get_string(s, "step"), *result = get_string(s, "result");
		bool took = strcmp(result, "ok") == 0 || strcmp(result, "failed") == 0;

		for (size_t n = 0; n < sizeof(names) / sizeof(names[0]); n++)
			if (strcmp(names[n].step, words) == 0)
				words = names[n].words;
		fprintf(f, "  %-18s %8s  %s", words, took ? human_us(time, get_int(s, "took_us")) : "-", result);
		if (!took && get_string(s, "text")[0] != '\0') {
			fputs(": ", f);
			print_clean(f, get_string(s, "text"));
		}
		fputc('\n', f);
	}
	show_bulk(f, d);
	if (get_int(d, "held_off_ms") > 0)
		fprintf(f, "It was held off after failures, for another %s%s.\n",
		    human_duration(time, get_int(d, "held_off_ms")),
		    get_bool(d, "possible") ? ": it is not any more" : "");
}

/* One line for each finding: how bad, about what, what it is, and what to do. A finding may end as a sentence, or a question. */
static void
show_doctor(FILE *f, const json_t *d)
{
	const json_t *findings = json_object_get(d, "findings");

	for (size_t i = 0; i < json_array_size(findings); i++) {
		const json_t *one = json_array_get(findings, i);
		const char *what = get_string(one, "what"), *advice = get_string(one, "advice");
		bool ended = what[0] != '\0' && strchr(".?!", what[strlen(what) - 1]) != NULL;

		fprintf(f, "%-8s %-9s ", get_string(one, "level"), get_string(one, "area"));
		print_clean(f, what);
		fputs(advice[0] == '\0' ? "" : ended ? " To do: " : ". To do: ", f);
		print_clean(f, advice);
		fputc('\n', f);
	}
}

void
show_answer(FILE *f, enum control_command command, const json_t *d, bool detail)
{
	switch (command) {
	case CONTROL_CONNECTIONS:
	case CONTROL_GROUPS:
	case CONTROL_LINKS:
	case CONTROL_RMBS:
	case CONTROL_DEVICES:
		show_list(f, d, control_commands[command].name, detail);
		break;
	case CONTROL_STATUS:
		show_status(f, d, detail);
		break;
	case CONTROL_SERVICE:
		show_service(f, d);
		break;
	case CONTROL_STATS:
		show_stats(f, d);
		break;
	case CONTROL_CHECK:
		show_check(f, d);
		break;
	case CONTROL_CLOSE:
		fprintf(f, "connections closed: %" PRId64 "\n", get_int(d, "closed"));
		break;
	case CONTROL_DISABLE:
	case CONTROL_ENABLE:
		show_disabled(f, d);
		break;
	case CONTROL_LINK_ADD:
		fprintf(f, "another link is asked for in link group %" PRId64 "\n", get_int(d, "group"));
		break;
	case CONTROL_RETRY:
		show_retry(f, d);
		break;
	case CONTROL_LOG_LEVEL:
		show_level(f, d);
		break;
	case CONTROL_DOCTOR:
		show_doctor(f, d);
		break;
	case CONTROL_REBALANCE:
		fprintf(f, "connections to be moved: %" PRId64 "\n", get_int(d, "moving"));
		break;
	case CONTROL_LINK_DELETE:
		fprintf(f, "link %" PRId64 " of link group %" PRId64 " is being taken out\n", get_int(d, "link"),
		    get_int(d, "group"));
		break;
	case CONTROL_RELOAD:
		fputs("the configuration was reloaded\n", f);
		print_clean(f, get_string(d, "messages"));
		break;
	case CONTROL_DRAIN:
		fputs("draining; connections left ", f);
		print_conn_counts(f, json_object_get(d, "connections"));
		break;
	case CONTROL_UNDRAIN:
		fputs("drains no longer; connections ", f);
		print_conn_counts(f, json_object_get(d, "connections"));
		break;
	case CONTROL_TOP: /* top.c */
	case CONTROL_EVENTS:
	case CONTROL_TRACE: /* the lines that follow are shown */
	case CONTROL_COMMAND_CNT:
		break;
	}
}

void
show_trace(FILE *f, const json_t *ev)
{
	int64_t us = get_int(ev, "time_us"), dropped = get_int(ev, "dropped");
	time_t sec = (time_t)(us / 1000000);
	const char *token = get_string(ev, "token");
	char clock[16] = "";
	struct tm tm;

	if (localtime_r(&sec, &tm) != NULL)
		strftime(clock, sizeof(clock), "%H:%M:%S", &tm);
	if (dropped > 0)
		fprintf(f, "%s.%06d -- %" PRId64 " messages left out, the reader is too slow\n", clock,
		    (int)(us % 1000000), dropped);
	if (strcmp(get_string(ev, "event"), "message") != 0)
		return;
	fprintf(
	    f, "%s.%06d %c", clock, (int)(us % 1000000), strcmp(get_string(ev, "direction"), "sent") == 0 ? '>' : '<');
	if (get_int(ev, "group") != 0)
		fprintf(f, " %" PRId64 "/%" PRId64, get_int(ev, "group"), get_int(ev, "link"));
	if (strtoul(token, NULL, 0) != 0)
		fprintf(f, " %s", token);
	fputc(' ', f);
	print_clean(f, get_string(ev, "text"));
	fputc('\n', f);
}

void
show_event(FILE *f, const json_t *ev)
{
	int64_t us = get_int(ev, "time_us"), dropped = get_int(ev, "dropped");
	time_t sec = (time_t)(us / 1000000);
	char clock[32] = "";
	struct tm tm;

	if (localtime_r(&sec, &tm) != NULL)
		strftime(clock, sizeof(clock), "%Y-%m-%d %H:%M:%S", &tm);
	if (dropped > 0)
		fprintf(f, "%s.%03d -- %" PRId64 " events left out, the reader is too slow\n", clock,
		    (int)(us % 1000000 / 1000), dropped);
	if (strcmp(get_string(ev, "event"), "change") != 0)
		return;
	fprintf(f, "%s.%03d ", clock, (int)(us % 1000000 / 1000));
	print_clean(f, get_string(ev, "level"));
	fputs(": ", f);
	print_clean(f, get_string(ev, "text"));
	if (get_int(ev, "left_out") > 0)
		fprintf(f, " (and %" PRId64 " like it before, too many)", get_int(ev, "left_out"));
	fputc('\n', f);
}
