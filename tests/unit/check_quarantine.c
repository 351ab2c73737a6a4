/* What a peer can make us hold: elements that it does not let go, and memory. Beside a bystander of the same peer. */
#include "duo.h"
#include "smcr/data/quarantine.h"
#include "smcr/rendezvous/rendezvous.h"
#include "unit.h"

#include <string.h>

static struct duo d;
static struct duo_end c[8], s[8];

#define IS(e, ev) (((e).events & SMCR_EV_##ev) != 0)

static void
begin(void (*change)(struct smcr_config *))
{
	duo_init(&d, true, true, change);
	duo_open(&d, &c[0], &s[0]);
	duo_run(&d, 100);
	ck_assert(IS(c[0], ESTABLISHED) && IS(s[0], ESTABLISHED));
}

static void
end(void)
{
	for (unsigned i = 0; i < 8; i++) {
		duo_close(&d, &c[i]);
		duo_close(&d, &s[i]);
	}
	duo_run(&d, 20000);
	duo_fini(&d);
}

static void
three(struct smcr_config *cfg)
{
	cfg->quarantine_max = 3;
	cfg->abort_ms = 100;
}

/* Garbage in place of the Confirm: its element is in quarantine. */
static struct clc_accept
garbled_join(struct duo_end *e)
{
	struct clc_msg msg = { .type = CLC_PROPOSAL, .version = 1 };
	struct clc_accept a;

	memcpy(msg.proposal.peer_id, d.eng[A]->peer_id, 8);
	msg.proposal.ext = (struct clc_smcrd_ext){ .present = true, .version = 1, .transports = CLC_TRANSPORT_IWARP };
	duo_open_one(&d, e, SMCR_SERVER, false);
	duo_feed_msg(e, &msg);
	duo_run(&d, 30);
	ck_assert_int_gt(clc_decode((struct span){ e->out, e->out_len }, &msg), 0);
	a = msg.accept;
	duo_feed(e, "GET / HTTP/1.1\r\n", 16);
	duo_run(&d, 5);
	ck_assert(IS(*e, CLOSED));
	duo_close(&d, e);
	return a;
}

/* A CDC message from host A, as if the connection with this token lived there. */
static void
say(uint32_t token, uint8_t flags)
{
	struct cdc_msg m = { .token = token, .conn_flags = flags };
	uint8_t buf[CDC_LEN];

	ck_assert_int_eq(cdc_encode(&m, buf, sizeof(buf)), CDC_LEN);
	ck_assert(conn_rx_cdc(duo_link(&d, B), buf, sizeof(buf), true));
}

START_TEST(a_group_with_too_much_in_quarantine_runs_empty)
{
	uint32_t token[3];
	struct lgr *lgr;

	begin(three);
	lgr = duo_lgr(&d, B);
	for (unsigned i = 0; i < 3; i++) {
		struct clc_accept a = garbled_join(&s[1]);

		ck_assert(!a.first_contact);
		token[i] = a.alert_token;
	}
	ck_assert_uint_eq(lgr->quarantined, 3);
	ck_assert_uint_eq(smcr_counters(d.eng[B])->refused_quarantine, 0);
	duo_both_are_well(&d, &c[0], &s[0]);
	/* One past: another group, and it may be full as well. */
	ck_assert(garbled_join(&s[1]).first_contact);
	ck_assert_uint_eq(lgr->quarantined, 3);
	ck_assert_uint_eq(smcr_counters(d.eng[B])->refused_quarantine, 1);
	duo_both_are_well(&d, &c[0], &s[0]);
	/* The peer lets one go: there is a place again, and only one. */
	say(token[1], CDC_ABORT);
	ck_assert(!garbled_join(&s[1]).first_contact);
	ck_assert_uint_eq(smcr_counters(d.eng[B])->refused_quarantine, 1);
	ck_assert(garbled_join(&s[1]).first_contact);
	ck_assert_uint_eq(smcr_counters(d.eng[B])->refused_quarantine, 2);
	duo_both_are_well(&d, &c[0], &s[0]);
	/* Nobody is left: it ends at once, and with it all that it held. */
	smcr_close(c[0].conn);
	smcr_close(s[0].conn);
	duo_run(&d, 500);
	ck_assert(IS(c[0], CLOSED) && c[0].reason == SMCR_OK);
	ck_assert_uint_eq(duo_lgr_cnt(&d, B), 0);
	ck_assert_uint_eq(d.eng[B]->rmb_bytes, 0);
	duo_run(&d, 5000); /* the garbled first contacts are forgiven */
	duo_open(&d, &c[1], &s[1]);
	duo_run(&d, 100);
	ck_assert(IS(c[1], ESTABLISHED) && IS(s[1], ESTABLISHED));
	end();
}

END_TEST

