/*
 * What happens between sim devices: connecting, messages on their way, their
 * answers, and links that break. All of it hangs on timers in virtual time.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/sim_int.h"
#include "tests/seeded_rng.h"

#define US 1000LL
#define MS 1000000LL
#define QP_TIMERS 3
#define WIRE_NS_PER_BYTE_DIV 8 /* 8 bytes a ns: long messages take longer */
#define HOLD_NS (100 * US)     /* a message that is held back is looked at again */

void
sim_config_init(struct sim_config *cfg)
{
	*cfg = (struct sim_config){
		.seed = 1,
		.delay_min_ns = 2 * US,
		.delay_max_ns = 20 * US,
		.ack_max_ns = 5 * US,
		.retry_ns = 1000 * MS,
		.connect_ns = 2000 * MS,
		.max_sq = 4096,
		.max_rq = 4096,
		.max_sge = RNIC_SGE_MAX,
		.max_inline = 64,
		.max_qp = 4096,
		.max_mr = 65536,
		.credit_bytes = 1 << 20,
		.need_flush = true,
		.cut = SIM_CUT_RESET,
	};
}

void
sim_log(struct sim_fabric *fab, const char *fmt, ...)
{
	char line[256];
	va_list ap;

	if (fab->cfg.log == NULL)
		return;
	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	fab->cfg.log(fab->cfg.ctx, fab->now_ns, line);
}

static int64_t
draw(struct sim_fabric *fab, int64_t from, int64_t to)
{
	return to <= from ? from : from + (int64_t)(rng_u64(&fab->rng) % (uint64_t)(to - from + 1));
}

static int64_t
delay(struct sim_fabric *fab)
{
	return draw(fab, fab->cfg.delay_min_ns, fab->cfg.delay_max_ns);
}

struct sim_qp *
sim_qp_get(struct sim_fabric *fab, uint32_t id)
{
	return id == 0 ? NULL : idtable_get(&fab->qps, id);
}

/* Whom packets of `from` to this GID come to. Those of another kind of RoCE are not understood. */
static struct sim_dev *
dev_by_gid(const struct sim_dev *from, const struct rnic_gid *gid)
{
	LIST_FOREACH(n, &from->fab->devs) {
		struct sim_dev *dev = CONTAINER_OF(n, struct sim_dev, node);

		if (memcmp(&dev->info.gid, gid, sizeof(*gid)) == 0 && dev->info.gid_type == from->info.gid_type &&
		    !dev->gone)
			return dev;
	}
	return NULL;
}

struct sim_qp *
sim_qp_by_qpn(struct sim_fabric *fab, const struct sim_dev *dev, uint32_t qpn)
{
	uint32_t pos = 0;
	struct sim_qp *qp;

	while ((qp = idtable_next(&fab->qps, &pos)) != NULL)
		if (qp->dev == dev && qp->base.qpn == qpn)
			return qp;
	return NULL;
}

/* -- channels -- */

static void chan_fire(struct timer *);

/* One try may fail where a test lets allocations fail. */
static void
reserve_timers(struct sim_fabric *fab, unsigned cnt)
{
	for (int tries = 0; timerq_reserve(&fab->timers, cnt) != 0; tries++)
		if (tries == 1000)
			abort();
}

static void
chan_new(struct sim_qp *qp, struct sim_dev *to_dev, uint32_t to)
{
	struct sim_fabric *fab = qp->dev->fab;
	struct sim_chan *chan = sim_alloc(sizeof(*chan));

	reserve_timers(fab, 1);
	chan->fab = fab;
	chan->from = qp->id;
	chan->from_dev = qp->dev;
	chan->to = to;
	chan->to_dev = to_dev;
	chan->held_ns = -1;
	list_init(&chan->msgs);
	timer_init(&chan->timer, chan_fire);
	list_push(&fab->chans, &chan->node);
	fab->chan_cnt++;
	qp->chan = chan;
}

static void
handed_conn_free(struct sim_chan *chan, struct sim_parcel *par)
{
	chan->bytes -= par->len;
	if (par->wr != NULL)
		par->wr->parcel = NULL;
	list_remove(&par->node);
	free(par);
}

static void
chan_clear(struct sim_chan *chan)
{
	LIST_FOREACH(n, &chan->msgs)
		handed_conn_free(chan, CONTAINER_OF(n, struct sim_parcel, node));
}

static void
chan_free(struct sim_chan *chan)
{
	struct sim_fabric *fab = chan->fab;

	chan_clear(chan);
	timer_cancel(&fab->timers, &chan->timer);
	timerq_unreserve(&fab->timers, 1);
	list_remove(&chan->node);
	fab->chan_cnt--;
	free(chan);
}

static struct sim_parcel *
chan_head(const struct sim_chan *chan)
{
	struct list_node *n = list_first(&chan->msgs);

	return n == NULL ? NULL : CONTAINER_OF(n, struct sim_parcel, node);
}

/* Arms the timer for the first message; a released one with nothing left to deliver goes. */
static void
chan_next(struct sim_chan *chan)
{
	struct sim_parcel *head = chan_head(chan);

	if (head != NULL && head->left) {
		/* The connection may have waited already, at a closed port. */
		timer_arm(&chan->fab->timers, &chan->timer,
		    head->at_ns > chan->fab->now_ns ? head->at_ns : chan->fab->now_ns);
		return;
	}
	timer_cancel(&chan->fab->timers, &chan->timer);
	if (chan->released)
		chan_free(chan);
}

