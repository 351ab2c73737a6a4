/* Conditions that hold all the time; see watch.h. */
#include "tests/scenario/watch.h"

#include "smcr/state/lgr.h"

#include "base/list.h"

#define SAMPLE_NS (500 * MS)
#define PATIENCE_NS (5 * SEC)
#define PATIENCE_FAULTY_NS \
	(40 * SEC) /* a link that is dead has to be noticed first, and a frozen device to come back */

void
watch_groups(const struct host *h)
{
	struct smcr_group_info g;

	if (h->ended)
		return;
	for (uint32_t pos = 0; smcr_group_next(h->eng, &pos, &g);)
		/* The server decides; a client may still have connections that the server is through with. It refuses the
		 * OPEN of one too many by a connection that only says so. */
		if (g.role == SMCR_SERVER && g.conn_cnt > h->plan->conns_per_group + GRANTS_MAX)
			world_fail(h->w, "host%u: group %u has %u connections, %u are allowed", h->nr, g.id, g.conn_cnt,
			    h->plan->conns_per_group);
}

/* `from` has data that it does not send though `to` has consumed everything before it. */
static bool
waits(const struct flow_half *from, const struct flow_half *to, uint64_t *sent)
{
	struct smcr_conn_info a, b;

	if (from->conn == NULL || to->conn == NULL || !from->established || !to->established)
		return false;
	smcr_conn_info(from->conn, &a);
	smcr_conn_info(to->conn, &b);
	*sent = a.tx_sent;
	return a.tx_written > a.tx_sent && b.rx_consumed == a.tx_sent;
}

static void
look(const struct watch *w, struct flow *f, int i)
{
	struct flow_half *h = &f->half[i];
	int64_t patience = plan_faulty(w->plan) ? PATIENCE_FAULTY_NS + w->plan->last_link_ms * MS : PATIENCE_NS;
	uint64_t sent = 0;

	if (f->hostile || !waits(h, &f->half[1 - i], &sent) || h->waits_ns == 0 || h->waits_at != sent) {
		h->waits_ns = w->w->now_ns;
		h->waits_at = sent;
	} else if (w->w->now_ns - h->waits_ns > patience) {
		world_fail(w->w, "flow %u %s: writer waits at byte %llu though the peer has consumed all before it",
		    f->nr, i == 0 ? "ingress" : "egress", (unsigned long long)sent);
		h->waits_ns = w->w->now_ns;
	}
}

static void
sample(struct timer *t)
{
	struct watch *w = CONTAINER_OF(t, struct watch, timer);

	for (unsigned i = 0; i < w->flow_cnt; i++) {
		look(w, &w->flows[i], 0);
		look(w, &w->flows[i], 1);
	}
	for (unsigned i = 0; i < w->plan->hosts; i++)
		watch_groups(&w->hosts[i]);
	world_arm(w->w, t, w->w->now_ns + SAMPLE_NS);
}

void
watch_start(struct watch *w, struct world *world, const struct plan *p, const struct host *hosts, struct flow *flows,
    unsigned cnt)
{
	*w = (struct watch){ .w = world, .plan = p, .hosts = hosts, .flows = flows, .flow_cnt = cnt };
	world_timer_init(world, &w->timer, sample);
	world_arm(world, &w->timer, SAMPLE_NS);
}

void
watch_stop(struct watch *w)
{
	world_timer_fini(w->w, &w->timer);
}
