/*
 * What a control client asks: one line of JSON into a struct. Pure; used by
 * the control socket and fuzzed on its own.
 */
#ifndef SMCRD_CONTROL_REQUEST_H
#define SMCRD_CONTROL_REQUEST_H

#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "daemon/config/config.h"
#include "daemon/worker/worker.h"

#define CONTROL_VERSION 1      /* of requests */
#define CONTROL_CHECK_MS 10000 /* a check takes at most this long when the request does not say */
#define CONTROL_CHECK_MAX_MS 60000

enum control_command {
	CONTROL_STATUS,
	CONTROL_DEVICES,
	CONTROL_GROUPS,
	CONTROL_LINKS,
	CONTROL_CONNECTIONS,
	CONTROL_RMBS,
	CONTROL_STATS,
	CONTROL_RELOAD,
	CONTROL_DRAIN,
	CONTROL_CHECK,
	CONTROL_TRACE,
	CONTROL_REBALANCE,
	CONTROL_LINK_DELETE,
};

struct control_request {
	enum control_command command;
	/* Filters; what is not asked for is 0 or "". group and link also say what a command is about. */
	char service[CONFIG_NAME_MAX];
	uint32_t group;
	uint32_t link;  /* its number in the group */
	uint32_t token; /* of a connection */
	unsigned modes; /* 1 << enum session_mode; never 0 */
	unsigned kinds; /* 1 << enum smcr_trace_kind; never 0 */
	/* check */
	struct sockaddr_storage peer;
	uint32_t timeout_ms;
};

/* Why a request failed: a fixed word for programs, a sentence for people. */
struct control_error {
	const char *code;
	char text[256];
};

void control_error_set(struct control_error *, const char *code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* One request without its line end: 0, or -EINVAL with *err set. *out is written on success only. */
int control_request_parse(const char *line, size_t len, struct control_request *out, struct control_error *err)
    __attribute__((warn_unused_result));

const char *control_command_str(enum control_command);

#endif