static void
chan_stamp(struct sim_chan *chan, struct sim_parcel *par)
{
	struct sim_fabric *fab = chan->fab;
	int64_t at = fab->now_ns + delay(fab);

	if (at < chan->last_ns)
		at = chan->last_ns;
	par->at_ns = chan->last_ns = at + par->len / WIRE_NS_PER_BYTE_DIV;
	par->left = true;
}

void
sim_transmit(struct sim_qp *qp)
{
	struct sim_chan *chan = qp->chan;

	if (chan == NULL)
		return;
	LIST_FOREACH(n, &chan->msgs) {
		struct sim_parcel *par = CONTAINER_OF(n, struct sim_parcel, node);

		if (!par->left)
			chan_stamp(chan, par);
	}
	if (!timer_armed(&chan->timer))
		chan_next(chan);
}

/* Requests that no flush has sent yet never leave. */
static void
chan_drop_unsent(struct sim_chan *chan)
{
	if (chan == NULL)
		return;
	LIST_FOREACH(n, &chan->msgs) {
		struct sim_parcel *par = CONTAINER_OF(n, struct sim_parcel, node);

		if (!par->left)
			handed_conn_free(chan, par);
	}
}

/* The far end learns that this one is gone: behind everything that is still on its way. */
static void
chan_fin(struct sim_chan *chan)
{
	struct sim_parcel *par = sim_alloc(sizeof(*par));

	par->fin = true;
	list_push(&chan->msgs, &par->node);
	chan_stamp(chan, par);
	if (!timer_armed(&chan->timer))
		chan_next(chan);
}

/* -- breaking -- */

static void
arm_fail(struct sim_qp *qp, int64_t at_ns, enum rnic_wc_status status, const char *why)
{
	if (qp->state != SIM_QP_READY || (timer_armed(&qp->fail_timer) && qp->fail_timer.at_ns <= at_ns))
		return;
	qp->only_silent = false;
	qp->fail_status = status;
	qp->fail_why = why;
	timer_arm(&qp->dev->fab->timers, &qp->fail_timer, at_ns);
}

static void
fail_fire(struct timer *t)
{
	struct sim_qp *qp = CONTAINER_OF(t, struct sim_qp, fail_timer);

	if (qp->only_silent) {
		sim_note(qp, RNIC_EV_SILENT, NULL);
		timer_arm(&qp->dev->fab->timers, t, qp->dev->fab->now_ns + qp->dev->fab->cfg.retry_ns);
		return;
	}
	sim_qp_break(qp, qp->fail_status, qp->fail_why);
}

static void
stop_timers(struct sim_qp *qp)
{
	struct timerq *q = &qp->dev->fab->timers;

	timer_cancel(q, &qp->answer_timer);
	timer_cancel(q, &qp->conn_timer);
	timer_cancel(q, &qp->fail_timer);
}

void
sim_qp_break(struct sim_qp *qp, enum rnic_wc_status first, const char *why)
{
	bool was_ready = qp->state == SIM_QP_READY;

	if (qp->state == SIM_QP_BROKEN || qp->state == SIM_QP_CLOSED)
		return;
	sim_log(qp->dev->fab, "%s qp %06x breaks: %s", qp->dev->info.name, qp->base.qpn, why);
	stop_timers(qp);
	qp->state = SIM_QP_BROKEN;
	chan_drop_unsent(qp->chan);
	sim_qp_flush(qp, first);
	if (was_ready)
		sim_note(qp, RNIC_EV_QP_ERROR, why);
	else if (qp->has_remote)
		sim_note(qp, RNIC_EV_CONNECT_FAILED, why);
	if (qp->chan != NULL && !qp->chan->dead && !qp->dev->gone && rnic_is_iwarp(qp->dev->info.transport))
		chan_fin(qp->chan);
}

/* The messages on their way from here are cut off behind a random one. */
static void
chan_cut_tail(struct sim_chan *chan)
{
	uint32_t cnt = 0, keep;

	chan_drop_unsent(chan);
	LIST_FOREACH(n, &chan->msgs)
		cnt++;
	keep = rng_below(&chan->fab->rng, cnt + 1);
	LIST_FOREACH(n, &chan->msgs) {
		struct sim_parcel *par = CONTAINER_OF(n, struct sim_parcel, node);

		if (keep > 0)
			keep--;
		else
			handed_conn_free(chan, par);
	}
	if (list_empty(&chan->msgs))
		timer_cancel(&chan->fab->timers, &chan->timer);
}

void
sim_disconnect(struct sim_qp *qp, bool graceful)
{
	bool iwarp = rnic_is_iwarp(qp->dev->info.transport);
	bool broken = qp->state == SIM_QP_BROKEN;

	stop_timers(qp);
	qp->state = SIM_QP_CLOSED;
	if (graceful && iwarp)
		sim_transmit(qp);
	sim_qp_flush(qp, RNIC_WC_FLUSHED);
	if (qp->chan == NULL || broken)
		return;
	if (!graceful || !iwarp)
		chan_cut_tail(qp->chan);
	if (iwarp && !qp->chan->dead)
		chan_fin(qp->chan);
}

void
sim_chan_release(struct sim_qp *qp)
{
	struct sim_fabric *fab = qp->dev->fab;

	stop_timers(qp);
	timerq_unreserve(&fab->timers, QP_TIMERS);
	idtable_del(&fab->qps, qp->id);
	if (qp->chan == NULL)
		return;
	qp->chan->released = true;
	if (list_empty(&qp->chan->msgs))
		chan_free(qp->chan);
	qp->chan = NULL;
}

