/* OPENs and GRANTs with wrong fields, at wrong times, in wrong places, too often (doc/open.md). */
#include "duo.h"
#include "unit.h"

#include "smcr/data/grant.h"
#include "smcr/group/llc.h"
#include "wire/llc.h"

UNIT_CASE(duo_case(tc, 3000));

#define TICKET 77

static void
begin(const struct smcr_config *change)
{
	struct smcr_config cfg = { 0 };

	if (change != NULL)
		cfg = *change;
	cfg.keepalive_ms = 30000;
	duo_init(true, true, &cfg);
	d.ticket = TICKET;
	duo_connect(0, 2, 100);
}

static void
inject_raw(struct link *link, const uint8_t buf[OPEN_LEN])
{
	llc_recv(link, buf, OPEN_LEN);
	engine_act_on_marks(link->lgr->eng);
}

static void
inject(struct link *link, const struct open_msg *m)
{
	uint8_t buf[OPEN_LEN];

	ck_assert_int_eq(open_encode(m, buf, sizeof(buf)), OPEN_LEN);
	inject_raw(link, buf);
}

/* Element idx of the RMB that the peer of this host named for its first connection. */
static struct open_elem
elem_for(unsigned host, uint8_t idx)
{
	const struct smcr_conn *conn = host == A ? c[0].conn : s[0].conn;
	const struct rtoken *rt = &conn->peer_rmb->on[duo_link(host)->slot];

	return (struct open_elem){ .token = 0x1000u + idx,
		.rkey = rt->rkey,
		.vaddr = rt->addr,
		.idx = idx,
		.size_code = (uint8_t)clc_size_code(conn->peer_elem_size) };
}

/* A good OPEN for what the client was granted last. */
static struct open_msg
good_open(uint8_t idx)
{
	const struct lgr *lgr = duo_lgr(A);

	return (struct open_msg){ .type = OPEN_CONN,
		.cnt = 3,
		.granted_token = lgr->grants[lgr->grant_cnt - 1].token,
		.ticket = TICKET,
		.own = elem_for(B, idx) };
}

static void
nothing_came_of_it(unsigned pair)
{
	duo_run(20);
	ck_assert_ptr_null(s[pair].conn);
	duo_bystander_is_well();
}

/* -- OPENs -- */

START_TEST(the_good_one_that_the_others_differ_from)
{
	begin(NULL);
	d.next_opened = 5;
	struct open_msg open = good_open(50);
	inject(duo_link(B), &open);
	duo_run(20);
	ck_assert(IS(s[5], PROPOSAL) && IS(s[5], ESTABLISHED));
	ck_assert_uint_eq(d.eng[B]->ctr.opened_server, 1);
	duo_bystander_is_well();
}

enum { NO_TICKET, OTHER_TICKET, OLD_TICKET, TICKETS };

START_LOOP_TEST(an_open_without_a_valid_ticket_is_refused, 0, TICKETS)
{
	begin(NULL);
	d.next_opened = 5;
	if (_i == OLD_TICKET) {
		d.now_ns += 361 * 1000 * DUO_MS;
		duo_run(1);
	}
	struct open_msg open = good_open(50);
	open.ticket = _i == NO_TICKET ? 0 : _i == OTHER_TICKET ? TICKET + 1 : TICKET;
	inject(duo_link(B), &open);
	nothing_came_of_it(5);
	ck_assert_uint_eq(d.eng[B]->ctr.not_opened_server, 1);
	/* The element is used up. */
	inject(duo_link(B), &open);
	ck_assert_uint_eq(d.eng[B]->ctr.llc_ignored, 1);
}

/* A client within its five minutes, a server within its six. */
START_TEST(a_ticket_is_valid_for_six_minutes)
{
	begin(NULL);
	d.next_opened = 5;
	d.now_ns += 359 * 1000 * DUO_MS;
	duo_run(1);
	struct open_msg open = good_open(50);
	inject(duo_link(B), &open);
	duo_run(20);
	ck_assert(IS(s[5], ESTABLISHED));
}

enum { OTHER_RKEY, OTHER_ADDRESS, OTHER_SIZE, ELEMS };

static void
spoil(struct open_elem *e, int how)
{
	if (how == OTHER_RKEY)
		e->rkey++;
	else if (how == OTHER_ADDRESS)
		e->vaddr += 64;
	else
		e->size_code++;
}

