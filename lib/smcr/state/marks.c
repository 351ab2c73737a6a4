/* Marks of a lower room for a higher one; see marks.h. */
#include "smcr/state/marks.h"

#include "smcr/state/engine.h"
#include "smcr/state/lgr.h"

struct lgr_marks *
mark_lgr(struct lgr *lgr)
{
	if (list_empty(&lgr->marks.node))
		list_push(&lgr->eng->marked_lgrs, &lgr->marks.node);
	return &lgr->marks;
}

void
mark_exchanges(struct lgr *lgr)
{
	if (list_empty(&lgr->marks.turn_node))
		list_push(&lgr->eng->waiting_lgrs, &lgr->marks.turn_node);
}

void
mark_link_lost(struct link *link)
{
	link->loss_marked = true;
	mark_lgr(link->lgr)->links = true;
}

void
mark_link_failed(struct link *link, const char *why)
{
	if (link->failed == NULL)
		link->failed = why;
	link->lgr->eng->links_failed = true;
}

void
link_schedule(struct link *link)
{
	if (list_empty(&link->eng_node))
		list_push(&link->lgr->eng->busy_links, &link->eng_node);
}

void
link_request_ack(struct link *link)
{
	link->ack_wanted = true;
	link_schedule(link);
}

void
mark_contact(struct lgr *lgr, enum contact_mark mark, uint32_t diag, enum smcr_reason reason, const char *why)
{
	struct lgr_marks *m = mark_lgr(lgr);

	if (m->contact != CONTACT_GOES_ON && mark != CONTACT_BROKEN)
		return;
	m->contact = mark;
	m->diag = diag;
	m->reason = reason;
	m->why = why;
}

void
mark_conn_end(struct smcr *eng, struct conn_mark *m, bool at_once, enum smcr_reason reason, const char *why)
{
	if (!list_empty(&m->node))
		return;
	list_push(&eng->marked_conns, &m->node);
	m->at_once = at_once;
	m->reason = reason;
	m->why = why;
}
