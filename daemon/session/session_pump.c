/*
 * Data between the app leg and the engine: read straight into the send ring,
 * written straight from the RMB element; see session.h. Per request one recv
 * and one send.
 */
#include "daemon/session/session.h"

#include <string.h>

#include "daemon/session/proxy.h"

/* Bytes of one session, turn and direction; then the next one has its turn. */
#define PUMP_BUDGET (256u * 1024)

static int
piece_cnt(const struct iovec iov[2])
{
	return iov[1].iov_len > 0 ? 2 : 1;
}

static void
clip(struct iovec iov[2], size_t max)
{
	if (iov[0].iov_len > max)
		iov[0].iov_len = max;
	if (iov[1].iov_len > max - iov[0].iov_len)
		iov[1].iov_len = max - iov[0].iov_len;
}

/* False while there is no ring to lend: SMCR_EV_WRITABLE will come. An empty one has room for any header. */
static bool
put_header(struct session *s)
{
	uint8_t hdr[PROXY_HEADER_MAX];
	struct iovec iov[2] = { { 0 } };
	size_t len, first;

	if (smcr_tx_space(s->conn, iov) < sizeof(hdr))
		return false;
	len = session_header(s, hdr);
	first = len < iov[0].iov_len ? len : iov[0].iov_len;
	memcpy(iov[0].iov_base, hdr, first);
	if (len > first)
		memcpy(iov[1].iov_base, hdr + first, len - first);
	smcr_tx_commit(s->conn, len, false);
	s->flags &= ~(unsigned)SF_HEADER_OWED;
	return true;
}

static void
from_app(struct session *s)
{
	size_t budget = PUMP_BUDGET;

	if ((s->flags & SF_HEADER_OWED) != 0 && !put_header(s))
		return;
	while ((s->app.flags & LEG_READABLE) != 0 && budget > 0) {
		struct iovec iov[2] = { { 0 } };
		bool urgent;
		ssize_t n;

		if (smcr_tx_space(s->conn, iov) == 0)
			break;
		clip(iov, budget);
		n = leg_read(&s->app, iov, piece_cnt(iov), &urgent);
		smcr_tx_commit(s->conn, n > 0 ? (size_t)n : 0, urgent);
		if (n < 0) {
			session_event(s, SEV_APP_RESET);
			return;
		}
		s->bytes[WAY_FROM_APP] += (size_t)n;
		budget -= (size_t)n;
		if (n > 0)
			s->active_ns = s->pool->env->now_ns;
	}
	if ((s->app.flags & LEG_EOF) != 0 && (s->flags & SF_APP_DONE) == 0)
		session_way_done(s, SF_APP_DONE, SEV_APP_EOF);
	else if (budget == 0)
		session_schedule(s);
}

static void
to_app(struct session *s)
{
	size_t budget = PUMP_BUDGET;

	while ((s->app.flags & LEG_WRITABLE) != 0 && budget > 0) {
		struct iovec iov[2] = { { 0 } };
		bool urgent;
		ssize_t n;

		if (smcr_rx_data(s->conn, iov, &urgent) == 0)
			break;
		clip(iov, budget);
		n = leg_write(&s->app, iov, piece_cnt(iov), urgent);
		if (n < 0) {
			session_event(s, SEV_APP_RESET);
			return;
		}
		if (n == 0)
			break;
		smcr_rx_consume(s->conn, (size_t)n);
		s->bytes[WAY_TO_APP] += (size_t)n;
		s->active_ns = s->pool->env->now_ns;
		budget -= (size_t)n;
	}
	if ((s->flags & SF_PEER_DONE) == 0 && smcr_rx_eof(s->conn))
		session_way_done(s, SF_PEER_DONE, SEV_PEER_DONE);
	else if (budget == 0)
		session_schedule(s);
}

void
session_pump_middle(struct session *s)
{
	(void)setup_finish(s);
	if (s->state == SES_DEAD || (s->mid.flags & LEG_RDHUP) == 0 || (s->flags & SF_MID_FIN) != 0)
		return;
	s->flags |= SF_MID_FIN;
	session_event(s, SEV_MID_EOF);
}

void
session_pump_smcr(struct session *s)
{
	s->events = 0;
	session_pump_middle(s);
	if (s->state == SES_SMCR)
		from_app(s);
	if (s->state == SES_SMCR)
		to_app(s);
}
