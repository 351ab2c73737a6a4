/* A worker of fixed data; see fake_worker.h. */
#include "fake_worker.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/addr.h"
#include "control/counters.h"
#include "daemon/control/report.h"
#include "daemon/session/end_cause.h"
#include "daemon/target/targets.h"
#include "daemon/net/tcp_option.h"
#include "wire/clc.h"
#include "tests/seeded_rng.h"

#pragma GCC diagnostic ignored "-Wunused-parameter"

#define S INT64_C(1000000000)
#define CHECKS_MAX 16

#define FAKE_DEVS 3

struct smcr_conn {
	struct smcr_conn_info info;
};

struct smcr {
	void (*trace)(void *, const struct smcr_trace *);
	void *trace_ctx;
	struct smcr_counters counters;
};

struct worker {
	bool full;
	struct smcr eng;
	struct rnic_dev dev[FAKE_DEVS];
	struct session_pool sessions; /* its fallbacks only */

	struct {
		void (*done)(void *, const struct check_result *);
		void *arg;
		uint16_t port;
	} checks[CHECKS_MAX];
};

struct fake_worker fake_worker;

static void
addr(struct sockaddr_storage *ss, const char *text)
{
	if (addr_parse_port(text, ss) != 0)
		abort();
}

/* -- devices -- */

static void
query(struct rnic_dev *dev, struct rnic_info *info)
{
	static const struct rnic_info infos[] = {
		{ .name = "siw0",
		    .provider = "siw",
		    .transport = RNIC_TRANSPORT_IWARP,
		    .port = RNIC_PORT_UP,
		    .gid = { { [10] = 0xff, 0xff, 192, 0, 2, 1 } },
		    .mac = { 2, 0, 0, 0, 0, 1 },
		    .mtu_code = 5,
		    .mpa_port = 40001,
		    .max_qp = 1024,
		    .max_mr = 65536,
		    .max_sq = 512,
		    .max_rq = 512,
		    .max_sge = 4,
		    .max_inline = 64,
		    .qp_cnt = 2,
		    .mr_cnt = 12,
		    .mr_bytes = 3 << 20 },
		{ .name = "mlx5_0",
		    .provider = "mlx5",
		    .transport = RNIC_TRANSPORT_ROCE,
		    .port = RNIC_PORT_DOWN,
		    .gid = { { 0xfe, 0x80, [8] = 0x12, 0x34, 0x56, 0x78, 0x9a, 0xbc, 0xde, 7 } },
		    .gid_type = RNIC_GID_ROCE_V2,
		    .mac = { 0x94, 0x6d, 0xae, 1, 2, 3 },
		    .mtu_code = 3,
		    .max_qp = 131072,
		    .max_mr = 1 << 24,
		    .max_sq = 32768,
		    .max_rq = 32768,
		    .max_sge = 30,
		    .max_inline = 220 },
		{ .name = "siw1",
		    .provider = "siw",
		    .transport = RNIC_TRANSPORT_IWARP_SCTP_UDP,
		    .stack = "user",
		    .profile = "rfc5043",
		    .port = RNIC_PORT_UP,
		    .gid = { { [10] = 0xff, 0xff, 192, 0, 2, 1 } },
		    .mac = { 2, 0, 0, 0, 0, 1 },
		    .mtu_code = 3,
		    .mpa_port = 9899,
		    .max_qp = 1024,
		    .max_mr = 65536,
		    .max_sq = 512,
		    .max_rq = 512,
		    .max_sge = 4,
		    .max_inline = 64 },
	};

	*info = infos[(uintptr_t)dev->ctx];
}

static const struct rnic_ops dev_ops = { .query = query };

/* The devices of a worker are the worker itself. */
const struct devices *
worker_devices(const struct worker *w)
{
	return (const void *)w;
}

struct rnic_dev *
devices_get(const struct devices *devs, unsigned i)
{
	struct worker *w = (void *)(uintptr_t)devs;

	return w->full && i < FAKE_DEVS ? &w->dev[i] : NULL;
}

/* Indices 7 and 8 are eth7 and eth7.100. */
const char *
devices_interface(const struct devices *devs, unsigned index)
{
	return index == 7 ? "eth7" : index == 8 ? "eth7.100" : "";
}

