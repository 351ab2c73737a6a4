/*
 * The SMC-R engine (RFC 7609): peers, link groups, links, RMBs, connections.
 *
 * It does no I/O and reads no clock. Its user (the daemon, or a test) hands in
 * the time, bytes from TCP connections and RNIC devices, and pulls out what
 * happened: nothing calls back but the dial policy and the trace, which may not
 * call the engine, so nothing re-enters. Inside, a lower part tells a higher one
 * by a mark (state/marks.h). One engine belongs to one thread (worker); nothing
 * is shared between engines.
 *
 * One turn of the user's loop:
 *	smcr_set_now(eng, now)			before any other call of this turn: bytes, FINs, new connections
 *	smcr_poll(eng, now)			completions, device events, timers
 *	smcr_flush_unblocked(eng)		what has waited for a window
 *	while ((c = smcr_next_event(eng, &ev)))	react: read, write, close ...
 *	smcr_flush(eng)				post what is due, flush the devices
 *	sleep until smcr_deadline(eng) or readiness
 *
 * One proxied connection ("middle" = its SMC-R TCP connection):
 *	smcr_open, then move CLC bytes by smcr_clc_want/_input/_output until
 *	SMCR_EV_ESTABLISHED or SMCR_EV_FALLBACK; data by smcr_tx_* and
 *	smcr_rx_*; end by smcr_shutdown_wr, smcr_close, smcr_reset or smcr_abort; after
 *	SMCR_EV_CLOSED (or FALLBACK) smcr_release. A struct smcr_conn is valid
 *	until smcr_release, whatever happens to it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "base/histogram.h"
#include "base/rng.h"
#include "rnic/rnic.h"
#include "wire/clc.h"

struct smcr;
struct smcr_conn;

#define SMCR_LINKS_MAX 8 /* symmetric links a group; one asymmetric beside them */
#define SMCR_DEVS_MAX 16
#define SMCR_CONNS_PER_GROUP 255 /* RFC 7609 2.1 */
#define SMCR_RMBS_PER_GROUP 255
#define SMCR_ELEM_MIN (16u * 1024)
#define SMCR_ELEM_RFC_MAX (512u * 1024) /* A.2.3: size codes 0..5 */
#define SMCR_ELEM_MAX (4096u * 1024)    /* between two smcrd, which have always taken larger ones */

enum smcr_role { SMCR_CLIENT, SMCR_SERVER };

struct smcr_config {
	uint64_t rmb_bytes_max;    /* of all RMBs of this engine */
	uint32_t conns_max;        /* connections of this engine */
	uint32_t conns_per_group;  /* 1..255 */
	uint32_t quarantine_max;   /* with more elements that the peer has not let go (4.4.2) a group takes nobody */
	uint32_t rmb_elems;        /* most elements of one RMB, 1..255; the first RMB of a size starts smaller */
	uint32_t links_max;        /* symmetric links of a group, 1..8; the smaller of both ends' counts */
	uint32_t sndbuf_size;      /* bytes of a send ring; 0: as it fits the peer's element (data/window.h) */
	uint64_t sndbuf_bytes_max; /* of all send rings of this engine */
	uint64_t group_bytes_max;  /* of RMBs and send rings of a group: what each of its links has registered */
	uint32_t sq_depth;         /* per link */
	uint32_t rq_depth;
	uint16_t groups_per_addr; /* link groups of one role with one address that have room for another connection */
	uint8_t features;         /* CLC_FEATURE_ bits: what other smcrd are told that we know */
	bool rfc_cursors;         /* cursors 4..size with eye catcher (RFC 7609) instead of Linux's 0..size */
	/* SMC version 2, with peers that are no smcrd */
	uint8_t smc_version; /* 1 or 2: that alone; 0: any. Without a UEID there is no version 2 */
	uint8_t ueid_cnt;
	struct clc_eid ueids[CLC_MAX_EIDS];
	/* All in milliseconds. */
	uint32_t clc_ms;            /* each CLC message awaited (C.5) */
	uint32_t llc_ms;            /* each LLC response awaited (C.7) */
	uint32_t confirm_link_ms;   /* client: first CONFIRM LINK awaited */
	uint32_t add_link_ms;       /* client: ADD LINK awaited after first contact */
	uint32_t add_link_retry_ms; /* a server tries a missing link again (C.8), a client asks for one; doubles */
	uint32_t add_link_retry_max_ms;
	uint32_t keepalive_ms; /* TEST LINK when idle this long (4.5.3); 0 = off */
	uint32_t keepalive_answer_ms;
	uint32_t last_link_ms;  /* a silent link that no other link can stand in for is kept for this long */
	uint32_t group_idle_ms; /* server ends a group without connections (3.5.4); the client waits 10 s longer */
	uint32_t rmb_idle_ms;   /* RMB without elements in use is deleted */
	uint32_t close_ms;      /* PeerCloseWait1/2 after both sides closed, PeerFinCloseWait (4.8.1) */
	uint32_t abort_ms;      /* PeerAbortWait (4.8.2) */
	uint32_t fin_grace_ms;  /* FIN on the middle before D, C or A */
	uint32_t holdoff_ms;    /* first back-off after a failed first contact, doubles */
	uint32_t holdoff_max_ms;

