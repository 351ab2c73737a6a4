/*
 * A fallen-back session: bytes copied between the app leg and the middle. A
 * buffer is lent for each read and given back as soon as it is written, so an
 * idle connection holds none; see session.h. Copying, not splice(2), which
 * stops at an urgent byte.
 */
#include "daemon/session/session.h"

#include "daemon/session/proxy.h"

/* Buffers of one session, turn and direction; then the next one has its turn. */
#define COPY_BUDGET 8

struct way {
	struct leg *from, *to;
	struct buf **held;
	uint64_t *bytes;
	unsigned done; /* SF_ flag of its end */
	enum session_event end;
};

/* Writes what is held. 1: all written; 0: the socket is full; -1: the session has ended. */
static int
flush_held(struct session *s, const struct way *w, enum session_event broken)
{
	struct buf *b = *w->held;
	struct iovec iov;
	ssize_t n;

	if (b == NULL)
		return 1;
	iov = (struct iovec){ b->data + b->off, b->len - b->off };
	n = leg_write(w->to, &iov, 1, b->urgent);
	if (n < 0) {
		session_event(s, broken);
		return -1;
	}
	b->off += (uint32_t)n;
	if (n > 0)
		s->active_ns = s->pool->env->now_ns;
	if (b->off < b->len)
		return 0;
	bufpool_put(&s->pool->bufs, b);
	*w->held = NULL;
	return 1;
}

/* Reads into a buffer. 1: it is held now; 0: nothing to read; -1: the session has ended. */
static int
fill_held(struct session *s, const struct way *w, enum session_event broken)
{
	struct buf *b = bufpool_get(&s->pool->bufs);
	struct iovec iov;
	bool urgent = false;
	ssize_t n;

	if (b == NULL) {
		session_blame(s, "out of memory", 0);
		session_event(s, broken);
		return -1;
	}
	iov = (struct iovec){ b->data, sizeof(b->data) };
	if (w->from == &s->app && (s->flags & SF_HEADER_OWED) != 0) {
		n = (ssize_t)session_header(s, b->data);
		s->flags &= ~(unsigned)SF_HEADER_OWED;
	} else {
		n = leg_read(w->from, &iov, 1, &urgent);
		if (n > 0) {
			*w->bytes += (size_t)n;
			s->pool->stats.tcp_bytes += (size_t)n;
		}
	}
	if (n <= 0) {
		bufpool_put(&s->pool->bufs, b);
		if (n < 0)
			session_event(s, broken);
		return n < 0 ? -1 : 0;
	}
	b->len = (uint32_t)n;
	b->urgent = urgent;
	*w->held = b;
	return 1;
}

static void
copy_way(struct session *s, const struct way *w)
{
	enum session_event from_broken = w->from == &s->app ? SEV_APP_RESET : SEV_MID_RESET;
	enum session_event to_broken = w->to == &s->app ? SEV_APP_RESET : SEV_MID_RESET;
	int budget = COPY_BUDGET, r;

	while ((r = flush_held(s, w, to_broken)) == 1) {
		bool header = w->from == &s->app && (s->flags & SF_HEADER_OWED) != 0;

		if (!header && (w->from->flags & LEG_READABLE) == 0)
			break;
		if (budget-- == 0) {
			session_schedule(s);
			return;
		}
		r = fill_held(s, w, from_broken);
		if (r <= 0)
			break;
	}
	if (r >= 0 && *w->held == NULL && (w->from->flags & LEG_EOF) != 0 && (s->flags & w->done) == 0)
		session_way_done(s, w->done, w->end);
}

void
session_pump_tcp(struct session *s)
{
	const struct way from_app = {
		&s->app,
		&s->mid,
		&s->held[WAY_FROM_APP],
		&s->bytes[WAY_FROM_APP],
		SF_APP_DONE,
		SEV_APP_EOF,
	};
	const struct way to_app = {
		&s->mid,
		&s->app,
		&s->held[WAY_TO_APP],
		&s->bytes[WAY_TO_APP],
		SF_PEER_DONE,
		SEV_MID_EOF,
	};

	/* A Decline goes before the data. */
	if (!setup_finish(s))
		return;
	copy_way(s, &from_app);
	if (s->state == SES_TCP && setup_decline_done(s))
		copy_way(s, &to_app);
	if (s->bytes[WAY_TO_APP] > 0 && session_kind(s) == CONFIG_INGRESS)
		outage_end(s->settings->svc, OUTAGE_ENDED_BYTES, &s->mid_peer);
}
