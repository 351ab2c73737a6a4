/* Requests of control clients: one line of JSON into a struct. Pure; used by the control socket, and fuzzed. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "control/commands.h"
#include "daemon/config/config.h"
#include "daemon/worker/worker.h"

struct control_request {
	enum control_command command;
	/* Filters; 0 or "": not set. group and link are also the objects of commands. */
	char service[CONFIG_NAME_MAX];
	uint32_t group;
	uint32_t link;        /* its number in the group */
	uint32_t token;       /* of a connection */
	uint32_t worker;      /* from 1 */
	unsigned modes;       /* 1 << enum session_mode; never 0 */
	unsigned kinds;       /* 1 << enum smcr_trace_kind; never 0 */
	unsigned event_kinds; /* 1 << enum event_kind; never 0 */
	bool follow;          /* events, as they come */
	bool then_exit;       /* drain */
	/* check */
	struct sockaddr_storage peer; /* also close, retry: port 0 = any, no family = not set */
	uint32_t timeout_ms;
	uint32_t bulk_bytes; /* 0: none */
	uint64_t id;         /* of a proxied connection */
	int level;           /* enum log_level, or one of CONTROL_LEVEL_ */
	unsigned given;      /* CONTROL_F_ of the fields of the request */
};

/* Does the request change something? */
enum control_kind control_request_kind(const struct control_request *);

/* The reason of a failed request: a fixed word for programs, a sentence for people. */
struct control_error {
	const char *code;
	char text[512];
};

/* One request without its line end: 0, or -EINVAL with *err set. *out is written on success only. */
int control_request_parse(const char *line, size_t len, struct control_request *out, struct control_error *err)
    __attribute__((warn_unused_result));

struct json_t;

/* A member of requests. */
struct control_field {
	const char *name;
	unsigned bit; /* CONTROL_F_; 0: all commands take it, and it is read before the others */
	/* False unless the value is what it must be. */
	bool (*take)(const struct json_t *, struct control_request *);
	const char *must;
	/* A number: from 1 to max, and its place in the request. */
	uint32_t max;
	size_t off;
	const char *type, *meaning; /* for doc/json-fields.md */
};

extern const struct control_field control_fields[]; /* ends with a name of NULL */

extern const char *const control_level_words[]; /* by enum log_level */
extern const char *const control_mode_words[];  /* by enum session_mode */
extern const char *const control_kind_words[];  /* by enum smcr_trace_kind */