START_LOOP_TEST(an_open_with_an_element_that_is_none_ends_the_link, 0, ELEMS)
{
	begin(NULL);
	d.next_opened = 5;
	uint32_t spares = duo_lgr(B)->spare_cnt;
	struct open_msg open = good_open(50);
	spoil(&open.own, _i);
	inject(duo_link(B), &open);
	ck_assert_uint_eq(d.eng[B]->ctr.bad_llc, 1);
	duo_run(50);
	ck_assert_ptr_null(s[5].conn);
	ck_assert_uint_ge(spares, 1);
	ck_assert(IS(s[0], CLOSED)); /* of the same peer */
}

/* The codec's refusals reach the link: a malformed message. */
static const struct {
	unsigned at;
	uint8_t value;
	unsigned type; /* OPEN_GRANT: at the client */
} malformed[] = {
	{ 1, 43, OPEN_CONN }, { 28, 0, OPEN_CONN },                          /* index */
	{ 29, 16, OPEN_CONN },                                               /* size code */
	{ 1, 45, OPEN_GRANT }, { 2, 0, OPEN_GRANT },                         /* count */
	{ 2, 3, OPEN_GRANT }, { 2, 255, OPEN_GRANT }, { 20, 0, OPEN_GRANT }, /* index */
	{ 21, 16, OPEN_GRANT },                                              /* size code */
};

START_LOOP_TEST(a_malformed_message_ends_the_link, 0, sizeof(malformed) / sizeof(malformed[0]))
{
	bool grant = malformed[_i].type == OPEN_GRANT;
	uint8_t buf[OPEN_LEN];

	begin(NULL);
	struct open_msg m = grant ? (struct open_msg){ .type = OPEN_GRANT, .cnt = 1, .granted = { elem_for(A, 90) } }
	                          : good_open(50);
	ck_assert_int_eq(open_encode(&m, buf, sizeof(buf)), OPEN_LEN);
	buf[malformed[_i].at] = malformed[_i].value;
	inject_raw(duo_link(grant ? A : B), buf);
	ck_assert_uint_eq(d.eng[grant ? A : B]->ctr.bad_llc, 1);
}

START_TEST(an_open_of_another_groups_element_has_no_effect)
{
	begin(NULL);
	struct lgr *first = duo_lgr(B);
	d.remote = 7;
	duo_connect(3, 1, 100);
	duo_expect_groups(2);
	struct lgr *other = s[3].conn->lgr;
	ck_assert_ptr_ne(other, first);
	struct open_msg open = good_open(50);
	struct smcr_conn *spare = LIST_FIRST(struct smcr_conn, &other->spares, lgr_node);
	ck_assert_ptr_nonnull(spare);
	d.next_opened = 5;
	open.granted_token = spare->id;
	open.own = elem_for(B, 50);
	unsigned cnt = other->spare_cnt;
	inject(s[0].conn->link, &open);
	nothing_came_of_it(5);
	ck_assert_uint_eq(d.eng[B]->ctr.llc_ignored, 1);
	ck_assert_uint_eq(other->spare_cnt, cnt);
}

START_TEST(an_open_before_any_grant_has_no_effect)
{
	duo_init(true, true, &(struct smcr_config){ .keepalive_ms = 30000 });
	duo_connect(0, 1, 100); /* no ticket, so no GRANT */
	ck_assert_uint_eq(duo_count(B, "GRANT"), 0);
	d.next_opened = 5;
	struct open_msg open = {
		.type = OPEN_CONN, .granted_token = 0x100001, .ticket = TICKET, .own = elem_for(B, 50)
	};
	inject(duo_link(B), &open);
	nothing_came_of_it(5);
	ck_assert_uint_eq(d.eng[B]->ctr.llc_ignored, 1);
}

/* RFC 7609 A.3 */
START_LOOP_TEST(in_a_group_without_the_feature_they_are_ignored, 0, 2)
{
	struct smcr_config cfg = { .features = CLC_FEATURES & ~CLC_FEATURE_OPEN, .keepalive_ms = 30000 };
	unsigned host = (unsigned)_i;

	duo_init(true, true, &cfg);
	d.ticket = TICKET;
	duo_connect(0, 1, 100);
	struct open_msg open = { .type = OPEN_CONN, .granted_token = 1, .ticket = TICKET, .own = elem_for(B, 50) };
	struct open_msg grant = { .type = OPEN_GRANT, .cnt = 1, .granted = { elem_for(A, 90) } };
	inject(duo_link(host), &open);
	inject(duo_link(host), &grant);
	ck_assert_uint_eq(d.eng[host]->ctr.llc_ignored, 2);
	ck_assert_uint_eq(d.eng[host]->ctr.bad_llc, 0);
	ck_assert_uint_eq(duo_lgr(host)->grant_cnt, 0);
	duo_bystander_is_well();
}

