/* Up or down; see health.h. Called by the prober and endpoints.c. */
#include "daemon/target/health.h"

#include <errno.h>
#include <stdio.h>

#include "base/minmax.h"
#include "daemon/loop/env.h"

#define FIRST_MS 1000 /* longest pause before the first probe */

#define HEALTH_WORD(constant, word) word,

const char *const health_words[HEALTH_STATE_CNT] = { HEALTH_STATES(HEALTH_WORD) };

/* Results in a row that lead from the state to the other one. */
static unsigned
needed(const struct config_probe *cfg, enum health_state from, enum health_state to)
{
	if (to == HEALTH_DOWN && (from == HEALTH_UP || from == HEALTH_HELD_OFF))
		return cfg->fall;
	return to == HEALTH_UP && from == HEALTH_DOWN ? cfg->rise : 1;
}

bool
health_result(
    struct health *h, const struct config_probe *cfg, enum health_state result, const char *why, int64_t now_ns)
{
	h->probed_ns = now_ns;
	h->row = result == h->state ? 0 : result == h->next ? h->row + 1 : 1;
	h->next = result;
	if (result == h->state)
		(void)snprintf(h->why, sizeof(h->why), "%s", why);
	if (result == h->state || h->row < needed(cfg, h->state, result))
		return false;
	h->state = result;
	h->row = 0;
	h->since_ns = now_ns;
	(void)snprintf(h->why, sizeof(h->why), "%s", why);
	return true;
}

int64_t
health_pause_ns(const struct config_probe *cfg, struct rng *rng, bool first)
{
	const uint32_t tenth_ms = cfg->interval_ms / 10;

	if (first)
		return rng_below(rng, min_u32(cfg->interval_ms, FIRST_MS) + 1) * NS_PER_MS;
	return (cfg->interval_ms - tenth_ms + (int64_t)rng_below(rng, 2 * tenth_ms + 1)) * NS_PER_MS;
}

enum clc_server
health_server(int err)
{
	static const struct {
		int err;
		enum clc_server server;
	} of[] = { { ECONNREFUSED, CLC_SERVER_REFUSED }, { ETIMEDOUT, CLC_SERVER_SILENT }, { 0, CLC_SERVER_NO_NAME } };

	for (unsigned i = 0; i < sizeof(of) / sizeof(of[0]); i++)
		if (of[i].err == err)
			return of[i].server;
	return CLC_SERVER_DOWN;
}
