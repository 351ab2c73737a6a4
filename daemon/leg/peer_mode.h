/*
 * What a service makes of SMC-R's TCP option: kind of the service x who is at the
 * other end, as configured x what SYN and SYN/ACK had -> CLC, plain TCP, or a
 * look at the first bytes. One table; pure. Sessions (session_detect.c) and probes
 * carry it out.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "daemon/config/config.h"
#include "daemon/net/tcp_option.h"

enum peer_way {
	PEER_CLC,   /* the rendezvous begins */
	PEER_PLAIN, /* the far end speaks no SMC-R: not one byte of CLC goes out, none is waited for */
	PEER_LOOK,  /* an egress: plain, too, unless the first bytes are those of a CLC message */
};

struct peer_mode {
	enum peer_way way;
	bool takes_clc;     /* PEER_LOOK: such a message begins the rendezvous; if not, the connection is refused */
	uint32_t diag;      /* why plain: enum clc_diag */
	const char *detail; /* in more words; NULL: struct tcp_option says why it cannot be used */
};

const struct peer_mode *peer_mode(enum config_kind, enum smcr_peer_kind, enum tcp_option_state);
/* Does such a service mark its sockets? */
static inline bool
peer_mode_wants_option(enum smcr_peer_kind peer)
{
	return peer != SMCR_PEER_SMCRD;
}
/* As configured: "smcrd", "linux", "auto". */
const char *peer_mode_word(enum smcr_peer_kind);
