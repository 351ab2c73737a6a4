/* Turns of a link: LLC messages before data, connections in turn; and dispatch of completed requests. */
#include "smcr/data/link_tx.h"

#include <assert.h>
#include <errno.h>

#include "base/minmax.h"
#include "smcr/data/conn.h"
#include "smcr/data/failover.h"
#include "smcr/data/link_post.h"
#include "smcr/data/sndbuf.h"
#include "smcr/state/engine.h"
#include "smcr/state/log.h"

#define LLC_RESERVE 2             /* send queue entries that data leaves free while requests are outstanding */
#define TURN_BYTES (1024u * 1024) /* most data posted in one flush */

/* Requests completions when they are awaited or few entries are left; once for the requests posted so far. */
static void
fence(struct link *link)
{
	struct rnic_credits room = link_credits(link);

	link->sends_max = max_u32(link->sends_max, room.sends);
	if (room.wrs < link->wr_cap / 4 + LINK_STEP_WRS + LLC_RESERVE ||
	    room.sends < link->sends_max / 4 + 1 + LLC_RESERVE)
		link->want_fence = true;
	if (!link->want_fence || link->has_held)
		return;
	link->want_fence = false;
	if (link_outstanding(link) == 0 || link->fence_head == link->wr_head)
		return;
	link->fence_head = link->wr_head;
	link->dev->ops->fence(link->qp);
}

/* -- LLC -- */

static void
flush_llc(struct link *link)
{
	struct smcr *eng = link->lgr->eng;
	struct rnic_credits room = link_credits(link);

	for (; link->llc_cnt > 0 && room.sends > 0; room.sends--) {
		const struct link_llc *q = &link->llc_queue[link->llc_first];
		bool is_long = q->in_long != NULL;
		struct link_wr what = {
			.kind = LINK_WR_LLC, .llc = q->type, .llc_response = q->response, .llc_long = is_long
		};
		struct rnic_send_wr wr = { .op = RNIC_WR_SEND,
			.flags = RNIC_SOLICITED,
			.sge_cnt = 1,
			.sge = { { .mr = link->recv_mr, .ptr = q->in_long, .len = q->len } } };

		if (link_post(link, &wr, is_long ? NULL : q->msg, &what) < 0)
			return;
		eng->ctr.llc_sent++;
		engine_trace(eng, SMCR_TRACE_LLC, true, link, 0, is_long ? q->in_long : q->msg, q->len);
		link->llc_first = (link->llc_first + 1) % LINK_LLC_QUEUE;
		link->llc_cnt--;
	}
}

/* Encodes the message into the entry or, if longer, into link->long_buf. 0 or a negative errno. */
static int
encode_llc(struct link *link, const struct llc_msg *msg, struct link_llc *q)
{
	struct llc_msg m = *msg;

	m.little = link->lgr->dialect.little;
	int n = llc_encode(&m, link->lgr->version, q->msg, sizeof(q->msg));
	q->in_long = NULL;
	if (n == -ENOSPC && link->long_buf != NULL) {
		uint8_t *at = link->long_buf + link->long_used;

		n = llc_encode(&m, link->lgr->version, at, LLC_MAX_LEN - link->long_used);
		n = n == -ENOSPC ? -ENOBUFS : n;
		q->in_long = at;
	}
	if (n < 0)
		return n;
	if (q->in_long != NULL) {
		link->long_used += (uint32_t)n;
		link->long_cnt++;
	}
	q->len = (uint16_t)n;
	q->type = msg->type;
	q->response = msg->response;
	return 0;
}

/* The next free entry of the queue, or NULL. */
static struct link_llc *
free_entry(struct link *link)
{
	if (link->llc_cnt == LINK_LLC_QUEUE)
		flush_llc(link);
	return link->llc_cnt < LINK_LLC_QUEUE ? &link->llc_queue[(link->llc_first + link->llc_cnt) % LINK_LLC_QUEUE]
	                                      : NULL;
}

int
link_send_open(struct link *link, const struct open_msg *msg)
{
	/* Many in a turn, but the other half, and entries of the send queue, are for messages that the link depends on. */
	if (link_is_usable(link) && link->llc_cnt >= LINK_LLC_QUEUE / 2 && link_credits(link).sends > LINK_LLC_QUEUE)
		flush_llc(link);
	struct link_llc *q = link_is_usable(link) && link->llc_cnt < LINK_LLC_QUEUE / 2 ? free_entry(link) : NULL;

	if (q == NULL)
		return -ENOBUFS;
	*q = (struct link_llc){ .len = OPEN_LEN };
	int err = open_encode(msg, q->msg, sizeof(q->msg));
	if (err < 0)
		return err;
	link->llc_cnt++;
	link_schedule(link);
	return 0;
}

