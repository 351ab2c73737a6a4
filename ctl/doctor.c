/* Asks the daemon what doctor_rules.c wants to know; see doctor.h. */
#include "ctl/doctor.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <time.h>

#include "ctl/ask.h"
#include "ctl/options.h"
#include "ctl/show.h"
#include "ctl/template.h"
#include "ctl/text.h"

#define CHECKS_AT_ONCE 4 /* of the 8 that the daemon runs: others may want some */
#define CHECKS_MAX 256
#define SCHEMA 1
#define LOOKS_APART_MS 1000

/* The "data" of the answer, owned by the caller, or NULL; quiet: without the daemon's error. *read_only when the error
 * is that this socket refuses the command, which a finding says. */
static json_t *
take_answer(struct ask *a, bool quiet, bool *read_only)
{
	const char *line = ask_line(a);
	json_t *root = line != NULL ? json_loads(line, JSON_REJECT_DUPLICATES, NULL) : NULL;
	json_t *data = json_object_get(root, "data");
	const json_t *error = json_object_get(root, "error");
	const char *text = get_string(error, "text");

	if (!json_is_object(data)) {
		data = NULL;
		if (read_only != NULL && strcmp(get_string(error, "code"), "read-only") == 0)
			*read_only = true;
		else if (!quiet && line != NULL)
			fprintf(stderr, "smcrctl: smcrd says: %s\n",
			    text[0] != '\0' ? text : "nothing that can be understood");
	}
	json_incref(data);
	json_decref(root);
	return data;
}

static json_t *
ask_for(const struct options *o, enum control_command command, const char *service)
{
	const struct options one = { .socket = o->socket, .command = command, .service = service };
	json_t *data;
	struct ask a;

	if (ask_begin(&a, &one, NULL) != 0)
		return NULL;
	data = take_answer(&a, service != NULL, NULL); /* a reload may have removed it */
	ask_close(&a);
	return data;
}

/* -- checks: some at once, in their order -- */

struct running {
	struct ask ask;
	json_t *services; /* of seen */
};

struct checks {
	const struct options *o;
	struct running running[CHECKS_AT_ONCE];
	unsigned first, cnt, begun;
	json_t *seen;    /* addresses, each with the names of its services */
	json_t *results; /* array */
	int64_t left_out;
	bool read_only;
};

static void
end_first(struct checks *c)
{
	struct running *r = &c->running[c->first];
	json_t *data = take_answer(&r->ask, false, &c->read_only);

	if (data != NULL) {
		json_object_set(data, "service", json_array_get(r->services, 0));
		json_object_set(data, "services", r->services);
		json_array_append_new(c->results, data);
	}
	ask_close(&r->ask);
	c->first = (c->first + 1) % CHECKS_AT_ONCE;
	c->cnt--;
}

static void
begin_check(struct checks *c, const char *service, const char *address)
{
	const struct options check = {
		.socket = c->o->socket, .command = CONTROL_CHECK, .timeout_ms = c->o->timeout_ms
	};
	json_t *services = json_object_get(c->seen, address);
	struct running *r;

	/* Services on ranges of ports lead to different ones, others may share one. */
	if (services != NULL)
		json_array_append_new(services, json_string(service));
	if (address[0] == '\0' || services != NULL || c->read_only)
		return;
	services = json_pack("[s]", service);
	json_object_set_new(c->seen, address, services);
	if (c->begun == CHECKS_MAX) {
		c->left_out++;
		return;
	}
	if (c->cnt == CHECKS_AT_ONCE)
		end_first(c);
	r = &c->running[(c->first + c->cnt) % CHECKS_AT_ONCE];
	r->services = services;
	if (ask_begin(&r->ask, &check, address) != 0)
		return;
	c->cnt++;
	c->begun++;
}

static void
run_checks(struct checks *c, const json_t *services)
{
	c->seen = json_object();
	c->results = json_array();
	for (size_t i = 0; i < json_array_size(services); i++) {
		const json_t *s = json_array_get(services, i), *addresses = json_object_get(s, "addresses");

		if (strcmp(get_string(s, "kind"), "ingress") != 0)
			continue;
		for (size_t k = 0; k < json_array_size(addresses); k++)
			begin_check(c, get_string(s, "name"), get_string(json_array_get(addresses, k), "address"));
	}
	while (c->cnt > 0)
		end_first(c);
	json_decref(c->seen);
}

/* -- all of it -- */

