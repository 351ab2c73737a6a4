/* Drawing, setting and printing plans; see plan.h. */
#include "tests/scenario/plan.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/sim.h"
#include "tests/scenario/dice.h"
#include "tests/scenario/flow.h"
#include "tests/seeded_rng.h"

struct field {
	const char *name;
	size_t off;
	uint32_t least, most;
};

static const struct field fields[] = {
#define X(name, least, most) { #name, offsetof(struct plan, name), least, most },
	PLAN_FIELDS(X)
#undef X
};

static const char *const fault_names[FAULT_KIND_CNT] = {
	[FAULT_NONE] = "none",
	[FAULT_BREAK] = "break",
	[FAULT_FATE] = "fate",
	[FAULT_PORT] = "port",
	[FAULT_FREEZE] = "freeze",
	[FAULT_GONE] = "gone",
	[FAULT_STALL] = "stall",
	[FAULT_KILL] = "kill",
	[FAULT_BLOCK] = "block",
	[FAULT_DRAIN] = "drain",
	[FAULT_WITHHOLD] = "withhold",
	[FAULT_HOLD] = "hold",
	[FAULT_RESTART] = "restart",
	[FAULT_OOM] = "oom",
};

const char *
plan_fault_str(enum fault_kind kind)
{
	return fault_names[kind];
}

static void
draw_network(struct plan *p, struct rng *r)
{
	p->hosts = chance(r, 80) ? 2 : even(r, 3, PLAN_HOSTS_MAX);
	p->two_way = chance(r, 30);
	p->iwarp = chance(r, 50);
	p->no_device = chance(r, 4) ? 1u << rng_below(r, p->hosts) : 0;
	p->other_subnet = chance(r, 3) ? 1u << rng_below(r, p->hosts) : 0;
	p->rdma_delay_us = scale(r, 1, 2000);
	p->rdma_spread_us = scale(r, 0, 4000);
	p->ack_us = scale(r, 0, 5000);
	p->confirm_ms = p->iwarp ? scale(r, 0, 50) : 0;
	p->retry_ms = even(r, 200, 2000);
	p->connect_ms = 2000;
	p->room_kb = chance(r, 30) ? scale(r, 1, 32) : 1024;
	p->tear_percent = chance(r, 50) ? even(r, 0, 100) : 0;
	p->late_cut = even(r, 0, 2);
	p->tcp_delay_us = scale(r, 1, 3000);
	p->tcp_spread_us = scale(r, 0, 5000);
	p->tcp_window_kb = scale(r, 2, 256);
	p->tcp_segment = chance(r, 30) ? scale(r, 1, 100) : scale(r, 100, 64000);
	p->rst_discards = chance(r, 70);
	p->jitter_us = scale(r, 0, 500);
	p->stall_per_mille = chance(r, 30) ? even(r, 1, 50) : 0;
	p->stall_us = scale(r, 1, 50000);
	p->read_budget_kb = scale(r, 1, 256);
}