bool
devices_have_addr(const struct devices *devs, const struct sockaddr_storage *ss)
{
	return false;
}

/* The card has as many GIDs as there may be, so that they do not fit in one step. */
static void
fill_card(struct verbs_port *p)
{
	*p = (struct verbs_port){
		.dev = "mlx5_0",
		.provider = "mlx5",
		.port = 2,
		.state = RNIC_PORT_DOWN,
		.mtu_code = 3,
		.ifindex = 7,
		.gid_cnt = VERBS_GIDS_MAX,
	};
	for (unsigned i = 0; i < p->gid_cnt; i++)
		p->gids[i] = (struct verbs_gid){
			.gid = { { 0xfe, 0x80, [8] = 0x12, 0x34, 0x56, 0x78, 0x9a, 0xbc, 0xde, (uint8_t)(6 + i) } },
			.type = i % 2 == 0 ? RNIC_GID_ROCE_V1 : RNIC_GID_ROCE_V2,
			.index = 1000 + i,
			.ifindex = i < 60 ? 7
			    : i < 63      ? 8
			                  : 9,
		};
}

bool
devices_info(const struct devices *devs, unsigned i, struct device_info *info)
{
	static struct verbs_port card;
	const struct worker *w = (const void *)devs;

	if (!w->full || i >= FAKE_DEVS)
		return false;
	*info = (struct device_info){
		.rnic = rnic_query((struct rnic_dev *)&w->dev[i]), .interface = "eth0", .interface_mtu = 1500
	};
	if (i == 0) {
		static const char *const counted[] = { "fpdus_sent", "mpa_refused_token", "mpa_bad", "crc_errors" };

		for (info->stat_cnt = 0; info->stat_cnt < 4; info->stat_cnt++)
			info->stats[info->stat_cnt] = (struct rnic_stat){ counted[info->stat_cnt],
				601 + info->stat_cnt };
		return true;
	}
	if (i == 2) {
		static struct siw_addrs more = { .cnt = 2 };

		addr(&more.at[0], "198.51.100.1:1");
		addr(&more.at[1], "[2001:db8::1]:1");
		info->more_addrs = &more;
		return true;
	}
	fill_card(&card);
	info->interface = "eth7";
	info->interface_mtu = 9000;
	info->card = &card;
	info->gid = card.gids[1];
	for (info->stat_cnt = 0; info->stat_cnt < 15; info->stat_cnt++)
		info->stats[info->stat_cnt] = (struct rnic_stat){ report_device_stats[info->stat_cnt],
			701 + info->stat_cnt };
	return true;
}

/* -- services -- */

static const struct config_service *
service_cfg(unsigned i)
{
	static struct config_net everybody[1024];
	static struct config_service s[2];
	static struct sockaddr_storage addrs[3];
	static struct config_target to[3] = { { .host = "server.example", .port = 443, .addrs = addrs, .addr_cnt = 2 },
		{ .host = "_web._tcp.example.com", .srv = true },
		{ .host = "2001:db8::5", .port = 5432, .addrs = addrs + 2, .addr_cnt = 1 } };

	addr(&addrs[0], "192.0.2.1:443");
	addr(&addrs[1], "[2001:db8::1]:443");
	addr(&addrs[2], "[2001:db8::5]:5432");

	s[0] = (struct config_service){ .kind = CONFIG_INGRESS,
		.name = "web",
		.to = to,
		.to_cnt = 2,
		.allow = everybody,
		.allow_cnt = fake_worker.allow_cnt,
		.probe = { CONFIG_PROBE_AUTO, 5000, 2000, 2, 3, "", "" },
		.max_connections = 1000 };
	addr(&s[0].listen, "127.0.0.1:8080");
	s[1] = (struct config_service){ .kind = CONFIG_EGRESS,
		.name = "db \"main\" é\x1b[31m",
		.to = to + 2,
		.to_cnt = 1,
		.peer = SMCR_PEER_LINUX,
		.max_connections = 20 };
	addr(&s[1].listen, "[::]:15432");
	return &s[i];
}

