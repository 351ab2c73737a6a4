/* What is going on, counted over all workers. */
#include "daemon/process/load_summary.h"

#include "fake_workers.h"
#include "smcr/smcr.h"
#include "unit.h"

/* Stand-ins ignore most of what they are given. */
#pragma GCC diagnostic ignored "-Wunused-parameter"

/* -- the workers: of the first nothing has ended, and it has one link group; the others have more of each -- */

static unsigned asked;

void
worker_stats(const struct worker *w, struct worker_stats *out)
{
	*out = (struct worker_stats){ .sessions_opened = UINT64_C(10000000000) * (asked + 1),
		.sessions_closed = 3 * (uint64_t)asked };
	asked++;
}

struct smcr *
worker_engine(struct worker *w)
{
	return NULL;
}

bool
smcr_group_next(const struct smcr *eng, uint32_t *pos, struct smcr_group_info *info)
{
	return (*pos)++ < asked;
}

/* -- one connection -- */

static struct session_info connection;
static struct smcr_conn_info engine_part;

bool
worker_session_next(const struct worker *w, uint32_t *pos, struct session_info *info)
{
	*info = connection;
	return (*pos)++ == 0;
}

void
smcr_conn_info(const struct smcr_conn *conn, struct smcr_conn_info *info)
{
	*info = engine_part;
}

static bool
expects(struct session_info s, struct smcr_conn_info c)
{
	struct workers *ws = fake_workers_new(NULL, NULL, 1);

	connection = s;
	engine_part = c;
	const bool is = load_expects_link(ws);
	fake_workers_free(ws);
	return is;
}

static struct load_summary
load_summary_of(unsigned workers)
{
	struct workers *ws = fake_workers_new(NULL, NULL, workers);
	struct load_summary c;

	asked = 0;
	c = load_summary_take(ws);
	fake_workers_free(ws);
	return c;
}

START_TEST(all_workers_count)
{
	struct load_summary c = load_summary_of(1);

	ck_assert_uint_eq(c.connections, 10000000000);
	ck_assert_uint_eq(c.groups, 1);
	c = load_summary_of(3);
	ck_assert_uint_eq(c.connections, 60000000000 - 3 - 6);
	ck_assert_uint_eq(c.groups, 1 + 2 + 3);
}

START_TEST(what_a_link_may_come_for)
{
	struct smcr_conn *conn = (struct smcr_conn *)&connection; /* not looked into */
	const struct session_info young = {
		.kind = CONFIG_EGRESS, .age_ns = 49 * NS_PER_MS, .conn = conn, .proven = ""
	};
	struct session_info s = young;

	ck_assert(expects(s, (struct smcr_conn_info){ 0 }));
	s.conn = NULL;
	ck_assert(expects(s, (struct smcr_conn_info){ 0 }));
	s.age_ns = 51 * NS_PER_MS;
	ck_assert(!expects(s, (struct smcr_conn_info){ .group_id = 1 }));
	s.conn = conn;
	ck_assert(!expects(s, (struct smcr_conn_info){ 0 }));
	ck_assert(expects(s, (struct smcr_conn_info){ .group_id = 1 }));
	ck_assert(!expects(s, (struct smcr_conn_info){ .group_id = 1, .over_link = true }));
	s.age_ns = 301 * NS_PER_MS;
	ck_assert(!expects(s, (struct smcr_conn_info){ .group_id = 1 }));
	s = (struct session_info){ .kind = CONFIG_EGRESS, .age_ns = 299 * NS_PER_MS, .proven = "psk:gw-a" };
	ck_assert(expects(s, (struct smcr_conn_info){ 0 }));
	s.proven = "";
	ck_assert(!expects(s, (struct smcr_conn_info){ 0 }));
	s = young;
	s.kind = CONFIG_INGRESS;
	ck_assert(!expects(s, (struct smcr_conn_info){ 0 }));
	s = young;
	s.mode = SESSION_SMCR;
	ck_assert(!expects(s, (struct smcr_conn_info){ 0 }));
}