static void
draw_engines(struct plan *p, struct rng *r)
{
	p->conns_max = chance(r, 4) ? scale(r, 1, 60) : 4096;
	p->conns_per_group = chance(r, 25) ? scale(r, 1, 40) : 255;
	p->rmb_elems = chance(r, 50) ? scale(r, 1, 16) : even(r, 1, 255);
	p->elem_code_min = chance(r, 70) ? 0 : even(r, 0, 3);
	p->elem_code_max = p->elem_code_min + even(r, 0, 2);
	p->sndbuf_kb = 1u << even(r, 2, 8);
	p->sq_depth = chance(r, 40) ? scale(r, 8, 64) : 512;
	p->rq_depth = chance(r, 40) ? scale(r, 4, 64) : 512;
	p->rfc_cursors = chance(r, 25) ? (chance(r, 70) ? 15 : even(r, 0, 15)) : 0;
	p->clc_ms = 6000;
	p->llc_ms = even(r, 500, 5000);
	p->confirm_link_ms = even(r, 2000, 5000);
	p->add_link_ms = even(r, 100, 2000);
	p->keepalive_ms = chance(r, 60) ? scale(r, 20, 30000) : 0;
	p->keepalive_answer_ms = even(r, 500, 3000);
	p->last_link_ms = p->keepalive_answer_ms % 3 * 10000; /* no draw of its own: kept seeds stay what they are */
	p->opens = p->keepalive_answer_ms % 7 / 2 * 33 + 1;
	p->levels = p->keepalive_answer_ms % 7 == 6;
	p->group_idle_ms = chance(r, 50) ? scale(r, 1, 3000) : even(r, 1000, 600000);
	p->rmb_idle_ms = chance(r, 50) ? scale(r, 1, 2000) : even(r, 1000, 600000);
	p->close_ms = even(r, 20000, 60000);
	p->abort_ms = even(r, 1000, 10000);
	p->fin_grace_ms = even(r, 200, 10000);
	p->holdoff_ms = scale(r, 10, 2000);
	p->holdoff_max_ms = p->holdoff_ms * 16;
}

/* A crowd of groups that all test their links and look for idle RMBs would only take time. */
static void
calm_crowd(struct plan *p)
{
	if (p->flows / p->conns_per_group <= 4)
		return;
	p->keepalive_ms += p->keepalive_ms > 0 && p->keepalive_ms < 2000 ? 2000 : 0;
	p->rmb_idle_ms += p->rmb_idle_ms < 1000 ? 1000 : 0;
}

static void
draw_flows(struct plan *p, struct rng *r)
{
	p->flows = chance(r, 8) ? even(r, 100, 320) : chance(r, 50) ? even(r, 1, 8) : scale(r, 1, 80);
	p->spread_ms = scale(r, 0, 2000);
	p->burst_per_mille = chance(r, 50) ? even(r, 0, 1000) : 0;
	p->wave_ms = chance(r, 40) ? scale(r, 1, 15000) : 0;
	p->prewarm = chance(r, 15);
	p->kinds = chance(r, 60) ? 63 : 1u << rng_below(r, 6);
	p->bytes_max = scale(r, 0, p->flows > 60 ? 20000 : p->flows > 10 ? 100000 : 1000000);
	p->chunk_max = scale(r, 1, 100000);
	if (p->bytes_max / p->chunk_max > 300)
		p->chunk_max = p->bytes_max / 300;
	p->pause_us = chance(r, 50) ? scale(r, 0, 20000) : 0;
	p->slow_per_mille = chance(r, 40) ? even(r, 1, 500) : 0;
	p->slow_us = scale(r, 100, 20000);
	p->urgent_per_mille = chance(r, 25) ? scale(r, 1, 200) : 0;
	p->abort_per_mille = chance(r, 40) ? scale(r, 1, 500) : 0;
	p->early_close_per_mille = chance(r, 30) ? scale(r, 1, 300) : 0;
	p->refuse_per_mille = chance(r, 15) ? scale(r, 1, 300) : 0;
	p->drain = chance(r, 85);
	p->limit_ms = 600000;
	calm_crowd(p);
}

static void
draw_fault(struct plan *p, struct rng *r)
{
	struct plan_fault *f = &p->fault[p->fault_cnt++];

	f->kind = (enum fault_kind)even(r, FAULT_BREAK, FAULT_DRAIN);
	f->at_ms = scale(r, 0, p->spread_ms + p->wave_ms + 500);
	f->host = rng_below(r, p->hosts);
	f->for_ms = scale(r, 1, 5000);
	if (f->kind == FAULT_BREAK)
		f->arg = even(r, 0, 2);
	else if (f->kind == FAULT_KILL)
		f->arg = rng_below(r, p->flows);
	else if (f->kind == FAULT_FATE) {
		f->arg = scale(r, 1, 3000);
		f->for_ms = even(r, 1, 3);
	}
}

