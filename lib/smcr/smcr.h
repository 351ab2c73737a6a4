/* The SMC-R engine (RFC 7609). It does no I/O and reads no clock: its user (the daemon or a test) passes in the time,
 * bytes of TCP connections and RNIC devices, and pulls events. The only callbacks are the dial policy and the trace,
 * which must not call the engine. An engine belongs to one thread (worker) and shares nothing with other engines.
 *
 * One turn of the user's loop:
 * smcr_set_now(eng, now)		before any other call of this turn: bytes, FINs, new connections
 * smcr_poll(eng, now)			completions, device events, timers, data that waited for a window
 * while ((c = smcr_next_event(eng, &ev)))	react: read, write, close ...
 * smcr_flush(eng)			post what is due, flush the devices
 * sleep until smcr_deadline(eng) or readiness
 *
 * A proxied connection and its CLC connection: smcr_open, then CLC bytes by smcr_clc_want/_input/_output until
 * SMCR_EV_ESTABLISHED or SMCR_EV_FALLBACK; data by smcr_tx_* and smcr_rx_*; end by smcr_shutdown_wr, smcr_close,
 * smcr_reset or smcr_abort; smcr_release after SMCR_EV_CLOSED or FALLBACK. Until then a struct smcr_conn is valid. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "base/histogram.h"
#include "base/rng.h"
#include "rnic/rnic.h"
#include "smcr/identity.h"
#include "wire/clc.h"

struct smcr;
struct smcr_conn;

#define SMCR_LINKS_MAX 8 /* symmetric links of a group, in addition to one asymmetric */
#define SMCR_DEVS_MAX 16
#define SMCR_CONNS_PER_GROUP 255 /* RFC 7609 2.1 */
#define SMCR_RMBS_PER_GROUP 255
#define SMCR_ELEM_MIN (16u * 1024)
#define SMCR_ELEM_RFC_MAX (512u * 1024) /* A.2.3: size codes 0..5 */
#define SMCR_ELEM_MAX (4096u * 1024)    /* between two smcrd, of which every version accepts larger ones */

enum smcr_role { SMCR_CLIENT, SMCR_SERVER };

struct smcr_config {
	uint64_t rmb_bytes_max;    /* of all RMBs of this engine */
	uint32_t conns_max;        /* connections of this engine */
	uint32_t conns_per_group;  /* 1..255 */
	uint32_t quarantine_max;   /* with more quarantined elements (4.4.2) a group takes no connections */
	uint32_t rmb_elems;        /* most elements of one RMB, 1..255; the first RMB of a size starts smaller */
	uint32_t links_max;        /* symmetric links of a group, 1..8; the smaller of both ends' counts */
	uint32_t sndbuf_size;      /* bytes of a send ring; 0: chosen for the peer's element (data/window.h) */
	uint64_t sndbuf_bytes_max; /* of all send rings of this engine */
	uint64_t group_bytes_max;  /* RMBs and send rings of a group, as registered on each of its links */
	uint32_t sq_depth;         /* per link */
	uint32_t rq_depth;
	uint16_t groups_per_addr; /* link groups of one role with one address that can take another connection */
	uint8_t features;         /* CLC_FEATURE_ bits announced to other smcrd */
	bool rfc_cursors;         /* cursors 4..size with eye catcher (RFC 7609) instead of Linux's 0..size */
	uint8_t smc_version;      /* with foreign peers 1 or 2: only that; 0: any. Version 2 requires a UEID */
	uint8_t ueid_cnt;
	struct clc_eid ueids[CLC_MAX_EIDS];
	/* All in milliseconds. */
	uint32_t clc_ms;            /* each CLC message awaited (C.5) */
	uint32_t llc_ms;            /* each LLC response awaited (C.7) */
	uint32_t confirm_link_ms;   /* client: first CONFIRM LINK awaited */
	uint32_t add_link_ms;       /* client: ADD LINK awaited after first contact */
	uint32_t add_link_retry_ms; /* server: interval to add a missing link (C.8), client: to request one; doubles */
	uint32_t add_link_retry_max_ms;
	uint32_t keepalive_ms; /* TEST LINK when idle this long (4.5.3); 0 = off */
	uint32_t keepalive_answer_ms;
	uint32_t last_link_ms;  /* time limit of a silent link that no other link can replace */
	uint32_t group_idle_ms; /* server ends a group without connections (3.5.4); the client waits 10 s longer */
	uint32_t rmb_idle_ms;   /* RMB without elements in use is deleted */
	uint32_t close_ms;      /* PeerCloseWait1/2 after both sides closed, PeerFinCloseWait (4.8.1) */
	uint32_t abort_ms;      /* PeerAbortWait (4.8.2) */
	uint32_t fin_grace_ms;  /* FIN on the CLC connection before D, C or A */
	uint32_t holdoff_ms;    /* first back-off after a failed first contact, doubles */
	uint32_t holdoff_max_ms;
	/* IDs of groups: the first one, and the step, so that the engines of one user never share an ID. */
	uint32_t group_first;
	uint32_t group_step;
	uint8_t host[CLC_HOST_LEN]; /* host name for peers of version 2, padded with blanks */
};

