/* Checks: one worker tries a rendezvous, its mail to main brings the result, and the client that waits gets it as its answer. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/addr.h"
#include "daemon/control/control_parts.h"

#define WORD(constant, word) word,

static const char *const step_words[] = { CHECK_STEPS(WORD) };
static const char *const step_result_words[] = { CHECK_STEP_RESULTS(WORD) };
static const char *const finding_words[] = { CHECK_FINDINGS(WORD) };

static void
write_steps(struct json_writer *jw, const struct check_result *res)
{
	jw_array(jw, "steps");
	for (unsigned i = 0; i < CHECK_STEP_CNT; i++) {
		enum check_step_result result = res->steps[i].result;
		const char *text = res->steps[i].text != NULL ? res->steps[i].text : "";

		jw_object(jw, NULL);
		jw_string(jw, "step", step_words[i]);
		jw_string(jw, "result", step_result_words[result]);
		jw_int(jw, "took_us", res->steps[i].took_ns / 1000);
		jw_string(jw, "text", result == CHECK_STEP_FAILED ? res->text : text);
		jw_object_end(jw);
	}
	jw_array_end(jw);
}

/* Four rows, or none. */
static void
write_bulk(struct json_writer *jw, const struct check_result *res)
{
	static const char *const paths[] = { [CHECK_SMCR] = "smcr", [CHECK_MIDDLE] = "tcp" };

	jw_array(jw, "bulk");
	for (unsigned i = 0; i < 2 * CHECK_PATH_CNT; i++) {
		const struct check_bulk *b = &res->bulk[i / 2];

		if (b->bytes == 0)
			continue;
		jw_object(jw, NULL);
		jw_string(jw, "path", paths[i / 2]);
		jw_string(jw, "direction", i % 2 == 0 ? "out" : "back");
		jw_uint(jw, "bytes", b->bytes);
		jw_int(jw, "took_us", (i % 2 == 0 ? b->out_ns : b->back_ns) / 1000);
		jw_object_end(jw);
	}
	jw_array_end(jw);
	jw_string(jw, "bulk_text", res->bulk_text != NULL ? res->bulk_text : "");
}

static void
answer_check(struct control_client *c, const struct control_check *k)
{
	const struct check_result *res = &k->result;
	struct json_writer jw;

	report_begin(&jw, &c->out, CONTROL_CHECK, report_wall_ms());
	report_sockaddr(&jw, "peer", &k->peer);
	jw_bool(&jw, "possible", res->possible);
	jw_string(&jw, "finding", finding_words[res->finding]);
	jw_string(&jw, "text", res->text);
	jw_int(&jw, "took_us", res->took_ns / 1000);
	report_ms(&jw, "held_off_ms", res->held_off_ns);
	write_steps(&jw, res);
	write_bulk(&jw, res);
	report_reason(&jw, "reason", &res->diag);
	if (res->group.id != 0)
		report_peer(&jw, &res->group.peer);
	report_end(&jw);
	c->check = NULL;
	client_end_wait(c);
}

static void
end_hold_off(struct worker *w, void *arg)
{
	smcr_end_hold_off(worker_engine(w), arg);
}

/* The worker that tried it has no hold-off any more; nor need the others have one. */
static void
end_hold_offs(const struct control_check *k)
{
	char key[ADDR_STR_MAX];

	addr_format_port(&k->peer, key, sizeof(key));
	for (unsigned i = 0; i < workers_cnt(k->ctl->workers); i++)
		workers_call(k->ctl->workers, i, end_hold_off, key);
}

/* In the main loop; the client's own turn sends the answer. */
static void
on_check_over(struct mail *mail)
{
	struct control_check *k = CONTAINER_OF(mail, struct control_check, mail);

	if (k->ctl != NULL && k->result.possible)
		end_hold_offs(k);
	if (k->client != NULL)
		answer_check(k->client, k);
	if (k->ctl != NULL) {
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

struct check_order {
	struct control_check *check;
	uint32_t timeout_ms;
	uint64_t bulk;
	int rc;
};

static void
check_worker(struct worker *w, void *arg)
{
	struct check_order *o = arg;

	o->rc = worker_check(w, &o->check->peer, o->timeout_ms, o->bulk, on_check_done, o->check);
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
	struct check_order o = {
		.check = k, .timeout_ms = c->req.timeout_ms, .bulk = c->req.bulk_bytes, .rc = -ENOMEM
	};
	if (k != NULL) {
		*k = (struct control_check){
			.mail.fn = on_check_over,
			.main = workers_mailbox(ctl->workers),
			.ctl = ctl,
			.client = c,
			.peer = c->req.peer,
		};
		workers_call(ctl->workers, c->req.worker > 0 ? c->req.worker - 1 : 0, check_worker, &o);
	}
	if (o.rc != 0) {
		free(k);
		client_answer_error(c, "failed", strerror(-o.rc));
		return;
	}
	list_push(&ctl->checks, &k->node);
	ctl->check_cnt++;
	c->check = k;
	c->state = CLIENT_WAITING;
}