/* Settings that came later are drawn from numbers of their own, so that the seeds of before keep their meaning. */
static void
draw_links(struct plan *p, struct rng *r)
{
	bool several = chance(r, 60);

	p->devs0 = several ? even(r, 1, PLAN_DEVS_MAX) : 1;
	p->devs1 = several ? even(r, 1, PLAN_DEVS_MAX) : 1;
	p->devs2 = several ? even(r, 1, PLAN_DEVS_MAX) : 1;
	p->devs3 = several ? even(r, 1, PLAN_DEVS_MAX) : 1;
	p->links_max = chance(r, 30) ? 1 : chance(r, 60) ? 2 : even(r, 3, 4);
	p->links_one = chance(r, 10) ? 1u << rng_below(r, p->hosts) : 0;
	p->add_link_retry_ms = scale(r, 10, 10000);
	p->add_link_retry_max_ms = p->add_link_retry_ms * even(r, 1, 16);
}

/* A fault that a group of several links should survive, or one of a few more. */
static void
draw_link_fault(struct plan *p, struct rng *r, uint32_t until_ms)
{
	static const enum fault_kind kinds[] = { FAULT_BREAK, FAULT_BREAK, FAULT_BREAK, FAULT_FATE, FAULT_FATE,
		FAULT_FATE, FAULT_PORT, FAULT_PORT, FAULT_FREEZE, FAULT_GONE, FAULT_GONE, FAULT_WITHHOLD, FAULT_HOLD,
		FAULT_HOLD, FAULT_STALL, FAULT_RESTART };
	struct plan_fault *f = &p->fault[p->fault_cnt];

	if (p->fault_cnt == PLAN_FAULTS_MAX)
		return;
	p->fault_cnt++;
	f->kind = kinds[rng_below(r, sizeof(kinds) / sizeof(kinds[0]))];
	f->at_ms = chance(r, 50) ? even(r, 0, until_ms) : scale(r, 0, until_ms);
	f->host = rng_below(r, p->hosts);
	f->arg = even(r, 0, 2);
	f->for_ms = scale(r, 1, f->kind == FAULT_HOLD ? 2000 : 5000);
	if (f->kind == FAULT_FATE) {
		f->arg = scale(r, 1, 3000);
		f->for_ms = chance(r, 80) ? even(r, SIM_LOSE, SIM_UNACKED) : SIM_GHOST;
	}
}

/* Connections that last some time over several links, readers that let elements fill and wrap, and links that break. */
static void
draw_failover(struct plan *p, struct rng *r)
{
	uint32_t last_ms = scale(r, 20, 4000), chunks = even(r, 20, 400);

	p->devs0 = chance(r, 80) ? even(r, 2, PLAN_DEVS_MAX) : 1;
	p->devs1 = p->devs2 = p->devs3 = chance(r, 80) ? even(r, 2, PLAN_DEVS_MAX) : 1;
	p->no_device = p->other_subnet = 0;
	p->links_max = even(r, 2, 3);
	p->conns_max = 4096;
	p->flows = chance(r, 80) ? even(r, 1, 12) : even(r, 12, 60);
	p->kinds = chance(r, 70) ? 1u << FLOW_DUPLEX : 63;
	p->bytes_max = scale(r, 1000, 12000000 / p->flows / 10);
	p->chunk_max = 1 + 2 * p->bytes_max / chunks;
	p->pause_us = 2 * last_ms * 1000 / chunks;
	p->slow_per_mille = chance(r, 50) ? even(r, 100, 1000) : 0;
	p->slow_us = chance(r, 50) ? p->pause_us * 2 : 100;
	p->elem_code_min = p->elem_code_max = 0;
	p->keepalive_ms = chance(r, 80) ? scale(r, 20, 2000) : 0;
	p->abort_per_mille = p->early_close_per_mille = p->refuse_per_mille = 0;
	p->spread_ms = scale(r, 0, 100);
	p->wave_ms = chance(r, 30) ? even(r, 1, last_ms) : 0;
	p->fault_cnt = 0;
	for (uint32_t n = scale(r, 1, 8); n > 0; n--)
		draw_link_fault(p, r, last_ms + last_ms / 4 + 20);
}

