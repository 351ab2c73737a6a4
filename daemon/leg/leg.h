/* A leg: one socket of a session, TCP or on the application's side UNIX, watched by the loop, and how it is connected.
 * Latches edges to save system calls, and separates urgent bytes. The owner's callback must call leg_latch(). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "daemon/loop/loop.h"
#include "daemon/net/net.h"
#include "tls/tls.h"

enum {
	LEG_READABLE = LOOP_READ, /* a read may succeed */
	LEG_WRITABLE = LOOP_WRITE,
	LEG_URGENT = LOOP_URGENT, /* an urgent byte is due or waits */
	LEG_RDHUP = LOOP_RDHUP,   /* FIN received; unread bytes may precede it */
	LEG_HUP = LOOP_HUP,
	LEG_ERROR = LOOP_ERR,   /* the socket has an error: leg_broken() */
	LEG_FRESH = 1 << 16,    /* an edge came since the last read: ordinary bytes stand first */
	LEG_EOF = 1 << 17,      /* FIN was read */
	LEG_SHUT = 1 << 18,     /* FIN was sent */
	LEG_UNIX = 1 << 19,     /* a UNIX socket; kept until it is closed */
	LEG_SENT = 1 << 20,     /* data or FIN was sent since all was last seen acknowledged */
	LEG_CUT = 1 << 21,      /* TLS: the connection ended without close_notify */
	LEG_NOTIFIED = 1 << 22, /* TLS: close_notify was sent */
};

struct settings;
struct smcr_open;

struct leg {
	struct loop_io io; /* io.fd < 0: closed */
	unsigned flags;
	int err;            /* errno of a broken leg; earlier bytes may still be readable */
	int64_t unacked_ns; /* start of the wait for an acknowledgment, as observed; 0: none */
	struct tls_io *tls; /* owned; NULL: in clear */
};

void leg_init(struct leg *, void (*cb)(struct loop_io *, unsigned events));
/* Takes fd, and closes it on failure: 0 or -errno. kind: LEG_UNIX or 0. */
int leg_open(struct leg *, struct loop *, int fd, unsigned kind);

void leg_latch(struct leg *, unsigned events);
/* errno of a leg that was reset or failed, else 0. leg_read still returns the bytes before it. */
int leg_broken(struct leg *);
/* Whether unread bytes are queued. */
bool leg_has_bytes(const struct leg *);
/* Bytes written that the other end has not received, which a reset discards. */
unsigned leg_unsent(const struct leg *);

/* Into one or two pieces. > 0: bytes read, with *urgent: one urgent byte. 0: no data, or end of data (sets LEG_EOF).
 * < 0: -errno, broken and all earlier bytes were read; -ENOTSUP: a descriptor came over a UNIX socket, which cannot be
 * forwarded. */
ssize_t leg_read(struct leg *, const struct iovec *iov, int cnt, bool *urgent);
/* Peeks at the first bytes: their number, 0 at the end of data, < 0: no data, or broken. */
ssize_t leg_peek(const struct leg *, void *buf, size_t cap);
/* Writes one or two pieces; urgent: one byte, in line on a UNIX socket. >= 0: bytes written (short: clears
 * LEG_WRITABLE). < 0: -errno. */
ssize_t leg_write(struct leg *, const struct iovec *iov, int cnt, bool urgent);
/* Whether the other end has acknowledged nothing for limit_ns, though data was sent. Call several times within
 * limit_ns. A closed window is an answer; more than this many unanswered window probes in a row are silence. */
bool leg_is_silent(struct leg *, int64_t now_ns, int64_t limit_ns, uint32_t probes);
/* All that was written is on its way, with TLS also close_notify: before leg_shut(). False: again when writable. */
bool leg_finish(struct leg *);
/* Sends FIN. */
void leg_shut(struct leg *);
/* Closes by RST (net_reset) or FIN. No effect on a closed leg. */
void leg_close(struct leg *, struct loop *, bool reset);

/* -- TLS (leg_tls.c); an urgent byte goes in line -- */

/* Starts it with the peer at this address, a target of the settings, or with a client. False: out of memory, or no PSK. */
bool leg_tls_dial(struct leg *, const struct settings *, const struct sockaddr_storage *to);
bool leg_tls_accept(struct leg *, const struct settings *);
/* 1: done; 0: again at the next event; -errno: failed. */
int leg_handshake(struct leg *);
/* No more data: frees the stream. From now on only the end of the connection counts. */
void leg_tls_end(struct leg *);
/* The host of the target with this address; NULL: the service does not lead there now. */
const char *leg_tls_host(const struct settings *, const struct sockaddr_storage *to);
/* The rules by which a peer is permitted now: at this address, a target, or a client (NULL). False: none is. */
bool leg_tls_scope(const struct settings *, const struct sockaddr_storage *to, struct smcr_scope *);
/* With TLS: adds the proven name, its level and scope to a rendezvous, and whether it may use links. */
void leg_tls_describe(const struct leg *, const struct settings *, struct smcr_open *);
/* Why TLS failed; "": it has not. */
const char *leg_tls_why(const struct leg *);
ssize_t leg_tls_read(struct leg *, const struct iovec *);
ssize_t leg_tls_write(struct leg *, const struct iovec *, int cnt);

/* -- connecting a leg -- */

/* Never blocks; the leg's callback calls dial_check. The owner sets the first six members and err, zeroes the rest. */
struct dial {
	struct leg *leg;
	struct worker_ports *ports;          /* local ports; NULL: any */
	struct circles *circles;             /* NULL: not a session */
	struct circle_leg *circle;           /* entry in circles */
	const struct tcp_option *option;     /* sends SMC-R's TCP option; NULL: does not */
	struct net_source source;            /* its address outlives the attempt */
	const struct sockaddr_storage *addr; /* of the current or last attempt; not owned; NULL: none */
	int err;                             /* errno of the last failed attempt, or the owner's before one; 0: none */
	bool busy;                           /* an attempt runs or waits */
	bool waits;                          /* for backlog space of a UNIX socket: start again later */
};

/* Ends a running attempt, by RST, and starts one: 0, or -errno: the leg is closed. addr outlives the attempt. */
int dial_start(struct dial *, struct loop *, const struct config_keepalive *, const struct sockaddr_storage *addr);
void dial_end(struct dial *, struct loop *);
/* After an event of the leg: 1 connected, 0 in progress, -errno failed. */
int dial_check(struct dial *);