int
link_send_llc(struct link *link, const struct llc_msg *msg)
{
	if (!link_is_usable(link))
		return -ENOTCONN;
	struct link_llc *q = free_entry(link);
	if (q == NULL) {
		link->lgr->eng->ctr.llc_queue_full++;
		/* A peer that floods tests without waiting loses some responses. */
		if (msg->type != LLC_TEST_LINK || !msg->response)
			mark_link_failed(link, "the peer does not take LLC messages");
		return -ENOBUFS;
	}
	int err = encode_llc(link, msg, q);
	if (err < 0)
		return err;
	link->llc_cnt++;
	link_schedule(link);
	return 0;
}

/* -- data -- */

static struct rnic_credits
data_credits(const struct link *link)
{
	struct rnic_credits room = link_credits(link);

	if (link_outstanding(link) > 0) {
		room.wrs -= min_u32(room.wrs, LLC_RESERVE);
		room.sends -= min_u32(room.sends, LLC_RESERVE);
	}
	room.bytes = min_size(room.bytes, TURN_BYTES);
	return room;
}

/* Takes one step per connection in turn until the work or the credits end. Connections that owe only a CDC message
 * proceed without payload credits. True when the turn's share is used up. */
static bool
flush_data(struct link *link)
{
	if (list_empty(&link->ready))
		return false;
	struct rnic_credits room = data_credits(link);
	size_t offered = room.bytes;
	struct list_node later, *n;

	list_init(&later);
	while (room.sends > 0 && (n = list_pop(&link->ready)) != NULL) {
		uint32_t wrs = room.wrs;

		if (!conn_tx_post(CONTAINER_OF(n, struct smcr_conn, ready_node), &room))
			continue;
		list_remove(n); /* it may have queued itself */
		list_push(room.wrs < wrs && room.bytes > 0 ? &link->ready : &later, n);
	}
	/* Connections that wait for credits return to the front, in order. */
	while (!list_empty(&later)) {
		n = later.prev;
		list_remove(n);
		list_push_front(&link->ready, n);
	}
	if (list_empty(&link->ready))
		return false;
	/* Out of credits: completions and RNIC_EV_CREDITS resume. Out of the turn's share: */
	if (offered < TURN_BYTES || room.bytes > 0 || room.sends == 0 || !link_is_usable(link))
		return false;
	room = data_credits(link);
	return room.wrs >= LINK_STEP_WRS && room.sends > 0 && room.bytes > 0;
}

bool
link_flush(struct link *link)
{
	if (!link_is_usable(link))
		return false;
	flush_llc(link);
	bool more = link->llc_cnt == 0 && flush_data(link);
	link_post_end(link);
	fence(link);
	return more;
}

/* -- completions -- */

/* The request at wr_tail has completed. */
static void
link_tx_hand_back(struct link *link, bool ok)
{
	struct link_wr what = link->wr[link->wr_tail % link->wr_cap];
	struct smcr_conn *conn;

	link->wr_tail++;
	switch (what.kind) {
	case LINK_WR_WRITE:
		break; /* its CDC message covers it */
	case LINK_WR_CDC:
	case LINK_WR_FAILOVER:
		conn = idtable_get(&link->lgr->eng->conns, what.conn_id);
		if (!ok || conn == NULL || conn->link != link)
			break;
		if (what.kind == LINK_WR_CDC)
			conn_wr_done(conn, &what);
		else
			failover_proven(conn);
		break;
	case LINK_WR_LLC:
		if (what.llc_long && --link->long_cnt == 0)
			link->long_used = 0;
		if (what.llc == LLC_CONFIRM_LINK && !what.llc_response && ok)
			link->lgr->contact.confirm_link_in = true;
		/* Complete, or the client complied so fast that our link is gone. */
		if (what.llc == LLC_DELETE_LINK && !what.llc_response)
			mark_lgr(link->lgr)->delete_sent = true;
		break;
	}
}

void
link_log_up(struct link *link)
{
	if (link->state != LINK_ACTIVE || link->told_up)
		return;
	link->told_up = true;
	engine_log(SMCR_LOG_LINK_UP, link->lgr, link, 0, rnic_transport_str(link->info.transport));
}

void
link_wc(struct link *link, const struct rnic_wc *wc)
{
	assert(wc->wr_id - link->wr_tail < link_outstanding(link));
	/* All earlier requests are complete, or it would not be reported. */
	while (link->wr_tail < wc->wr_id)
		link_tx_hand_back(link, true);
	link_tx_hand_back(link, wc->status == RNIC_WC_OK);
	if (wc->status != RNIC_WC_OK) {
		/* The device's event gives the reason; without one, the end of this poll handles it. */
		mark_link_failed(link, "a work request failed");
		return;
	}
	link_log_up(link);
	sndbuf_wake(link->lgr);
	if (!list_empty(&link->ready) || link->llc_cnt > 0 || link->has_held)
		link_schedule(link);
}
