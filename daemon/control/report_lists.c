/* The lists: connections, groups, links, RMBs, devices. One object a step, except what a filter leaves out; the GIDs of a
 * device may take several steps. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/addr.h"
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

/* The program at the other end: its address, and on a UNIX socket who it is. */
static void
report_app(struct json_writer *jw, const union net_addr *app)
{
	bool local = app->sa.sa_family == AF_UNIX;
	char text[ADDR_STR_MAX];

	jw_string(jw, "app", app->sa.sa_family != AF_UNSPEC ? net_addr_str(app, text, sizeof(text)) : "");
	jw_int(jw, "app_uid", local && app->un.uid != (uid_t)-1 ? (int64_t)app->un.uid : -1);
	jw_int(jw, "app_pid", local ? app->un.pid : 0);
}

static enum item
write_connection(struct report *r)
{
	const struct control_request *req = &r->req;
	struct smcr_conn_info c = { .state = "" };
	struct json_writer *jw = &r->jw;
	struct session_info s;

	if (!worker_session_next(r->worker, &r->pos, &s))
		return ITEM_NONE;
	if (s.conn != NULL)
		smcr_conn_info(s.conn, &c);
	if ((req->modes & 1u << s.mode) == 0 || (req->service[0] != '\0' && strcmp(req->service, s.service) != 0) ||
	    (req->group != 0 && req->group != c.group_id))
		return ITEM_LEFT_OUT;
	jw_object(jw, NULL);
	jw_uint(jw, "id", s.id);
	jw_uint(jw, "worker", r->nr + 1);
	jw_string(jw, "service", s.service);
	jw_string(jw, "kind", s.kind == CONFIG_INGRESS ? "ingress" : "egress");
	jw_string(jw, "role", s.kind == CONFIG_INGRESS ? "client" : "server");
	jw_string(jw, "mode", control_mode_words[s.mode]);
	jw_string(jw, "state", s.state);
	report_app(jw, &s.app_peer);
	report_sockaddr(jw, "peer", &s.middle_peer);
	report_reason(jw, "reason", &s.diag);
	/* RFC 7609 4.8 and buffers; all zero for a connection that is not (or no more) on SMC-R. */
	jw_string(jw, "smc_state", c.state);
	jw_uint(jw, "group", c.group_id);
	jw_uint(jw, "link", c.link);
	report_peer(jw, &c.peer);
	report_hex32(jw, "token", c.id);
	report_hex32(jw, "peer_token", c.peer_token);
	jw_uint(jw, "sndbuf_bytes", c.sndbuf_size);
	jw_uint(jw, "rmbe_bytes", c.elem_size);
	jw_uint(jw, "rmbe_index", c.elem_idx);
	jw_uint(jw, "peer_rmbe_bytes", c.peer_elem_size);
	jw_uint(jw, "peer_rmbe_index", c.peer_elem_idx);
	jw_uint(jw, "tx_written", c.tx_written);
	jw_uint(jw, "tx_sent", c.tx_sent);
	jw_uint(jw, "tx_consumed", c.tx_consumed);
	jw_uint(jw, "rx_produced", c.rx_produced);
	jw_uint(jw, "rx_consumed", c.rx_consumed);
	jw_bool(jw, "writer_blocked", c.writer_blocked);
	jw_bool(jw, "peer_blocked", c.peer_blocked);
	jw_uint(jw, "bytes_to_app", s.bytes_to_app);
	jw_uint(jw, "bytes_from_app", s.bytes_from_app);
	report_ms(jw, "age_ms", s.age_ns);
	report_ms(jw, "idle_ms", s.idle_ns);
	jw_object_end(jw);
	return ITEM_WRITTEN;
}

