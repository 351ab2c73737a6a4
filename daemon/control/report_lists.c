/* The lists: connections, groups, links, RMBs, devices. One object a step, except what a filter leaves out; the GIDs of a
 * device may take several steps. */
#include <string.h>

#include "daemon/control/report.h"
#include "wire/clc.h"

#define GIDS_STEP 32 /* bounded by REPORT_STEP_BYTES */

enum {
	LIST_BEGIN,
	LIST_ITEMS,
	LIST_GIDS, /* of the device that was begun */
};

/* What has become of the next object of a list. */
enum item {
	ITEM_NONE, /* there are no more */
	ITEM_LEFT_OUT,
	ITEM_WRITTEN,
};

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
	    (req->service[0] != '\0' && strcmp(req->service, row.s.service) != 0) ||
	    (req->group != 0 && req->group != row.c.group_id))
		return ITEM_LEFT_OUT;
	if (app->sa.sa_family != AF_UNSPEC)
		net_addr_str(app, row.app, sizeof(row.app));
	if (app->sa.sa_family == AF_UNIX) {
		row.app_uid = app->un.uid != (uid_t)-1 ? (int64_t)app->un.uid : -1;
		row.app_pid = app->un.pid;
	}
	report_item(r, REPORT_CONNECTION, &row);
	return ITEM_WRITTEN;
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
	report_item(r, REPORT_GROUP, &row);
	return ITEM_WRITTEN;
}

static enum item
add_link(struct report *r)
{
	struct report_link row = { .worker = r->nr + 1 };

	if (!smcr_link_next(worker_engine(r->worker), &r->pos, &row.l))
		return ITEM_NONE;
	if (r->req.group != 0 && r->req.group != row.l.group_id)
		return ITEM_LEFT_OUT;
	row.mtu = clc_mtu_bytes(row.l.mtu_code);
	row.paths = (struct field_array){ row.l.conn.paths, row.l.conn.path_cnt };
	report_item(r, REPORT_LINK, &row);
	return ITEM_WRITTEN;
}

static enum item
add_rmb(struct report *r)
{
	struct report_rmb row = { .worker = r->nr + 1 };

	if (!smcr_rmb_next(worker_engine(r->worker), &r->pos, &row.m))
		return ITEM_NONE;
	if (r->req.group != 0 && r->req.group != row.m.group_id)
		return ITEM_LEFT_OUT;
	report_item(r, REPORT_RMB, &row);
	return ITEM_WRITTEN;
}

/* By name: each kind of device counts some of them. */
static void
fill_stats(struct report_device_stats *stats, const struct device_info *d)
{
	uint64_t *value = (uint64_t *)stats;

	for (unsigned k = 0; report_device_stats[k] != NULL; k++)
		for (unsigned i = 0; i < d->stat_cnt; i++)
			if (strcmp(d->stats[i].name, report_device_stats[k]) == 0)
				value[k] = d->stats[i].value;
}

static void
begin_device(struct report *r, const struct device_info *d)
{
	const struct verbs_port *card = d->card;
	struct report_device row = {
		.worker = r->nr + 1,
		.rnic = d->rnic,
		.interface = d->interface,
		.interface_mtu = d->interface_mtu,
		.mtu = clc_mtu_bytes(d->rnic.mtu_code),
		.more_addrs = d->more_addrs,
		.card = card != NULL ? card->dev : "",
		.card_port = card != NULL ? card->port : 0,
		.link_layer = card == NULL ? ""
		    : card->infiniband     ? "infiniband"
		                           : "ethernet",
		.gid_type = card != NULL ? report_gid_type_words[d->gid.type] : "",
		.gid_index = card != NULL ? (int64_t)d->gid.index : -1,
	};

	fill_stats(&row.stats, d);
	report_item_begin(r, REPORT_DEVICE, &row);
}

static enum item
add_device(struct report *r)
{
	struct device_info d;
	bool there = devices_info(worker_devices(r->worker), r->pos, &d);

	if (r->phase != LIST_GIDS) {
		if (!there)
			return ITEM_NONE;
		begin_device(r, &d);
		r->sub = 0;
		r->phase = LIST_GIDS;
		return ITEM_WRITTEN;
	}
	/* Another device may stand in its place by now: its GIDs then, and the list is no snapshot. */
	unsigned cnt = there && d.card != NULL ? d.card->gid_cnt : 0;
	for (unsigned i = 0; i < GIDS_STEP && r->sub < cnt; i++, r->sub++) {
		const struct verbs_gid *g = &d.card->gids[r->sub];
		const struct report_gid row = { .gid = g->gid,
			.type = g->type,
			.index = g->index,
			.interface = devices_interface(worker_devices(r->worker), g->ifindex) };

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
