/* Rendezvous of a connection: CLC messages on the CLC connection, from smcr_open until it is established, fallen back
 * or ended (RFC 7609 3.5, Appendix C). rendezvous.c: timer, incoming messages, entry points of smcr.h. rdv_client.c,
 * rdv_server.c: steps of each role. rdv_step.c: step table, outgoing messages. rdv_device.c: choice of devices.
 * rdv_terms.c: terms of version 2. rdv_group.c: groups and elements. rdv_open.c: opening over a link. rdv_end.c: other ends. */
#pragma once

#include "smcr/data/conn.h"
#include "smcr/group/link.h"
#include "smcr/group/owner.h"

/* Step of the rendezvous (rdv_step.c). */
enum rdv_step {
	RDV_NONE,
	/* client */
	RDV_WAIT_ACCEPT,
	RDV_CONNECTING, /* first contact: connecting the QP */
	RDV_WAIT_GROUP, /* first contact: Confirm sent, LLC follows */
	/* both */
	RDV_WAIT_TURN,    /* another connection creates the group with this peer */
	RDV_WAIT_RKEY,    /* a new RMB is being confirmed, then Confirm or Accept */
	RDV_LATE_DECLINE, /* we declined, maybe simultaneously with the peer. Continues in CONN_FALLBACK */
	/* server */
	RDV_WAIT_PROPOSAL,
	RDV_WAIT_ADMIT, /* the user was notified of the PROPOSAL */
	RDV_WAIT_CONFIRM,
	RDV_WAIT_LINK, /* first contact: Confirm received, QP and LLC follow */
};

#define RDV_OUT_MAX (2 * CLC_MAX_SENT_LEN) /* a message and a following Decline */
#define RDV_TURNS_MAX 4                    /* limit of the wait for other rendezvous of the peer, in clc_ms */

/* Exists only during the rendezvous, as idle connections must be small. Freed after the last CLC bytes. */
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
	unsigned heard;               /* version of the peer's last message, used by our Decline */
	unsigned version;             /* of SMC, as agreed by the Accept; it defines the terms */
	struct lgr_terms terms;
	bool measure;           /* server: requested by the peer and supported */
	bool confirm_in;        /* server: Confirm of a first contact received */
	enum smcr_reason abort; /* server, Accept sent: abort at the Confirm; SMCR_OK = no */
	uint32_t failed;        /* server, first contact: decline at the Confirm with this diagnosis */
	int64_t confirm_ns;     /* first contact: when the Confirm was sent or received; with stalled_ns */
	uint32_t only_tlvs;     /* client: its fallback's diagnosis; a Proposal names client and destination first */
	uint32_t only_tcp;      /* server: the Decline's diagnosis after its user has judged the destination */
	bool kept_back;         /* our Decline was withheld, as it would be taken for data: the peer's is awaited */
	struct lgr *lgr;        /* the group being formed, or with the awaited new RMB */
	struct list_node wait;  /* peer->waiting or lgr->wait_rmb */
	int64_t until_ns;       /* limit for our Decline: the peer awaits our next message and resets soon after */
	struct peer *peer_ent;  /* the first contact that this connection leads or waits for */
};

/* A peer during first contact or after its failure. One connection leads (creates the group), others wait and join it.
 * A waiting connection repeats a failed attempt once; then all fall back together. After repeated failures the peer is
 * held off, for an interval that doubles. A server whose first contact over SCTP failed uses another transport for a
 * while, if both ends have one. A client identifies its peer by the key of smcr_open, a server by the Proposal's peer
 * ID and sender (owner.h). Owned by the engine; freed when it holds no more state. */
struct peer {
	struct list_node node; /* eng->peers */
	enum smcr_role role;
	char key[64];       /* client */
	struct owner owner; /* server; client: of the group that the key leads to, when owner_known or owner_met */
	bool owner_known;   /* client: that group was created under another key */
	bool owner_met;     /* client: named by the last Accept: failures count for all keys of this owner */
	struct smcr_conn *leader;
	struct list_node mark;       /* eng->marked_peers: waiting connections continue or are refused; empty: none */
	struct list_node waiting;    /* rdv->wait */
	struct list_node refused;    /* rdv->wait of connections to be declined */
	unsigned attempts;           /* leaders that failed while others waited */
	unsigned failures;           /* consecutive failed rounds */
	int64_t hold_until_ns;       /* counts from the release of the last failed connection */
	uint32_t failed_id;          /* ID of that connection */
	int64_t began_ns, failed_ns; /* start of the last leader; failure of the last round */
	int64_t held_ns;             /* start of the first hold-off; 0: none, or first contact succeeded since */
	/* Server: SCTP may be blocked where TCP is not. First contact after a failure avoids it, others for a while. */
	bool over_sctp;        /* the leader uses it */
	bool sctp_failed;      /* the last leader used it, and failed */
	int64_t sctp_until_ns; /* 0: no failure since the last success */
};