	/* Ids of groups: this one, then each so much further, so that the engines of one user have none in common. */
	uint32_t group_first;
	uint32_t group_step;
	uint8_t host[CLC_HOST_LEN]; /* what a peer of version 2 may show as our host's name; blanks behind */
};

void smcr_config_init(struct smcr_config *);

/* rng is kept, not owned. NULL when memory is out. */
struct smcr *smcr_new(const struct smcr_config *, struct rng *rng, int64_t now_ns);
/* Ends everything at once, without messages; all connections are to be released, and devices that are gone removed, before.
 * The memory of a device that does not end with that (smcr_has_devices) is not given back: the process is to end. */
void smcr_free(struct smcr *);
/* Takes new timer values and limits; what runs is not disturbed. */
void smcr_reconfigure(struct smcr *, const struct smcr_config *);

/* A link of version 2 posts so many receives (rq_depth, if that is less) of this length. */
#define SMCR_V2_RECEIVES 48 /* as many as Linux: a sender waits for the next one */
#define SMCR_V2_MSG_LEN 8192

/* Who is at the other end of a middle, today by its address. A link group belongs to a peer id *and* one of these (owner.h). */
struct smcr_identity {
	uint8_t addr[16]; /* IPv4 mapped into IPv6 */
	uint32_t scope;   /* of a link-local address: the interface */
};

/* Client: may a queue pair of an iWARP device be connected to the address that the server named in its Accept or ADD LINK?
 * middle: who the connection leads to. NULL: to any. May not call the engine. */
void smcr_set_dial_policy(
    struct smcr *, bool (*may)(void *ctx, const struct rnic_gid *to, const struct smcr_identity *middle), void *ctx);

/* Is a link group there, or being made, with a peer at this address: its middle's, or that of a device of its? */
bool smcr_has_peer(const struct smcr *, const uint8_t addr[16]);
/* Server: until when there was a first contact with this address, as far as its group is still there: INT64_MAX while it goes on; 0:
 * never. Meanwhile other connections from there keep their Proposals back. */
int64_t smcr_met_ns(const struct smcr *, const struct smcr_identity *remote);
/* How many first contacts have ended so far: when one does, smcr_met_ns may say something else. */
uint64_t smcr_contacts_over(const struct smcr *);

/* The device is the engine's from now on. -ENOSPC beyond SMCR_DEVS_MAX: it stays the caller's. */
int smcr_add_device(struct smcr *, struct rnic_dev *);
/* Its links go down at once, and it is freed: of a card, once that has let go of its queue pairs. */
void smcr_remove_device(struct smcr *, struct rnic_dev *);
/* Is a device of the engine not freed yet? */
bool smcr_has_devices(const struct smcr *);
/* True once after a device said that its port went up or down, or that it is gone. */
bool smcr_take_device_changes(struct smcr *);
/* The device said that it is gone: its links are down and it gets no others; it is to be removed. */
bool smcr_device_gone(const struct smcr *, const struct rnic_dev *);

/* -- networks -- */

#define SMCR_NETWORKS_MAX 64

/* A network, for the subnet check of 3.5.1.2. */
struct smcr_subnet {
	bool v6;
	uint8_t addr[16]; /* network address; IPv4 in the first 4 bytes */
	uint8_t prefix_len;
};