/* The element of another connection of this peer: that one ends, as by a Confirm. */
START_TEST(an_open_with_an_element_in_use_ends_its_connection_alone)
{
	begin(NULL);
	d.next_opened = 5;
	struct open_msg open = good_open(s[1].conn->peer_elem_idx);
	inject(duo_link(B), &open);
	duo_run(20);
	ck_assert(IS(s[1], CLOSED));
	ck_assert_int_eq(s[1].reason, SMCR_R_ELEM_CONFLICT);
	ck_assert(IS(s[5], PROPOSAL));
	duo_bystander_is_well();
}

START_TEST(an_open_with_the_element_of_one_that_waits_ends_that_one)
{
	begin(NULL);
	d.next_opened = 5;
	s[5].refuse = true;
	struct open_msg open = good_open(50);
	inject(duo_link(B), &open);
	duo_run(5);
	ck_assert(IS(s[5], PROPOSAL) && !IS(s[5], CLOSED));
	open.granted_token = duo_lgr(A)->grants[duo_lgr(A)->grant_cnt - 2].token;
	open.own.token++;
	inject(duo_link(B), &open);
	duo_run(20);
	ck_assert(IS(s[5], CLOSED));
	ck_assert(IS(s[6], ESTABLISHED));
	duo_bystander_is_well();
}

/* Its bytes have reached a program: the client must not open it again. */
START_TEST(a_refusal_behind_the_answer_is_a_reset)
{
	begin(NULL);
	ck_assert(duo_open_over_link(5));
	duo_write(&c[5], 100);
	duo_run(20);
	ck_assert(BOTH(5, ESTABLISHED));
	s[5].conn->not_opened = true;
	smcr_abort(s[5].conn, SMCR_R_APP_RESET);
	duo_run(20);
	ck_assert_int_eq(c[5].reason, SMCR_R_PEER_ABORT);
	ck_assert_ptr_nonnull(ticket_for(duo_lgr(A), &(struct smcr_open){ .peer_key = "server:1" }));
	duo_bystander_is_well();
}

/* A peer that has all used up, again and again: no more than this is granted. */
START_TEST(a_flood_of_opens_has_its_bound)
{
	unsigned n = 0;

	begin(&(struct smcr_config){ .conns_per_group = 255 });
	d.next_opened = 5;
	struct lgr *lgr = duo_lgr(B);
	for (unsigned i = 0; i < 5000; i++) {
		struct smcr_conn *spare = LIST_FIRST(struct smcr_conn, &lgr->spares, lgr_node);
		struct open_msg open = good_open((uint8_t)(20 + i % 200));

		open.cnt = 0;
		open.ticket = TICKET + 1;
		open.granted_token = spare != NULL ? spare->id : 4711;
		n += spare != NULL;
		inject(duo_link(B), &open);
		ck_assert_uint_le(lgr->spare_cnt, GRANTS_MAX);
		ck_assert_uint_le(lgr->conn_cnt, 255);
		ck_assert_uint_le(lgr->rmb_cnt, 8);
	}
	ck_assert_uint_ge(n, 4);
	duo_run(3000);
	duo_bystander_is_well();
}

/* -- GRANTs -- */

/* As of one whose deletion, over another link, came first. */
START_LOOP_TEST(a_grant_of_an_unknown_rmb_opens_nothing, 0, 4)
{
	struct open_msg grant = { .type = OPEN_GRANT, .cnt = 2 };
	unsigned nth = (unsigned)_i / 2, how = (unsigned)_i % 2, cnt;

	begin(NULL);
	cnt = duo_lgr(A)->grant_cnt;
	grant.granted[0] = elem_for(A, 90);
	grant.granted[1] = elem_for(A, 91);
	spoil(&grant.granted[nth], (int)how);
	inject(duo_link(A), &grant);
	ck_assert_uint_eq(d.eng[A]->ctr.llc_ignored, 1);
	ck_assert_uint_eq(duo_lgr(A)->grant_cnt, cnt + 1);
	ck_assert_uint_eq(d.eng[A]->ctr.bad_llc, 0);
	duo_bystander_is_well();
}

