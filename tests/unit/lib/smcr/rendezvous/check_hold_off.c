/* Hold-offs of peers after failures, and an operator's check that bypasses them (smcrctl check). */
#include <string.h>

#include "duo.h"
#include "unit.h"

UNIT_CASE(duo_case(tc, 40000));

#define KEY "server:1"

static const struct smcr_config hold = { .holdoff_ms = 20000, .holdoff_max_ms = 30000, .group_idle_ms = 100 };

/* Both ends hold the other off: two first contacts have failed. */
static void
held_off(void)
{
	duo_init(true, true, &hold);
	sim_block_connect(d.dev[B], true);
	for (unsigned i = 0; i < 2; i++) {
		duo_open(i);
		for (unsigned t = 0; t < 1200 && !BOTH(i, FALLBACK); t++)
			duo_run(10);
		ck_assert(BOTH(i, FALLBACK) && !c[i].diag.held_off);
		ck_assert_int_eq(c[i].diag.phase, SMCR_PHASE_CONNECT);
	}
	ck_assert_int_gt(smcr_held_off_ns(d.eng[A], KEY), 0);
	ck_assert_int_eq(smcr_held_off_ns(d.eng[A], "server:2"), 0);
}

static void
prewarm(unsigned pair, bool insist)
{
	d.insist = insist;
	duo_open_one(&s[pair], SMCR_SERVER, false);
	duo_open_one(&c[pair], SMCR_CLIENT, true);
	duo_join(pair);
	d.insist = false;
}

static void
is_turned_away(unsigned pair)
{
	duo_open(pair);
	duo_run(1);
	ck_assert(IS(c[pair], FALLBACK) && c[pair].diag.held_off);
}

START_TEST(an_insisting_check_ends_it)
{
	held_off();
	is_turned_away(2);
	sim_block_connect(d.dev[B], false);
	prewarm(3, false);
	duo_run(1);
	ck_assert(IS(c[3], FALLBACK) && c[3].diag.held_off);
	prewarm(4, true);
	duo_run(500);
	ck_assert(BOTH(4, CLOSED));
	ck_assert_int_eq(c[4].reason, SMCR_OK);
	ck_assert(smcr_is_prewarm(s[4].conn) && smcr_is_prewarm(c[4].conn));
	ck_assert_int_eq(smcr_held_off_ns(d.eng[A], KEY), 0);
	duo_connect(5, 1, 500);
	ck_assert(!smcr_is_prewarm(s[5].conn));
}

/* The first of those that wait tries once more; the others are declined with it. */
START_TEST(a_second_failure_declines_all_that_wait)
{
	duo_init(true, true, &hold);
	sim_block_connect(d.dev[B], true);
	for (unsigned i = 0; i < 5; i++)
		duo_open(i);
	for (unsigned i = 0; i < 2; i++) {
		duo_run(100);
		ck_assert_int_eq(c[i].conn->rdv->step, RDV_CONNECTING);
		ck_assert_int_eq(c[4].conn->rdv->step, RDV_WAIT_TURN);
		link_lost(rdv_first_link(c[i].conn), "test");
	}
	duo_run(100);
	for (unsigned i = 0; i < 5; i++)
		ck_assert(BOTH(i, FALLBACK) && c[i].diag.held_off == (i >= 2));
	ck_assert_uint_eq(smcr_counters(d.eng[A])->first_contacts_failed, 2);
	ck_assert(list_empty(&d.eng[A]->marked_peers));
}

/* The server alone holds off: its client has forgotten. */
START_TEST(a_server_recognises_an_insisting_check)
{
	held_off();
	smcr_end_hold_off(d.eng[A], KEY);
	sim_block_connect(d.dev[B], false);
	duo_open(2);
	duo_run(100);
	ck_assert(IS(c[2], FALLBACK) && !c[2].diag.held_off && s[2].diag.held_off);
	prewarm(3, false);
	duo_run(100);
	ck_assert(BOTH(3, FALLBACK) && s[3].diag.held_off && smcr_is_prewarm(s[3].conn));
	prewarm(4, true);
	duo_run(500);
	ck_assert(BOTH(4, CLOSED));
	duo_connect(5, 1, 500);
}

