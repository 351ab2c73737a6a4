/* The rival's connections, queue pairs and CDC messages; see rival.h. */
#include "rival.h"

#include <string.h>

#include "fuzz.h"
#include "tests/rnic_end.h"

/* -- queue pairs -- */

struct rival_link *
rival_link_new(struct rival *r, struct rival_group *g, enum smcr_role role, unsigned dev)
{
	struct rnic_dev *d = r->dev[dev % RIVAL_DEVS];
	struct rnic_qp_attr attr = { .sq_depth = 64, .rq_depth = RIVAL_RQ, .token = g->token };
	struct rival_link *l = NULL;

	for (unsigned i = 0; i < RIVAL_LINKS && l == NULL; i++)
		if (!r->link[i].used)
			l = &r->link[i];
	if (l == NULL)
		return NULL;
	memset(l, 0, sizeof(*l));
	l->used = true;
	l->of = r;
	l->group = g;
	l->role = role;
	l->dev = dev % RIVAL_DEVS;
	attr.ctx = l;
	FUZZ_CHECK(d->ops->pd_alloc(d, &l->pd) == 0);
	FUZZ_CHECK(d->ops->qp_create(l->pd, &attr, &l->qp) == 0);
	FUZZ_CHECK(d->ops->mr_reg(l->pd, l->recv, sizeof(l->recv), RNIC_ACCESS_LOCAL, &l->recv_mr) == 0);
	for (unsigned i = 0; i < RIVAL_RMBS; i++)
		FUZZ_CHECK(
		    d->ops->mr_reg(l->pd, r->rmb[i], sizeof(r->rmb[i]), RNIC_ACCESS_REMOTE_WRITE, &l->rmb[i]) == 0);
	for (unsigned i = 0; i < RIVAL_RQ; i++) {
		struct rnic_recv_wr wr = { .wr_id = i, .mr = l->recv_mr, .ptr = l->recv[i], .len = RIVAL_RECV };

		(void)l->qp->dev->ops->post_recv(l->qp, &wr, 1);
	}
	if (role == SMCR_CLIENT)
		(void)d->ops->qp_expect(l->qp);
	g->newest = l;
	return l;
}

unsigned
rival_transport(const struct rival *r, unsigned dev)
{
	static const uint8_t bits[] = {
		[RNIC_TRANSPORT_ROCE] = CLC_TRANSPORT_ROCE,
		[RNIC_TRANSPORT_IWARP] = CLC_TRANSPORT_IWARP,
		[RNIC_TRANSPORT_IWARP_SCTP] = CLC_TRANSPORT_IWARP_SCTP,
		[RNIC_TRANSPORT_IWARP_SCTP_UDP] = CLC_TRANSPORT_IWARP_SCTP_UDP,
	};

	return bits[rnic_query(r->dev[dev]).transport];
}

unsigned
rival_device_for(const struct rival_mid *m)
{
	/* Where there is a choice, different groups get different ones. */
	bool mixed = (m->of->arena->flags & ARENA_MIXED) != 0;
	unsigned first = mixed ? (unsigned)(m->group - m->of->group) : 0;

	for (unsigned i = 0; i < RIVAL_DEVS; i++)
		if ((m->transports & rival_transport(m->of, (first + i) % RIVAL_DEVS)) != 0)
			return (first + i) % RIVAL_DEVS;
	return 0;
}

static void
event(const struct rnic_event *ev)
{
	struct rival_link *l = ev->ctx;

	if (ev->type == RNIC_EV_CONNECTED) {
		l->connected = true;
		(void)l->qp->dev->ops->qp_rts(l->qp);
		if (l->confirms)
			rival_llc_start(l);
	} else if (ev->type == RNIC_EV_CONNECT_FAILED || ev->type == RNIC_EV_QP_ERROR) {
		l->broken = true;
	}
}

