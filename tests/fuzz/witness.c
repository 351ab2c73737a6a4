/* See witness.h. */
#include "witness.h"

#include <string.h>

#include "fuzz.h"
#include "tests/numbered.h"
#include "tests/scenario/oom.h"
#include "tests/seeded_rng.h"

#define PATIENCE_MS 400

static void
put(struct witness_end *e, size_t len)
{
	struct iovec iov[2];
	size_t room = smcr_tx_space(e->conn, iov), n = len < room ? len : room;

	numbered_fill(iov, n, e->written);
	e->written += n;
	smcr_tx_commit(e->conn, n, false);
}

static void
take(struct witness_end *e)
{
	struct iovec iov[2];
	bool urgent;
	size_t n;

	while ((n = smcr_rx_data(e->conn, iov, &urgent)) > 0) {
		FUZZ_CHECK(numbered_holds(iov, n, e->read));
		e->read += n;
		smcr_rx_consume(e->conn, n);
	}
}

static void
on_event(struct arena_user *u, unsigned events)
{
	struct witness_end *e = (struct witness_end *)(void *)u;

	e->out_len += smcr_clc_output(e->conn, e->out + e->out_len, sizeof(e->out) - e->out_len);
	if ((events & SMCR_EV_PROPOSAL) != 0)
		smcr_admit(e->conn);
	if ((events & SMCR_EV_ESTABLISHED) != 0)
		e->established = true;
	if ((events & (SMCR_EV_FALLBACK | SMCR_EV_CLOSED)) != 0) {
		const char *why = "";

		if (!e->of->excused && (events & SMCR_EV_CLOSED) != 0)
			fprintf(stderr, "the witness's connection ends: %s, %s\n",
			    smcr_reason_str(smcr_closed(e->conn, &why)), why);
		FUZZ_CHECK(e->of->excused);
		e->ended = true;
		return;
	}
	if ((events & SMCR_EV_READABLE) != 0)
		take(e);
}

static bool
pass_on(struct witness *w, struct witness_end *from, struct witness_end *to)
{
	size_t n = to->conn != NULL && !to->ended ? smcr_clc_want(to->conn) : 0;

	if (n == 0 || from->out_len == 0)
		return false;
	if (n > from->out_len)
		n = from->out_len;
	if (from == &w->here && w->accept_len + n <= sizeof(w->accept)) {
		memcpy(w->accept + w->accept_len, from->out, n);
		w->accept_len += n;
	}
	smcr_clc_input(to->conn, from->out, n);
	memmove(from->out, from->out + n, from->out_len - n);
	from->out_len -= n;
	return true;
}

bool
witness_turn(struct witness *w)
{
	struct smcr_conn *c;
	unsigned events;
	bool more = false;

	if (w == NULL)
		return false;
	oom_suspend(true);
	smcr_poll(w->eng, w->arena->now_ns);
	while ((c = smcr_next_event(w->eng, &events)) != NULL) {
		on_event(smcr_app(c), events);
		more = true;
	}
	more = pass_on(w, &w->here, &w->there) || more;
	more = pass_on(w, &w->there, &w->here) || more;
	more = smcr_flush(w->eng) || more || smcr_deadline(w->eng) <= w->arena->now_ns;
	oom_suspend(false);
	return more;
}

int64_t
witness_deadline(const struct witness *w)
{
	return w != NULL ? smcr_deadline(w->eng) : INT64_MAX;
}

static void
open_end(struct witness_end *e, struct smcr *eng, enum smcr_role role)
{
	struct smcr_open open = { .role = role,
		.app = e,
		.elem_size = SMCR_ELEM_MIN,
		.peer_key = "witness:1",
		.subnet_cnt = 1,
		.subnet = { { .addr = { 10, 0, 0, 0 }, .prefix_len = 16 } } };
	int err;

	open.remote.addr[15] = role == SMCR_CLIENT ? 1 : 2;
	e->user.on_event = on_event;
	e->conn = smcr_open(eng, &open, &err);
	FUZZ_CHECK(e->conn != NULL);
}

void
witness_init(struct witness *w, struct arena *a, enum smcr_role of_engine)
{
	struct smcr_config cfg = a->cfg;

	cfg.keepalive_ms = 0;
	memset(w, 0, sizeof(*w));
	w->arena = a;
	w->here.of = w->there.of = w;
	a->witness = w;
	rng_init_seeded(&w->rng, 2);
	w->eng = smcr_new(&cfg, &w->rng, a->now_ns);
	FUZZ_CHECK(w->eng != NULL);
	w->dev = arena_device(a, 1, 0);
	FUZZ_CHECK(smcr_add_device(w->eng, w->dev) == 0);
	open_end(&w->there, a->eng, of_engine);
	open_end(&w->here, w->eng, of_engine == SMCR_CLIENT ? SMCR_SERVER : SMCR_CLIENT);
	for (unsigned ms = 0; !(w->here.established && w->there.established); ms++) {
		FUZZ_CHECK(ms < 1000);
		arena_run(a, ARENA_MS);
	}
}

void
witness_send(struct witness *w, size_t len)
{
	if (!w->here.ended)
		put(&w->here, len);
	if (!w->there.ended)
		put(&w->there, len);
}

void
witness_check(struct witness *w)
{
	if (w->excused)
		return;
	witness_send(w, 700);
	arena_run(w->arena, PATIENCE_MS * ARENA_MS);
	FUZZ_CHECK(w->excused || (w->here.read == w->there.written && w->there.read == w->here.written));
}

void
witness_fini(struct witness *w)
{
	smcr_free(w->eng);
}
