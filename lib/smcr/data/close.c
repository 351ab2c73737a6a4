/* Close of a connection (RFC 7609 4.8): flags to send, and the states of Figures 22 (orderly) and 23 (abort). D ends
 * our data, C ends the connection and our use of the peer's element, A aborts it; nothing may follow C or A. */
#include "smcr/data/conn.h"
#include "smcr/data/failover.h"
#include "smcr/data/grant.h"
#include "smcr/data/rmb.h"
#include "smcr/state/engine.h"
#include "smcr/state/log.h"

#define SILENCE_MIN_MS 1000
#define SILENCE_MAX_MS 8000

enum close_action {
	CLOSE_ACT_IGNORE, /* no effect in this state */
	CLOSE_ACT_NONE,   /* only the state changes */
	CLOSE_ACT_EOF,    /* the user reads to the end */
	CLOSE_ACT_ABORT,  /* unsent and unread data is dropped, A is owed */
	CLOSE_ACT_END,    /* conn_end */
};

/* second replaces step unless it is IGNORE: by the condition in second_half. */
struct close_cell {
	struct close_step {
		enum conn_state next;
		enum close_action action;
	} step, second;
};

/* clang-format off */
#define CELL(to, what) { { CONN_##to, CLOSE_ACT_##what }, { CONN_##to, CLOSE_ACT_IGNORE } }
#define EITHER(to, what, alt_to, alt_what) { { CONN_##to, CLOSE_ACT_##what }, { CONN_##alt_to, CLOSE_ACT_##alt_what } }
/* clang-format on */