/* Properties of a step: name, phase, reading of CLC bytes, and timeout: Decline, or end for a missing message. */
extern const struct rdv_step_row {
	const char *name;
	enum smcr_phase phase; /* of a client: a server may be at the same step, and has none */
	bool reads;
	bool in_turn;     /* the peer may be busy with others */
	uint32_t decline; /* timeout: decline with this diagnosis; 0: end */
	const char *missing;
} rdv_steps[]; /* by enum rdv_step */

static inline const struct clc_smcrd_ext *
rdv_peer_ext(const struct smcr_conn *conn)
{
	return conn->role == SMCR_CLIENT ? &conn->rdv->peer.ext : &conn->rdv->proposal.ext;
}

/* All CLC messages of the peer so far have our extension. */
static inline bool
rdv_is_smcrd(const struct smcr_conn *conn)
{
	return rdv_peer_ext(conn)->present;
}

/* A client with something to tell the peer even if the connection goes by TCP. */
static inline bool
rdv_has_tlvs(const struct smcr_open *open)
{
	return open->client.kind != CLC_CLIENT_NONE || open->dest.kind != CLC_DEST_NONE;
}

/* Server: its user connects in the name of the client that the peer has sent, as Accept and Decline say. */
static inline bool
rdv_uses_client(const struct smcr_conn *conn)
{
	return conn->role == SMCR_SERVER && conn->rdv->open.takes_client &&
	    conn->rdv->proposal.tlvs.client.kind != CLC_CLIENT_NONE;
}

/* -- for the engine -- */

/* Frees conn->rdv, if any; removes the connection from its waiting lists. */
void rdv_free(struct smcr_conn *);
/* The queue pair of a group's first link is connected. */
void rdv_link_connected(struct lgr *);
/* Handle the outcome of first contact, and of the RMB that connections wait for (marks.h). */
void rdv_act_on_contact(struct lgr *);
void rdv_act_on_rmb(struct lgr *);
void rdv_act_on_conn(struct conn_mark *);
/* An OPEN has come. */
void rdv_act_on_open(struct lgr *);
/* Connections that waited for first contact with the peer continue, or are declined. May free the peer. */
void rdv_act_on_peer(struct smcr *, struct peer *);

/* -- rendezvous.c -- */

/* Gives the connection its struct rdv. False: no memory. */
bool rdv_new(struct smcr_conn *, const struct smcr_open *);

/* -- rdv_step.c -- */

/* To another step, or with another timeout (0: none). A step that reads awaits the next CLC message. */
void rdv_step(struct smcr_conn *, enum rdv_step, uint32_t timeout_ms);
void rdv_send(struct smcr_conn *, const struct clc_msg *);

/* -- rdv_end.c -- */

