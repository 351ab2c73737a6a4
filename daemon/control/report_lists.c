/* The lists: connections, groups, links, RMBs. One object a step, except what a filter leaves out. Devices have their own
 * file. */
#include <inttypes.h>
#include <stdio.h>

#include "daemon/control/report.h"
#include "wire/clc.h"

enum {
	LIST_BEGIN = 1,
	LIST_ITEMS,
};

/* Opens the list in the first step of a report. */
static void
begin_list(struct report *r, const char *key)
{
	if (r->phase == LIST_BEGIN) {
		jw_array(&r->jw, key);
		report_next_phase(r);
	}
}

static bool
end_list(struct report *r)
{
	jw_array_end(&r->jw);
	return false;
}

/* RFC 7609 4.8 and buffers; all zero for a connection that is not (or no more) on SMC-R. */
static void
write_smc_part(struct json_writer *jw, const struct smcr_conn_info *c)
{
	jw_string(jw, "smc_state", c->state);
	jw_uint(jw, "group", c->group_id);
	jw_uint(jw, "link", c->link);
	report_hex32(jw, "token", c->id);
	report_hex32(jw, "peer_token", c->peer_token);
	jw_uint(jw, "sndbuf_bytes", c->sndbuf_size);
	jw_uint(jw, "rmbe_bytes", c->elem_size);
	jw_uint(jw, "rmbe_index", c->elem_idx);
	jw_uint(jw, "peer_rmbe_bytes", c->peer_elem_size);
	jw_uint(jw, "peer_rmbe_index", c->peer_elem_idx);
	jw_uint(jw, "tx_written", c->tx_written);
	jw_uint(jw, "tx_sent", c->tx_sent);
	jw_uint(jw, "tx_consumed", c->tx_consumed);
	jw_uint(jw, "rx_produced", c->rx_produced);
	jw_uint(jw, "rx_consumed", c->rx_consumed);
	jw_bool(jw, "writer_blocked", c->writer_blocked);
	jw_bool(jw, "peer_blocked", c->peer_blocked);
}

static void
write_connection(struct json_writer *jw, const struct session_info *s, const struct smcr_conn_info *c)
{
	bool ingress = s->kind == CONFIG_INGRESS;

	jw_object(jw, NULL);
	jw_uint(jw, "id", s->id);
	jw_string(jw, "service", s->service);
	jw_string(jw, "kind", ingress ? "ingress" : "egress");
	jw_string(jw, "role", ingress ? "client" : "server");
	jw_string(jw, "mode", control_mode_words[s->mode]);
	jw_string(jw, "state", s->state);
	report_sockaddr(jw, "app", &s->app_peer);
	report_sockaddr(jw, "peer", &s->middle_peer);
	report_reason(jw, "reason", &s->diag);
	write_smc_part(jw, c);
	jw_uint(jw, "bytes_to_app", s->bytes_to_app);
	jw_uint(jw, "bytes_from_app", s->bytes_from_app);
	report_ms(jw, "age_ms", s->age_ns);
	report_ms(jw, "idle_ms", s->idle_ns);
	jw_object_end(jw);
}

static bool
is_wanted(const struct control_request *req, const struct session_info *s, const struct smcr_conn_info *c)
{
	return (req->modes & 1u << s->mode) != 0 &&
	    (req->service[0] == '\0' || strcmp(req->service, s->service) == 0) &&
	    (req->group == 0 || req->group == c->group_id);
}

bool
report_connections(struct report *r)
{
	struct session_info s;

	begin_list(r, "connections");
	for (unsigned i = 0; i < REPORT_STEP_ITEMS; i++) {
		struct smcr_conn_info c = { .state = "" };

		if (!worker_session_next(r->src.worker, &r->pos, &s))
			return end_list(r);
		if (s.conn != NULL)
			smcr_conn_info(s.conn, &c);
		if (is_wanted(&r->req, &s, &c)) {
			write_connection(&r->jw, &s, &c);
			return true;
		}
	}
	return true;
}

static void
write_last_failover(struct json_writer *jw, const struct smcr_group_info *g)
{
	bool any = g->failover_age_ns >= 0;

	jw_object(jw, "last_failover");
	jw_int(jw, "age_ms", any ? g->failover_age_ns / 1000000 : -1);
	jw_int(jw, "duration_us", any ? g->failover_ns / 1000 : -1);
	jw_string(jw, "cause", any ? g->failover_why : "");
	jw_uint(jw, "connections", any ? g->failover_conns : 0);
	jw_object_end(jw);
}