/* A missing cell is ignored: states without a protocol, and events repeated by API or peer. */
static const struct close_cell close_table[CONN_STATE_CNT][CLOSE_EVENT_CNT] = {
	[CONN_ACTIVE] = {
		[CLOSE_APP_SHUTDOWN] = CELL(PEER_CLOSE_WAIT1, NONE),
		[CLOSE_APP_CLOSE] = CELL(PEER_CLOSE_WAIT1, NONE),
		[CLOSE_PEER_DONE] = CELL(APP_CLOSE_WAIT1, EOF),
		[CLOSE_PEER_CLOSED] = CELL(APP_CLOSE_WAIT1, EOF),
		[CLOSE_PEER_ABORT] = CELL(PROCESS_ABORT, ABORT),
		[CLOSE_LOCAL_ABORT] = CELL(PEER_ABORT_WAIT, ABORT),
		[CLOSE_TIMEOUT] = CELL(PEER_ABORT_WAIT, ABORT),
	},
	/* Second half of a cell: our C was sent. */
	[CONN_PEER_CLOSE_WAIT1] = {
		[CLOSE_APP_CLOSE] = CELL(PEER_CLOSE_WAIT1, NONE),
		[CLOSE_PEER_DONE] = CELL(PEER_CLOSE_WAIT2, EOF),
		[CLOSE_PEER_CLOSED] = EITHER(APP_FIN_CLOSE_WAIT, EOF, CLOSED, END),
		[CLOSE_PEER_ABORT] = EITHER(PROCESS_ABORT, ABORT, CLOSED, END),
		[CLOSE_LOCAL_ABORT] = EITHER(PEER_ABORT_WAIT, ABORT, PEER_CLOSE_WAIT1, NONE),
		[CLOSE_TIMEOUT] = EITHER(PEER_ABORT_WAIT, ABORT, CLOSED, END),
	},
	[CONN_PEER_CLOSE_WAIT2] = {
		[CLOSE_APP_CLOSE] = CELL(PEER_CLOSE_WAIT2, NONE),
		[CLOSE_PEER_CLOSED] = EITHER(APP_FIN_CLOSE_WAIT, EOF, CLOSED, END),
		[CLOSE_PEER_ABORT] = EITHER(PROCESS_ABORT, ABORT, CLOSED, END),
		[CLOSE_LOCAL_ABORT] = EITHER(PEER_ABORT_WAIT, ABORT, PEER_CLOSE_WAIT2, NONE),
		[CLOSE_TIMEOUT] = EITHER(PEER_ABORT_WAIT, ABORT, CLOSED, END),
	},
	/* The peer sent C, so it does not answer A: our A only has to arrive. */
	[CONN_APP_FIN_CLOSE_WAIT] = {
		[CLOSE_APP_CLOSE] = CELL(CLOSED, END),
		[CLOSE_PEER_ABORT] = CELL(PROCESS_ABORT, ABORT),
		[CLOSE_LOCAL_ABORT] = CELL(PROCESS_ABORT, ABORT),
		[CLOSE_TIMEOUT] = CELL(PROCESS_ABORT, ABORT),
	},
	/* Second half: C received. */
	[CONN_APP_CLOSE_WAIT1] = {
		[CLOSE_APP_SHUTDOWN] = CELL(APP_CLOSE_WAIT2, NONE),
		[CLOSE_APP_CLOSE] = EITHER(PEER_FIN_CLOSE_WAIT, NONE, CLOSED, END),
		[CLOSE_PEER_CLOSED] = CELL(APP_CLOSE_WAIT1, EOF),
		[CLOSE_PEER_ABORT] = CELL(PROCESS_ABORT, ABORT),
		[CLOSE_LOCAL_ABORT] = EITHER(PEER_ABORT_WAIT, ABORT, PROCESS_ABORT, ABORT),
		[CLOSE_TIMEOUT] = EITHER(PEER_ABORT_WAIT, ABORT, PROCESS_ABORT, ABORT),
	},
	[CONN_APP_CLOSE_WAIT2] = {
		[CLOSE_APP_CLOSE] = EITHER(PEER_FIN_CLOSE_WAIT, NONE, CLOSED, END),
		[CLOSE_PEER_CLOSED] = CELL(APP_CLOSE_WAIT2, EOF),
		[CLOSE_PEER_ABORT] = CELL(PROCESS_ABORT, ABORT),
		[CLOSE_LOCAL_ABORT] = EITHER(PEER_ABORT_WAIT, ABORT, PROCESS_ABORT, ABORT),
		[CLOSE_TIMEOUT] = EITHER(PEER_ABORT_WAIT, ABORT, PROCESS_ABORT, ABORT),
	},
	/* Our C was sent: A may never follow. First half: a failover withdrew C, which may be lost, and repeats it. */
	[CONN_PEER_FIN_CLOSE_WAIT] = {
		[CLOSE_PEER_CLOSED] = EITHER(APP_FIN_CLOSE_WAIT, NONE, CLOSED, END),
		[CLOSE_PEER_ABORT] = EITHER(PROCESS_ABORT, ABORT, CLOSED, END),
		[CLOSE_LOCAL_ABORT] = CELL(PEER_FIN_CLOSE_WAIT, NONE),
		[CLOSE_TIMEOUT] = CELL(CLOSED, END),
	},
	/* Second half: our A was sent. Before, a peer that has closed must still get it. */
	[CONN_PEER_ABORT_WAIT] = {
		[CLOSE_PEER_ABORT] = EITHER(PROCESS_ABORT, NONE, CLOSED, END),
		[CLOSE_TIMEOUT] = CELL(CLOSED, END),
	},
	[CONN_PROCESS_ABORT ... CONN_LAST_WAIT] = {
		[CLOSE_LAST_SENT] = CELL(CLOSED, END),
		[CLOSE_TIMEOUT] = CELL(CLOSED, END),
	},
};

/* Condition of the second half of a cell: flags sent, or received. */
static const struct {
	uint8_t out, in;
} second_half[CONN_STATE_CNT] = {
	[CONN_PEER_CLOSE_WAIT1... CONN_PEER_CLOSE_WAIT2] = { .out = CDC_CLOSED },
	[CONN_APP_CLOSE_WAIT1... CONN_APP_CLOSE_WAIT2] = { .in = CDC_CLOSED },
	[CONN_PEER_FIN_CLOSE_WAIT] = { .out = CDC_CLOSED },
	[CONN_PEER_ABORT_WAIT] = { .out = CDC_ABORT },
};