static void
chan_die(struct sim_chan *chan)
{
	chan->dead = true;
	chan_clear(chan);
	timer_cancel(&chan->fab->timers, &chan->timer);
}

/* Messages on their way take longer: a network that retransmits. */
static void
chan_delay(struct sim_chan *chan, int64_t by_ns)
{
	LIST_FOREACH(n, &chan->msgs) {
		struct sim_parcel *par = CONTAINER_OF(n, struct sim_parcel, node);

		if (par->left)
			par->at_ns += by_ns;
	}
	chan->last_ns += by_ns;
	if (timer_armed(&chan->timer))
		chan_next(chan);
}

/* RoCE gives the QP up; iWARP's TCP goes on. */
static void
arm_silence(struct sim_qp *qp)
{
	arm_fail(qp, qp->dev->fab->now_ns + qp->dev->fab->cfg.retry_ns, RNIC_WC_RETRY_EXC, "the peer does not answer");
	qp->only_silent = rnic_is_iwarp(qp->dev->info.transport);
}

/* One end of a link that breaks: it notices after notice_ns; what it sent may take late_ns longer. */
static void
cut_end(struct sim_qp *qp, enum sim_cut cut, int64_t notice_ns, int64_t late_ns)
{
	if (qp == NULL)
		return;
	if (qp->chan != NULL && cut == SIM_CUT_LATE)
		chan_delay(qp->chan, draw(qp->dev->fab, 0, rng_below(&qp->dev->fab->rng, 2) * late_ns));
	else if (qp->chan != NULL)
		chan_die(qp->chan);
	if (cut != SIM_CUT_SILENT)
		arm_fail(qp, qp->dev->fab->now_ns + notice_ns, RNIC_WC_RETRY_EXC, "connection lost");
	else if (!list_empty(&qp->sq))
		arm_silence(qp);
}

/* `first` notices first. */
static void
cut_link(struct sim_fabric *fab, struct sim_qp *first, struct sim_qp *other, enum sim_cut cut)
{
	int64_t soon = delay(fab);
	int64_t late = cut == SIM_CUT_LATE ? draw(fab, soon, fab->cfg.retry_ns) : delay(fab);

	sim_log(fab, "link of qp %06x and %06x is cut (%d)", first != NULL ? first->base.qpn : 0,
	    other != NULL ? other->base.qpn : 0, (int)cut);
	cut_end(first, cut, soon, late);
	cut_end(other, cut, late, late);
}

/* At a message: either end. */
static void
cut_anyhow(struct sim_fabric *fab, struct sim_qp *a, struct sim_qp *b)
{
	bool swap = rng_below(&fab->rng, 2) == 1;

	cut_link(fab, swap ? b : a, swap ? a : b, fab->cfg.cut);
}

/* -- arrival -- */

static bool
same_end(const struct rnic_remote *r, const struct sim_qp *qp)
{
	return r->qpn == qp->base.qpn && r->psn == qp->base.psn &&
	    memcmp(&r->gid, &qp->dev->info.gid, sizeof(r->gid)) == 0;
}

/* RoCE: the owner of the address that the sender was given. */
static struct sim_qp *
roce_target(struct sim_chan *chan)
{
	struct sim_qp *from = sim_qp_get(chan->fab, chan->from);
	struct sim_qp *to = sim_qp_get(chan->fab, chan->to);

	if (to != NULL || from == NULL || chan->to_dev == NULL)
		return to;
	if (memcmp(from->remote.mac, chan->to_dev->info.mac, sizeof(from->remote.mac)) != 0)
		return NULL;
	to = sim_qp_by_qpn(chan->fab, chan->to_dev, from->remote.qpn);
	if (to == NULL || to->base.psn != from->remote.psn || !to->has_remote || !same_end(&to->remote, from))
		return NULL;
	chan->to = to->id;
	return to;
}

static struct sim_qp *
chan_target(struct sim_chan *chan)
{
	return chan->to_dev != NULL && chan->to_dev->info.transport == RNIC_TRANSPORT_ROCE
	    ? roce_target(chan)
	    : sim_qp_get(chan->fab, chan->to);
}

static bool
port_closed(const struct sim_dev *dev)
{
	return dev == NULL || dev->gone || dev->frozen || dev->info.port == RNIC_PORT_DOWN;
}

/* The first message waits: for a port, for the peer's QP, for a receive; `patient` for ever. */
static void
chan_hold(struct sim_chan *chan, bool patient)
{
	struct sim_fabric *fab = chan->fab;
	struct sim_qp *from = sim_qp_get(fab, chan->from);
	int64_t waited;

	if (chan->held_ns < 0) {
		chan->held_ns = fab->now_ns;
		chan->silences = 0;
	}
	waited = fab->now_ns - chan->held_ns;
	if (!patient && from != NULL && rnic_is_iwarp(from->dev->info.transport) && from->state == SIM_QP_READY) {
		if (waited / fab->cfg.retry_ns > chan->silences) {
			chan->silences++;
			sim_note(from, RNIC_EV_SILENT, NULL);
		}
		patient = true;
	}
	if (patient || waited < fab->cfg.retry_ns) {
		timer_arm(&fab->timers, &chan->timer, fab->now_ns + fab->cfg.delay_max_ns + waited / 4 + 1);
		return;
	}
	chan_die(chan);
	if (from != NULL)
		arm_fail(from, fab->now_ns, RNIC_WC_RETRY_EXC, "the peer does not answer");
}