static enum item
write_group(struct report *r)
{
	struct json_writer *jw = &r->jw;
	struct smcr_group_info g;
	char peer_id[2 * sizeof(g.peer_id) + 1];

	if (!smcr_group_next(worker_engine(r->worker), &r->pos, &g))
		return ITEM_NONE;
	for (size_t i = 0; i < sizeof(g.peer_id); i++)
		snprintf(peer_id + 2 * i, 3, "%02x", g.peer_id[i]);
	jw_object(jw, NULL);
	jw_uint(jw, "id", g.id);
	jw_uint(jw, "worker", r->nr + 1);
	jw_string(jw, "role", g.role == SMCR_CLIENT ? "client" : "server");
	jw_string(jw, "type", g.type);
	jw_string(jw, "state", g.state);
	jw_string(jw, "peer_id", peer_id);
	jw_string(jw, "peer", g.peer_key);
	report_peer(jw, &g.peer);
	jw_uint(jw, "connections", g.conn_cnt);
	jw_uint(jw, "connections_limit", g.conns_limit);
	jw_uint(jw, "links", g.link_cnt);
	jw_uint(jw, "links_limit", g.links_limit);
	jw_int(jw, "add_link_retry_ms", g.add_retry_ns < 0 ? -1 : g.add_retry_ns / 1000000);
	jw_string(jw, "waits_for", g.waits_for);
	bool any = g.failover_age_ns >= 0;
	jw_object(jw, "last_failover");
	jw_int(jw, "age_ms", any ? g.failover_age_ns / 1000000 : -1);
	jw_int(jw, "duration_us", any ? g.failover_ns / 1000 : -1);
	jw_string(jw, "cause", any ? g.failover_why : "");
	jw_uint(jw, "connections", any ? g.failover_conns : 0);
	jw_object_end(jw);
	jw_uint(jw, "rmbs", g.rmb_cnt);
	jw_uint(jw, "peer_rmbs", g.peer_rmb_cnt);
	jw_uint(jw, "rmb_bytes", g.rmb_bytes);
	jw_uint(jw, "sndbuf_bytes", g.sndbuf_bytes);
	jw_bool(jw, "rfc_cursors", g.rfc_cursors);
	report_ms(jw, "age_ms", g.age_ns);
	jw_object_end(jw);
	return ITEM_WRITTEN;
}

static const char *const path_state_words[] = {
	[RNIC_PATH_UNKNOWN] = "unknown",
	[RNIC_PATH_ACTIVE] = "active",
	[RNIC_PATH_DOUBTED] = "doubted",
	[RNIC_PATH_INACTIVE] = "inactive",
	[RNIC_PATH_UNCONFIRMED] = "unconfirmed",
};

static void
report_ip_addr(struct json_writer *jw, const char *key, const struct sockaddr_storage *ss)
{
	char text[ADDR_STR_MAX];

	jw_string(jw, key, addr_format(ss, text, sizeof(text)));
}

/* As an IP address, which a GID of iWARP is. */
static void
report_ip(struct json_writer *jw, const char *key, const struct rnic_gid *gid)
{
	struct sockaddr_storage ss = { 0 };

	addr_from_v6(gid->b, 0, &ss);
	report_ip_addr(jw, key, &ss);
}

static int64_t
if_known(uint32_t v)
{
	return v != 0 ? (int64_t)v : -1;
}

/* What carries a link. */
static void
write_conn(struct json_writer *jw, const struct rnic_conn_info *c)
{
	jw_int(jw, "retransmits", c->retransmits);
	jw_int(jw, "unacked", c->unacked);
	jw_array(jw, "paths");
	for (unsigned i = 0; i < c->path_cnt; i++) {
		const struct rnic_path *p = &c->paths[i];

		jw_object(jw, NULL);
		report_ip(jw, "address", &p->to);
		jw_string(jw, "state", path_state_words[p->state]);
		jw_bool(jw, "primary", p->primary);
		jw_int(jw, "rtt_us", if_known(p->rtt_us));
		jw_int(jw, "rto_us", if_known(p->rto_us));
		jw_uint(jw, "mtu", p->mtu);
		jw_uint(jw, "cwnd_bytes", p->cwnd);
		jw_object_end(jw);
	}
	jw_array_end(jw);
}

