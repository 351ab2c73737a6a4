/*
 * A stand-in for the SMC-R engine (smcr.h) and the soft iWARP device: two connections of one process find each other by
 * 16-byte messages on the middle and share memory. Lets the daemon be tested apart from the protocol, and makes every
 * turn of the rendezvous available on request. Protocol timers are short. One engine at a time.
 *
 * Message: "FAKE", type, flags, 2 x 0, connection id or diagnosis (4), 4 x 0.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "smcr/smcr.h"

#define FAKE_MSG_LEN 16

/* Its short timers. */
void smcr_config_init(struct smcr_config *);

enum fake_msg {
	FAKE_PROPOSAL = 1,
	FAKE_ACCEPT,
	FAKE_CONFIRM,
	FAKE_DECLINE,
};

enum {
	FAKE_F_PREWARM = 1,
	FAKE_F_ASKS = 2, /* of a Proposal with it: for the server behind */
	FAKE_F_SYNC = 1, /* of a Decline */
};

/* What the engine is to do; zero is the ordinary life. */
struct fake_knobs {
	uint32_t client_declines; /* diagnosis of a Decline sent in place of the Proposal */
	uint32_t server_declines; /* in place of the Accept */
	unsigned decline_cnt;     /* so often, 0 = always */
	bool out_of_sync;         /* these Declines say so */
	bool late_declines;       /* behind ours the peer's Decline may come */
	bool open_fails;          /* smcr_open: no connection is free */
	bool busy;                /* smcr_idle is never true */
	unsigned device_turns;    /* so many turns until smcr_has_devices is false */
	bool late_device;         /* the address of the device "late" is there */
	bool no_link;             /* smcr_test_link: there is none */
	bool link_dies;           /* it is lost while it is tested */
	unsigned test_turns;      /* so many looks until the TEST LINK is answered */
	int64_t rtt_ns;           /* of all groups; of one half of it */
	int64_t held_off_ns;      /* of every peer */
};
extern struct fake_knobs fake;

/* What was seen. */
struct fake_seen {
	unsigned opens, aborts, closes, declines, tests, hold_offs_ended;
	bool insisted;          /* the last one opened */
	struct smcr_config cfg; /* the last one */
	char retried[64];       /* smcr_retry: the key; "*": all */
};
extern struct fake_seen fake_seen;

/* What smcr_set_dial_policy was given. */
struct fake_dial_policy {
	bool (*may)(void *ctx, const struct rnic_gid *to, const struct smcr_identity *middle);
	void *ctx;
};
extern struct fake_dial_policy fake_dial_policy;

/* A message as it stands on the middle, for a test that plays the other gateway. */
void fake_encode(uint8_t msg[FAKE_MSG_LEN], enum fake_msg, uint8_t flags, uint32_t value);
