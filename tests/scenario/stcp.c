/* Simulated TCP connections; see stcp.h. */
#include "tests/scenario/stcp.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/list.h"

#define URGENT_MAX 64 /* urgent bytes remembered in one receive buffer */

enum seg_kind {
	SEG_DATA,
	SEG_FIN,
	SEG_RST,
	SEG_OPEN, /* the listener's answer */
};

struct seg {
	struct list_node node;
	int64_t at_ns;
	enum seg_kind kind;
	bool urgent; /* the last byte */
	size_t len;
	uint8_t data[];
};

struct stcp_end {
	struct stcp *s;
	struct stcp_user user;
	enum stcp_state state;
	bool gone; /* its user has closed it */
	bool shut;
	bool starved; /* send was cut short: wake when there is room */

	struct list_node flight; /* to the peer */
	struct timer timer;
	int64_t last_ns;
	size_t flight_len;

	uint8_t *rx; /* ring of net.window bytes */
	size_t rx_head, rx_len;
	uint64_t rx_pos;             /* stream position of rx_head */
	uint64_t urgent[URGENT_MAX]; /* positions of urgent bytes not read yet */
	unsigned urgent_cnt;
	bool rx_fin;
};

struct stcp {
	struct world *w;
	struct stcp_net net;
	struct stcp_listener listener;
	void *tag;
	struct stcp_end end[2]; /* [0] connected, [1] accepted */
};

static struct stcp_end *
peer_of(const struct stcp_end *e)
{
	return e == &e->s->end[0] ? &e->s->end[1] : &e->s->end[0];
}

static void
wake(struct stcp_end *e)
{
	if (!e->gone && e->user.wake != NULL)
		e->user.wake(e->user.arg);
}

static void
flight_next(struct stcp_end *e)
{
	struct list_node *n = list_first(&e->flight);

	if (n != NULL)
		world_arm(e->s->w, &e->timer, CONTAINER_OF(n, struct seg, node)->at_ns);
}

static void
seg_push(struct stcp_end *e, enum seg_kind kind, const void *data, size_t len, bool urgent)
{
	struct world *w = e->s->w;
	struct seg *seg = must_calloc(1, sizeof(*seg) + len);
	int64_t at = w->now_ns + world_draw(w, e->s->net.delay_min_ns, e->s->net.delay_max_ns);
	bool first = list_empty(&e->flight);

	seg->kind = kind;
	seg->at_ns = e->last_ns = at > e->last_ns ? at : e->last_ns;
	seg->len = len;
	seg->urgent = urgent;
	if (len > 0)
		memcpy(seg->data, data, len);
	e->flight_len += len;
	list_push(&e->flight, &seg->node);
	if (first)
		flight_next(e);
}

static void
stcp_free(struct stcp *s)
{
	for (int i = 0; i < 2; i++) {
		struct list_node *n;

		while ((n = list_pop(&s->end[i].flight)) != NULL)
			free(CONTAINER_OF(n, struct seg, node));
		world_timer_fini(s->w, &s->end[i].timer);
		free(s->end[i].rx);
	}
	free(s);
}

static void
rx_put(struct stcp_end *e, const struct seg *seg)
{
	size_t cap = e->s->net.window;
	size_t at = (e->rx_head + e->rx_len) % cap;
	size_t first = seg->len < cap - at ? seg->len : cap - at;

	assert(e->rx_len + seg->len <= cap);
	memcpy(e->rx + at, seg->data, first);
	memcpy(e->rx, seg->data + first, seg->len - first);
	e->rx_len += seg->len;
	if (!seg->urgent)
		return;
	if (e->urgent_cnt == URGENT_MAX)
		abort(); /* a scenario sends fewer */
	e->urgent[e->urgent_cnt++] = e->rx_pos + e->rx_len - 1;
}

