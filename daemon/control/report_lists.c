/* The lists: connections, groups, links, RMBs, devices; and closing connections. One object a step, except those that a filter leaves
 * out; the GIDs of a device may take several steps. */
#include <string.h>

#include "daemon/control/report.h"
#include "wire/clc.h"

#define GIDS_STEP 32 /* bounded by REPORT_STEP_BYTES */

enum {
	LIST_BEGIN,
	LIST_ITEMS,
	LIST_GIDS, /* of the device that was begun */
};

/* The next object of a list. */
enum item {
	ITEM_NONE, /* there are no more */
	ITEM_LEFT_OUT,
	ITEM_WRITTEN,
};

/* Written unless the request is about another link group; 0: of no group. */
static enum item
written(struct report *r, enum report_kind kind, const void *row, uint32_t group)
{
	if (r->req.group != 0 && r->req.group != group)
		return ITEM_LEFT_OUT;
	report_item(r, kind, row);
	return ITEM_WRITTEN;
}

static enum item
add_connection(struct report *r)
{
	struct report_connection row = { .worker = r->nr + 1, .c.state = "", .app_uid = -1 };
	const struct control_request *req = &r->req;
	const union net_addr *app = &row.s.app_peer;

	if (!worker_session_next(r->worker, &r->pos, &row.s))
		return ITEM_NONE;
	if (row.s.conn != NULL)
		smcr_conn_info(row.s.conn, &row.c);
	if ((req->modes & 1u << row.s.mode) == 0 ||
	    (req->service[0] != '\0' && strcmp(req->service, row.s.service) != 0))
		return ITEM_LEFT_OUT;
	if (app->sa.sa_family == AF_UNIX) {
		row.app_uid = app->un.uid != (uid_t)-1 ? (int64_t)app->un.uid : -1;
		row.app_pid = app->un.pid;
	}
	return written(r, REPORT_CONNECTION, &row, row.c.group_id);
}

static enum item
add_group(struct report *r)
{
	struct report_group row = { .worker = r->nr + 1 };

	if (!smcr_group_next(worker_engine(r->worker), &r->pos, &row.g))
		return ITEM_NONE;
	if (row.g.failover_age_ns < 0) {
		row.g.failover_ns = -1;
		row.g.failover_why = "";
		row.g.failover_conns = 0;
	}
	return written(r, REPORT_GROUP, &row, row.g.id);
}

static enum item
add_link(struct report *r)
{
	struct report_link row = { .worker = r->nr + 1 };

	if (!smcr_link_next(worker_engine(r->worker), &r->pos, &row.l))
		return ITEM_NONE;
	row.mtu = clc_mtu_bytes(row.l.mtu_code);
	row.paths = (struct field_array){ row.l.conn.paths, row.l.conn.path_cnt };
	return written(r, REPORT_LINK, &row, row.l.group_id);
}

static enum item
add_rmb(struct report *r)
{
	struct report_rmb row = { .worker = r->nr + 1 };

	if (!smcr_rmb_next(worker_engine(r->worker), &r->pos, &row.m))
		return ITEM_NONE;
	return written(r, REPORT_RMB, &row, row.m.group_id);
}

static void
begin_device(struct report *r, const struct device_info *d)
{
	struct report_device row = {
		.worker = r->nr + 1,
		.d = *d,
		.mtu = clc_mtu_bytes(d->rnic.mtu_code),
		.gid_index = -1,
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
	r->sub = 0;
	r->phase = LIST_GIDS;
}

static enum item
add_device(struct report *r)
{
	struct device_info d;
	bool there = devices_info(worker_devices(r->worker), r->pos, &d);

	if (r->phase != LIST_GIDS) {
		if (there)
			begin_device(r, &d);
		return there ? ITEM_WRITTEN : ITEM_NONE;
	}
	/* Another device may be at this place by now: its GIDs are written then, and the list is no snapshot. */
	unsigned cnt = there && d.card != NULL ? d.card->gid_cnt : 0;
	for (unsigned i = 0; i < GIDS_STEP && r->sub < cnt; i++, r->sub++) {
		const struct verbs_gid *g = &d.card->gids[r->sub];
		const struct report_gid row = { *g, devices_interface(worker_devices(r->worker), g->ifindex) };

		report_item(r, REPORT_GID, &row);
	}
	if (r->sub >= cnt) {
		report_item_end(r);
		r->pos++;
		r->phase = LIST_ITEMS;
	}
	return ITEM_WRITTEN;
}

bool
report_list(struct report *r)
{
	static enum item (*const add_next[CONTROL_COMMAND_CNT])(struct report *) = {
		[CONTROL_CONNECTIONS] = add_connection,
		[CONTROL_GROUPS] = add_group,
		[CONTROL_LINKS] = add_link,
		[CONTROL_RMBS] = add_rmb,
		[CONTROL_DEVICES] = add_device,
	};

	if (r->phase == LIST_BEGIN) {
		report_members(r, NULL);
		r->phase = LIST_ITEMS;
	}
	for (unsigned i = 0; i < REPORT_STEP_ITEMS; i++) {
		enum item item = add_next[r->req.command](r);

		if (item == ITEM_NONE && report_next_worker(r))
			return true;
		if (item == ITEM_NONE)
			report_list_end(r, NULL);
		if (item != ITEM_LEFT_OUT)
			return item == ITEM_WRITTEN;
	}
	return true;
}

/* A walk through all connections, as a report of them would be, in which those that are meant are closed. */
bool
report_close(struct report *r)
{
	const struct close_filter filter = { .id = r->req.id, .service = r->req.service, .peer = r->req.peer };
	bool closed = false;

	for (unsigned i = 0; i < REPORT_STEP_ITEMS; i++) {
		if (!worker_close_next(r->worker, &r->pos, &filter, &closed)) {
			if (report_next_worker(r))
				return true;
			report_members(r, &r->closed);
			return false;
		}
		r->closed += closed;
		/* Closing takes system calls: enough for this turn. */
		r->tired = r->tired || closed;
	}
	return true;
}