static void
draw_sctp(struct plan *p, struct rng *r)
{
	if (!chance(r, 25))
		return;
	p->sctp = chance(r, 60) ? 4095 : rng_below(r, 4096);
	p->sctp_udp = chance(r, 60) ? 0 : chance(r, 70) ? 15 : rng_below(r, 16);
	p->no_sctp = chance(r, 20) ? rng_below(r, 16) : 0;
	/* What SCTP is for. */
	if (chance(r, 60))
		p->early_percent = even(r, 1, 100);
}

static bool
has_fault(const struct plan *p, enum fault_kind kind)
{
	for (uint32_t i = 0; i < p->fault_cnt; i++)
		if (p->fault[i].kind == kind)
			return true;
	return false;
}

static void
draw_more(struct plan *p, struct rng *r)
{
	draw_links(p, r);
	if (p->links_max > 1 && chance(r, 55)) {
		draw_failover(p, r);
		calm_crowd(p);
	} else if (p->links_max > 1 && chance(r, 50))
		for (uint32_t n = scale(r, 1, 5); n > 0; n--)
			draw_link_fault(p, r, p->spread_ms + p->wave_ms + 500);
	/* Without the CLC connection only TEST LINK finds that the peer's device is gone. No draw of its own. */
	if (p->keepalive_ms == 0 && has_fault(p, FAULT_KILL) && has_fault(p, FAULT_GONE))
		p->keepalive_ms = 2000;
	if (chance(r, 5) && p->fault_cnt < PLAN_FAULTS_MAX)
		p->fault[p->fault_cnt++] = (struct plan_fault){ .kind = FAULT_OOM,
			.at_ms = scale(r, 0, p->spread_ms + p->wave_ms + 500),
			.arg = scale(r, 1, 300),
			.for_ms = chance(r, 80) ? 1 : scale(r, 2, 30) };
	if (p->drain == 1 && p->group_idle_ms <= 20000 && chance(r, 40))
		p->drain = 2;
	p->no_deny = chance(r, 40);
	p->mixed = chance(r, 12) ? rng_below(r, 4096) : 0;
	/* As above: a crowd of groups that all try for a second link. */
	if (p->flows / p->conns_per_group > 4 && p->add_link_retry_max_ms < 2000)
		p->add_link_retry_max_ms = p->add_link_retry_ms = 2000;
	p->end_ms = chance(r, 25) ? scale(r, 1, 4000) : 0;
	p->no_start_over = chance(r, 20) ? rng_below(r, 16) : 0;
	p->auto_windows = chance(r, 30);
	p->early_percent = chance(r, 20) ? even(r, 1, 100) : 0;
	draw_sctp(p, r);
	p->unplaced_percent = chance(r, 50) ? even(r, 1, 100) : 0;
}

uint64_t
plan_mix(uint64_t seed)
{
	uint64_t z = (seed + 1) * 0xd6e8feb86659fd93u;

	z = (z ^ z >> 32) * 0xd6e8feb86659fd93u;
	return z ^ z >> 32;
}

uint32_t
plan_draw_secure(const struct plan *p, uint64_t seed)
{
	struct rng r;

	rng_init_seeded(&r, plan_mix(seed ^ 0x746c7331));
	if (chance(&r, 60))
		return 0;
	return chance(&r, 40) ? 1 : p->iwarp != 0 || chance(&r, 10) ? even(&r, 2, 3) : 0;
}