/* -- the timer of all waiting states -- */

static bool
is_aborting(const struct smcr_conn *conn)
{
	return conn->state == CONN_PEER_ABORT_WAIT || conn->state == CONN_PROCESS_ABORT ||
	    conn->state == CONN_LAST_WAIT;
}

/* FIN on the CLC connection without the end of data. After D it is in order: Linux sends both, and may read for hours. */
static bool
fin_too_early(const struct smcr_conn *conn)
{
	return conn->close.tcp_fin && conn->close.rx_flags == 0 && !is_aborting(conn);
}

/* This user or the peer has closed: neither waits for data. */
static bool
rst_is_nothing(const struct smcr_conn *conn)
{
	return conn->close.want_close || (conn->close.rx_flags & CDC_CLOSED) != 0;
}

bool
smcr_peer_is_there(const struct smcr_conn *conn)
{
	return conn->role == SMCR_SERVER || conn->rx.any;
}

/* A RST of the CLC connection may come from a firewall without state, or be forged. A peer that resets sends A or C
 * over its link first, and one that closed in order (smcr_may_reset_middle) has our C; a dead peer does not answer. */
static bool
rst_unanswered(const struct smcr_conn *conn)
{
	return conn->close.tcp_rst && !rst_is_nothing(conn) && !is_aborting(conn);
}

/* True when a message came over a link of the group since the RST; TEST LINK has requested it. A peer with a lost
 * link moves each connection unless its A or C is complete: if it has not moved, that was lost with the link. Linux
 * does so with its next message, so its RST may be a firewall's: it counts, as on a direct connection. A server that
 * timed out before our Confirm could not send A. */
static bool
link_answered(const struct smcr_conn *conn)
{
	if (conn->rx.moves || !smcr_peer_is_there(conn))
		return false;
	return LGR_ANY_LINK(l, conn->lgr, l->state == LINK_ACTIVE && l->last_rx_ns > conn->close.rst_ns);
}

/* Its OPEN has no answer, and the user has not closed it. */
static bool
awaits_answer(const struct smcr_conn *conn)
{
	return conn_is_unanswered(conn) && conn->state == CONN_ACTIVE && !conn->close.want_close && !conn->close.doubt;
}

/* A link that is tested for an OPEN answers within this time, unless its path or its peer has stopped. A soft device
 * retransmits a lost packet several times within it. */
static uint32_t
silence_ms(const struct link *link)
{
	int64_t ms = 4 * link->rtt_ns / MS;

	return (uint32_t)(ms < SILENCE_MIN_MS ? SILENCE_MIN_MS : ms > SILENCE_MAX_MS ? SILENCE_MAX_MS : ms);
}

/* Limits the current state once our user can do nothing. */
static void
update_timer(struct smcr_conn *conn)
{
	struct smcr *eng = conn->eng;
	bool fin = fin_too_early(conn) || rst_unanswered(conn);
	uint32_t ms = 0;

	if (is_aborting(conn))
		ms = eng->cfg.abort_ms;
	else if (conn->close.want_close || conn->close.doubt)
		ms = eng->cfg.close_ms;
	else if (awaits_answer(conn))
		ms = silence_ms(conn->link) / 2;
	if (fin && (ms == 0 || eng->cfg.fin_grace_ms < ms))
		ms = eng->cfg.fin_grace_ms;
	/* Progress does not extend the grace after FIN or RST. */
	if (ms == 0)
		timer_cancel(&eng->timers, &conn->timer);
	else if (!fin || !timer_armed(&conn->timer) || conn->timer.at_ns > eng->now_ns + ms * MS)
		engine_arm(eng, &conn->timer, ms);
}

void
conn_await_answer(struct smcr_conn *conn)
{
	conn->open_tested_ns = 0;
	update_timer(conn);
}

/* Nothing was received over the link for a while: a test follows, and after that without an answer the OPEN is given up.
 * Once data may have reached the program only the same OPEN, repeated over another link, cannot bring it twice. */
