/* What a run is to be: numbers with names, drawn from the seed, any of which may be set by hand (run --set name=value,
 * or a scenario file), and faults at given times. Times are virtual. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "rnic/rnic.h"

#define PLAN_HOSTS_MAX 4
#define PLAN_DEVS_MAX 3
#define PLAN_FAULTS_MAX 16
#define PLAN_FLOWS_MAX 1000

enum fault_kind {
	FAULT_NONE,
	FAULT_BREAK,    /* a link breaks: arg = how (enum sim_cut) */
	FAULT_FATE,     /* message number arg breaks its link: for_ms = enum sim_fate */
	FAULT_PORT,     /* the port of host's device arg is down for for_ms */
	FAULT_FREEZE,   /* host's device arg answers nothing for for_ms */
	FAULT_GONE,     /* host's device arg is unplugged; a new one comes after for_ms */
	FAULT_STALL,    /* host's process does not run for for_ms */
	FAULT_KILL,     /* the middle of flow arg gets RST from the network */
	FAULT_BLOCK,    /* iWARP: no MPA connection, or association, to host's device arg for for_ms */
	FAULT_DRAIN,    /* host stops offering groups */
	FAULT_WITHHOLD, /* requests of host's device arg are not completed for for_ms */
	FAULT_HOLD,     /* the next LLC message is held back for for_ms */
	FAULT_RESTART,  /* host's process dies; a new one starts at once */
	FAULT_OOM,      /* an engine's arg-th allocation from then on fails, for_ms of them */
	FAULT_KIND_CNT,
};

struct plan_fault {
	enum fault_kind kind;
	uint32_t at_ms;
	uint32_t host;
	uint32_t arg;
	uint32_t for_ms;
};

/* Plan.af_smc. */
#define AF_SMC_BOTH 3 /* every second device is for version 1 */
#define AF_SMC_SOME 4 /* smcrds that do not know the kind of the other end, and host 2, a foreign peer */