/* Those of an idle daemon have not been found. */
static struct targets *
service_targets(bool full, unsigned i)
{
	static struct targets_all all;
	static struct targets *made[2][2];
	struct config_target to[2];
	struct config_service cfg = *service_cfg(i);
	struct endpoint_pick pick;
	struct rng rng;
	uint64_t tried = 0;

	if (made[full][i] != NULL)
		return made[full][i];
	if (all.list.next == NULL)
		targets_all_init(&all);
	memcpy(to, cfg.to, cfg.to_cnt * sizeof(to[0]));
	to[0].addr_cnt = full ? to[0].addr_cnt : 0;
	cfg.to = to;
	snprintf(cfg.name, sizeof(cfg.name), "%d%u", full, i);
	struct targets *t = made[full][i] = targets_get(&all, &cfg);
	if (i > 0)
		return t;
	(void)targets_unresolved(t, 1, "NXDOMAIN, there is no such name");
	rng_init_seeded(&rng, 1);
	struct endpoints *es = targets_lock(t);
	for (unsigned k = 0; endpoints_pick(es, 0, &rng, &tried, &pick); k++)
		(void)(k == 0 ? endpoints_good(es, &pick, false)
		              : endpoints_bad(es, &pick, ENDPOINT_CONNECT, "Connection refused", 0, 10 * S, 0));
	tried = 0;
	(void)endpoints_pick(es, 0, &rng, &tried, &pick);
	if (full) {
		es->at[0].health = (struct health){ .state = HEALTH_UP, .since_ns = 1 * S, .probed_ns = 59 * S };
		es->at[1].health =
		    (struct health){ .state = HEALTH_DOWN, .since_ns = 50 * S, .why = "Connection refused" };
	}
	targets_unlock(t);
	return t;
}

static const struct service_stats *
service_stats(bool full, uint32_t i)
{
	static struct service_reasons reasons;
	static const struct service_stats all[] = {
		{ .modes = { 1, 1, 1 },
		    .bytes = { 4096, 1234567890123 },
		    .setup = { .cnt = { 3, 2, [5] = 1 }, .sum = 12345678 },
		    .connect = { .cnt = { 6 }, .sum = 600000 },
		    .life = { .cnt = { [8] = 4, [HISTOGRAM_BOUNDS] = 1 }, .sum = 200000000000000000 },
		    .reasons = &reasons },
		{ .modes = { 0, 2, 0 } },
	}, none;

	memset(&reasons, 0, sizeof(reasons));
	tally_count(&reasons.local, CLC_DIAG_NO_DEVICE);
	tally_count(&reasons.peer, 0xdeadbeef);
	tally_count(&reasons.reset, end_cause_event(SEV_APP_RESET));
	tally_count(&reasons.reset, end_cause_engine(SMCR_R_LINK_LOST));
	tally_count(&reasons.reset, 0);
	return full ? &all[i] : &none;
}

static void
fill_sample(struct history_sample *s, unsigned i)
{
	const uint32_t busy = i < 60 ? 0 : i < 100 ? i - 60 : 3;

	*s = (struct history_sample){ .bytes = { busy * busy * 100000, busy * 3000 },
		.modes = { i % 40 == 0, busy, i >= 110 },
		.accepted = busy / 2,
		.refused = i >= 100 && i < 104 ? 25 : 0,
		.rtt_us = busy > 0 ? 150 + i : 0 };
}

bool
worker_service_next(const struct worker *w, uint32_t *pos, struct service_info *out)
{
	static struct history history = { .end = 600, .moved = 599 };
	/* connections, disabled, closed, accepted; refused: allow, max, per peer, connect, fallback; fallbacks, resets, refused: disabled;
	 * bytes; clients unused, client_bind_failed; refused: header; destinations: not captured, no via, own, taken, refused, unused; resets by clients */
	static const struct service_info infos[] = { { NULL, NULL, NULL, NULL, 3, false, false, 10, 1, 2, 5, 3, 6, 2, 4,
		                                         7, 4096, 1234567890123, 5, 8, 9, 11, 12, 13, 14, 15, 16, 3 },
		{ NULL, NULL, NULL, NULL, 2, true, false, 20, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
		    0 } };

	if (*pos >= (w->full ? 2u : 1u))
		return false;
	*out = w->full ? infos[*pos] : (struct service_info){ 0 };
	out->cfg = service_cfg(*pos);
	out->targets = service_targets(w->full, *pos);
	out->stats = service_stats(w->full, *pos);
	/* Of one service, which has been quiet, busy, and in trouble. */
	for (unsigned i = 0; i < HISTORY_SAMPLES; i++)
		fill_sample(&history.at[i], i);
	out->history = w->full && *pos == 0 ? &history : NULL;
	(*pos)++;
	return true;
}