/* The group being formed, or with the awaited new RMB; NULL once that has ended. */
void rdv_set_group(struct rdv *, struct lgr *);
static inline bool
rdv_forms_group(const struct smcr_conn *conn)
{
	return conn->rdv->lgr != NULL && conn->rdv->lgr->contact.conn == conn;
}
/* The first link of the group that this connection forms; NULL: no such group, or no link yet. */
static inline struct link *
rdv_first_link(const struct smcr_conn *conn)
{
	struct link *link = rdv_forms_group(conn) ? &conn->rdv->lgr->links[0] : NULL;

	return link != NULL && link->state != LINK_FREE ? link : NULL;
}
/* The rendezvous has ended; its memory is freed when the last bytes were taken. */
void rdv_ended(struct smcr_conn *);
/* The bytes so far may be a Decline: its length, 0: not known yet; else negative. */
int rdv_decline_len(struct span);
/* RDV_LATE_DECLINE: the peer did not decline, so what was read is data; bytes arrived. */
void rdv_no_late_decline(struct smcr_conn *);
void rdv_late_decline_input(struct smcr_conn *);
/* A Decline of the peer is certain. */
bool rdv_declines_are_answered(const struct smcr_conn *);
/* First contact: the peer would take our Decline for data. */
bool rdv_is_too_late_for_linux(const struct smcr_conn *);
/* Abort by the user before it is established. */
void rdv_abort(struct smcr_conn *, enum smcr_reason);
/* Sends a Decline and falls back; at first contact the peer's Decline may be awaited instead. */
void rdv_decline(struct smcr_conn *, uint32_t diag);
/* No link may be used, and the peer wants one. */
void rdv_tcp_only(struct smcr_conn *);
/* Falls back because the peer declined. */
void rdv_declined(struct smcr_conn *, const struct clc_decline *);
/* Invalid message of the peer: counts it and ends the rendezvous. */
void rdv_protocol_error(struct smcr_conn *, const char *what);
/* First contact failed for all waiting connections, or the peer is held off: declines. */
void rdv_give_up(struct smcr_conn *);
/* Ends with a reset of the CLC connection. */
void rdv_end(struct smcr_conn *, enum smcr_reason, const char *detail);
/* From now on the peer awaits our next message for clc_ms (C.5): we decline after three quarters of that. */
void rdv_peer_waits(struct smcr_conn *);
/* Remaining time, never 0. */
uint32_t rdv_wait_ms(const struct smcr_conn *);
/* True: the connection leads first contact with this peer. Else it waits for the leader, or is declined: no memory
 * (NULL), or the peer is held off. */
bool rdv_leads(struct peer *, struct smcr_conn *);
/* Waits until the group has a new RMB of the connection's size; declines if that is impossible. */
void rdv_wait_rmb(struct smcr_conn *, struct lgr *);
/* Creates a group on the agreed terms: first link, first RMB, the connection's element. 0 or the diagnosis. */
uint32_t rdv_form_group(struct smcr_conn *, const struct owner *, struct rnic_dev *, uint64_t token);
/* Claims the peer's element in a Confirm or Accept: 0 or the diagnosis. Resolves conflicts by 4.4.2. via: its link. */
uint32_t rdv_take_peer_elem(struct smcr_conn *, struct lgr *, struct link *via, const struct clc_accept *);
/* Sends Accept or Confirm, from conn->rmb, conn->elem_idx and the link. */
void rdv_send_accept(struct smcr_conn *, enum clc_type, const struct link *, bool first_contact);
/* Ends the rendezvous: attached and established. */
void rdv_finish(struct smcr_conn *, struct lgr *, struct link *);
/* Requested by an operator: ignores a hold-off and causes none. */
bool rdv_insists(const struct smcr_conn *);

/* -- rdv_open.c -- */

/* A rendezvous has succeeded, or is about to (server): later connections to its service may open over a link. */
void rdv_give_ticket(const struct smcr_conn *, struct lgr *);
/* Server: the user admits a connection that the client opened over a link, or refuses it. */
void rdv_admit_opened(struct smcr_conn *);
void rdv_refuse_opened(struct smcr_conn *, enum smcr_reason);

/* -- rdv_device.c -- */

/* Sets of device kinds. A peer with our extension names transports; foreign RoCE ports are addressed by SMC version. */
enum {
	RDV_ROCE = CLC_TRANSPORT_ROCE,
	RDV_IWARP = CLC_TRANSPORT_IWARP_ANY,
	RDV_SCTP = CLC_TRANSPORT_IWARP_SCTP | CLC_TRANSPORT_IWARP_SCTP_UDP,
	RDV_SMCRD = RDV_ROCE | RDV_IWARP, /* all that the extension can name */
	RDV_ROCE_V1 = 1 << 8,
	RDV_ROCE_V2 = 1 << 9, /* with an IPv4 address */
};

/* A device with its port up, of one of these kinds: at this address, else on the same port, else a card; NULL: none.
 * to: only devices with a possible path to this GID of the peer; NULL: any. */
struct rnic_dev *rdv_pick_device(const struct smcr *, unsigned kinds, const struct rnic_gid *want, const uint8_t *to);
/* CLC_TRANSPORT_ bits of available devices; that of one transport. */
uint8_t rdv_transports(const struct smcr *);
uint8_t rdv_transport_bit(enum rnic_transport);
/* In CLC messages, links on TCP that are in TLS are a transport of their own: as sent, and as received. With only_tls,
 * others are not named, and not taken. */