/* rng is borrowed. NULL when out of memory. */
struct smcr *smcr_new(const struct smcr_config *, struct rng *rng, int64_t now_ns);
/* Ends everything at once, without messages. Requires that all connections are released and devices that are gone
 * removed. While a device has not ended (smcr_has_devices), its memory stays: the process is about to end. */
void smcr_free(struct smcr *);
/* Applies new timer values and limits without disturbing connections. */
void smcr_reconfigure(struct smcr *, const struct smcr_config *);

/* A version 2 link posts this many receives (or rq_depth, if less) of this length. */
#define SMCR_V2_RECEIVES 48 /* as many as Linux: a sender waits for the next one */
#define SMCR_V2_MSG_LEN 8192

/* Client: policy for connecting an iWARP queue pair to the address in the server's Accept or ADD LINK. middle: identity
 * of the CLC connection's remote end. NULL allows any address. Must not call the engine. */
void smcr_set_dial_policy(
    struct smcr *, bool (*may)(void *ctx, const struct rnic_gid *to, const struct smcr_identity *middle), void *ctx);

/* A link group with this peer address, of the CLC connection or of an RNIC, exists or is being created. */
bool smcr_has_peer(const struct smcr *, const uint8_t addr[16]);
/* Server: end of the last first contact with this address, while its group exists: INT64_MAX during first contact; 0:
 * never. During it, other connections from there delay their Proposals. */
int64_t smcr_met_ns(const struct smcr *, const struct smcr_identity *remote);
/* Count of finished first contacts: when it changes, smcr_met_ns may change. */
uint64_t smcr_contacts_over(const struct smcr *);

/* Passes the device to the engine. -ENOSPC beyond SMCR_DEVS_MAX: it stays the caller's. */
int smcr_add_device(struct smcr *, struct rnic_dev *);
/* Its links go down at once; it is freed, for a card once it has released its queue pairs. */
void smcr_remove_device(struct smcr *, struct rnic_dev *);
/* A device of the engine is not freed yet. */
bool smcr_has_devices(const struct smcr *);
/* True once after a device reported its port up or down, or itself gone. */
bool smcr_take_device_changes(struct smcr *);
/* The device reported itself gone: its links are down and it gets no others; the user must remove it. */
bool smcr_device_gone(const struct smcr *, const struct rnic_dev *);

/* -- networks -- */

/* A network, for the subnet check of 3.5.1.2. */
struct smcr_subnet {
	bool v6;
	uint8_t addr[16]; /* network address; IPv4 in the first 4 bytes */
	uint8_t prefix_len;
};

#define SMCR_NETWORKS_MAX 64
/* This host's first SMCR_NETWORKS_MAX networks: over RoCE a server accepts first contact only from them (3.5.1.2). */
void smcr_set_networks(struct smcr *, const struct smcr_subnet *, unsigned cnt);

/* -- the turn -- */

/* Starts a turn: timers of the engine and its devices count from this time. A user that opens connections or passes in
 * bytes before smcr_poll must call it first. Otherwise new timers start at the last turn's time and fire early. */
void smcr_set_now(struct smcr *, int64_t now_ns);
/* Total time that this host was suspended, which now_ns excludes. The peers' time limits continued. */
void smcr_stood_still(struct smcr *, int64_t total_ns);
/* Handles what has arrived. Flushes when a window has opened for waiting data, or a peer waits for our cursor. */
void smcr_poll(struct smcr *, int64_t now_ns);

