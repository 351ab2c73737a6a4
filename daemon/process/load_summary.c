/* See process/load_summary.h. */
#include "daemon/process/load_summary.h"

#include "smcr/smcr.h"

/* Up to these ages a link may come. A connection gets its group when its server leg is there; then a path may be slow. One whose
 * peer has proven its name is no stranger's, and has spent a round trip on TLS. */
#define AT_ALL_NS 50000000
#define IN_GROUP_NS 300000000

static void
count_one(struct worker *w, void *arg)
{
	struct load_summary *c = arg;
	struct smcr_group_info group;
	struct worker_stats ws;

	worker_stats(w, &ws);
	c->connections += ws.sessions_opened - ws.sessions_closed;
	for (uint32_t pos = 0; smcr_group_next(worker_engine(w), &pos, &group);)
		c->groups++;
}

struct load_summary
load_summary_take(struct workers *ws)
{
	struct load_summary c = { 0 };

	workers_call_all(ws, count_one, &c);
	return c;
}

static void
look_for_link(struct worker *w, void *arg)
{
	bool *expected = arg;
	struct session_info s;

	for (uint32_t pos = 0; !*expected && worker_session_next(w, &pos, &s);) {
		struct smcr_conn_info c = { 0 };

		if (s.kind != CONFIG_EGRESS || s.mode != SESSION_SETUP)
			continue;
		if (s.conn != NULL)
			smcr_conn_info(s.conn, &c);
		*expected = !c.over_link &&
		    s.age_ns < (c.group_id != 0 || s.proven[0] != '\0' ? IN_GROUP_NS : AT_ALL_NS);
	}
}

bool
load_expects_link(struct workers *ws)
{
	bool expected = false;

	workers_call_all(ws, look_for_link, &expected);
	return expected;
}
