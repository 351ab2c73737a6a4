/* Virtual time and failures; see world.h. */
#include "tests/scenario/world.h"
#include "tests/seeded_rng.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

void
world_init(struct world *w, uint64_t seed, FILE *log)
{
	*w = (struct world){ .log = log };
	rng_init_seeded(&w->rng, seed);
	timerq_init(&w->timers);
}

void
world_fini(struct world *w)
{
	timerq_fini(&w->timers);
}

static void
say(struct world *w, const char *mark, const char *text)
{
	if (w->line != NULL)
		w->line(w->line_ctx, text);
	if (w->log != NULL)
		fprintf(w->log, "%12.6f %s%s\n", (double)w->now_ns / 1e9, mark, text);
}

void
world_fail(struct world *w, const char *fmt, ...)
{
	char text[sizeof(w->first_fail)];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	say(w, "FAIL ", text);
	if (w->fail_cnt++ == 0)
		snprintf(w->first_fail, sizeof(w->first_fail), "at %.6f: %.480s", (double)w->now_ns / 1e9, text);
}

void
world_excuse(struct world *w, const char *why)
{
	world_log(w, "excuse: %s", why);
	if (w->excuse == NULL)
		w->excuse = why;
}

bool
world_listens(const struct world *w)
{
	return w->log != NULL || w->line != NULL;
}

void
world_log(struct world *w, const char *fmt, ...)
{
	char text[1024];
	va_list ap;

	if (!world_listens(w))
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	say(w, "", text);
}

void
world_timer_init(struct world *w, struct timer *t, void (*fire)(struct timer *))
{
	for (int tries = 0; timerq_reserve(&w->timers, 1) != 0; tries++)
		if (tries == 1000)
			abort();
	timer_init(t, fire);
}

void
world_timer_fini(struct world *w, struct timer *t)
{
	timer_cancel(&w->timers, t);
	timerq_unreserve(&w->timers, 1);
}

void
world_arm(struct world *w, struct timer *t, int64_t at_ns)
{
	timer_arm(&w->timers, t, at_ns);
}

int64_t
world_draw(struct world *w, int64_t from, int64_t to)
{
	return to <= from ? from : from + (int64_t)(rng_u64(&w->rng) % (uint64_t)(to - from + 1));
}

bool
world_chance(struct world *w, unsigned per_mille)
{
	return per_mille > 0 && rng_below(&w->rng, 1000) < per_mille;
}

void *
must_calloc(size_t n, size_t len)
{
	size_t size = (n * len + 15) / 16 * 16;
	void *p = aligned_alloc(16, size > 0 ? size : 16); /* never refused: see oom.h */

	if (p == NULL)
		abort();
	return memset(p, 0, size);
}
