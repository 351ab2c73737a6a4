/*
 * The rendezvous of a connection: CLC messages on the middle, from smcr_open
 * until it is established, fallen back or ended (RFC 7609 3.5, Appendix C).
 * rendezvous.c has the timer, the messages that come and the entry points of
 * smcr.h; rdv_client.c and rdv_server.c the steps of each role; rdv_step.c has
 * the table of steps, and the messages that are sent; rdv_device.c
 * picks devices, rdv_terms.c agrees on version 2, rdv_group.c has groups and
 * elements; rdv_turn.c knows when a peer is at others; rdv_end.c how it ends
 * otherwise.
 */
#pragma once

#include "smcr/data/conn.h"
#include "smcr/group/link.h"
#include "smcr/group/owner.h"

/* Where the rendezvous stands (rdv_step.c). */
enum rdv_step {
	RDV_NONE,
	/* client */
	RDV_WAIT_TURN, /* another connection makes the group to this peer */
	RDV_WAIT_ACCEPT,
	RDV_CONNECTING, /* first contact: QP is being connected */
	RDV_WAIT_RKEY,  /* new RMB is being confirmed, then Confirm goes */
	RDV_WAIT_GROUP, /* first contact: Confirm is out, LLC goes on */
	/* both */
	RDV_LATE_DECLINE, /* we declined; the peer's Decline may have crossed ours. Goes on in CONN_FALLBACK */
	/* server */
	RDV_WAIT_PROPOSAL,
	RDV_WAIT_ADMIT,      /* PROPOSAL told to the user */
	RDV_WAIT_PEER_GROUP, /* another connection of this peer makes the group */
	RDV_WAIT_SRV_RKEY,
	RDV_WAIT_CONFIRM,
	RDV_WAIT_LINK, /* first contact: Confirm is in, QP and LLC go on */
};

#define RDV_OUT_MAX (2 * CLC_MAX_SENT_LEN) /* a message and a Decline behind it */

/* Only while the rendezvous lasts; malloced apart so that an idle connection stays small. Freed when it is over and
 * the last CLC bytes were taken. */
struct rdv {
	struct conn_mark mark; /* marks.h */
	struct smcr_conn *conn;
	enum rdv_step step;
	struct smcr_open open;
	struct timer timer;
	uint8_t in[CLC_MAX_LEN]; /* the message being read */
	size_t in_len, in_want;
	size_t left_len; /* bytes of `in` that are data (smcr_clc_leftover) */
	uint8_t out[RDV_OUT_MAX];
	size_t out_len;
	struct clc_proposal proposal; /* server: the peer's; client: ours */
	struct clc_accept peer;       /* the peer's Accept or Confirm */
	unsigned heard;               /* version of the peer's last message, which a Decline of ours has, too */
	unsigned version;             /* of SMC, which the Accept has settled; the terms go with it */
	struct lgr_terms terms;
	bool measure;           /* server: the peer has asked for it, and it is served */
	bool confirm_in;        /* server: the Confirm of a first contact has arrived */
	enum smcr_reason abort; /* server, Accept is out: aborted when the Confirm comes; SMCR_OK = not */
	uint32_t failed;        /* server, first contact: decline with this when the Confirm comes */
	int64_t confirm_ns;     /* first contact: when the Confirm went out, or came; with stalled_ns */
	bool kept_back;         /* our Decline, which would be taken for data: the peer's is awaited */
	struct lgr *lgr;        /* the group being formed, or whose new RMB is awaited */
	struct list_node wait;  /* peer->waiting or lgr->wait_rmb */
	int64_t until_ns;       /* we decline by then, as the peer waits for our next message and resets soon after */
	struct peer *peer_ent;  /* whose first contact this leads or waits for */
};

/*
 * What is known of a peer while first contact with it goes on or has failed:
 * one connection leads (makes the group), others wait and join it. A failed
 * attempt is repeated once by a waiting connection; then all of them fall back
 * together, and after repeated failures the peer is held off for a while,
 * doubling. A server whose first contact over SCTP failed takes another
 * transport for a while, if both ends have one. A client names its peer by the
 * key of smcr_open, a server by the peer id of the Proposal and who sent it
 * (owner.h). Owned by the engine; freed when nothing is left to remember.
 */