uint8_t rdv_transports_sent(const struct smcr_conn *, unsigned kinds);
unsigned rdv_transports_received(const struct smcr_conn *, unsigned transports);
/* Of a peer whose message lacks our extension: these, or none with only_tls. */
unsigned rdv_transports_foreign(const struct smcr_conn *, unsigned kinds);
/* The device for a group of this kind and this connection is in the group's VLAN. */
bool rdv_vlan_fits(const struct smcr_conn *, const struct lgr *);
/* The GIDs of our RoCE v2 ports usable for links of the group, starting with this link's; returns their number. */
uint8_t rdv_own_gids(const struct smcr *, const struct link *, uint8_t gids[CLC_MAX_GIDS][CLC_GID_LEN]);

/* -- rdv_terms.c: 0, or the diagnosis to decline with -- */

/* The group has the terms of the rendezvous. */
bool rdv_fits_terms(const struct smcr_conn *, const struct lgr *);
/* Client: version 2 part of the Proposal; false: none. */
bool rdv_offer_v2(const struct smcr_conn *, struct clc_v2_offer *);
/* Client: version and terms in the Accept. */
uint32_t rdv_take_accept(struct smcr_conn *, const struct clc_msg *);
/* Client, first contact: checks for a path to the port in the Accept. */
uint32_t rdv_way_to_server(const struct smcr_conn *, struct rnic_dev *, const struct clc_accept *);
/* Server: version 2 part of the Proposal, then version and terms of the rendezvous. */
uint32_t rdv_take_offer(struct smcr_conn *);
/* Server, first contact of version 2: checks for a device with a path to the client's port. */
uint32_t rdv_way_to_client(const struct smcr_conn *);
/* Server: checks the Confirm against the group's version and terms; stores its client data in the group. */
uint32_t rdv_take_confirm(struct smcr_conn *, const struct clc_msg *);
/* Version 2 fields of an Accept or Confirm; gid and first_contact are set. */
void rdv_tell_terms(const struct smcr_conn *, enum clc_type, const struct link *, struct clc_accept *);

/* -- peer.c -- */

/* Finds or creates; NULL when out of memory or with first contact to too many peers. */
struct peer *peer_get(struct smcr *, enum smcr_role, const char *key, const struct owner *);
/* Client: connections with this key join a group created under another one (two ports of one peer). */
void peer_learn(struct smcr *, const char *key, const struct owner *);
/* Client: the owner of the groups that the key leads to; NULL: not known. */
const struct owner *peer_known_owner(const struct smcr *, const char *key);
/* Client: the key, with the owner known for it, leads to this group. */
bool peer_key_leads_to(const char *key, const struct owner *known, const struct lgr *);
/* Client, first contact: the Accept names this owner. False: it is held off, perhaps by another key. */
bool peer_meets(struct smcr_conn *, const struct owner *);
bool peer_holds_off(const struct peer *, const struct smcr_conn *);

enum peer_outcome {
	PEER_OK,     /* the group exists */
	PEER_FAILED, /* first contact failed */
	PEER_VOID,   /* the leader ended for other reasons, or was declined before first contact */
};

/* The leader has finished: waiting connections may continue (eng->marked_peers). May free the peer. */
void peer_done(struct smcr *, struct peer *, enum peer_outcome);
/* The next connection to continue without a leader, or to refuse. NULL: none; clears the mark, may free the peer. */
struct smcr_conn *peer_next(const struct smcr *, struct peer *, bool *refused);
/* A waiting connection leaves. May free the peer. */
void peer_leave(struct peer *, struct smcr_conn *);
/* The connection led a failed round, and is released at this time, expected or known: start of the hold-off. */
void peer_hold_from(const struct smcr_conn *, int64_t from_ns);
void peer_free_all(struct smcr *);

/* -- parts of the roles -- */

/* At the start, or after a wait: a Proposal, as the leader unless a group exists, or a turn. */
void rdv_client_choose(struct smcr_conn *);
/* Sends the Proposal, or declines. */
void rdv_propose(struct smcr_conn *);
/* Joins the group in the Accept. */
void rdv_client_join(struct smcr_conn *);
void rdv_client_msg(struct smcr_conn *, const struct clc_msg *);
void rdv_client_connected(struct smcr_conn *);
void rdv_server_msg(struct smcr_conn *, const struct clc_msg *);
/* After admission or a wait: an existing group, a turn, or first contact. */
void rdv_server_choose(struct smcr_conn *);
void rdv_server_connected(struct smcr_conn *);
