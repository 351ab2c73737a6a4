/* The program's client in a rendezvous (smcr_open.client): the server's user learns it whichever way the connection goes,
 * and the client's learns whether it is used. */
#include "duo.h"
#include "unit.h"

UNIT_CASE(duo_case(tc, 5000));

static const struct smcr_config hold = { .holdoff_ms = 20000, .holdoff_max_ms = 30000, .group_idle_ms = 100 };
static const struct clc_client someone = { .kind = CLC_CLIENT_V4, .port = 5330, .addr = { 203, 0, 113, 9 } };

static void
begin(bool device_a, bool device_b, bool takes_client)
{
	duo_init(device_a, device_b, &hold);
	d.client = someone;
	d.takes_client = takes_client;
}

static void
expect_client(unsigned pair, bool used)
{
	ck_assert_mem_eq(&s[pair].client, &someone, sizeof(someone));
	ck_assert(smcr_client_is_used(c[pair].conn) == used);
	ck_assert(!smcr_client_is_used(s[pair].conn));
}

/* First contact, and a group that is there. */
START_LOOP_TEST(on_smcr, 0, 2)
{
	begin(true, true, _i == 1);
	for (unsigned i = 0; i < 2; i++) {
		duo_connect(i, 1, 500);
		expect_client(i, _i == 1);
	}
	d.client = (struct clc_client){ .kind = CLC_CLIENT_NONE };
	duo_connect(2, 1, 500);
	ck_assert_int_eq(s[2].client.kind, CLC_CLIENT_NONE);
	ck_assert(!smcr_client_is_used(c[2].conn));
}

/* The server declines: for lack of a device, and by its user. */
START_LOOP_TEST(the_server_declines, 0, 4)
{
	begin(true, (_i & 2) != 0, (_i & 1) != 0);
	d.tcp_only[B] = (_i & 2) != 0 ? "no link" : NULL;
	duo_open(0);
	duo_run(100);
	ck_assert(BOTH(0, FALLBACK));
	expect_client(0, (_i & 1) != 0);
	ck_assert_uint_eq(c[0].diag.peer, (_i & 2) != 0 ? CLC_DIAG_CONFIG : CLC_DIAG_NO_DEVICE);
	ck_assert_uint_eq(c[0].diag.local, 0);
}

/* The client declines after the Accept. */
START_TEST(the_client_declines_the_accept)
{
	begin(true, true, true);
	sim_block_connect(d.dev[B], true);
	duo_open(0);
	for (unsigned t = 0; t < 1200 && !BOTH(0, FALLBACK); t++)
		duo_run(10);
	ck_assert(BOTH(0, FALLBACK));
	expect_client(0, true);
}

/* A client that would decline in place of the Proposal sends one without links, and its own reason counts. */
START_LOOP_TEST(a_client_without_a_device, 0, 2)
{
	begin(false, true, _i == 1);
	duo_open(0);
	duo_run(100);
	duo_expect(0, A, "PROPOSAL");
	duo_expect(1, B, "DECLINE");
	ck_assert_uint_eq(d.seen_cnt, 2);
	ck_assert(BOTH(0, FALLBACK));
	expect_client(0, _i == 1);
	ck_assert_uint_eq(c[0].diag.local, CLC_DIAG_NO_DEVICE);
	ck_assert_uint_eq(c[0].diag.peer, 0);
	ck_assert_uint_eq(smcr_counters(d.eng[A])->fallback_local, 1);
	ck_assert_uint_eq(smcr_counters(d.eng[A])->fallback_peer, 0);
}

static void
fall_back(unsigned first, unsigned cnt)
{
	for (unsigned i = first; i < first + cnt; i++)
		duo_open(i);
	for (unsigned i = first; i < first + cnt; i++) {
		for (unsigned t = 0; t < 2400 && !BOTH(i, FALLBACK); t++)
			duo_run(10);
		ck_assert(BOTH(i, FALLBACK));
		expect_client(i, true);
	}
}

/* Likewise while the peer is held off. */
START_TEST(a_client_whose_peer_is_held_off)
{
	begin(true, true, true);
	sim_block_connect(d.dev[B], true);
	fall_back(0, 1);
	fall_back(1, 1);
	ck_assert_int_gt(smcr_held_off_ns(d.eng[A], "server:1"), 0);
	fall_back(2, 1);
	ck_assert(c[2].diag.held_off);
	ck_assert_uint_eq(c[2].diag.local, CLC_DIAG_NO_ACTIVE_LINK);
	ck_assert_uint_eq(c[2].diag.peer, 0);
}

/* Likewise when the first contact that it waits for fails, and once more. */
START_TEST(clients_that_wait_for_a_first_contact)
{
	begin(true, true, true);
	sim_block_connect(d.dev[B], true);
	fall_back(0, 4);
	ck_assert(!c[1].diag.held_off && c[2].diag.held_off && c[3].diag.held_off);
}

/* A Proposal that must be understood, and is not, ends in a reset: TCP would leave out what it asks for. */
START_TEST(a_proposal_that_is_not_understood)
{
	struct clc_msg msg = { .type = CLC_PROPOSAL, .version = 1 };
	uint8_t buf[CLC_MAX_SENT_LEN];

	begin(true, true, true);
	duo_open_one(&s[0], SMCR_SERVER, false);
	msg.proposal.ext = (struct clc_smcrd_ext){
		.present = true, .version = 1, .transports = CLC_TRANSPORT_IWARP, .features = CLC_FEATURE_CLIENT
	};
	msg.proposal.tlvs.client = someone;
	int n = clc_encode(&msg, buf, sizeof(buf));
	ck_assert_int_gt(n, 0);
	buf[86] = 0x83; /* the type behind magic and length */
	duo_feed(&s[0], buf, (size_t)n);
	duo_run(10);
	ck_assert(IS(s[0], CLOSED));
	ck_assert_int_eq(s[0].reason, SMCR_R_PROTOCOL);
}

/* An answer that claims to use a client which nobody has sent. */
START_TEST(a_client_that_was_not_sent)
{
	struct clc_msg msg = { .type = CLC_DECLINE, .version = 1, .decline = { .diag = 1, .client_used = true } };

	duo_init(true, true, NULL);
	duo_open_one(&c[0], SMCR_CLIENT, false);
	duo_feed_msg(&c[0], &msg);
	duo_run(10);
	ck_assert(IS(c[0], FALLBACK));
	ck_assert(!smcr_client_is_used(c[0].conn));
}

/* Over a link, with a ticket of a rendezvous whose client was used; IPv6 has no room in an OPEN. */
START_LOOP_TEST(over_a_link, 0, 2)
{
	const struct clc_client v6 = { .kind = CLC_CLIENT_V6, .port = 1, .addr = { 0x20 } };

	duo_init(true, true, &(struct smcr_config){ .keepalive_ms = 30000 });
	d.client = someone;
	d.takes_client = _i == 1;
	d.ticket = 7;
	duo_connect(0, 1, 500);
	ck_assert(duo_open_over_link(1) == (_i == 1));
	if (_i == 0)
		return;
	duo_run(100);
	ck_assert(BOTH(1, ESTABLISHED));
	ck_assert(c[1].conn->over_link && smcr_client_is_used(c[1].conn));
	ck_assert_mem_eq(&s[1].client, &someone, sizeof(someone));
	d.client = v6;
	ck_assert(!duo_open_over_link(2));
	d.client = (struct clc_client){ .kind = CLC_CLIENT_NONE };
	ck_assert(duo_open_over_link(2));
	duo_run(100);
	ck_assert_int_eq(s[2].client.kind, CLC_CLIENT_NONE);
}