void
rival_link_free(struct rival_link *l)
{
	struct rival *r = l->of;
	struct rnic_event ev;
	struct rnic_dev *d;

	if (!l->used)
		return;
	l->used = false;
	d = l->qp->dev;
	d->ops->qp_destroy(l->qp);
	do {
		FUZZ_CHECK(d->ops->poll_event(d, &ev));
		event(&ev);
	} while (ev.type != RNIC_EV_QP_FREED);
	for (unsigned i = 0; i < RIVAL_RMBS; i++)
		l->rmb[i]->pd->dev->ops->mr_dereg(l->rmb[i]);
	l->recv_mr->pd->dev->ops->mr_dereg(l->recv_mr);
	l->pd->dev->ops->pd_free(l->pd);
	if (l->group->newest == l)
		l->group->newest = NULL;
	for (unsigned i = 0; i < RIVAL_MIDS; i++)
		if (r->mid[i].link == l)
			r->mid[i].link = NULL;
}

void
rival_link_connect(struct rival_link *l)
{
	enum rnic_side side = l->role == SMCR_SERVER ? RNIC_ACTIVE : RNIC_PASSIVE;

	if (l->connecting)
		return;
	l->connecting = true;
	(void)l->qp->dev->ops->qp_connect(l->qp, side, &l->remote);
}

struct rival_link *
rival_nth_link(struct rival *r, unsigned n)
{
	unsigned cnt = 0;

	for (unsigned i = 0; i < RIVAL_LINKS; i++)
		cnt += r->link[i].used;
	if (cnt == 0)
		return NULL;
	n %= cnt;
	for (unsigned i = 0;; i++)
		if (r->link[i].used && n-- == 0)
			return &r->link[i];
}

struct rival_link *
rival_working(struct rival_link *l)
{
	struct rival *r = l->of;

	for (unsigned i = 0; i < RIVAL_LINKS && (l->broken || !l->connected); i++) {
		struct rival_link *o = &r->link[i];

		if (o->used && o->group == l->group && o->connected && !o->broken)
			return o;
	}
	return l;
}

static bool
can_post(const struct rival_link *l)
{
	struct rnic_credits room;

	if (!l->used || !l->connected || l->broken)
		return false;
	l->qp->dev->ops->credits(l->qp, &room);
	return room.wrs > 0 && room.sends > 0;
}

void
rival_send(struct rival_link *l, const uint8_t *p, size_t len)
{
	struct rnic_send_wr wr = { .op = RNIC_WR_SEND,
		.flags = RNIC_INLINE | RNIC_SIGNALED,
		.sge_cnt = 1,
		.sge = { { .ptr = p, .len = (uint32_t)len } } };
	struct sim_forgery any = { .op = RNIC_WR_SEND, .data = (uint8_t *)(uintptr_t)p, .len = len };

	if (len > RIVAL_INLINE)
		(void)sim_forge(l->qp->dev, l->qp->qpn, &any);
	else if (can_post(l))
		(void)l->qp->dev->ops->post_send(l->qp, &wr);
}

void
rival_write(struct rival_link *l, uint32_t rkey, uint64_t addr, const uint8_t *p, size_t len)
{
	struct rnic_send_wr wr = { .op = RNIC_WR_WRITE,
		.flags = RNIC_INLINE | RNIC_SIGNALED,
		.sge_cnt = 1,
		.sge = { { .ptr = p, .len = (uint32_t)len } },
		.raddr = addr,
		.rkey = rkey };

	if (can_post(l) && len > 0)
		(void)l->qp->dev->ops->post_send(l->qp, &wr);
}

/* -- what arrives -- */

static void
take_cdc(struct rival *r, const uint8_t *buf, size_t len)
{
	struct cdc_msg msg;

	if (cdc_decode((struct span){ buf, len }, &msg) <= 0 || msg.token < RIVAL_TOKEN ||
	    msg.token - RIVAL_TOKEN >= RIVAL_MIDS)
		return;
	struct rival_mid *m = &r->mid[msg.token - RIVAL_TOKEN];
	if ((msg.prod_flags & CDC_FAILOVER) != 0)
		return;
	m->last = msg;
	m->has_last = true;
}

static void
take(struct rival_link *l, const uint8_t *buf, size_t len)
{
	struct llc_msg msg;

	if (len > 0 && buf[0] == CDC_TYPE) {
		take_cdc(l->of, buf, len);
		return;
	}
	if (llc_decode((struct span){ buf, len }, rival_llc_version(l->of), &msg) <= 0) {
		rival_heard_open(l, (struct span){ buf, len });
		return;
	}
	if (msg.type == LLC_TEST_LINK && !msg.response && (l->of->flags & RIVAL_ANSWERS) != 0) {
		uint8_t b[LLC_LEN];

		msg.response = true;
		if (llc_encode(&msg, rival_llc_version(l->of), b, sizeof(b)) > 0)
			rival_send(l, b, sizeof(b));
		return;
	}
	if (l->todo_cnt == RIVAL_TODO)
		return;
	memcpy(l->todo[l->todo_cnt].b, buf, len);
	l->todo[l->todo_cnt++].len = len;
}

