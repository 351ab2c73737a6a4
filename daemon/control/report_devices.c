/* The list of devices: each with the GIDs of its card's port, which may take several steps. */
#include "daemon/control/report.h"
#include "daemon/control/stat_table.h"
#include "wire/clc.h"

#define GIDS_STEP 32 /* bounded by REPORT_STEP_BYTES */

enum {
	DEVICES_BEGIN = 1,
	DEVICES_ITEM,
	DEVICES_GIDS,
};

static const char *
gid_type_word(enum verbs_gid_type type)
{
	switch (type) {
	case VERBS_GID_IB:
		return "ib";
	case VERBS_GID_ROCE_V1:
		return "roce_v1";
	case VERBS_GID_ROCE_V2:
		return "roce_v2";
	}
	return "";
}

/* Members that only a card has; "", 0 and -1 for a device of software. */
static void
write_card(struct json_writer *jw, const struct device_info *d)
{
	const struct verbs_port *card = d->card;

	jw_string(jw, "card", card != NULL ? card->dev : "");
	jw_uint(jw, "card_port", card != NULL ? card->port : 0);
	jw_string(jw, "link_layer", card == NULL ? "" : card->infiniband ? "infiniband" : "ethernet");
	jw_string(jw, "gid_type", card != NULL ? gid_type_word(d->gid.type) : "");
	jw_int(jw, "gid_index", card != NULL ? (int64_t)d->gid.index : -1);
	jw_object(jw, "stats");
	for (const char *const *name = device_stats; *name != NULL; name++)
		jw_uint(jw, *name, device_stat_value(*name, d->stats, d->stat_cnt));
	jw_object_end(jw);
}

static void
begin_device(struct json_writer *jw, const struct device_info *d)
{
	jw_object(jw, NULL);
	jw_string(jw, "name", d->rnic.name);
	jw_string(jw, "provider", d->rnic.provider);
	jw_string(jw, "transport", d->rnic.transport == RNIC_TRANSPORT_IWARP ? "iwarp" : "roce");
	jw_string(jw, "port", d->rnic.port == RNIC_PORT_UP ? "up" : "down");
	jw_string(jw, "interface", d->interface);
	report_gid(jw, "gid", &d->rnic.gid);
	report_mac(jw, "mac", d->rnic.mac);
	jw_uint(jw, "mtu", clc_mtu_bytes(d->rnic.mtu_code));
	jw_uint(jw, "mpa_port", d->rnic.mpa_port);
	jw_uint(jw, "qps", d->rnic.qp_cnt);
	jw_uint(jw, "qps_max", d->rnic.max_qp);
	jw_uint(jw, "mrs", d->rnic.mr_cnt);
	jw_uint(jw, "mrs_max", d->rnic.max_mr);
	jw_uint(jw, "registered_bytes", d->rnic.mr_bytes);
	jw_uint(jw, "sq_max", d->rnic.max_sq);
	jw_uint(jw, "rq_max", d->rnic.max_rq);
	jw_uint(jw, "sge_max", d->rnic.max_sge);
	jw_uint(jw, "inline_max", d->rnic.max_inline);
	write_card(jw, d);
	jw_array(jw, "gids");
}

/* Up to so many further GIDs; false when there are no more. */
static bool
write_gids(struct report *r, const struct device_info *d)
{
	for (unsigned i = 0; i < GIDS_STEP; i++, r->sub++) {
		const struct verbs_gid *g;

		if (d->card == NULL || r->sub >= d->card->gid_cnt)
			return false;
		g = &d->card->gids[r->sub];
		jw_object(&r->jw, NULL);
		report_gid(&r->jw, "gid", &g->gid);
		jw_string(&r->jw, "type", gid_type_word(g->type));
		jw_uint(&r->jw, "index", g->index);
		jw_string(&r->jw, "interface", devices_interface(worker_devices(r->src.worker), g->ifindex));
		jw_object_end(&r->jw);
	}
	return true;
}

bool
report_devices(struct report *r)
{
	struct device_info d;
	bool there = devices_info(worker_devices(r->src.worker), r->pos, &d);

	if (r->phase == DEVICES_BEGIN) {
		jw_array(&r->jw, "devices");
		r->phase = DEVICES_ITEM;
	}
	if (r->phase == DEVICES_GIDS) {
		/* Another device may stand in its place by now: its GIDs then, and the list is no snapshot. */
		if (there && write_gids(r, &d))
			return true;
		jw_array_end(&r->jw);
		jw_object_end(&r->jw);
		r->pos++;
		r->phase = DEVICES_ITEM;
		return true;
	}
	if (!there) {
		jw_array_end(&r->jw);
		return false;
	}
	begin_device(&r->jw, &d);
	r->sub = 0;
	r->phase = DEVICES_GIDS;
	return true;
}