static void
got_reset(struct stcp_end *e)
{
	if (e->state == STCP_RESET || e->state == STCP_REFUSED)
		return;
	e->state = e->state == STCP_CONNECTING ? STCP_REFUSED : STCP_RESET;
	/* All that is on its way from e is lost, but for a RST. */
	LIST_FOREACH(n, &e->flight) {
		struct seg *seg = CONTAINER_OF(n, struct seg, node);

		if (seg->kind == SEG_RST)
			continue;
		list_remove(n);
		e->flight_len -= seg->len;
		free(seg);
	}
	timer_cancel(&e->s->w->timers, &e->timer);
	flight_next(e);
	if (e->s->net.rst_discards)
		e->rx_len = 0;
	wake(e);
}

/* A segment of the peer reaches e, whose user may be gone. */
static void
arrive(struct stcp_end *e, const struct seg *seg)
{
	switch (seg->kind) {
	case SEG_OPEN:
		if (e->state == STCP_CONNECTING)
			e->state = STCP_OPEN;
		break;
	case SEG_DATA:
		if (e->gone && e->state == STCP_OPEN) {
			seg_push(e, SEG_RST, NULL, 0, false);
			e->state = STCP_RESET;
		}
		if (e->gone || e->state != STCP_OPEN)
			return;
		rx_put(e, seg);
		break;
	case SEG_FIN:
		if (e->state != STCP_OPEN)
			return;
		e->rx_fin = true;
		break;
	case SEG_RST:
		got_reset(e);
		return;
	}
	wake(e);
}

static void
flight_fire(struct timer *t)
{
	struct stcp_end *from = CONTAINER_OF(t, struct stcp_end, timer);
	struct stcp_end *to = peer_of(from);
	struct list_node *n = list_first(&from->flight);
	struct seg *seg = CONTAINER_OF(n, struct seg, node);

	list_remove(n);
	from->flight_len -= seg->len;
	arrive(to, seg);
	free(seg);
	if (!timer_armed(t))
		flight_next(from);
}

/* The connect reaches the listener. */
static void
accept_fire(struct timer *t)
{
	struct stcp_end *e = CONTAINER_OF(t, struct stcp_end, timer);
	struct stcp *s = e->s;

	timer_init(t, flight_fire);
	e->state = STCP_OPEN;
	if (s->end[0].gone) {
		got_reset(e);
		e->gone = true;
		stcp_free(s);
		return;
	}
	e->gone = false;
	if (s->listener.accept(s->listener.arg, e, s->tag, &e->user)) {
		seg_push(e, SEG_OPEN, NULL, 0, false);
		wake(e);
		return;
	}
	e->gone = true;
	e->state = STCP_RESET;
	seg_push(e, SEG_RST, NULL, 0, false);
}

static void
end_init(struct stcp *s, int i, void (*fire)(struct timer *))
{
	struct stcp_end *e = &s->end[i];

	e->s = s;
	e->rx = must_calloc(1, s->net.window);
	list_init(&e->flight);
	world_timer_init(s->w, &e->timer, fire);
}

struct stcp_end *
stcp_connect(
    struct world *w, const struct stcp_net *net, const struct stcp_listener *to, void *tag, struct stcp_user user)
{
	struct stcp *s = must_calloc(1, sizeof(*s));

	s->w = w;
	s->net = *net;
	s->listener = *to;
	s->tag = tag;
	end_init(s, 0, flight_fire);
	end_init(s, 1, accept_fire);
	s->end[0].user = user;
	s->end[0].state = s->end[1].state = STCP_CONNECTING;
	s->end[1].gone = true;
	world_arm(w, &s->end[1].timer, w->now_ns + world_draw(w, net->delay_min_ns, net->delay_max_ns));
	return &s->end[0];
}

void *
stcp_tag(const struct stcp_end *e)
{
	return e->s->tag;
}

enum stcp_state
stcp_state(const struct stcp_end *e)
{
	return e->state;
}

