/*
 * One SMC host for tests of the data path: an engine and a link group with one link over a fake device, made by hand
 * without first contact. Two of them make a pair; what one posts is carried to the other by the test, step by step, and
 * written down as text ("W 4:1003", "C prod=0/1004 cons=0/4").
 */
#pragma once

#include "checks.h"
#include "fake_rnic.h"
#include "smcr/data/conn.h"
#include "smcr/data/failover.h"
#include "smcr/data/link_post.h"
#include "smcr/data/link_tx.h"
#include "smcr/data/rmb.h"
#include "smcr/data/sndbuf.h"
#include "smcr/rendezvous/rendezvous.h"
#include "smcr/state/engine.h"

#define HOST_STEPS 512

struct host {
	struct smcr eng;
	struct rng rng;
	struct lgr lgr;
	struct link *link;
	struct fake_rnic dev;
	unsigned carried; /* posted requests that the other side has seen */
	unsigned completed;
	char step[HOST_STEPS][96]; /* what was carried from here, since host_forget */
	unsigned steps;
};

/* The pair of a test, and a connection between them. */
extern struct host a, b;
extern struct smcr_conn *ca, *cb;

/* A test case whose tests have a pair, with elements of this size, and leave nothing behind. */
void hosts_case(TCase *, uint32_t elem_size, bool eye_catcher);
/* Starts again amid a test: a pair without a connection. */
void hosts_restart(bool eye_catcher);

void host_init(struct host *, bool eye_catcher);
void host_fini(struct host *);
/* A connection in rendezvous, attached, with an element of this size in an RMB of cnt elements. */
struct smcr_conn *host_conn(struct host *, uint32_t elem_size, uint32_t cnt);
/* Tells each the other's element. */
void hosts_join(struct host *, struct smcr_conn *, struct host *, struct smcr_conn *);
/* Gives a connection that was made by conn_new what smcr_open gives it; the end of that. */
void host_begin_rdv(struct host *, struct smcr_conn *);
void host_establish(struct smcr_conn *);
/* The end of the connection's link group, as that connection sees it. */
void host_link_lost(struct smcr_conn *);
/* The text of the engine's last line for the log, "" when there is none. */
const char *host_last_log(const struct host *);
/* Two established connections, elements of this size, events taken. */
void hosts_pair(struct host *, struct host *, uint32_t elem_size, struct smcr_conn **, struct smcr_conn **);

/* Flushes `from` and carries the next step (one posted request) to the other; false when there is none. */
bool host_carry_one(struct host *from, struct host *to);
/* All of them, until neither side has any. */
void hosts_carry(struct host *, struct host *);
/* Completes everything that was posted. */
void host_complete(struct host *);
void host_flush(struct host *);
void host_forget(struct host *);
/* With that, what was posted, when all of it was carried and completed: a long run has many requests. */
void host_forget_posted(struct host *);
/* host_saw(h, i, text, ...): the i-th step from here, and those behind it, were exactly these. */
void host_saw_all(const struct host *, unsigned i, const char *const texts[]);
#define host_saw(h, i, ...) host_saw_all(h, i, (const char *const[]){ __VA_ARGS__, NULL })

/* Events of the connection, taken. */
unsigned host_events(struct smcr_conn *);
void host_advance(struct host *, int64_t ms);

/* The daemon's part: bytes numbered by their position in the stream. */
size_t host_write(struct smcr_conn *, size_t len, bool urgent);
/* Reads and checks up to len bytes; *urgent when the last piece was an urgent byte. */
size_t host_read(struct smcr_conn *, size_t len, unsigned *urgent);
/* A CDC message as if it came from the peer. */
void host_rx(struct host *, struct smcr_conn *, const struct cdc_msg *);
