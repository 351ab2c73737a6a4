/* A configuration of one service of the kind SERVICE, by its settings. */
#pragma once

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "checks.h"
#include "daemon/config/config_int.h"

static char *msgs; /* of the last parse */

static inline struct config *
parse(const char *settings)
{
	struct config *cfg = NULL;
	char text[2048];
	size_t len;

	snprintf(text, sizeof(text), SERVICE " = ( { name = \"a\"; listen = \"127.0.0.1:7000\"; %s } );", settings);
	free(msgs);
	FILE *err = open_memstream(&msgs, &len);
	(void)config_parse("t.conf", text, strlen(text), CONFIG_NO_LOOKUP, err, &cfg);
	fclose(err);
	return cfg;
}

static inline struct config *
parse_ok(const char *settings)
{
	struct config *cfg = parse(settings);

	ck_assert_msg(cfg != NULL, "%s", msgs);
	return cfg;
}

static inline void
refused(const char *settings, const char *words)
{
	ck_assert_msg(parse(settings) == NULL, "accepted: %s", settings);
	ck_assert_msg(strstr(msgs, words) != NULL, "\"%s\" is not in:\n%s", words, msgs);
}
