/* Send queue of a link: the device gets requests in order, one behind, so a burst ends signaled. */
#include "smcr/data/link_post.h"

#include <errno.h>
#include <string.h>

#include "base/minmax.h"

struct rnic_credits
link_credits(const struct link *link)
{
	struct rnic_credits room = { 0 };

	if (!link_is_usable(link))
		return room;
	link->dev->ops->credits(link->qp, &room);
	/* The held request takes its entry only when posted. */
	if (link->has_held) {
		room.wrs -= room.wrs > 0;
		if (link->held.op == RNIC_WR_SEND)
			room.sends -= room.sends > 0;
	}
	room.wrs = min_u32(room.wrs, link->wr_cap - link_outstanding(link));
	room.sends = min_u32(room.sends, room.wrs);
	return room;
}

static int
post_held(struct link *link, bool signaled)
{
	if (!link->has_held)
		return 0;
	if (signaled)
		link->held.flags |= RNIC_SIGNALED;
	int err = link->dev->ops->post_send(link->qp, &link->held);
	if (err < 0)
		return err;
	link->has_held = false;
	link->unsignaled = signaled ? 0 : link->unsignaled + 1;
	return 0;
}

int
link_post(struct link *link, const struct rnic_send_wr *wr, const uint8_t *msg, const struct link_wr *what)
{
	if (!link_is_usable(link))
		return -ENOTCONN;
	if (link_outstanding(link) == link->wr_cap)
		return -ENOBUFS;
	int err = post_held(link, link->unsignaled + 1 >= LINK_SIGNAL_EVERY);
	if (err < 0)
		return err;
	if (msg != NULL) {
		memcpy(link->held_msg, msg, LINK_MSG_LEN);
		link->held = (struct rnic_send_wr){ .op = RNIC_WR_SEND,
			.flags = RNIC_INLINE | RNIC_SOLICITED,
			.sge_cnt = 1,
			.sge = { { .ptr = link->held_msg, .len = LINK_MSG_LEN } } };
	} else {
		link->held = *wr;
	}
	link->held.wr_id = link->wr_head;
	link->wr[link->wr_head % link->wr_cap] = *what;
	link->wr_head++;
	link->has_held = true;
	return 0;
}

void
link_post_end(struct link *link)
{
	if (link_is_usable(link))
		(void)post_held(link, true); /* full: the next flush retries; broken: the device reports it */
}
