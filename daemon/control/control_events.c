/* Events for control clients: the kept ones (event_history.h), a line each, and new ones for a client that follows. A client has a
 * position in the history, and reads on in its turn while its buffer has space: no event waits for it, and those overwritten before are
 * counted as dropped. */
#include <string.h>

#include "daemon/control/control_parts.h"

static bool
wants_event(const struct control_request *want, const struct event *e)
{
	return (want->event_kinds & 1u << e->kind) != 0 && (want->group == 0 || want->group == e->group) &&
	    (want->service[0] == '\0' || strcmp(want->service, e->service) == 0);
}

/* One line; the end has no event of its own. */
static void
write_line(struct control_client *c, const struct event_record *r)
{
	const bool change = r->nr != 0;
	char text[EVENT_TEXT_MAX] = "";
	struct json_writer jw;

	client_begin_line(c, &jw, change ? "change" : "end", change ? r->time_us : report_wall_us());
	jw_uint(&jw, "number", r->nr);
	jw_string(&jw, "kind", change ? event_kinds[r->event.kind].word : "");
	jw_string(&jw, "level", change ? control_level_words[event_kinds[r->event.kind].level] : "");
	jw_uint(&jw, "left_out", r->left_out);
	jw_uint(&jw, "worker", r->worker);
	for (unsigned i = 0; i < EVENT_FIELD_CNT; i++) {
		const struct event_field *f = &event_fields[i];

		if (f->cap > 0)
			jw_string(&jw, f->key, event_value(&r->event, f, NULL));
		else
			jw_uint(&jw, f->key, event_number(&r->event, f));
	}
	jw_string(&jw, "text", change ? event_text(&r->event, text) : "");
	jw_object_end(&jw);
	jw_end(&jw);
}

enum client_step
control_events_step(struct control_client *c, unsigned *budget)
{
	struct event_record r;

	while (outbuf_room(&c->out) >= CONTROL_TRACE_BYTES) {
		if (*budget == 0)
			return STEP_BUDGET;
		--*budget;
		if ((c->req.follow || c->event_nr < c->event_until) &&
		    event_history_next(c->ctl->hooks.news, c->event_nr, &r)) {
			c->dropped += r.nr - c->event_nr - 1;
			c->event_nr = r.nr;
			if (wants_event(&c->req, &r.event))
				write_line(c, &r);
		} else if (c->req.follow) {
			return STEP_BLOCKED;
		} else {
			write_line(c, &(struct event_record){ 0 });
			c->state = CLIENT_READING;
			return STEP_MOVED;
		}
	}
	return STEP_BLOCKED;
}

void
control_start_events(struct control_client *c)
{
	struct event_history *news = c->ctl->hooks.news;

	if (news == NULL) {
		client_answer_error(c, "failed", "no events are kept");
		return;
	}
	if (c->req.follow && !control_make_trace_place(c)) {
		client_answer_error(c, "busy", "too many traces");
		return;
	}
	if (c->req.follow) {
		event_history_wake(news, workers_mailbox(c->ctl->workers));
		c->ctl->events_followed = true;
	}
	c->event_until = event_history_last(news);
	c->event_nr = 0;
	c->trace_nr = ++c->ctl->traces_begun;
	report_answer(&c->out, CONTROL_EVENTS, NULL);
	c->state = CLIENT_EVENTS;
}

void
control_update_events(struct control *ctl)
{
	if (!ctl->events_followed)
		return;
	LIST_EACH(const struct control_client, c, &ctl->clients, node)
		if (c->state == CLIENT_EVENTS && c->req.follow)
			return;
	event_history_wake(ctl->hooks.news, NULL);
	ctl->events_followed = false;
}