bool
worker_service_find(const struct worker *w, const char *name, struct service_info *info, struct outage_info *outage)
{
	static const struct outage_info down = { "cannot be connected: Connection refused", 7, 90061000000 };

	for (uint32_t pos = 0; worker_service_next(w, &pos, info);) {
		if (strcmp(info->cfg->name, name) != 0)
			continue;
		if (outage != NULL)
			*outage = w->full && info->cfg->kind == CONFIG_INGRESS ? down
			                                                       : (struct outage_info){ .text = "" };
		return true;
	}
	return false;
}

const char *
smcr_reason_str(enum smcr_reason r)
{
	return r == SMCR_R_LINK_LOST ? "last link lost" : "another reason";
}

#define LINUX_PEER                                                       \
	{                                                                \
		2, true, 1, CLC_OS_LINUX, "LAB-1", "node\x1b[31m\"b\x9b" \
	}
#define SMCRD_PEER           \
	{                    \
		.version = 1 \
	}

/* -- sessions -- */

static struct smcr_conn conns[] = {
	{ { 0x1000a, NULL, SMCR_CLIENT, 1, 1, "ACTIVE", 0xbeef, 65536, 32768, 65536, 3, 4, 123456789, 123456000,
	    123450000, 4096, 4000, true, false, 5 * S, LINUX_PEER, SMCR_PHASE_NONE, false } },
	{ { 0x1000b, NULL, SMCR_SERVER, 2, 2, "PEERCLOSEWAIT1", 0x20001, 16384, 524288, 65536, 1, 255, 7, 7, 7, 0, 0,
	    false, true, 90061 * S, SMCRD_PEER, SMCR_PHASE_NONE, true } },
	{ { .id = 0x1000c, .role = SMCR_CLIENT, .state = "CLC: Accept awaited", .age_ns = S / 10 } },
};

static const struct {
	enum config_kind kind;
	enum session_mode mode;
	const char *state;
	struct smcr_diag diag;
	struct smcr_conn *conn;
	uint64_t to_app, from_app;
	int64_t age_ns, idle_ns;
} sessions[] = {
	{ CONFIG_INGRESS, SESSION_SMCR, "established", { 0 }, &conns[0], 4000, 123456789, 5 * S, S / 100 },
	{ CONFIG_EGRESS, SESSION_SMCR, "closing", { 0 }, &conns[1], 0, 7, 90061 * S, 61 * S },
	{ CONFIG_INGRESS, SESSION_TCP, "established",
	    { .local = CLC_DIAG_PEER_DECLINED, .peer = CLC_DIAG_NO_DEVICE, .offered = 0x8f }, NULL, 1 << 20, 1 << 10,
	    3600 * S, 3 * S },
	{ CONFIG_EGRESS, SESSION_TCP, "established",
	    { .local = CLC_DIAG_SYNC,
	        .out_of_sync = true,
	        .held_off = true,
	        .over = "iwarp-sctp",
	        .sctp_held_off = true },
	    NULL, 0, 0, 59 * S, 59 * S },
	{ CONFIG_INGRESS, SESSION_SETUP, "rendezvous", { 0 }, &conns[2], 0, 0, S / 10, 0 },
};