/* The networks of this host: over RoCE, a server accepts the first contact of a client that has one of them (3.5.1.2). More
 * than SMCR_NETWORKS_MAX are left out. */
void smcr_set_networks(struct smcr *, const struct smcr_subnet *, unsigned cnt);

/* -- the turn -- */

/* A new turn begins: what the engine and its devices wait for counts from this time. A user that opens connections or hands
 * in bytes before smcr_poll calls this first; new timers that start at the time of the last turn would have fired already. */
void smcr_set_now(struct smcr *, int64_t now_ns);
/* How long this host has stood still so far, which now_ns leaves out. Time limits of peers went on meanwhile. */
void smcr_stood_still(struct smcr *, int64_t total_ns);
void smcr_poll(struct smcr *, int64_t now_ns);

enum {
	SMCR_EV_CLC_OUT = 1 << 0,     /* smcr_clc_output has bytes for the middle */
	SMCR_EV_CLC_WANT = 1 << 1,    /* smcr_clc_want changed: read the middle again */
	SMCR_EV_PROPOSAL = 1 << 2,    /* server: a valid Proposal is in; answer by smcr_admit or smcr_abort */
	SMCR_EV_ESTABLISHED = 1 << 3, /* data may flow on SMC-R */
	SMCR_EV_FALLBACK = 1 << 4,    /* the middle carries the data, after pending CLC output; see smcr_clc_leftover */
	SMCR_EV_READABLE = 1 << 5,    /* new bytes, an urgent byte, or the end of the peer's data */
	SMCR_EV_WRITABLE = 1 << 6,    /* smcr_tx_space was 0 and has room again */
	SMCR_EV_CLOSED = 1 << 7,      /* ended: see smcr_closed; reset means RST on every TCP leg */
};

/* The next connection that something happened to, its SMCR_EV_ bits in *events; NULL when there is none. */
struct smcr_conn *smcr_next_event(struct smcr *, unsigned *events);
/* LLC first, then data and CDC round robin over connections, bounded a turn; then flushes the devices and
 * frees what was released. True when work is left that needs another turn at once. */
bool smcr_flush(struct smcr *);
/* Behind smcr_poll: flushes at once when a window has just opened for data that waits for it, or when a peer waits for a cursor of
 * ours. To serve a program takes its time, and nothing is on the way meanwhile. */
void smcr_flush_unblocked(struct smcr *);
/* When smcr_poll has to be called at the latest; INT64_MAX for never. */
int64_t smcr_deadline(const struct smcr *);

/* -- connections -- */

#define SMCR_PREFIXES_MAX 8

/* Who is at the other end of a client's middle, as far as the user knows. A server finds out by itself. */
enum smcr_peer_kind {
	SMCR_PEER_SMCRD, /* one of ours: version 1 with our extension */
	SMCR_PEER_LINUX, /* AF_SMC, z/OS, AIX: versions 1 and 2 as configured, no extension */
	SMCR_PEER_AUTO,  /* either: both are offered */
};

struct smcr_open {
	enum smcr_role role;
	enum smcr_peer_kind peer;
	void *app; /* the user's; smcr_app() gives it back */
	/* RMB element: power of two, SMCR_ELEM_MIN..MAX, or 0: as it fits (data/window.h); then rmb_size_hint, a power of two or 0, is
	 * what connections like this one have turned out to need (smcr_elem_need). */
	uint32_t elem_size, rmb_size_hint;
	int64_t rtt_ns; /* of the middle, for a link group that knows nothing of the path yet; 0: not known */
	/* Client: names the peer for first contact, e.g. its address and port; connections with the same
	 * key wait for one another's first contact. NUL-terminated, copied. */
	char peer_key[64];
	struct smcr_subnet subnet[SMCR_PREFIXES_MAX]; /* that the middle runs over */
	unsigned subnet_cnt;
	struct rnic_gid local_addr;  /* of the middle: its device is preferred */
	struct smcr_identity remote; /* who the middle comes from, or leads to */
	/* Of smcr_prewarm, for an operator who asks: tried though the peer is held off, here or at a peer that is an smcrd. If it
	 * succeeds the hold-off ends; if it fails others are held off neither sooner nor longer. */
	bool insist;
	/* Of smcr_prewarm: the connection is to become established, for a measurement, if the peer serves that. Otherwise it ends
	 * as ever. A server's does if its peer asks for that: then smcr_is_prewarm. */
	bool measure;
	/* Client: what the Proposal tells an smcrd of the connection's way so far (struct clc_smcrd_ext). */
	uint8_t hops;
	uint32_t origin;
};