/* X(name, least, most), one a line. */
/* clang-format off */
#define PLAN_FIELDS(X) \
	/* topology and network */ \
	X(hosts, 2, PLAN_HOSTS_MAX)	/* host 0 is the egress of all, others ingress; both if two_way */ \
	X(two_way, 0, 1) \
	X(iwarp, 0, 1) \
	X(mixed, 0, 4095)		/* three bits per host: these devices have the other transport */ \
	X(sctp, 0, 4095)		/* three bits per host: these devices, if iWARP, are over SCTP */ \
	X(sctp_udp, 0, 15)		/* bit per host whose SCTP is in UDP */ \
	X(no_sctp, 0, 15)		/* bit per host that is of before SCTP: it has no such device, and sees no bit of it */ \
	X(no_device, 0, 15)		/* bit per host */ \
	X(devs0, 1, PLAN_DEVS_MAX) X(devs1, 1, PLAN_DEVS_MAX)	/* devices of each host */ \
	X(devs2, 1, PLAN_DEVS_MAX) X(devs3, 1, PLAN_DEVS_MAX) \
	X(other_subnet, 0, 15) \
	X(secure, 0, 3)			/* the middles are in TLS; as doc/secure.md has auth, required, and each of the levels */ \
	X(far_middle, 0, 1)		/* a server's end of the middle is in a network of its own: loopback, say */ \
	X(vlans, 0, 4095)		/* three bits per host: these devices are in a VLAN */ \
	X(rdma_delay_us, 1, 100000) X(rdma_spread_us, 0, 100000) X(ack_us, 0, 100000) \
	X(confirm_ms, 0, 1000)		/* completions wait for a fence */ \
	X(retry_ms, 1, 1000000) X(connect_ms, 1, 60000) \
	X(room_kb, 1, 65536) X(tear_percent, 0, 100) X(enomem_per_mille, 0, 1000) \
	X(early_percent, 0, 100)	/* iWARP: writes that are placed before their turn */ \
	X(unplaced_percent, 0, 100)	/* small writes that stay where they arrived until a buffer is reused */ \
	X(late_cut, 0, 2)		/* enum sim_cut of FAULT_FATE */ \
	X(end_ms, 0, 60000)		/* so long it takes a queue pair to end, as with a card; 0: nothing */ \
	X(no_deny, 0, 1)		/* devices are like cards: rnic_info.denies */ \
	X(tcp_delay_us, 1, 1000000) X(tcp_spread_us, 0, 1000000) X(tcp_window_kb, 1, 4096) \
	X(tcp_segment, 1, 1000000) X(rst_discards, 0, 1) \
	/* processes */ \
	X(jitter_us, 0, 1000000) X(stall_per_mille, 0, 1000) X(stall_us, 0, 10000000) \
	X(read_budget_kb, 1, 4096)	/* a connection and turn */ \
	/* engines */ \
	X(conns_max, 1, 100000) X(conns_per_group, 1, 255) X(rmb_elems, 1, 255) \
	X(elem_code_min, 0, 5) X(elem_code_max, 0, 5) \
	X(sndbuf_kb, 1, 1024) X(sq_depth, 4, 4096) X(rq_depth, 2, 4096) \
	X(rfc_cursors, 0, 15)		/* bit per host */ \
	X(auto_windows, 0, 1)		/* the engine chooses the sizes of elements and rings */ \
	X(no_start_over, 0, 15)		/* bit per host that does not know CDC_STARTED_OVER */ \
	X(links_max, 1, 8) X(links_one, 0, 15)	/* bit per host that has but one */ \
	X(add_link_retry_ms, 1, 600000) X(add_link_retry_max_ms, 1, 600000) \
	X(clc_ms, 1, 600000) X(llc_ms, 1, 600000) X(confirm_link_ms, 1, 600000) X(add_link_ms, 1, 600000) \
	X(keepalive_ms, 0, 600000) X(keepalive_answer_ms, 1, 600000) \
	X(last_link_ms, 0, 1000000) \
	X(group_idle_ms, 1, 600000) X(rmb_idle_ms, 1, 600000) \
	X(close_ms, 1, 600000) X(abort_ms, 1, 600000) X(fin_grace_ms, 1, 600000) \
	X(holdoff_ms, 1, 600000) X(holdoff_max_ms, 1, 600000) \
	/* connections */ \
	X(flows, 1, PLAN_FLOWS_MAX) \
	X(spread_ms, 0, 600000)		/* they start within */ \
	X(burst_per_mille, 0, 1000)	/* so many of them at once, at the start */ \
	X(wave_ms, 0, 600000)		/* half of them start this much later; 0 = no second wave */ \
	X(prewarm, 0, 1) \
	X(opens, 0, 100)		/* percent of the connections that open over a link, when they can */ \
	X(levels, 0, 1)			/* they are of three services: in clear, and two that want proven names (session.c) */ \
	X(kinds, 1, 63)			/* bit per enum flow_kind */ \
	X(bytes_max, 0, 16000000)	/* a direction */ \
	X(bytes_fixed, 0, 1)		/* every connection sends as many */ \
	X(chunk_max, 1, 1000000) X(pause_us, 0, 10000000) \
	X(slow_per_mille, 0, 1000) X(slow_us, 0, 10000000) \
	X(urgent_per_mille, 0, 1000)	/* of the chunks */ \
	X(abort_per_mille, 0, 1000) X(early_close_per_mille, 0, 1000) X(refuse_per_mille, 0, 1000) \
	/* a hostile run (hostile.h): host 2 lies */ \
	X(hostile, 0, 1) \
	X(quarantine_max, 1, 1000) X(groups_per_addr, 1, 1000) \
	X(liars_share, 0, 1000)		/* of the connections: those with it at one end */ \
	X(liar_id, 0, 2)		/* its peer id is that of host liar_id - 1; 0: its own */ \
	X(lies_from, 0, 1000000)	/* so many messages of it are as they should be */ \
	X(lies_max, 0, 1000000) X(lie_per_mille, 0, 1000) X(mishear_per_mille, 0, 1000) \
	X(habit, 0, 255)		/* what it always does with messages of this kind (LIAR_HABIT_); 0: none */ \
	X(habit_lie, 0, 8)		/* enum lie */ \
	X(habit_field, 0, 255) \
	X(habit_per_mille, 0, 1000) \
	X(habit_v2, 0, 3)		/* enum lie_v2, in place of habit_lie where it is not 0 */ \
	X(liar_order, 0, 2)		/* enum liar_order */ \
	X(act_us, 0, 100000000)		/* between two deeds of its own, on average; 0: none */ \
	X(talk_ms, 0, 600000)		/* it ends after that */ \
	X(liar_ids, 0, 1)		/* it has another peer id in each of its connections */ \
	X(pose_per_mille, 0, 1000)	/* of its CLC messages: replaced by another host's */ \
	X(max_qp, 0, 100000)		/* of a device; 0: as many as it likes */ \
	X(rmb_kb, 0, 1000000)		/* of an engine's RMBs in all; 0: as much */ \
	X(silent_ms, 0, 600000)		/* and before its end says nothing for so long */ \
	/* never drawn */ \
	X(af_smc, 0, 4)			/* each host is Linux's AF_SMC to the others, of this version, over RoCE; */ \
					/* AF_SMC_BOTH: of both; AF_SMC_SOME: host 2 alone, to smcrds; 0: none */ \
	/* the end */ \
	X(drain, 0, 2)			/* groups end in the orderly way, 2: by being idle; 0: engines are freed at once */ \
	X(limit_ms, 1, 100000000)	/* all connections have ended by then */

