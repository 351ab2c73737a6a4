/*
 * What came of a check: the steps of a rendezvous with how long each took, and
 * the verdict in words. Pure; filled in by probes (probe.c), read by reports.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "daemon/leg/clc_stream.h"
#include "smcr/smcr.h"

#define CHECK_TEXT_MAX 320

/*
 * X(constant, word), the words for programs. Steps, in their order: TCP; CLC, from the Proposal to the peer's Accept, or to the end
 * of the rendezvous where there is a link group; the queue pair, over iWARP MPA's start-up or its equal; CONFIRM LINK, and what
 * else a new group does before its first data; a TEST LINK. Then what became of a step, and what a check has found.
 */
#define CHECK_STEPS(X)        \
	X(TCP, "tcp")         \
	X(CLC, "clc")         \
	X(CONNECT, "connect") \
	X(LINK, "link")       \
	X(TEST, "round-trip")
#define CHECK_STEP_RESULTS(X)         \
	X(NOT_REACHED, "not-reached") \
	X(OK, "ok")                   \
	X(FAILED, "failed")           \
	X(SKIPPED, "skipped")
/* clang-format off */
#define CHECK_FINDINGS(X) \
	X(POSSIBLE, "possible", "SMC-R works") \
	X(UNREACHABLE, "unreachable", "no TCP connection") \
	X(NO_OPTION, "no-option", "the peer's SYN/ACK had no SMC-R option, so that it is no SMC-R peer") \
	X(PLAIN, "plain-server", "the peer answers, but not with CLC: a plain TCP server") \
	X(CLOSED, "closed", "the peer closes or resets the connection, at once or when it gets the Proposal: a plain server, or an smcrd that does not let us in") \
	X(SILENT, "silent", "no answer to the Proposal") \
	X(PEER_DECLINED, "declined", "the peer declines: `reason` has its words") \
	X(DECLINED, "declined-here", "this side does") \
	X(LINK_FAILED, "link-failed", "the link cannot be made, or does not answer: `reason` has the device's words") \
	X(TIMEOUT, "timeout", "`timeout_ms` was over") \
	X(NOT_TRIED, "not-tried", "it could not be tried: no connection is free, or the daemon ends")
/* clang-format on */

#define CHECK_STEP_RESULT(constant, word) CHECK_STEP_##constant,
#define CHECK_FINDING(constant, ...) CHECK_##constant,
enum check_step { CHECK_STEPS(CHECK_FINDING) CHECK_STEP_CNT };
enum check_step_result { CHECK_STEP_RESULTS(CHECK_STEP_RESULT) };
enum check_finding { CHECK_FINDINGS(CHECK_FINDING) };

/* A measurement over one of both paths. */
enum check_path { CHECK_SMCR, CHECK_MIDDLE, CHECK_PATH_CNT };

struct check_bulk {
	uint64_t bytes;          /* each way; 0: it was not made */
	int64_t out_ns, back_ns; /* until all had arrived at the peer, as it answers; from there until all was back */
};

struct check_result {
	bool possible;
	enum check_finding finding;
	char text[CHECK_TEXT_MAX]; /* in words: what was done, or what failed and whose reason */
	struct {
		enum check_step_result result;
		int64_t took_ns;
		const char *text; /* static: why it was skipped; NULL */
	} steps[CHECK_STEP_CNT];
	enum check_step step; /* at which it is, or ended */
	int64_t step_ns;      /* since when */
	int64_t begun_ns, took_ns;
	int64_t held_off_ns; /* for how long others would not have tried the peer when it began; 0 */
	struct check_bulk bulk[CHECK_PATH_CNT];
	const char *bulk_text; /* static: why a measurement that was wanted is missing; NULL */
	struct smcr_diag diag;
	struct smcr_group_info group; /* that serves the peer, when it is possible; id 0: it has ended */
};

/* The first step begins. */
void check_begin(struct check_result *, int64_t now_ns);
/* This step begins, unless it has; the one before is through, and steps between are skipped, with why (static). */
void check_step(struct check_result *, enum check_step, int64_t now_ns, const char *skipped);
/* The step at hand is through, and was the last. */
void check_step_done(struct check_result *, int64_t now_ns);
/* The end, by the verdict in place: the step at hand is through when it is possible, else failed. */
void check_end(struct check_result *, int64_t now_ns);

/* The verdict of a rendezvous, by result->diag and group, in words. peer: its address. */
void check_say_declined(struct check_result *, const char *peer);
void check_say_done(struct check_result *, const char *peer);

/* A rendezvous that has ended without either. */
struct check_break {
	enum smcr_reason reason;
	const char *detail;      /* the engine's */
	const struct clc_in *in; /* what was read last of the middle */
	bool acked;              /* the peer's TCP has taken all that was sent */
	const char *hint;        /* more words, or "" */
};

void check_say_broken(struct check_result *, const char *peer, const struct check_break *);