/* Starts the rendezvous. NULL with *err = -ENOMEM or -EMFILE (conns_max). When SMC-R is impossible from the
 * start (no device, peer held off), the connection comes back at once with SMCR_EV_FALLBACK. */
struct smcr_conn *smcr_open(struct smcr *, const struct smcr_open *, int *err);
void *smcr_app(const struct smcr_conn *);

/* How many bytes to read from the middle now and hand to smcr_clc_input: never more than the message at hand
 * has left, so nothing behind it is swallowed. 0 = do not read. */
size_t smcr_clc_want(const struct smcr_conn *);
void smcr_clc_input(struct smcr_conn *, const void *buf, size_t len);
/* Copies up to cap pending CLC bytes, to be written to the middle in order, into buf; returns the number copied. */
size_t smcr_clc_output(struct smcr_conn *, void *buf, size_t cap);

/* After SMCR_EV_FALLBACK. While smcr_clc_want is not 0 the peer's Decline may still come in front of its data: what the middle
 * brings is the engine's (its FIN, too), while data may go out already. When it is 0, which SMCR_EV_CLC_WANT tells: bytes that
 * were read as CLC but are the peer's data, which come before anything that is read from the middle. At most
 * SMCR_LEFTOVER_MAX; they are given once. Then, or at any time, smcr_release. */
#define SMCR_LEFTOVER_MAX 44
size_t smcr_clc_leftover(struct smcr_conn *, void *buf, size_t cap);

/* Server: the server leg is connected, the Accept may go. To refuse: smcr_abort. */
void smcr_admit(struct smcr_conn *);

/* How far a client's rendezvous is. */
enum smcr_phase {
	SMCR_PHASE_NONE,    /* over, or a server's */
	SMCR_PHASE_TURN,    /* another connection makes the link group */
	SMCR_PHASE_CLC,     /* the Proposal is out */
	SMCR_PHASE_CONNECT, /* first contact: the queue pair is being connected */
	SMCR_PHASE_LINK, /* CONFIRM LINK, or the CONFIRM RKEY of a new RMB; then what a new group does before its first data */
};

struct smcr_diag {
	uint32_t local;   /* enum clc_diag: our reason, 0 = none */
	uint32_t peer;    /* the peer's Decline, 0 = none */
	bool out_of_sync; /* a Decline carried the S bit (C.4): trying again at once makes sense */
	bool held_off;    /* the peer is held off after repeated failures */
	/* When the first link of a group failed: what it was to go over, NULL for other reasons; and does the peer's next one go over
	 * something else than SCTP, if both ends have that (a server alone decides it). */
	const char *over;
	bool sctp_held_off;
	/* With CLC_DIAG_NO_DEVICE of either end: CLC_TRANSPORT_ bits that the client offered, 0: it is no smcrd. */
	uint8_t offered;
	/* With `local`: more words (static), of the device when the first link of a group failed, or NULL; and the
	 * peer's RNIC, with its port for iWARP if that was to be connected, or 0. At a server without `local`, whose peer says that
	 * its queue pair could not be made ready: our own, to which that was to be connected. */
	const char *detail;
	bool silent; /* the words of the device are for a peer that does not answer */
	struct rnic_gid rnic;
	uint16_t mpa_port;
	enum smcr_phase phase; /* in which the rendezvous ended */
};

/* After SMCR_EV_FALLBACK: why. After SMCR_EV_CLOSED only `phase` and `over` say something. */
void smcr_fallback(const struct smcr_conn *, struct smcr_diag *);

/* Free space of the send ring: up to two pieces to read() into; total bytes (0: wait for SMCR_EV_WRITABLE). Valid
 * until smcr_poll or smcr_flush. */
size_t smcr_tx_space(struct smcr_conn *, struct iovec iov[2]);
/* len bytes were put there, maybe 0; with urgent the last of them is urgent data. */
void smcr_tx_commit(struct smcr_conn *, size_t len, bool urgent);

