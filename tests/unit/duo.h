/*
 * Two engines joined by a sim fabric, in virtual time, for tests of the control path: rendezvous, link groups, LLC. CLC
 * bytes go from a connection to its counterpart by themselves; a test can hold them back, change them, or play one side
 * alone.
 */
#pragma once

#include "checks.h"
#include "smcr/data/conn.h"
#include "smcr/data/failover.h"
#include "smcr/data/rmb.h"
#include "smcr/engine.h"
#include "smcr/group/lgr.h"
#include "smcr/group/link.h"
#include "smcr/rendezvous/rendezvous.h"
#include "smcr/state/engine.h"
#include "tests/sim/sim.h"

#define DUO_MS 1000000LL
#define DUO_SEEN 1024
#define DUO_MORE 7
#define DUO_PAIRS 300

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
	uint64_t written, read;   /* duo_write, duo_read */
	struct smcr_diag diag;    /* when fallen back */
	struct clc_client client; /* server: as proposed */
	struct clc_dest dest;     /* likewise */
	uint8_t left[SMCR_LEFTOVER_MAX];
	size_t left_len;
	enum smcr_reason reason; /* when closed */
};

/* A message that went over the wire, as host A's or B's trace saw it sent. */
struct duo_seen {
	unsigned host;
	char text[64]; /* its type, "CONFIRM LINK response" */
	uint8_t head[4];
	size_t len;
};

struct duo {
	struct sim_fabric *fab;
	struct sim_config sim;
	struct rnic_dev *dev[2];
	struct rnic_dev *more[2][DUO_MORE]; /* further devices of each host */
	struct smcr *eng[2];
	struct rng rng[2];
	uint8_t remote;  /* who is at the other end of connections that are opened from here on (smcr_identity) */
	unsigned port;   /* and at which port, 0 for 1: clients' key is "server:PORT" */
	bool ipv4;       /* the middles of those are over IPv4 */
	bool insist;     /* those with smcr_open.prewarm are for an operator who asks */
	bool measure;    /* ... and for a measurement */
	bool ask_server; /* ... and ask for the server behind the peer */
	enum clc_server server;   /* what the server's end answers */
	uint8_t level;            /* their protection */
	void *proof;              /* of them */
	bool in_tls, only_tls[2]; /* as in smcr_open, only_tls of a host's ends */
	const char *tcp_only[2];  /* as in smcr_open, of a host's ends */
	enum smcr_peer_kind peer; /* and whom their clients expect */
	struct clc_client client; /* that clients forward */
	bool takes_client;        /* servers use it */
	struct clc_dest dest;     /* that clients want */
	bool wants_dest;          /* servers take it, or refuse it */
	bool refuses_dest, ignores_dest;
	uint32_t ticket;      /* that their servers give */
	uint8_t scope;        /* of both ends */
	unsigned next_opened; /* the server's end that gets the next connection opened over a link */
	int64_t now_ns;
	unsigned breaches;
	enum rnic_transport transport[2]; /* of devices made from here on */
	enum rnic_gid_type gid_type[2];   /* and theirs; RNIC_GID_NONE: as the sim has it */
	/* Messages of these are held until it is NULL again, or says no. */
	bool (*holds)(const struct sim_msg *);
	/* These complete, but do not arrive; nor does what is behind them, and their link breaks (RFC 7609 4.6.1). */
	bool (*ghosts)(const struct sim_msg *);
	struct duo_seen seen[DUO_SEEN];
	unsigned seen_cnt;
};

/* The hosts of a test, and its connections: pairs of a client's end and a server's. */
extern struct duo d;
extern struct duo_end c[DUO_PAIRS], s[DUO_PAIRS];

#define IS(e, ev) (((e).events & SMCR_EV_##ev) != 0)
#define BOTH(i, ev) (IS(c[i], ev) && IS(s[i], ev))

