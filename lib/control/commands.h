/* Contract of the control socket between smcrd and smcrctl: a row for each command, and the words of requests.
 * check_commands.c compares the manual page, the completion and doc/json-fields.md with the rows. */
#pragma once

#include <stdbool.h>

#define CONTROL_VERSION 1      /* of requests */
#define CONTROL_CHECK_MS 10000 /* default time limit of a check */
#define CONTROL_CHECK_MAX_MS 60000
#define CONTROL_BULK_BYTES (32u << 20) /* default of smcrctl, each way */
#define CONTROL_BULK_MAX (256u << 20)

/* The commands in the order of smcrctl's help: X(constant, name, summary, other members of struct control_command_row). */
/* clang-format off */
#define CONTROL_COMMANDS(X) \
	X(STATUS, "status", "version, connections, memory, services", .takes = CONTROL_F_WORKER) \
	X(SERVICE, "service", "one service: settings, counters, peers", .args = "NAME", \
		.takes = CONTROL_F_SERVICE | CONTROL_F_WORKER, .needs = CONTROL_F_SERVICE) \
	X(CONNECTIONS, "connections", "all proxied connections: SMC-R or TCP, and the reason", \
		.takes = CONTROL_F_SERVICE | CONTROL_F_MODE | CONTROL_F_GROUP | CONTROL_F_WORKER) \
	X(GROUPS, "groups", "link groups", .takes = CONTROL_F_WORKER) \
	X(LINKS, "links", "links of the groups", .takes = CONTROL_F_GROUP | CONTROL_F_WORKER) \
	X(RMBS, "rmbs", "remote memory buffers", .takes = CONTROL_F_GROUP | CONTROL_F_WORKER) \
	X(DEVICES, "devices", "RDMA devices", .takes = CONTROL_F_WORKER) \
	X(STATS, "stats", "all counters, most frequent reasons for TCP", .takes = CONTROL_F_WORKER) \
	X(HISTORY, "history", "the last ten minutes, of all or of one service", \
		.takes = CONTROL_F_SERVICE | CONTROL_F_WORKER) \
	X(TOP, "top", "services and connections by data rate, refreshed", \
		.takes = CONTROL_F_SERVICE | CONTROL_F_WORKER, .kind = CONTROL_LOCAL) \
	X(CHECK, "check", "test whether SMC-R is possible to a peer, and if not, why", .args = "HOST:PORT", \
		.takes = CONTROL_F_PEER | CONTROL_F_TIMEOUT_MS | CONTROL_F_WORKER | CONTROL_F_BULK_BYTES, \
		.needs = CONTROL_F_PEER, .kind = CONTROL_TRIES, .orders_with = CONTROL_F_BULK_BYTES) \
	X(DOCTOR, "doctor", "check every ingress, limits and devices; give advice", .takes = CONTROL_F_TIMEOUT_MS, \
		.once = true, .kind = CONTROL_LOCAL) \
	X(ROUTES, "routes", "routes for an egress that connects by its clients' addresses", .args = "SERVICE", \
		.takes = CONTROL_F_SERVICE, .needs = CONTROL_F_SERVICE, .once = true, .kind = CONTROL_LOCAL) \
	X(CAPTURE, "capture", "print nftables rules that lead connections to an ingress", .args = "SERVICE", \
		.takes = CONTROL_F_SERVICE, .needs = CONTROL_F_SERVICE, .once = true, .kind = CONTROL_LOCAL) \
	X(TRACE, "trace", "trace CLC, LLC and CDC messages", \
		.takes = CONTROL_F_GROUP | CONTROL_F_TOKEN | CONTROL_F_KINDS | CONTROL_F_WORKER, .once = true, \
		.kind = CONTROL_ORDERS) \
	X(EVENTS, "events", "recent outages and recoveries; -f: follow new ones", \
		.takes = CONTROL_F_SERVICE | CONTROL_F_GROUP | CONTROL_F_KIND | CONTROL_F_FOLLOW, .once = true) \
	X(CLOSE, "close", "reset connections", .args = "[ID]", \
		.takes = CONTROL_F_ID | CONTROL_F_SERVICE | CONTROL_F_PEER, \
		.needs_any = CONTROL_F_ID | CONTROL_F_SERVICE | CONTROL_F_PEER, .may_name = CONTROL_F_ID, \
		.once = true, .kind = CONTROL_ORDERS) \
	X(DISABLE, "disable", "refuse new connections of a service", .args = "SERVICE", .takes = CONTROL_F_SERVICE, \
		.needs = CONTROL_F_SERVICE, .once = true, .kind = CONTROL_ORDERS) \
	X(ENABLE, "enable", "accept them again", .args = "SERVICE", .takes = CONTROL_F_SERVICE, \
		.needs = CONTROL_F_SERVICE, .once = true, .kind = CONTROL_ORDERS) \
	X(REBALANCE, "rebalance", "spread connections evenly over the links", .args = "[GROUP]", \
		.takes = CONTROL_F_GROUP | CONTROL_F_WORKER, .may_name = CONTROL_F_GROUP, .once = true, \
		.kind = CONTROL_ORDERS) \
	X(LINK_ADD, "link-add", "request another link of a group now", .args = "GROUP", .takes = CONTROL_F_GROUP, \
		.needs = CONTROL_F_GROUP, .once = true, .kind = CONTROL_ORDERS) \
	X(LINK_DELETE, "link-delete", "remove a link from its group", .args = "GROUP LINK", \
		.takes = CONTROL_F_GROUP | CONTROL_F_LINK, .needs = CONTROL_F_GROUP | CONTROL_F_LINK, .once = true, \
		.kind = CONTROL_ORDERS) \
	X(RETRY, "retry", "retry now after failures: held-off peers, links, devices", .args = "[PEER]", \
		.takes = CONTROL_F_PEER, .may_name = CONTROL_F_PEER, .once = true, .kind = CONTROL_ORDERS) \
	X(LOG_LEVEL, "log_level", "show the log level, or set it until smcrd ends", .args = "[LEVEL]", \
		.takes = CONTROL_F_LEVEL, .may_name = CONTROL_F_LEVEL, .once = true, .orders_with = CONTROL_F_LEVEL) \
	X(RELOAD, "reload", "read the configuration again", .once = true, .kind = CONTROL_ORDERS) \
	X(DRAIN, "drain", "accept no new connections, until undrain", .takes = CONTROL_F_THEN_EXIT | CONTROL_F_TIMEOUT_MS, \
		.kind = CONTROL_ORDERS) \
	X(UNDRAIN, "undrain", "undo a drain", .once = true, .kind = CONTROL_ORDERS)
