/* The receive direction of a connection. Positions are byte counts since the start of the stream (cursor.h). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "smcr/data/cursor.h"

struct link;

struct conn_rx {
	struct cursor_space space; /* of our element */
	uint64_t head;             /* the peer's producer cursor */
	uint64_t tail;             /* consumed by the user */
	uint64_t announced;        /* consumer cursor in our last CDC */
	uint64_t urgent;           /* position one past the urgent byte, 0 = none */
	uint16_t seq;              /* of the last CDC received */
	uint8_t link;              /* number of the link that the peer sends over, 0 = not known yet */
	bool any;                  /* a CDC came */
	bool blocked;              /* B in the peer's last CDC */
	bool update_req;           /* R in the peer's last CDC */
};

/*
 * One CDC message of the peer, as it arrived. False: a failover validation message that is ahead of what we have; it counts only
 * when the completions of all devices are handled, as `last` says (4.6.1).
 */
bool conn_rx_cdc(struct link *, const uint8_t *buf, size_t len, bool last);