/* Received bytes in place: up to two pieces, total bytes. They stop before an urgent byte; when the next byte
 * is urgent, it comes alone with *urgent set. */
size_t smcr_rx_data(struct smcr_conn *, struct iovec iov[2], bool *urgent);
/* len of them were passed on. Of a connection that its peer has reset, or that was lost, what had arrived by then can be read
 * behind SMCR_EV_CLOSED, until smcr_release. */
void smcr_rx_consume(struct smcr_conn *, size_t len);
/* The peer is done sending and every byte was consumed. */
bool smcr_rx_eof(const struct smcr_conn *);

/* No more data from us: D follows when all is written (never C). */
void smcr_shutdown_wr(struct smcr_conn *);
/* Done both ways: C when all is written. With unread data this aborts (4.8.1). */
void smcr_close(struct smcr_conn *);

enum smcr_reason {
	SMCR_OK,              /* normal end */
	SMCR_R_APP_RESET,     /* RST or error on the app leg */
	SMCR_R_TCP_RESET,     /* RST on the middle */
	SMCR_R_TCP_FIN,       /* FIN on the middle, no D, C or A within the grace */
	SMCR_R_PEER_ABORT,    /* A from the peer */
	SMCR_R_PEER_CLOSED,   /* C from the peer, which so did not take all of our data */
	SMCR_R_LINK_LOST,     /* no link left in the group */
	SMCR_R_GROUP_DELETED, /* DELETE LINK for all */
	SMCR_R_PROTOCOL,      /* the peer broke the protocol on this connection */
	SMCR_R_CLC_TIMEOUT,
	SMCR_R_LLC_TIMEOUT,
	SMCR_R_CLOSE_TIMEOUT, /* peer never finished closing */
	SMCR_R_ELEM_CONFLICT, /* the peer gave our element's peer away (4.4.2) */
	SMCR_R_NO_MEMORY,
	SMCR_R_REFUSED,  /* the server leg could not be connected */
	SMCR_R_TIMEOUT,  /* an idle or other limit of the user */
	SMCR_R_OPERATOR, /* an operator wanted it */
	SMCR_R_SHUTDOWN, /* the daemon ends */
};

const char *smcr_reason_str(enum smcr_reason);

/* Abort: A to the peer when established (4.8.2); before that the middle is to be reset. SMCR_EV_CLOSED follows; on a
 * server that has sent its Accept only when the Confirm is in: CLC bytes are to be moved until then. */
void smcr_abort(struct smcr_conn *, enum smcr_reason);

/* The program has reset the connection: as smcr_abort with SMCR_R_APP_RESET, but behind all that was committed. SMCR_EV_CLOSED
 * follows when A has arrived, however long the peer takes to read; smcr_abort cuts that short. What is received meanwhile is to
 * be consumed. */
void smcr_reset(struct smcr_conn *);

/* After SMCR_EV_CLOSED: why; *detail, when not NULL, a static text that says more or "". */
enum smcr_reason smcr_closed(const struct smcr_conn *, const char **detail);

enum smcr_tcp_event { SMCR_TCP_FIN, SMCR_TCP_RST };

/* Of an established connection: when it has ended in order, its middle may be reset, as the peer does not take that for an abort. */
bool smcr_may_reset_middle(const struct smcr_conn *);

/* Of an established connection: its peer has established it as well. A client knows from the first CDC message of the server, which
 * may have given up before our Confirm came. */
bool smcr_peer_is_there(const struct smcr_conn *);

/* Something happened to the middle of a connection that is not fallen back. */
void smcr_tcp_event(struct smcr_conn *, enum smcr_tcp_event);

/* Of a connection that has received data: the element, a power of two, that would not have held up its peer, as far as this one can
 * tell: twice its size when the program here waited for what the peer had no room to send, else half. 0: it cannot tell. */
uint32_t smcr_elem_need(const struct smcr_conn *);

/* The user is done with the connection: aborted when not ended. No event of it follows. */
void smcr_release(struct smcr_conn *);

/* -- groups, by the operator -- */

/* Client: makes a link group to this peer ahead of the first connection; it takes a middle like any connection,
 * and ends with SMCR_EV_CLOSED (SMCR_OK) or SMCR_EV_FALLBACK. Same rules as smcr_open. Who is no smcrd cannot be told: its
 * program sees a connection that ends at once. */
