/*
 * An engine with RoCE cards on a wire in memory, in virtual time, driven by lines on stdin, so that a script which shares no
 * code with it can be its peer: the middle is bytes that the script brings and gets, the wire is the fabric of tests/sim, and
 * the script has cards and queue pairs of its own on it.
 *
 *	roce_host [KEY=VALUE ...]
 *
 * Settings: seed, links_max, rmb_elems, quarantine_max, smc_version, close_ms, abort_ms, llc_ms, keepalive_ms,
 * group_idle_ms, rmb_idle_ms, retry_ms and credit_bytes (of the cards), lossy (1: no packet of the cards arrives).
 *
 * Numbers are decimal or 0x hex, bytes are hex. NAME is a word of the script's choice. Each command is answered by one line,
 * "ok [...]" or "error TEXT"; commands:
 *
 *	card NAME engine|peer GID MAC v1|v2	the RoCE version of its GID
 *	port CARD up|down
 *	withhold CARD on|off	its requests arrive, and have no completion until this is off
 *	run MS			time passes, until there is a report: ok TIME-IN-US
 *	sleep US		time passes
 *	groups			ok ID/ROLE/STATE/TYPE/CONNECTIONS ...
 *	links			ok GROUP/NUMBER/STATE/CONNECTIONS ...
 *	counter NAME		ok VALUE
 *	end			everything ends: ok breaches= qp= mr= pd=
 * of connections of the engine:
 *	open NAME client|server ELEMENT-SIZE [PORT [HOST]]	of the script's host, 1 and 61 otherwise
 *	clc NAME HEX		bytes of the middle
 *	tcp NAME fin|rst	of the middle
 *	admit NAME
 *	put NAME HEX [urgent]	ok NUMBER: so many bytes were taken
 *	take NAME MAX		ok FLAGS HEX: what is there, flags u (urgent), e (end), - (neither)
 *	shut|close|abort|release NAME
 * of the script's host:
 *	buf NAME LEN
 *	get BUF OFF LEN		ok HEX
 *	zero BUF
 *	qp NAME CARD		a queue pair in a domain of its own, with 48 receives: ok QPN PSN
 *	reg QP BUF		the memory by a key of that domain: ok RKEY ADDR
 *	connect QP active|passive GID MAC QPN PSN
 *	rts QP
 *	send QP HEX
 *	write QP RKEY ADDR HEX
 *	kill QP			it is gone, and its keys
 *	break QP reset|late|silent	the link
 *
 * In between, as things happen:
 *
 *	clc NAME HEX
 *	ev NAME proposal|established|fallback|closed|readable|writable [WHY]
 *	recv QP HEX
 *	wc QP send|write ok|flushed|remote_err|local_err|retry_exc
 *	down QP [WHY]
 *	log TEXT
 */
#include <errno.h>
#include <stdlib.h>

#include "base/list.h"
#include "smcr/smcr.h"
#include "tests/interop/words.h"
#include "tests/sim/sim.h"
#include "tests/seeded_rng.h"
#include "tests/unit/smcr_help.h"

#define ARGS_MAX 8
#define LINE_MAX_LEN (4 * 1024 * 1024)
#define RECVS 48 /* as Linux has them */
#define RECV_LEN 8192
#define MS 1000000LL

/* A connection of the engine. */
struct end {
	struct smcr_conn *conn;
	uint8_t in[4096]; /* of the middle, not read yet */
	size_t in_len;
	bool fin, fallen;
};

struct buf {
	uint8_t *p;
	size_t len;
};

/* Memory of the script under a key. */
struct region {
	struct list_node node; /* of its queue pair */
	struct rnic_mr *mr;
};

/* A queue pair of the script. */
struct pair {
	struct rnic_qp *qp;
	struct rnic_pd *pd;
	struct rnic_mr *recvs;
	struct list_node regions;
	bool dead;
	uint8_t *ring;
};

/* A request of the script. */
struct request {
	struct rnic_mr *mr;
	uint8_t data[];
};

static struct sim_fabric *fab;
static struct rng rng;
static struct smcr *eng;
static struct named ends[NAMES_MAX], bufs[NAMES_MAX], pairs[NAMES_MAX], cards[NAMES_MAX];
static struct rnic_dev *ours[NAMES_MAX]; /* the script's cards */
static unsigned our_cnt, breaches, reports;
static int64_t now_ns;
static char *line, *line_hex;
static const struct smcr_subnet net = { .addr = { 10, 99, 1, 0 }, .prefix_len = 24 };