static void
open_unanswered(struct smcr_conn *conn)
{
	struct smcr *eng = conn->eng;
	struct link *link = conn->link;
	uint32_t limit_ms = silence_ms(link);
	int64_t due_ns = link->last_rx_ns + limit_ms / 2 * MS;

	if (link_has_ended(link)) {
		conn_await_answer(conn);
	} else if (conn->open_tested_ns != 0 && link->last_rx_ns < conn->open_tested_ns) {
		eng->ctr.opens_silent++;
		if (!conn->tx.any)
			conn_abort(conn, SMCR_R_NOT_OPENED, "its link is silent");
	} else if (due_ns > eng->now_ns) {
		timer_arm(&eng->timers, &conn->timer, due_ns);
	} else {
		conn->open_tested_ns = eng->now_ns;
		if (!link->test_pending)
			link_request_ack(link);
		engine_arm(eng, &conn->timer, limit_ms);
	}
}

void
conn_timer_fired(struct timer *t)
{
	struct smcr_conn *conn = CONTAINER_OF(t, struct smcr_conn, timer);
	bool reset = rst_unanswered(conn), fin = fin_too_early(conn), answered = reset && !fin && link_answered(conn);

	if (awaits_answer(conn)) {
		open_unanswered(conn);
		return;
	}
	if (answered)
		conn->close.tcp_rst = false;
	/* Else the response comes when its link recovers, or the link is lost. */
	if (answered || (!reset && !is_aborting(conn) && conn->link->suspect != NULL && !link_has_ended(conn->link))) {
		update_timer(conn);
		return;
	}
	conn_report(conn,
	    fin         ? SMCR_R_TCP_FIN
	        : reset ? SMCR_R_TCP_RESET
	                : SMCR_R_CLOSE_TIMEOUT,
	    conn->close.doubt ? "no message of the peer since its link was lost" : "");
	close_event(conn, CLOSE_TIMEOUT);
}

void
conn_close_progress(struct smcr_conn *conn)
{
	if (conn->close.want_close && !is_aborting(conn))
		update_timer(conn);
}

void
conn_ask_alive(struct smcr_conn *conn, bool doubt)
{
	if (conn->close.doubt == doubt)
		return;
	conn->close.doubt = doubt;
	conn->close.ask = doubt && !conn->tx.asks;
	update_timer(conn);
	conn_tx_schedule(conn);
}

void
conn_fin_seen(struct smcr_conn *conn)
{
	conn->close.tcp_fin = true;
	update_timer(conn);
}

void
conn_rst_seen(struct smcr_conn *conn)
{
	if (conn->close.tcp_rst || rst_is_nothing(conn))
		return;
	conn->close.tcp_rst = true;
	conn->close.rst_ns = conn->eng->now_ns;
	LGR_EACH_LINK(l, conn->lgr)
		if (l->state == LINK_ACTIVE)
			link_request_ack(l);
	update_timer(conn);
}

void
conn_peer_moves(struct smcr_conn *conn)
{
	conn->rx.moves = true;
	if (conn->close.rst_ns != 0)
		conn_rst_seen(conn);
}

/* -- the state machine -- */