/* The operator's failure is nobody else's. */
START_TEST(a_failed_insisting_check_changes_nothing)
{
	int64_t left;

	held_off();
	left = d.now_ns + smcr_held_off_ns(d.eng[A], KEY);
	prewarm(2, true);
	for (unsigned t = 0; t < 1200 && !BOTH(2, FALLBACK); t++)
		duo_run(10);
	ck_assert(BOTH(2, FALLBACK) && !c[2].diag.held_off && !s[2].diag.held_off);
	ck_assert_ptr_nonnull(strstr(c[2].diag.detail, "MPA"));
	ck_assert_int_eq(c[2].diag.phase, SMCR_PHASE_CONNECT);
	ck_assert_int_eq(d.now_ns + smcr_held_off_ns(d.eng[A], KEY), left);
	is_turned_away(3);
	/* Nor does it begin one. */
	smcr_end_hold_off(d.eng[A], KEY);
	smcr_end_hold_off(d.eng[A], "nobody:1");
	for (unsigned i = 4; i < 8; i++) {
		prewarm(i, true);
		duo_run(3000);
		ck_assert(IS(c[i], FALLBACK));
	}
	ck_assert_int_eq(smcr_held_off_ns(d.eng[A], KEY), 0);
}

static bool
key_is_held_off(unsigned port)
{
	char key[16];

	snprintf(key, sizeof(key), "server:%u", port);
	return smcr_held_off_ns(d.eng[A], key) > 0;
}

static void
open_at(unsigned pair, unsigned port)
{
	d.port = port;
	duo_open(pair);
}

static void
falls_back(unsigned pair)
{
	for (unsigned t = 0; t < 1200 && !BOTH(pair, FALLBACK); t++)
		duo_run(10);
	ck_assert(BOTH(pair, FALLBACK));
}

/* A client's server is the same by several keys: its peer id and its address say so, together. */
START_TEST(a_hold_off_counts_for_every_key_of_the_peer)
{
	duo_init(true, true, &hold);
	sim_block_connect(d.dev[B], true);
	open_at(0, 2); /* at the same time: one round */
	open_at(1, 3);
	falls_back(0);
	falls_back(1);
	ck_assert(!key_is_held_off(2) && !key_is_held_off(3));
	open_at(2, 4);
	falls_back(2);
	ck_assert(!c[2].diag.held_off && key_is_held_off(2) && key_is_held_off(3) && key_is_held_off(4));
	ck_assert(!key_is_held_off(5)); /* nobody knows whose it is */
	smcr_retry(d.eng[B], NULL, NULL);
	open_at(3, 5);
	duo_run(100);
	ck_assert(BOTH(3, FALLBACK) && c[3].diag.held_off && key_is_held_off(5));
	ck_assert_uint_eq(smcr_counters(d.eng[A])->first_contacts_failed, 3);
	/* Somebody else may say that it is this peer. */
	d.remote++;
	open_at(4, 6);
	falls_back(4);
	ck_assert(!c[4].diag.held_off && !s[4].diag.held_off && !key_is_held_off(6));
	d.remote--;
	smcr_end_hold_off(d.eng[A], "server:5");
	ck_assert(!key_is_held_off(2) && !key_is_held_off(3) && !key_is_held_off(4) && !key_is_held_off(5));
	sim_block_connect(d.dev[B], false);
	smcr_retry(d.eng[B], NULL, NULL);
	d.port = 3;
	duo_connect(5, 1, 500);
}

START_TEST(a_link_is_tested_on_demand)
{
	struct smcr_link_info l;
	uint32_t pos = 0;

	duo_begin(NULL);
	ck_assert_uint_eq(smcr_test_link(d.eng[A], duo_lgr(A)->id + 1), 0);
	uint8_t nr = smcr_test_link(d.eng[A], duo_lgr(A)->id);
	ck_assert_uint_ne(nr, 0);
	ck_assert_uint_eq(smcr_test_link(d.eng[A], duo_lgr(A)->id), nr);
	ck_assert(smcr_link_next(d.eng[A], &pos, &l));
	ck_assert(l.is_active && l.is_tested && l.number == nr);
	duo_run(100);
	pos = 0;
	ck_assert(smcr_link_next(d.eng[A], &pos, &l));
	ck_assert(l.is_active && !l.is_tested && l.rtt_ns >= 0);
	ck_assert_uint_eq(smcr_counters(d.eng[A])->test_links, 1);
}