/* -- what happens -- */

static void
tell_hex(const char *what, const char *name, const uint8_t *p, size_t len)
{
	char *h = line_hex;

	for (size_t i = 0; i < len; i++, h += 2)
		snprintf(h, 3, "%02x", p[i]);
	*h = 0;
	say("%s %s %s", what, name, line_hex);
	reports++;
}

static void
tell(const char *what, const char *name, const char *text, const char *more)
{
	say("%s %s %s %s", what, name, text, more);
	reports++;
}

static void
tell_end(const char *name, struct end *e, unsigned ev)
{
	char text[160];
	struct smcr_diag d;
	const char *detail = "";

	if ((ev & SMCR_EV_PROPOSAL) != 0)
		tell("ev", name, "proposal", "");
	if ((ev & SMCR_EV_ESTABLISHED) != 0)
		tell("ev", name, "established", "");
	if ((ev & SMCR_EV_FALLBACK) != 0 && !e->fallen) {
		e->fallen = true;
		smcr_fallback(e->conn, &d);
		snprintf(text, sizeof(text), "%08x %08x", d.local, d.peer);
		tell("ev", name, "fallback", text);
	}
	if ((ev & SMCR_EV_READABLE) != 0)
		tell("ev", name, "readable", "");
	if ((ev & SMCR_EV_WRITABLE) != 0)
		tell("ev", name, "writable", "");
	if ((ev & SMCR_EV_CLOSED) != 0) {
		snprintf(text, sizeof(text), "%s", smcr_reason_str(smcr_closed(e->conn, &detail)));
		tell("ev", name, "closed", text);
	}
}

static void
feed(struct end *e)
{
	size_t n;

	while (e->in_len > 0 && (n = smcr_clc_want(e->conn)) > 0) {
		n = n < e->in_len ? n : e->in_len;
		smcr_clc_input(e->conn, e->in, n);
		memmove(e->in, e->in + n, e->in_len - n);
		e->in_len -= n;
	}
	if (e->fin && e->in_len == 0) {
		e->fin = false;
		smcr_tcp_event(e->conn, SMCR_TCP_FIN);
	}
}

static void
engine_events(void)
{
	struct smcr_conn *conn;
	struct smcr_log log;
	uint8_t out[4096];
	unsigned ev;

	while ((conn = smcr_next_event(eng, &ev)) != NULL) {
		struct end *e = smcr_app(conn);
		const char *name = name_of(ends, e);
		size_t n = smcr_clc_output(conn, out, sizeof(out));

		if (n > 0)
			tell_hex("clc", name, out, n);
		tell_end(name, e, ev);
		feed(e);
	}
	while (smcr_next_log(eng, &log))
		say("log %u.%u %s", log.group_id, log.link, log.text);
}

static void
post_recv(struct pair *p, unsigned i)
{
	struct rnic_recv_wr wr = { .wr_id = i, .mr = p->recvs, .ptr = p->ring + i * RECV_LEN, .len = RECV_LEN };

	(void)p->qp->dev->ops->post_recv(p->qp, &wr, 1);
}

static void
completed(const struct rnic_wc *wc)
{
	static const char *const states[] = { "ok", "flushed", "remote_err", "local_err", "retry_exc" };
	struct pair *p = wc->qp->ctx;
	struct request *r;

	if (wc->op == RNIC_WC_RECV) {
		if (wc->status != RNIC_WC_OK || p->dead)
			return;
		tell_hex("recv", name_of(pairs, p), p->ring + wc->wr_id * RECV_LEN, wc->len);
		post_recv(p, (unsigned)wc->wr_id);
		return;
	}
	r = (struct request *)(uintptr_t)wc->wr_id;
	if (!p->dead)
		tell("wc", name_of(pairs, p), wc->op == RNIC_WC_SEND ? "send" : "write", states[wc->status]);
	wc->qp->dev->ops->mr_dereg(r->mr);
	free(r);
}