static void
completion(const struct rnic_wc *wc)
{
	struct rival_link *l = wc->qp->ctx;
	uint8_t buf[RIVAL_RECV];
	struct rnic_recv_wr wr = {
		.wr_id = wc->wr_id, .mr = l->recv_mr, .ptr = l->recv[wc->wr_id % RIVAL_RQ], .len = RIVAL_RECV
	};

	if (wc->op != RNIC_WC_RECV || wc->status != RNIC_WC_OK)
		return;
	memcpy(buf, l->recv[wc->wr_id], wc->len);
	if (!l->broken)
		(void)l->qp->dev->ops->post_recv(l->qp, &wr, 1);
	take(l, buf, wc->len);
}

static bool
poll_device(struct rnic_dev *dev)
{
	struct rnic_wc wc[16];
	struct rnic_event ev;
	bool more = false;
	unsigned n;

	while (dev->ops->poll_event(dev, &ev)) {
		event(&ev);
		more = true;
	}
	while ((n = dev->ops->poll(dev, wc, 16)) > 0) {
		for (unsigned i = 0; i < n; i++)
			completion(&wc[i]);
		more = true;
	}
	return more;
}

/* -- CLC from the engine -- */

static struct rival_link *
link_of_qpn(struct rival *r, uint32_t qpn)
{
	for (unsigned i = 0; i < RIVAL_LINKS; i++)
		if (r->link[i].used && r->link[i].remote.qpn == qpn)
			return &r->link[i];
	return NULL;
}

static struct rnic_remote
remote_of(const struct clc_accept *a)
{
	struct rnic_remote r = { .qpn = a->qpn, .psn = a->psn, .mtu_code = a->mtu_code, .mpa_port = a->ext.mpa_port };

	memcpy(r.gid.b, a->gid, sizeof(r.gid.b));
	memcpy(r.mac, a->mac, sizeof(r.mac));
	return r;
}

/* The engine's Accept: a queue pair of ours; its Confirm: ours may be connected to it. */
static void
take_accept(struct rival_mid *m, const struct clc_accept *a, bool accept)
{
	struct rival *r = m->of;
	struct rival_link *l = link_of_qpn(r, a->qpn);

	m->theirs = *a;
	m->has_theirs = true;
	m->transports = a->ext.transports;
	if (accept && a->first_contact) {
		m->contact = true;
		m->group->token = a->ext.token;
		l = rival_link_new(r, m->group, SMCR_SERVER, rival_device_for(m));
	} else if (!accept && m->contact) {
		l = m->link;
	} else if (l != NULL) {
		m->group = l->group;
	}
	m->link = l;
	if (l == NULL || !m->contact)
		return;
	l->remote = remote_of(a);
	if ((r->flags & RIVAL_CONNECTS_LATE) == 0)
		rival_link_connect(l);
}

static void
parse(struct rival_mid *m)
{
	struct clc_msg msg;
	int n;

	while ((n = clc_decode((struct span){ m->in, m->in_len }, &msg)) > 0) {
		memmove(m->in, m->in + n, m->in_len - (size_t)n);
		m->in_len -= (size_t)n;
		if (msg.type == CLC_PROPOSAL) {
			m->has_proposal = true;
			m->offer = msg.proposal.v2;
			m->transports = msg.proposal.ext.transports;
		} else if (msg.type == CLC_ACCEPT || msg.type == CLC_CONFIRM) {
			take_accept(m, &msg.accept, msg.type == CLC_ACCEPT);
		}
	}
	FUZZ_CHECK(n == 0); /* what the engine says is always well formed */
}

