/* TEST LINK checks links (RFC 7609 4.5.3), including those without connections. A link is suspect when it is silent
 * beyond the response limit: TEST LINK is not answered, or the device reports silence. It is lost as soon as another
 * link of the group answers a test, as its connections move there. Before that nothing would be gained: the peer or the
 * network may be suspended, and TCP would continue. So it is kept for last_link_ms, whatever the peer sends: TCP as well
 * counts from the first unacknowledged byte. An answered test shows that both ends receive on that link, so they cannot
 * each drop the link that the other one keeps. */
#include <string.h>

#include "base/minmax.h"
#include "smcr/group/llc_impl.h"

static void
send_test(struct link *link)
{
	struct smcr *eng = link->lgr->eng;
	struct llc_msg msg = { .type = LLC_TEST_LINK };

	eng->rng->fill(eng->rng, link->test_data, sizeof(link->test_data));
	memcpy(msg.test_link.user_data, link->test_data, sizeof(link->test_data));
	if (link_send_llc(link, &msg) < 0) {
		link_lost(link, "TEST LINK could not be sent");
		return;
	}
	eng->ctr.test_links++;
	link->test_pending = true;
	link->test_sent_ns = eng->now_ns;
	engine_arm(eng, &link->keepalive, eng->cfg.keepalive_answer_ms);
}

void
llc_test_now(struct link *link)
{
	link->ack_wanted = false;
	link->denies = true;
	if (link->test_pending)
		link->test_again = true; /* its response does not cover later sends */
	else
		send_test(link);
}

uint8_t
smcr_test_link(struct smcr *eng, uint32_t group_id)
{
	struct lgr *lgr = lgr_find(eng, group_id);
	struct link *link = lgr != NULL ? LGR_FIND_LINK(l, lgr, l->state == LINK_ACTIVE) : NULL;

	if (link == NULL)
		return 0;
	if (!link->test_pending)
		send_test(link);
	return link_has_ended(link) ? 0 : link->number;
}

/* C.7.1 takes a missing response as the loss of the link. But Linux drops a request that collides with its own
 * exchange, and the link may be the last one. So the link is tested, and the request repeated. */
void
llc_ask_alive(struct link *link, const char *what)
{
	if (link_has_ended(link))
		return;
	link->doubt = what;
	if (!link->test_pending)
		send_test(link);
}

/* -- suspect links -- */

/* Ends a suspect link, or rechecks it after the response limit unless the peer does not know it. */
static void
judge(struct link *link)
{
	struct smcr *eng = link->lgr->eng;
	int64_t until_ns = link->suspect_ns + eng->cfg.last_link_ms * MS;
	bool another_answers = LGR_ANY_LINK(l, link->lgr,
	    l != link && l->state == LINK_ACTIVE && l->suspect == NULL && l->proven_ns >= link->suspect_ns);

	if (another_answers || link->is_suspect || until_ns <= eng->now_ns)
		link_lost(link, link->suspect);
	else
		timer_arm(
		    &eng->timers, &link->keepalive, min_i64(until_ns, eng->now_ns + eng->cfg.keepalive_answer_ms * MS));
}

void
llc_suspect(struct link *link, const char *why)
{
	struct lgr *lgr = link->lgr;

	if (link_has_ended(link))
		return;
	if (link->state != LINK_ACTIVE || lgr->state == LGR_FORMING) {
		link->silent = true;
		link_lost(link, why);
		return;
	}
	if (link->suspect == NULL) {
		link->suspect = why;
		link->suspect_ns = lgr->eng->now_ns;
	} else if (!link->told_silent) { /* the others had their time to answer */
		engine_log(SMCR_LOG_LINK_SILENT, lgr, link, lgr->eng->cfg.last_link_ms, link->suspect);
		link->told_silent = true;
	}
	LGR_EACH_LINK(l, lgr)
		if (l->state == LINK_ACTIVE && !l->test_pending)
			send_test(l);
	if (link->state == LINK_ACTIVE)
		judge(link);
}

void
llc_link_proven(struct link *link)
{
	struct smcr *eng = link->lgr->eng;
	bool was_suspect = link->suspect != NULL;

	link->proven_ns = eng->now_ns;
	link->suspect = NULL;
	if (link->told_silent)
		engine_log(
		    SMCR_LOG_LINK_ANSWERS, link->lgr, link, (uint64_t)(eng->now_ns - link->suspect_ns) / MS, NULL);
	link->told_silent = false;
	if (was_suspect)
		mark_exchanges(link->lgr); /* they have waited */
	LGR_EACH_LINK(l, link->lgr) {
		if (l->state != LINK_ACTIVE || l->suspect == NULL)
			continue;
		/* The cause may have ended for both: the other link gets the response limit. */
		if (was_suspect)
			engine_arm(eng, &l->keepalive, eng->cfg.keepalive_answer_ms);
		else
			judge(l);
	}
}

/* A connection is idle at least as long as its link, and a test needs both above the interval: the link decides. */
void
llc_keepalive_fired(struct timer *t)
{
	struct link *link = CONTAINER_OF(t, struct link, keepalive);
	struct smcr *eng = link->lgr->eng;
	int64_t due = link->last_rx_ns + eng->cfg.keepalive_ms * MS;

	if (link->test_pending)
		llc_suspect(link, link->doubt != NULL ? link->doubt : "TEST LINK without an answer");
	else if (due > eng->now_ns)
		timer_arm(&eng->timers, t, due);
	else
		send_test(link);
}

void
llc_keepalive_arm(struct link *link)
{
	struct smcr *eng = link->lgr->eng;

	if (link->test_pending)
		return; /* the response limit runs */
	if (eng->cfg.keepalive_ms > 0)
		engine_arm(eng, &link->keepalive, eng->cfg.keepalive_ms);
	else
		timer_cancel(&eng->timers, &link->keepalive);
}

void
llc_test_link_req(struct link *link, const struct llc_msg *msg)
{
	struct llc_msg rsp = *msg;

	rsp.response = true;
	(void)link_send_llc(link, &rsp);
}

void
llc_test_link_rsp(struct link *link, const struct llc_msg *msg)
{
	if (!link->test_pending) {
		llc_protocol_error(link, "unexpected TEST LINK response");
		return;
	}
	if (memcmp(msg->test_link.user_data, link->test_data, sizeof(link->test_data)) != 0) {
		llc_protocol_error(link, "TEST LINK response with other data");
		return;
	}
	link->test_pending = false;
	link->doubt = NULL;
	link->rtt_ns = link->lgr->eng->now_ns - link->test_sent_ns;
	llc_keepalive_arm(link);
	llc_link_proven(link);
	if (link->test_again) {
		link->test_again = false;
		send_test(link);
		return;
	}
	/* Sent after the abandoned requests: responses not received before this never come. */
	link->owed_deletes = 0;
	if (link->ack_wanted)
		return;
	link->is_suspect = false;
	if (link->denies) {
		link->denies = false;
		rmb_allow_all(link->lgr, link);
	}
}