static void
pair_freed(struct pair *p)
{
	struct rnic_dev *dev = p->pd->dev;

	LIST_FOREACH(n, &p->regions) {
		struct region *r = CONTAINER_OF(n, struct region, node);

		dev->ops->mr_dereg(r->mr);
		list_remove(n);
		free(r);
	}
	dev->ops->mr_dereg(p->recvs);
	dev->ops->pd_free(p->pd);
	forget(pairs, p);
	free(p->ring);
	free(p);
}

static void
card_events(struct rnic_dev *dev)
{
	struct rnic_event ev;
	struct rnic_wc wc;

	while (dev->ops->poll(dev, &wc, 1) == 1)
		completed(&wc);
	while (dev->ops->poll_event(dev, &ev)) {
		if (ev.type == RNIC_EV_QP_FREED)
			pair_freed(ev.ctx);
		else if (ev.type == RNIC_EV_QP_ERROR)
			tell("down", name_of(pairs, ev.ctx), ev.why != NULL ? ev.why : "", "");
		else if (ev.type == RNIC_EV_DEV_FREED)
			return;
	}
}

/* One instant, until nothing more happens in it. */
static void
settle(void)
{
	bool more;

	do {
		unsigned before = reports;

		sim_run(fab, now_ns);
		for (unsigned i = 0; i < our_cnt; i++) {
			ours[i]->ops->flush(ours[i]);
			card_events(ours[i]);
		}
		smcr_poll(eng, now_ns);
		engine_events();
		more = smcr_flush(eng) || reports != before;
	} while (more || sim_next(fab) <= now_ns || smcr_deadline(eng) <= now_ns);
}

/* -- commands; arguments beyond the last are NULL. Each returns 0, a negative errno, or ANSWERED. -- */

static int
cmd_card(char **arg)
{
	struct rnic_gid gid;
	uint8_t mac[6];
	struct rnic_dev *dev;

	if (arg[4] == NULL || unhex(arg[2], gid.b, 16) != 16 || unhex(arg[3], mac, 6) != 6)
		return -EINVAL;
	dev = sim_dev_new(fab, arg[0], RNIC_TRANSPORT_ROCE, &gid, mac);
	sim_gid_type(dev, strcmp(arg[4], "v1") == 0 ? RNIC_GID_ROCE_V1 : RNIC_GID_ROCE_V2);
	if (!add(cards, arg[0], dev))
		return -ENOSPC;
	if (strcmp(arg[1], "engine") == 0)
		return smcr_add_device(eng, dev);
	ours[our_cnt++] = dev;
	return 0;
}

static int
cmd_port(char **arg)
{
	struct rnic_dev *dev = find(cards, arg[0]);

	if (dev == NULL || arg[1] == NULL)
		return -EINVAL;
	sim_port(dev, strcmp(arg[1], "up") == 0 ? RNIC_PORT_UP : RNIC_PORT_DOWN);
	return 0;
}

static int
cmd_withhold(char **arg)
{
	struct rnic_dev *dev = find(cards, arg[0]);

	if (dev == NULL || arg[1] == NULL)
		return -EINVAL;
	sim_withhold(dev, strcmp(arg[1], "on") == 0);
	return 0;
}

/* Until the end, or a report. */
static int
pass_time(int64_t end, bool stops)
{
	int64_t next;

	reports = 0;
	settle();
	while ((reports == 0 || !stops) && now_ns < end) {
		next = sim_next(fab) < smcr_deadline(eng) ? sim_next(fab) : smcr_deadline(eng);
		now_ns = next < end ? next : end;
		smcr_set_now(eng, now_ns);
		settle();
	}
	say("ok %lld", (long long)(now_ns / 1000));
	return ANSWERED;
}

static int
cmd_run(char **arg)
{
	return pass_time(now_ns + (int64_t)num(arg[0]) * MS, true);
}

static int
cmd_sleep(char **arg)
{
	return pass_time(now_ns + (int64_t)num(arg[0]) * 1000, false);
}

static int
cmd_groups(char **arg)
{
	struct smcr_group_info g;

	(void)arg;
	fputs("ok", stdout);
	for (uint32_t pos = 0; smcr_group_next(eng, &pos, &g);)
		printf(
		    " %u/%s/%s/%s/%u", g.id, g.role == SMCR_CLIENT ? "client" : "server", g.state, g.type, g.conn_cnt);
	say("%s", "");
	return ANSWERED;
}