static void
answer(struct sim_wr *wr)
{
	struct sim_qp *qp = wr->qp;
	struct sim_fabric *fab = qp->dev->fab;
	int64_t at = fab->now_ns + delay(fab) + draw(fab, 0, fab->cfg.ack_max_ns);

	if (wr->seq > qp->fence_seq)
		at += fab->cfg.fence_ns;
	sim_check_buffers(wr);
	wr->state = SIM_WR_ARRIVED;
	wr->answer_ns = at;
	wr->parcel = NULL;
	if (!timer_armed(&qp->answer_timer))
		timer_arm(&fab->timers, &qp->answer_timer, at);
}

/* Both sides of a link where `to` refused a message of `from`. */
static void
refuse(struct sim_chan *chan, struct sim_qp *to, const char *why)
{
	struct sim_qp *from = sim_qp_get(chan->fab, chan->from);

	chan_die(chan);
	sim_qp_break(to, RNIC_WC_FLUSHED, why);
	if (from != NULL)
		arm_fail(from, chan->fab->now_ns + delay(chan->fab), RNIC_WC_REMOTE_ERR, why);
}

#define ARRIVED_LEN (4 * RNIC_UNPLACED_MAX)

/* A copy in the buffer where writes may stay, which is spoilt when it is reused; NULL: this one may not. */
static const uint8_t *
arrived_in(struct sim_qp *to, const struct sim_parcel *par)
{
	struct sim_fabric *fab = to->dev->fab;
	uint8_t *at;

	if (fab->cfg.unplaced_percent == 0)
		return NULL;
	if (to->arrived_len + par->len > ARRIVED_LEN || rng_below(&fab->unplaced_rng, 4) == 0) {
		rnic_unit_place_all(&to->unplaced);
		if (to->arrived != NULL)
			memset(to->arrived, 0xee, ARRIVED_LEN);
		to->arrived_len = 0;
	}
	if (par->len > RNIC_UNPLACED_MAX || rng_below(&fab->unplaced_rng, 100) >= fab->cfg.unplaced_percent)
		return NULL;
	if (to->arrived == NULL)
		to->arrived = sim_alloc(ARRIVED_LEN);
	at = to->arrived + to->arrived_len;
	to->arrived_len += par->len;
	return memcpy(at, par->data, par->len);
}

/* Where a write goes, or NULL when the key or the range is wrong, or its owner no longer lets anybody in. *stays, if that is not NULL:
 * it is left where it arrived. */
static uint8_t *
write_target(struct sim_qp *to, const struct sim_parcel *par, bool *stays)
{
	LIST_FOREACH(n, &to->dev->mrs) {
		const struct sim_mr *mr = CONTAINER_OF(n, struct sim_mr, node);

		if (mr->base.rkey != par->rkey)
			continue;
		if (mr->base.pd != &to->pd->base || (mr->access & RNIC_ACCESS_REMOTE_WRITE) == 0 ||
		    par->raddr < mr->base.addr || par->raddr - mr->base.addr > mr->base.len ||
		    par->len > mr->base.len - (par->raddr - mr->base.addr))
			return NULL;
		uint8_t *dst = mr->base.buf + (par->raddr - mr->base.addr), *at = dst;
		if (to->dev->info.denies &&
		    rnic_mr_refuses(&mr->base, (size_t)(dst - mr->base.buf), par->len, false,
		        stays != NULL ? arrived_in(to, par) : NULL, &to->unplaced, &at))
			return NULL;
		if (stays != NULL)
			*stays = at == NULL;
		return dst;
	}
	return NULL;
}

enum arrival {
	ARRIVED,
	HELD,    /* it stays the first one */
	REFUSED, /* the channel is dead, the message freed */
};

static void
place(struct sim_chan *chan, struct sim_qp *to, uint8_t *dst, const struct sim_parcel *par, uint32_t len, bool stays)
{
	const struct sim_config *cfg = &chan->fab->cfg;

	if (!stays)
		memcpy(dst, par->data, len);
	if (cfg->placed != NULL && chan->from_dev != NULL && len > 0)
		cfg->placed(cfg->ctx, &chan->from_dev->base, &to->base, dst, len);
}

static enum arrival
write_arrives(struct sim_chan *chan, struct sim_qp *to, struct sim_parcel *par)
{
	struct sim_fabric *fab = chan->fab;
	const struct rng before = fab->rng;
	bool torn, stays = false;
	uint8_t *dst;
	uint32_t half;

	if (par->early)
		return ARRIVED;
	torn = !par->half && rng_below(&fab->rng, 100) < fab->cfg.tear_percent;
	dst = write_target(to, par, par->half || torn ? NULL : &stays);
	if (dst == NULL) {
		fab->rng = before; /* what is refused draws nothing */
		refuse(chan, to, "remote access error");
		return REFUSED;
	}
	if (!torn) {
		place(chan, to, dst, par, par->len, stays);
		return ARRIVED;
	}
	half = rng_below(&fab->rng, par->len);
	place(chan, to, dst, par, half, false);
	par->half = true;
	par->at_ns = fab->now_ns + delay(fab);
	if (chan->last_ns < par->at_ns)
		chan->last_ns = par->at_ns;
	timer_arm(&fab->timers, &chan->timer, par->at_ns);
	return HELD;
}

static enum arrival
send_arrives(struct sim_chan *chan, struct sim_qp *to, struct sim_parcel *par)
{
	struct sim_recv *r = CONTAINER_OF(list_first(&to->rq), struct sim_recv, node);

	if (par->len > r->req.len) {
		/* Of the sender's: a message has its length by the protocol above. */
		sim_breach(chan->from_dev != NULL ? chan->from_dev : to->dev,
		    "a message of %u bytes meets a receive of %u at qp %06x", par->len, r->req.len, to->base.qpn);
		refuse(chan, to, "message longer than the receive buffer");
		return REFUSED;
	}
	memcpy(r->req.ptr, par->data, par->len);
	sim_recv_finish(to, r, RNIC_WC_OK, par->len);
	return ARRIVED;
}

