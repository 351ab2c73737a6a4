/* The level of the log: set by a control client, else the command line, else the configuration. Owner: smcrd.c. */
#pragma once

#include "base/log.h"
#include "daemon/control/control.h"

struct log_choice {
	int option;     /* of the command line, enum log_level; -1 = not set */
	int configured; /* enum log_level */
	int client;     /* of a control client, enum log_level; -1 = not set */
};

/* The level that is to be in force. */
enum log_level log_choice_level(const struct log_choice *);
/* A configuration with this level comes into force. True: the level set by a client stays in force. */
bool log_choice_configure(struct log_choice *, int configured);
/* For control_hooks: an enum log_level, or one of CONTROL_LEVEL_. */
struct control_level log_choice_by_client(struct log_choice *, int level);
