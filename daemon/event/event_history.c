/* Events for the log, the journal and smcrctl; see event_history.h. */
#include "daemon/event/event_history.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/list.h"
#include "daemon/event/journal.h"

static void
on_mail(struct mail *mail)
{
	struct event_history *news = CONTAINER_OF(mail, struct event_history, mail);

	/* The mail only makes the loop turn: the turn of the control socket reads new events. */
	(void)pthread_mutex_lock(&news->lock);
	news->pending = false;
	(void)pthread_mutex_unlock(&news->lock);
}

int
event_history_init(struct event_history *news)
{
	*news = (struct event_history){ .mail.fn = on_mail };
	news->kept = calloc(EVENT_HISTORY_KEPT, sizeof(news->kept[0]));
	if (news->kept == NULL)
		return -ENOMEM;
	for (unsigned i = 0; i < EVENT_KIND_CNT; i++)
		news->limits[i] = (struct log_limit){ .burst = EVENT_HISTORY_BURST,
			.interval_ms = i == EVENT_UNKNOWN_PEER ? EVENT_UNKNOWN_PEERS_MS : EVENT_HISTORY_BURST_MS };
	(void)pthread_mutex_init(&news->lock, NULL);
	return 0;
}

void
event_history_fini(struct event_history *news)
{
	if (news->kept == NULL)
		return;
	free(news->kept);
	(void)pthread_mutex_destroy(&news->lock);
	*news = (struct event_history){ 0 };
}

/* A place for the newest event. When full, the oldest event of the most frequent kind is dropped. */
static struct event_record *
make_place(struct event_history *news, enum event_kind kind)
{
	unsigned place = news->cnt, most = 0, i = 0;

	if (news->cnt == EVENT_HISTORY_KEPT) {
		for (unsigned k = 1; k < EVENT_KIND_CNT; k++)
			most = news->of_kind[k] > news->of_kind[most] ? k : most;
		while (news->kept[news->order[i]].event.kind != (enum event_kind)most)
			i++;
		place = news->order[i];
		news->of_kind[most]--;
		memmove(&news->order[i], &news->order[i + 1], (--news->cnt - i) * sizeof(news->order[0]));
	}
	news->of_kind[kind]++;
	news->order[news->cnt++] = place;
	return &news->kept[place];
}

/* Keeps the event and wakes the follower; false: over the rate limit of its kind. */
static bool
event_history_keep(
    struct event_history *news, int64_t now_ns, unsigned worker, const struct event *e, uint64_t *left_out)
{
	(void)pthread_mutex_lock(&news->lock);
	bool may = log_limit_take(&news->limits[e->kind], now_ns, left_out);
	if (may) {
		struct event_record *r = make_place(news, e->kind);
		struct timespec ts;

		(void)clock_gettime(CLOCK_REALTIME, &ts);
		*r = (struct event_record){ .nr = ++news->last, .left_out = *left_out, .worker = worker, .event = *e };
		r->time_us = ts.tv_sec * INT64_C(1000000) + ts.tv_nsec / 1000;
		/* Under the lock: event_history_wake() then knows whether a mail is pending. */
		if (news->to != NULL && !news->pending) {
			news->pending = true;
			mailbox_post(news->to, &news->mail);
		}
	}
	(void)pthread_mutex_unlock(&news->lock);
	return may;
}

/* Its fields with their types; texts are strings also if they look like numbers. */
static void
log_as_json(const struct event *e)
{
	const struct event_kind_row *kind = &event_kinds[e->kind];
	struct log_field fields[1 + EVENT_FIELD_CNT] = { { "event", kind->word, false } };
	char numbers[EVENT_FIELD_CNT][24];
	unsigned cnt = 1;

	for (unsigned i = 0; i < EVENT_FIELD_CNT; i++) {
		const char *value = event_value(e, &event_fields[i], numbers[i]);

		if ((kind->fields & 1u << i) != 0 && value[0] != '\0')
			fields[cnt++] = (struct log_field){ event_fields[i].key, value, event_fields[i].cap == 0 };
	}
	log_fields(kind->level, kind->phrase, fields, cnt);
}

void
event_report(struct event_history *news, int64_t now_ns, unsigned worker, const struct event *in)
{
	const enum log_level level = event_kinds[in->kind].level;
	struct event e = *in;
	char text[EVENT_TEXT_MAX];
	uint64_t left_out = 0;

	event_clean(&e);
	if (news != NULL && !event_history_keep(news, now_ns, worker, &e, &left_out))
		return;
	if (!log_is_on(level))
		return;
	if (left_out > 0)
		log_left_out(level, left_out);
	event_text(&e, text);
	if (log_is_json())
		log_as_json(&e);
	else if (log_is_journal())
		journal_log(&e, text);
	else
		log_msg(level, "%s", text);
}

bool
event_history_next(struct event_history *news, uint64_t after, struct event_record *out)
{
	unsigned i = 0;

	(void)pthread_mutex_lock(&news->lock);
	while (i < news->cnt && news->kept[news->order[i]].nr <= after)
		i++;
	bool found = i < news->cnt;
	if (found)
		*out = news->kept[news->order[i]];
	(void)pthread_mutex_unlock(&news->lock);
	return found;
}

uint64_t
event_history_last(struct event_history *news)
{
	(void)pthread_mutex_lock(&news->lock);
	uint64_t last = news->last;
	(void)pthread_mutex_unlock(&news->lock);
	return last;
}

void
event_history_wake(struct event_history *news, struct mailbox *to)
{
	(void)pthread_mutex_lock(&news->lock);
	news->to = to;
	(void)pthread_mutex_unlock(&news->lock);
}
