/* The report about one service: how it is configured, what its connections are on, whether its far end is there. The service is
 * looked up again in each step, as a reload may come between two. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/addr.h"
#include "daemon/config/config_keys.h"
#include "daemon/config/config_value.h"
#include "daemon/control/report.h"
#include "daemon/leg/peer_mode.h"
#include "daemon/target/targets.h"

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
report_service_row(struct report_service *row, const struct service_info *s)
{
	*row = (struct report_service){
		.name = s->cfg->name,
		.peer = peer_mode_word(s->cfg->peer),
		.kind = s->cfg->kind,
		.listen = s->cfg->listen,
		.connections_max = s->cfg->max_connections,
		.info = *s,
	};
	config_to_str(s->cfg, row->to);
	targets_waiting(s->targets, row->waiting);
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
	const struct service_stats *stats = worker_service_stats(r->worker, one->cfg->name);

	for (unsigned mode = 0; mode < 3; mode++)
		r->one.modes[mode] += stats->modes[mode];
	report_add_service(&r->one.service.info, one);
	r->one.outage = *outage; /* the service's over all workers: each says the same, the last one what is newest */
}

/* An ingress's far end, in this worker. */
static void
add_hold_off(struct report *r, const struct service_info *one)
{
	char key[ADDR_STR_MAX];
	struct endpoint e;

	for (unsigned i = 0; one->cfg->kind == CONFIG_INGRESS && targets_address(one->targets, i, &e); i++) {
		int64_t ns = smcr_held_off_ns(worker_engine(r->worker), addr_format_port(&e.addr, key, sizeof(key)));

		if (ns > r->one.held_off_ns)
			r->one.held_off_ns = ns;
	}
}

/* With `freebind` a service may listen where no interface is yet. */
static bool
listens_here(const struct report *r, const struct config_service *cfg)
{
	return !cfg->freebind || cfg->listen.ss_family == AF_UNIX ||
	    devices_have_addr(worker_devices(r->worker), &cfg->listen);
}

/* Each of `to`; false when there are no more. */
static bool
step_target(struct report *r, const struct service_info *one)
{
	struct report_target row;

	if (r->pos >= one->cfg->to_cnt)
		return false;
	config_target_str(&one->cfg->to[r->pos], row.target);
	targets_name_error(one->targets, r->pos, row.name_error);
	report_item(r, REPORT_TARGET, &row);
	r->pos++;
	return true;
}

/* What they stand for at present; the same. */
static bool
step_address(struct report *r, const struct service_info *one)
{
	struct report_address row = { .state = "ok", .text = "" };

	if (!targets_address(one->targets, r->pos, &row.e) || row.e.target >= one->cfg->to_cnt)
		return false;
	if (row.e.fault != ENDPOINT_OK) {
		row.state = "failed";
		row.text = row.e.why;
	}
	config_target_str(&one->cfg->to[row.e.target], row.target);
	report_item(r, REPORT_ADDRESS, &row);
	r->pos++;
	return true;
}

/* As the file would have it; what does not fit ends with "...". */
static void
write_setting(struct report *r, const struct config_key *key, const struct config_service *cfg)
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
		report_item(r, REPORT_SETTING, &(struct report_setting){ key->name, text });
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
		write_setting(r, k, cfg);
		return true;
	}
	return false;
}

static void
add_summary(struct report *r, const struct service_info *one)
{
	struct service_info sum = r->one.service.info;

	sum.cfg = one->cfg;
	sum.targets = one->targets;
	report_service_row(&r->one.service, &sum);
	report_members(r, &r->one);
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
		add_summary(r, &one);
		r->phase = SERVICE_TARGETS;
		r->pos = 0;
		return true;
	case SERVICE_TARGETS:
		if (found && step_target(r, &one))
			return true;
		report_list_end(r, NULL);
		r->phase = SERVICE_ADDRESSES;
		r->pos = 0;
		return true;
	case SERVICE_ADDRESSES:
		if (found && step_address(r, &one))
			return true;
		r->one.listens_here = found && listens_here(r, one.cfg);
		report_list_end(r, &r->one);
		r->phase = SERVICE_SETTINGS;
		r->pos = 0;
		return true;
	default:
		if (found && step_setting(r, one.cfg))
			return true;
		report_list_end(r, NULL);
		return false;
	}
}
