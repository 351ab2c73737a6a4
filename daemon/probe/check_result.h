/* Result of a check: steps of a rendezvous with times, and verdict. Pure; set by probes, read by reports. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "daemon/leg/clc_stream.h"
#include "daemon/target/health.h"
#include "smcr/smcr.h"

#define CHECK_TEXT_MAX 320

/* X(constant, word of the JSON output). Steps in order: TCP; CLC, from the Proposal to the Accept, or with an existing
 * link group to the end of the rendezvous; the queue pair (over iWARP: MPA start-up); CONFIRM LINK and the rest of
 * first contact; TEST LINK; the answer for the server behind the peer, which came with the Accept. Then the results of steps, and the findings. */
#define CHECK_STEPS(X)        \
	X(TCP, "tcp")         \
	X(CLC, "clc")         \
	X(CONNECT, "connect") \
	X(LINK, "link")       \
	X(TEST, "round-trip") \
	X(SERVER, "server")
#define CHECK_STEP_RESULTS(X)         \
	X(NOT_REACHED, "not-reached") \
	X(OK, "ok")                   \
	X(FAILED, "failed")           \
	X(SKIPPED, "skipped")
/* clang-format off */
#define CHECK_FINDINGS(X) \
	X(POSSIBLE, "possible", "SMC-R works, and the server behind the peer, unless the peer does not say it") \
	X(UNREACHABLE, "unreachable", "no TCP connection") \
	X(NO_OPTION, "no-option", "the peer's SYN/ACK had no SMC-R option, so that it is no SMC-R peer") \
	X(PLAIN, "plain-server", "the peer answers, but not with CLC: a plain TCP server") \
	X(CLOSED, "closed", "the peer closes or resets the connection, at once or when it gets the Proposal: a plain server, or an smcrd that refuses this host") \
	X(NO_TLS, "no-tls", "TLS fails, which the service of this peer needs: `reason` has the cause") \
	X(SILENT, "silent", "no answer to the Proposal") \
	X(PEER_DECLINED, "declined", "the peer declines: `reason` has its words") \
	X(DECLINED, "declined-here", "this side does") \
	X(LINK_FAILED, "link-failed", "the link cannot be made, or does not answer: `reason` has the device's words") \
	X(SERVER_DOWN, "server-down", "the server behind the peer is down, as that says: `text` has its words") \
	X(TIMEOUT, "timeout", "`timeout_ms` was over") \
	X(NOT_TRIED, "not-tried", "it could not be tried: no connection is free, or the daemon ends")
/* clang-format on */

#define CHECK_STEP_RESULT(constant, word) CHECK_STEP_##constant,
#define CHECK_FINDING(constant, ...) CHECK_##constant,
enum check_step { CHECK_STEPS(CHECK_FINDING) CHECK_STEP_CNT };
enum check_step_result { CHECK_STEP_RESULTS(CHECK_STEP_RESULT) };
enum check_finding { CHECK_FINDINGS(CHECK_FINDING) };

enum check_path { CHECK_SMCR, CHECK_MIDDLE, CHECK_PATH_CNT };

/* A measurement over one path. */
struct check_bulk {
	uint64_t bytes;          /* in each direction; 0: not measured */
	int64_t out_ns, back_ns; /* until the peer's answer that all has arrived; from there until all is back */
};

struct check_result {
	bool possible;
	enum check_finding finding;
	char text[CHECK_TEXT_MAX]; /* the success, or the failure with its reason */
	struct {
		enum check_step_result result;
		int64_t took_ns;
		const char *text; /* static: the reason of a skipped step, or NULL */
	} steps[CHECK_STEP_CNT];
	enum check_step step; /* the current or last step */
	int64_t step_ns;      /* its start */
	int64_t begun_ns, took_ns;
	unsigned server;     /* behind the peer: enum clc_server or another number */
	int64_t held_off_ns; /* remaining hold-off of the peer at the start; 0: none */
	struct check_bulk bulk[CHECK_PATH_CNT];
	const char *bulk_text; /* static: the reason of a missing measurement, or NULL */
	struct smcr_diag diag;
	struct smcr_group_info group; /* link group to the peer, if possible; id 0: it has ended */
};

void check_begin(struct check_result *, int64_t now_ns);
/* Starts a step, unless it has started: the current one succeeded, those between are skipped (static reason). */
void check_step(struct check_result *, enum check_step, int64_t now_ns, const char *skipped);
/* Ends the current step. */
void check_step_end(struct check_result *, enum check_step_result, int64_t now_ns);
/* Ends the check: the current step has succeeded if the finding is CHECK_POSSIBLE, else failed. */
void check_end(struct check_result *, int64_t now_ns);

/* Sets finding and text by result->diag and group. peer: its address. */
void check_say_declined(struct check_result *, const char *peer);
void check_say_done(struct check_result *, const char *peer);
/* Likewise by result->server, as the last step. */
void check_say_server(struct check_result *, const char *peer, int64_t now_ns);

/* The health of the target that the result of a probe shows; NONE: nothing. must_smcr: connections are not made by TCP.
 * why: a text in the result, or static. */
enum health_state check_health(const struct check_result *, bool must_smcr, const char **why);

/* A rendezvous that was aborted. */
struct check_break {
	enum smcr_reason reason;
	const char *detail;      /* from the engine */
	const struct clc_in *in; /* last bytes read from the CLC connection */
	bool acked;              /* the peer's TCP has acknowledged all that was sent */
	const char *hint;        /* appended to the text, or "" */
	const char *tls;         /* why TLS has failed, or ""; NULL: in clear */
};

void check_say_broken(struct check_result *, const char *peer, const struct check_break *);