bool
worker_session_next(const struct worker *w, uint32_t *pos, struct session_info *out)
{
	unsigned i = fake_worker.sessions <= 5 ? *pos : 0;
	struct sockaddr_storage app;

	if (*pos >= fake_worker.sessions)
		return false;
	fake_worker.looked_at++;
	*out = (struct session_info){
		.id = ++*pos,
		.service = service_cfg(sessions[i].kind == CONFIG_EGRESS)->name,
		.kind = sessions[i].kind,
		.mode = sessions[i].mode,
		.state = sessions[i].state,
		.diag = sessions[i].diag,
		.conn = sessions[i].conn,
		.protection = i % 2 == 0 ? "clear" : "auth",
		.suite = i % 2 == 0 ? "" : "TLS_AES_128_GCM_SHA256",
		.proven = i % 2 == 0 ? "" : "spiffe://example.org/gw/b",
		.bytes_to_app = sessions[i].to_app,
		.bytes_from_app = sessions[i].from_app,
		.age_ns = sessions[i].age_ns,
		.idle_ns = sessions[i].idle_ns,
	};
	addr(&app, "127.0.0.1:50001");
	net_addr_set(&out->app_peer, &app);
	/* One of each kind on a UNIX socket. */
	if (i == 2)
		out->app_peer.un = (struct net_unix){ .family = AF_UNIX, .uid = 1000, .pid = 4711 };
	if (i == 3)
		out->app_peer.un = (struct net_unix){
			.family = AF_UNIX, .uid = 0, .pid = 17, .path = "/run/postgresql/.s.PGSQL.5432"
		};
	addr(&out->middle_peer, out->kind == CONFIG_INGRESS ? "192.0.2.9:443" : "[2001:db8::9]:33333");
	return true;
}

void
smcr_conn_info(const struct smcr_conn *c, struct smcr_conn_info *out)
{
	*out = c->info;
}

int64_t
smcr_rtt_ns(const struct smcr *eng, uint32_t group)
{
	return -1;
}

/* -- groups, links, RMBs -- */

bool
smcr_group_next(const struct smcr *eng, uint32_t *pos, struct smcr_group_info *out)
{
	static const struct smcr_group_info groups[] = {
		{ .id = 1,
		    .role = SMCR_CLIENT,
		    .peer_id = { 0x12, 0x34, 2, 0, 0, 0, 0, 9 },
		    .peer_key = "192.0.2.9:443",
		    .peer = LINUX_PEER,
		    .conns_limit = 16,
		    .state = "active",
		    .type = "single",
		    .conn_cnt = 1,
		    .link_cnt = 1,
		    .rmb_cnt = 1,
		    .peer_rmb_cnt = 1,
		    .rmb_bytes = 1 << 20,
		    .sndbuf_bytes = 1 << 16,
		    .age_ns = 61 * S,
		    .links_limit = 2,
		    .waits_for = "CONFIRM LINK",
		    .add_retry_ns = 9 * S,
		    .failover_age_ns = -1,
		    .failover_why = "" },
		{ .id = 2,
		    .role = SMCR_SERVER,
		    .level = CONFIG_SECURE_AUTH,
		    .suite = 0x1301,
		    .peer_name = "spiffe://example.org/gw/<a>",
		    .peer_id = { 0xff, 1, 0x94, 0x6d, 0xae, 9, 9, 9 },
		    .peer_key = "",
		    .peer = SMCRD_PEER,
		    .conns_limit = 255,
		    .state = "draining",
		    .type = "symmetric",
		    .rfc_cursors = true,
		    .conn_cnt = 255,
		    .link_cnt = 2,
		    .rmb_cnt = 1,
		    .peer_rmb_cnt = 0,
		    .rmb_bytes = 255 * 16384,
		    .sndbuf_bytes = 255 * 65536,
		    .age_ns = 200000 * S,
		    .links_limit = 8,
		    .waits_for = "",
		    .add_retry_ns = -1,
		    .failover_age_ns = 192 * S,
		    .failover_ns = 4100000,
		    .failover_why = "port down",
		    .failover_conns = 17 },
	};

	if (eng->counters.conns_client == 0 || *pos >= 2)
		return false;
	*out = groups[(*pos)++];
	return true;
}

/* The devices of links and their peers. */
static const struct {
	const char *name;
	struct rnic_gid gid;
	uint8_t mac[6];
} ports[] = {
	{ "siw0", { { [10] = 0xff, 0xff, 192, 0, 2, 1 } }, { 2, 0, 0, 0, 0, 1 } },
	{ "siw1", { { [10] = 0xff, 0xff, 192, 0, 2, 2 } }, { 2, 0, 0, 0, 0, 2 } },
	{ "mlx5_0", { { 0xfe, 0x80, [15] = 7 } }, { 0x94, 0x6d, 0xae, 1, 2, 3 } },
	{ "", { { 0 } }, { 0 } },
	{ "", { { [10] = 0xff, 0xff, 192, 0, 2, 9 } }, { 2, 0, 0, 0, 0, 9 } },
	{ "", { { 0xfe, 0x80, [15] = 9 } }, { 0x94, 0x6d, 0xae, 9, 9, 9 } },
};

