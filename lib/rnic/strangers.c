/* Whom a device has refused last; see strangers.h. */
#include "rnic/strangers.h"

#include <string.h>

#include "base/addr.h"

static const char *const counters[STRANGER_KINDS] = {
	[STRANGER_ADDRESS] = "mpa_refused_address",
	[STRANGER_BAD] = "mpa_bad",
	[STRANGER_TOKEN] = "mpa_refused_token",
	[STRANGER_PARKED] = "mpa_refused_parked",
	[STRANGER_LIMITED] = "strangers_limited",
};

struct stranger
stranger_of(const struct sockaddr_storage *ss)
{
	struct stranger s = { .port = addr_port(ss) };

	addr_to_v6(ss, s.at.b);
	return s;
}

void
strangers_note(struct strangers *s, enum stranger_kind kind, const struct stranger *who)
{
	s->last[kind] = *who;
	s->known[kind] = true;
}

bool
strangers_last(const struct strangers *s, const char *counter, struct sockaddr_storage *from)
{
	for (unsigned i = 0; i < STRANGER_KINDS; i++) {
		if (!s->known[i] || strcmp(counters[i], counter) != 0)
			continue;
		addr_from_v6(s->last[i].at.b, s->last[i].port, from);
		return true;
	}
	return false;
}