void
close_event(struct smcr_conn *conn, enum close_event ev)
{
	const uint8_t last = CDC_CLOSED | CDC_ABORT;
	const struct close_cell *cell = &close_table[conn->state][ev];
	uint8_t holds = (conn->close.tx_flags & second_half[conn->state].out) |
	    (conn->close.rx_flags & second_half[conn->state].in);
	struct close_step step = cell->second.action != CLOSE_ACT_IGNORE && holds != 0 ? cell->second : cell->step;

	if (step.action == CLOSE_ACT_IGNORE)
		return;
	if (step.action == CLOSE_ACT_END) {
		/* Our C or A is posted but not complete, and another link could repeat it. */
		bool under_way = conn->state != CONN_LAST_WAIT && (conn->close.tx_flags & last) != 0 &&
		    (conn->tx.done_flags & last) == 0 && conn->lgr->active_cnt > 1;

		if (ev == CLOSE_TIMEOUT || !under_way) {
			/* Only C or A of the peer ends its writes into our element (4.4.2). */
			conn_end(conn, SMCR_OK, "", (conn->close.rx_flags & last) == 0);
			return;
		}
		conn_report(conn, SMCR_OK, "");
		conn_set_state(conn, CONN_LAST_WAIT);
		conn_tx_drop(conn);
		update_timer(conn);
		return;
	}
	conn_set_state(conn, step.next);
	if (step.action == CLOSE_ACT_EOF && conn_is_open(conn))
		conn_raise(conn, SMCR_EV_READABLE);
	if (step.action == CLOSE_ACT_ABORT) {
		conn->close.want_abort = true;
		conn_tx_drop(conn);
		conn_tx_schedule(conn);
	}
	update_timer(conn);
}

void
conn_abort(struct smcr_conn *conn, enum smcr_reason reason, const char *detail)
{
	if (conn->reported)
		return;
	if (reason == SMCR_R_TIMEOUT && conn_is_unanswered(conn))
		ticket_refused(conn->lgr, conn->ticket); /* the peer may stand still: a rendezvous shows it */
	conn_report(conn, reason, detail);
	close_event(conn, CLOSE_LOCAL_ABORT);
}

void
conn_bad_cdc(struct smcr_conn *conn, const struct link *link, const char *why)
{
	conn->eng->ctr.bad_cdc++;
	engine_log(SMCR_LOG_PROTOCOL, link->lgr, link, 0, why);
	/* Its writes may be anywhere: all of the element may be dirty. */
	rmb_elem_dirty(conn->rmb, conn->elem_idx, conn->rmb->elem_size);
	conn->rx.dropped = true;
	if (conn->state == CONN_RENDEZVOUS)
		mark_conn_end(conn->eng, conn->mark, false, SMCR_R_PROTOCOL, "");
	else
		conn_abort(conn, SMCR_R_PROTOCOL, why);
}

void
conn_rx_lost(struct smcr_conn *conn, const struct link *link)
{
	conn->eng->ctr.failover_lost++;
	conn_bad_cdc(conn, link, "data lost in a failover");
}

/* -- flags of CDC messages -- */

uint8_t
conn_due_flags(const struct smcr_conn *conn, uint64_t end)
{
	uint8_t flags = conn->close.tx_flags;

	/* Flags once sent stay set. */
	if (conn->close.want_abort) {
		bool says = conn->reason == SMCR_R_OPERATOR && conn->lgr->dialect.says_operator;

		return flags | conn->close.tx_flags_ever | CDC_ABORT | (says ? CDC_OPERATOR : 0) |
		    (conn->not_opened ? CDC_NOT_OPENED : 0);
	}
	if (end < conn->tx.head)
		return flags;
	if (conn->close.shut_wr)
		flags |= CDC_SENDING_DONE;
	/* D may accompany the last data: the queue pair keeps the order. C requires that no write is in flight. */
	if (conn->close.want_close && tx_free(&conn->tx) == conn->tx.head)
		flags |= CDC_CLOSED;
	if (flags != conn->close.tx_flags && failover_awaits_peer(conn))
		flags &= conn->close.tx_flags | conn->close.tx_flags_ever;
	return flags;
}

void
conn_flags_posted(struct smcr_conn *conn, uint8_t conn_flags)
{
	uint8_t fresh = (uint8_t)(conn_flags & ~conn->close.tx_flags);

	conn->close.tx_flags = conn_flags;
	conn->close.tx_flags_ever |= conn_flags;
	if ((fresh & CDC_SENDING_DONE) != 0)
		close_event(conn, CLOSE_APP_SHUTDOWN);
	if ((fresh & CDC_CLOSED) != 0)
		close_event(conn, CLOSE_APP_CLOSE);
}