#define PEER_V4(n)                                      \
	{                                               \
		{                                       \
			[10] = 0xff, 0xff, 192, 0, 2, n \
		}                                       \
	}
#define NOTHING_KNOWN                                           \
	{                                                       \
		.retransmits = -1, .unacked = -1, .path_cnt = 0 \
	}

bool
smcr_link_next(const struct smcr *eng, uint32_t *pos, struct smcr_link_info *out)
{
	static const struct {
		uint32_t group;
		uint8_t number;
		uint32_t user_id, peer_user_id;
		const char *state;
		unsigned port, peer_port;
		uint32_t qpn, peer_qpn;
		uint8_t mtu_code;
		uint32_t conns;
		int64_t idle_ns, rtt_ns;
		struct rnic_depths depths;
		enum rnic_transport transport;
		struct rnic_conn_info conn;
	} links[] = {
		{ 1, 1, 0x11, 0x21, "active", 0, 4, 77, 0xffffff, 5, 1, S / 4, 12345, { .ird = 16, .ord = 8 },
		    RNIC_TRANSPORT_IWARP,
		    { 12, 3, 1, { { PEER_V4(9), RNIC_PATH_SUSPECT, true, 52, 204000, 1500, 14480 } } } },
		{ 2, 1, 0x12, 0x22, "active", 2, 5, 1, 2, 3, 200, 0, 2500000, { .ird = -1, .ord = -1 },
		    RNIC_TRANSPORT_ROCE, NOTHING_KNOWN },
		{ 2, 2, 0x13, 0, "adding", 0, 3, 78, 0, 5, 55, 4000 * S, -1, { .ird = -1, .ord = -1 },
		    RNIC_TRANSPORT_IWARP_SCTP_UDP, NOTHING_KNOWN },
		{ 2, 3, 0x14, 0x24, "lost", 1, 3, 79, 80, 5, 0, 2 * S, 70000, { .ird = 0, .ord = -1 },
		    RNIC_TRANSPORT_IWARP_SCTP,
		    { -1, 0, 3,
		        { { { { 0x20, 1, 0xd, 0xb8, [15] = 9 } }, RNIC_PATH_ACTIVE, true, 0, 200000, 1452, 4380 },
		            { PEER_V4(10), RNIC_PATH_INACTIVE, false, 31000, 1000000, 1500, 1500 },
		            { PEER_V4(11), RNIC_PATH_UNCONFIRMED, false, 0, 0, 0, 0 } } } },
	};
	unsigned i = (unsigned)*pos;

	if (eng->counters.conns_client == 0 || i >= sizeof(links) / sizeof(links[0]))
		return false;
	++*pos;
	*out = (struct smcr_link_info){
		.group_id = links[i].group,
		.number = links[i].number,
		.user_id = links[i].user_id,
		.peer_user_id = links[i].peer_user_id,
		.state = links[i].state,
		.gid = ports[links[i].port].gid,
		.peer_gid = ports[links[i].peer_port].gid,
		.qpn = links[i].qpn,
		.peer_qpn = links[i].peer_qpn,
		.mtu_code = links[i].mtu_code,
		.conn_cnt = links[i].conns,
		.idle_ns = links[i].idle_ns,
		.rtt_ns = links[i].rtt_ns,
		.peer_depths = links[i].depths,
		.transport = links[i].transport,
		.conn = links[i].conn,
		.peer = links[i].group == 1 ? (struct smcr_peer_info)LINUX_PEER : (struct smcr_peer_info)SMCRD_PEER,
	};
	strcpy(out->device, ports[links[i].port].name);
	memcpy(out->mac, ports[links[i].port].mac, sizeof(out->mac));
	memcpy(out->peer_mac, ports[links[i].peer_port].mac, sizeof(out->peer_mac));
	return true;
}

bool
smcr_rmb_next(const struct smcr *eng, uint32_t *pos, struct smcr_rmb_info *out)
{
	/* group, number, of the peer, element size, elements, in use, quarantined, state */
	static const struct smcr_rmb_info rmbs[] = {
		{ 1, 1, false, 65536, 16, 1, 2, "active" },
		{ 1, 1, true, 32768, 255, 1, 0, "active" },
		{ 2, 7, false, 16384, 255, 255, 0, "deleting" },
	};

	if (eng->counters.conns_client == 0 || *pos >= 3)
		return false;
	*out = rmbs[(*pos)++];
	return true;
}