enum {
	SMCR_EV_CLC_OUT = 1 << 0,  /* smcr_clc_output has bytes for the CLC connection */
	SMCR_EV_CLC_WANT = 1 << 1, /* smcr_clc_want changed: read the CLC connection again */
	/* Server: valid Proposal received; answer by smcr_admit or smcr_abort, with smcr_is_prewarm by smcr_admit_asking. */
	SMCR_EV_PROPOSAL = 1 << 2,
	SMCR_EV_ESTABLISHED = 1 << 3, /* data may flow on SMC-R; over a link, the peer has answered */
	SMCR_EV_FALLBACK = 1 << 4, /* the CLC connection carries data after pending CLC output; see smcr_clc_leftover */
	SMCR_EV_READABLE = 1 << 5, /* new bytes, an urgent byte, or the end of the peer's data */
	SMCR_EV_WRITABLE = 1 << 6, /* smcr_tx_space was 0 and has space again */
	SMCR_EV_CLOSED = 1 << 7,   /* ended: see smcr_closed; reset means RST on every TCP leg */
};

/* The next connection with events, its SMCR_EV_ bits in *events; NULL: none. */
struct smcr_conn *smcr_next_event(struct smcr *, unsigned *events);
/* Posts LLC, then data in turn, bounded; flushes devices, frees what was released. True: needs another turn at once. */
bool smcr_flush(struct smcr *);
/* Latest time for the next smcr_poll; INT64_MAX: never. */
int64_t smcr_deadline(const struct smcr *);

/* -- connections -- */

/* Kind of peer of a client's CLC connection, as known to the user. A server detects it. */
enum smcr_peer_kind {
	SMCR_PEER_SMCRD, /* smcrd: version 1 with our extension */
	SMCR_PEER_LINUX, /* AF_SMC, z/OS, AIX: versions 1 and 2 as configured, no extension */
	SMCR_PEER_AUTO,  /* either: offers both */
};

#define SMCR_PREFIXES_MAX 8
struct smcr_open {
	enum smcr_role role;
	enum smcr_peer_kind peer;
	void *app; /* the user's; returned by smcr_app() */
	/* RMB element: power of two, SMCR_ELEM_MIN..MAX, or 0: automatic (data/window.h). rmb_size_hint, a power of two
	 * or 0, is what similar connections needed (smcr_elem_need). */
	uint32_t elem_size, rmb_size_hint;
	int64_t rtt_ns; /* of the CLC connection, for a new link group without measured RTT; 0: not known */
	/* Client: names the peer for first contact, e.g. its address and port; connections with the same key wait for
	 * one another's first contact. NUL-terminated, copied. */
	char peer_key[64];
	struct smcr_subnet subnet[SMCR_PREFIXES_MAX]; /* of the CLC connection */
	unsigned subnet_cnt;
	struct rnic_gid local_addr;    /* of the CLC connection: its device is preferred */
	struct smcr_identity remote;   /* remote end of the CLC connection */
	char peer_name[SMCR_NAME_MAX]; /* with remote.level: the name that it has proven, for reports; copied */
	/* Client: creates a link group before the first connection, and ends with SMCR_EV_CLOSED (SMCR_OK) or
	 * SMCR_EV_FALLBACK. The application of a foreign peer sees a connection that ends at once. */
	bool prewarm;
	bool
	    insist; /* prewarm for an operator: ignores a hold-off, here or at an smcrd peer. Only success changes it */
	/* prewarm: establish the connection for a measurement, if the peer supports that. Otherwise it ends as
	 * usual. At a server, likewise if its peer requests it: see smcr_is_prewarm. */
	bool measure;
	bool ask_server; /* prewarm: asks the peer for the server behind it; see smcr_server */
	uint8_t hops; /* client: path of the connection so far, for an smcrd (struct clc_smcrd_ext); as the next one */
	uint32_t origin;
	/* Client: the program's client, for an smcrd. Server: connects in the name of the peer's, if it sends one. */
	struct clc_client client;
	bool takes_client;
	/* Client: the server that the program wants, for an smcrd; see smcr_dest_is_used. Server: takes a destination of
	 * each peer (smcr_take_dest), and refuses Proposals without; otherwise refuses those with one. */
	struct clc_dest dest;
	bool wants_dest;
	uint32_t ticket; /* server: of its service, for connections that this client opens over a link; 0: it may not */
	/* The rules by which this end took the peer for this service; zeros in clear. A connection opens over a link only
	 * by the rules of the rendezvous before it. */
	struct smcr_scope scope;
	/* The CLC connection is in TLS, and both ends have this secret: links on TCP are in TLS, with keys from it. */
	bool in_tls;
	uint8_t secret[RNIC_SECRET_LEN];
	bool only_tls; /* with in_tls: no other links are used but on devices with a protection of their own */
	const char
	    *tcp_only; /* not NULL, static: no link may be used; falls back with CLC_DIAG_CONFIG and this detail */
};

