/* Contract of the control socket between smcrd and smcrctl: a row for each command, and the words of requests.
 * check_commands.c compares the manual page, the completion and doc/json-fields.md with the rows. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define CONTROL_VERSION 1      /* of requests */
#define CONTROL_CHECK_MS 10000 /* default time limit of a check */
#define CONTROL_CHECK_MAX_MS 60000
#define CONTROL_BULK_BYTES (32u << 20) /* default of smcrctl, each way */
#define CONTROL_BULK_MAX (256u << 20)

enum control_command {
	CONTROL_STATUS,
	CONTROL_SERVICE,
	CONTROL_CONNECTIONS,
	CONTROL_GROUPS,
	CONTROL_LINKS,
	CONTROL_RMBS,
	CONTROL_DEVICES,
	CONTROL_STATS,
	CONTROL_TOP,
	CONTROL_CHECK,
	CONTROL_DOCTOR,
	CONTROL_TRACE,
	CONTROL_EVENTS,
	CONTROL_CLOSE,
	CONTROL_DISABLE,
	CONTROL_ENABLE,
	CONTROL_REBALANCE,
	CONTROL_LINK_ADD,
	CONTROL_LINK_DELETE,
	CONTROL_RETRY,
	CONTROL_LOG_LEVEL,
	CONTROL_RELOAD,
	CONTROL_DRAIN,
	CONTROL_UNDRAIN,
	CONTROL_COMMAND_CNT,
};

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
};

/* Effect of a command on the daemon. */
enum control_kind {
	CONTROL_ASKS,   /* reads only: allowed on the read-only socket */
	CONTROL_TRIES,  /* reads, but costs the daemon or its peers work: not allowed there */
	CONTROL_ORDERS, /* changes state: the client's identity is logged */
	CONTROL_LOCAL,  /* made by smcrctl from other answers: not a request */
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
	unsigned orders_with; /* CONTROL_ASKS becomes an order with one of these fields */
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
