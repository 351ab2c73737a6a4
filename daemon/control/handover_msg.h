/*
 * The protocol by which a running daemon hands its listening sockets over to its successor: messages of fixed length on the control
 * socket, each with one descriptor or none. handover/takeover.c is the new process, control_handover.c the old one.
 *
 *	new                                     old
 *	HANDOVER_REQUEST and the version   -->
 *	                                   <--  HELLO, SOCKET for each, END; or REFUSED
 *	(starts, up to its first accept)
 *	USED for each MPA that it needs, READY  -->
 *	                                        (stops accepting, drains; finishes connections in their set-up)
 *	                                   <--  HEALTH of each probed target, if READY knows them; DONE
 *	(accepts)
 *
 * Until READY either end may disconnect: the old process goes on as before.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/span.h"
#include "daemon/target/targets.h"

#define HANDOVER_REQUEST "smcrd-take-over" /* then a blank, the version and a line feed: no JSON */
#define HANDOVER_FAILED \
	"smcrd-take-over-failed " /* then the reason and a line feed: for the status of the old process */
#define HANDOVER_VERSION 1
#define HANDOVER_LINE HANDOVER_REQUEST " 1\n" /* with that number as text */
#define HANDOVER_LEN 160
#define HANDOVER_TEXT_MAX 112
#define HANDOVER_SOCKETS_MAX 16384

enum handover_type {
	HANDOVER_HELLO = 1,
	HANDOVER_REFUSED,
	HANDOVER_SOCKET,
	HANDOVER_END,
	HANDOVER_USED,
	HANDOVER_READY,
	HANDOVER_DONE,
	HANDOVER_HEALTH,
};

enum handover_kind {
	HANDOVER_NONE,
	HANDOVER_CONTROL, /* the control socket */
	HANDOVER_SERVICE, /* a listening socket of a service */
	HANDOVER_MPA,     /* soft iWARP's port on TCP */
};

struct handover_msg {
	enum handover_type type;
	enum handover_kind kind; /* of a SOCKET */
	uint32_t cnt; /* HELLO: number of SOCKETs; USED: the MPA socket, from 0; SOCKET: 1 for a socket unit's */
	uint32_t pid; /* HELLO: the old process; READY: the main process of the new one, 0 = itself */
	uint64_t watchdog_us; /* HELLO: WATCHDOG_USEC of systemd; 0 = no watchdog */
	uint64_t dev, ino;    /* SOCKET: the file of a UNIX socket; 0 = no file of ours. READY: dev 1: knows HEALTH */
	/* HELLO: NOTIFY_SOCKET, or ""; REFUSED: the reason; SOCKET: the file's path, or ""; DONE: the old process's new control path. */
	char text[HANDOVER_TEXT_MAX];
};

#define HANDOVER_HEALTH_MAX 128 /* messages; the other targets begin unknown */

/* HEALTH: cnt is the state, dev its age in ms, ino its enum clc_server, text the address, a blank, and the reason. */
void handover_from_health(struct handover_msg *, const struct targets_known *, int64_t now_ns);
/* 0, or -EPROTO; since_ns of out counts from now_ns. */
int handover_to_health(const struct handover_msg *, struct targets_known *out, int64_t now_ns)
    __attribute__((warn_unused_result));

/* A text that is too long is truncated. */
void handover_encode(const struct handover_msg *, uint8_t out[HANDOVER_LEN]);
/* HANDOVER_LEN, 0 when bytes are missing, or -EPROTO; -EPROTONOSUPPORT: of another version. */
int handover_decode(struct span, struct handover_msg *out) __attribute__((warn_unused_result));

/* With a descriptor unless that is negative. 0, -EAGAIN when the socket is full, or -errno. */
int handover_send(int sock, const struct handover_msg *, int fd) __attribute__((warn_unused_result));

/* A partly received message. */
struct handover_rx {
	uint8_t buf[HANDOVER_LEN];
	size_t len;
	int fd; /* -1 = no descriptor */
};

#define HANDOVER_RX_NONE ((struct handover_rx){ .fd = -1 })

/* The next message, and the descriptor of a SOCKET: 0, -EAGAIN: not complete, -ECONNRESET: closed, or -errno. */
int handover_recv(int sock, struct handover_rx *, struct handover_msg *out, int *fd)
    __attribute__((warn_unused_result));
/* Closes the descriptor of a message that is not complete. */
void handover_rx_fini(struct handover_rx *);
