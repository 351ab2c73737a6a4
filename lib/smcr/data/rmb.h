/*
 * RMBs: the memory that a peer may write (RFC 7609 2.1, 4). A local RMB holds
 * up to 255 elements of one size and is registered on every link of its group;
 * a remote RMB is what we know of the peer's. Both belong to their link group.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "rnic/rnic.h"
#include "smcr/data/window.h"
#include "smcr/smcr.h"
#include "smcr/state/link.h"

struct lgr;

enum rmb_state {
	RMB_NEW,       /* made; the peer does not know it on all links */
	RMB_CONFIRMED, /* elements may be used */
	RMB_DELETING,  /* DELETE RKEY is out: elements may not be used */
	RMB_STATE_CNT,
};

enum rmb_elem_state {
	RMB_ELEM_FREE,
	RMB_ELEM_USED,
	RMB_ELEM_COOLING,     /* free, but a link that its connection has left may still bring something for it */
	RMB_ELEM_QUARANTINED, /* the peer has not said that it is done */
};

struct rmb_elem {
	enum rmb_elem_state state;
	uint32_t dirty;  /* bytes from the start of the element that may be non-zero */
	bool reused;     /* was used before */
	bool rests;      /* nothing has come for it since rmb_give_back looked last */
	int64_t cool_ns; /* RMB_ELEM_COOLING: until then */
	/* RMB_ELEM_QUARANTINED: our alert token, and the peer's element, of the connection that had it */
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
	uint32_t used;        /* elements not free, quarantined included */
	uint32_t quarantined, cooling;
	uint8_t *buf;                   /* elem_size * elem_cnt bytes */
	struct rnic_mr *mr[LINK_SLOTS]; /* by link slot */
	uint64_t *placed; /* elem_cnt: bytes that devices which count have written into each since it was given out */
	int64_t idle_since_ns; /* when used became 0 */
	struct rmb_elem elem[];
};

/* Makes an RMB and registers it on every link of the group that is set up. NULL when memory is out, or all RMBs together
 * would have more than rmb_bytes_max. */
struct rmb *rmb_new(struct lgr *, uint32_t elem_size, uint32_t elem_cnt);
/* No element is in use, or the group ends. Frees it, if need be with the last of the links that are leaving. */
void rmb_free(struct rmb *);
/* The only place where the state changes: asserts that the change is a legal one (deletion may be refused, or its outcome not
 * be known), and writes it to the log at level debug. why is static text or NULL. */
void rmb_set_state(struct rmb *, enum rmb_state, const char *why);
const char *rmb_state_str(enum rmb_state);
int rmb_register(struct rmb *, struct link *);
/* Its queue pair is no more: nothing of the group is registered for it then. */
void rmb_deregister_all(struct lgr *, struct link *);

/* The confirmed RMB of the group with a free element of the size that is wanted, or, when any would do, the least one above it;
 * NULL: none. */
struct rmb *rmb_find_place(const struct lgr *, struct window_want);
/* An element in such an RMB: its index from 1, zeroed; 0 when there is none. */
uint8_t rmb_elem_get(struct lgr *, struct window_want, struct rmb **);
/* A free element of this very RMB, confirmed or not (first contact confirms the first RMB implicitly). */
uint8_t rmb_elem_get_from(struct rmb *);
/* Gives it back: zeroed before its next use. */
void rmb_elem_put(struct rmb *, uint8_t idx, int64_t now_ns);
/* Elements that have cooled down are free. */
void rmb_cool_down(struct lgr *);
/* Gives the kernel the pages back that elements have used and do not need: those of free elements, and of connections that have
 * consumed everything and had no data since the last call, but the first page. Not where devices pin memory, nor where
 * something may have been written that no message has told of yet. */
void rmb_give_back(struct lgr *);
/* First byte of element idx (1..elem_cnt). */
uint8_t *rmb_elem_ptr(const struct rmb *, uint8_t idx);
/* Notes that the first `len` bytes of the element may have been written. */
void rmb_elem_dirty(struct rmb *, uint8_t idx, uint32_t len);
/* Writes the eye catcher (4.2), in groups that use them: before the peer may know of the element. */
void rmb_elem_mark(struct rmb *, uint8_t idx);
/* The eye catcher is still there (4.4.1); always true in groups without. */
bool rmb_elem_intact(const struct rmb *, uint8_t idx);