struct smcr_conn *smcr_prewarm(struct smcr *, const struct smcr_open *, int *err);
/* Server: the peer has opened the connection by smcr_prewarm. Known from its Proposal on. */
bool smcr_is_prewarm(const struct smcr_conn *);
/* Server, at SMCR_EV_PROPOSAL: what the client has said of its way (smcr_open.hops, .origin); zeros of a peer that is no smcrd. */
void smcr_proposed_way(const struct smcr_conn *, uint8_t *hops, uint32_t *origin);
/* Sends a TEST LINK over an active link of the group now, unless one is under way there: its number, 0 = there is none. The answer
 * shows in smcr_link_info; without one in time the link is lost, as ever. */
uint8_t smcr_test_link(struct smcr *, uint32_t group_id);
/* Client: for how long connections by this key (smcr_open) will not be tried yet; 0: they are. */
int64_t smcr_held_off_ns(const struct smcr *, const char *peer_key);
/* Client: they are tried from now on. */
void smcr_end_hold_off(struct smcr *, const char *peer_key);
/* Stops offering groups and ends each one in the orderly way once it has no connections. */
void smcr_drain(struct smcr *);
/* Takes that back. Groups whose end has begun end all the same. */
void smcr_undrain(struct smcr *);
/* Spreads the connections of a group (0: of all groups) evenly over its active links; each moves when all that it has sent
 * is complete. How many are to move, or -ENOENT. */
int smcr_rebalance(struct smcr *, uint32_t group_id);
/* Takes a link out of its group in the orderly way: its connections move first. 0, -ENOENT, or -EBUSY when it is the last
 * active one. */
int smcr_link_delete(struct smcr *, uint32_t group_id, uint8_t number);
/* Asks for one more link of the group now, whatever was planned: a server offers it, a client tells the server. 0: it is under way, and may
 * fail all the same, which is planned again then. -ENOENT; -EMLINK: it has as many as both ends agreed; -ENODEV: no device is left for it. */
int smcr_link_add(struct smcr *, uint32_t group_id);

struct smcr_retried {
	unsigned peers; /* no longer held off, or kept from SCTP */
	unsigned links; /* groups with a link that was to be tried again later */
};

/* Ends all waits of the engine's own that go on because something failed: peers held off, transports not taken, links to be
 * added. Of the peer at this address, its first contacts as client those whose peer_key begins with key; both NULL: of all peers. */
struct smcr_retried smcr_retry(struct smcr *, const uint8_t addr[16], const char *key);
/* True when no group is left. */
bool smcr_idle(const struct smcr *);

/* -- looking inside: what smcrctl shows -- */

struct smcr_counters {
	uint64_t conns_client, conns_server; /* opened */
	uint64_t established_client, established_server;
	uint64_t fallback_local, fallback_peer, fallback_held_off;
	uint64_t sctp_shunned; /* first contacts over something else, as SCTP had failed with the peer */
	uint64_t closed_ok, closed_reset;
	uint64_t closed_peer_operator; /* of closed_reset: the peer's operator wanted it */
	uint64_t bytes_sent, bytes_received;
	uint64_t writes, cdc_sent, cdc_received, llc_sent, llc_received, clc_sent, clc_received;
	uint64_t urgent_sent, urgent_received;
	uint64_t first_contacts, first_contacts_v2, first_contacts_failed, no_common_ueid, groups_deleted,
	    groups_ended_for_room;
	uint64_t links_up, links_down, links_lost; /* lost: of those down, not in order */
	uint64_t rmbs_made, rmbs_deleted;
	uint64_t pages_given_back;                                              /* bytes of idle elements */
	uint64_t elems_reused, elems_quarantined, elems_let_go, elem_conflicts; /* let go: by the peer, later */
	uint64_t bad_clc, bad_llc, bad_cdc, cdc_unknown, cdc_stale, llc_ignored, llc_queue_full;
	uint64_t llc_timeouts, clc_timeouts;
	uint64_t writer_blocked, sndbuf_full, sndbuf_short; /* times */
	uint64_t test_links, out_of_sync;
	uint64_t started_over; /* steps that went to the start of an element of which everything was consumed */
	uint64_t failovers, conns_moved, conns_replayed, bytes_replayed; /* links lost with others left; what moved */
	uint64_t failover_validations, failover_lost;                    /* F received; of them, data was lost */
	uint64_t links_added, add_link_rejected, add_link_failed, add_link_retries;
	uint64_t delete_link_resent, rkey_retries, llc_collisions, llc_limited, asymmetric_replaced, rebalanced;
	uint64_t refused_mpa_peers; /* addresses named by a server that may not be connected to */
	uint64_t refused_conns_max, refused_peers_max, refused_rmbs_max, refused_memory;
	uint64_t refused_groups_addr, refused_qp, refused_rmb_memory, refused_send_memory, refused_quarantine;
	uint64_t elems_shrunk; /* asked for when memory did not allow the size that fits */
};
const struct smcr_counters *smcr_counters(const struct smcr *);
/* Of all connections: the sizes of RDMA writes, and for how long a peer's full buffer held writing up, in one piece. */
struct smcr_histograms {
	struct histogram write_size, blocked;
};
const struct smcr_histograms *smcr_histograms(const struct smcr *);
/* smcr_config.rmb_bytes_max and sndbuf_bytes_max, as they are in force. */
uint64_t smcr_rmb_bytes_max(const struct smcr *);
uint64_t smcr_sndbuf_bytes_max(const struct smcr *);
/* smcr_config.clc_ms, as it is in force. */
uint32_t smcr_clc_ms(const struct smcr *);