static int
cmd_links(char **arg)
{
	struct smcr_link_info l;

	(void)arg;
	fputs("ok", stdout);
	for (uint32_t pos = 0; smcr_link_next(eng, &pos, &l);)
		printf(" %u/%u/%s/%u", l.group_id, l.number, l.state, l.conn_cnt);
	say("%s", "");
	return ANSWERED;
}

static int
cmd_counter(char **arg)
{
	const struct smcr_counters *c = smcr_counters(eng);
	const struct {
		const char *name;
		uint64_t value;
	} known[] = {
		{ "bad_cdc", c->bad_cdc },
		{ "bad_llc", c->bad_llc },
		{ "bad_clc", c->bad_clc },
		{ "cdc_unknown", c->cdc_unknown },
		{ "failover_lost", c->failover_lost },
		{ "links_down", c->links_down },
		{ "elems_quarantined", c->elems_quarantined },
		{ "elems_let_go", c->elems_let_go },
		{ "add_link_failed", c->add_link_failed },
		{ "llc_timeouts", c->llc_timeouts },
		{ "elem_conflicts", c->elem_conflicts },
	};

	for (unsigned i = 0; arg[0] != NULL && i < sizeof(known) / sizeof(known[0]); i++)
		if (strcmp(known[i].name, arg[0]) == 0) {
			say("ok %llu", (unsigned long long)known[i].value);
			return ANSWERED;
		}
	return -ENOENT;
}

static void
pair_kill(struct pair *p)
{
	struct rnic_dev *dev = p->qp->dev;

	if (p->dead)
		return;
	p->dead = true;
	dev->ops->qp_disconnect(p->qp, false);
	card_events(dev);
	dev->ops->qp_destroy(p->qp);
}

static int
cmd_end(char **arg)
{
	struct sim_live live;

	(void)arg;
	for (unsigned i = 0; i < NAMES_MAX; i++)
		if (ends[i].obj != NULL) {
			smcr_release(((struct end *)ends[i].obj)->conn);
			free(ends[i].obj);
			ends[i].obj = NULL;
		}
	for (unsigned i = 0; i < NAMES_MAX; i++)
		if (pairs[i].obj != NULL)
			pair_kill(pairs[i].obj);
	for (unsigned i = 0; i < our_cnt; i++) {
		card_events(ours[i]);
		ours[i]->ops->free(ours[i]);
		card_events(ours[i]);
	}
	our_cnt = 0;
	smcr_free(eng);
	eng = NULL;
	sim_live(fab, &live);
	say("ok breaches=%u qp=%u mr=%u pd=%u", breaches, live.qp, live.mr, live.pd);
	return ANSWERED;
}

/* -- commands of connections -- */

static int
cmd_open(char **arg)
{
	struct smcr_open o = { .peer = SMCR_PEER_LINUX,
		.peer_key = "linux:1",
		.subnet_cnt = 1,
		.subnet = { net },
		.remote.addr[15] = 61 };
	struct end *e;
	int err = -EINVAL;

	if (arg[2] == NULL)
		return -EINVAL;
	if (arg[3] != NULL) {
		if (arg[4] != NULL)
			o.remote.addr[15] = (uint8_t)num(arg[4]);
		snprintf(o.peer_key, sizeof(o.peer_key), "linux%u:%u", o.remote.addr[15], (unsigned)num(arg[3]));
	}
	e = calloc(1, sizeof(*e));
	o.app = e;
	o.role = strcmp(arg[1], "client") == 0 ? SMCR_CLIENT : SMCR_SERVER;
	o.elem_size = (uint32_t)num(arg[2]);
	e->conn = smcr_open(eng, &o, &err);
	if (e->conn == NULL || !add(ends, arg[0], e))
		return err;
	return 0;
}

static int
end_clc(struct end *e, char **arg)
{
	if (arg[1] == NULL || e->in_len + strlen(arg[1]) / 2 > sizeof(e->in))
		return -EINVAL;
	e->in_len += unhex(arg[1], e->in + e->in_len, sizeof(e->in) - e->in_len);
	feed(e);
	return 0;
}

static int
end_tcp(struct end *e, char **arg)
{
	if (arg[1] == NULL)
		return -EINVAL;
	if (strcmp(arg[1], "rst") == 0)
		smcr_tcp_event(e->conn, SMCR_TCP_RST);
	else
		e->fin = true;
	feed(e);
	return 0;
}