/* Starts the rendezvous. NULL with *err = -ENOMEM or -EMFILE (conns_max). When SMC-R is impossible from the start (no
 * device, peer held off), the connection has SMCR_EV_FALLBACK at once. */
struct smcr_conn *smcr_open(struct smcr *, const struct smcr_open *, int *err);
void *smcr_app(const struct smcr_conn *);

/* Client: opens a connection over a link of a group that has reached peer_key by a rendezvous in the last minutes, with
 * the same scope (doc/open.md). `open` needs no address. Data may be sent at once. SMCR_EV_ESTABLISHED follows when the
 * peer's program is connected, or SMCR_EV_CLOSED with SMCR_R_NOT_OPENED: open it by smcr_open. NULL: not possible now. */
struct smcr_conn *smcr_open_over_link(struct smcr *, const struct smcr_open *open);
/* Server: a connection that the client opened has SMCR_EV_PROPOSAL, and no app yet. These are its service
 * (smcr_open.ticket), the scope of the rendezvous that gave the ticket, its client, whether a rendezvous would bring a
 * larger element by elem_size and rmb_size_hint, and the setter of smcr_app. Answer by smcr_admit or smcr_abort. */
uint32_t smcr_opened_ticket(const struct smcr_conn *);
struct smcr_scope smcr_opened_scope(const struct smcr_conn *);
struct smcr_identity smcr_opened_by(const struct smcr_conn *);
bool smcr_opened_is_small(struct smcr_conn *, const struct smcr_open *);
void smcr_set_app(struct smcr_conn *, void *app);

/* Bytes to read now from the CLC connection for smcr_clc_input: at most the rest of the current message. 0: none. */
size_t smcr_clc_want(const struct smcr_conn *);
void smcr_clc_input(struct smcr_conn *, const void *buf, size_t len);
/* Copies up to cap pending CLC bytes into buf, to be written to the CLC connection in order; returns the count. */
size_t smcr_clc_output(struct smcr_conn *, void *buf, size_t cap);

/* After SMCR_EV_FALLBACK. While smcr_clc_want is not 0, the peer's Decline may precede its data: bytes and FIN of the
 * CLC connection belong to the engine, but data may be sent. When it becomes 0 (SMCR_EV_CLC_WANT), this returns data
 * that was read as CLC. It precedes all data read afterwards; at most SMCR_LEFTOVER_MAX bytes, once. */
#define SMCR_LEFTOVER_MAX 44
size_t smcr_clc_leftover(struct smcr_conn *, void *buf, size_t cap);

/* Server: the server leg is connected, send the Accept. Refuse with smcr_abort. */
void smcr_admit(struct smcr_conn *);
/* Server: likewise for a client that prewarms and asks for the program behind the server, which is in this state. */
void smcr_admit_asking(struct smcr_conn *, enum clc_server);
/* Client with ask_server: the peer's answer, CLC_SERVER_UNSAID: none, as of an older peer. Any number is possible. */
unsigned smcr_server(const struct smcr_conn *);

/* Progress of a client's rendezvous. */
enum smcr_phase {
	SMCR_PHASE_NONE,    /* over, or a server's */
	SMCR_PHASE_TURN,    /* another connection creates the link group */
	SMCR_PHASE_CLC,     /* Proposal sent */
	SMCR_PHASE_CONNECT, /* first contact: connecting the queue pair */
	/* CONFIRM LINK, or the CONFIRM RKEY of a new RMB; then the setup of a new group before its first data. */
	SMCR_PHASE_LINK,
};

