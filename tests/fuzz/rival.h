/*
 * The peer that lies. It has devices of its own on the fabric, with queue pairs that carry what it says: so it knows
 * the protocol, builds each message right from what it and the engine have said so far, and then changes some fields of
 * it (twist.h). It is several peers at once: each group that it takes part in has a peer id.
 */
#pragma once

#include "arena.h"
#include "twist.h"
#include "wire/cdc.h"
#include "wire/clc.h"
#include "wire/llc.h"
#include "wire/open.h"

#define RIVAL_DEVS 4
#define RIVAL_MIDS 8
#define RIVAL_GROUPS 4
#define RIVAL_LINKS 24
#define RIVAL_RQ 16
#define RIVAL_RMBS 2
#define RIVAL_ELEM (16u * 1024)
#define RIVAL_TODO 16
#define RIVAL_TOKEN 0x70000000u /* its alert tokens: this, and the connection's slot */
#define RIVAL_CLC 4096          /* bytes under way to the engine, per connection */
#define RIVAL_RECV 512          /* a longer message of the engine breaks the link */
#define RIVAL_INLINE 64
#define RIVAL_SEND LLC_MAX_SENT_LEN
#define RIVAL_TICKET 77
#define RIVAL_GRANTS 32
#define RIVAL_LONGEST (LLC_MAX_LEN + 1)

struct rival_link;

struct rival_group {
	uint8_t peer_id[8];
	uint64_t token;
	struct rival_link *newest; /* being added, or added last */
	unsigned rmbs_named;
};

/* A queue pair of ours towards the engine. */
struct rival_link {
	bool used, connecting, connected, broken;
	bool slow;     /* does not take what arrives */
	bool confirms; /* CONFIRM LINK goes out as soon as it is connected */
	struct rival *of;
	struct rival_group *group;
	enum smcr_role role; /* the engine's */
	unsigned dev;
	uint8_t number;
	struct rnic_remote remote;
	struct rnic_pd *pd;
	struct rnic_qp *qp;
	struct rnic_mr *recv_mr, *rmb[RIVAL_RMBS];
	uint8_t recv[RIVAL_RQ][RIVAL_RECV];
	struct {
		size_t len;
		uint8_t b[RIVAL_RECV];
	} todo[RIVAL_TODO]; /* LLC messages of the engine, not dealt with yet */
	unsigned todo_cnt;
};

/* A connection of the engine, and the TCP connection beneath it. */
struct rival_mid {
	struct arena_user user;
	struct rival *of;
	unsigned slot;
	struct smcr_conn *conn; /* NULL: free */
	enum smcr_role role;    /* the engine's */
	struct rival_group *group;
	bool hold; /* CLC bytes to the engine stay where they are */
	bool established, fallen, closed;
	uint8_t out[RIVAL_CLC]; /* to the engine */
	size_t out_len;
	uint8_t in[512]; /* from it */
	size_t in_len;
	bool has_proposal, has_theirs, contact;
	unsigned transports;       /* its Proposal's, or Accept's */
	struct clc_v2_offer offer; /* its Proposal's */
	struct clc_accept theirs;  /* its Accept or Confirm */
	struct rival_link *link;
	uint16_t seq;
	uint64_t produced, consumed; /* positions: ours in its element, what we took of ours */
	struct cdc_msg last;         /* the engine's last CDC message */
	bool has_last;
};

enum {
	RIVAL_ADMITS = 1 << 0,        /* the engine's user admits, reads, and releases what has ended, by itself */
	RIVAL_ANSWERS = 1 << 1,       /* TEST LINK is answered by itself */
	RIVAL_NO_EXT = 1 << 2,        /* it is Linux: no extension in CLC messages */
	RIVAL_EYE = 1 << 3,           /* no flags in CONFIRM LINK */
	RIVAL_LINKS_8 = 1 << 4,       /* tells so many links at most */
	RIVAL_CONNECTS_LATE = 1 << 5, /* queue pairs only by a step */
	RIVAL_OPENS = 1 << 6,         /* connections open over links, by both sides */
	RIVAL_V2 = 1 << 8,            /* it is Linux, of version 2 */
	RIVAL_LITTLE = 1 << 9,        /* and its 16-bit numbers are little-endian */
};