static json_t *
ask_for_services(const struct options *o, const json_t *status)
{
	const json_t *list = json_object_get(status, "services");
	json_t *services = json_array();

	for (size_t i = 0; i < json_array_size(list); i++) {
		json_t *s = ask_for(o, CONTROL_SERVICE, get_string(json_array_get(list, i), "name"));

		if (json_object_size(s) > 0)
			json_array_append(services, s);
		json_decref(s);
	}
	return services;
}

/* The answer to a command among the facts. */
static json_t *
add_fact(const struct options *o, json_t *facts, enum control_command command)
{
	const char *name = control_commands[command].name;

	json_object_set_new(facts, name, ask_for(o, command, NULL));
	return json_object_get(facts, name);
}

/* What has counters; NULL: no answer. */
static json_t *
look(const struct options *o)
{
	json_t *facts = json_object(), *status = add_fact(o, facts, CONTROL_STATUS);

	if (status == NULL) {
		json_decref(facts);
		return NULL;
	}
	json_object_set_new(facts, "services", ask_for_services(o, status));
	add_fact(o, facts, CONTROL_STATS);
	add_fact(o, facts, CONTROL_DEVICES);
	return facts;
}

/* Would anything be a note if nothing was counted since these facts? */
static bool
has_counted(json_t *facts)
{
	json_t *same = json_copy(facts);
	enum doctor_level verdict;
	bool any = false;

	json_object_set(same, "before", facts);
	json_t *findings = doctor_findings(same, &verdict);
	for (size_t i = 0; i < json_array_size(findings); i++)
		any = any || template_holds(json_array_get(findings, i), "level=note");
	json_decref(findings);
	json_decref(same);
	return any;
}

/* Counters since the start do not say what is wrong now: if they have anything, there is a second look. */
static json_t *
look_twice(const struct options *o)
{
	json_t *before = look(o), *facts = before;

	if (before != NULL && has_counted(before)) {
		(void)poll(NULL, 0, LOOKS_APART_MS);
		facts = look(o);
		if (facts != NULL)
			json_object_set(facts, "before", before);
		json_decref(before);
	}
	return facts;
}

static int
show_findings(const struct options *o, json_t *findings, enum doctor_level verdict, json_t *checks)
{
	struct timespec now;

	for (size_t i = json_array_size(findings); o->problems && i-- > 0;)
		if (template_holds(json_array_get(findings, i), "level=ok,level=note"))
			json_array_remove(findings, i);
	clock_gettime(CLOCK_REALTIME, &now);
	json_t *root = json_pack("{s:i, s:s, s:I, s:n, s:{s:s, s:o, s:O}}", "schema", SCHEMA, "command", "doctor",
	    "time_ms", (json_int_t)now.tv_sec * 1000 + now.tv_nsec / 1000000, "error", "data", "verdict",
	    doctor_level_words[verdict], "findings", findings, "checks", checks);
	show_made(o->json, CONTROL_DOCTOR, root, o->detail);
	json_decref(root);
	return verdict == DOCTOR_PROBLEM ? 2 : verdict == DOCTOR_WARNING ? 1 : 0;
}

/* Nobody listens on the socket: why? */
static int
say_why_down(const struct options *o)
{
	json_t *unit = doctor_down_unit(o->socket, o->instance), *none = json_array();
	int status = show_findings(
	    o, json_pack("[o]", doctor_down_finding(o->socket, o->instance, unit)), DOCTOR_PROBLEM, none);

	json_decref(none);
	json_decref(unit);
	return status;
}

int
doctor_run(const struct options *o)
{
	struct checks checks = { .o = o };
	enum doctor_level verdict;
	struct ask a;
	int rc = ask_open(&a, o, true);

	ask_close(&a);
	if (rc == -ENOENT || rc == -ECONNREFUSED)
		return say_why_down(o);
	json_t *facts = look_twice(o);
	if (facts == NULL)
		return 2;
	/* After what counts, as checks count as well; links after them. */
	run_checks(&checks, json_object_get(facts, "services"));
	json_object_set_new(facts, "checks", checks.results);
	json_object_set_new(facts, "left_out", json_integer(checks.left_out));
	json_object_set_new(facts, "read_only", json_boolean(checks.read_only));
	add_fact(o, facts, CONTROL_GROUPS);
	add_fact(o, facts, CONTROL_LINKS);

	json_t *findings = doctor_findings(facts, &verdict);
	int status = show_findings(o, findings, verdict, checks.results);
	json_decref(facts);
	return status;
}