struct smcr_diag {
	uint32_t local;   /* enum clc_diag: our reason, 0 = none */
	uint32_t peer;    /* the peer's Decline, 0 = none */
	bool out_of_sync; /* a Decline carried the S bit (C.4): an immediate retry makes sense */
	bool held_off;    /* the peer is held off after repeated failures */
	/* When the first link of a group failed: its transport, NULL for other reasons; and whether the peer's next
	 * link avoids SCTP, if both ends support another transport (a server alone decides it). */
	const char *over;
	bool sctp_held_off;
	/* With CLC_DIAG_NO_DEVICE of either end: CLC_TRANSPORT_ bits in the client's offer, 0: a foreign client. */
	uint8_t offered;
	/* With `local`: static text of the device when a group's first link failed, or NULL; and the peer's RNIC, with
	 * its port if an iWARP connection failed, or 0. At a server without `local`, whose peer reports that its queue
	 * pair could not be made ready: our own RNIC, the target of that connection. */
	const char *detail;
	bool silent; /* the device's text is for a silent peer */
	struct rnic_gid rnic;
	uint16_t mpa_port;
	enum smcr_phase phase; /* in which the rendezvous ended */
};

/* After SMCR_EV_FALLBACK: the reason. After SMCR_EV_CLOSED only `phase` and `over` are valid. */
void smcr_fallback(const struct smcr_conn *, struct smcr_diag *);

/* Free space of the send ring until smcr_poll or smcr_flush: up to two pieces; the total, 0: wait for WRITABLE. */
size_t smcr_tx_space(struct smcr_conn *, struct iovec iov[2]);
/* Commits len bytes of that space, maybe 0; with urgent, the last of them is urgent data. */
void smcr_tx_commit(struct smcr_conn *, size_t len, bool urgent);

/* Received bytes, in this turn of the loop: up to two pieces; returns the total. An urgent byte comes alone, with
 * *urgent set. */
size_t smcr_rx_data(struct smcr_conn *, struct iovec iov[2], bool *urgent);
/* Consumes len of them. After SMCR_EV_CLOSED of a lost or reset connection, data stays until smcr_release. */
void smcr_rx_consume(struct smcr_conn *, size_t len);
/* The peer has finished sending and every byte was consumed. */
bool smcr_rx_eof(const struct smcr_conn *);

/* Our side sends no more data: D follows when all is written (never C). */
void smcr_shutdown_wr(struct smcr_conn *);
/* Closes both directions: C when all is written. With unread data this aborts (4.8.1). */
void smcr_close(struct smcr_conn *);

enum smcr_reason {
	SMCR_OK,              /* normal end */
	SMCR_R_APP_RESET,     /* RST or error on the app leg */
	SMCR_R_TCP_RESET,     /* RST on the CLC connection */
	SMCR_R_TCP_FIN,       /* FIN on the CLC connection, no D, C or A within the grace */
	SMCR_R_PEER_ABORT,    /* A from the peer */
	SMCR_R_PEER_CLOSED,   /* C from the peer before it consumed all our data */
	SMCR_R_LINK_LOST,     /* no link left in the group */
	SMCR_R_GROUP_DELETED, /* DELETE LINK for all */
	SMCR_R_PROTOCOL,      /* protocol error of the peer on this connection */
	SMCR_R_CLC_TIMEOUT,
	SMCR_R_LLC_TIMEOUT,
	SMCR_R_CLOSE_TIMEOUT, /* the peer never finished closing */
	SMCR_R_ELEM_CONFLICT, /* the peer reassigned its element while in use (4.4.2) */
	SMCR_R_NO_MEMORY,
	SMCR_R_REFUSED,  /* the server leg could not be connected */
	SMCR_R_TIMEOUT,  /* an idle or other limit of the user */
	SMCR_R_OPERATOR, /* requested by an operator */
	SMCR_R_SHUTDOWN, /* the daemon ends */
	/* Client, over a link: the peer did not admit the connection, and no program has a byte of it: open it by smcr_open
	 * instead. Server, to smcr_abort: that is the reason. */
	SMCR_R_NOT_OPENED,
};

const char *smcr_reason_str(enum smcr_reason);

/* Abort: A to the peer when established (4.8.2); before that, reset the CLC connection. SMCR_EV_CLOSED follows; at a
 * server that sent its Accept, only after the Confirm: keep moving CLC bytes until then. */
void smcr_abort(struct smcr_conn *, enum smcr_reason);

/* Reset by the application: smcr_abort with SMCR_R_APP_RESET, but after all committed data. SMCR_EV_CLOSED follows when
 * A has arrived, however long the peer takes to read; smcr_abort shortens that. Consume received data meanwhile. */
void smcr_reset(struct smcr_conn *);

/* After SMCR_EV_CLOSED: the reason; *detail, when not NULL, a static text with details or "". */
enum smcr_reason smcr_closed(const struct smcr_conn *, const char **detail);