static enum sim_fate
fate(struct sim_chan *chan, const struct sim_parcel *par)
{
	struct sim_fabric *fab = chan->fab;
	struct sim_qp *from = sim_qp_get(fab, chan->from);
	struct sim_msg msg = { .from = &chan->from_dev->base,
		.to = &chan->to_dev->base,
		.qpn = from != NULL ? from->base.qpn : 0,
		.op = par->op,
		.data = par->data,
		.len = par->len,
		.nr = fab->msg_cnt + 1 };

	enum sim_fate f = SIM_DELIVER;

	if (par->half)
		return f;
	if (chan->ghost || par->omit)
		f = SIM_DROP;
	else if (fab->cfg.filter != NULL)
		f = fab->cfg.filter(fab->cfg.ctx, &msg);
	fab->msg_cnt += f != SIM_HOLD;
	return f;
}

/* Here, and its sender will never know. Its buffer is not read again: a duplicate is only acknowledged. */
static void
unacked(struct sim_parcel *par)
{
	if (par->wr == NULL)
		return;
	sim_check_buffers(par->wr);
	par->wr->state = SIM_WR_UNACKED;
}

/* Acknowledged, and nowhere to be seen. */
static void
vanish(struct sim_chan *chan, struct sim_parcel *par)
{
	sim_log(chan->fab, "%s -> %s %u bytes vanish", chan->from_dev->info.name, chan->to_dev->info.name, par->len);
	if (par->wr != NULL) {
		answer(par->wr);
		par->wr = NULL;
	}
	handed_conn_free(chan, par);
}

/* From here on the receiving adapter acknowledges what its host never gets; the link breaks when that was believed. */
static void
haunt(struct sim_chan *chan, struct sim_qp *to)
{
	struct sim_fabric *fab = chan->fab;
	struct sim_qp *from = sim_qp_get(fab, chan->from);
	int64_t at = fab->now_ns + 2 * fab->cfg.delay_max_ns + fab->cfg.ack_max_ns + fab->cfg.fence_ns;

	chan->ghost = true;
	at += draw(fab, 0, fab->cfg.retry_ns);
	if (from != NULL)
		arm_fail(from, at, RNIC_WC_RETRY_EXC, "connection lost");
	arm_fail(to, at + delay(fab), RNIC_WC_RETRY_EXC, "connection lost");
}

/* The link breaks at this message: true when it is not to be delivered. */
static bool
meets_cut(struct sim_chan *chan, struct sim_qp *to, struct sim_parcel *par, enum sim_fate f)
{
	struct sim_fabric *fab = chan->fab;
	uint8_t *dst = f == SIM_TEAR && par->op == RNIC_WR_WRITE && !par->early ? write_target(to, par, NULL) : NULL;

	if (f != SIM_LOSE && f != SIM_TEAR)
		return false;
	if (dst != NULL)
		memcpy(dst, par->data, rng_below(&fab->rng, par->len));
	chan_die(chan);
	cut_anyhow(fab, sim_qp_get(fab, chan->from), to);
	return true;
}

/* No peer is left to answer. */
static void
chan_lost(struct sim_chan *chan)
{
	struct sim_qp *from = sim_qp_get(chan->fab, chan->from);

	chan_die(chan);
	if (from != NULL && !list_empty(&from->sq))
		arm_fail(
		    from, chan->fab->now_ns + chan->fab->cfg.retry_ns, RNIC_WC_RETRY_EXC, "the peer does not answer");
}

enum obstacle {
	OBST_NONE,
	OBST_WAIT, /* may go away: retried until retry_ns */
	OBST_RNR,  /* no receive posted */
	OBST_LOST, /* nothing passes */
};

static enum obstacle
obstacle(const struct sim_chan *chan, const struct sim_qp *to, const struct sim_parcel *par)
{
	bool roce = chan->to_dev == NULL || chan->to_dev->info.transport == RNIC_TRANSPORT_ROCE;

	if (chan->dead)
		return OBST_LOST;
	if (port_closed(chan->from_dev) || port_closed(chan->to_dev))
		return OBST_WAIT;
	if (to == NULL || to->state == SIM_QP_BROKEN || to->state == SIM_QP_CLOSED)
		return roce ? OBST_WAIT : OBST_LOST;
	if (par->fin)
		return OBST_NONE;
	if (to->state != SIM_QP_READY)
		return OBST_WAIT;
	return par->op == RNIC_WR_SEND && list_empty(&to->rq) ? OBST_RNR : OBST_NONE;
}

/* No obstacle is left. True when the message is gone and the next one may come. */
static bool
deliver(struct sim_chan *chan, struct sim_qp *to, struct sim_parcel *par)
{
	struct sim_fabric *fab = chan->fab;
	enum sim_fate f = fate(chan, par);
	enum arrival a;

	if (f == SIM_HOLD) {
		timer_arm(&fab->timers, &chan->timer, fab->now_ns + HOLD_NS);
		return false;
	}
	if (meets_cut(chan, to, par, f))
		return false;
	if (f == SIM_GHOST)
		haunt(chan, to);
	if (f == SIM_GHOST || f == SIM_DROP) {
		vanish(chan, par);
		return true;
	}
	a = par->op == RNIC_WR_WRITE ? write_arrives(chan, to, par) : send_arrives(chan, to, par);
	if (a != ARRIVED)
		return false;
	sim_log(fab, "%s -> %s %s %u bytes", chan->from_dev->info.name, chan->to_dev->info.name,
	    par->op == RNIC_WR_WRITE ? "write" : "send", par->len);
	if (f == SIM_DELIVER && par->wr != NULL) {
		answer(par->wr);
		par->wr = NULL;
	}
	if (f == SIM_UNACKED)
		unacked(par);
	handed_conn_free(chan, par);
	if (f == SIM_UNACKED)
		cut_anyhow(fab, sim_qp_get(fab, chan->from), to);
	return !chan->dead;
}