struct peer {
	struct list_node node; /* eng->peers */
	enum smcr_role role;
	char key[64];       /* client */
	struct owner owner; /* server; client: of a group that the key leads to, when owner_known or owner_met */
	bool owner_known;   /* client: that group was made under another key */
	bool owner_met;     /* client: the last Accept named it: failures count for all keys that lead to it */
	struct smcr_conn *leader;
	struct list_node mark; /* eng->marked_peers: some of those that wait may go on, or are refused; empty: none */
	struct list_node waiting;    /* rdv->wait */
	struct list_node refused;    /* rdv->wait of those that are to be declined */
	unsigned attempts;           /* leaders that failed while others waited */
	unsigned failures;           /* rounds that failed in a row */
	int64_t hold_until_ns;       /* counts from the release of the connection that failed last */
	uint32_t failed_id;          /* that connection's */
	int64_t began_ns, failed_ns; /* when the last leader began; when the last round failed */
	int64_t held_ns; /* when it was held off first; 0: first contact has succeeded since, or it never was */
	/* Server: SCTP may be blocked where TCP passes. After a failure the next first contact goes over something else whenever it
	 * comes, and others for a while. */
	bool over_sctp;        /* the leader's goes over it */
	bool sctp_failed;      /* the last one went over it, and failed */
	int64_t sctp_until_ns; /* 0: none has failed since the last one that did not */
};

/* What can be seen of a step, whether it takes CLC bytes of the middle, and what follows when it takes too long: a
 * Decline, or the end, with what did not come. */
extern const struct rdv_step_row {
	const char *name;
	enum smcr_phase phase;
	bool reads;
	bool in_turn;     /* the peer may be at others first */
	uint32_t decline; /* with this diagnosis; 0: none */
	const char *missing;
} rdv_steps[]; /* by enum rdv_step */

static inline const struct clc_smcrd_ext *
rdv_peer_ext(const struct smcr_conn *conn)
{
	return conn->role == SMCR_CLIENT ? &conn->rdv->peer.ext : &conn->rdv->proposal.ext;
}

/* The peer's CLC messages so far have our extension. */
static inline bool
rdv_is_smcrd(const struct smcr_conn *conn)
{
	return rdv_peer_ext(conn)->present;
}

/* -- for the engine -- */

/* Frees conn->rdv, if there is one; the connection leaves the lists that it waits in. */
void rdv_free(struct smcr_conn *);
/* The queue pair of a group's first link is connected. */
void rdv_link_connected(struct lgr *);
/* What has become of first contact, and of the RMB that connections wait for (marks.h). */
void rdv_act_on_contact(struct lgr *);
void rdv_act_on_rmb(struct lgr *);
void rdv_act_on_conn(struct conn_mark *);
/* The connections that waited for a first contact with it go on, or are declined. May free the peer. */
void rdv_act_on_peer(struct smcr *, struct peer *);

/* -- rdv_step.c -- */

void rdv_step(struct smcr_conn *, enum rdv_step, uint32_t timeout_ms); /* 0: no timer */
void rdv_read(struct smcr_conn *);                                     /* the next CLC message is awaited */
void rdv_send(struct smcr_conn *, const struct clc_msg *);

/* -- rdv_end.c -- */

/* The group that is being formed, or whose new RMB is awaited; NULL when that has ended. */
void rdv_set_group(struct rdv *, struct lgr *);
static inline bool
rdv_forms_group(const struct smcr_conn *conn)
{
	return conn->rdv->lgr != NULL && conn->rdv->lgr->contact.conn == conn;
}
/* The first link of the group that this connection forms; NULL when it forms none, or has no link yet. */
static inline struct link *
rdv_first_link(const struct smcr_conn *conn)
{
	struct link *link = rdv_forms_group(conn) ? &conn->rdv->lgr->links[0] : NULL;

	return link != NULL && link->state != LINK_FREE ? link : NULL;
}
/* The rendezvous has ended; its memory goes when the last bytes were taken. */
void rdv_ended(struct smcr_conn *);
/* As far as it has been read: can this be a Decline? */
bool rdv_may_be_decline(struct span);
/* RDV_LATE_DECLINE: the peer did not decline, and what was read is its data; bytes came; none came in time. */
void rdv_no_late_decline(struct smcr_conn *);
void rdv_late_decline_input(struct smcr_conn *);
void rdv_late_decline_waited(struct smcr_conn *);
/* One of the peer's is sure to come. */
bool rdv_declines_are_answered(const struct smcr_conn *);
/* First contact: a Decline of ours would be taken for data. */
bool rdv_is_too_late_for_linux(const struct smcr_conn *);
/* Before it is established: aborted by its user. */
void rdv_abort(struct smcr_conn *, enum smcr_reason);
/* Sends a Decline and falls back; at first contact it may be the peer's Decline that is waited for. */
void rdv_decline(struct smcr_conn *, uint32_t diag);
/* Falls back because the peer declined. */
void rdv_declined(struct smcr_conn *, const struct clc_decline *);
/* What the peer sent does not fit: counted, and the rendezvous ends. */
void rdv_protocol_error(struct smcr_conn *, const char *what);
/* First contact failed for all who waited, or the peer is held off: declines. */
void rdv_give_up(struct smcr_conn *);
/* Ends with a reset of the middle. */
void rdv_end(struct smcr_conn *, enum smcr_reason, const char *detail);
/* The peer awaits our next message from now on, for clc_ms (C.5): who has not come to it in three quarters of that declines. */
void rdv_peer_waits(struct smcr_conn *);
/* What is left of that, never 0. */
uint32_t rdv_wait_ms(const struct smcr_conn *);
/* There is no group to join: true when the connection leads first contact with this peer (NULL: there is no memory
 * for it); else it waits for the one that does, at the step `wait`, or is declined. */
