/*
 * Two engines joined by a sim fabric, in virtual time, for tests of the
 * control path: rendezvous, link groups, LLC. CLC bytes go from a connection
 * to its counterpart by themselves; a test can hold them back, change them, or
 * play one side alone.
 */
#ifndef SMCRD_TESTS_DUO_H
#define SMCRD_TESTS_DUO_H

#include "checks.h"
#include "tests/sim/sim.h"
#include "smcr/engine.h"
#include "smcr/data/conn.h"
#include "smcr/data/failover.h"
#include "smcr/data/rmb.h"
#include "smcr/group/lgr.h"
#include "smcr/group/link.h"
#include "smcr/rendezvous/rendezvous.h"
#include "smcr/state/engine.h"

#define DUO_MS 1000000LL
#define DUO_SEEN 1024
#define DUO_MORE 7

enum { A, B }; /* A is the client's host, B the server's */

struct duo_end {
	struct smcr_conn *conn; /* NULL after release */
	struct duo_end *peer;
	unsigned host;
	unsigned events; /* all that were raised */
	bool hold;       /* CLC output stays in `out` */
	bool refuse;     /* server: does not admit */
	uint8_t out[4096];
	size_t out_len;
	uint64_t written, read; /* duo_write, duo_read */
	struct smcr_diag diag;  /* when fallen back */
	uint8_t left[SMCR_LEFTOVER_MAX];
	size_t left_len;
	enum smcr_reason reason; /* when closed */
};

/* A message that went over the wire, as host A's or B's trace saw it sent. */
struct duo_seen {
	unsigned host;
	enum smcr_trace_kind kind;
	char text[64]; /* its type, "CONFIRM LINK response" */
};

struct duo {
	struct sim_fabric *fab;
	struct sim_config sim;
	struct rnic_dev *dev[2];
	struct rnic_dev *more[2][DUO_MORE]; /* further devices of each host */
	struct smcr *eng[2];
	struct rng rng[2];
	uint8_t remote; /* who is at the other end of connections that are opened from here on (smcr_identity) */
	int64_t now_ns;
	unsigned breaches;
	enum rnic_transport transport[2]; /* of devices made from here on */
	/* Messages of these are held until it is NULL again, or says no. */
	bool (*holds)(const struct sim_msg *);
	struct duo_seen seen[DUO_SEEN];
	unsigned seen_cnt;
};

/* Two engines with small timers, one iWARP-like device each (with device = false: none on that host). */
void duo_init(struct duo *, bool device_a, bool device_b, void (*change)(struct smcr_config *));
/* The same with any transport, and devices that do not enforce rnic_mr.deny if no_deny. */
void duo_init_as(
    struct duo *, const enum rnic_transport transport[2], bool no_deny, void (*change)(struct smcr_config *));
/* One more device of the host. */
struct rnic_dev *duo_add_device(struct duo *, unsigned host);
/* One more on the interface of the host's first: with its MAC. */
struct rnic_dev *duo_add_neighbour(struct duo *, unsigned host);
/* Checks that nothing is left behind. */
void duo_fini(struct duo *);
/* A connection of both sides; CLC flows between them. */
void duo_open(struct duo *, struct duo_end *client, struct duo_end *server);
/* Client or server alone: the test is the other side. */
void duo_open_one(struct duo *, struct duo_end *, enum smcr_role, bool prewarm);
/* Releases what is still there. */
void duo_close(struct duo *, struct duo_end *);
/* Bytes into the stream, as many as there is room for, numbered by their position; how many. */
size_t duo_write(struct duo_end *, size_t len);
/* Reads and checks what has come: how many bytes. */
size_t duo_read(struct duo_end *);
/* A bystander, which has to notice nothing: the connection lives, and bytes go both ways. */
void duo_both_are_well(struct duo *, struct duo_end *client, struct duo_end *server);
/* Virtual time passes. */
void duo_run(struct duo *, int64_t ms);
/* Until the host has sent this message. */
void duo_until(struct duo *, unsigned host, const char *text);
/* Bytes for the end as if they came from the middle; whole messages or parts. */
void duo_feed(struct duo_end *, const void *buf, size_t len);
void duo_feed_msg(struct duo_end *, const struct clc_msg *);
/* The first group of a host; NULL when there is none. */
struct lgr *duo_lgr(struct duo *, unsigned host);
unsigned duo_lgr_cnt(struct duo *, unsigned host);
/* The active link of that group. */
struct link *duo_link(struct duo *, unsigned host);
/* The n-th message seen so far was sent by this host and is called this. */
void duo_expect(struct duo *, unsigned n, unsigned host, const char *text);
unsigned duo_count(const struct duo *, unsigned host, const char *text);

/* The link breaks, and its group has reacted to that. */
static inline void
duo_lose(struct link *link, const char *why)
{
	link_lost(link, why);
	engine_act_on_marks(link->lgr->eng);
}

#endif