/* How the peer of a link group speaks, and what it is. */
struct smcr_peer_info {
	unsigned version; /* of SMC-R: 1 or 2; 0 = there is no group */
	bool foreign;     /* no smcrd: what follows is known of version 2 alone, else 0 and "" */
	uint8_t release;
	uint8_t os;                /* enum clc_os */
	char eid[CLC_EID_LEN + 1]; /* both printable */
	char host[CLC_HOST_LEN + 1];
};

struct smcr_group_info {
	uint32_t id;
	enum smcr_role role;
	uint8_t peer_id[8];
	char peer_key[64]; /* client side: what it was opened for */
	struct smcr_peer_info peer;
	uint8_t conns_limit; /* connections at most, as both ends agreed */
	const char *state;
	const char *type; /* "single", "symmetric", "asymmetric local", "asymmetric peer" */
	bool rfc_cursors;
	uint32_t conn_cnt, link_cnt, rmb_cnt, peer_rmb_cnt;
	uint64_t rmb_bytes, sndbuf_bytes;
	int64_t age_ns;
	uint8_t links_limit;   /* symmetric links at most, as both ends agreed */
	const char *waits_for; /* what data of the first connection waits for, or "" */
	int64_t add_retry_ns;  /* until a missing link is tried again; -1 = not planned, or known to be in vain */
	/* the last failover; failover_age_ns -1 = none yet */
	int64_t failover_age_ns, failover_ns; /* since it began; from there until the peer had heard of every move */
	const char *failover_why;
	uint32_t failover_conns;
};

struct smcr_link_info {
	uint32_t group_id;
	uint8_t number;
	uint32_t user_id, peer_user_id;
	const char *state;
	char device[RNIC_NAME_MAX];
	enum rnic_transport transport;
	struct rnic_gid gid, peer_gid;
	uint8_t mac[6], peer_mac[6];
	uint32_t qpn, peer_qpn;
	uint8_t mtu_code;
	uint32_t conn_cnt;
	int64_t idle_ns;           /* since something was received */
	int64_t rtt_ns;            /* of the last TEST LINK; -1 = none yet */
	bool is_active, is_tested; /* it carries connections; a TEST LINK is under way */
	struct rnic_depths peer_depths;
	struct rnic_conn_info conn; /* that carries the link */
	struct smcr_peer_info peer;
};

struct smcr_rmb_info {
	uint32_t group_id;
	uint32_t number; /* within the group, from 1 */
	bool remote;     /* the peer's */
	uint32_t elem_size;
	uint32_t elem_cnt, used, quarantined;
	const char *state;
};