void
conn_peer_flags(struct smcr_conn *conn, uint8_t conn_flags)
{
	/* O is valid only with A, and only when both ends support it. */
	if ((conn_flags & CDC_OPERATOR) != 0 && ((conn_flags & CDC_ABORT) == 0 || !conn->lgr->dialect.says_operator))
		conn_flags &= (uint8_t)~CDC_OPERATOR;
	/* Likewise. */
	if ((conn_flags & CDC_ABORT) == 0 || !conn_is_unanswered(conn))
		conn_flags &= (uint8_t)~CDC_NOT_OPENED;
	uint8_t fresh = (uint8_t)(conn_flags & ~conn->close.rx_flags);
	/* A peer that closes before it consumed all our data loses data: a reset (4.8.1, 4A). */
	bool lost = conn->tx.acked < conn->tx.head;

	conn->close.rx_flags |= conn_flags;
	if (conn->state == CONN_RENDEZVOUS)
		return; /* conn_establish handles them later */
	if ((fresh & CDC_ABORT) != 0) {
		bool by_operator = (conn_flags & CDC_OPERATOR) != 0;
		bool refused = (conn_flags & CDC_NOT_OPENED) != 0;

		conn->eng->ctr.closed_peer_operator += by_operator && !conn->reported;
		if (refused)
			ticket_refused(conn->lgr, conn->ticket);
		conn_report(conn, refused ? SMCR_R_NOT_OPENED : SMCR_R_PEER_ABORT,
		    by_operator ? "closed by the operator there" : "");
		close_event(conn, CLOSE_PEER_ABORT);
		return;
	}
	if ((fresh & CDC_SENDING_DONE) != 0)
		close_event(conn, CLOSE_PEER_DONE);
	if ((fresh & CDC_CLOSED) == 0)
		return;
	if (lost)
		conn_report(conn, SMCR_R_PEER_CLOSED, "");
	close_event(conn, CLOSE_PEER_CLOSED);
	if (lost)
		close_event(conn, CLOSE_LOCAL_ABORT);
}

void
conn_elem_taken(struct smcr_conn *conn)
{
	/* After our C (or A) the peer may reuse its element as soon as it has sent its own. That comes over the link
	 * and the new use over TCP, maybe earlier: the sent C is enough, even one that a failover withdrew. */
	if (conn_is_open(conn) && (conn->close.tx_flags_ever & CDC_CLOSED) != 0) {
		conn_tx_acked(conn, conn->tx.head);
		conn_peer_flags(conn, CDC_CLOSED);
		conn_end(conn, SMCR_OK, "", false);
		return;
	}
	/* Likewise for A, which the user of a reset waits for. */
	conn->eng->ctr.elem_conflicts += !conn->reported && (conn->close.tx_flags_ever & CDC_ABORT) == 0;
	conn_end(conn, SMCR_R_ELEM_CONFLICT, "the peer gave the element to another connection", false);
}

/* -- the user's side -- */

bool
smcr_may_reset_middle(const struct smcr_conn *conn)
{
	return conn->lgr != NULL && conn->lgr->dialect.rst_after_c;
}

void
smcr_shutdown_wr(struct smcr_conn *conn)
{
	conn->close.shut_wr = true;
	if (conn_is_open(conn))
		conn_tx_schedule(conn);
}

void
conn_all_written(struct smcr_conn *conn)
{
	/* D counts only in a message before A, whose completion returns here. */
	if (conn->close.shut_wr && (conn->close.tx_flags & CDC_SENDING_DONE) == 0)
		return;
	/* Each write is complete or consumed, as before C: no failover has to repeat data after A. */
	if (conn->close.want_reset && conn_is_open(conn))
		close_event(conn, CLOSE_LOCAL_ABORT);
}

void
conn_close(struct smcr_conn *conn)
{
	if (!conn_is_open(conn) || conn->close.want_close)
		return;
	conn->rx.dropped = true;
	if (conn->rx.head > conn->rx.tail) {
		conn_abort(conn, SMCR_R_APP_RESET, "closed with unread data");
		return;
	}
	conn->close.want_close = true;
	update_timer(conn);
	conn_tx_schedule(conn);
}