void
plan_draw(struct plan *p, uint64_t seed)
{
	struct rng r;

	*p = (struct plan){ .seed = seed };
	rng_init_seeded(&r, plan_mix(seed));
	draw_network(p, &r);
	draw_engines(p, &r);
	draw_flows(p, &r);
	if (chance(&r, 3))
		p->enomem_per_mille = scale(&r, 1, 100);
	if (chance(&r, 35))
		for (uint32_t n = scale(&r, 1, 6); n > 0; n--)
			draw_fault(p, &r);
	rng_init_seeded(&r, plan_mix(~seed ^ 0x6d6f7265));
	draw_more(p, &r);
	p->secure = plan_draw_secure(p, seed);
}

void
plan_plain(struct plan *p)
{
	*p = (struct plan){ .seed = 1,
		.hosts = 2,
		.devs0 = 1,
		.devs1 = 1,
		.devs2 = 1,
		.devs3 = 1,
		.rdma_delay_us = 20,
		.rdma_spread_us = 5,
		.ack_us = 5,
		.retry_ms = 300,
		.connect_ms = 2000,
		.room_kb = 1024,
		.tcp_delay_us = 100,
		.tcp_spread_us = 20,
		.tcp_window_kb = 64,
		.tcp_segment = 16000,
		.jitter_us = 10,
		.read_budget_kb = 64,
		.conns_max = 4096,
		.conns_per_group = 255,
		.rmb_elems = 16,
		.sndbuf_kb = 64,
		.sq_depth = 512,
		.rq_depth = 512,
		.links_max = 2,
		.add_link_retry_ms = 10000,
		.add_link_retry_max_ms = 600000,
		.clc_ms = 6000,
		.llc_ms = 2000,
		.confirm_link_ms = 4000,
		.add_link_ms = 2000,
		.keepalive_ms = 1000,
		.keepalive_answer_ms = 1000,
		.group_idle_ms = 600000,
		.rmb_idle_ms = 600000,
		.close_ms = 60000,
		.abort_ms = 10000,
		.fin_grace_ms = 2000,
		.holdoff_ms = 1000,
		.holdoff_max_ms = 60000,
		.flows = 4,
		.kinds = 1,
		.bytes_max = 400000,
		.bytes_fixed = 1,
		.chunk_max = 4000,
		.pause_us = 1000,
		.slow_us = 1000,
		.drain = 1,
		.limit_ms = 600000 };
}

static int
set_fault(struct plan *p, const char *text)
{
	struct plan_fault f = { 0 };
	char name[16];

	if (p->fault_cnt == PLAN_FAULTS_MAX ||
	    sscanf(text, "%15[a-z],%u,%u,%u,%u", name, &f.at_ms, &f.host, &f.arg, &f.for_ms) != 5 ||
	    f.host >= PLAN_HOSTS_MAX)
		return -EINVAL;
	for (int k = FAULT_BREAK; k < FAULT_KIND_CNT; k++)
		if (strcmp(name, fault_names[k]) == 0)
			f.kind = (enum fault_kind)k;
	if (f.kind == FAULT_NONE)
		return -EINVAL;
	p->fault[p->fault_cnt++] = f;
	return 0;
}

int
plan_set(struct plan *p, const char *text)
{
	const char *eq = strchr(text, '=');
	char *end;

	if (eq == NULL)
		return -EINVAL;
	if (strncmp(text, "fault=", 6) == 0)
		return set_fault(p, text + 6);
	if (strcmp(text, "faults=0") == 0) {
		p->fault_cnt = 0;
		return 0;
	}
	unsigned long v = strtoul(eq + 1, &end, 0);
	if (end == eq + 1 || *end != '\0')
		return -EINVAL;
	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
		if (strlen(fields[i].name) != (size_t)(eq - text) ||
		    strncmp(fields[i].name, text, (size_t)(eq - text)) != 0)
			continue;
		if (v < fields[i].least || v > fields[i].most)
			return -EINVAL;
		*(uint32_t *)(void *)((char *)p + fields[i].off) = (uint32_t)v;
		return 0;
	}
	return -EINVAL;
}