enum smcr_tcp_event { SMCR_TCP_FIN, SMCR_TCP_RST };

/* Established connection: after a clean close its CLC connection may be reset without an abort at the peer. */
bool smcr_may_reset_middle(const struct smcr_conn *);

/* Established connection: the peer has established it as well. A client knows that from the server's first CDC message,
 * as the server may have timed out before our Confirm. */
bool smcr_peer_is_there(const struct smcr_conn *);

/* FIN or RST of the CLC connection, before any fallback. */
void smcr_tcp_event(struct smcr_conn *, enum smcr_tcp_event);

/* For a connection that has received data: the element size, a power of two, that would not have blocked the peer. That
 * is twice the current size when the application waited while the peer lacked space, else half. 0: not known. */
uint32_t smcr_elem_need(const struct smcr_conn *);

/* Ends the user's reference: aborts a connection that has not ended. No further events. */
void smcr_release(struct smcr_conn *);

/* -- groups, for the operator -- */

/* Server: the peer opened the connection with smcr_open.prewarm. Known from its Proposal on. */
bool smcr_is_prewarm(const struct smcr_conn *);
/* Server, at SMCR_EV_PROPOSAL or SMCR_EV_FALLBACK: the client's path (smcr_open.hops, .origin); zeros for a foreign peer. */
void smcr_proposed_way(const struct smcr_conn *, uint8_t *hops, uint32_t *origin);
/* Server, at SMCR_EV_PROPOSAL and after smcr_clc_input: client and destination that the peer has sent, if any. */
struct clc_tlvs smcr_proposed_tlvs(const struct smcr_conn *);
/* Server, at SMCR_EV_PROPOSAL: takes the destination, as answers say from here on, with its ticket (smcr_open); or refuses
 * it, and SMCR_EV_FALLBACK follows with smcr_dest_is_refused: write the output, then end without data. */
void smcr_take_dest(struct smcr_conn *, uint32_t ticket);
void smcr_refuse_dest(struct smcr_conn *);
/* Client, at SMCR_EV_ESTABLISHED and _FALLBACK: the peer connects in the name of smcr_open.client, and to smcr_open.dest.
 * Without that it has connected to another server, and no byte may be sent. */
bool smcr_client_is_used(const struct smcr_conn *);
bool smcr_dest_is_used(const struct smcr_conn *);
/* At SMCR_EV_FALLBACK: the server's end refuses the connection because of its destination, or for lack of one. */
bool smcr_dest_is_refused(const struct smcr_conn *);
/* Sends a TEST LINK over an active link of the group, unless one is in progress there. Returns the link number, 0 =
 * none. smcr_link_info has the result; without a response in time the link is lost, as usual. */
uint8_t smcr_test_link(struct smcr *, uint32_t group_id);
/* Client: remaining hold-off of connections with this key (smcr_open), 0: not held off; and its end. */
int64_t smcr_held_off_ns(const struct smcr *, const char *peer_key);
void smcr_end_hold_off(struct smcr *, const char *peer_key);
/* While on: uses groups for no new connections and ends each in order once it has none. Off: those ending still end. */
void smcr_drain(struct smcr *, bool on);
/* Spreads the connections of a group (0: all) evenly over its active links; each moves when its sends are complete.
 * Number of connections to move, or -ENOENT. */
int smcr_rebalance(struct smcr *, uint32_t group_id);
/* Removes a link from its group in order, after its connections have moved. 0, -ENOENT, or -EBUSY for the last one. */
int smcr_link_delete(struct smcr *, uint32_t group_id, uint8_t number);
/* Adds a link to the group now, regardless of the schedule: a server offers it, a client requests it. 0: in progress; a
 * failure is scheduled again. -ENOENT; -EMLINK: the agreed limit is reached; -ENODEV: no device left. */
int smcr_link_add(struct smcr *, uint32_t group_id);

struct smcr_retried {
	unsigned peers; /* hold-off or SCTP avoidance ended */
	unsigned links; /* groups with a scheduled link attempt */
};

/* Ends all waits of the engine after failures: hold-off, avoided transports, scheduled link attempts. For the peer at
 * this address, and first contacts as client whose peer_key begins with key; both NULL: all peers. */
struct smcr_retried smcr_retry(struct smcr *, const uint8_t addr[16], const char *key);
/* No group is left. */
bool smcr_idle(const struct smcr *);

/* -- inspection, for smcrctl -- */