/* The server's Accept says what is behind it, whether the group exists or not; an older smcrd says nothing. Without the question
 * nobody is asked. */
START_LOOP_TEST(a_prewarm_may_ask_for_the_server, 0, 4)
{
	const unsigned server = _i == 1 ? CLC_SERVER_REFUSED : CLC_SERVER_UP;

	duo_init(true, true, NULL);
	if (_i == 1)
		duo_connect(1, 1, 500);
	d.ask_server = _i != 3;
	d.server = (enum clc_server)server;
	prewarm(0, false);
	c[0].hold = true;
	duo_run(5);
	ck_assert_uint_gt(c[0].out_len, 59);
	ck_assert_uint_eq(c[0].out[59] & CLC_FEATURE_SERVER, _i != 3 ? CLC_FEATURE_SERVER : 0);
	if (_i == 2) /* as an older smcrd reads it */
		c[0].out[59] &= (uint8_t)~CLC_FEATURE_SERVER;
	duo_feed_held(&c[0], &s[0]);
	c[0].hold = false;
	duo_run(500);
	ck_assert_int_eq(IS(s[0], PROPOSAL), _i < 2);
	ck_assert(BOTH(0, CLOSED) && !IS(c[0], ESTABLISHED) && !IS(s[0], ESTABLISHED));
	ck_assert_int_eq(c[0].reason, SMCR_OK);
	ck_assert_uint_eq(smcr_server(c[0].conn), _i < 2 ? server : CLC_SERVER_UNSAID);
}

/* What was not asked for is no answer. */
START_LOOP_TEST(an_answer_without_a_question_is_ignored, 0, 2)
{
	duo_init(true, true, NULL);
	d.ask_server = _i == 1;
	prewarm(0, false);
	s[0].hold = true;
	duo_run(5);
	uint8_t *ext = memmem(s[0].out, s[0].out_len, "smrd", 4);
	ck_assert_ptr_nonnull(ext);
	ext[20] = 200;
	duo_feed_held(&s[0], &c[0]);
	s[0].hold = false;
	duo_run(500);
	ck_assert(BOTH(0, CLOSED));
	ck_assert_uint_eq(smcr_server(c[0].conn), _i == 1 ? 200 : CLC_SERVER_UNSAID);
	ck_assert_str_eq(clc_server_str(200), clc_server_str(CLC_SERVER_DOWN));
}

/* A prewarmed connection that both ends want to measure over is established; to a peer that does not know of that it is one
 * that ends. */
START_LOOP_TEST(a_measurement_takes_two, 0, 2)
{
	duo_init(true, true, NULL);
	d.measure = true;
	prewarm(0, true);
	d.measure = false;
	c[0].hold = true;
	duo_run(5);
	ck_assert_uint_gt(c[0].out_len, 59);
	ck_assert_uint_eq(c[0].out[59] & CLC_FEATURE_MEASURE, CLC_FEATURE_MEASURE);
	if (_i == 1) /* as an older smcrd reads it */
		c[0].out[59] &= (uint8_t)~CLC_FEATURE_MEASURE;
	duo_feed_held(&c[0], &s[0]);
	c[0].hold = false;
	duo_run(500);
	ck_assert(smcr_is_prewarm(s[0].conn) && !IS(s[0], PROPOSAL));
	if (_i == 1) {
		ck_assert(BOTH(0, CLOSED) && !IS(c[0], ESTABLISHED) && !IS(s[0], ESTABLISHED));
		ck_assert_int_eq(c[0].reason, SMCR_OK);
		return;
	}
	ck_assert(BOTH(0, ESTABLISHED) && !IS(c[0], CLOSED));
	ck_assert_uint_eq(duo_write(&c[0], 1000), 1000);
	duo_run(100);
	ck_assert_uint_eq(duo_read(&s[0]), 1000);
	duo_close(0);
	duo_run(500);
	ck_assert(BOTH(0, CLOSED));
	ck_assert_int_eq(c[0].reason, SMCR_OK);
}
