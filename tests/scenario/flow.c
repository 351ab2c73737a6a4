/* Applications at both ends of a flow; see flow.h. */
#include "tests/scenario/flow.h"

#include "base/list.h"

#define CHUNK_MAX 65536
#define STEP_MAX 16 /* reads and writes without a pause */

static const char *const state_names[] = {
	[APP_NONE] = "not connected",
	[APP_OPEN] = "open",
	[APP_DONE] = "done",
	[APP_RESET] = "reset",
	[APP_REFUSED] = "refused",
	[APP_ABORTED] = "aborted",
	[APP_LEFT] = "left",
};

const char *
app_state_str(enum app_state s)
{
	return state_names[s];
}

static struct app *
other(const struct app *a)
{
	return a->server ? &a->f->client : &a->f->server_app;
}

/* The bytes of a stream: a function of key and position. */
static uint8_t
byte_at(uint64_t key, uint64_t pos)
{
	uint64_t z = (key + (pos >> 3)) * 0x9e3779b97f4a7c15u;

	z ^= z >> 29;
	z *= 0xbf58476d1ce4e5b9u;
	return (uint8_t)(z >> (8 * (pos & 7)));
}

/* How many bytes it may have sent by now. */
static uint64_t
allowed(const struct app *a)
{
	const struct flow *f = a->f;
	uint64_t n = a->total;

	switch (f->kind) {
	case FLOW_DUPLEX:
	case FLOW_UPLOAD:
	case FLOW_IDLE:
	case FLOW_KIND_CNT:
		break;
	case FLOW_PINGPONG:
		n = a->server ? a->got / f->request * f->response : (a->got / f->response + 1) * f->request;
		break;
	case FLOW_SERVER_FIRST:
		if (!a->server && a->got < f->server_app.total)
			n = 0;
		break;
	case FLOW_HALF_CLOSE:
		if (a->server && !a->eof)
			n = 0;
		break;
	}
	return n < a->total ? n : a->total;
}

static bool
may_shut(const struct app *a)
{
	if (a->f->kind == FLOW_HALF_CLOSE && a->server && !a->eof)
		return false;
	return a->sent == a->total;
}

static void
finish(struct app *a, enum app_state state)
{
	struct stcp_end *sock = a->sock;

	a->state = state;
	a->sock = NULL;
	timer_cancel(&a->f->w->timers, &a->timer);
	if (sock != NULL && state == APP_ABORTED)
		stcp_abort(sock);
	else if (sock != NULL)
		stcp_close(sock);
	world_log(a->f->w, "flow %u %s %s, sent %llu got %llu", a->f->nr, a->server ? "server" : "client",
	    app_state_str(state), (unsigned long long)a->sent, (unsigned long long)a->got);
	if (flow_over(a->f))
		a->f->end_ns = a->f->w->now_ns;
}

static void
check_urgent(struct app *a)
{
	const struct app *from = other(a);

	if (a->f->hostile)
		return;
	for (unsigned i = 0; i < from->urgent_cnt; i++)
		if (from->urgent[i] == a->got) {
			a->urgent_got++;
			a->urgent_last = a->got + 1;
			return;
		}
	world_fail(a->f->w, "flow %u: byte %llu came as urgent to the %s but was not", a->f->nr,
	    (unsigned long long)a->got, a->server ? "server" : "client");
}

static void
check_bytes(struct app *a, const uint8_t *buf, size_t len)
{
	const struct app *from = other(a);

	if (a->f->hostile)
		return;
	if (a->got + len > from->sent)
		world_fail(a->f->w, "flow %u: the %s got %llu bytes, %llu were sent", a->f->nr,
		    a->server ? "server" : "client", (unsigned long long)(a->got + len),
		    (unsigned long long)from->sent);
	for (size_t i = 0; i < len; i++) {
		if (buf[i] == byte_at(from->key, a->got + i))
			continue;
		world_fail(a->f->w, "flow %u: byte %llu at the %s is %02x, not %02x", a->f->nr,
		    (unsigned long long)(a->got + i), a->server ? "server" : "client", buf[i],
		    byte_at(from->key, a->got + i));
		return;
	}
}

static int64_t
pause_ns(struct app *a, uint32_t us)
{
	return world_draw(a->f->w, 0, us) * US;
}

/* True when something was read and more may follow now. */
static bool
read_some(struct app *a)
{
	uint8_t buf[CHUNK_MAX];
	const struct plan *p = a->f->plan;
	size_t cap = (size_t)world_draw(a->f->w, 1, p->chunk_max < CHUNK_MAX ? p->chunk_max : CHUNK_MAX);
	bool urgent;

	if (a->next_read_ns > a->f->w->now_ns)
		return false;
	size_t n = stcp_recv(a->sock, buf, cap, &urgent);
	if (n == 0)
		return false;
	check_bytes(a, buf, n);
	if (urgent)
		check_urgent(a);
	a->got += n;
	if (a->slow)
		a->next_read_ns = a->f->w->now_ns + pause_ns(a, p->slow_us);
	return true;
}

