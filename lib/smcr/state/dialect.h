/*
 * How the peer of a link group speaks where peers differ. A peer is foreign when its CLC messages have no part of smcrd's
 * (clc.h): Linux, or what talks to Linux. What is done otherwise for a foreign peer hangs on a field here, and all fields are
 * set in one place, dialect.c. doc/linux.md has the list for people, with what any peer may do.
 */
#pragma once

#include <stdbool.h>

#include "wire/clc.h"

struct dialect {
	bool foreign;
	/* SMC version 2 has 16-bit numbers in LLC messages. Linux writes and reads them in the order of its machine; this is
	 * learned from its first CONFIRM LINK (llc_link.c). */
	bool little;
	/* RFC 7609 3.5.2.3 lets a client's Confirm name any link of the group. Linux takes the RToken in it for that of the
	 * link that its own Accept named (smc_listen_rdma_finish). */
	bool confirm_repeats_link;
	/* 4.6.1 has each connection validated that moves to another link. Linux asks nothing for one whose end has begun, by
	 * whichever side (smc_switch_conns): it goes on with its next message. What it has said over the lost link is not
	 * repeated, so our own word of the end waits until it has moved (failover.c). */
	bool closing_moves_unasked;
	/* Asks but once for an RKEY, and falls back when that is refused (smc_llc_do_confirm_rkey); what it asks has crossed ours,
	 * which it takes up when it has its answer. */
	bool rkeys_asked_once;
	/* 3.5.5.1.4 has a server delete a link when a client says that it is lost. Linux does that when all that it has sent over it
	 * is complete, and no exchange of the group, nor any new connection, gets further before (smc_llc_process_srv_delete_link);
	 * of a link that it finds lost itself it waits for nothing. */
	bool deletes_when_complete;
	/* 3.5.5.2.2 lets DELETE RKEY be refused. Linux does not mind: its RMB is gone, or somebody else's, whatever the answer
	 * (smc_buf_free). */
	bool delete_rkey_is_final;
	/* A consumer cursor that is lost with its link is said again (4.6.1). Linux says it with the next message, for which it
	 * needs data to send, or data to consume (smc_tx_pending, smc_tx_consumer_update). */
	bool cursor_said_once;
	/* A repetition after a failover tells lower producer cursors than before. Linux passes over them, but takes one with
	 * wrap 0 behind another wrap for the next one after wrap 65535 (smc_cdc_cursor_to_host), and counts bytes that are not
	 * there. */
	bool wrap_0_is_next;
	/* Makes one rendezvous at a time in each role, under a lock (smc_server_lgr_pending, smc_client_lgr_pending): of many that
	 * begin at once, the last one's Accept or Confirm comes when all others are through. */
	bool one_rendezvous;
	/* The middle that ends before the Confirm ends the connection. Linux does not notice that its Confirm cannot be sent
	 * (smc_clc_send_confirm reads an error that sendmsg has taken): at later contact it has a connection then, which waits for
	 * data, and nobody knows its token to abort it. */
	bool reset_unseen;
	/* Between two smcrd that both know CDC_STARTED_OVER (doc/engine.md): a writer of which everything was consumed goes on at the
	 * start of the element. */
	bool starts_over;
	/* Between two smcrd that both know CDC_OPERATOR: an abort that an operator wanted says so. */
	bool says_operator;
	/* Between two smcrd that both know it: the middle of a connection that has ended in order may be reset. */
	bool rst_after_c;
};

/* When a group is made: from what its peer's CLC messages have of our extension, and the features that we know. */
void dialect_choose(struct dialect *, const struct clc_smcrd_ext *, uint8_t features);
/* A message of the peer of a group came without. */
void dialect_no_extension(struct dialect *);
