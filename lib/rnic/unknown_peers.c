/* The last peers refused by a device; see unknown_peers.h. */
#include "rnic/unknown_peers.h"

#include <string.h>

#include "base/addr.h"

static const char *const counters[UNKNOWN_PEER_KINDS] = {
	[UNKNOWN_PEER_ADDRESS] = "mpa_refused_address",
	[UNKNOWN_PEER_BAD] = "mpa_bad",
	[UNKNOWN_PEER_TOKEN] = "mpa_refused_token",
	[UNKNOWN_PEER_PARKED] = "mpa_refused_parked",
	[UNKNOWN_PEER_LIMITED] = "strangers_limited",
};

struct unknown_peer
unknown_peer_of(const struct sockaddr_storage *ss)
{
	struct unknown_peer s = { .port = addr_port(ss) };

	addr_to_v6(ss, s.at.b);
	return s;
}

void
unknown_peers_note(struct unknown_peers *s, enum unknown_peer_kind kind, const struct unknown_peer *who)
{
	s->last[kind] = *who;
	s->known[kind] = true;
}

bool
unknown_peers_last(const struct unknown_peers *s, const char *counter, struct sockaddr_storage *from)
{
	for (unsigned i = 0; i < UNKNOWN_PEER_KINDS; i++) {
		if (!s->known[i] || strcmp(counters[i], counter) != 0)
			continue;
		addr_from_v6(s->last[i].at.b, s->last[i].port, from);
		return true;
	}
	return false;
}
