/* Rules of SMC-R's TCP option: kind of the service x configured peer x option in SYN and SYN/ACK -> CLC, plain TCP, or
 * a look at the first bytes. One table; pure. Used by sessions (session_detect.c) and probes. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "daemon/config/config.h"
#include "daemon/net/tcp_option.h"

enum peer_way {
	PEER_CLC,   /* the rendezvous begins */
	PEER_PLAIN, /* the peer does not speak SMC-R: no CLC byte is sent or expected */
	PEER_LOOK,  /* egress: plain unless the first bytes are a CLC message */
};

struct peer_mode {
	enum peer_way way;
	bool takes_clc;     /* PEER_LOOK: a CLC message starts the rendezvous; false: it is refused */
	uint32_t diag;      /* reason of plain TCP: enum clc_diag */
	const char *detail; /* of diag; NULL: struct tcp_option has the reason */
};

const struct peer_mode *peer_mode(enum config_kind, enum smcr_peer_kind, enum tcp_option_state);
/* Whether a service with this peer marks its sockets. */
static inline bool
peer_mode_wants_option(enum smcr_peer_kind peer)
{
	return peer != SMCR_PEER_SMCRD;
}
/* The configured word: "smcrd", "linux", "auto". */
const char *peer_mode_word(enum smcr_peer_kind);
