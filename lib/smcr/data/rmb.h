/* RMBs: memory that a peer may write (RFC 7609 2.1, 4). A local RMB has up to 255 elements of one size and is
 * registered on every link of its group. A remote RMB describes one of the peer's. Both belong to their link group. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "rnic/unit.h"
#include "smcr/data/window.h"
#include "smcr/smcr.h"
#include "smcr/state/link.h"

struct lgr;

enum rmb_state {
	RMB_NEW,       /* created; the peer does not know it on all links */
	RMB_CONFIRMED, /* elements may be used */
	RMB_DELETING,  /* DELETE RKEY was sent: elements may not be used */
	RMB_STATE_CNT,
};

enum rmb_elem_state {
	RMB_ELEM_FREE,
	RMB_ELEM_USED,
	RMB_ELEM_COOLING,     /* free, but data may still arrive over a link that its connection has left */
	RMB_ELEM_QUARANTINED, /* the peer has not released it */
};

struct rmb_elem {
	enum rmb_elem_state state;
	bool reused;     /* was used before */
	bool rests;      /* no data for it since the last rmb_give_back */
	int64_t cool_ns; /* RMB_ELEM_COOLING: end of that state */
	/* RMB_ELEM_QUARANTINED: our alert token and the peer's element of its last connection */
	uint32_t token;
	uint32_t peer_rmb; /* its number, 0 = not known */
	uint8_t peer_idx;
};

struct rmb {
	struct list_node node; /* lgr->rmbs */
	struct lgr *lgr;
	uint32_t number; /* within the group, from 1 */
	enum rmb_state state;
	uint32_t elem_size;
	uint32_t elem_cnt;    /* 1..255 */
	uint64_t free_map[4]; /* bit idx - 1 */
	uint32_t used;        /* elements not free, including quarantined ones */
	uint32_t spare;       /* of these, granted ones that no OPEN has taken (grant.h) */
	uint32_t quarantined, cooling;
	uint8_t *buf;                   /* elem_size * elem_cnt bytes */
	struct rnic_mr *mr[LINK_SLOTS]; /* by link slot */
	struct rnic_unit *units;        /* element idx (1..elem_cnt) at idx - 1; it counts since its allocation */
	int64_t idle_since_ns;          /* when the last one that is not spare was freed */
	struct rmb_elem elem[];
};

/* Creates an RMB, registered on every link of the group that is set up. NULL when out of memory or over a limit. */
struct rmb *rmb_new(struct lgr *, uint32_t elem_size, uint32_t elem_cnt);
/* Requires no element in use, or the end of the group. Frees it, if necessary with the last of the ending links. */
void rmb_free(struct rmb *);
/* The only function that changes the state: asserts that it is legal, logs it (debug). why: static text or NULL. */
void rmb_set_state(struct rmb *, enum rmb_state, const char *why);
extern const struct state_row rmb_states[]; /* by enum rmb_state */
int rmb_register(struct rmb *, struct link *);
/* The link's queue pair has ended: deregisters all RMBs of the group for it. */
void rmb_deregister_all(struct lgr *, struct link *);

/* The confirmed RMB with a free element of the requested size, or the next larger if any is allowed; NULL: none. */
struct rmb *rmb_find_place(const struct lgr *, const struct smcr_open *want);
/* Allocates a zeroed element, even before the RMB is confirmed (first contact): its index from 1; 0: none is free. */
uint8_t rmb_elem_get_from(struct rmb *);
/* Frees it; it is zeroed before its next use. */
void rmb_elem_put(struct rmb *, uint8_t idx);
/* Frees elements whose cooling has ended. */
void rmb_cool_down(struct lgr *);
/* Returns unneeded pages to the kernel: those of free elements, and of connections without unread data that
 * received none since the last call; not the first one with an eye catcher. Not while devices pin memory or unannounced
 * data is possible. */
