/* Table of SMC-R's TCP option; see peer_mode.h. smcrd.conf(5) describes it for pairs of ends. */
#include "daemon/leg/peer_mode.h"

#include "wire/clc.h"

static const char no_answer[] = "no SMC-R option in the SYN/ACK: the peer's kernel has no SMC, or a middlebox drops it";
static const char no_offer[] = "no SMC-R option in the SYN, or SYN cookies were in use";

#define NO_ANSWER .diag = CLC_DIAG_PEER_NO_SMC, .detail = no_answer
#define NO_OFFER .diag = CLC_DIAG_PEER_NO_SMC, .detail = no_offer
#define CANNOT .diag = CLC_DIAG_NO_OPTION

/* PEER_CLC, all zero, where the ends agreed by the option; and for SMCR_PEER_SMCRD: the configuration decides. */
static const struct peer_mode rules[2][3][TCP_OPTION_STATE_CNT] = {
	[CONFIG_INGRESS] = {
		[SMCR_PEER_LINUX] = { [TCP_OPTION_MISSING] = { PEER_PLAIN, NO_ANSWER },
		    [TCP_OPTION_UNKNOWN] = { PEER_PLAIN, CANNOT } },
		/* Without the option the peer may be a plain server, which must not get a CLC byte. */
		[SMCR_PEER_AUTO] = { [TCP_OPTION_MISSING] = { PEER_PLAIN, NO_ANSWER },
		    [TCP_OPTION_UNKNOWN] = { PEER_PLAIN, CANNOT } },
	},
	[CONFIG_EGRESS] = {
		/* The server never gets an unexpected CLC message. */
		[SMCR_PEER_LINUX] = { [TCP_OPTION_MISSING] = { PEER_LOOK, NO_OFFER },
		    [TCP_OPTION_UNKNOWN] = { PEER_LOOK, CANNOT } },
		/* An ingress with peer = "smcrd" sends its Proposal without the option. */
		[SMCR_PEER_AUTO] = { [TCP_OPTION_MISSING] = { PEER_LOOK, .takes_clc = true, NO_OFFER },
		    [TCP_OPTION_UNKNOWN] = { PEER_LOOK, .takes_clc = true, CANNOT } },
	},
};

const struct peer_mode *
peer_mode(enum config_kind kind, enum smcr_peer_kind peer, enum tcp_option_state state)
{
	return &rules[kind][peer][state];
}

const char *
peer_mode_word(enum smcr_peer_kind peer)
{
	static const char *const words[] = {
		[SMCR_PEER_SMCRD] = "smcrd", [SMCR_PEER_LINUX] = "linux", [SMCR_PEER_AUTO] = "auto"
	};

	return words[peer];
}