struct smcr_conn_info {
	uint32_t id; /* = our alert token */
	void *app;
	enum smcr_role role;
	uint32_t group_id; /* 0 = none (yet) */
	uint8_t link;
	const char *state; /* RFC 7609 4.8 names, or the step of the rendezvous */
	uint32_t peer_token;
	uint32_t elem_size, peer_elem_size, sndbuf_size;
	uint8_t elem_idx, peer_elem_idx;
	/* in bytes since the start of the connection */
	uint64_t tx_written, tx_sent, tx_consumed, rx_produced, rx_consumed;
	bool writer_blocked, peer_blocked;
	int64_t age_ns;
	struct smcr_peer_info peer;
	enum smcr_phase phase;
};

/* Walks: *pos starts at 0; false at the end. The set may change between two turns, not between two calls of one. */
bool smcr_group_next(const struct smcr *, uint32_t *pos, struct smcr_group_info *);
bool smcr_link_next(const struct smcr *, uint32_t *pos, struct smcr_link_info *);
bool smcr_rmb_next(const struct smcr *, uint32_t *pos, struct smcr_rmb_info *);
bool smcr_conn_next(const struct smcr *, uint32_t *pos, struct smcr_conn_info *);
void smcr_conn_info(const struct smcr_conn *, struct smcr_conn_info *);
/* Is it one of those that the walks show, by its id? */
bool smcr_has_group(const struct smcr *, uint32_t id);
bool smcr_has_conn(const struct smcr *, uint32_t id);

/* Lifecycle of groups and links, for the log: pulled like connection events, bounded (oldest kept, the rest counted). */
enum smcr_log_type {
	SMCR_LOG_GROUP_UP, /* text = our role */
	SMCR_LOG_GROUP_DOWN,
	SMCR_LOG_LINK_UP,    /* device; text = transport */
	SMCR_LOG_LINK_ENDED, /* in order: its group was of no more use */
	SMCR_LOG_LINK_DOWN,
	SMCR_LOG_LINK_SILENT,  /* it is kept, as no other link can stand in; value = ms: at most so long */
	SMCR_LOG_LINK_ANSWERS, /* value = ms since LINK_SILENT */
	SMCR_LOG_HELD_OFF,     /* value = ms; the first time since first contact with the peer has succeeded */
	SMCR_LOG_HELD_LONGER,  /* value = ms; first contact has failed again */
	SMCR_LOG_HOLD_OVER,    /* value = ms since the first time: first contact has succeeded */
	SMCR_LOG_SCTP_SHUNNED, /* value = ms: over other transports meanwhile */
	SMCR_LOG_REFUSED,      /* what the peer offered; text says why */
	SMCR_LOG_PROTOCOL,     /* the peer broke the protocol; text says how */
	SMCR_LOG_DEVICE,       /* trouble of a device */
	SMCR_LOG_STATE,   /* an object changed its state, while smcr_log_states is on: text = which, from, to and why */
	SMCR_LOG_OVERRUN, /* value = lines that were lost */
	SMCR_LOG_TYPE_CNT
};

struct smcr_log {
	enum smcr_log_type type;
	uint32_t group_id;
	uint8_t link;
	char peer[64];               /* the peer key of a client's peer, else the peer id */
	bool is_key;                 /* the former */
	char peer_id[48];            /* in hex, or what stands in for it; "" while it is not known */
	uint8_t remote[16];          /* the peer's address, as in struct smcr_identity; zeros while it is not known */
	char host[CLC_HOST_LEN + 1]; /* what a peer of SMC version 2 calls its host, else "" */
	uint64_t value;
	char device[RNIC_NAME_MAX]; /* "" but for its troubles, and links that are up */
	char text[128];             /* "" when there is nothing to add */
};

bool smcr_next_log(struct smcr *, struct smcr_log *);
/* Changes of state of groups, links, RMBs and LLC exchanges are lines, too (SMCR_LOG_STATE); off at first. */
void smcr_log_states(struct smcr *, bool on);

/* Trace of protocol messages: called with each CLC, LLC and CDC message while set; must not call the engine. */
enum smcr_trace_kind { SMCR_TRACE_CLC, SMCR_TRACE_LLC, SMCR_TRACE_CDC };

struct smcr_trace {
	enum smcr_trace_kind kind;
	bool sent;
	uint32_t group_id; /* 0 = not known yet */
	uint8_t link;
	uint32_t conn_id; /* CLC and CDC */
	const uint8_t *msg;
	size_t len;
};

void smcr_set_trace(struct smcr *, void (*fn)(void *ctx, const struct smcr_trace *), void *ctx);
