/* Data of a session; see session.h. On SMC-R it is read into the send ring and written from the RMB element: one recv
 * and one send per request. On TCP it is copied between app leg and CLC connection. A buffer is lent from each read
 * until it is written, so an idle connection holds none. Not by splice(2), which stops at an urgent byte. */
#include "daemon/session/session.h"

#include <errno.h>
#include <string.h>

#include "base/minmax.h"
#include "daemon/leg/proxy_header.h"

#define PUMP_BUDGET (8 * BUF_SIZE) /* bytes per session, turn and direction */

/* A leg is broken and read to its end; err: the result of leg_read. */
static void
read_out(struct session *s, ssize_t err, enum session_event event)
{
	s->flags |= SF_READ_OUT;
	if (err == -ENOTSUP)
		session_fail(
		    s, event, "a file descriptor came over the UNIX socket, which a gateway cannot forward", 0);
	else
		session_raise(s, event);
}

/* Writes the PROXY header of this session, PROXY_HEADER_MAX bytes at most; returns its length. */
static size_t
take_header(struct session *s, uint8_t *buf)
{
	const struct sockaddr_storage ss = net_local_addr(s->app.io.fd);
	union net_addr dst;

	s->flags &= ~(unsigned)SF_HEADER_OWED;
	net_addr_set(&dst, &ss);
	if (s->way != NULL)
		dst = s->way->to;
	return proxy_header(s->settings->cfg.proxy_protocol, &s->app_peer, &dst, buf);
}

/* The end of data was forwarded in one direction: SF_APP_DONE or SF_PEER_DONE. */
static void
way_done(struct session *s, unsigned flag, enum session_event event)
{
	s->flags |= flag;
	session_raise(s, event);
	if ((s->flags & SF_BOTH_DONE) == SF_BOTH_DONE)
		session_raise(s, SEV_BOTH_DONE);
}

/* -- on SMC-R -- */

/* Limits the pieces to max bytes; returns their number. */
static int
clip(struct iovec iov[2], size_t max)
{
	if (iov[0].iov_len > max)
		iov[0].iov_len = max;
	if (iov[1].iov_len > max - iov[0].iov_len)
		iov[1].iov_len = max - iov[0].iov_len;
	return iov[1].iov_len > 0 ? 2 : 1;
}

/* False: no send ring is free, SMCR_EV_WRITABLE follows. An empty ring holds any header. */
static bool
put_header(struct session *s)
{
	uint8_t hdr[PROXY_HEADER_MAX];
	struct iovec iov[2] = { { 0 } };

	if (smcr_tx_space(s->conn, iov) < sizeof(hdr))
		return false;
	size_t len = take_header(s, hdr), first = len < iov[0].iov_len ? len : iov[0].iov_len;
	memcpy(iov[0].iov_base, hdr, first);
	if (len > first)
		memcpy(iov[1].iov_base, hdr + first, len - first);
	smcr_tx_commit(s->conn, len, false);
	return true;
}

/* Sends what a peer did not take over a link, by the connection that has replaced that. False: no room so far. */
static bool
put_held(struct session *s)
{
	struct iovec iov[2] = { { 0 } };
	struct buf *b = s->held[WAY_FROM_APP];

	if (smcr_tx_space(s->conn, iov) == 0)
		return false;
	size_t len = min_size(b->len - b->off, iov[0].iov_len);
	memcpy(iov[0].iov_base, b->data + b->off, len);
	b->off += (uint32_t)len;
	smcr_tx_commit(s->conn, len, b->urgent && b->off == b->len);
	if (b->off < b->len)
		return false;
	bufpool_put(&s->pool->bufs, b);
	s->held[WAY_FROM_APP] = NULL;
	return true;
}

static void
from_app(struct session *s)
{
	size_t budget = PUMP_BUDGET;

	if ((s->flags & SF_HEADER_OWED) != 0 && !put_header(s))
		return;
	if (s->held[WAY_FROM_APP] != NULL && !put_held(s))
		return;
	while ((s->app.flags & LEG_READABLE) != 0 && budget > 0) {
		struct iovec iov[2] = { { 0 } };
		bool urgent;

		if (smcr_tx_space(s->conn, iov) == 0)
			break;
		int cnt = clip(iov, budget);
		ssize_t n = leg_read(&s->app, iov, cnt, &urgent);
		smcr_tx_commit(s->conn, n > 0 ? (size_t)n : 0, urgent);
		if (n < 0) {
			read_out(s, n, s->state == SES_DRAINING ? SEV_PASSED_ON : SEV_APP_RESET);
			return;
		}
		session_carried(s, WAY_FROM_APP, (size_t)n);
		budget -= (size_t)n;
		if (n > 0)
			s->active_ns = s->pool->env->now_ns;
	}
	if ((s->app.flags & LEG_EOF) != 0 && (s->flags & SF_APP_DONE) == 0)
		way_done(s, SF_APP_DONE, SEV_APP_EOF);
	else if (budget == 0)
		session_schedule(s);
}

