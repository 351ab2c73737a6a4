/* Targets of services: text form, kind and comparison; see config.h. */
#include "daemon/config/config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/addr.h"
#include "base/str.h"

const char *const config_to_words[] = { "", "original", "requested", NULL };

const char *
config_target_str(const struct config_target *t, char *buf)
{
	if (t->port == 0)
		snprintf(buf, CONFIG_TARGET_STR_MAX, "%s%s", t->srv ? "srv:" : "", t->host);
	else
		snprintf(buf, CONFIG_TARGET_STR_MAX, strchr(t->host, ':') != NULL ? "[%s]:%u" : "%s:%u", t->host,
		    (unsigned)t->port);
	if (t->backup)
		str_append(buf, CONFIG_TARGET_STR_MAX, "%s", CONFIG_BACKUP);
	return buf;
}

const char *
config_to_str(const struct config_service *svc, char *buf)
{
	char one[CONFIG_TARGET_STR_MAX];
	bool fits = true;

	snprintf(buf, CONFIG_TO_STR_MAX, "%s", config_to_words[svc->to_word]);
	for (unsigned i = 0; i < svc->to_cnt && fits; i++) {
		const char *text = config_target_str(&svc->to[i], one);

		fits = strlen(buf) + 2 + strlen(text) + sizeof(", ...") <= CONFIG_TO_STR_MAX;
		str_append(buf, CONFIG_TO_STR_MAX, "%s%s", i > 0 ? ", " : "", fits ? text : "...");
	}
	return buf;
}

bool
config_target_same(const struct config_target *a, const struct config_target *b)
{
	return a->srv == b->srv && a->backup == b->backup && a->port == b->port && strcmp(a->host, b->host) == 0;
}

bool
config_target_is_literal(const struct config_target *t)
{
	struct sockaddr_storage ss;

	return !t->srv && (addr_is_unix_text(t->host) || addr_parse(t->host, &ss) == 0);
}

void
config_targets_free(struct config_target *to, unsigned cnt)
{
	for (unsigned i = 0; i < cnt; i++)
		free(to[i].addrs);
	free(to);
}
