/* Answers as text but for the lists (show_lists.c): summaries, results of commands, trace lines; see show.h. */
#include "ctl/show.h"

#include <inttypes.h>
#include <string.h>

#include "ctl/history.h"
#include "ctl/template.h"
#include "ctl/text.h"
#include "control/counters.h"

const char *
get_string(const json_t *o, const char *key)
{
	const char *s = json_string_value(json_object_get(o, key));

	return s != NULL ? s : "";
}

const char *
get_setting(const json_t *service, const char *name)
{
	const json_t *list = json_object_get(service, "settings");
	size_t i = 0;

	while (i < json_array_size(list) && strcmp(get_string(json_array_get(list, i), "name"), name) != 0)
		i++;
	return get_string(json_array_get(list, i), "value");
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

#define CONN_COUNTS(o)                                                                             \
	"{" o ".smcr+" o ".tcp+" o ".setup:n}: {" o ".smcr:n} on SMC-R, {" o ".tcp:n} on TCP, {" o \
	".setup:n} in set-up\n"

/* In one line what holds, in another what does not; the daemon's words with --detail. An older daemon says nothing. */
static void
show_confinement(FILE *f, const json_t *c, bool detail)
{
	static const char *const parts[][2] = { { "no_new_privs", "no new privileges" },
		{ "capabilities", "capabilities" }, { "files", "files" }, { "system_calls", "system calls" } };
	const char *head = "Confined     ", *sep = "Confined     ";

	if (c == NULL)
		return;
	for (unsigned on = 2; on-- > 0; head = sep = "Not confined ") {
		for (unsigned i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
			const json_t *p = json_object_get(c, parts[i][0]);

			if (get_bool(p, "on") != (on == 1))
				continue;
			fprintf(f, "%s%s", sep, parts[i][1]);
			sep = on == 1 && !detail ? ", " : "\n             ";
			if (on == 0 || detail) {
				fputs(": ", f);
				print_clean(f, get_string(p, "text"), true);
			}
		}
		if (sep != head)
			fputc('\n', f);
	}
}

static void
show_status(FILE *f, const json_t *d, bool detail)
{
	/* What is in brackets an older daemon does not say, or it is not so. */
	template_print(f, d,
	    "smcrd {version}, pid {pid:n}, up {uptime_ms:t}[draining?, DRAINING]\n"
	    "[successor?Successor    pid {successor:n} has the listening sockets\n]"
	    "[ends?Ends         with the last connection[limit_in_ms?, at the latest in {limit_in_ms:t}|, however long it lasts]\n]"
	    "[reload_error?Reload       {reload_error}\n]"
	    "[tls_error?TLS          changed files refused: {tls_error}\n]"
	    "[tls_expiry?TLS          {tls_expiry}\n]"
	    "[waiting_settings?Waiting      {waiting_settings:n} setting{waiting_settings:s} of the file for a take-over: systemctl reload smcrd\n]"
	    "[predecessors*Predecessor  pid {pid:n} serves its connections until they end: smcrctl --pid {pid:n} status\n]"
	    "Connections  " CONN_COUNTS("connections")
	    "[secured?Proven       {secured:n} connection{secured:s} with a peer proven by TLS\n]"
	    "Link groups  {groups:n} with {links:n} link{links:s}\n"
	    "Devices      {devices:n}, {devices_up:n} with port up\n"
	    "Memory       {rss_bytes:b} resident; RMBs {rmb_bytes:b} of at most {rmb_bytes_max:b}, send buffers "
	    "{sndbuf_bytes:b}[!sndbuf_bytes_max=? of at most {sndbuf_bytes_max:b}]\n");
	show_confinement(f, json_object_get(d, "confinement"), detail);
	template_print(f, d,
	    "[tcp_option.services?TCP option   SMC-R's [tcp_option.usable?is in use|cannot be used: ]{tcp_option.text}\n]\n");
	if (detail || json_array_size(json_object_get(d, "workers")) > 1) {
		show_list(f, d, "workers", detail);
		fputc('\n', f);
	}
	show_list(f, d, "services", detail);
	template_print(f, d,
	    "[services*[waiting?{name} is {waiting}\n]"
	    "[health=down?{name} is down for {health_ms:t}: {health_text}\n|health=held-off?{name} is held off\n]]");
}

static const char service_text[] =
    "{kind} {name}[disabled?, DISABLED|closed?, CLOSED: no target works]\n"
    "Connections  " CONN_COUNTS("modes")
    "Accepted     {accepted:n}, gone to TCP {fallbacks:n}, ended by a reset {resets:n}\n"
    "Refused      not allowed {refused_allow:n}, too many {refused_max:n}, too many of one {refused_per_peer:n}, far end not "
    "reached {refused_connect:n}, no SMC-R {refused_fallback:n}, disabled {refused_disabled:n}"
    "[refused_header?, no PROXY header {refused_header:n}]\n"
    "[to=original?Destinations taken {dest_taken:n}, refused by peers {dest_refused:n}, not taken by them {dest_unused:n}, without "
    "a way {no_via:n}, not captured {not_captured:n}, the daemon's own {dest_own:n}\n]"
    "Far end      {to}"
    "[addresses*\n             {address}[state? {state}, connections {connections:n}, failures {failures:n}, passed over "
    "{passed_over:n}[text?: {text}]]]"
    "[probed*\nProbe        {address} [state=held-off?held off|{state}] for {since_ms:t}[probed_ms?, last probe {probed_ms:t} ago][text?: {text}]]"
    "[targets*[name_error?\nName         {target} is not found: {name_error}]]"
    "[outage*[text?\nOutage       for {age_ms:t}, {failed:n} connection{failed:s} failed: {text}]]"
    "\n\nSettings\n"
    /* "allow = nothing" would be taken for the opposite of what it is. */
    "[settings*  {name}[value? = {value}| is not set]\n]";

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

/* The daemon's sentence says it all: yes or no, the peer, whose reason, its code; then how far it got, and in what time. */
static const char check_text[] =
    "{text}\n"
    "[steps*  [step=tcp?TCP connect       |step=clc?CLC               |step=connect?queue pair connect"
    "|step=link?link confirmed    |step=round-trip?round trip        |step=server?server            |{step:-18}] "
    "[result=ok,result=failed?{took_us:u8}  {result}|       -  {result}[text?: {text}]]\n]"
    "[bulk*  [path=tcp?TCP,|SMC-R,] [direction=back?from peer|to peer  ][path=tcp?  ]   "
    "[took_us?{rate:B8}/s|       -  ]  {bytes:B} in [took_us?{took_us:u}|less than 1us]\n]"
    "[bulk_text?Not measured: {bulk_text}\n]"
    "[held_off_ms?It was held off after failures for another {held_off_ms:t}[possible?: it has ended].\n]";

/* What took no microsecond has no rate. */
static void
show_check(FILE *f, const json_t *d)
{
	json_t *copy = json_deep_copy(d), *b;
	size_t i;

	json_array_foreach(json_object_get(copy, "bulk"), i, b)
	{
		double us = (double)get_int(b, "took_us");

		if (us > 0)
			json_object_set_new(
			    b, "rate", json_integer((json_int_t)((double)get_int(b, "bytes") * 1e6 / us)));
	}
	template_print(f, copy, check_text);
	json_decref(copy);
}

/* One line for each finding: how bad, about what, what it is, and what to do. A finding may end as a sentence, or a question. */
static void
show_doctor(FILE *f, const json_t *d)
{
	const json_t *findings = json_object_get(d, "findings");

	if (json_array_size(findings) == 0) /* of --problems */
		fputs("no warning and no problem\n", f);
	for (size_t i = 0; i < json_array_size(findings); i++) {
		const json_t *one = json_array_get(findings, i);
		const char *what = get_string(one, "what");
		bool ended = what[0] != '\0' && strchr(".?!", what[strlen(what) - 1]) != NULL;

		template_print(f, one,
		    ended ? "{level:-8} {area:-9} {what}[advice? To do: {advice}]\n"
		          : "{level:-8} {area:-9} {what}[advice?. To do: {advice}]\n");
	}
}

#define DISABLED \
	"service {service} is [disabled?disabled: new connections are refused, those that it has go on|enabled]\n"

/* What is no more than its template. */
static const char *const texts[CONTROL_COMMAND_CNT] = {
	[CONTROL_SERVICE] = service_text,
	/* Of these, one line that follows the answer. */
	[CONTROL_TRACE] =
	    "[dropped?{time_us:T} -- {dropped:n} messages left out, the reader is too slow\n]"
	    "[event=message?{time_us:T} [direction=sent?>|<][group? {group:n}/{link:n}]"
	    "[token?[!token=0x00000000? {token}]] {text}\n]",
	[CONTROL_EVENTS] =
	    "[dropped?{time_us:D} -- {dropped:n} events left out, the reader is too slow\n]"
	    "[event=change?{time_us:D} {level}: {text}[left_out? (and {left_out:n} like it before, too many)]\n]",
	[CONTROL_CLOSE] = "connections closed: {closed:n}\n",
	[CONTROL_DISABLE] = DISABLED,
	[CONTROL_ENABLE] = DISABLED,
	[CONTROL_REBALANCE] = "connections to be moved: {moving:n}\n",
	[CONTROL_LINK_ADD] = "another link is asked for in link group {group:n}\n",
	[CONTROL_LINK_DELETE] = "link {link:n} of link group {group:n} is being taken out\n",
	/* What waited; when nothing has, smcrctl says so. */
	[CONTROL_RETRY] =
	    "[peers?peers held off no longer: {peers:n}\n]"
	    "[links?link groups that ask for a link now: {links:n}\n]"
	    "[prewarms?link groups that are made ahead now: {prewarms:n}\n]"
	    "[targets?failed targets that are tried now: {targets:n}\n]"
	    "[devices?missing devices that are looked for now: {devices:n}\n]"
	    "[names?names that are looked up now: {names:n}\n]",
	[CONTROL_LOG_LEVEL] = "{level}[set?, until smcrd ends; configured: {configured}]\n",
	[CONTROL_RELOAD] = "the configuration was reloaded\n{messages}",
	[CONTROL_DRAIN] = "draining; connections left " CONN_COUNTS("connections"),
	[CONTROL_UNDRAIN] = "drains no longer; connections " CONN_COUNTS("connections"),
};

void
show_answer(FILE *f, enum control_command command, const json_t *d, bool detail)
{
	if (command == CONTROL_STATUS)
		show_status(f, d, detail);
	else if (command == CONTROL_STATS)
		show_stats(f, d);
	else if (command == CONTROL_HISTORY)
		history_show(f, d);
	else if (command == CONTROL_CHECK)
		show_check(f, d);
	else if (command == CONTROL_DOCTOR)
		show_doctor(f, d);
	else if (texts[command] != NULL)
		template_print(f, d, texts[command]);
	else
		show_list(f, d, control_commands[command].name, detail);
}

void
show_made(bool json, enum control_command command, const json_t *answer, bool detail)
{
	if (!json) {
		show_answer(stdout, command, json_object_get(answer, "data"), detail);
		return;
	}
	json_dumpf(answer, stdout, JSON_COMPACT);
	putchar('\n');
}