void rmb_give_back(struct lgr *);
/* Records that the first `len` bytes of the element may have been written. */
void rmb_elem_dirty(struct rmb *, uint8_t idx, uint32_t len);
/* Writes the eye catcher (4.2), in groups that use one, before the peer may know the element. */
void rmb_elem_mark(struct rmb *, uint8_t idx);
/* The eye catcher is intact (4.4.1); always true in groups without one. */
bool rmb_elem_intact(const struct rmb *, uint8_t idx);

/* The peer has left this link for the element: refuses late writes over it (4.6), if the device can (rnic_mr.deny). */
void rmb_elem_deny(struct rmb *, uint8_t idx, const struct link *);
/* The peer still uses the link: its connections left it in order and may return. */
void rmb_allow_all(struct lgr *, const struct link *);
bool rmb_elem_denied(const struct rmb *, uint8_t idx, const struct link *);

enum remote_rmb_state {
	REMOTE_RMB_CONFIRMED,
	REMOTE_RMB_CONTINUES, /* its CONFIRM RKEY continues in CONTINUATIONs */
	REMOTE_RMB_LEFT,      /* not in the group: freed with its last user */
	REMOTE_RMB_STATE_CNT,
};

/* A remote RMB: RToken (rkey and address) on each link. In the group until the peer deletes it or the group ends. Its
 * memory stays until the last connection with an element of it releases that: a stale one finds no RToken. */
struct remote_rmb {
	struct list_node node; /* lgr->remote_rmbs */
	struct lgr *lgr;
	uint32_t number;
	enum remote_rmb_state state;
	uint32_t elem_size; /* as in CLC; 0 until first used */

	struct rtoken {
		bool known;
		uint32_t rkey;
		uint64_t addr;
	} on[LINK_SLOTS];

	uint32_t conn_id[256]; /* by element index: our connection that uses it, 0 = free */
	uint32_t used;         /* connections with an element */
	bool quarantined;      /* elements in quarantine may wait for its end */
};

/* The only function that changes the state, as rmb_set_state. */
void remote_rmb_set_state(struct remote_rmb *, enum remote_rmb_state, const char *why);
/* The remote RMB with this RToken or, when addr is NULL, the first one with this rkey: several may be one region. */
struct remote_rmb *remote_rmb_find(struct lgr *, const struct link *, uint32_t rkey, const uint64_t *addr);
/* Adds one, or returns the one with this RToken. NULL when the group has 255 or memory is out. */
struct remote_rmb *remote_rmb_add(struct lgr *, const struct link *, uint32_t rkey, uint64_t addr);
/* Removes it and its RTokens from the group. */
void remote_rmb_free(struct lgr *, struct remote_rmb *);
/* The connection claims the element; another one that still has it loses the element, not its reference. */
void remote_rmb_claim(struct remote_rmb *, uint8_t idx, uint32_t conn_id);
/* Ends writes into the element by this connection, which has claimed it before. */
void remote_rmb_release(struct remote_rmb *, uint8_t idx, uint32_t conn_id);

/* Quarantine: elements that a peer may still write although their connection ended here without its C or A (RFC 7609
 * 4.4.2). Such an element is not reused; it records its connection until the peer releases it. That is a late C or A,
 * the end of the peer's RMB that the connection wrote into (DELETE RKEY, maybe before the connection ended), or reuse
 * of the peer's element. The end of the group frees the rest. A group with quarantine_max of them takes no new
 * connection until some are released, and ends with its last connection. */
/* Quarantines the element of an ended connection. peer_rmb: the RMB it wrote into, NULL if it was never known. */
void quarantine_elem(struct rmb *, uint8_t idx, uint32_t token, struct remote_rmb *peer_rmb, uint8_t peer_idx);
/* A CDC message with these flags came for an ended connection. True when it freed an element. */
bool quarantine_take_flags(struct lgr *, uint32_t token, uint8_t conn_flags);
/* The peer reassigns its element; 0: its RMB was deleted with all elements. */
void quarantine_release(struct lgr *, const struct remote_rmb *, uint8_t peer_idx);
bool quarantine_is_full(const struct lgr *);
