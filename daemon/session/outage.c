/* Outages in the log; see outage.h. */
#include "daemon/session/outage.h"

#include <stdio.h>
#include <string.h>

#include "base/addr.h"
#include "daemon/net.h"
#include "daemon/session/service.h"

#define LOG_AGAIN_NS (600 * INT64_C(1000000000)) /* an outage that lasts */
#define WINDOW_NS (60 * INT64_C(1000000000))
#define WINDOW_LINES 4 /* of a service in that time; the ends come on top */

static const char *
far_word(const struct service *svc)
{
	return svc->settings->cfg.kind == CONFIG_INGRESS ? "peer" : "server";
}

static void
describe(const struct outage *o, char *buf, size_t cap)
{
	static const char *const words[] = {
		[OUTAGE_NONE] = "",
		[OUTAGE_CONNECT] = "cannot be connected",
		[OUTAGE_RESET] =
		    "ended the connection in its set-up; its server may be down, or not let us in: see its log",
		[OUTAGE_NO_SMC] = "is no SMC-R peer",
		[OUTAGE_SETUP] = "the set-up failed",
	};
	const char *more = o->err != 0 ? strerror(o->err) : o->why;

	(void)snprintf(buf, cap, "%s%s%s", words[o->kind], more[0] != '\0' ? ": " : "", more);
}

static void
log_outage(struct service *svc, const union net_addr *far)
{
	struct session_pool *pool = svc->pool;
	struct outage *o = &svc->outage;
	int64_t now_ns = pool->env->now_ns;
	char addr[ADDR_STR_MAX], why[256];

	o->logged_ns = now_ns;
	if (o->window_cnt == 0 || now_ns - o->window_ns >= WINDOW_NS) {
		o->window_ns = now_ns;
		o->window_cnt = 0;
	}
	if (o->window_cnt++ >= WINDOW_LINES)
		return;
	o->logged = true;
	describe(o, why, sizeof(why));
	log_limited(&pool->lim_outage, now_ns, LOG_LVL_WARNING,
	    "%s not available: service=%s %s=%s why=\"%s\" failed=%llu", far_word(svc), svc->settings->cfg.name,
	    far_word(svc), net_addr_str(far, addr, sizeof(addr)), why, (unsigned long long)o->failed);
}

void
outage_failed(struct service *svc, enum outage_kind kind, const union net_addr *far, const char *why, int err)
{
	struct outage *o = &svc->outage;
	bool other = o->kind != kind || o->err != err || strcmp(o->why, why) != 0;

	if (svc->settings == NULL) /* no longer configured */
		return;
	if (o->kind == OUTAGE_NONE) {
		o->since_ns = svc->pool->env->now_ns;
		o->failed = 0;
		o->logged = false;
	}
	o->kind = kind;
	o->err = err;
	o->why = why;
	o->failed++;
	if (other || svc->pool->env->now_ns - o->logged_ns >= LOG_AGAIN_NS)
		log_outage(svc, far);
}

void
outage_end(struct service *svc, unsigned kinds, const union net_addr *far)
{
	struct outage *o = &svc->outage;
	char addr[ADDR_STR_MAX];

	if (o->kind == OUTAGE_NONE || (kinds & 1u << o->kind) == 0)
		return;
	o->kind = OUTAGE_NONE;
	if (!o->logged || svc->settings == NULL)
		return;
	log_limited(&svc->pool->lim_outage_end, svc->pool->env->now_ns, LOG_LVL_NOTICE,
	    "%s available again: service=%s %s=%s failed=%llu after_ms=%lld", far_word(svc), svc->settings->cfg.name,
	    far_word(svc), net_addr_str(far, addr, sizeof(addr)), (unsigned long long)o->failed,
	    (long long)((svc->pool->env->now_ns - o->since_ns) / NS_PER_MS));
}

void
outage_look(const struct service *svc, struct outage_info *out)
{
	const struct outage *o = &svc->outage;

	*out = (struct outage_info){ .text = "" };
	if (o->kind == OUTAGE_NONE)
		return;
	describe(o, out->text, sizeof(out->text));
	out->failed = o->failed;
	out->age_ns = svc->pool->env->now_ns - o->since_ns;
}

void
outage_stranger(struct service *svc, const union net_addr *from, const char *why)
{
	char addr[ADDR_STR_MAX];

	if (svc->settings == NULL)
		return;
	log_limited(&svc->pool->lim_stranger, svc->pool->env->now_ns, LOG_LVL_NOTICE,
	    "no SMC-R peer, or a broken one: service=%s from=%s why=\"%s\"", svc->settings->cfg.name,
	    net_addr_str(from, addr, sizeof(addr)), why);
}