/* True when something was written and more may follow now. */
static bool
write_some(struct app *a)
{
	uint8_t buf[CHUNK_MAX];
	struct world *w = a->f->w;
	const struct plan *p = a->f->plan;
	uint64_t max = allowed(a) - (a->sent < allowed(a) ? a->sent : allowed(a));
	size_t len = (size_t)world_draw(w, 1, p->chunk_max < CHUNK_MAX ? p->chunk_max : CHUNK_MAX);
	bool urgent = a->urgent_cnt < FLOW_URGENT_MAX && world_chance(w, p->urgent_per_mille);

	if (a->shut || max == 0 || a->next_write_ns > w->now_ns)
		return false;
	if (len > max)
		len = (size_t)max;
	for (size_t i = 0; i < len; i++)
		buf[i] = byte_at(a->key, a->sent + i);
	size_t n = stcp_send(a->sock, buf, len, urgent);
	if (urgent && n == len)
		a->urgent[a->urgent_cnt++] = a->sent + n - 1;
	a->sent += n;
	a->next_write_ns = w->now_ns + pause_ns(a, p->pause_us);
	return n == len;
}

/* The connection's end: true when the application is through. */
static bool
ended(struct app *a)
{
	if (a->sent + a->got >= a->abort_at) {
		finish(a, APP_ABORTED);
		return true;
	}
	if (!a->eof && stcp_eof(a->sock)) {
		a->eof = true;
		if (!a->f->hostile && (!other(a)->shut || other(a)->sent != a->got))
			world_fail(a->f->w, "flow %u: the %s saw the end after %llu bytes, the peer %s %llu", a->f->nr,
			    a->server ? "server" : "client", (unsigned long long)a->got,
			    other(a)->shut ? "ended after" : "did not end and sent",
			    (unsigned long long)other(a)->sent);
	}
	if (a->leaves && a->sent == a->total) {
		a->shut = true;
		finish(a, APP_LEFT);
		return true;
	}
	if (a->f->hostile && a->eof && allowed(a) == a->sent) {
		/* The gateway of the other end lied, or ended: what it waits for never comes. */
		finish(a, APP_LEFT);
		return true;
	}
	if (!a->shut && may_shut(a)) {
		a->shut = true;
		stcp_shutdown(a->sock);
	}
	if (!a->shut || !a->eof)
		return false;
	finish(a, APP_DONE);
	return true;
}

static void
rearm(struct app *a)
{
	struct world *w = a->f->w;
	int64_t at = TIMERQ_NEVER;

	if (stcp_unread(a->sock) > 0)
		at = a->next_read_ns;
	if (!a->shut && allowed(a) > a->sent && stcp_space(a->sock) > 0 && a->next_write_ns < at)
		at = a->next_write_ns;
	if (at < w->now_ns)
		at = w->now_ns + US;
	if (at != TIMERQ_NEVER)
		world_arm(w, &a->timer, at);
}

static void
app_fire(struct timer *t)
{
	struct app *a = CONTAINER_OF(t, struct app, timer);
	int budget = STEP_MAX;
	bool moved = true;

	if (a->sock == NULL)
		return;
	switch (stcp_state(a->sock)) {
	case STCP_CONNECTING:
		return;
	case STCP_REFUSED:
		finish(a, APP_REFUSED);
		return;
	case STCP_RESET:
		do
			a->next_read_ns = 0;
		while (read_some(a));
		finish(a, APP_RESET);
		return;
	case STCP_OPEN:
		break;
	}
	while (moved && budget-- > 0) {
		moved = read_some(a);
		if (write_some(a))
			moved = true;
	}
	if (!ended(a))
		rearm(a);
}

void
app_wake(void *arg)
{
	struct app *a = arg;

	if (!timer_armed(&a->timer) || a->timer.at_ns > a->f->w->now_ns)
		world_arm(a->f->w, &a->timer, a->f->w->now_ns);
}

void
app_again(struct app *a)
{
	if (a->state == APP_OPEN)
		stcp_abort(a->sock);
	a->state = APP_NONE;
	a->sock = NULL;
	a->sent = a->got = a->urgent_last = 0;
	a->next_write_ns = a->next_read_ns = 0;
	a->shut = a->eof = false;
	a->urgent_cnt = a->urgent_got = 0;
}