START_TEST(a_granted_element_of_another_size_opens_nothing)
{
	begin(NULL);
	struct open_msg grant = { .type = OPEN_GRANT, .cnt = 1, .granted = { elem_for(A, 90) } };
	grant.granted[0].size_code++;
	inject(duo_link(A), &grant);
	ck_assert(!duo_open_over_link(5));
	duo_run(20);
	ck_assert_uint_eq(duo_count(A, "OPEN"), 0);
	ck_assert(duo_open_over_link(5)); /* the next one is good */
	duo_run(20);
	ck_assert(BOTH(5, ESTABLISHED));
	duo_bystander_is_well();
}

START_TEST(a_granted_element_in_use_ends_its_connection_alone)
{
	begin(NULL);
	struct open_msg grant = { .type = OPEN_GRANT, .cnt = 1, .granted = { elem_for(A, c[1].conn->peer_elem_idx) } };
	inject(duo_link(A), &grant);
	ck_assert(duo_open_over_link(5));
	duo_run(20);
	ck_assert(IS(c[1], CLOSED));
	ck_assert_int_eq(c[1].reason, SMCR_R_ELEM_CONFLICT);
	duo_bystander_is_well();
}

/* The first connection ends here, as its element is another's; the OPEN of the second is ignored: its user gives up. */
START_TEST(an_element_granted_twice_opens_once)
{
	begin(NULL);
	struct lgr *lgr = duo_lgr(A);
	lgr->grants[lgr->grant_cnt - 2] = lgr->grants[lgr->grant_cnt - 1];
	ck_assert(duo_open_over_link(5));
	duo_run(20);
	ck_assert(BOTH(5, ESTABLISHED));
	ck_assert(duo_open_over_link(6));
	duo_run(20);
	ck_assert(IS(c[5], CLOSED));
	ck_assert_int_eq(c[5].reason, SMCR_R_ELEM_CONFLICT);
	ck_assert_uint_eq(d.eng[B]->ctr.llc_ignored, 1);
	ck_assert(!IS(c[6], ESTABLISHED));
	smcr_abort(c[6].conn, SMCR_R_TIMEOUT);
	duo_run(20);
	duo_bystander_is_well();
}

START_TEST(a_flood_of_grants_needs_no_memory)
{
	begin(NULL);
	struct open_msg grant = { .type = OPEN_GRANT, .cnt = 2, .granted = { elem_for(A, 90), elem_for(A, 91) } };
	for (unsigned i = 0; i < 10000; i++)
		inject(duo_link(A), &grant);
	ck_assert_uint_eq(duo_lgr(A)->grant_cnt, GRANTS_MAX);
	ck_assert_uint_eq(d.eng[A]->ctr.bad_llc, 0);
	duo_bystander_is_well();
}

/* A GRANT that was overtaken by the end of its RMB. */
START_TEST(a_stale_grant_opens_nothing)
{
	struct smcr_config cfg = { .keepalive_ms = 30000, .group_idle_ms = 60000 };

	duo_init(true, true, &cfg);
	d.ticket = TICKET;
	duo_connect(0, 1, 100);
	unsigned cnt = duo_lgr(A)->grant_cnt;
	ck_assert_uint_ge(cnt, 1);
	uint32_t rkey = elem_for(A, 1).rkey;
	duo_close(0);
	duo_run(20);
	duo_release_pair(0);
	uint8_t key[LLC_RKEY_LEN];
	llc_rkey_put(key, 0, rkey);
	struct llc_msg gone = { .type = LLC_DELETE_RKEY, .delete_rkey = { .cnt = 1, .rkeys = key } };
	duo_inject(duo_link(A), &gone);
	ck_assert_uint_eq(duo_lgr(A)->remote_rmb_cnt, 0);
	ck_assert(!duo_open_over_link(1));
	ck_assert_uint_eq(duo_lgr(A)->grant_cnt, 0);
	duo_run(20);
	ck_assert_uint_eq(duo_count(A, "OPEN"), 0);
	duo_connect(2, 1, 200);
}

START_TEST(a_stale_grant_is_passed_over)
{
	begin(NULL);
	struct lgr *lgr = duo_lgr(A);
	struct grant *last = &lgr->grants[lgr->grant_cnt - 1];
	uint32_t token = last->token;
	last->remote_rmb = lgr->remote_next_number + 1; /* of an RMB that is gone */
	ck_assert(duo_open_over_link(5));
	ck_assert_uint_ne(c[5].conn->peer_token, token);
	duo_run(20);
	ck_assert(BOTH(5, ESTABLISHED));
	duo_bystander_is_well();
}
