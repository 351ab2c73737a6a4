/* Differences between peers of link groups. A peer is foreign when its CLC messages lack smcrd's extension (clc.h):
 * Linux, or a peer of Linux. Each deviation for a foreign peer has a field here; doc/linux.md lists them for users. */
#pragma once

#include <stdbool.h>

#include "wire/clc.h"

struct dialect {
	bool foreign;
	/* 16-bit numbers of version 2 in its machine's byte order, as its first CONFIRM LINK shows (llc_link.c). */
	bool little;
	/* RFC 7609 3.5.2.3 lets a client's Confirm name any link of the group. Linux takes its RToken for the link that
	 * Linux's own Accept named (smc_listen_rdma_finish). */
	bool confirm_repeats_link;
	/* 4.6.1 requires a validation for each connection that moves to another link. Linux sends none once either side
	 * has begun to close (smc_switch_conns): it continues with its next message. Linux does not repeat what it sent
	 * over the lost link, so our close waits until it has moved (failover.c). */
	bool closing_moves_unasked;
	/* Requests an RKEY only once, and falls back when refused (smc_llc_do_confirm_rkey). Its request has crossed
	 * ours, which it handles after its own response. */
	bool rkeys_asked_once;
	/* 3.5.5.1.4 requires a server to delete a link when a client reports it lost. Linux does so when all sends over
	 * it are complete, and blocks the group's exchanges and new connections until then
	 * (smc_llc_process_srv_delete_link). A link that Linux itself finds lost is deleted at once. */
	bool deletes_when_complete;
	/* 3.5.5.2.2 allows a negative response to DELETE RKEY. Linux ignores it: its RMB is freed (smc_buf_free). */
	bool delete_rkey_is_final;
	/* A consumer cursor lost with its link is repeated (4.6.1). Linux repeats it with its next message, for which
	 * it needs data to send or to consume (smc_tx_pending, smc_tx_consumer_update). */
	bool cursor_said_once;
	/* A repetition after a failover carries lower producer cursors. Linux ignores them, except wrap 0 after another
	 * wrap, which it takes for the wrap after 65535 (smc_cdc_cursor_to_host), counting bytes that do not exist. */
	bool wrap_0_is_next;
	/* One rendezvous at a time in each role (smc_server_lgr_pending, smc_client_lgr_pending): the others wait. */
	bool one_rendezvous;
	/* A CLC connection closed before the Confirm ends the connection. Linux does not notice that its Confirm cannot
	 * be sent (smc_clc_send_confirm reads an error that sendmsg has consumed). At later contact its connection then
	 * waits for data, and its peer has no token to abort it. */
	bool reset_unseen;
	/* Both ends are smcrd and support CDC_STARTED_OVER (doc/engine.md): empty elements start over. */
	bool starts_over;
	/* Both ends are smcrd and support CDC_OPERATOR: an abort by an operator is marked. */
	bool says_operator;
	/* Both ends are smcrd and support it: the CLC connection of a cleanly closed connection may be reset. */
	bool rst_after_c;
	/* Both ends are smcrd and support it: connections open over a link, without a CLC connection (doc/open.md). */
	bool opens;
};

/* A message of the group's peer lacked the extension. */
static inline void
dialect_no_extension(struct dialect *d)
{
	d->foreign = true;
	d->confirm_repeats_link = true;
	d->closing_moves_unasked = true;
	d->rkeys_asked_once = true;
	d->deletes_when_complete = true;
	d->delete_rkey_is_final = true;
	d->wrap_0_is_next = true;
	d->one_rendezvous = true;
	d->reset_unseen = true;
	d->cursor_said_once = true;
}

/* For a new group: from our extension in the peer's CLC messages, and the features that we support. */
static inline void
dialect_choose(struct dialect *d, const struct clc_smcrd_ext *ext, uint8_t features)
{
	uint8_t common = ext->present ? ext->features & features : 0;

	*d = (struct dialect){
		.starts_over = (common & CLC_FEATURE_START_OVER) != 0,
		.says_operator = (common & CLC_FEATURE_OPERATOR) != 0,
		.rst_after_c = (common & CLC_FEATURE_RST_AFTER_C) != 0,
		.opens = (common & CLC_FEATURE_OPEN) != 0,
	};
	if (!ext->present)
		dialect_no_extension(d);
}