bool
smcr_has_group(const struct smcr *eng, uint32_t id)
{
	return eng->counters.conns_client != 0 && (id == 1 || id == 2);
}

bool
smcr_has_conn(const struct smcr *eng, uint32_t token)
{
	return eng->counters.conns_client != 0 && token == conns[0].info.id;
}

int
smcr_rebalance(struct smcr *eng, uint32_t group_id)
{
	fake_worker.rebalanced = group_id;
	return group_id > 2 ? -ENOENT : 7;
}

int
smcr_link_add(struct smcr *eng, uint32_t group_id)
{
	static const int rcs[] = { -ENOENT, -EMLINK, 0, -ENODEV };

	return group_id < 4 ? rcs[group_id] : -ENOENT;
}

int
smcr_link_delete(struct smcr *eng, uint32_t group_id, uint8_t number)
{
	if (group_id > 2 || number > 2)
		return -ENOENT;
	if (group_id == 1)
		return -EBUSY;
	fake_worker.deleted = group_id << 8 | number;
	return 0;
}

/* -- counters -- */

const struct smcr_config *
smcr_settings(const struct smcr *eng)
{
	static const struct smcr_config settings = { .rmb_bytes_max = 4ull << 30, .sndbuf_bytes_max = 1ull << 30 };

	return &settings;
}

const struct smcr_counters *
smcr_counters(const struct smcr *eng)
{
	return &eng->counters;
}

const struct smcr_histograms *
smcr_histograms(const struct smcr *eng)
{
	static const struct smcr_histograms some = {
		.write_size = { .cnt = { 5, [10] = 7 }, .sum = 458752 },
		.blocked = { .cnt = { [3] = 2 }, .sum = 5000000 },
	}, none;

	return eng->counters.writes != 0 ? &some : &none;
}

void
worker_stats(const struct worker *w, struct worker_stats *out)
{
	uint64_t *counters = (uint64_t *)out;

	*out = (struct worker_stats){ .uptime_ns = 98765 * S, .draining = w->full };
	/* Counters stand before draining; each has a number of its own. */
	for (unsigned i = 0; w->full && i < offsetof(struct worker_stats, draining) / sizeof(uint64_t); i++)
		counters[i] = 501 + i;
}

struct session_pool *
worker_sessions(struct worker *w)
{
	static struct env env = { .now_ns = 60 * S };

	w->sessions.env = &env;
	return &w->sessions;
}

/* -- orders -- */

/* The connections are numbers 1, 2, ...; of "web" and of 192.0.2.9 is every second one. */
bool
worker_close_next(struct worker *w, uint32_t *pos, const struct close_filter *f, bool *closed)
{
	if (*pos >= fake_worker.sessions)
		return false;
	fake_worker.looked_at++;
	*closed = (f->id == 0 || f->id == *pos + 1) &&
	    (f->service[0] == '\0' || (strcmp(f->service, "web") == 0 && *pos % 2 == 0)) &&
	    (f->peer.ss_family == AF_UNSPEC || *pos % 2 == 0);
	fake_worker.closed += *closed;
	++*pos;
	return true;
}

int
worker_set_disabled(struct worker *w, const char *name, bool disabled)
{
	if (strcmp(name, "web") != 0)
		return -ENOENT;
	fake_worker.disabled = disabled;
	return fake_worker.disable_rc;
}

struct worker_retried
worker_retry(struct worker *w, const struct sockaddr_storage *peer)
{
	fake_worker.retried = peer != NULL ? addr_port(peer) : -1;
	if (fake_worker.retried == FAKE_WELL_PORT)
		return (struct worker_retried){ 0 };
	return (struct worker_retried){
		.engine = { .peers = 2, .links = 1 },
		.prewarms = 3,
		.targets = 5,
		.devices = peer == NULL ? 4 : 0,
	};
}

/* -- the worker -- */

struct smcr *
worker_engine(struct worker *w)
{
	return &w->eng;
}

