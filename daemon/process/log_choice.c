/* See process/log_choice.h. */
#include "daemon/process/log_choice.h"

static enum log_level
without_client(const struct log_choice *c)
{
	return (enum log_level)(c->option >= 0 ? c->option : c->configured);
}

enum log_level
log_choice_level(const struct log_choice *c)
{
	return c->client >= 0 ? (enum log_level)c->client : without_client(c);
}

bool
log_choice_configure(struct log_choice *c, int configured)
{
	c->configured = configured;
	log_set_level(log_choice_level(c));
	return c->client >= 0;
}

struct control_level
log_choice_by_client(struct log_choice *c, int level)
{
	if (level != CONTROL_LEVEL_ASK) {
		c->client = level == CONTROL_LEVEL_RESET ? -1 : level;
		log_set_level(log_choice_level(c));
	}
	return (struct control_level){
		.now = (int)log_choice_level(c), .configured = (int)without_client(c), .set = c->client >= 0
	};
}
