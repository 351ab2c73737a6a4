/* Requests for a link, because of a new device or a lost link. A server then offers one (llc_add.c). A client reports a
 * spare device, by ADD LINK (RFC 7609 3.5.5.1.2) or, in version 2, by REQUEST ADD LINK, which requires a response. */
#include <string.h>

#include "base/minmax.h"
#include "smcr/group/llc_impl.h"

#define FYI_EVERY_NS (1000 * MS)
_Static_assert(LLC_MAX_GIDS <= CLC_MAX_GIDS, "those of REQUEST ADD LINK fit where those of a Proposal are kept");

void
llc_want_link(struct lgr *lgr)
{
	lgr->want_link = true;
	mark_exchanges(lgr);
}

void
llc_device_appeared(struct lgr *lgr)
{
	if (lgr->state == LGR_ACTIVE && lgr->links_limit > 1)
		llc_want_link(lgr);
}

void
llc_ask_now(struct lgr *lgr)
{
	timer_cancel(&lgr->eng->timers, &lgr->add_retry);
	lgr->add_retry_ms = 0;
	llc_device_appeared(lgr);
}

void
llc_ask_later(struct lgr *lgr)
{
	const struct smcr_config *cfg = &lgr->eng->cfg;

	lgr->add_retry_ms = lgr->add_retry_ms == 0 ? cfg->add_link_retry_ms : lgr->add_retry_ms * 2;
	lgr->add_retry_ms = min_u32(lgr->add_retry_ms, cfg->add_link_retry_max_ms);
	if (lgr->state != LGR_DEAD && lgr->links_limit > 1)
		engine_arm(lgr->eng, &lgr->add_retry, lgr->add_retry_ms);
}

/* An active link was lost unintentionally. A server replaces it at once. So does Linux as a server, but only once
 * (smc_llc_add_link_local), which fails while the path is broken: then the client requests one until it has it. */
void
llc_link_missed(struct lgr *lgr)
{
	if (lgr->role == SMCR_SERVER)
		llc_want_link(lgr);
	else if (!timer_armed(&lgr->add_retry))
		llc_ask_later(lgr);
}

void
llc_add_retry_fired(struct timer *t)
{
	struct lgr *lgr = CONTAINER_OF(t, struct lgr, add_retry);
	const struct link *over = topology_link_to_ask_over(lgr);

	lgr->eng->ctr.add_link_retries++;
	/* While the peer accepts nothing, a client's requests would only fill the queue. */
	if (lgr->role == SMCR_CLIENT && over != NULL && over->llc_cnt > 0)
		llc_ask_later(lgr);
	else
		llc_device_appeared(lgr);
}

/* A client needs a spare device. A server keeps offering a device with a link (3.5.1.6): a client that rejected that
 * has no other device, and reports one when it gets it. */
int64_t
llc_add_retry_ns(const struct lgr *lgr)
{
	bool hopeless = lgr->role == SMCR_CLIENT ? topology_spare_device(lgr) == NULL
	                                         : lgr->add_rejected && !topology_can_add(lgr);

	return timer_armed(&lgr->add_retry) && !hopeless ? lgr->add_retry.at_ns - lgr->eng->now_ns : -1;
}

/* Client: reports a spare device (3.5.5.1.2). The server may ignore it, so it is repeated until no device is spare. */
void
llc_tell_of_device(struct lgr *lgr)
{
	struct link *over = topology_link_to_ask_over(lgr);
	struct rnic_dev *dev = topology_spare_device(lgr);

	if (dev == NULL || over == NULL)
		return;
	if (!timer_armed(&lgr->add_retry))
		llc_ask_later(lgr);
	if (lgr->version == LLC_VERSION_2) {
		uint8_t gids[LLC_MAX_GIDS * 16];
		struct llc_msg req = { .type = LLC_REQUEST_ADD_LINK, .request_add_link.gids = gids };

		req.request_add_link.gid_cnt = topology_gids(lgr, gids);
		(void)link_send_llc(over, &req);
		return;
	}
	struct rnic_info info = rnic_query(dev);
	struct llc_msg msg = { .type = LLC_ADD_LINK, .add_link.mtu_code = info.mtu_code };
	memcpy(msg.add_link.mac, info.mac, sizeof(info.mac));
	memcpy(msg.add_link.gid, info.gid.b, sizeof(info.gid.b));
	(void)link_send_llc(over, &msg);
}

/* Linux delays its RKEY exchanges until it has an ADD LINK or a response, without limit (smc_llc_flow_initiate). */
void
llc_answer_asked(struct lgr *lgr)
{
	struct llc_msg rsp = { .type = LLC_REQUEST_ADD_LINK, .response = true };
	struct link *over = lgr->asked_over != 0 ? lgr_link_by_number(lgr, lgr->asked_over) : NULL;

	if (lgr->asked_over != 0 && (over == NULL || over->state != LINK_ACTIVE))
		over = lgr_pick_link(lgr); /* that one has ended, and the peer still waits */
	lgr->asked_over = 0;
	if (over != NULL)
		(void)link_send_llc(over, &rsp);
}

/* Server: the client has reported a device. Each offer costs a queue pair: at intervals it is made at once, and
 * otherwise the scheduled retry moves closer. The interval after a rejection is kept. */
void
llc_add_link_fyi(struct link *link, const struct llc_msg *msg)
{
	struct lgr *lgr = link->lgr;

	lgr->add_rejected = false; /* it lacked a device that is present now */
	if (msg->type == LLC_REQUEST_ADD_LINK) {
		lgr->terms.peer_gid_cnt = msg->request_add_link.gid_cnt;
		memcpy(lgr->terms.peer_gids, msg->request_add_link.gids,
		    lgr->terms.peer_gid_cnt * sizeof(lgr->terms.peer_gids[0]));
		lgr->asked_over = link->number;
	}
	if (lgr->eng->now_ns >= lgr->fyi_due_ns) {
		lgr->fyi_due_ns = lgr->eng->now_ns + FYI_EVERY_NS;
		llc_want_link(lgr);
		return;
	}
	lgr->eng->ctr.llc_limited++;
	llc_answer_asked(lgr);
	if (timer_armed(&lgr->add_retry) && lgr->add_retry.at_ns <= lgr->fyi_due_ns)
		return;
	timer_arm(&lgr->eng->timers, &lgr->add_retry, lgr->fyi_due_ns);
	lgr->fyi_due_ns += FYI_EVERY_NS;
}