struct worker *
fake_worker_new_empty(void)
{
	fake_worker = (struct fake_worker){ 0 };
	return calloc(1, sizeof(struct worker));
}

/* Each its own number, made from its name, so that a new one does not change the others. */
static uint64_t
number_of(const char *name)
{
	uint64_t v = 1;

	while (*name != '\0')
		v = (v * 31 + (unsigned char)*name++) % 1000003;
	return v;
}

#define NO_COUNTER(heading)
#define COUNTER(source, field, words) COUNTER_##source(field)
#define COUNTER_SMCR(field) c->field = number_of(#field);
#define COUNTER_WORKER(field)
#define COUNTER_CONTROL(field)
#define COUNTER_LOG(field)

static void
set_counters(struct smcr_counters *c)
{
	CONTROL_COUNTERS(NO_COUNTER, COUNTER)
}

struct worker *
fake_worker_new(void)
{
	static struct tcp_option option;
	struct worker *w = fake_worker_new_empty();

	w->full = true;
	fake_worker.sessions = 5;
	for (uintptr_t i = 0; i < FAKE_DEVS; i++)
		w->dev[i] = (struct rnic_dev){ .ops = &dev_ops, .ctx = (void *)i };
	set_counters(&w->eng.counters);
	for (unsigned i = 0; i < 12; i++)
		tally_count(&w->sessions.fallbacks.local, i % 3 == 0 ? CLC_DIAG_NO_DEVICE : CLC_DIAG_PEER_DECLINED);
	tally_count(&w->sessions.fallbacks.peer, CLC_DIAG_NO_MEMORY);
	tally_count(&w->sessions.fallbacks.peer, 0xdeadbeef);
	tcp_option_init(&option, "BPF program: Operation not permitted: CAP_BPF and CAP_NET_ADMIN are needed at start");
	for (unsigned i = 0; i < HISTORY_SAMPLES; i++)
		fill_sample(&w->sessions.history.all.at[i], i);
	w->sessions.history.all.end = 600;
	w->sessions.option = &option;
	w->sessions.option_services = 1;
	return w;
}

void
fake_worker_free(struct worker *w)
{
	static const struct check_result ended = { .text = "the daemon ends" };

	while (fake_worker.checks > 0)
		fake_worker_end_check(w, &ended);
	free(w);
}

/* -- checks and traces -- */

void
smcr_end_hold_off(struct smcr *eng, const char *key)
{
	snprintf(fake_worker.tried_again, sizeof(fake_worker.tried_again), "%s", key);
}

int64_t
smcr_held_off_ns(const struct smcr *eng, const char *key)
{
	return strcmp(key, "192.0.2.7:443") == 0 ? 42 * S : 0;
}

int
worker_check(struct worker *w, const struct sockaddr_storage *peer, uint32_t timeout_ms, uint64_t bulk,
    void (*done)(void *arg, const struct check_result *), void *arg)
{
	if (peer->ss_family == AF_UNSPEC || timeout_ms == 0)
		abort();
	if (fake_worker.check_rc != 0 || fake_worker.checks == CHECKS_MAX)
		return fake_worker.check_rc != 0 ? fake_worker.check_rc : -EBUSY;
	w->checks[fake_worker.checks].done = done;
	w->checks[fake_worker.checks].port = addr_port(peer);
	fake_worker.check_bulk = bulk;
	w->checks[fake_worker.checks++].arg = arg;
	fake_worker.check_port = w->checks[0].port;
	return 0;
}

void
fake_worker_end_check(struct worker *w, const struct check_result *res)
{
	void (*done)(void *, const struct check_result *) = w->checks[0].done;
	void *arg = w->checks[0].arg;

	fake_worker.checks--;
	memmove(w->checks, w->checks + 1, fake_worker.checks * sizeof(w->checks[0]));
	fake_worker.check_port = w->checks[0].port;
	done(arg, res);
}

void
smcr_set_trace(struct smcr *eng, void (*fn)(void *ctx, const struct smcr_trace *), void *ctx)
{
	eng->trace = fn;
	eng->trace_ctx = ctx;
}

bool
fake_worker_trace(struct worker *w, const struct smcr_trace *t)
{
	if (w->eng.trace == NULL)
		return false;
	w->eng.trace(w->eng.trace_ctx, t);
	return true;
}
