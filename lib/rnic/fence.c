/* Timing of the Read that proves delivery; see fence.h. */
#include "rnic/fence.h"

static void
arm_ms(struct fence *f, struct timer *t, uint32_t ms)
{
	timer_arm(f->timers, t, f->dev->now_ns + (int64_t)ms * 1000000);
}

/* Positions only grow; the difference is correct across a wrap. */
static bool
fence_is_before(uint32_t a, uint32_t b)
{
	return (int32_t)(b - a) > 0;
}

void
fence_init(struct fence *f, void (*on_delay)(struct timer *), void (*on_silence)(struct timer *))
{
	timer_init(&f->delay_timer, on_delay);
	timer_init(&f->answer_timer, on_silence);
}

void
fence_stop(struct fence *f)
{
	timer_cancel(f->timers, &f->delay_timer);
	timer_cancel(f->timers, &f->answer_timer);
}

void
fence_set_peer(struct fence *f, const struct mpa_pdata *peer)
{
	f->peer_stag = peer->read_stag;
	f->peer_to = peer->read_to;
}

void
fence_posted(struct fence *f, bool signaled)
{
	if (!signaled)
		return;
	f->sig_pos = f->sq->head;
	fence_arm(f);
}

void
fence_want(struct fence *f)
{
	f->want_pos = f->sq->head;
	timer_cancel(f->timers, &f->delay_timer);
}

/* One Read at a time, and only after a request that it can prove. */
static bool
may_send(const struct fence *f)
{
	return !f->out && f->sq->sent != f->sq->done;
}

bool
fence_wanted(const struct fence *f)
{
	return may_send(f) && fence_is_before(f->sq->done, f->want_pos) && !fence_is_before(f->sq->sent, f->want_pos);
}

bool
fence_pressed(const struct fence *f)
{
	const struct sendq *sq = f->sq;

	return may_send(f) && ((sq->head - sq->done) * 2 > sq->depth || sq->sends_out * 2 > sq->peer_depth);
}

void
fence_sent(struct fence *f)
{
	f->out = true;
	f->read_pos = f->sq->sent;
	fence_expect_answer(f);
}

uint32_t
fence_answered(struct fence *f)
{
	f->out = false;
	timer_cancel(f->timers, &f->answer_timer);
	return f->read_pos;
}

void
fence_arm(struct fence *f)
{
	uint32_t covered = f->out ? f->read_pos : f->sq->done;

	if (fence_is_before(covered, f->sig_pos) && fence_is_before(f->want_pos, f->sig_pos) &&
	    !timer_armed(&f->delay_timer))
		arm_ms(f, &f->delay_timer, f->delay_ms);
}

void
fence_expect_answer(struct fence *f)
{
	arm_ms(f, &f->answer_timer, f->answer_ms);
}