static int
end_admit(struct end *e, char **arg)
{
	(void)arg;
	smcr_admit(e->conn);
	return 0;
}

static int
end_put(struct end *e, char **arg)
{
	struct iovec iov[2];
	size_t room = smcr_tx_space(e->conn, iov), len = arg[1] != NULL ? strlen(arg[1]) / 2 : 0, n, first;

	n = len < room ? len : room;
	first = n < iov[0].iov_len ? n : iov[0].iov_len;
	if (n > 0)
		unhex(arg[1], iov[0].iov_base, first);
	if (n > first)
		unhex(arg[1] + 2 * first, iov[1].iov_base, n - first);
	smcr_tx_commit(e->conn, n, n == len && arg[2] != NULL);
	say("ok %zu", n);
	return ANSWERED;
}

static int
end_take(struct end *e, char **arg)
{
	struct iovec iov[2];
	bool urgent;
	size_t max = num(arg[1]), got = 0;

	smcr_rx_data(e->conn, iov, &urgent);
	for (unsigned i = 0; i < 2; i++)
		for (size_t k = 0; k < iov[i].iov_len && got < max; k++, got++)
			snprintf(line_hex + 2 * got, 3, "%02x", ((uint8_t *)iov[i].iov_base)[k]);
	line_hex[2 * got] = 0;
	smcr_rx_consume(e->conn, got);
	say("ok %s%s %s", urgent ? "u" : "", smcr_rx_eof(e->conn) ? "e" : "-", line_hex);
	return ANSWERED;
}

static int
end_shut(struct end *e, char **arg)
{
	(void)arg;
	smcr_shutdown_wr(e->conn);
	return 0;
}

static int
end_close(struct end *e, char **arg)
{
	(void)arg;
	smcr_close(e->conn);
	return 0;
}

static int
end_abort(struct end *e, char **arg)
{
	(void)arg;
	smcr_abort(e->conn, SMCR_R_APP_RESET);
	return 0;
}

static int
end_release(struct end *e, char **arg)
{
	(void)arg;
	smcr_release(e->conn);
	forget(ends, e);
	free(e);
	return 0;
}

/* -- commands of the script's host -- */

static int
cmd_buf(char **arg)
{
	struct buf *b = calloc(1, sizeof(*b));

	b->len = num(arg[1]);
	b->p = calloc(1, b->len);
	return arg[0] != NULL && add(bufs, arg[0], b) ? 0 : -ENOSPC;
}

static int
cmd_get(char **arg)
{
	struct buf *b = find(bufs, arg[0]);
	uint64_t off = num(arg[1]), len = num(arg[2]);

	if (b == NULL || off > b->len || len > b->len - off)
		return -EINVAL;
	tell_hex("ok", "-", b->p + off, len);
	return ANSWERED;
}

static int
cmd_zero(char **arg)
{
	struct buf *b = find(bufs, arg[0]);

	if (b == NULL)
		return -EINVAL;
	memset(b->p, 0, b->len);
	return 0;
}

static int
cmd_qp(char **arg)
{
	struct rnic_dev *dev = arg[0] != NULL ? find(cards, arg[1]) : NULL;
	struct pair *p = calloc(1, sizeof(*p));
	const struct rnic_qp_attr attr = { .ctx = p, .sq_depth = 1024, .rq_depth = RECVS };

	if (dev == NULL || !add(pairs, arg[0], p))
		return -EINVAL;
	list_init(&p->regions);
	p->ring = calloc(RECVS, RECV_LEN);
	if (dev->ops->pd_alloc(dev, &p->pd) < 0 || dev->ops->qp_create(p->pd, &attr, &p->qp) < 0 ||
	    dev->ops->mr_reg(p->pd, p->ring, RECVS * RECV_LEN, RNIC_ACCESS_LOCAL, &p->recvs) < 0)
		return -ENOMEM;
	for (unsigned i = 0; i < RECVS; i++)
		post_recv(p, i);
	say("ok %u %u", p->qp->qpn, p->qp->psn);
	return ANSWERED;
}

