/* The report about one service: how it is configured, what its connections are on, whether its far end is there. The service is
 * looked up anew in each step, as a reload may come between two. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/addr.h"
#include "daemon/config/config_keys.h"
#include "daemon/config/config_value.h"
#include "daemon/control/report.h"
#include "daemon/session/peer_rule.h"
#include "daemon/session/targets.h"

#define SETTING_MAX 2000 /* characters: a step has room for twice as many in JSON, and for escapes */

enum {
	SERVICE_COUNTERS,
	SERVICE_SUMMARY,
	SERVICE_TARGETS,
	SERVICE_ADDRESSES,
	SERVICE_SETTINGS,
};

/* -- what it is in `status`, too -- */

void
report_write_service(struct json_writer *jw, const struct service_info *s)
{
	char text[CONFIG_TO_STR_MAX], waits[TARGETS_WAIT_MAX];

	jw_string(jw, "name", s->cfg->name);
	jw_string(jw, "kind", s->cfg->kind == CONFIG_INGRESS ? "ingress" : "egress");
	report_sockaddr(jw, "listen", &s->cfg->listen);
	jw_string(jw, "to", config_to_str(s->cfg, text));
	jw_string(jw, "waiting", targets_waiting(s->targets, waits));
	jw_string(jw, "peer", peer_rule_word(s->cfg->peer));
	jw_bool(jw, "disabled", s->disabled);
	jw_bool(jw, "closed", s->closed);
	jw_uint(jw, "connections", s->connections);
	jw_uint(jw, "connections_max", s->cfg->max_connections);
	jw_uint(jw, "accepted", s->accepted);
	jw_uint(jw, "refused_allow", s->refused_allow);
	jw_uint(jw, "refused_max", s->refused_max);
	jw_uint(jw, "refused_per_peer", s->refused_per_peer);
	jw_uint(jw, "refused_connect", s->refused_connect);
	jw_uint(jw, "refused_fallback", s->refused_fallback);
	jw_uint(jw, "refused_disabled", s->refused_disabled);
	jw_uint(jw, "fallbacks", s->fallbacks);
	jw_uint(jw, "resets", s->resets);
	jw_uint(jw, "bytes_from_app", s->bytes_from_app);
	jw_uint(jw, "bytes_to_app", s->bytes_to_app);
}

void
report_add_service(struct service_info *sum, const struct service_info *one)
{
	sum->cfg = one->cfg;
	sum->targets = one->targets;
	sum->connections += one->connections;
	sum->accepted += one->accepted;
	sum->refused_allow += one->refused_allow;
	sum->refused_max += one->refused_max;
	sum->refused_per_peer += one->refused_per_peer;
	sum->refused_connect += one->refused_connect;
	sum->refused_fallback += one->refused_fallback;
	sum->refused_disabled += one->refused_disabled;
	sum->disabled = sum->disabled || one->disabled;
	sum->closed = sum->closed || one->closed;
	sum->fallbacks += one->fallbacks;
	sum->resets += one->resets;
	sum->bytes_from_app += one->bytes_from_app;
	sum->bytes_to_app += one->bytes_to_app;
}

/* -- the report -- */

static void
add_counters(struct report *r, const struct service_info *one, const struct outage_info *outage)
{
	const struct service_figures *figures = worker_service_figures(r->worker, one->cfg->name);

	for (unsigned mode = 0; mode < 3; mode++)
		r->modes[mode] += figures->modes[mode];
	report_add_service(&r->of_one, one);
	r->outage = *outage; /* the service's over all workers: each says the same, the last one what is newest */
}

/* An ingress's far end, in this worker. */
static void
add_hold_off(struct report *r, const struct service_info *one)
{
	char key[ADDR_STR_MAX];
	struct endpoint e;

	for (unsigned i = 0; one->cfg->kind == CONFIG_INGRESS && targets_address(one->targets, i, &e); i++) {
		int64_t ns = smcr_held_off_ns(worker_engine(r->worker), addr_format_port(&e.addr, key, sizeof(key)));

		if (ns > r->held_off_ns)
			r->held_off_ns = ns;
	}
}

/* With `freebind` a service may listen where no interface is yet. */
static bool
listens_here(const struct report *r, const struct config_service *cfg)
{
	return !cfg->freebind || cfg->listen.ss_family == AF_UNIX ||
	    devices_have_addr(worker_devices(r->worker), &cfg->listen);
}

static void
write_summary(struct report *r)
{
	report_write_service(&r->jw, &r->of_one);
	report_conn_counts(&r->jw, "modes", r->modes);
	jw_array(&r->jw, "targets");
}