struct rival {
	struct arena *arena;
	unsigned flags;
	struct rnic_dev *dev[RIVAL_DEVS];
	struct rival_group group[RIVAL_GROUPS];
	struct rival_mid mid[RIVAL_MIDS];
	struct rival_link link[RIVAL_LINKS];
	struct twists twists;
	uint8_t rmb[RIVAL_RMBS][RIVAL_MIDS * RIVAL_ELEM];
	uint8_t list[LLC_MAX_PAIRS * LLC_PAIR_LEN]; /* of the LLC message that is being built */
	uint8_t last_llc[RIVAL_SEND];               /* for sending it again */
	size_t last_llc_len;
	struct open_elem granted[RIVAL_GRANTS]; /* by the engine, the last ones */
	unsigned granted_cnt;
	struct open_elem opened; /* of these the one in the last OPEN, */
	struct rival_link *opened_over;
	unsigned opener; /* and the slot of its own element */
};

/* On the heap: some of its arrays are large. */
struct rival *rival_new(struct arena *, unsigned flags);
void rival_free(struct rival *);
/* CLC bytes, messages, events of its devices: true when something happened. */
bool rival_turn(struct rival *);

/* -- connections and CLC -- */
/* group: its number, modulo; and bits 5 to 7: over IPv6, by another key, from another address. */
void rival_open(struct rival_mid *, enum smcr_role of_engine, unsigned group, unsigned size_code, bool prewarm);
/* The same over a link, as the engine's user. */
void rival_open_over_link(struct rival_mid *, unsigned group, unsigned size_code);
/* The engine's end of what it was told to open; NULL: no slot is free for it. */
struct rival_mid *rival_adopt(struct rival *, struct smcr_conn *);
/* The user of the engine's end. */
void rival_release(struct rival_mid *);
/* The message that is due now, with the pending twists; cut: so many bytes of it are left out at its end. */
void rival_clc_next(struct rival_mid *, bool join, unsigned cut);
void rival_clc(struct rival_mid *, enum clc_type, bool join, unsigned cut);
void rival_clc_bytes(struct rival_mid *, const uint8_t *, size_t len);

/* -- links -- */
struct rival_link *rival_link_new(struct rival *, struct rival_group *, enum smcr_role of_engine, unsigned dev);
/* CLC_TRANSPORT_ bit of a device of ours. */
unsigned rival_transport(const struct rival *, unsigned dev);
/* A device over what the engine can, or has chosen; our first one when there is none. */
unsigned rival_device_for(const struct rival_mid *);
void rival_link_free(struct rival_link *);
/* Towards link->remote; nothing when it is under way already. */
void rival_link_connect(struct rival_link *);
/* The n-th (modulo their number) link that is there, in any state; NULL when there is none. */
struct rival_link *rival_nth_link(struct rival *, unsigned n);
/* Up to RIVAL_LONGEST bytes as they are. */
void rival_send(struct rival_link *, const uint8_t *, size_t len);
void rival_write(struct rival_link *, uint32_t rkey, uint64_t addr, const uint8_t *, size_t len);
/* To another queue pair of its group that works, when this one does not. */
struct rival_link *rival_working(struct rival_link *);

/* -- lies (rival_twist.c): the pending twists change the message -- */
void rival_twist_clc(struct rival *, uint8_t *msg, size_t len);
void rival_twist_llc(struct rival *, uint8_t *msg, size_t len);

/* -- LLC (rival_llc.c) -- */
enum {
	ANSWER_OTHER_DEV = 3, /* bits: which device a new link uses */
	ANSWER_REJECT = 1 << 2,
	ANSWER_NEGATIVE = 1 << 3,
	ANSWER_RETRY = 1 << 4,
};

/* The oldest message of the engine on this link that was not dealt with: answered, or what follows in its exchange,
 * over `over`. False when there is none. */
bool rival_llc_answer(struct rival_link *, struct rival_link *over, unsigned how);
/* A message of this type as it would be right now, or nearly; cnt: of its list in version 2, 0: as many as there are. */
void rival_llc(struct rival_link *, enum llc_type, bool response, unsigned how, unsigned cnt);
unsigned rival_llc_version(const struct rival *);
/* CONFIRM LINK, as the server of a new link. */
void rival_llc_start(struct rival_link *);

/* -- GRANT and OPEN (rival_open.c) -- */
void rival_grant(struct rival_mid *, struct rival_link *over, unsigned cnt);
/* With the n-th element (modulo their number) that the engine granted. */
void rival_say_open(struct rival_mid *, struct rival_link *over, unsigned n, unsigned left);
/* The engine's GRANT or OPEN. */
void rival_heard_open(struct rival_link *, struct span);

/* -- CDC -- */
void rival_cdc(struct rival_mid *, struct rival_link *over, uint8_t prod_flags, uint8_t conn_flags, uint32_t produce);
