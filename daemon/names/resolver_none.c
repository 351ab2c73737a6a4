/* A build without c-ares; see resolver.h. */
#include <errno.h>

#include "daemon/names/resolver.h"

int
resolver_new(struct loop *loop, struct resolver **out)
{
	(void)loop;
	(void)out;
	return -ENOSYS;
}

void
resolver_free(struct resolver *r)
{
	(void)r;
}

void
resolver_ask(struct resolver *r, const char *name, bool srv, uint16_t port, resolver_done done, void *arg)
{
	const struct resolver_answer none = { .why = "this smcrd was built without c-ares" };

	(void)r;
	(void)name;
	(void)srv;
	(void)port;
	done(arg, &none);
}

int64_t
resolver_turn(struct resolver *r, int64_t now_ns)
{
	(void)r;
	(void)now_ns;
	return INT64_MAX;
}