void
app_connect(struct app *a, struct stcp_end *sock)
{
	a->state = APP_OPEN;
	a->sock = sock;
	if (a->f->kind == FLOW_IDLE)
		a->next_write_ns = a->f->w->now_ns + world_draw(a->f->w, 0, 20 * SEC);
}

static bool
app_over(const struct app *a)
{
	return a->state != APP_NONE && a->state != APP_OPEN;
}

bool
flow_over(const struct flow *f)
{
	if (f->prewarm)
		return f->half[0].ended;
	return app_over(&f->client) && (app_over(&f->server_app) || f->server_app.state == APP_NONE);
}

static void
flow_fire(struct timer *t)
{
	struct flow *f = CONTAINER_OF(t, struct flow, timer);

	f->start(f);
}

static void
app_init(struct app *a, struct flow *f, bool server)
{
	*a = (struct app){ .f = f, .server = server, .abort_at = UINT64_MAX };
	a->key = rng_u64(&f->w->rng);
	a->slow = world_chance(f->w, f->plan->slow_per_mille);
	world_timer_init(f->w, &a->timer, app_fire);
}

static uint64_t
draw_bytes(struct flow *f)
{
	uint32_t max = f->plan->bytes_max;

	if (f->plan->bytes_fixed != 0)
		return max;
	for (uint32_t cut = rng_below(&f->w->rng, 8); cut > 0 && max > 0; cut--)
		max = max * 2 / 3;
	return (uint64_t)world_draw(f->w, 0, max);
}

static void
draw_kind(struct flow *f)
{
	do
		f->kind = (enum flow_kind)rng_below(&f->w->rng, FLOW_KIND_CNT);
	while ((f->plan->kinds & 1u << f->kind) == 0);
	f->client.total = draw_bytes(f);
	f->server_app.total = f->kind == FLOW_UPLOAD ? 0 : draw_bytes(f);
	if (f->kind == FLOW_IDLE) {
		f->client.total %= 3000;
		f->server_app.total %= 3000;
	}
	if (f->kind != FLOW_PINGPONG)
		return;
	f->request = 1 + (uint32_t)(f->client.total % 5000);
	f->response = 1 + (uint32_t)(f->server_app.total % 20000);
	uint64_t rounds = 1 + f->plan->bytes_max / (f->request + f->response);
	rounds = 1 + (uint64_t)world_draw(f->w, 0, (int64_t)(rounds < 100 ? rounds : 100));
	f->client.total = rounds * f->request;
	f->server_app.total = rounds * f->response;
}

/* Between honest hosts, or with the liar in either role; one of each at least. */
static void
draw_hostile_ends(struct flow *f)
{
	bool turn = rng_below(&f->w->rng, 2) == 1,
	     liar = f->nr == 1 || (f->nr > 1 && world_chance(f->w, f->plan->liars_share));
	unsigned a = liar ? rng_below(&f->w->rng, 2) : 0, b = liar ? 2 : 1;

	f->from = turn ? a : b;
	f->to = turn ? b : a;
	f->hostile = liar;
}

void
flow_init(struct flow *f, struct world *w, const struct plan *p, uint32_t nr)
{
	*f = (struct flow){ .w = w, .plan = p, .nr = nr };
	app_init(&f->client, f, false);
	app_init(&f->server_app, f, true);
	world_timer_init(w, &f->timer, flow_fire);
	f->to = 0;
	f->from = 1 + rng_below(&w->rng, p->hosts - 1);
	if (p->two_way && rng_below(&w->rng, 2) == 0) {
		f->to = f->from;
		f->from = 0;
	}
	if (p->hostile)
		draw_hostile_ends(f);
	f->start_ns = world_chance(w, p->burst_per_mille) ? 0 : world_draw(w, 0, p->spread_ms) * MS;
	if (p->wave_ms > 0 && nr % 2 == 1)
		f->start_ns += p->wave_ms * MS;
	f->elem_size = SMCR_ELEM_MIN << world_draw(w, p->elem_code_min, p->elem_code_max);
	if (p->auto_windows != 0)
		f->elem_size = 0;
	draw_kind(f);
	f->refuse = world_chance(w, p->refuse_per_mille);
	if (world_chance(w, p->abort_per_mille)) {
		struct app *a = rng_below(&w->rng, 2) == 0 ? &f->client : &f->server_app;

		a->abort_at = (uint64_t)world_draw(w, 0, (int64_t)(f->client.total + f->server_app.total));
	}
	if (world_chance(w, p->early_close_per_mille))
		(rng_below(&w->rng, 2) == 0 ? &f->client : &f->server_app)->leaves = true;
}

void
flow_fini(struct flow *f)
{
	world_timer_fini(f->w, &f->timer);
	world_timer_fini(f->w, &f->client.timer);
	world_timer_fini(f->w, &f->server_app.timer);
}