/* True when the first message was dealt with and the next one may come. */
static bool
arrive(struct sim_chan *chan, struct sim_parcel *par)
{
	struct sim_qp *to = chan_target(chan);
	enum obstacle o = obstacle(chan, to, par);

	switch (o) {
	case OBST_WAIT:
	case OBST_RNR:
		chan_hold(chan, o == OBST_RNR && chan->to_dev->info.transport == RNIC_TRANSPORT_ROCE);
		return false;
	case OBST_LOST:
		chan_lost(chan);
		return false;
	case OBST_NONE:
		break;
	}
	chan->held_ns = -1;
	if (!par->fin)
		return deliver(chan, to, par);
	chan_die(chan);
	sim_qp_break(to, RNIC_WC_FLUSHED, "closed by the peer");
	return false;
}

/* Some of the writes behind the first message overtake it. Only that they are placed is early: rights are looked at then, all else
 * waits for its turn, so does what may become of them. */
static void
place_early(struct sim_chan *chan)
{
	struct sim_fabric *fab = chan->fab;
	struct sim_qp *to = chan_target(chan);
	struct sim_parcel *head = chan_head(chan);

	if (fab->cfg.early_percent == 0 || head == NULL || to == NULL || to->state != SIM_QP_READY || chan->dead ||
	    chan->ghost || !rnic_is_iwarp(to->dev->info.transport) || port_closed(chan->from_dev) ||
	    port_closed(to->dev))
		return;
	LIST_FOREACH(n, &chan->msgs) {
		struct sim_parcel *par = CONTAINER_OF(n, struct sim_parcel, node);
		bool stays;
		uint8_t *dst;

		if (par == head || !par->left || par->fin || par->early || par->omit || par->op != RNIC_WR_WRITE ||
		    par->len == 0 || rng_below(&fab->rng, 100) >= fab->cfg.early_percent)
			continue;
		dst = write_target(to, par, &stays);
		if (dst == NULL)
			continue;
		place(chan, to, dst, par, par->len, stays);
		par->early = true;
	}
}

static void
chan_fire(struct timer *t)
{
	struct sim_chan *chan = CONTAINER_OF(t, struct sim_chan, timer);
	struct sim_fabric *fab = chan->fab;
	struct sim_parcel *head;
	struct sim_qp *from;

	place_early(chan);
	while ((head = chan_head(chan)) != NULL && head->left && head->at_ns <= fab->now_ns)
		if (!arrive(chan, head))
			break;
	from = sim_qp_get(fab, chan->from);
	if (from != NULL)
		sim_check_credits(from);
	if (!timer_armed(t))
		chan_next(chan);
}

void
sim_recv_posted(struct sim_qp *qp)
{
	struct sim_fabric *fab = qp->dev->fab;

	LIST_FOREACH(n, &fab->chans) {
		struct sim_chan *chan = CONTAINER_OF(n, struct sim_chan, node);

		if (chan->to == qp->id && chan->held_ns >= 0 && !chan->dead && !list_empty(&chan->msgs)) {
			chan->held_ns = -1;
			timer_arm(&fab->timers, &chan->timer, fab->now_ns);
		}
	}
}

/* -- answers -- */

static void
answer_fire(struct timer *t)
{
	struct sim_qp *qp = CONTAINER_OF(t, struct sim_qp, answer_timer);
	struct list_node *n;

	if (qp->dev->withhold)
		return;
	while ((n = list_first(&qp->sq)) != NULL) {
		struct sim_wr *wr = CONTAINER_OF(n, struct sim_wr, node);

		if (wr->state != SIM_WR_ARRIVED)
			break;
		if (wr->answer_ns > qp->dev->fab->now_ns) {
			timer_arm(&qp->dev->fab->timers, t, wr->answer_ns);
			break;
		}
		sim_wr_finish(wr, RNIC_WC_OK);
	}
	sim_check_credits(qp);
}

void
sim_fence(struct sim_qp *qp)
{
	struct sim_fabric *fab = qp->dev->fab;
	int64_t at = fab->now_ns + 2 * delay(fab);

	qp->fence_seq = qp->seq;
	LIST_FOREACH(n, &qp->sq) {
		struct sim_wr *wr = CONTAINER_OF(n, struct sim_wr, node);

		if (wr->state == SIM_WR_ARRIVED && wr->answer_ns > at)
			wr->answer_ns = at;
	}
	if (timer_armed(&qp->answer_timer) && qp->answer_timer.at_ns > at)
		timer_arm(&fab->timers, &qp->answer_timer, at);
}

/* -- connecting -- */

static void
connected(struct sim_qp *qp)
{
	qp->state = SIM_QP_READY;
	timer_cancel(&qp->dev->fab->timers, &qp->conn_timer);
	sim_note(qp, RNIC_EV_CONNECTED, NULL);
}

