/* The lists: connections, groups, links, RMBs, devices; and closing connections. One object a step, except those that a filter leaves
 * out; the GIDs of a device may take several steps. */
#include <string.h>

#include "daemon/control/report.h"
#include "tls/tls.h"
#include "wire/clc.h"

#define GIDS_STEP 32 /* bounded by REPORT_STEP_BYTES */

/* Written unless the request is about another link group; 0: of no group. */
static enum report_step
written(struct report *r, enum report_kind kind, const void *row, uint32_t group)
{
	if (r->req.group != 0 && r->req.group != group)
		return REPORT_PASSED;
	report_item(r, kind, row);
	return REPORT_WRITTEN;
}

static enum report_step
add_connection(struct report *r)
{
	struct report_connection row = { .worker = r->nr + 1, .c.state = "", .app_uid = -1 };
	const struct control_request *req = &r->req;
	const union net_addr *app = &row.s.app_peer;

	if (!worker_session_next(r->worker, &r->pos, &row.s))
		return REPORT_NEXT_WORKER;
	if (row.s.conn != NULL)
		smcr_conn_info(row.s.conn, &row.c);
	if ((req->modes & 1u << row.s.mode) == 0 ||
	    (req->service[0] != '\0' && strcmp(req->service, row.s.service) != 0))
		return REPORT_PASSED;
	if (app->sa.sa_family == AF_UNIX) {
		row.app_uid = app->un.uid != (uid_t)-1 ? (int64_t)app->un.uid : -1;
		row.app_pid = app->un.pid;
	}
	return written(r, REPORT_CONNECTION, &row, row.c.group_id);
}

static enum report_step
add_group(struct report *r)
{
	struct report_group row = { .worker = r->nr + 1 };

	if (!smcr_group_next(worker_engine(r->worker), &r->pos, &row.g))
		return REPORT_NEXT_WORKER;
	row.protection = row.g.level == CONFIG_SECURE_REQUIRED ? "required"
	    : row.g.level != CONFIG_SECURE_OFF                 ? "auth"
	                                                       : "clear";
	row.suite = tls_suite_name(row.g.suite);
	if (row.g.failover_age_ns < 0) {
		row.g.failover_ns = -1;
		row.g.failover_why = "";
		row.g.failover_conns = 0;
	}
	return written(r, REPORT_GROUP, &row, row.g.id);
}

static enum report_step
add_link(struct report *r)
{
	struct report_link row = { .worker = r->nr + 1 };

	if (!smcr_link_next(worker_engine(r->worker), &r->pos, &row.l))
		return REPORT_NEXT_WORKER;
	row.mtu = clc_mtu_bytes(row.l.mtu_code);
	row.paths = (struct field_array){ row.l.conn.paths, row.l.conn.path_cnt };
	return written(r, REPORT_LINK, &row, row.l.group_id);
}

static enum report_step
add_rmb(struct report *r)
{
	struct report_rmb row = { .worker = r->nr + 1 };

	if (!smcr_rmb_next(worker_engine(r->worker), &r->pos, &row.m))
		return REPORT_NEXT_WORKER;
	return written(r, REPORT_RMB, &row, row.m.group_id);
}

static void
begin_device(struct report *r, const struct device_info *d)
{
	struct report_device row = {
		.worker = r->nr + 1, .d = *d, .mtu = clc_mtu_bytes(d->rnic.mtu_code), .gid_index = -1
	};
	uint64_t *value = (uint64_t *)&row.stats;

	if (d->card != NULL) {
		row.card = d->card->dev;
		row.card_port = d->card->port;
		row.link_layer = d->card->infiniband ? "infiniband" : "ethernet";
		row.gid_type = report_gid_type_words[d->gid.type];
		row.gid_index = d->gid.index;
	}
	/* By name: each kind of device counts some of them. */
	for (unsigned k = 0; report_device_stats[k] != NULL; k++)
		for (unsigned i = 0; i < d->stat_cnt; i++)
			if (strcmp(d->stats[i].name, report_device_stats[k]) == 0)
				value[k] = d->stats[i].value;
	report_item_begin(r, REPORT_DEVICE, &row);
	r->sub = 1;
}

static enum report_step
add_device(struct report *r)
{
	struct device_info d;
	const bool there = devices_info(worker_devices(r->worker), r->pos, &d);

	if (r->sub == 0) {
		if (there)
			begin_device(r, &d);
		return there ? REPORT_WRITTEN : REPORT_NEXT_WORKER;
	}
	/* Another device may be at this place by now: its GIDs are written then, and the list is no snapshot. */
	const unsigned cnt = there && d.card != NULL ? d.card->gid_cnt : 0;
	for (unsigned i = 0; i < GIDS_STEP && r->sub <= cnt; i++, r->sub++) {
		const struct verbs_gid *g = &d.card->gids[r->sub - 1];
		const struct report_gid row = { *g, devices_interface(worker_devices(r->worker), g->ifindex) };

		report_item(r, REPORT_GID, &row);
	}
	if (r->sub > cnt) {
		if (r->jw.out != NULL) {
			jw_array_end(&r->jw);
			jw_object_end(&r->jw);
		}
		r->pos++;
		r->sub = 0;
	}
	return REPORT_WRITTEN;
}

/* A walk through all connections, as a report of them would be, in which those that are meant are closed. */
static enum report_step
close_connection(struct report *r)
{
	const struct close_filter filter = { .id = r->req.id, .service = r->req.service, .peer = r->req.peer };
	bool closed;

	if (!worker_close_next(r->worker, &r->pos, &filter, &closed))
		return REPORT_NEXT_WORKER;
	r->closed += closed;
	r->tired = r->tired || closed; /* closing takes system calls: enough for this turn */
	return REPORT_PASSED;
}

static void
add_closed(struct report *r)
{
	report_members(r, &r->closed);
}

const struct report_phase report_connections[] = { { .step = add_connection }, { 0 } };
const struct report_phase report_groups[] = { { .step = add_group }, { 0 } };
const struct report_phase report_links[] = { { .step = add_link }, { 0 } };
const struct report_phase report_rmbs[] = { { .step = add_rmb }, { 0 } };
const struct report_phase report_devices[] = { { .step = add_device }, { 0 } };
const struct report_phase report_close[] = { { close_connection, add_closed }, { 0 } };