static void
on_event(struct arena_user *u, unsigned events)
{
	struct rival_mid *m = (struct rival_mid *)(void *)u;
	bool user = (m->of->flags & RIVAL_ADMITS) != 0;
	struct smcr_diag diag;
	const char *detail;

	m->in_len += smcr_clc_output(m->conn, m->in + m->in_len, sizeof(m->in) - m->in_len);
	parse(m);
	m->established = m->established || (events & SMCR_EV_ESTABLISHED) != 0;
	m->fallen = m->fallen || (events & SMCR_EV_FALLBACK) != 0;
	m->closed = m->closed || (events & SMCR_EV_CLOSED) != 0;
	if ((events & SMCR_EV_PROPOSAL) != 0 && user)
		smcr_admit(m->conn);
	if ((events & SMCR_EV_READABLE) != 0 && user && !m->closed) {
		struct iovec iov[2];
		bool urgent;
		size_t n;

		while ((n = smcr_rx_data(m->conn, iov, &urgent)) > 0)
			smcr_rx_consume(m->conn, n);
	}
	if (m->fallen && smcr_clc_want(m->conn) == 0) {
		uint8_t *buf = aligned_alloc(1, SMCR_LEFTOVER_MAX); /* not by malloc, which may fail for the engine */

		FUZZ_CHECK(buf != NULL && smcr_clc_leftover(m->conn, buf, SMCR_LEFTOVER_MAX) <= SMCR_LEFTOVER_MAX);
		free(buf);
	}
	if (m->fallen)
		smcr_fallback(m->conn, &diag);
	if (m->closed)
		FUZZ_CHECK(smcr_reason_str(smcr_closed(m->conn, &detail)) != NULL && detail != NULL);
	if (user && (m->closed || (m->fallen && smcr_clc_want(m->conn) == 0)))
		rival_release(m);
}

void
rival_release(struct rival_mid *m)
{
	if (m->conn == NULL)
		return;
	smcr_release(m->conn);
	m->conn = NULL;
	m->out_len = m->in_len = 0;
}

/* -- CLC to the engine -- */

/* The slot is free, and its connection is described. */
static struct smcr_open
describe(struct rival_mid *m, enum smcr_role role, unsigned group, unsigned size_code)
{
	struct rival *r = m->of;
	struct smcr_open open = { .role = role,
		.app = m,
		.elem_size = SMCR_ELEM_MIN << size_code % 2,
		.subnet_cnt = 1,
		.subnet = { { .addr = { 10, 0, 0, 0 }, .prefix_len = 16 } },
		.ticket = role == SMCR_SERVER && (r->flags & RIVAL_OPENS) != 0 ? RIVAL_TICKET : 0 };
	unsigned slot = m->slot;

	memset(m, 0, sizeof(*m));
	m->of = r;
	m->slot = slot;
	m->user.on_event = on_event;
	m->role = role;
	m->group = &r->group[group % RIVAL_GROUPS];
	/* A second port of the same peer, or the same peer at a second address. */
	snprintf(open.peer_key, sizeof(open.peer_key), "rival:%u:%u", group % RIVAL_GROUPS, group >> 6 & 1u);
	if ((group & 0x20) != 0)
		open.subnet[open.subnet_cnt++] = (struct smcr_subnet){ .v6 = true, .addr = { 0xfd }, .prefix_len = 64 };
	open.remote.addr[15] = (uint8_t)(10 + (group >> 7 & 1u));
	if ((r->flags & RIVAL_V2) != 0) {
		open.peer = SMCR_PEER_LINUX;
		open.remote.addr[10] = open.remote.addr[11] = 0xff; /* IPv4 */
	}
	return open;
}

void
rival_open(struct rival_mid *m, enum smcr_role role, unsigned group, unsigned size_code, bool prewarm)
{
	int err;

	if (m->conn != NULL)
		return;
	struct smcr_open open = describe(m, role, group, size_code);
	open.prewarm = prewarm && role == SMCR_CLIENT;
	m->conn = smcr_open(m->of->arena->eng, &open, &err);
}

void
rival_open_over_link(struct rival_mid *m, unsigned group, unsigned size_code)
{
	if (m->conn != NULL)
		return;
	struct smcr_open open = describe(m, SMCR_CLIENT, group, size_code);
	m->conn = smcr_open_over_link(m->of->arena->eng, &open);
}