static int
pair_reg(struct pair *p, char **arg)
{
	struct buf *b = find(bufs, arg[1]);
	struct region *r;

	if (b == NULL)
		return -EINVAL;
	r = calloc(1, sizeof(*r));
	if (p->qp->dev->ops->mr_reg(p->pd, b->p, b->len, RNIC_ACCESS_REMOTE_WRITE, &r->mr) < 0)
		return -ENOMEM;
	list_push(&p->regions, &r->node);
	say("ok %u %llu", r->mr->rkey, (unsigned long long)r->mr->addr);
	return ANSWERED;
}

static int
pair_connect(struct pair *p, char **arg)
{
	struct rnic_remote r = { .mtu_code = 3 };

	if (arg[5] == NULL || unhex(arg[2], r.gid.b, 16) != 16 || unhex(arg[3], r.mac, 6) != 6)
		return -EINVAL;
	r.qpn = (uint32_t)num(arg[4]);
	r.psn = (uint32_t)num(arg[5]);
	int rc = p->qp->dev->ops->qp_connect(p->qp, arg[1][0] == 'a' ? RNIC_ACTIVE : RNIC_PASSIVE, &r);
	card_events(p->qp->dev);
	return rc;
}

static int
pair_rts(struct pair *p, char **arg)
{
	(void)arg;
	return p->qp->dev->ops->qp_rts(p->qp);
}

static int
post(struct pair *p, enum rnic_wr_op op, const char *hex, struct rnic_send_wr wr)
{
	size_t len = hex != NULL ? strlen(hex) / 2 : 0;
	struct request *r = malloc(sizeof(*r) + len + 1);

	if (len == 0 || r == NULL || p->qp->dev->ops->mr_reg(p->pd, r->data, len, RNIC_ACCESS_LOCAL, &r->mr) < 0) {
		free(r);
		return -EINVAL;
	}
	wr.op = op;
	wr.flags = RNIC_SIGNALED | (op == RNIC_WR_SEND ? RNIC_SOLICITED : 0u);
	wr.wr_id = (uintptr_t)r;
	wr.sge_cnt = 1;
	wr.sge[0] = (struct rnic_sge){ .mr = r->mr, .ptr = r->data, .len = (uint32_t)unhex(hex, r->data, len) };
	int rc = p->dead ? -ENOTCONN : p->qp->dev->ops->post_send(p->qp, &wr);
	if (rc < 0) {
		p->qp->dev->ops->mr_dereg(r->mr);
		free(r);
	}
	return rc;
}

static int
pair_send(struct pair *p, char **arg)
{
	return post(p, RNIC_WR_SEND, arg[1], (struct rnic_send_wr){ 0 });
}

static int
pair_write(struct pair *p, char **arg)
{
	if (arg[3] == NULL)
		return -EINVAL;
	return post(
	    p, RNIC_WR_WRITE, arg[3], (struct rnic_send_wr){ .rkey = (uint32_t)num(arg[1]), .raddr = num(arg[2]) });
}

static int
pair_end(struct pair *p, char **arg)
{
	(void)arg;
	pair_kill(p);
	return 0;
}

static int
pair_break(struct pair *p, char **arg)
{
	enum sim_cut cut = arg[1] == NULL || arg[1][0] == 'r' ? SIM_CUT_RESET
	    : arg[1][0] == 'l'                                ? SIM_CUT_LATE
	                                                      : SIM_CUT_SILENT;

	return sim_break_qp(p->qp->dev, p->qp->qpn, cut) ? 0 : -ENOTCONN;
}

static const struct command {
	const char *name;
	int (*run)(char **arg);
	int (*run_end)(struct end *, char **arg);
	int (*run_pair)(struct pair *, char **arg);
} commands[] = {
	{ "card", cmd_card, NULL, NULL },
	{ "port", cmd_port, NULL, NULL },
	{ "withhold", cmd_withhold, NULL, NULL },
	{ "run", cmd_run, NULL, NULL },
	{ "sleep", cmd_sleep, NULL, NULL },
	{ "groups", cmd_groups, NULL, NULL },
	{ "links", cmd_links, NULL, NULL },
	{ "counter", cmd_counter, NULL, NULL },
	{ "end", cmd_end, NULL, NULL },
	{ "open", cmd_open, NULL, NULL },
	{ "clc", NULL, end_clc, NULL },
	{ "tcp", NULL, end_tcp, NULL },
	{ "admit", NULL, end_admit, NULL },
	{ "put", NULL, end_put, NULL },
	{ "take", NULL, end_take, NULL },
	{ "shut", NULL, end_shut, NULL },
	{ "close", NULL, end_close, NULL },
	{ "abort", NULL, end_abort, NULL },
	{ "release", NULL, end_release, NULL },
	{ "buf", cmd_buf, NULL, NULL },
	{ "get", cmd_get, NULL, NULL },
	{ "zero", cmd_zero, NULL, NULL },
	{ "qp", cmd_qp, NULL, NULL },
	{ "reg", NULL, NULL, pair_reg },
	{ "connect", NULL, NULL, pair_connect },
	{ "rts", NULL, NULL, pair_rts },
	{ "send", NULL, NULL, pair_send },
	{ "write", NULL, NULL, pair_write },
	{ "kill", NULL, NULL, pair_end },
	{ "break", NULL, NULL, pair_break },
};

