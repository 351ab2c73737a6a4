/* What the probes of an address have found: up, down, held off or unknown, since when, and why. Pure: the result, the
 * time and random numbers are arguments; probe/prober.c makes the probes. Owned by the prober; endpoints have copies. */
#pragma once

#include "base/rng.h"
#include "daemon/config/config.h"

#define HEALTH_WHY_MAX 96

/* X(constant, word). NONE: the address is not probed. HELD_OFF: the peer is there, and SMC-R is not tried with it for a
 * while, so it does not say whether its server works. */
#define HEALTH_STATES(X)      \
	X(NONE, "")           \
	X(UNKNOWN, "unknown") \
	X(UP, "up")           \
	X(DOWN, "down")       \
	X(HELD_OFF, "held-off")
#define HEALTH_STATE(constant, word) HEALTH_##constant,

enum health_state { HEALTH_STATES(HEALTH_STATE) HEALTH_STATE_CNT };

struct health {
	enum health_state state;
	enum health_state next;      /* what the last results say, if they differ from state */
	unsigned row;                /* their number */
	enum clc_server server;      /* DOWN: for a peer that asks; else UNSAID */
	int64_t since_ns, probed_ns; /* of the state; of the last result, 0: none yet */
	char why[HEALTH_WHY_MAX];    /* of the state, or "" */
};

extern const char *const health_words[HEALTH_STATE_CNT];

/* Takes the result of a probe, UP, DOWN, HELD_OFF or UNKNOWN. A state other than UNKNOWN changes to DOWN after `fall`
 * results in a row, from DOWN to UP after `rise`; else at once. True: it has changed. */
bool health_result(struct health *, const struct config_probe *, enum health_state, const char *why, int64_t now_ns);
/* Until the next probe: the interval, up to a tenth more or less; until the first one: up to the interval, at most 1 s. */
int64_t health_pause_ns(const struct config_probe *, struct rng *, bool first);
/* The words for a peer that asks, of the errno of a connect; 0: the name has no address. */
enum clc_server health_server(int err);
