/* The report about one service: its configuration, the counts of its connections, the state of its far end. Each step looks the
 * service up again, as a reload may come between two. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/addr.h"
#include "base/minmax.h"
#include "daemon/config/config_keys.h"
#include "daemon/config/config_value.h"
#include "daemon/control/report.h"
#include "daemon/leg/peer_mode.h"
#include "daemon/target/targets.h"

#define SETTING_MAX 2000 /* characters: a step has space for twice as many in JSON, and for escapes */

/* The service works while one of its addresses does: the state of the best, since the change that led to it. */
static void
add_health(struct report_health *sum, const struct report_health *one)
{
	static const unsigned rank[HEALTH_STATE_CNT] = {
		[HEALTH_NONE] = 0, [HEALTH_DOWN] = 1, [HEALTH_UNKNOWN] = 2, [HEALTH_HELD_OFF] = 3, [HEALTH_UP] = 4
	};
	const bool later = one->state == HEALTH_DOWN ? one->since_ns < sum->since_ns : one->since_ns > sum->since_ns;

	if (rank[one->state] > rank[sum->state] || (one->state == sum->state && later))
		*sum = *one;
}

/* Fills r->probed. */
static void
add_probed(struct report *r, const struct service_info *s, struct report_service *row)
{
	struct endpoint e;

	if (s->cfg->probe.kind == CONFIG_PROBE_OFF)
		return;
	const int64_t now_ns = worker_sessions(r->worker)->env->now_ns;
	row->probed.at = r->probed;
	for (unsigned i = 0; row->probed.cnt < REPORT_PROBED_MAX && targets_address(s->targets, i, &e); i++) {
		struct report_health *h = &r->probed[row->probed.cnt];

		if (e.health.state == HEALTH_NONE)
			continue;
		*h = (struct report_health){
			.addr = e.addr,
			.state = e.health.state,
			.since_ns = max_i64(now_ns - e.health.since_ns, 0),
			.probed_ns = e.health.probed_ns != 0 ? max_i64(now_ns - e.health.probed_ns, 0) : -1,
		};
		memcpy(h->why, e.health.why, sizeof(h->why));
		add_health(&row->health, h);
		row->probed.cnt++;
	}
}

struct report_service
report_service_row(struct report *r, const struct service_info *s)
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
	add_probed(r, s, &row);
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

int64_t
report_held_off_ns(struct worker *w, const struct service_info *s)
{
	char key[ADDR_STR_MAX];
	struct endpoint e;
	int64_t most = 0;

	for (unsigned i = 0; s->cfg->kind == CONFIG_INGRESS && targets_address(s->targets, i, &e); i++)
		most = max_i64(most, smcr_held_off_ns(worker_engine(w), addr_format_port(&e.addr, key, sizeof(key))));
	return most;
}

/* What the service has in this worker. */
static enum report_step
add_one(struct report *r)
{
	struct outage_info outage;
	struct service_info one;

	if (!worker_service_find(r->worker, r->req.service, &one, &outage)) /* a reload may have removed it meanwhile */
		return r->nr == r->last ? REPORT_STOP : REPORT_NEXT_WORKER;
	report_add(r->one.modes, one.stats->modes, sizeof(r->one.modes));
	report_add_service(&r->one.service.info, &one);
	r->one.outage = outage; /* the service's over all workers: each has the same, the last one the newest */
	r->one.service.held_off_ns = max_i64(r->one.service.held_off_ns, report_held_off_ns(r->worker, &one));
	return REPORT_NEXT_WORKER;
}

static void
add_sum(struct report *r)
{
	const struct service_info sum = r->one.service.info;
	const int64_t held_off_ns = r->one.service.held_off_ns;

	r->one.service = report_service_row(r, &sum);
	r->one.service.held_off_ns = held_off_ns;
	r->one.user = (uint32_t)geteuid();
	report_members(r, &r->one);
}

