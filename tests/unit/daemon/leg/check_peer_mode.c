/* What SMC-R's TCP option means, cell by cell against a second list. */
#include "daemon/leg/peer_mode.h"

#include "unit.h"
#include "wire/clc.h"

/* A letter for each of unknown, missing, agreed: C for CLC; plain: p for want of the peer's option, u of ours; a look, for the
 * same reasons: l and v, capital when a CLC message is taken. */
static const char *const cells[2][3] = {
	[CONFIG_INGRESS] = { [SMCR_PEER_SMCRD] = "CCC", [SMCR_PEER_LINUX] = "upC", [SMCR_PEER_AUTO] = "upC" },
	[CONFIG_EGRESS] = { [SMCR_PEER_SMCRD] = "CCC", [SMCR_PEER_LINUX] = "vlC", [SMCR_PEER_AUTO] = "VLC" },
};

static char
letter(const struct peer_mode *r)
{
	bool ours = r->diag == CLC_DIAG_NO_OPTION;

	if (r->way == PEER_CLC)
		return 'C';
	ck_assert(ours || r->diag == CLC_DIAG_PEER_NO_SMC);
	ck_assert(ours == (r->detail == NULL));
	if (r->way == PEER_PLAIN)
		return ours ? 'u' : 'p';
	return r->takes_clc ? (ours ? 'V' : 'L') : (ours ? 'v' : 'l');
}

START_TEST(every_cell_is_what_the_manual_says)
{
	for (int kind = 0; kind < 2; kind++)
		for (int peer = 0; peer < 3; peer++)
			for (int st = 0; st < TCP_OPTION_STATE_CNT; st++) {
				const struct peer_mode *r = peer_mode(
				    (enum config_kind)kind, (enum smcr_peer_kind)peer, (enum tcp_option_state)st);

				ck_assert_msg(
				    letter(r) == cells[kind][peer][st], "kind %d peer %d state %d", kind, peer, st);
			}
}

START_TEST(services_that_need_the_option)
{
	ck_assert(!peer_mode_wants_option(SMCR_PEER_SMCRD));
	ck_assert(peer_mode_wants_option(SMCR_PEER_LINUX));
	ck_assert(peer_mode_wants_option(SMCR_PEER_AUTO));
}
