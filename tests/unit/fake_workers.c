/* Workers without threads; see fake_workers.h. */
#include "fake_workers.h"

#include <stdlib.h>

#include "daemon/target/targets.h"

#pragma GCC diagnostic ignored "-Wunused-parameter"

unsigned fake_workers_asked;

struct workers {
	struct mailbox mail;
	struct accept_pauses pauses;
	struct targets_all targets;
	struct worker *w;
	unsigned cnt;
};

struct workers *
fake_workers_new(struct loop *loop, struct worker *w, unsigned cnt)
{
	struct workers *ws = calloc(1, sizeof(*ws));

	accept_pauses_init(&ws->pauses, NULL);
	targets_all_init(&ws->targets);
	ws->w = w;
	ws->cnt = cnt;
	if (loop != NULL && mailbox_init(&ws->mail, loop) != 0)
		abort();
	return ws;
}

void
fake_workers_free(struct workers *ws)
{
	if (ws->mail.loop != NULL)
		mailbox_run(&ws->mail);
	mailbox_fini(&ws->mail);
	accept_pauses_fini(&ws->pauses);
	targets_all_fini(&ws->targets);
	free(ws);
}

unsigned
workers_cnt(const struct workers *ws)
{
	return ws->cnt;
}

unsigned
workers_of_group(const struct workers *ws, uint32_t group_id)
{
	return (group_id - 1) % ws->cnt;
}

struct targets_all *
workers_targets(struct workers *ws)
{
	return &ws->targets;
}

struct mailbox *
workers_mailbox(struct workers *ws)
{
	return &ws->mail;
}

struct accept_pauses *
workers_accept_pauses(struct workers *ws)
{
	return &ws->pauses;
}

void
workers_call(struct workers *ws, unsigned nr, void (*fn)(struct worker *, void *arg), void *arg)
{
	if (nr >= ws->cnt)
		abort();
	fake_workers_asked |= 1u << nr;
	fn(ws->w, arg);
}

void
workers_call_all(struct workers *ws, void (*fn)(struct worker *, void *arg), void *arg)
{
	for (unsigned i = 0; i < workers_cnt(ws); i++)
		workers_call(ws, i, fn, arg);
}