bool
report_groups(struct report *r)
{
	struct json_writer *jw = &r->jw;
	struct smcr_group_info g;
	char peer_id[2 * sizeof(g.peer_id) + 1];

	begin_list(r, "groups");
	if (!smcr_group_next(worker_engine(r->src.worker), &r->pos, &g))
		return end_list(r);
	for (size_t i = 0; i < sizeof(g.peer_id); i++)
		snprintf(peer_id + 2 * i, 3, "%02x", g.peer_id[i]);
	jw_object(jw, NULL);
	jw_uint(jw, "id", g.id);
	jw_string(jw, "role", g.role == SMCR_CLIENT ? "client" : "server");
	jw_string(jw, "type", g.type);
	jw_string(jw, "state", g.state);
	jw_string(jw, "peer_id", peer_id);
	jw_string(jw, "peer", g.peer_key);
	jw_uint(jw, "connections", g.conn_cnt);
	jw_uint(jw, "links", g.link_cnt);
	jw_uint(jw, "links_limit", g.links_limit);
	jw_int(jw, "add_link_retry_ms", g.add_retry_ns < 0 ? -1 : g.add_retry_ns / 1000000);
	jw_string(jw, "waits_for", g.waits_for);
	write_last_failover(jw, &g);
	jw_uint(jw, "rmbs", g.rmb_cnt);
	jw_uint(jw, "peer_rmbs", g.peer_rmb_cnt);
	jw_uint(jw, "rmb_bytes", g.rmb_bytes);
	jw_uint(jw, "sndbuf_bytes", g.sndbuf_bytes);
	jw_bool(jw, "rfc_cursors", g.rfc_cursors);
	report_ms(jw, "age_ms", g.age_ns);
	jw_object_end(jw);
	return true;
}

static void
write_link(struct json_writer *jw, const struct smcr_link_info *l)
{
	jw_object(jw, NULL);
	jw_uint(jw, "group", l->group_id);
	jw_uint(jw, "number", l->number);
	report_hex32(jw, "user_id", l->user_id);
	report_hex32(jw, "peer_user_id", l->peer_user_id);
	jw_string(jw, "state", l->state);
	jw_string(jw, "device", l->device);
	report_gid(jw, "gid", &l->gid);
	report_gid(jw, "peer_gid", &l->peer_gid);
	report_mac(jw, "mac", l->mac);
	report_mac(jw, "peer_mac", l->peer_mac);
	jw_uint(jw, "qpn", l->qpn);
	jw_uint(jw, "peer_qpn", l->peer_qpn);
	jw_uint(jw, "mtu", clc_mtu_bytes(l->mtu_code));
	jw_uint(jw, "connections", l->conn_cnt);
	report_ms(jw, "idle_ms", l->idle_ns);
	jw_int(jw, "rtt_us", l->rtt_ns < 0 ? -1 : l->rtt_ns / 1000);
	jw_int(jw, "peer_ird", l->peer_depths.ird);
	jw_int(jw, "peer_ord", l->peer_depths.ord);
	jw_object_end(jw);
}

bool
report_links(struct report *r)
{
	struct smcr_link_info l;

	begin_list(r, "links");
	for (unsigned i = 0; i < REPORT_STEP_ITEMS; i++) {
		if (!smcr_link_next(worker_engine(r->src.worker), &r->pos, &l))
			return end_list(r);
		if (r->req.group == 0 || r->req.group == l.group_id) {
			write_link(&r->jw, &l);
			return true;
		}
	}
	return true;
}

bool
report_rmbs(struct report *r)
{
	struct json_writer *jw = &r->jw;
	struct smcr_rmb_info m;

	begin_list(r, "rmbs");
	for (unsigned i = 0; i < REPORT_STEP_ITEMS; i++) {
		if (!smcr_rmb_next(worker_engine(r->src.worker), &r->pos, &m))
			return end_list(r);
		if (r->req.group != 0 && r->req.group != m.group_id)
			continue;
		jw_object(jw, NULL);
		jw_uint(jw, "group", m.group_id);
		jw_uint(jw, "number", m.number);
		jw_string(jw, "side", m.remote ? "remote" : "local");
		jw_string(jw, "state", m.state);
		jw_uint(jw, "element_bytes", m.elem_size);
		jw_uint(jw, "elements", m.elem_cnt);
		jw_uint(jw, "used", m.used);
		jw_uint(jw, "quarantined", m.quarantined);
		jw_object_end(jw);
		break;
	}
	return true;
}
