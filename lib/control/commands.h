/*
 * The part of the control socket that daemon and smcrctl have to agree about: the commands, a row each, and the words of
 * requests. A test (check_commands.c) compares the manual page, the completion and doc/json-fields.md with the rows.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define CONTROL_VERSION 1      /* of requests */
#define CONTROL_CHECK_MS 10000 /* a check takes at most this long when the request does not say */
#define CONTROL_CHECK_MAX_MS 60000
#define CONTROL_BULK_BYTES (32u << 20) /* each way, when smcrctl is not told how many */
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

/* What a command does to the daemon. */
enum control_kind {
	CONTROL_ASKS,   /* it only looks: what the read-only socket takes */
	CONTROL_TRIES,  /* it looks, and costs the daemon's connections or somebody else something: not there */
	CONTROL_ORDERS, /* it changes something: who asked is logged */
	CONTROL_LOCAL,  /* smcrctl's own, made of other answers: no request has this name */
};

struct control_command_row {
	const char
	    *name; /* in a request; on smcrctl's command line a hyphen is the end of a word, and '_' is a hyphen */
	const char *summary; /* for the help */
	const char *args;    /* what follows it there, as the help shows it; NULL: nothing */
	unsigned takes;      /* the fields that its request may have */
	unsigned needs;      /* of them, those that it must have */
	unsigned needs_any;  /* of them, those of which it must have one */
	unsigned named;      /* of them, those that are arguments of smcrctl, not options */
	bool once;           /* smcrctl --watch makes no sense */
	enum control_kind kind;
	unsigned orders_with; /* one that asks is an order with one of these */
};

extern const struct control_command_row control_commands[CONTROL_COMMAND_CNT];

/* X(constant, word): how a connection runs ("mode"), and the messages of a trace ("kinds"). */
#define CONTROL_MODE_WORDS(X) \
	X(SMCR, "smcr")       \
	X(TCP, "tcp")         \
	X(SETUP, "setup")
#define CONTROL_KIND_WORDS(X) \
	X(CLC, "clc")         \
	X(LLC, "llc")         \
	X(CDC, "cdc")
/* ... and levels of the log ("level"); the last one is no level but takes back what was set. */
#define CONTROL_LEVEL_WORDS(X) \
	X(ERROR, "error")      \
	X(WARNING, "warning")  \
	X(NOTICE, "notice")    \
	X(INFO, "info")        \
	X(DEBUG, "debug")
#define CONTROL_LEVEL_DEFAULT "default"

enum {
	CONTROL_LEVEL_ASK = -2,   /* what it is */
	CONTROL_LEVEL_RESET = -1, /* as configured */
};