/* clang-format on */

#define CONTROL_COMMAND(constant, ...) CONTROL_##constant,
enum control_command { CONTROL_COMMANDS(CONTROL_COMMAND) CONTROL_COMMAND_CNT };

/* Fields of a request besides "command" and "version". */
enum {
	CONTROL_F_SERVICE = 1 << 0,
	CONTROL_F_MODE = 1 << 1,
	CONTROL_F_GROUP = 1 << 2,
	CONTROL_F_LINK = 1 << 3,
	CONTROL_F_TOKEN = 1 << 4,
	CONTROL_F_KINDS = 1 << 5,
	CONTROL_F_PEER = 1 << 6,
	CONTROL_F_TIMEOUT_MS = 1 << 7,
	CONTROL_F_WORKER = 1 << 8,
	CONTROL_F_ID = 1 << 9,
	CONTROL_F_LEVEL = 1 << 10,
	CONTROL_F_BULK_BYTES = 1 << 11,
	CONTROL_F_KIND = 1 << 12,
	CONTROL_F_FOLLOW = 1 << 13,
	CONTROL_F_THEN_EXIT = 1 << 14,
};

/* Effect of a command on the daemon. */
enum control_kind {
	CONTROL_ASKS,  /* reads only: allowed on the read-only socket */
	CONTROL_TRIES, /* reads, but costs the daemon or its peers work: not allowed there */
	CONTROL_ORDERS, /* changes state, shows messages or loads the network: needs a right, and is logged with the client */
	CONTROL_LOCAL, /* made by smcrctl from other answers: not a request */
};

struct control_command_row {
	const char *name;    /* in a request; smcrctl's command line has a space for '-' and '-' for '_' */
	const char *summary; /* for the help */
	const char *args;    /* arguments as shown in the help; NULL: none */
	unsigned takes;      /* fields that the request may have */
	unsigned needs;      /* of these, required fields: arguments of smcrctl */
	unsigned needs_any;  /* of these, one is required */
	unsigned may_name;   /* of these, optional arguments of smcrctl */
	bool once;           /* not for smcrctl --watch */
	enum control_kind kind;
	unsigned orders_with; /* becomes an order with one of these fields */
};

extern const struct control_command_row control_commands[CONTROL_COMMAND_CNT];

/* X(constant, word): the mode of a connection ("mode"), and the messages of a trace ("kinds"). */
#define CONTROL_MODE_WORDS(X) \
	X(SMCR, "smcr")       \
	X(TCP, "tcp")         \
	X(SETUP, "setup")
#define CONTROL_KIND_WORDS(X) \
	X(CLC, "clc")         \
	X(LLC, "llc")         \
	X(CDC, "cdc")
/* Log levels ("level"); the last word restores the configured level. */
#define CONTROL_LEVEL_WORDS(X) \
	X(ERROR, "error")      \
	X(WARNING, "warning")  \
	X(NOTICE, "notice")    \
	X(INFO, "info")        \
	X(DEBUG, "debug")
#define CONTROL_LEVEL_DEFAULT "default"

enum {
	CONTROL_LEVEL_ASK = -2,   /* query the level */
	CONTROL_LEVEL_RESET = -1, /* restore the configured level */
};