bool rdv_leads(struct peer *, struct smcr_conn *, enum rdv_step wait);
/* Waits until the group has a new RMB of the connection's size; declines when that cannot be. */
void rdv_wait_rmb(struct smcr_conn *, struct lgr *, enum rdv_step);
/* A new group with its first link, first RMB and the connection's element in it, on the terms of the rendezvous. 0 or the
 * diagnosis to decline with. */
uint32_t rdv_form_group(struct smcr_conn *, const struct owner *, struct rnic_dev *, uint64_t token);
/* The peer's element of a Confirm or Accept on an existing or new group: 0 or the diagnosis. Resolves a conflict by
 * 4.4.2. via: the link that the message named. */
uint32_t rdv_take_peer_elem(struct smcr_conn *, struct lgr *, struct link *via, const struct clc_accept *);
/* Accept or Confirm, from conn->rmb, conn->elem_idx and the link. */
void rdv_send_accept(struct smcr_conn *, enum clc_type, const struct link *, bool first_contact);
/* Attached, established; the rendezvous is over. */
void rdv_finish(struct smcr_conn *, struct lgr *, struct link *);
/* The element that its user wants. */
struct window_want rdv_want(const struct smcr_conn *);
/* An operator asks for it: a hold-off does not count, nor does it become one. */
bool rdv_insists(const struct smcr_conn *);

/* -- rdv_device.c -- */

/* Kinds of devices, in sets. A peer with our extension names transports; how a RoCE port of any other peer is addressed goes by
 * the version of SMC. */
enum {
	RDV_ROCE = CLC_TRANSPORT_ROCE,
	RDV_IWARP = CLC_TRANSPORT_IWARP_ANY,
	RDV_SCTP = CLC_TRANSPORT_IWARP_SCTP | CLC_TRANSPORT_IWARP_SCTP_UDP,
	RDV_SMCRD = RDV_ROCE | RDV_IWARP, /* whatever the extension can name */
	RDV_ROCE_V1 = 1 << 8,
	RDV_ROCE_V2 = 1 << 9, /* with an IPv4 address */
};

bool rdv_is_ipv4(const uint8_t addr[16]);
/* A device whose port is up, of one of these kinds: the one at this address, else one on the same port, else a card; NULL when
 * there is none. to: those only from which there may be a way to this GID of the peer; NULL: any. */
struct rnic_dev *rdv_pick_device(const struct smcr *, unsigned kinds, const struct rnic_gid *want, const uint8_t *to);
enum rnic_reach rdv_reach(struct rnic_dev *, const uint8_t gid[16]);
/* CLC_TRANSPORT_ bits of what can be picked; that of one transport. */
uint8_t rdv_transports(const struct smcr *);
uint8_t rdv_transport_bit(enum rnic_transport);
/* The device that would be taken for a group of this kind, for this connection, is in the group's VLAN. */
bool rdv_vlan_fits(const struct smcr_conn *, const struct lgr *);
/* The GIDs of our RoCE v2 ports that links of the group may use, that of this link first; returns their number. */
uint8_t rdv_own_gids(const struct smcr *, const struct link *, uint8_t gids[CLC_MAX_GIDS][CLC_GID_LEN]);