struct rival_mid *
rival_adopt(struct rival *r, struct smcr_conn *conn)
{
	struct rival_mid *m = r->mid;

	while (m < r->mid + RIVAL_MIDS && (m->conn != NULL || (m->slot != r->opener && r->mid[r->opener].conn == NULL)))
		m++;
	if (m == r->mid + RIVAL_MIDS)
		return NULL;
	(void)describe(m, SMCR_SERVER, 0, 0);
	m->conn = conn;
	m->theirs = (struct clc_accept){ .rkey = r->opened.rkey,
		.vaddr = r->opened.vaddr,
		.rmbe_idx = r->opened.idx,
		.alert_token = r->opened.token };
	m->has_theirs = true;
	m->link = r->opened_over;
	return m;
}

void
rival_clc_bytes(struct rival_mid *m, const uint8_t *p, size_t len)
{
	if (len > sizeof(m->out) - m->out_len)
		len = sizeof(m->out) - m->out_len;
	memcpy(m->out + m->out_len, p, len);
	m->out_len += len;
}

static bool
pass_on(struct rival_mid *m)
{
	size_t n = m->conn != NULL && !m->hold ? smcr_clc_want(m->conn) : 0;

	if (n > m->out_len)
		n = m->out_len;
	if (n == 0)
		return false;
	uint8_t *copy = aligned_alloc(1, n);
	FUZZ_CHECK(copy != NULL);
	memcpy(copy, m->out, n);
	memmove(m->out, m->out + n, m->out_len - n);
	m->out_len -= n;
	smcr_clc_input(m->conn, copy, n);
	free(copy);
	return true;
}

/* -- CDC -- */

static struct cdc_cursor
cursor(uint64_t pos, bool eye)
{
	uint32_t usable = RIVAL_ELEM - (eye ? 4 : 0);

	return (struct cdc_cursor){ (uint16_t)(pos / usable), (uint32_t)(pos % usable) + (eye ? 4 : 0) };
}

void
rival_cdc(struct rival_mid *m, struct rival_link *over, uint8_t prod_flags, uint8_t conn_flags, uint32_t produce)
{
	bool eye = (m->of->flags & RIVAL_EYE) != 0 || m->of->arena->cfg.rfc_cursors;
	struct cdc_msg msg = { .prod_flags = prod_flags, .conn_flags = conn_flags };
	uint8_t buf[CDC_LEN];

	if (!m->has_theirs || over == NULL)
		return;
	m->produced += produce;
	if ((prod_flags & CDC_FAILOVER) == 0)
		m->seq++;
	msg.seq = m->seq;
	msg.token = m->theirs.alert_token;
	msg.prod = cursor(m->produced, eye);
	msg.cons = m->has_last ? m->last.prod : cursor(0, eye);
	FUZZ_CHECK(cdc_encode(&msg, buf, sizeof(buf)) > 0);
	rival_twist_llc(m->of, buf, sizeof(buf));
	rival_send(over, buf, sizeof(buf));
}

/* -- the whole -- */

bool
rival_turn(struct rival *r)
{
	bool more = false;

	if (r == NULL)
		return false;
	for (unsigned i = 0; i < RIVAL_DEVS; i++)
		more = poll_device(r->dev[i]) || more;
	for (unsigned i = 0; i < RIVAL_MIDS; i++)
		more = pass_on(&r->mid[i]) || more;
	return more;
}

struct rival *
rival_new(struct arena *a, unsigned flags)
{
	struct rival *r = calloc(1, sizeof(*r));

	FUZZ_CHECK(r != NULL);
	r->arena = a;
	r->flags = (flags & RIVAL_V2) != 0 ? flags | RIVAL_NO_EXT : flags;
	a->rival = r;
	for (unsigned i = 0; i < RIVAL_DEVS; i++)
		r->dev[i] = arena_device(a, 2, i);
	for (unsigned i = 0; i < RIVAL_GROUPS; i++) {
		r->group[i].token = 0x1122334455667700 + i;
		memcpy(r->group[i].peer_id, (uint8_t[8]){ 0, (uint8_t)(i + 1), 2, 0, 0, 0, 0, 3 }, 8);
	}
	for (unsigned i = 0; i < RIVAL_MIDS; i++) {
		r->mid[i].of = r;
		r->mid[i].slot = i;
	}
	return r;
}

void
rival_free(struct rival *r)
{
	for (unsigned i = 0; i < RIVAL_LINKS; i++)
		rival_link_free(&r->link[i]);
	for (unsigned i = 0; i < RIVAL_DEVS; i++)
		rnic_end(r->dev[i]);
	free(r);
}