struct smcr_counters {
	uint64_t conns_client, conns_server; /* opened */
	uint64_t established_client, established_server;
	uint64_t fallback_local, fallback_peer, fallback_held_off;
	uint64_t sctp_shunned; /* first contacts over other transports after SCTP failed with the peer */
	uint64_t closed_ok, closed_reset;
	uint64_t closed_peer_operator; /* of closed_reset: by the peer's operator */
	uint64_t bytes_sent, bytes_received, urgent_sent, urgent_received;
	uint64_t writes, cdc_sent, cdc_received, llc_sent, llc_received, clc_sent, clc_received;
	uint64_t first_contacts, first_contacts_v2, first_contacts_failed, no_common_ueid, groups_deleted,
	    groups_ended_for_room;
	uint64_t links_up, links_down, links_lost;                              /* lost: of links_down, not in order */
	uint64_t rmbs_made, rmbs_deleted, pages_given_back;                     /* the last: bytes of idle elements */
	uint64_t elems_reused, elems_quarantined, elems_let_go, elem_conflicts; /* let_go: released by the peer later */
	uint64_t bad_clc, bad_llc, bad_cdc, cdc_unknown, cdc_stale, llc_ignored, llc_queue_full;
	uint64_t llc_timeouts, clc_timeouts, test_links, out_of_sync;
	uint64_t writer_blocked, sndbuf_full, sndbuf_short; /* times */
	uint64_t started_over; /* steps to the start of an element after full consumption */
	uint64_t failovers, conns_moved, conns_replayed, bytes_replayed; /* links lost with others left; what moved */
	uint64_t failover_validations, failover_lost;                    /* F received; of them with lost data */
	uint64_t links_added, add_link_rejected, add_link_failed, add_link_retries;
	uint64_t delete_link_resent, rkey_retries, llc_collisions, llc_limited, asymmetric_replaced, rebalanced;
	uint64_t refused_mpa_peers; /* addresses in a server's Accept or ADD LINK refused by policy */
	uint64_t refused_conns_max, refused_peers_max, refused_rmbs_max, refused_memory;
	uint64_t refused_groups_addr, refused_qp, refused_rmb_memory, refused_send_memory, refused_quarantine;
	uint64_t elems_shrunk; /* requested because memory did not allow the preferred size */
	uint64_t opened_client, opened_server, not_opened_client, not_opened_server, opens_silent; /* over a link */
};
const struct smcr_counters *smcr_counters(const struct smcr *);
/* All connections: sizes of RDMA writes, and durations of writers blocked by a full peer buffer. */
struct smcr_histograms {
	struct histogram write_size, blocked;
};
const struct smcr_histograms *smcr_histograms(const struct smcr *);
/* Those in force. */
const struct smcr_config *smcr_settings(const struct smcr *);

/* Protocol version and identity of a link group's peer. */
struct smcr_peer_info {
	unsigned version; /* of SMC-R: 1 or 2; 0 = no group */
	bool foreign;     /* no smcrd: the following fields are known only in version 2, else 0 and "" */
	uint8_t release;
	uint8_t os;                /* enum clc_os */
	char eid[CLC_EID_LEN + 1]; /* both printable */
	char host[CLC_HOST_LEN + 1];
};

struct smcr_group_info {
	uint32_t id;
	enum smcr_role role;
	uint8_t peer_id[8];
	char peer_key[64];             /* client side: key of the first connection */
	uint8_t level;                 /* as in struct smcr_identity */
	uint16_t suite;                /* of TLS at the first contact, and of links in TLS; 0: none */
	char peer_name[SMCR_NAME_MAX]; /* that the peer has proven, "" without a level */
	struct smcr_peer_info peer;
	void *proof;         /* of struct smcr_identity; NULL: none */
	uint8_t conns_limit; /* agreed limit of connections */
	const char *state;
	const char *type; /* "single", "symmetric", "asymmetric local", "asymmetric peer" */
	bool rfc_cursors;
	uint32_t conn_cnt, link_cnt, rmb_cnt, peer_rmb_cnt;
	uint64_t rmb_bytes, sndbuf_bytes;
	int64_t age_ns;
	uint8_t links_limit;   /* agreed limit of symmetric links */
	const char *waits_for; /* what the first connection's data waits for, or "" */
	int64_t add_retry_ns;  /* until the next attempt to add a link; -1 = not scheduled, or known to be hopeless */
	/* the last failover; failover_age_ns -1 = none yet */
	int64_t failover_age_ns, failover_ns; /* since its start; from then until the peer knew of every move */
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
	bool in_tls;
	enum rnic_protection protection; /* of our device */
	struct rnic_gid gid, peer_gid;
	uint8_t mac[6], peer_mac[6];
	uint32_t qpn, peer_qpn;
	uint8_t mtu_code;
	uint32_t conn_cnt;
	int64_t idle_ns;           /* since something was received */
	int64_t rtt_ns;            /* of the last TEST LINK; -1 = none yet */
	bool is_active, is_tested; /* carries connections; a TEST LINK is in progress */
	struct rnic_depths peer_depths;
	struct rnic_conn_info conn; /* connection of the link */
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
	uint32_t id; /* our alert token */
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
	bool over_link; /* opened without a CLC connection */
};