int
plan_load(struct plan *p, FILE *in)
{
	char line[256];

	for (int nr = 1; fgets(line, sizeof(line), in) != NULL; nr++) {
		char *s = line + strspn(line, " \t");

		s[strcspn(s, "#\n")] = '\0';
		for (size_t n = strlen(s); n > 0 && (s[n - 1] == ' ' || s[n - 1] == '\t'); n--)
			s[n - 1] = '\0';
		if (*s != '\0' && plan_set(p, s) != 0)
			return nr;
	}
	return 0;
}

void
plan_print(const struct plan *p, FILE *out)
{
	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
		fprintf(out, "%s=%u%s", fields[i].name,
		    *(const uint32_t *)(const void *)((const char *)p + fields[i].off), i % 8 == 7 ? "\n" : " ");
	fputc('\n', out);
	for (unsigned i = 0; i < p->fault_cnt; i++)
		fprintf(out, "fault=%s,%u,%u,%u,%u\n", fault_names[p->fault[i].kind], p->fault[i].at_ms,
		    p->fault[i].host, p->fault[i].arg, p->fault[i].for_ms);
}

unsigned
plan_devs(const struct plan *p, unsigned host)
{
	const uint32_t cnt[PLAN_HOSTS_MAX] = { p->devs0, p->devs1, p->devs2, p->devs3 };

	return cnt[host];
}

/* Of one of the fields with three bits per host. */
static bool
dev_bit(uint32_t bits, unsigned host, unsigned dev)
{
	return (bits >> (PLAN_DEVS_MAX * host + dev) & 1) != 0;
}

bool
plan_knows_sctp(const struct plan *p, unsigned host)
{
	return (p->no_sctp >> host & 1) == 0;
}

enum rnic_transport
plan_transport(const struct plan *p, unsigned host, unsigned dev)
{
	if (p->af_smc != 0 || (p->iwarp != 0) == dev_bit(p->mixed, host, dev))
		return RNIC_TRANSPORT_ROCE;
	if (!dev_bit(p->sctp, host, dev) || !plan_knows_sctp(p, host))
		return RNIC_TRANSPORT_IWARP;
	return (p->sctp_udp >> host & 1) != 0 ? RNIC_TRANSPORT_IWARP_SCTP_UDP : RNIC_TRANSPORT_IWARP_SCTP;
}

/* Bit per transport that the host has a device for. */
static unsigned
transports(const struct plan *p, unsigned host)
{
	unsigned bits = 0;

	for (unsigned i = 0; i < plan_devs(p, host); i++)
		bits |= 1u << plan_transport(p, host, i);
	return bits;
}

/* Two hosts that talk with each other have no transport in common. */
static bool
is_disjoint(const struct plan *p)
{
	for (unsigned i = 1; i < p->hosts; i++)
		if ((transports(p, 0) & transports(p, i)) == 0)
			return true;
	return false;
}

bool
plan_faulty(const struct plan *p)
{
	return p->script != NULL || p->fault_cnt > 0 || p->enomem_per_mille > 0 || p->conns_max < PLAN_FLOWS_MAX;
}

bool
plan_aborts(const struct plan *p)
{
	return plan_faulty(p) || p->abort_per_mille > 0;
}

unsigned
plan_level(const struct plan *p, unsigned flow, bool hostile)
{
	if (p->af_smc != 0) /* which has no TLS */
		return 0;
	return p->secure == 1 || p->secure == 2 ? p->secure
	    : p->secure == 0 && p->levels == 0  ? 0
	                                        : flow % (hostile ? 2 : 3);
}

/* Some devices are of no use to a flow with "required". */
static bool
lacks_tls(const struct plan *p)
{
	return p->secure >= 2 && p->af_smc == 0 && (p->iwarp == 0 || p->mixed != 0 || p->sctp != 0 || p->no_deny != 0);
}

bool
plan_may_fall_back(const struct plan *p)
{
	return plan_faulty(p) || lacks_tls(p) || p->no_device != 0 || p->other_subnet != 0 || p->max_qp != 0 ||
	    p->rmb_kb != 0 || is_disjoint(p);
}