void
session_pump_first(struct session *s)
{
	struct iovec iov[2] = { { 0 } };
	bool urgent;

	/* A PROXY header goes in front, when it goes only once. */
	if (s->held[WAY_FROM_APP] != NULL || (s->flags & SF_HEADER_OWED) != 0 ||
	    (s->app.flags & (LEG_READABLE | LEG_URGENT)) != LEG_READABLE || smcr_tx_space(s->conn, iov) == 0)
		return;
	struct buf *b = bufpool_get(&s->pool->bufs);
	if (b == NULL)
		return;
	struct iovec into = { b->data, min_size(sizeof(b->data), iov[0].iov_len) };
	ssize_t n = leg_read(&s->app, &into, 1, &urgent);
	if (n <= 0) {
		bufpool_put(&s->pool->bufs, b);
		if (n < 0)
			read_out(s, n, SEV_APP_RESET);
		return;
	}
	b->len = (uint32_t)n;
	b->urgent = urgent;
	s->held[WAY_FROM_APP] = b;
	memcpy(iov[0].iov_base, b->data, b->len);
	smcr_tx_commit(s->conn, b->len, urgent);
	session_carried(s, WAY_FROM_APP, b->len);
}

static void
to_app(struct session *s)
{
	size_t budget = PUMP_BUDGET;

	while ((s->app.flags & LEG_WRITABLE) != 0 && budget > 0) {
		struct iovec iov[2] = { { 0 } };
		bool urgent;

		if (smcr_rx_data(s->conn, iov, &urgent) == 0)
			break;
		int cnt = clip(iov, budget);
		ssize_t n = leg_write(&s->app, iov, cnt, urgent);
		if (n < 0) {
			session_raise(s, SEV_APP_RESET);
			return;
		}
		if (n == 0)
			break;
		smcr_rx_consume(s->conn, (size_t)n);
		session_carried(s, WAY_TO_APP, (size_t)n);
		s->active_ns = s->pool->env->now_ns;
		budget -= (size_t)n;
	}
	if ((s->flags & SF_PEER_DONE) == 0 && smcr_rx_eof(s->conn))
		way_done(s, SF_PEER_DONE, SEV_PEER_DONE);
	else if (budget == 0)
		session_schedule(s);
}

void
session_pump_middle(struct session *s)
{
	(void)setup_finish(s);
	if ((s->mid.flags & LEG_RDHUP) == 0 || (s->flags & SF_MID_FIN) != 0)
		return;
	s->flags |= SF_MID_FIN;
	session_raise(s, SEV_MID_EOF);
}

void
session_pump_smcr(struct session *s)
{
	session_pump_middle(s);
	if (s->raised == 0)
		from_app(s);
	if (s->raised == 0)
		to_app(s);
}

/* -- on TCP -- */

/* By direction: flag and event of the end of data, events of a broken leg. */
static const struct {
	unsigned done;
	enum session_event end, from_broken, to_broken;
} ways[WAY_CNT] = {
	[WAY_FROM_APP] = { SF_APP_DONE, SEV_APP_EOF, SEV_APP_RESET, SEV_MID_RESET },
	[WAY_TO_APP] = { SF_PEER_DONE, SEV_MID_EOF, SEV_MID_RESET, SEV_APP_RESET },
};

/* Writes the held buffer. False: the socket is full, or an event is raised. */
static bool
flush_held(struct session *s, int way)
{
	struct buf *b = s->held[way];

	if (b == NULL)
		return true;
	struct iovec iov = { b->data + b->off, b->len - b->off };
	ssize_t n = leg_write(way == WAY_FROM_APP ? &s->mid : &s->app, &iov, 1, b->urgent);
	if (n < 0) {
		session_raise(s, ways[way].to_broken);
		return false;
	}
	b->off += (uint32_t)n;
	if (n > 0)
		s->active_ns = s->pool->env->now_ns;
	if (b->off < b->len)
		return false;
	bufpool_put(&s->pool->bufs, b);
	s->held[way] = NULL;
	return true;
}

/* Reads into a buffer, which is then held. False: no data, or an event is raised. */
static bool
fill_held(struct session *s, int way, struct leg *from)
{
	struct buf *b = bufpool_get(&s->pool->bufs);
	ssize_t n;

	if (b == NULL) {
		session_fail(s, ways[way].from_broken, "out of memory", 0);
		return false;
	}
	if (from == &s->app && (s->flags & SF_HEADER_OWED) != 0) {
		n = (ssize_t)take_header(s, b->data);
	} else {
		struct iovec iov = { b->data, sizeof(b->data) };

		n = leg_read(from, &iov, 1, &b->urgent);
		if (n > 0) {
			session_carried(s, way, (size_t)n);
			s->pool->stats.tcp_bytes += (size_t)n;
		}
	}
	if (n <= 0) {
		bufpool_put(&s->pool->bufs, b);
		if (n < 0 && s->state == SES_TCP_DRAINING)
			s->flags |= SF_READ_OUT;
		else if (n < 0)
			read_out(s, n, ways[way].from_broken);
		return false;
	}
	b->len = (uint32_t)n;
	s->held[way] = b;
	return true;
}