/* -- rdv_terms.c: 0, or the diagnosis to decline with -- */

/* Version 1, which agrees on no terms. */
void rdv_terms_v1(struct rdv *);
/* The group is on the terms of the rendezvous. */
bool rdv_fits_terms(const struct smcr_conn *, const struct lgr *);
/* Client: what of version 2 the Proposal has; false: none of it. */
bool rdv_offer_v2(const struct smcr_conn *, struct clc_v2_offer *);
/* Client: version and terms that the Accept settles. */
uint32_t rdv_take_accept(struct smcr_conn *, const struct clc_msg *);
/* Client, first contact: is there a way to the port that the Accept names? */
uint32_t rdv_way_to_server(const struct smcr_conn *, struct rnic_dev *, const struct clc_accept *);
/* Server: version 2 as the Proposal offers it, then version and terms of the rendezvous. */
uint32_t rdv_take_offer(struct smcr_conn *);
/* Server, first contact of version 2: is there a device, and a way from it to the client's port? */
uint32_t rdv_way_to_client(const struct smcr_conn *);
/* Server: the Confirm keeps to the group's version and terms; what it tells of the client goes into the group. */
uint32_t rdv_take_confirm(struct smcr_conn *, const struct clc_msg *);
/* What an Accept or Confirm of version 2 has besides; gid, first_contact are set. */
void rdv_tell_terms(const struct smcr_conn *, enum clc_type, const struct link *, struct clc_accept *);

/* -- rdv_turn.c -- */

/* So many times clc_ms, at most, for others' turns. */
#define RDV_TURNS_MAX 4

/* clc_ms have passed without the Accept or Confirm that is awaited: how much longer to wait, as the peer is at others. 0: not
 * at all. */
uint32_t rdv_turn_ms(const struct smcr_conn *);

/* -- peer.c -- */

/* Finds or makes; NULL when memory is out or first contact goes on with too many peers. */
struct peer *peer_get(struct smcr *, enum smcr_role, const char *key, const struct owner *);
/* Client: connections by this key join a group that was made under another one (two ports of one peer). */
void peer_learn(struct smcr *, const char *key, const struct owner *);
/* Client: whose groups the key was learned to lead to, NULL when it was not. */
const struct owner *peer_known_owner(const struct smcr *, const char *key);
/* Client: the key, with what was learned of it, leads to this group. */
bool peer_key_leads_to(const char *key, const struct owner *known, const struct lgr *);
void peer_lead(struct peer *, struct smcr_conn *);
/* Client, first contact: the Accept names this owner. False: it is held off, perhaps by another key. */
bool peer_meets(struct smcr_conn *, const struct owner *);
bool peer_holds_off(const struct peer *, const struct smcr_conn *);

/* Server: kinds of devices that first contact with the peer should not take if there are others. */
unsigned peer_is_avoided(const struct peer *, int64_t now_ns);

enum peer_outcome {
	PEER_OK,     /* there is a group now */
	PEER_FAILED, /* first contact failed */
	PEER_VOID,   /* the leader went away for reasons of its own, or was declined before first contact */
};

/* The leader is through: the waiting ones may go on (mark_peer). May free the peer. */
void peer_done(struct smcr *, struct peer *, enum peer_outcome);
/* The next connection that may go on, as nobody leads, or that is refused. NULL: none; the mark is gone, perhaps the peer, too. */
struct smcr_conn *peer_next(const struct smcr *, struct peer *, bool *refused);
/* A waiting connection goes away. May free the peer. */
void peer_leave(struct peer *, struct smcr_conn *);
/* The connection led a round that failed, and is released at this time, expected or known: the hold-off starts then. */
void peer_hold_from(const struct smcr_conn *, int64_t from_ns);
void peer_free_all(struct smcr *);

/* -- the roles' parts -- */

void rdv_client_start(struct smcr_conn *);
/* A waiting connection may go on; the peer is still in use. */
void rdv_client_go_on(struct smcr_conn *, struct peer *);
/* Joins the group that the Accept names. */
void rdv_client_join(struct smcr_conn *);
void rdv_client_msg(struct smcr_conn *, const struct clc_msg *);
void rdv_client_connected(struct smcr_conn *);
void rdv_server_msg(struct smcr_conn *, const struct clc_msg *);
void rdv_server_choose(struct smcr_conn *);
void rdv_server_connected(struct smcr_conn *);