/* A test case whose tests end like this: connections are released, linger_ms pass, and nothing is left behind. */
void duo_case(TCase *, int64_t linger_ms);
/* Two engines with small timers (and what is not 0 in change), an iWARP-like device each (device = false: none on that host). */
void duo_init(bool device_a, bool device_b, const struct smcr_config *change);
/* The same with any transport, and devices that do not enforce rnic_mr.deny if no_deny. */
void duo_init_as(const enum rnic_transport transport[2], bool no_deny, const struct smcr_config *change);
/* Hosts with a RoCE device each, GIDs of these types, whose clients propose to Linux, over IPv4: to the other, each is one. */
void duo_init_linux(const enum rnic_gid_type type[2], const struct smcr_config *change);
/* The same with version 2, or with version 1. */
void duo_init_version(unsigned version, const struct smcr_config *change);
/* duo_init() with a device each, and the first pair connected. */
void duo_begin(const struct smcr_config *change);
/* Ends all of it before the test ends, for another duo_init(). */
void duo_fini(void);
/* One more device of the host. */
struct rnic_dev *duo_add_device(unsigned host);
/* One more on each host. */
void duo_add_devices(void);
/* One more on the interface of the host's first: with its MAC. */
struct rnic_dev *duo_add_neighbour(unsigned host);
/* Opens both ends of a pair; CLC flows between them. */
void duo_open(unsigned pair);
/* Opens pairs, lets time pass, and expects that all are established. */
void duo_connect(unsigned first, unsigned cnt, int64_t ms);
/* The client opens a connection over a link, and the server's end of the pair gets it. False: not possible now. */
bool duo_open_over_link(unsigned pair);
/* Client or server alone: the test is the other side, or duo_join() follows. */
void duo_open_one(struct duo_end *, enum smcr_role, bool prewarm);
/* The ends of a pair that were opened alone. */
void duo_join(unsigned pair);
/* smcr_close() at both ends of a pair. */
void duo_close(unsigned pair);
/* Releases an end, or both of a pair, if they are still there. */
void duo_release(struct duo_end *);
void duo_release_pair(unsigned pair);
/* The end of so many pairs from this one: both ends close, ms go by, and are released. */
void duo_end_pairs(unsigned first, unsigned cnt, int64_t ms);
/* Bytes into the stream, as many as there is room for, numbered by their position; how many. */
size_t duo_write(struct duo_end *, size_t len);
/* Reads and checks what has come: how many bytes. */
size_t duo_read(struct duo_end *);
/* The first pair as a bystander, which has to notice nothing: the connection lives, and bytes go both ways. */
void duo_bystander_is_well(void);
/* Virtual time passes. */
void duo_run(int64_t ms);
/* Until the host has sent this message. */
void duo_until(unsigned host, const char *text);
/* Bytes for the end as if they came from the middle; whole messages or parts. */
void duo_feed(struct duo_end *, const void *buf, size_t len);
void duo_feed_msg(struct duo_end *, const struct clc_msg *);
/* CLC bytes that an end has held back go to the other end. */
void duo_feed_held(struct duo_end *from, struct duo_end *to);
/* An LLC message as if it arrived on this link. */
void duo_inject(struct link *, const struct llc_msg *);
/* The first group of a host; NULL when there is none. */
struct lgr *duo_lgr(unsigned host);
unsigned duo_lgr_cnt(unsigned host);
void duo_expect_groups(unsigned cnt); /* on each host */
/* The active link of that group. */
struct link *duo_link(unsigned host);
/* The one with this number; NULL when there is none. */
struct link *duo_link_nr(unsigned host, uint8_t number);
/* Both hosts have so many links, all active. */
void duo_expect_links(unsigned cnt);
/* The n-th message seen so far was sent by this host and is called this. */
void duo_expect(unsigned n, unsigned host, const char *text);
unsigned duo_count(unsigned host, const char *text);
/* The link breaks, and its group has reacted to that. */
void duo_lose(struct link *, const char *why);
