/* Bounds of what a peer can make us hold: unreleased elements, and memory. A bystander is of the same peer. */
#include "duo.h"
#include "smcr/data/rmb.h"
#include "smcr/rendezvous/rendezvous.h"
#include "unit.h"

#include <string.h>

static const struct smcr_config three = { .quarantine_max = 3, .abort_ms = 100 };

/* Garbage in place of the Confirm: its element is in quarantine. */
static struct clc_accept
garbled_join(struct duo_end *e)
{
	struct clc_msg msg = { .type = CLC_PROPOSAL, .version = 1 };

	memcpy(msg.proposal.peer_id, d.eng[A]->peer_id, 8);
	msg.proposal.ext = (struct clc_smcrd_ext){ .present = true, .version = 1, .transports = CLC_TRANSPORT_IWARP };
	duo_open_one(e, SMCR_SERVER, false);
	duo_feed_msg(e, &msg);
	duo_run(30);
	ck_assert_int_gt(clc_decode((struct span){ e->out, e->out_len }, &msg), 0);
	struct clc_accept a = msg.accept;
	duo_feed(e, "GET / HTTP/1.1\r\n", 16);
	duo_run(5);
	ck_assert(IS(*e, CLOSED));
	duo_release(e);
	return a;
}

/* A CDC message from host A, as if the connection with this token lived there. */
static void
say(uint32_t token, uint8_t flags)
{
	struct cdc_msg m = { .token = token, .conn_flags = flags };
	uint8_t buf[CDC_LEN];

	ck_assert_int_eq(cdc_encode(&m, buf, sizeof(buf)), CDC_LEN);
	ck_assert(conn_rx_cdc(duo_link(B), buf, sizeof(buf), true));
}

UNIT_CASE(duo_case(tc, 20000));

START_TEST(a_group_with_too_much_in_quarantine_runs_empty)
{
	uint32_t token[3];

	duo_begin(&three);
	struct lgr *lgr = duo_lgr(B);
	for (unsigned i = 0; i < 3; i++) {
		struct clc_accept a = garbled_join(&s[1]);

		ck_assert(!a.first_contact);
		token[i] = a.alert_token;
	}
	ck_assert_uint_eq(lgr->quarantined, 3);
	ck_assert_uint_eq(smcr_counters(d.eng[B])->refused_quarantine, 0);
	duo_bystander_is_well();
	/* One past: another group, and it may be full as well. */
	ck_assert(garbled_join(&s[1]).first_contact);
	ck_assert_uint_eq(lgr->quarantined, 3);
	ck_assert_uint_eq(smcr_counters(d.eng[B])->refused_quarantine, 1);
	duo_bystander_is_well();
	/* The peer lets one go: there is a place again, and only one. */
	say(token[1], CDC_ABORT);
	ck_assert(!garbled_join(&s[1]).first_contact);
	ck_assert_uint_eq(smcr_counters(d.eng[B])->refused_quarantine, 1);
	ck_assert(garbled_join(&s[1]).first_contact);
	ck_assert_uint_eq(smcr_counters(d.eng[B])->refused_quarantine, 2);
	duo_bystander_is_well();
	/* Nobody is left: it ends at once, and with it all that it held. */
	duo_close(0);
	duo_run(500);
	ck_assert(IS(c[0], CLOSED) && c[0].reason == SMCR_OK);
	ck_assert_uint_eq(duo_lgr_cnt(B), 0);
	ck_assert_uint_eq(d.eng[B]->rmb_bytes, 0);
	duo_run(5000); /* the garbled first contacts are forgiven */
	duo_connect(1, 1, 100);
}