static void
copy_way(struct session *s, int way)
{
	struct leg *from = way == WAY_FROM_APP ? &s->app : &s->mid, *to = way == WAY_FROM_APP ? &s->mid : &s->app;

	for (size_t budget = PUMP_BUDGET; flush_held(s, way); budget -= BUF_SIZE) {
		bool header = from == &s->app && (s->flags & SF_HEADER_OWED) != 0;

		if (!header && (from->flags & LEG_READABLE) == 0)
			break;
		if (budget == 0) {
			session_schedule(s);
			return;
		}
		if (!fill_held(s, way, from))
			break;
	}
	if (s->raised == 0 && s->held[way] == NULL && (from->flags & LEG_EOF) != 0 &&
	    (s->flags & ways[way].done) == 0 && leg_finish(to))
		way_done(s, ways[way].done, ways[way].end);
}

static void
to_app_by_tcp(struct session *s)
{
	if ((s->flags & SF_UNSEEN) != 0 && !detect_first_bytes_done(s))
		return;
	if (setup_decline_done(s))
		copy_way(s, WAY_TO_APP);
}

void
session_pump_tcp(struct session *s)
{
	/* A Decline precedes the data. */
	if (!setup_finish(s))
		return;
	copy_way(s, WAY_FROM_APP);
	if (s->raised == 0)
		to_app_by_tcp(s);
	if (s->bytes[WAY_TO_APP] > 0 && session_kind(s) == CONFIG_INGRESS)
		outage_end(s->settings->svc, session_outage(s), OUTAGE_ENDED_BYTES, &s->mid_peer);
}

/* -- before a reset -- */

/* Drops data for an app leg that was reset, so that a full window does not block the peer. */
static void
drop_received(struct session *s)
{
	struct iovec iov[2];
	bool urgent;
	size_t n;

	while ((n = smcr_rx_data(s->conn, iov, &urgent)) > 0)
		smcr_rx_consume(s->conn, n);
}

/* Drops data of this leg for the leg that was reset: unread it might block the program that has to read the rest. Not
 * on a UNIX socket, whose close is a reset only with unread bytes. */
static void
drop_read(struct session *s, struct leg *leg)
{
	struct buf *b = (leg->flags & LEG_UNIX) == 0 ? bufpool_get(&s->pool->bufs) : NULL;
	size_t budget = PUMP_BUDGET;
	bool urgent;

	if (b == NULL)
		return;
	for (ssize_t n = 1; n > 0 && budget > 0; budget -= BUF_SIZE) {
		struct iovec iov = { b->data, sizeof(b->data) };

		n = leg_read(leg, &iov, 1, &urgent);
	}
	bufpool_put(&s->pool->bufs, b);
	if (budget == 0)
		session_schedule(s);
}

void
session_pump_draining(struct session *s)
{
	session_pump_middle(s);
	if (s->raised != 0)
		return;
	drop_received(s);
	from_app(s);
	/* FIN came before the reset. */
	if (s->raised == 0 && (s->app.flags & LEG_EOF) != 0)
		session_raise(s, SEV_PASSED_ON);
}

void
session_pump_aborting(struct session *s)
{
	if (smcr_clc_want(s->conn) > 0) {
		/* A server that has sent its Accept still reads the Confirm (smcr_abort). */
		clc_pump(&s->mid, s->conn, &s->setup->in, &s->setup->out);
		return;
	}
	session_pump_middle(s);
	drop_received(s);
}

void
session_pump_delivering(struct session *s)
{
	struct iovec iov[2];
	bool urgent;

	drop_read(s, &s->app);
	to_app(s);
	if (s->raised == 0 && smcr_rx_data(s->conn, iov, &urgent) == 0 && leg_unsent(&s->app) == 0)
		session_raise(s, SEV_PASSED_ON);
}

void
session_pump_tcp_draining(struct session *s)
{
	const int way = s->reset_way;
	struct leg *from = way == WAY_FROM_APP ? &s->app : &s->mid, *to = way == WAY_FROM_APP ? &s->mid : &s->app;

	if (!setup_finish(s))
		return;
	drop_read(s, to);
	if (way == WAY_FROM_APP)
		copy_way(s, way);
	else
		to_app_by_tcp(s);
	if (s->raised != 0 || s->held[way] != NULL || leg_unsent(to) > 0)
		return;
	if ((s->flags & SF_READ_OUT) != 0 || (from->flags & LEG_EOF) != 0)
		session_raise(s, SEV_PASSED_ON);
}

uint64_t
session_reset_progress(const struct session *s)
{
	const struct buf *b = s->held[s->reset_way];
	struct smcr_conn_info info;

	if (s->state != SES_DRAINING && s->state != SES_ABORTING)
		return s->bytes[s->reset_way] - (b != NULL ? b->len - b->off : 0) -
		    leg_unsent(s->reset_way == WAY_FROM_APP ? &s->mid : &s->app);
	smcr_conn_info(s->conn, &info);
	return info.tx_written + info.tx_sent + info.tx_consumed;
}