/* Iteration: *pos starts at 0; false at the end. The set may change between turns, not within one. */
bool smcr_group_next(const struct smcr *, uint32_t *pos, struct smcr_group_info *);
bool smcr_link_next(const struct smcr *, uint32_t *pos, struct smcr_link_info *);
bool smcr_rmb_next(const struct smcr *, uint32_t *pos, struct smcr_rmb_info *);
void smcr_conn_info(const struct smcr_conn *, struct smcr_conn_info *);
/* Its link group; 0 = none. */
uint32_t smcr_conn_group(const struct smcr_conn *);
/* The longest round trip of links with connections, by their last TEST LINK: of this group, or with 0 of all; -1: none. */
int64_t smcr_rtt_ns(const struct smcr *, uint32_t group_id);
/* The links of its group are in TLS. */
bool smcr_in_tls(const struct smcr_conn *);
/* An object with this ID exists. */
bool smcr_has_group(const struct smcr *, uint32_t id);
bool smcr_has_conn(const struct smcr *, uint32_t id);

/* Log of groups and links: pulled like connection events, bounded (the oldest are kept, the rest counted). */
enum smcr_log_type {
	SMCR_LOG_GROUP_UP, /* text = our role */
	SMCR_LOG_GROUP_DOWN,
	SMCR_LOG_LINK_UP,    /* device; text = transport */
	SMCR_LOG_LINK_ENDED, /* in order: its group was no longer needed */
	SMCR_LOG_LINK_DOWN,
	SMCR_LOG_LINK_SILENT,  /* kept, as no other link can replace it; value = ms limit */
	SMCR_LOG_LINK_ANSWERS, /* value = ms since LINK_SILENT */
	SMCR_LOG_HELD_OFF,     /* value = ms; first failure since first contact with the peer succeeded */
	SMCR_LOG_HELD_LONGER,  /* value = ms; first contact failed again */
	SMCR_LOG_HOLD_OVER,    /* value = ms since the first failure: first contact succeeded */
	SMCR_LOG_SCTP_SHUNNED, /* value = ms of other transports */
	SMCR_LOG_REFUSED,      /* a refused offer of the peer; text = reason */
	SMCR_LOG_PROTOCOL,     /* protocol error of the peer; text = details */
	SMCR_LOG_DEVICE,       /* fault of a device */
	/* State change, while smcr_log_states is on: text = object, from, to and reason. */
	SMCR_LOG_STATE,
	SMCR_LOG_OVERRUN, /* value = lines lost; at most once a second */
	SMCR_LOG_TYPE_CNT
};

struct smcr_log {
	enum smcr_log_type type;
	uint32_t group_id;
	uint8_t link;
	char peer[64];               /* the peer key at a client, else the peer ID */
	bool is_key;                 /* peer is a key */
	char peer_id[48];            /* in hex, or its replacement; "" while not known */
	uint8_t remote[16];          /* the peer's address, as in struct smcr_identity; zeros while not known */
	char host[CLC_HOST_LEN + 1]; /* host name of a version 2 peer, else "" */
	uint64_t value;
	char device[RNIC_NAME_MAX]; /* "" except for device faults and links that are up */
	char text[128];             /* or "" */
};

bool smcr_next_log(struct smcr *, struct smcr_log *);
/* Also logs state changes of groups, links, RMBs and LLC exchanges (SMCR_LOG_STATE); off by default. */
void smcr_log_states(struct smcr *, bool on);

/* Trace of protocol messages: fn is called with each CLC, LLC and CDC message; it must not call the engine. */
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