/* iWARP, passive: the MPA connection is there and the SMC layer has named the permitted peer. */
static void
passive_check(struct sim_qp *qp)
{
	struct sim_qp *peer = sim_qp_get(qp->dev->fab, qp->peer);

	if (qp->state != SIM_QP_CONNECTING || qp->peer == 0)
		return;
	if (peer == NULL || !same_end(&qp->remote, peer))
		sim_qp_break(qp, RNIC_WC_FLUSHED, "MPA connection came from another peer");
	else
		connected(qp);
}

/* In place of TLS: both ends have the same key, or none. */
static bool
same_secret(const struct sim_qp *a, const struct sim_qp *b)
{
	if (a->attr.secret == NULL || b->attr.secret == NULL)
		return a->attr.secret == b->attr.secret;
	return memcmp(a->secret, b->secret, sizeof(a->secret)) == 0;
}

/* The passive QP that an MPA request asks for, when its token and numbers are right. */
static struct sim_qp *
mpa_target(const struct sim_qp *qp)
{
	struct sim_fabric *fab = qp->dev->fab;
	struct sim_dev *dev = dev_by_gid(qp->dev, &qp->remote.gid);
	struct sim_qp *to;

	if (port_closed(qp->dev) || port_closed(dev) || dev->blocked || dev->info.mpa_port != qp->remote.mpa_port ||
	    dev->info.transport != qp->dev->info.transport)
		return NULL;
	to = sim_qp_by_qpn(fab, dev, qp->remote.qpn);
	if (to == NULL || !to->expecting || to->peer != 0 || to->base.psn != qp->remote.psn ||
	    to->attr.token != qp->attr.token || !same_secret(to, qp) || to->state == SIM_QP_CLOSED ||
	    to->state == SIM_QP_BROKEN)
		return NULL;
	return to;
}

static void
conn_fire(struct timer *t)
{
	struct sim_qp *qp = CONTAINER_OF(t, struct sim_qp, conn_timer);
	struct sim_fabric *fab = qp->dev->fab;
	struct sim_qp *to;

	if (qp->side == RNIC_ACTIVE && qp->peer != 0) {
		connected(qp);
		return;
	}
	to = qp->side == RNIC_ACTIVE ? mpa_target(qp) : NULL;
	if (to == NULL && fab->now_ns >= qp->conn_until_ns) {
		qp->silent = qp->side == RNIC_ACTIVE;
		sim_qp_break(qp, RNIC_WC_FLUSHED,
		    rnic_is_sctp(qp->dev->info.transport) ? "no SCTP association in time" : "MPA connection timed out");
		return;
	}
	if (to == NULL) {
		timer_arm(&fab->timers, t,
		    qp->side == RNIC_PASSIVE || fab->now_ns + MS > qp->conn_until_ns ? qp->conn_until_ns
		                                                                     : fab->now_ns + MS);
		return;
	}
	qp->peer = to->id;
	qp->peer_rq = to->attr.rq_depth;
	to->peer = qp->id;
	to->peer_rq = qp->attr.rq_depth;
	chan_new(qp, to->dev, to->id);
	chan_new(to, qp->dev, qp->id);
	timer_arm(&fab->timers, t, fab->now_ns + delay(fab));
	passive_check(to);
}

void
sim_qp_init(struct sim_qp *qp)
{
	struct sim_fabric *fab = qp->dev->fab;

	for (int tries = 0; (qp->id = idtable_add(&fab->qps, qp)) == 0; tries++)
		if (tries == 1000)
			abort();
	reserve_timers(fab, QP_TIMERS + 1); /* and that of its end */
	timer_init(&qp->answer_timer, answer_fire);
	timer_init(&qp->conn_timer, conn_fire);
	timer_init(&qp->fail_timer, fail_fire);
}

int
sim_connect(struct sim_qp *qp)
{
	struct sim_fabric *fab = qp->dev->fab;

	if (qp->state == SIM_QP_BROKEN) {
		sim_note(qp, RNIC_EV_CONNECT_FAILED, "closed by the peer");
		return 0;
	}
	qp->state = SIM_QP_CONNECTING;
	if (qp->dev->info.transport == RNIC_TRANSPORT_ROCE) {
		chan_new(qp, dev_by_gid(qp->dev, &qp->remote.gid), 0);
		connected(qp);
		return 0;
	}
	qp->conn_until_ns = fab->now_ns + fab->cfg.connect_ns;
	timer_arm(
	    &fab->timers, &qp->conn_timer, qp->side == RNIC_ACTIVE ? fab->now_ns + delay(fab) : qp->conn_until_ns);
	passive_check(qp);
	return 0;
}

/* -- the fabric -- */

struct sim_fabric *
sim_fabric_new(const struct sim_config *cfg)
{
	struct sim_fabric *fab = sim_alloc(sizeof(*fab));

	fab->cfg = *cfg;
	rng_init_seeded(&fab->rng, cfg->seed);
	rng_init_seeded(&fab->unplaced_rng, cfg->seed);
	timerq_init(&fab->timers);
	list_init(&fab->devs);
	list_init(&fab->ending);
	list_init(&fab->chans);
	idtable_init(&fab->qps, IDTABLE_MAX);
	return fab;
}

void
sim_fabric_free(struct sim_fabric *fab)
{
	LIST_FOREACH(n, &fab->chans)
		chan_free(CONTAINER_OF(n, struct sim_chan, node));
	idtable_fini(&fab->qps);
	timerq_fini(&fab->timers);
	free(fab);
}

int64_t
sim_next(const struct sim_fabric *fab)
{
	return timerq_next(&fab->timers);
}

