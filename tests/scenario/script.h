/*
 * A scenario as a short text: settings of the plan, faults bound to messages or
 * to lines of the log, and what is expected in the end. See scripts/README.
 *
 *	name=value				a setting, on top of a plain plan of two hosts
 *	when EVENT: ACTION			once
 *	at N ms: ACTION
 *	expect ...
 *	excuse TEXT				connections may be reset
 *	todo: TEXT				expected to fail, and why
 *
 * EVENT	[the] [Nth] MESSAGE [request|response|F] from host H [on link L] arrives|is sent
 *		[the] [Nth] line "TEXT"
 * MESSAGE	ADD LINK, CONFIRM RKEY, ... as describe.h has them; CDC, write
 * ACTION	lose it | tear it | unack it | ghost it | drop it		(arriving messages)
 *		hold it until EVENT | hold it for N ms			(until: counted from the beginning, too)
 *		break link L of host H reset|late|silent
 *		fault KIND host H arg N for N ms				(plan.h)
 *		rebalance host H | delete link L of host H
 * expect	[host H] COUNTER >=|<=|== N				(smcr_counters; all hosts added up without host)
 *		well|reset|smcr|fallback|groups >=|<=|== N		(connections)
 *		links of host H >=|<=|== N				(active, when all connections are over)
 *		line "TEXT" [>=|<=|== N] | no line "TEXT"
 */
#pragma once

#include <stdio.h>

#include "tests/sim/sim.h"
#include "tests/scenario/plan.h"
#include "wire/llc.h"

#define SCRIPT_RULES_MAX 16
#define SCRIPT_EXPECTS_MAX 24
#define SCRIPT_TEXT 100

enum script_event_kind {
	EVENT_NEVER,
	EVENT_TIME,
	EVENT_ARRIVES,
	EVENT_SENT,
	EVENT_LINE,
};

enum script_msg {
	SCRIPT_LLC,
	SCRIPT_CDC,
	SCRIPT_WRITE,
};

struct script_event {
	enum script_event_kind kind;
	uint32_t ms;
	enum script_msg msg;
	enum llc_type llc;
	int response; /* -1: either */
	bool failover;
	unsigned host;
	int link;     /* -1: any */
	unsigned nth; /* from 1 */
	char text[SCRIPT_TEXT];
	unsigned seen;
};

enum script_act {
	ACT_FATE,
	ACT_HOLD_UNTIL,
	ACT_HOLD_FOR,
	ACT_BREAK,
	ACT_FAULT,
	ACT_REBALANCE,
	ACT_DELETE_LINK,
};

struct script_rule {
	struct script_event when, until;
	enum script_act act;
	enum sim_fate fate;
	enum sim_cut cut;
	unsigned host;
	uint8_t link;
	uint32_t ms;
	struct plan_fault fault;
	/* while it runs */
	bool fired, due, over;
	const uint8_t *held; /* the message that waits, by its bytes' address: its number others may take */
	int64_t until_ns;
};

struct script_expect {
	enum { EXPECT_COUNTER, EXPECT_STAT, EXPECT_LINKS, EXPECT_LINE } kind;
	char what[SCRIPT_TEXT]; /* counter, figure or text */
	int host;               /* -1: all */
	char op[3];
	uint64_t value;
	uint64_t got;
};

struct script {
	struct script_rule rule[SCRIPT_RULES_MAX];
	unsigned rule_cnt;
	struct script_expect expect[SCRIPT_EXPECTS_MAX];
	unsigned expect_cnt;
	char excuse[SCRIPT_TEXT];
	char todo[SCRIPT_TEXT];
};

/* Reads a script: 0, or the number of the line that is wrong. The plan is plain_plan with the script's settings. */
int script_load(struct script *, struct plan *, FILE *);