static enum item
write_link(struct report *r)
{
	struct json_writer *jw = &r->jw;
	struct smcr_link_info l;

	if (!smcr_link_next(worker_engine(r->worker), &r->pos, &l))
		return ITEM_NONE;
	if (r->req.group != 0 && r->req.group != l.group_id)
		return ITEM_LEFT_OUT;
	jw_object(jw, NULL);
	jw_uint(jw, "worker", r->nr + 1);
	jw_uint(jw, "group", l.group_id);
	jw_uint(jw, "number", l.number);
	report_hex32(jw, "user_id", l.user_id);
	report_hex32(jw, "peer_user_id", l.peer_user_id);
	report_peer(jw, &l.peer);
	jw_string(jw, "state", l.state);
	jw_string(jw, "device", l.device);
	jw_string(jw, "transport", rnic_transport_str(l.transport));
	report_gid(jw, "gid", &l.gid);
	report_gid(jw, "peer_gid", &l.peer_gid);
	report_mac(jw, "mac", l.mac);
	report_mac(jw, "peer_mac", l.peer_mac);
	jw_uint(jw, "qpn", l.qpn);
	jw_uint(jw, "peer_qpn", l.peer_qpn);
	jw_uint(jw, "mtu", clc_mtu_bytes(l.mtu_code));
	jw_uint(jw, "connections", l.conn_cnt);
	report_ms(jw, "idle_ms", l.idle_ns);
	jw_int(jw, "rtt_us", l.rtt_ns < 0 ? -1 : l.rtt_ns / 1000);
	jw_int(jw, "peer_ird", l.peer_depths.ird);
	jw_int(jw, "peer_ord", l.peer_depths.ord);
	write_conn(jw, &l.conn);
	jw_object_end(jw);
	return ITEM_WRITTEN;
}

static enum item
write_rmb(struct report *r)
{
	struct json_writer *jw = &r->jw;
	struct smcr_rmb_info m;

	if (!smcr_rmb_next(worker_engine(r->worker), &r->pos, &m))
		return ITEM_NONE;
	if (r->req.group != 0 && r->req.group != m.group_id)
		return ITEM_LEFT_OUT;
	jw_object(jw, NULL);
	jw_uint(jw, "worker", r->nr + 1);
	jw_uint(jw, "group", m.group_id);
	jw_uint(jw, "number", m.number);
	jw_string(jw, "side", m.remote ? "remote" : "local");
	jw_string(jw, "state", m.state);
	jw_uint(jw, "element_bytes", m.elem_size);
	jw_uint(jw, "elements", m.elem_cnt);
	jw_uint(jw, "used", m.used);
	jw_uint(jw, "quarantined", m.quarantined);
	jw_object_end(jw);
	return ITEM_WRITTEN;
}

static const char *const gid_type_words[] = {
	[RNIC_GID_NONE] = "",
	[RNIC_GID_IB] = "ib",
	[RNIC_GID_ROCE_V1] = "roce_v1",
	[RNIC_GID_ROCE_V2] = "roce_v2",
};

const char *const report_device_stats[] = {
	/* of cards */
	"sends_posted", "writes_posted", "doorbells", "completions", "polls", "wakeups", "rnr_retry_exc", "retry_exc",
	"remote_access_errs", "flushed", "other_errs", "async_events", "reads_sent", "mpa_refused_token",
	"mpa_refused_parked",
	/* of soft iWARP */
	"fpdus_sent", "fpdus_received", "bytes_sent", "bytes_received", "reads_served", "mpa_refused_address",
	"mpa_bad", "terminates_sent", "terminates_received", "crc_errors", "recv_stalls", "accept_pauses",
	"linger_refused", "strangers_limited", "sctp_retransmits", "no_memory", NULL
};