/* Each of `to`. */
static enum report_step
step_target(struct report *r)
{
	struct service_info one;
	struct report_target row;

	if (!worker_service_find(r->worker, r->req.service, &one, NULL) || r->pos >= one.cfg->to_cnt)
		return REPORT_OVER;
	config_target_str(&one.cfg->to[r->pos], row.target);
	targets_name_error(one.targets, r->pos++, row.name_error);
	report_item(r, REPORT_TARGET, &row);
	return REPORT_WRITTEN;
}

/* The addresses of `to` at present. */
static enum report_step
step_address(struct report *r)
{
	struct service_info one;
	struct report_address row;

	if (!worker_service_find(r->worker, r->req.service, &one, NULL) ||
	    !targets_address(one.targets, r->pos++, &row.e) || row.e.target >= one.cfg->to_cnt)
		return REPORT_OVER;
	config_target_str(&one.cfg->to[row.e.target], row.target);
	report_item(r, REPORT_ADDRESS, &row);
	return REPORT_WRITTEN;
}

/* Destinations of an ingress for all of them. */
static enum report_step
step_via(struct report *r)
{
	unsigned pos = r->pos++;
	struct service_info one;
	struct report_via row;

	if (!worker_service_find(r->worker, r->req.service, &one, NULL))
		return REPORT_OVER;
	for (unsigned i = 0; i < one.cfg->via_cnt; pos -= one.cfg->via[i++].net_cnt) {
		const struct config_via *via = &one.cfg->via[i];
		struct config_net net = { 0 };

		if (pos >= via->net_cnt)
			continue;
		const struct config_dest *d = &via->nets[pos];
		memcpy(net.addr, d->addr, sizeof(net.addr));
		net.prefix_len = d->prefix_len;
		config_net_str(&net, row.net);
		row.port_min = d->port_min;
		row.port_max = d->port_max;
		if (addr_is_any(&via->peer))
			snprintf(row.peer, sizeof(row.peer), "*:%u", addr_port(&via->peer));
		else
			addr_format_port(&via->peer, row.peer, sizeof(row.peer));
		report_item(r, REPORT_VIA, &row);
		return REPORT_WRITTEN;
	}
	return REPORT_OVER;
}

/* The next setting of a service of this kind and listening address, as the file would have it; what does not fit ends with "...". */
static enum report_step
step_setting(struct report *r)
{
	const struct config_key *k = &config_keys[r->pos];
	struct service_info one;
	char *text = NULL;
	size_t len;

	if (k->name == NULL || !worker_service_find(r->worker, r->req.service, &one, NULL))
		return REPORT_OVER;
	r->pos++;
	if ((k->where & config_service_place(one.cfg->kind)) == 0 || !config_key_fits(k, one.cfg->listen.ss_family))
		return REPORT_PASSED;
	FILE *f = open_memstream(&text, &len);
	if (f == NULL)
		return REPORT_WRITTEN;
	if (!config_value_is_empty(k, one.cfg))
		config_value_print(k, one.cfg, f);
	if (fclose(f) == 0) {
		if (len > SETTING_MAX)
			strcpy(text + SETTING_MAX - 3, "...");
		report_item(r, REPORT_SETTING, &(struct report_setting){ k->name, text });
	}
	free(text);
	return REPORT_WRITTEN;
}

static void
end_list(struct report *r)
{
	struct service_info one;

	/* With `freebind` a service may listen where no interface is yet. */
	r->one.listens_here = worker_service_find(r->worker, r->req.service, &one, NULL) &&
	    (!one.cfg->freebind || one.cfg->listen.ss_family == AF_UNIX ||
	        devices_have_addr(worker_devices(r->worker), &one.cfg->listen));
	report_list_end(r, &r->one);
}

const struct report_phase report_service[] = { { add_one, add_sum }, { step_target, end_list },
	{ step_address, end_list }, { step_via, end_list }, { step_setting, end_list }, { 0 } };