size_t
stcp_space(struct stcp_end *e)
{
	size_t used = e->flight_len + peer_of(e)->rx_len;

	if (used < e->s->net.window)
		return e->state != STCP_OPEN || e->shut ? 0 : e->s->net.window - used;
	e->starved = true;
	return 0;
}

size_t
stcp_send(struct stcp_end *e, const void *buf, size_t len, bool urgent)
{
	const uint8_t *p = buf;
	size_t room = stcp_space(e), take = len < room ? len : room, left = take;

	assert(!e->shut && !e->gone);
	if (take < len)
		e->starved = true;
	while (left > 0) {
		size_t n = left < e->s->net.segment ? left : e->s->net.segment;

		n = (size_t)world_draw(e->s->w, 1, (int64_t)n);
		if (left - n < 16)
			n = left; /* few small pieces */
		left -= n;
		seg_push(e, SEG_DATA, p, n, urgent && take == len && left == 0);
		p += n;
	}
	return take;
}

static size_t
until_urgent(const struct stcp_end *e, size_t cap, bool *urgent)
{
	size_t n = e->rx_len < cap ? e->rx_len : cap;

	*urgent = false;
	if (e->urgent_cnt == 0 || n == 0)
		return n;
	if (e->urgent[0] == e->rx_pos) {
		*urgent = true;
		return 1;
	}
	return e->urgent[0] - e->rx_pos < n ? (size_t)(e->urgent[0] - e->rx_pos) : n;
}

size_t
stcp_recv(struct stcp_end *e, void *buf, size_t cap, bool *urgent)
{
	size_t n = until_urgent(e, cap, urgent), window = e->s->net.window;
	size_t first = n < window - e->rx_head ? n : window - e->rx_head;

	memcpy(buf, e->rx + e->rx_head, first);
	memcpy((uint8_t *)buf + first, e->rx, n - first);
	e->rx_head = (e->rx_head + n) % window;
	e->rx_len -= n;
	e->rx_pos += n;
	if (*urgent) {
		e->urgent_cnt--;
		memmove(e->urgent, e->urgent + 1, e->urgent_cnt * sizeof(e->urgent[0]));
	}
	if (n > 0 && peer_of(e)->starved) {
		peer_of(e)->starved = false;
		wake(peer_of(e));
	}
	return n;
}

size_t
stcp_unread(const struct stcp_end *e)
{
	return e->rx_len;
}

bool
stcp_eof(const struct stcp_end *e)
{
	return e->rx_fin && e->rx_len == 0 && e->state == STCP_OPEN;
}

void
stcp_shutdown(struct stcp_end *e)
{
	assert(!e->shut && !e->gone);
	e->shut = true;
	if (e->state == STCP_OPEN)
		seg_push(e, SEG_FIN, NULL, 0, false);
}

bool
stcp_is_shut(const struct stcp_end *e)
{
	return e->shut;
}

static void
leave(struct stcp_end *e)
{
	struct stcp *s = e->s;
	bool listening = s->end[1].state == STCP_CONNECTING;

	e->gone = true;
	if (peer_of(e)->gone && !listening)
		stcp_free(s);
}

void
stcp_close(struct stcp_end *e)
{
	assert(!e->gone);
	if (e->rx_len > 0 || e->state == STCP_CONNECTING) {
		stcp_abort(e);
		return;
	}
	if (!e->shut)
		stcp_shutdown(e);
	leave(e);
}

void
stcp_abort(struct stcp_end *e)
{
	assert(!e->gone);
	if (e->state == STCP_OPEN || (e->state == STCP_CONNECTING && peer_of(e)->state != STCP_CONNECTING)) {
		e->state = STCP_RESET;
		seg_push(e, SEG_RST, NULL, 0, false);
	}
	leave(e);
}

void
stcp_kill(struct stcp_end *e)
{
	seg_push(e, SEG_RST, NULL, 0, false);
	seg_push(peer_of(e), SEG_RST, NULL, 0, false);
}