/* clang-format on */

struct script;

struct plan {
	uint64_t seed;
#define X(name, least, most) uint32_t name;
	PLAN_FIELDS(X)
#undef X
	struct plan_fault fault[PLAN_FAULTS_MAX];
	unsigned fault_cnt;
	const struct script *script; /* NULL: none */
};

/* Neighbouring seeds start generators that have nothing in common. */
uint64_t plan_mix(uint64_t seed);
/* Drawn from numbers of its own, when everything else is. */
uint32_t plan_draw_secure(const struct plan *, uint64_t seed);
/* Draws everything from the seed. */
void plan_draw(struct plan *, uint64_t seed);
/* A hostile run: small, so that there may be many. */
void plan_draw_hostile(struct plan *, uint64_t seed);
/* Two hosts, one device each, a few connections, nothing drawn but what the connections do. */
void plan_plain(struct plan *);
/* "name=value" or "fault=KIND,at_ms,host,arg,for_ms" ("faults=0" removes all): 0 or -EINVAL. */
int plan_set(struct plan *, const char *text);
/* A scenario file: one setting a line, # starts a comment. 0, or the number of the bad line. */
int plan_load(struct plan *, FILE *);
void plan_print(const struct plan *, FILE *);
const char *plan_fault_str(enum fault_kind);
/* Something may reset connections that their applications did not ask for. */
bool plan_faulty(const struct plan *);
unsigned plan_devs(const struct plan *, unsigned host);
enum rnic_transport plan_transport(const struct plan *, unsigned host, unsigned dev);
/* Of the service of this flow: 0 in clear, 1 auth, 2 required. The liar has no name that the second one permits, where there are both. */
unsigned plan_level(const struct plan *, unsigned flow, bool hostile);
bool plan_knows_sctp(const struct plan *, unsigned host);
/* Some connections are aborted, so that an element may stay without its peer's acknowledgement. */
bool plan_aborts(const struct plan *);
/* Some connections may end up on TCP. */
bool plan_may_fall_back(const struct plan *);