/* Each of `to`; false when there are no more. */
static bool
step_target(struct report *r, const struct service_info *one)
{
	struct json_writer *jw = &r->jw;
	char text[CONFIG_TARGET_STR_MAX], why[ENDPOINT_WHY_MAX];

	if (r->pos >= one->cfg->to_cnt)
		return false;
	jw_object(jw, NULL);
	jw_string(jw, "target", config_target_str(&one->cfg->to[r->pos], text));
	jw_string(jw, "name_error", targets_name_error(one->targets, r->pos, why));
	jw_object_end(jw);
	r->pos++;
	return true;
}

/* What they stand for at present; the same. */
static bool
step_address(struct report *r, const struct service_info *one)
{
	struct json_writer *jw = &r->jw;
	char text[CONFIG_TARGET_STR_MAX];
	struct endpoint e;

	if (!targets_address(one->targets, r->pos, &e) || e.target >= one->cfg->to_cnt)
		return false;
	bool failed = e.fault != ENDPOINT_OK;
	jw_object(jw, NULL);
	report_sockaddr(jw, "address", &e.addr);
	jw_string(jw, "target", config_target_str(&one->cfg->to[e.target], text));
	jw_uint(jw, "priority", e.priority);
	jw_uint(jw, "weight", e.weight);
	jw_string(jw, "state", failed ? "failed" : "ok");
	jw_string(jw, "text", failed ? e.why : "");
	jw_uint(jw, "connections", e.connections);
	jw_uint(jw, "failures", e.failures);
	jw_uint(jw, "passed_over", e.passed_over);
	jw_object_end(jw);
	r->pos++;
	return true;
}

static void
write_outage(struct report *r)
{
	struct json_writer *jw = &r->jw;

	jw_object(jw, "outage");
	jw_string(jw, "text", r->outage.text);
	jw_uint(jw, "failed", r->outage.failed);
	report_ms(jw, "age_ms", r->outage.age_ns);
	jw_object_end(jw);
	jw_array(jw, "settings");
}

/* As the file would have it; what does not fit ends with "...". */
static void
write_setting(struct json_writer *jw, const struct config_key *key, const struct config_service *cfg)
{
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	if (f == NULL)
		return;
	if (!config_value_is_empty(key, cfg))
		config_value_print(key, cfg, f);
	if (fclose(f) == 0) {
		if (len > SETTING_MAX)
			strcpy(text + SETTING_MAX - 3, "...");
		jw_object(jw, NULL);
		jw_string(jw, "name", key->name);
		jw_string(jw, "value", text);
		jw_object_end(jw);
	}
	free(text);
}

/* The next one that a service of this kind, listening where it does, has; false when there is none. */
static bool
step_setting(struct report *r, const struct config_service *cfg)
{
	unsigned place = cfg->kind == CONFIG_INGRESS ? CONFIG_AT_INGRESS : CONFIG_AT_EGRESS;

	for (const struct config_key *k = config_keys + r->pos; k->name != NULL; k++) {
		r->pos++;
		if ((k->where & place) == 0 || !config_key_fits(k, cfg->listen.ss_family))
			continue;
		write_setting(&r->jw, k, cfg);
		return true;
	}
	return false;
}

bool
report_service(struct report *r)
{
	struct outage_info outage;
	struct service_info one;
	bool found = worker_service_find(r->worker, r->req.service, &one, &outage);

	switch (r->phase) {
	case SERVICE_COUNTERS:
		if (found) {
			add_counters(r, &one, &outage);
			add_hold_off(r, &one);
		}
		if (!report_next_worker(r))
			r->phase = SERVICE_SUMMARY;
		return true;
	case SERVICE_SUMMARY:
		if (!found) /* a reload took it meanwhile */
			return false;
		r->of_one.cfg = one.cfg;
		r->of_one.targets = one.targets;
		write_summary(r);
		r->phase = SERVICE_TARGETS;
		r->pos = 0;
		return true;
	case SERVICE_TARGETS:
		if (found && step_target(r, &one))
			return true;
		jw_array_end(&r->jw);
		jw_array(&r->jw, "addresses");
		r->phase = SERVICE_ADDRESSES;
		r->pos = 0;
		return true;
	case SERVICE_ADDRESSES:
		if (found && step_address(r, &one))
			return true;
		jw_array_end(&r->jw);
		jw_bool(&r->jw, "listens_here", found && listens_here(r, one.cfg));
		report_ms(&r->jw, "held_off_ms", r->held_off_ns);
		write_outage(r);
		r->phase = SERVICE_SETTINGS;
		r->pos = 0;
		return true;
	default:
		if (found && step_setting(r, one.cfg))
			return true;
		jw_array_end(&r->jw);
		return false;
	}
}