/* The client's group: the server never says that it is through. */
START_TEST(a_client_does_not_join_a_group_with_too_much_in_quarantine)
{
	struct lgr *lgr;

	begin(three);
	lgr = duo_lgr(&d, A);
	for (unsigned i = 1; i <= 3; i++) {
		duo_open(&d, &c[i], &s[i]);
		duo_run(&d, 50);
		ck_assert(IS(c[i], ESTABLISHED));
		conn_end(c[i].conn, SMCR_R_CLOSE_TIMEOUT, "", true);
	}
	ck_assert_uint_eq(lgr->quarantined, 3);
	duo_open(&d, &c[4], &s[4]);
	duo_run(&d, 50);
	ck_assert(IS(c[4], FALLBACK) && IS(s[4], FALLBACK));
	ck_assert_uint_eq(c[4].diag.local, CLC_DIAG_NO_MEMORY);
	ck_assert_uint_eq(smcr_counters(d.eng[A])->refused_quarantine, 1);
	duo_both_are_well(&d, &c[0], &s[0]);
	/* The server ends one. */
	smcr_abort(s[2].conn, SMCR_R_APP_RESET);
	duo_run(&d, 50);
	ck_assert_uint_eq(lgr->quarantined, 2);
	duo_open(&d, &c[5], &s[5]);
	duo_run(&d, 50);
	ck_assert(IS(c[5], ESTABLISHED) && IS(s[5], ESTABLISHED));
	duo_both_are_well(&d, &c[0], &s[0]);
	end();
}

END_TEST

/* 4.4.2: who uses its element again was through with it. */
START_TEST(the_peers_next_use_of_its_element_frees_ours)
{
	begin(three);
	duo_open(&d, &c[1], &s[1]);
	duo_run(&d, 50);
	/* The server's end gave up; the client's ended, and its A is lost. */
	conn_end(s[1].conn, SMCR_R_CLOSE_TIMEOUT, "", true);
	conn_end(c[1].conn, SMCR_R_CLOSE_TIMEOUT, "", false);
	ck_assert_uint_eq(duo_lgr(&d, B)->quarantined, 1);
	duo_open(&d, &c[2], &s[2]);
	duo_run(&d, 50);
	ck_assert(IS(c[2], ESTABLISHED) && IS(s[2], ESTABLISHED));
	ck_assert_uint_eq(duo_lgr(&d, B)->quarantined, 0);
	ck_assert_uint_eq(smcr_counters(d.eng[B])->elems_let_go, 1);
	ck_assert_uint_eq(duo_count(&d, B, "TEST LINK"), 1);
	duo_both_are_well(&d, &c[0], &s[0]);
	end();
}

END_TEST

static void
three_elements(struct smcr_config *cfg)
{
	cfg->rmb_elems = 1;
	cfg->rmb_bytes_max = 3 * SMCR_ELEM_MIN;
	cfg->rmb_idle_ms = 100000;
}

START_TEST(memory_of_rmbs_is_bounded)
{
	begin(three_elements);
	for (unsigned i = 1; i < 5; i++) {
		duo_open(&d, &c[i], &s[i]);
		duo_run(&d, 100);
		ck_assert(IS(c[i], ESTABLISHED) == (i < 3) && IS(s[i], ESTABLISHED) == (i < 3));
	}
	ck_assert(IS(c[3], FALLBACK) && IS(s[3], FALLBACK));
	ck_assert_uint_eq(s[3].diag.local, CLC_DIAG_NO_MEMORY);
	ck_assert_uint_eq(d.eng[B]->rmb_bytes, 3 * SMCR_ELEM_MIN);
	ck_assert_uint_eq(smcr_counters(d.eng[B])->refused_rmb_memory, 2);
	duo_both_are_well(&d, &c[0], &s[0]);
	smcr_close(c[1].conn);
	smcr_close(s[1].conn);
	duo_run(&d, 100);
	duo_open(&d, &c[5], &s[5]);
	duo_run(&d, 100);
	ck_assert(IS(c[5], ESTABLISHED) && IS(s[5], ESTABLISHED));
	duo_both_are_well(&d, &c[0], &s[0]);
	end();
}

END_TEST

/* First contact, too. */
START_TEST(a_group_without_memory_is_declined)
{
	begin(three_elements);
	d.remote = 7;
	for (unsigned i = 1; i < 4; i++) {
		duo_open(&d, &c[i], &s[i]);
		c[i].conn->rdv->open.peer_key[0] = (char)('0' + i);
		duo_run(&d, 100);
		d.remote++;
	}
	ck_assert(IS(s[1], ESTABLISHED) && IS(s[2], ESTABLISHED));
	ck_assert(IS(c[3], FALLBACK) && IS(s[3], FALLBACK));
	ck_assert_uint_eq(s[3].diag.local, CLC_DIAG_REG_BUFFER);
	ck_assert_uint_eq(smcr_counters(d.eng[B])->refused_rmb_memory, 1);
	ck_assert_uint_eq(d.eng[B]->rmb_bytes, 3 * SMCR_ELEM_MIN);
	duo_both_are_well(&d, &c[0], &s[0]);
	end();
}

END_TEST

static void
quarantine_case(TCase *tc)
{
	tcase_add_test(tc, a_group_with_too_much_in_quarantine_runs_empty);
	tcase_add_test(tc, a_client_does_not_join_a_group_with_too_much_in_quarantine);
	tcase_add_test(tc, the_peers_next_use_of_its_element_frees_ours);
	tcase_add_test(tc, memory_of_rmbs_is_bounded);
	tcase_add_test(tc, a_group_without_memory_is_declined);
}

UNIT_MAIN("quarantine", quarantine_case)
