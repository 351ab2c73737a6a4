/* The report about one service: its configuration, the counts of its connections, the state of its far end. Each step looks the
 * service up again, as a reload may come between two. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/addr.h"
#include "daemon/config/config_keys.h"
#include "daemon/config/config_value.h"
#include "daemon/control/report.h"
#include "daemon/leg/peer_mode.h"
#include "daemon/target/targets.h"

#define SETTING_MAX 2000 /* characters: a step has space for twice as many in JSON, and for escapes */

/* -- its object, which `status` has as well -- */

struct report_service
report_service_row(const struct service_info *s)
{
	struct report_service row = {
		.name = s->cfg->name,
		.peer = peer_mode_word(s->cfg->peer),
		.kind = s->cfg->kind,
		.listen = s->cfg->listen,
		.connections_max = s->cfg->max_connections,
		.info = *s,
	};

	config_to_str(s->cfg, row.to);
	targets_waiting(s->targets, row.waiting);
	return row;
}

void
report_add_service(struct service_info *sum, const struct service_info *one)
{
	sum->cfg = one->cfg;
	sum->targets = one->targets;
	sum->connections += one->connections;
	sum->disabled = sum->disabled || one->disabled;
	sum->closed = sum->closed || one->closed;
	report_add(&sum->accepted, &one->accepted, SERVICE_INFO_COUNTS);
}

/* -- the report -- */

/* What the service has in this worker. */
static void
add_one(struct report *r, const struct service_info *one, const struct outage_info *outage)
{
	char key[ADDR_STR_MAX];
	struct endpoint e;

	report_add(r->one.modes, worker_service_stats(r->worker, one->cfg->name)->modes, sizeof(r->one.modes));
	report_add_service(&r->one.service.info, one);
	r->one.outage = *outage; /* the service's over all workers: each has the same, the last one the newest */
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
	targets_name_error(one->targets, r->pos++, row.name_error);
	report_item(r, REPORT_TARGET, &row);
	return true;
}

/* The addresses of `to` at present; the same. */
static bool
step_address(struct report *r, const struct service_info *one)
{
	struct report_address row;

	if (!targets_address(one->targets, r->pos++, &row.e) || row.e.target >= one->cfg->to_cnt)
		return false;
	config_target_str(&one->cfg->to[row.e.target], row.target);
	report_item(r, REPORT_ADDRESS, &row);
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

/* The next setting of a service of this kind and listening address; false behind the last one. */
static bool
step_setting(struct report *r, const struct service_info *one)
{
	const unsigned place = one->cfg->kind == CONFIG_INGRESS ? CONFIG_AT_INGRESS : CONFIG_AT_EGRESS;

	for (const struct config_key *k = config_keys + r->pos; k->name != NULL; k++) {
		r->pos++;
		if ((k->where & place) == 0 || !config_key_fits(k, one->cfg->listen.ss_family))
			continue;
		write_setting(r, k, one->cfg);
		return true;
	}
	return false;
}

bool
report_service(struct report *r)
{
	/* The lists, by phase from 1. */
	static bool (*const steps[])(
	    struct report *, const struct service_info *) = { step_target, step_address, step_setting };
	struct outage_info outage;
	struct service_info one;
	bool found = worker_service_find(r->worker, r->req.service, &one, &outage);

	if (r->phase > 0) {
		if (found && steps[r->phase - 1](r, &one))
			return true;
		r->one.listens_here = found && listens_here(r, one.cfg);
		report_list_end(r, &r->one);
	} else {
		if (found)
			add_one(r, &one, &outage);
		if (report_next_worker(r))
			return true;
		if (!found) /* a reload has removed it meanwhile */
			return false;
		const struct service_info sum = r->one.service.info;
		r->one.service = report_service_row(&sum);
		report_members(r, &r->one);
	}
	r->pos = 0;
	return r->phase++ < sizeof(steps) / sizeof(steps[0]);
}
