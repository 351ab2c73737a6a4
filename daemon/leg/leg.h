/*
 * A leg: one socket of a session, TCP or on the application's side a UNIX
 * socket, watched by the loop, and how it is connected. Latches what the edges say, so that no system call is spent on
 * asking, and keeps urgent bytes apart. Embedded in its owner, whose callback
 * has to call leg_latch().
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "daemon/loop/loop.h"
#include "daemon/net/net.h"

enum {
	LEG_READABLE = LOOP_READ, /* a read may find something */
	LEG_WRITABLE = LOOP_WRITE,
	LEG_URGENT = LOOP_URGENT, /* an urgent byte is on its way or waits */
	LEG_RDHUP = LOOP_RDHUP,   /* FIN came; bytes may stand before it */
	LEG_HUP = LOOP_HUP,
	LEG_ERROR = LOOP_ERR, /* the kernel knows an error: leg_broken() */
	LEG_FRESH = 1 << 16,  /* an edge came since the last read: ordinary bytes stand first */
	LEG_EOF = 1 << 17,    /* FIN was read */
	LEG_SHUT = 1 << 18,   /* we sent FIN */
	LEG_UNIX = 1 << 19,   /* a UNIX socket; stays until it is closed */
	LEG_SENT = 1 << 20,   /* bytes or FIN were sent since the other end was last seen to have acknowledged all */
};

struct leg {
	struct loop_io io; /* io.fd < 0: closed */
	unsigned flags;
	int64_t
	    unacked_ns; /* since when something waits and nothing was acknowledged, as far as was seen; 0: nothing waits */
	int err;        /* it is broken: an errno; bytes that came before may still be there to be read */
};

/* Makes it a closed leg. */
void leg_init(struct leg *, void (*cb)(struct loop_io *, unsigned events));
/* Takes fd over, also on failure (it is closed then): 0 or -errno. Nothing is latched yet. kind: LEG_UNIX or 0. */
int leg_open(struct leg *, struct loop *, int fd, unsigned kind);

/* To be called with the events of the loop. */
void leg_latch(struct leg *, unsigned events);
/* The leg was reset or failed otherwise: the errno; 0 when it was not. It is read to its end all the same, see leg_read. */
int leg_broken(struct leg *);
/* Are there bytes to be read? */
bool leg_has_bytes(const struct leg *);
/* Bytes written that the other end's kernel does not have yet, which a reset would take back. */
unsigned leg_unsent(const struct leg *);

/*
 * Reads into the pieces. > 0: bytes, with *urgent when it is one urgent byte.
 * 0: nothing now, or end of data (LEG_EOF is set then). < 0: -errno, broken, and all that came before was read;
 * -ENOTSUP: a descriptor came over a UNIX socket, which cannot be passed on.
 */
ssize_t leg_read(struct leg *, const struct iovec *iov, int cnt, bool *urgent);
/* Looks at the first bytes, which stay: their number, 0 at the end of data, < 0: nothing has come, or broken. */
ssize_t leg_peek(const struct leg *, void *buf, size_t cap);
/* Writes the pieces; with urgent they are one byte, which goes in line into a UNIX socket. >= 0: bytes taken (short: LEG_WRITABLE is cleared). < 0: -errno. */
ssize_t leg_write(struct leg *, const struct iovec *iov, int cnt, bool urgent);
/* Has the other end's TCP acknowledged nothing for so long, though something was sent? To be asked several times in that time. A
 * window that is closed is an answer; more than so many probes of it in a row that have none are silence. */
bool leg_is_silent(struct leg *, int64_t now_ns, int64_t limit_ns, uint32_t probes);
/* No more bytes from us: FIN. */
void leg_shut(struct leg *);
/* Closes, by RST (net_reset) or FIN. Harmless when closed. */
void leg_close(struct leg *, struct loop *, bool reset);

/* -- connecting a leg to the first address of a list that answers -- */

/* Nothing here blocks; the owner's leg callback says when to look again. The owner sets the first five, all else is zero. */
struct dial {
	struct leg *leg;
	const struct sockaddr_storage *addrs; /* somebody else's, outlives the dial */
	unsigned cnt;
	struct worker_ports *ports;      /* to connect from; NULL: any */
	struct circles *circles;         /* NULL: no session's */
	struct circle_leg *circle;       /* then in this table */
	const struct tcp_option *option; /* SMC-R's TCP option is wanted; NULL: it is not */
	unsigned next;                   /* which address comes next */
	int err;                         /* of the last attempt, an errno; 0 = none failed yet */
	bool busy;                       /* an attempt runs, or waits */
	bool waits;                      /* ... for room in the backlog of a UNIX socket: dial_again() after a while */
};

/* Gives up the attempt that runs, if any, for `why` (an errno, 0 = it failed itself) and starts the next one. 0:
 * started; -errno of the last one: no address is left, the leg is closed. */
int dial_next(struct dial *, struct loop *, const struct config_keepalive *, int why);
/* Of an attempt that waits: the same address once more. As dial_next. */
int dial_again(struct dial *, struct loop *, const struct config_keepalive *);
/* After an event of the leg: 1 connected, 0 still trying, -errno this attempt failed. */
int dial_check(struct dial *);
/* The address of the attempt that runs or was made last. */
const struct sockaddr_storage *dial_addr(const struct dial *);