/* The client's group: the server never says that it is through. */
START_TEST(a_client_does_not_join_a_group_with_too_much_in_quarantine)
{
	duo_begin(&three);
	struct lgr *lgr = duo_lgr(A);
	for (unsigned i = 1; i <= 3; i++) {
		duo_connect(i, 1, 50);
		conn_end(c[i].conn, SMCR_R_CLOSE_TIMEOUT, "", true);
	}
	ck_assert_uint_eq(lgr->quarantined, 3);
	duo_open(4);
	duo_run(50);
	ck_assert(BOTH(4, FALLBACK));
	ck_assert_uint_eq(c[4].diag.local, CLC_DIAG_NO_MEMORY);
	ck_assert_uint_eq(smcr_counters(d.eng[A])->refused_quarantine, 1);
	duo_bystander_is_well();
	/* The server ends one. */
	smcr_abort(s[2].conn, SMCR_R_APP_RESET);
	duo_run(50);
	ck_assert_uint_eq(lgr->quarantined, 2);
	duo_connect(5, 1, 50);
	duo_bystander_is_well();
}

/* 4.4.2: who uses its element again was through with it. */
START_TEST(the_peers_next_use_of_its_element_frees_ours)
{
	duo_begin(&three);
	duo_open(1);
	duo_run(50);
	/* The server's end gave up; the client's ended, and its A is lost. */
	conn_end(s[1].conn, SMCR_R_CLOSE_TIMEOUT, "", true);
	conn_end(c[1].conn, SMCR_R_CLOSE_TIMEOUT, "", false);
	ck_assert_uint_eq(duo_lgr(B)->quarantined, 1);
	duo_connect(2, 1, 50);
	ck_assert_uint_eq(duo_lgr(B)->quarantined, 0);
	ck_assert_uint_eq(smcr_counters(d.eng[B])->elems_let_go, 1);
	ck_assert_uint_eq(duo_count(B, "TEST LINK"), 1);
	duo_bystander_is_well();
}

static const struct smcr_config three_elements = {
	.rmb_elems = 1, .rmb_bytes_max = 3 * SMCR_ELEM_MIN, .rmb_idle_ms = 100000
};

START_TEST(memory_of_rmbs_is_bounded)
{
	duo_begin(&three_elements);
	for (unsigned i = 1; i < 5; i++) {
		duo_open(i);
		duo_run(100);
		ck_assert(IS(c[i], ESTABLISHED) == (i < 3) && IS(s[i], ESTABLISHED) == (i < 3));
	}
	ck_assert(BOTH(3, FALLBACK));
	ck_assert_uint_eq(s[3].diag.local, CLC_DIAG_NO_MEMORY);
	ck_assert_uint_eq(d.eng[B]->rmb_bytes, 3 * SMCR_ELEM_MIN);
	ck_assert_uint_eq(smcr_counters(d.eng[B])->refused_rmb_memory, 2);
	duo_bystander_is_well();
	duo_close(1);
	duo_run(100);
	duo_connect(5, 1, 100);
	duo_bystander_is_well();
}

/* First contact, too. */
START_TEST(a_group_without_memory_is_declined)
{
	duo_begin(&three_elements);
	d.remote = 7;
	for (unsigned i = 1; i < 4; i++) {
		duo_open(i);
		c[i].conn->rdv->open.peer_key[0] = (char)('0' + i);
		duo_run(100);
		d.remote++;
	}
	ck_assert(IS(s[1], ESTABLISHED) && IS(s[2], ESTABLISHED));
	ck_assert(BOTH(3, FALLBACK));
	ck_assert_uint_eq(s[3].diag.local, CLC_DIAG_REG_BUFFER);
	ck_assert_uint_eq(smcr_counters(d.eng[B])->refused_rmb_memory, 1);
	ck_assert_uint_eq(d.eng[B]->rmb_bytes, 3 * SMCR_ELEM_MIN);
	duo_bystander_is_well();
}

/* What the peer wrote before its end belongs to the user: the element stays until it is read, in a group that has ended. */
START_TEST(data_from_before_the_end_of_the_group_is_read)
{
	duo_begin(&three);
	ck_assert_uint_eq(duo_write(&c[0], 3000), 3000);
	duo_run(20);
	lgr_down(duo_lgr(A), SMCR_R_LINK_LOST, "test");
	lgr_down(duo_lgr(B), SMCR_R_LINK_LOST, "test");
	duo_run(20);
	ck_assert(BOTH(0, CLOSED));
	ck_assert_uint_eq(duo_read(&s[0]), 3000);
	ck_assert_uint_eq(duo_read(&s[0]), 0);
}
