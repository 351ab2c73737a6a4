/*
 * Which level the log has: what a control client has set, else what the command line says, else the configuration. Kept by
 * smcrd.c, which tells it of each configuration that comes into force.
 */
#pragma once

#include <stdbool.h>

#include "base/log.h"
#include "daemon/control/control.h"

struct log_choice {
	int option;     /* of the command line, enum log_level; -1 = none */
	int configured; /* enum log_level */
	int client;     /* of a control client, enum log_level; -1 = none */
};

/* The one that is to be in force. */
enum log_level log_choice_level(const struct log_choice *);
/* A configuration with this level comes into force, and so does what follows. True: a client's choice stays in its way. */
bool log_choice_configure(struct log_choice *, int configured);
/* For control_hooks: an enum log_level, or one of CONTROL_LEVEL_. */
struct control_level log_choice_by_client(struct log_choice *, int level);
