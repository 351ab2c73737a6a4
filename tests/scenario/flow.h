/* A flow: one connection of two applications through the gateway. What the applications do is fixed before the run;
 * what they saw is checked after it, and their bytes while they arrive. */
#pragma once

#include "smcr/smcr.h"
#include "tests/scenario/plan.h"
#include "tests/scenario/stcp.h"

#define FLOW_URGENT_MAX 32

enum flow_kind {
	FLOW_DUPLEX, /* both send all they have at once */
	FLOW_PINGPONG,
	FLOW_SERVER_FIRST, /* the client sends when it has everything */
	FLOW_HALF_CLOSE,   /* the server answers when the client is done sending */
	FLOW_UPLOAD,
	FLOW_IDLE, /* long silence, then a little */
	FLOW_KIND_CNT,
};

enum app_state {
	APP_NONE, /* not connected yet */
	APP_OPEN,
	APP_DONE,    /* both directions ended in order */
	APP_RESET,   /* saw a RST */
	APP_REFUSED, /* could not connect */
	APP_ABORTED, /* sent a RST on purpose */
	APP_LEFT,    /* closed early on purpose */
};

struct flow;

struct app {
	struct flow *f;
	bool server;
	enum app_state state;
	struct stcp_end *sock;
	struct timer timer;
	uint64_t key;   /* of the bytes it sends */
	uint64_t total; /* it sends */
	uint64_t sent, got;
	int64_t next_write_ns, next_read_ns;
	bool slow;
	bool shut, eof;
	uint64_t abort_at;                /* after so many bytes in both directions; UINT64_MAX = never */
	bool leaves;                      /* closes when all is sent */
	uint64_t urgent[FLOW_URGENT_MAX]; /* positions of urgent bytes sent */
	unsigned urgent_cnt;
	unsigned urgent_got;
	uint64_t urgent_last; /* position of the last one received + 1 */
};

/* A daemon's view of its half. */
struct flow_half {
	bool opened; /* smcr_open succeeded */
	bool established;
	bool fallback;
	bool closed; /* CLOSED or FALLBACK seen and released */
	bool ended;  /* its TCP legs are closed */
	bool reset;  /* with RST */
	bool no_rmb; /* it fell back as those before it took too long to get their RMBs, or there may be no more */
	enum smcr_reason reason;
	const char *detail;
	struct smcr_diag diag;
	struct smcr_conn *conn; /* the engine's, while the session has it */
	int64_t waits_ns;       /* since when there was no progress past waits_at (watch.c) */
	uint64_t waits_at;
};

struct flow {
	struct world *w;
	const struct plan *plan;
	uint32_t nr;
	unsigned from, to; /* hosts */
	enum flow_kind kind;
	bool prewarm; /* no application behind it */
	bool hostile; /* the liar is at one end: what the applications see is not judged */
	int64_t start_ns;
	uint32_t elem_size;
	uint32_t request, response; /* bytes of a round (PINGPONG) */
	bool refuse;                /* the server is not there */
	struct timer timer;         /* start */
	void (*start)(struct flow *);
	void *owner;
	struct app client, server_app;
	struct flow_half half[2]; /* [0] ingress, [1] egress */
	struct stcp_end *middle;  /* for FAULT_KILL: the ingress's end while it lives */
	bool killed;
	bool twice;       /* opened over a link that was lost, and by a rendezvous */
	bool read_as_clc; /* its first bytes, so that it is unknown whether one of them was urgent */
	int64_t end_ns;   /* both applications are through */
};

/* Draws what the flow does. start is called at its time. */
void flow_init(struct flow *, struct world *, const struct plan *, uint32_t nr);
void flow_fini(struct flow *);
/* The application at this end is connected (server), or starts connecting (client). */
void app_connect(struct app *, struct stcp_end *);
/* Another process takes its place: what it did so far was for a connection that is lost. */
void app_again(struct app *);
/* struct stcp_user.wake of an application. */
void app_wake(void *app);
const char *app_state_str(enum app_state);
/* Nothing is left to be seen by the applications. */
bool flow_over(const struct flow *);