static void
begin_device(struct json_writer *jw, unsigned nr, const struct device_info *d)
{
	const struct verbs_port *card = d->card;

	jw_object(jw, NULL);
	jw_string(jw, "name", d->rnic.name);
	jw_uint(jw, "worker", nr + 1);
	jw_string(jw, "provider", d->rnic.provider);
	jw_string(jw, "transport", rnic_transport_str(d->rnic.transport));
	jw_string(jw, "stack", d->rnic.stack != NULL ? d->rnic.stack : "");
	jw_string(jw, "profile", d->rnic.profile != NULL ? d->rnic.profile : "");
	jw_string(jw, "port", d->rnic.port == RNIC_PORT_UP ? "up" : "down");
	jw_string(jw, "interface", d->interface);
	jw_uint(jw, "interface_mtu", d->interface_mtu);
	report_gid(jw, "gid", &d->rnic.gid);
	jw_array(jw, "addresses");
	if (rnic_is_iwarp(d->rnic.transport))
		report_ip(jw, NULL, &d->rnic.gid);
	for (unsigned i = 0; d->more_addrs != NULL && i < d->more_addrs->cnt; i++)
		report_ip_addr(jw, NULL, &d->more_addrs->at[i]);
	jw_array_end(jw);
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
	/* Members that only a card has; "", 0 and -1 for a device of software. */
	jw_string(jw, "card", card != NULL ? card->dev : "");
	jw_uint(jw, "card_port", card != NULL ? card->port : 0);
	jw_string(jw, "link_layer", card == NULL ? "" : card->infiniband ? "infiniband" : "ethernet");
	jw_string(jw, "gid_type", card != NULL ? gid_type_words[d->gid.type] : "");
	jw_int(jw, "gid_index", card != NULL ? (int64_t)d->gid.index : -1);
	jw_object(jw, "stats");
	for (const char *const *name = report_device_stats; *name != NULL; name++) {
		uint64_t value = 0;

		for (unsigned i = 0; i < d->stat_cnt; i++)
			if (strcmp(d->stats[i].name, *name) == 0)
				value = d->stats[i].value;
		jw_uint(jw, *name, value);
	}
	jw_object_end(jw);
	jw_array(jw, "gids");
}

static enum item
write_device(struct report *r)
{
	struct json_writer *jw = &r->jw;
	struct device_info d;
	bool there = devices_info(worker_devices(r->worker), r->pos, &d);

	if (r->phase != LIST_GIDS) {
		if (!there)
			return ITEM_NONE;
		begin_device(jw, r->nr, &d);
		r->sub = 0;
		r->phase = LIST_GIDS;
		return ITEM_WRITTEN;
	}
	/* Another device may stand in its place by now: its GIDs then, and the list is no snapshot. */
	unsigned cnt = there && d.card != NULL ? d.card->gid_cnt : 0;
	for (unsigned i = 0; i < GIDS_STEP && r->sub < cnt; i++, r->sub++) {
		const struct verbs_gid *g = &d.card->gids[r->sub];

		jw_object(jw, NULL);
		report_gid(jw, "gid", &g->gid);
		jw_string(jw, "type", gid_type_words[g->type]);
		jw_uint(jw, "index", g->index);
		jw_string(jw, "interface", devices_interface(worker_devices(r->worker), g->ifindex));
		jw_object_end(jw);
	}
	if (r->sub >= cnt) {
		jw_array_end(jw);
		jw_object_end(jw);
		r->pos++;
		r->phase = LIST_ITEMS;
	}
	return ITEM_WRITTEN;
}

bool
report_list(struct report *r)
{
	static enum item (*const write_next[CONTROL_COMMAND_CNT])(struct report *) = {
		[CONTROL_CONNECTIONS] = write_connection,
		[CONTROL_GROUPS] = write_group,
		[CONTROL_LINKS] = write_link,
		[CONTROL_RMBS] = write_rmb,
		[CONTROL_DEVICES] = write_device,
	};

	if (r->phase == LIST_BEGIN) {
		jw_array(&r->jw, control_commands[r->req.command].name);
		r->phase = LIST_ITEMS;
	}
	for (unsigned i = 0; i < REPORT_STEP_ITEMS; i++) {
		enum item item = write_next[r->req.command](r);

		if (item == ITEM_NONE && report_next_worker(r))
			return true;
		if (item == ITEM_NONE)
			jw_array_end(&r->jw);
		if (item != ITEM_LEFT_OUT)
			return item == ITEM_WRITTEN;
	}
	return true;
}
