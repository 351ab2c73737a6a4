/* DDP over SCTP as LLP of a soft iWARP device (siw_llp.h; RFC 5043, RFC 6581 7). A queue pair has an association of its
 * own, stream 0 of it. siw_sctp.c: table of operations, start, sending and end; siw_sctp_session.c: set-up in both
 * roles, messages of the peer. They do not depend on the stack of the association: siw_sctp_kernel.c is Linux's,
 * siw_sctp_user.c is libusrsctp in UDP. */
#pragma once

#include "iwarp/ddp_session.h"
#include "iwarp/segq.h"
#include "iwarp/ssn.h"
#include "rnic/siw/siw_llp.h"

/* -- stacks -- */

#define SIW_SCTP_MESSAGE_ROOM 65536

/* An association; first member of the stack's own struct. */
struct siw_assoc {
	struct siw_dev *dev;
	struct unknown_peer from; /* the peer, be it known or not */
	/* Its owner, who is told when there may be something to take, or room to send. */
	void (*ready)(void *owner);
	void *owner;
	bool comm_up, is_up; /* in its stack; and the peer does DDP */
	size_t message_max;  /* longest message that goes in one packet; falls with the path's MTU */
	/* Of its stack. */
	struct list_node node; /* of its device's */
	struct siw_linger linger;
	bool ends; /* its owner has let go */
};

enum siw_assoc_in {
	SIW_ASSOC_NOTHING, /* for now */
	SIW_ASSOC_UP,      /* it is there, and the peer does DDP */
	SIW_ASSOC_MESSAGE,
	SIW_ASSOC_CLOSED, /* the peer ended it in order */
	SIW_ASSOC_LOST,   /* why */
};

struct siw_assoc_msg {
	uint32_t ppid;
	uint16_t stream;
	struct span bytes; /* until the next call for any association of the device */
	const char *why;   /* static */
	bool silent;       /* the peer does not answer, as far as can be told */
};

struct siw_sctp_stack {
	/* Peers may come, to dev->port, and go to siw_sctp_came(). As siw_llp.listen; sets dev->sctp and stack.
	 * -EPROTONOSUPPORT: there is no such stack here, and another one may do. */
	int (*open)(struct siw_dev *, const char **err);
	/* Nobody comes any more; associations go on. */
	void (*close)(struct siw_dev *);
	/* *out is there, though not up. 0 or a negative errno. */
	int (*connect)(struct siw_dev *, const struct rnic_remote *, struct siw_assoc **out);
	/* One message on stream 0, unordered, copied; it may wait for dev->flush(). 0; -EAGAIN: no room until `ready`;
	 * -EMSGSIZE: message_max is less now; another errno: the association is lost. */
	int (*send)(struct siw_assoc *, uint32_t ppid, const struct iovec *, unsigned cnt);
	/* What is next; of messages, whole ones only. */
	enum siw_assoc_in (*take)(struct siw_assoc *, struct siw_assoc_msg *out);
	/* The peer takes several packets in one datagram (MPA_PACKETS_TOGETHER), as this stack does. NULL: it does not. */
	void (*gather)(struct siw_assoc *);
	/* As struct rnic_ops.conn_info. */
	void (*info)(struct siw_assoc *, struct rnic_conn_info *);
	/* More than usual may be sent from now on, as it is the end. */
	void (*last_words)(struct siw_assoc *);
	/* The owner lets go: in order behind what was sent, within the limits of siw_linger.c, or by ABORT. */
	void (*end)(struct siw_assoc *, bool in_order);
};

extern const struct siw_sctp_stack siw_sctp_kernel, siw_sctp_user;

/* Of a device; first member of the stack's own struct, if it has one. */
struct siw_sctp_dev {
	const struct siw_sctp_stack *stack;
	struct list_node assocs;
	uint8_t *message;          /* where the next one goes, in `received` */
	struct list_node unplaced; /* struct rnic_unit, of Writes that stay there */
	uint8_t received[4 * SIW_SCTP_MESSAGE_ROOM];
};

/* Of a stack's take(): the association is lost. */
static inline enum siw_assoc_in
siw_assoc_lost(struct siw_assoc_msg *out, const char *why)
{
	*out = (struct siw_assoc_msg){ .why = why };
	return SIW_ASSOC_LOST;
}

/* The same: by a peer that does not answer, or may not. */
static inline enum siw_assoc_in
siw_assoc_silent(struct siw_assoc_msg *out, const char *why)
{
	*out = (struct siw_assoc_msg){ .why = why, .silent = true };
	return SIW_ASSOC_LOST;
}

#define SIW_LOST_RESET "the peer reset the association, or does not answer"
#define SIW_LOST_SILENT "the peer's SCTP port does not answer"
#define SIW_LOST_NO_DDP "the peer does no DDP on SCTP"
#define SIW_LOST_FRAGMENTS "the peer sends messages in fragments"

/* -- a queue pair's part -- */

struct siw_sctp {
	struct siw_assoc *assoc; /* NULL: none, or no more */
	struct ddp_session session;
	struct ssn order; /* of what arrives */
	bool closed;      /* the peer ended the association in order, while something was held (qp->held) */
	bool ending;      /* finish() is at work */
	struct segq out;
};

static inline const struct sctp_ddp_values *
siw_sctp_values(const struct siw_dev *dev)
{
	return &sctp_ddp_values[dev->cfg.sctp_profile];
}

/* -- siw_sctp.c -- */

/* For stacks: the part of an association that they share, among its device's. 0, or -ENOMEM: it is in no list. */
int siw_assoc_init(struct siw_assoc *, struct siw_dev *, const struct unknown_peer *from, size_t message_max,
    void (*linger_over)(struct siw_linger *));
void siw_assoc_fini(struct siw_assoc *);
/* Of an association without owner: takes what is left, so many messages at most. True: it is over. */
bool siw_assoc_is_over(struct siw_assoc *, unsigned budget);

/* Sends a message of session control, as the session has made it (len, or a negative errno). False: it could not. */
bool siw_sctp_say(struct siw_assoc *, const uint8_t *message, int len);

/* -- siw_sctp_session.c -- */

int siw_sctp_connect(struct siw_qp *);
/* A peer has made an association. */
void siw_sctp_came(struct siw_assoc *);
void siw_sctp_pend_adopt(struct siw_pend *, struct siw_qp *);
void siw_sctp_pend_refuse(struct siw_pend *, enum mpa_verdict);
void siw_sctp_pend_drop(struct siw_pend *);
void siw_sctp_rx_turn(struct siw_qp *);
