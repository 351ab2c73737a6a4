/* Checks: a worker tries a rendezvous and mails the result to main, which answers the waiting client. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/addr.h"
#include "daemon/control/control_parts.h"

#define WORD(constant, word, ...) word,

static const char *const step_words[] = { CHECK_STEPS(WORD) };
static const char *const step_result_words[] = { CHECK_STEP_RESULTS(WORD) };
static const char *const finding_words[] = { CHECK_FINDINGS(WORD) };
static const char *const paths[] = { [CHECK_SMCR] = "smcr", [CHECK_MIDDLE] = "tcp" };

static void
answer_check(struct control_client *c, const struct control_check *k)
{
	struct report_check_step steps[CHECK_STEP_CNT];
	struct report_check_bulk bulk[2 * CHECK_PATH_CNT];
	struct json_writer jw;
	unsigned cnt = 0;

	for (unsigned i = 0; i < CHECK_STEP_CNT; i++) {
		const enum check_step_result result = k->result.steps[i].result;

		steps[i] = (struct report_check_step){ step_words[i], step_result_words[result],
			result == CHECK_STEP_FAILED ? k->result.text : k->result.steps[i].text,
			k->result.steps[i].took_ns };
	}
	for (unsigned i = 0; i < 2 * CHECK_PATH_CNT; i++) {
		const struct check_bulk *b = &k->result.bulk[i / 2];

		if (b->bytes > 0)
			bulk[cnt++] = i % 2 == 0
			    ? (struct report_check_bulk){ paths[i / 2], "out", b->bytes, b->out_ns }
			    : (struct report_check_bulk){ paths[i / 2], "back", b->bytes, b->back_ns };
	}
	const struct report_check row = { k->peer, finding_words[k->result.finding], k->result,
		{ steps, CHECK_STEP_CNT }, { bulk, cnt } };
	report_begin(&jw, &c->out, CONTROL_CHECK, report_wall_ms());
	field_write(&jw, report_data[CONTROL_CHECK], &row);
	if (k->result.group.id != 0)
		field_write(&jw, report_peer_fields, &k->result.group.peer);
	report_end(&jw);
	c->check = NULL;
	client_end_wait(c);
}

static void
end_hold_off(struct worker *w, void *arg)
{
	smcr_end_hold_off(worker_engine(w), arg);
}

/* In the main loop; the client's turn sends the answer. */
static void
on_check_over(struct mail *mail)
{
	struct control_check *k = CONTAINER_OF(mail, struct control_check, mail);
	char key[ADDR_STR_MAX];

	if (k->client != NULL)
		answer_check(k->client, k);
	if (k->ctl != NULL) {
		/* The worker that made the check has ended its hold-off; the others end theirs. */
		if (k->result.possible || k->result.finding == CHECK_SERVER_DOWN)
			workers_call_all(k->ctl->workers, end_hold_off, addr_format_port(&k->peer, key, sizeof(key)));
		k->ctl->check_cnt--;
		list_remove(&k->node);
	}
	free(k);
}

/* In the worker's thread. */
static void
on_check_done(void *arg, const struct check_result *res)
{
	struct control_check *k = arg;

	k->result = *res;
	mailbox_post(k->main, &k->mail);
}

static void
check_worker(struct worker *w, void *arg)
{
	struct control_check *k = arg;
	const struct control_request *req = &k->client->req;

	k->rc = worker_check(w, &k->peer, req->timeout_ms, req->bulk_bytes, on_check_done, k);
}

void
client_check(struct control_client *c)
{
	struct control *ctl = c->ctl;

	if (ctl->check_cnt >= CONTROL_CHECKS_MAX) {
		client_answer_error(c, "busy", "too many checks are running");
		return;
	}
	struct control_check *k = malloc(sizeof(*k));
	if (k != NULL) {
		*k = (struct control_check){
			.mail.fn = on_check_over,
			.main = workers_mailbox(ctl->workers),
			.ctl = ctl,
			.client = c,
			.peer = c->req.peer,
		};
		workers_call(ctl->workers, c->req.worker > 0 ? c->req.worker - 1 : 0, check_worker, k);
	}
	if (k == NULL || k->rc != 0) {
		client_answer_error(c, "failed", strerror(k != NULL ? -k->rc : ENOMEM));
		free(k);
		return;
	}
	list_push(&ctl->checks, &k->node);
	ctl->check_cnt++;
	c->check = k;
	c->state = CLIENT_WAITING;
}