/* The peer has left this link for the element: a write that still comes over it is refused (4.6; where the device
 * can do that, see rnic_mr.deny). */
void rmb_elem_deny(struct rmb *, uint8_t idx, const struct link *);
/* The peer still uses the link: what has left it did so in peace, and may come back. */
void rmb_allow_all(struct lgr *, const struct link *);
bool rmb_elem_denied(const struct rmb *, uint8_t idx, const struct link *);

enum remote_rmb_state {
	REMOTE_RMB_CONFIRMED,
	REMOTE_RMB_CONTINUES, /* the peer's CONFIRM RKEY for it goes on in CONTINUATIONs */
	REMOTE_RMB_LEFT,      /* not of the group: freed with its last user */
	REMOTE_RMB_STATE_CNT,
};

/*
 * The peer's RMB: RToken (rkey and address) on each link. It belongs to the group until the peer takes it back or the
 * group ends, and its memory stays until the last connection that holds an element of it has let go: a connection that
 * was forgotten finds no RToken, not freed memory.
 */
struct remote_rmb {
	struct list_node node; /* lgr->remote_rmbs */
	struct lgr *lgr;
	uint32_t number;
	enum remote_rmb_state state;
	uint32_t elem_size; /* as CLC says; 0 until first used */

	struct {
		bool known;
		uint32_t rkey;
		uint64_t addr;
	} on[LINK_SLOTS];

	uint32_t conn_id[256]; /* by element index: our connection that uses it, 0 = free */
	uint32_t used;         /* connections that hold an element */
	bool quarantined;      /* there may be elements in quarantine that wait for its end */
};

/* The only place where the state changes, as rmb_set_state. */
void remote_rmb_set_state(struct remote_rmb *, enum remote_rmb_state, const char *why);
/* The one with this very RToken, or, when addr is NULL, the first one with this rkey: a peer may register several as one
 * region. */
struct remote_rmb *remote_rmb_find(struct lgr *, const struct link *, uint32_t rkey, const uint64_t *addr);
/* Adds, or finds the one with this very RToken. NULL when the group has its 255 already or memory is out. */
struct remote_rmb *remote_rmb_add(struct lgr *, const struct link *, uint32_t rkey, uint64_t addr);
/* The group has it no more, nor any RToken of it. */
void remote_rmb_free(struct lgr *, struct remote_rmb *);
/* The connection holds the element from now on; another one that still has it loses its place, not its hold. */
void remote_rmb_claim(struct remote_rmb *, uint8_t idx, uint32_t conn_id);
/* No more writes into the element by this connection, which has claimed it once. */
void remote_rmb_release(struct remote_rmb *, uint8_t idx, uint32_t conn_id);

/*
 * Quarantine: elements that a peer may still write into though their connection has ended here, as it never said C or A
 * (RFC 7609 4.4.2). Nobody else may have such an element, so what is remembered of the connection waits in the element for a
 * sign that the peer is through with it, too: a late C or A, the end of the peer's RMB that the connection wrote into (DELETE
 * RKEY; it may have come before the connection has ended), or another use of that very element. The end of the group frees
 * the rest. A group with quarantine_max of them takes no new connection until some come back, and ends when its last one
 * has left.
 */
/* Puts the element of an ended connection there. peer_rmb: what it wrote into, NULL when it never knew. */
void quarantine_elem(struct rmb *, uint8_t idx, uint32_t token, struct remote_rmb *peer_rmb, uint8_t peer_idx);
/* A CDC message with these flags came for a connection that is no more. True when an element was freed by it. */
bool quarantine_take_flags(struct lgr *, uint32_t token, uint8_t conn_flags);
/* The peer gives this element of its to another connection; 0: its RMB is no more, nor any element. */
void quarantine_release(struct lgr *, const struct remote_rmb *, uint8_t peer_idx);
bool quarantine_is_full(const struct lgr *);
