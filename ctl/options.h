/* The command line of smcrctl, and the requests that it stands for. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "control/commands.h"

#define OPTIONS_DEFAULT_SOCKET RUNSTATEDIR "/smcrd/control"
#define OPTIONS_HOST_MAX 256
#define OPTIONS_SOCKET_MAX 128 /* longer than a UNIX socket's name can be */

struct options {
	const char *socket;
	const char *instance; /* NULL = the daemon without a name */
	uint32_t pid;         /* of a process that was taken over: its socket; 0 = the socket as it is */
	char socket_text[OPTIONS_SOCKET_MAX];
	enum control_command command;
	bool json;
	bool detail;
	int64_t watch_ms; /* 0 = once */
	/* filters; 0 or NULL = none */
	const char *service;
	const char *mode;  /* as in a request */
	uint32_t group;    /* also what a command is about */
	uint32_t link;     /* link delete */
	uint64_t id;       /* close */
	const char *peer;  /* close, retry; an address */
	const char *level; /* log-level */
	bool delta;        /* stats: differences */
	bool history;      /* top: the command is history then */
	uint32_t token;
	uint32_t worker;
	unsigned kinds;   /* of trace messages: bits that options_request knows */
	const char *kind; /* of events */
	bool follow;      /* events, as they come */
	bool then_exit;   /* drain */
	bool problems;    /* doctor: nothing else */
	/* capture: whose connections; at most one */
	const char *cgroup, *uid, *interface;
	bool strict;
	/* check */
	char host[OPTIONS_HOST_MAX];
	uint16_t port;
	int64_t timeout_ms;
	uint32_t bulk_bytes; /* 0 = none */
};

enum options_result {
	OPTIONS_RUN,
	OPTIONS_DONE,  /* --help and --version: shown on out */
	OPTIONS_WRONG, /* a line on err */
};

enum options_result options_parse(int argc, char **argv, struct options *, FILE *out, FILE *err);
/* The request as a line of JSON without its end, to be freed; peer is for `check` alone. NULL when memory is out. */
char *options_request(const struct options *, const char *peer);