void
sim_run(struct sim_fabric *fab, int64_t now_ns)
{
	int64_t next;

	while ((next = timerq_next(&fab->timers)) <= now_ns) {
		fab->now_ns = next;
		timerq_run(&fab->timers, next);
	}
	if (fab->now_ns < now_ns)
		fab->now_ns = now_ns;
}

uint64_t
sim_breaches(const struct sim_fabric *fab)
{
	return fab->breach_cnt;
}

void
sim_live(const struct sim_fabric *fab, struct sim_live *live)
{
	*live = (struct sim_live){ .links = fab->chan_cnt };
	LIST_FOREACH(n, &fab->devs) {
		const struct sim_dev *dev = CONTAINER_OF(n, struct sim_dev, node);

		live->pd += dev->pd_cnt;
		live->mr += dev->mr_cnt;
		live->qp += dev->qp_cnt;
		live->mr_bytes += dev->mr_bytes;
	}
}

/* -- faults -- */

static struct sim_dev *
dev_of(struct rnic_dev *d)
{
	return CONTAINER_OF(d, struct sim_dev, base);
}

bool
sim_nth_qp(const struct sim_fabric *fab, uint32_t n, struct rnic_dev **dev, uint32_t *qpn)
{
	uint32_t pos = 0, cnt = 0;
	struct sim_qp *qp;

	while ((qp = idtable_next(&fab->qps, &pos)) != NULL)
		cnt += qp->state == SIM_QP_READY;
	if (cnt == 0)
		return false;
	n %= cnt;
	for (pos = 0; (qp = idtable_next(&fab->qps, &pos)) != NULL;)
		if (qp->state == SIM_QP_READY && n-- == 0)
			break;
	*dev = &qp->dev->base;
	*qpn = qp->base.qpn;
	return true;
}

bool
sim_break(struct sim_fabric *fab, uint32_t n, enum sim_cut cut)
{
	struct rnic_dev *dev;
	uint32_t qpn;

	return sim_nth_qp(fab, n, &dev, &qpn) && sim_break_qp(dev, qpn, cut);
}

static bool
intact_end(const struct sim_qp *qp)
{
	return qp != NULL && qp->state == SIM_QP_READY && !qp->chan->dead && !qp->chan->ghost &&
	    !timer_armed(&qp->fail_timer) && !port_closed(qp->dev);
}

bool
sim_intact(const struct rnic_dev *d, uint32_t qpn)
{
	const struct sim_dev *dev = CONTAINER_OF((uintptr_t)d, struct sim_dev, base);
	const struct sim_qp *qp = sim_qp_by_qpn(dev->fab, dev, qpn);

	return intact_end(qp) && intact_end(chan_target(qp->chan));
}

bool
sim_break_qp(struct rnic_dev *d, uint32_t qpn, enum sim_cut cut)
{
	struct sim_dev *dev = dev_of(d);
	struct sim_qp *qp = sim_qp_by_qpn(dev->fab, dev, qpn);

	if (qp == NULL || qp->state != SIM_QP_READY)
		return false;
	cut_link(dev->fab, qp, chan_target(qp->chan), cut);
	return true;
}

void
sim_withhold(struct rnic_dev *d, bool on)
{
	struct sim_dev *dev = dev_of(d);
	uint32_t pos = 0;
	struct sim_qp *qp;

	dev->withhold = on;
	while (!on && (qp = idtable_next(&dev->fab->qps, &pos)) != NULL)
		if (qp->dev == dev && !list_empty(&qp->sq) && qp->state == SIM_QP_READY)
			timer_arm(&dev->fab->timers, &qp->answer_timer, dev->fab->now_ns);
}

void
sim_vlan(struct rnic_dev *d, uint16_t vlan)
{
	dev_of(d)->info.vlan = vlan;
}

void
sim_gid_type(struct rnic_dev *d, enum rnic_gid_type type)
{
	dev_of(d)->info.gid_type = type;
}

void
sim_reach(struct rnic_dev *d, enum rnic_reach reach)
{
	dev_of(d)->reach = reach;
}

void
sim_max_qp(struct rnic_dev *d, uint32_t max)
{
	dev_of(d)->info.max_qp = max;
}

void
sim_port(struct rnic_dev *d, enum rnic_port_state state)
{
	struct sim_dev *dev = dev_of(d);

	if (dev->info.port == state)
		return;
	dev->info.port = state;
	sim_log(dev->fab, "%s port %s", dev->info.name, state == RNIC_PORT_UP ? "up" : "down");
	sim_dev_note(dev, state == RNIC_PORT_UP ? RNIC_EV_PORT_UP : RNIC_EV_PORT_DOWN, NULL);
}

void
sim_freeze(struct rnic_dev *d, bool frozen)
{
	dev_of(d)->frozen = frozen;
}

void
sim_gone(struct rnic_dev *d)
{
	struct sim_dev *dev = dev_of(d);
	uint32_t pos = 0;
	struct sim_qp *qp;

	if (dev->gone)
		return;
	dev->gone = true;
	sim_log(dev->fab, "%s is gone", dev->info.name);
	while ((qp = idtable_next(&dev->fab->qps, &pos)) != NULL) {
		if (qp->dev != dev)
			continue;
		if (qp->chan != NULL)
			chan_die(qp->chan);
		sim_qp_break(qp, RNIC_WC_LOCAL_ERR, "device gone");
	}
	sim_dev_note(dev, RNIC_EV_DEV_GONE, NULL);
}

void
sim_block_connect(struct rnic_dev *d, bool blocked)
{
	dev_of(d)->blocked = blocked;
}