static int
run_command(const struct command *c, char **arg)
{
	void *obj;

	if (c->run != NULL)
		return c->run(arg);
	obj = find(c->run_end != NULL ? ends : pairs, arg[0]);
	if (obj == NULL)
		return -ENOENT;
	return c->run_end != NULL ? c->run_end(obj, arg) : c->run_pair(obj, arg);
}

static void
run_line(void)
{
	char *arg[ARGS_MAX + 1], *word = split(line, arg, ARGS_MAX);

	for (unsigned i = 0; word != NULL && i < sizeof(commands) / sizeof(commands[0]); i++) {
		if (strcmp(commands[i].name, word) != 0)
			continue;
		answer(run_command(&commands[i], arg));
		return;
	}
	say("error no such command");
}

/* -- settings -- */

static void
on_breach(void *ctx, const struct rnic_dev *dev, const char *what)
{
	(void)ctx;
	(void)dev;
	say("log BREACH %s", what);
	breaches++;
}

static enum sim_fate
lost(void *ctx, const struct sim_msg *m)
{
	(void)ctx;
	(void)m;
	return SIM_LOSE;
}

static bool
setting(struct smcr_config *c, struct sim_config *s, const char *key, uint32_t n)
{
	const struct {
		const char *key;
		uint32_t *field;
	} fields[] = {
		{ "links_max", &c->links_max },
		{ "rmb_elems", &c->rmb_elems },
		{ "quarantine_max", &c->quarantine_max },
		{ "close_ms", &c->close_ms },
		{ "abort_ms", &c->abort_ms },
		{ "llc_ms", &c->llc_ms },
		{ "keepalive_ms", &c->keepalive_ms },
		{ "group_idle_ms", &c->group_idle_ms },
		{ "rmb_idle_ms", &c->rmb_idle_ms },
	};

	for (unsigned i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
		if (strcmp(fields[i].key, key) == 0) {
			*fields[i].field = n;
			return true;
		}
	if (strcmp(key, "seed") == 0)
		s->seed = n;
	else if (strcmp(key, "retry_ms") == 0)
		s->retry_ns = n * MS;
	else if (strcmp(key, "credit_bytes") == 0)
		s->credit_bytes = n;
	else if (strcmp(key, "lossy") == 0 && n != 0) {
		s->filter = lost;
		s->cut = SIM_CUT_SILENT;
	} else if (strcmp(key, "smc_version") == 0)
		c->smc_version = (uint8_t)n;
	else
		return false;
	return true;
}

int
main(int argc, char **argv)
{
	struct smcr_config c;
	struct sim_config s;

	smcr_config_init(&c);
	sim_config_init(&s);
	s.breach = on_breach;
	s.no_deny = true;
	for (int i = 1; i < argc; i++) {
		char *v = strchr(argv[i], '=');

		if (v != NULL)
			*v++ = 0;
		if (v == NULL || !setting(&c, &s, argv[i], (uint32_t)num(v))) {
			fprintf(stderr, "roce_host: bad setting: %s\n", argv[i]);
			return 2;
		}
	}
	line = malloc(LINE_MAX_LEN);
	line_hex = malloc(LINE_MAX_LEN);
	rng_init_seeded(&rng, s.seed);
	fab = sim_fabric_new(&s);
	eng = smcr_new(&c, &rng, 0);
	smcr_set_networks(eng, &net, 1);
	say("ready");
	while (eng != NULL && fgets(line, LINE_MAX_LEN, stdin) != NULL)
		run_line();
	return 0;
}
