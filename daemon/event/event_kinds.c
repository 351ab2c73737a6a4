/* The tables of events and their fields, and the log line made from them; see event_kinds.h. */
#include "daemon/event/event_kinds.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"

#define TEXT(name, upper, member, meaning)                                                                         \
	{                                                                                                          \
		name, "SMCRD_" upper, offsetof(struct event, member), sizeof(((struct event *)0)->member), meaning \
	}
#define NUMBER(name, upper, member, meaning)                                     \
	{                                                                        \
		name, "SMCRD_" upper, offsetof(struct event, member), 0, meaning \
	}

/* clang-format off */
const struct event_field event_fields[EVENT_FIELD_CNT] = {
	[EVENT_F_SERVICE] = TEXT("service", "SERVICE", service, "name of the service"),
	[EVENT_F_GROUP] = NUMBER("group", "GROUP", group, "link group"),
	[EVENT_F_LINK] = NUMBER("link", "LINK", link, "number of the link in the group"),
	[EVENT_F_PEER] = TEXT("peer", "PEER", peer, "address of the other daemon; with port where it is the target of an ingress"),
	[EVENT_F_SERVER] = TEXT("server", "SERVER", server, "address and port, or path, of an egress's server"),
	[EVENT_F_HOST] = TEXT("host", "HOST", host, "the name of peer or server: as in `to` of the configuration, or as a peer of SMC version 2 reports it"),
	[EVENT_F_PEER_ID] = TEXT("peer_id", "PEER_ID", peer_id, "the peer's id in SMC-R, in hex"),
	[EVENT_F_DEVICE] = TEXT("device", "DEVICE", device, "of a link: our device"),
	[EVENT_F_TRANSPORT] = TEXT("transport", "TRANSPORT", transport, "transport of the link"),
	[EVENT_F_ROLE] = TEXT("role", "ROLE", role, "ours in a link group: `client` or `server`"),
	[EVENT_F_MPA] = TEXT("mpa", "MPA", mpa, "address and port for iWARP connections"),
	[EVENT_F_FALLBACK] = TEXT("fallback", "FALLBACK", fallback, "handling of the connections: `tcp` or `refuse`"),
	[EVENT_F_FOR_MS] = NUMBER("for_ms", "FOR_MS", for_ms, "planned duration"),
	[EVENT_F_REASON] = TEXT("reason", "REASON", reason, "the reason as text"),
	[EVENT_F_CONNECTIONS] = NUMBER("connections", "CONNECTIONS", connections, "affected connections so far"),
	[EVENT_F_FAILURES] = NUMBER("failures", "FAILURES", failures, "failed accept() calls so far"),
	[EVENT_F_AFTER_MS] = NUMBER("after_ms", "AFTER_MS", after_ms, "since the condition began"),
};
/* clang-format on */

#define F(name) (1u << EVENT_F_##name)
#define F_OUTAGE (F(SERVICE) | F(HOST) | F(REASON) | F(CONNECTIONS))
#define F_OVER (F(SERVICE) | F(HOST) | F(CONNECTIONS) | F(AFTER_MS))
#define F_WHO (F(SERVICE) | F(PEER) | F(HOST) | F(PEER_ID))
#define F_GROUP (F(GROUP) | F_WHO)
#define F_LINK (F(LINK) | F_GROUP)

/* clang-format off */
const struct event_kind_row event_kinds[EVENT_KIND_CNT] = {
	[EVENT_PEER_UNREACHABLE] = { "peer-unreachable", "peer not available",
	    "63386f12de80407d98a591a7cc5d295e", LOG_LVL_WARNING, F_OUTAGE | F(PEER),
	    "the ingress cannot connect to its peer, or the peer ends connections in their set-up" },
	[EVENT_PEER_REACHABLE] = { "peer-reachable", "peer available again",
	    "bb310f05d34c4e5ebb85d796d66f9897", LOG_LVL_NOTICE, F_OVER | F(PEER),
	    "a connection of the ingress succeeded again" },
	[EVENT_SERVER_UNREACHABLE] = { "server-unreachable", "server not available",
	    "64b65102294d4b738a90d3ff6b2de798", LOG_LVL_WARNING, F_OUTAGE | F(SERVER),
	    "the egress cannot connect to its server" },
	[EVENT_SERVER_REACHABLE] = { "server-reachable", "server available again",
	    "6a353865d20e4c03a470a9e02029eb3a", LOG_LVL_NOTICE, F_OVER | F(SERVER),
	    "the egress can connect to its server again" },
	[EVENT_UNKNOWN_PEER] = { "stranger", "no SMC-R peer, or a broken one",
	    "181d79e43c2d487f8ac2c0e7f8059775", LOG_LVL_NOTICE, F(SERVICE) | F(PEER) | F(REASON),
	    "something that speaks no SMC-R connected to an egress" },
	[EVENT_CIRCLE] = { "circle", "services lead in a circle",
	    "736bdb27466541b081325a7c5cca88cc", LOG_LVL_WARNING, F(SERVICE) | F(PEER) | F(REASON),
	    "a connection passed eight gateway services, which connect to each other, and was reset; `peer` is its source" },
	[EVENT_FALLBACK_BEGINS] = { "fallback-begins", "fallback begins",
	    "e2433a1f399246269259c9bb5f127f4d", LOG_LVL_WARNING, F_OUTAGE | F(PEER) | F(FALLBACK),
	    "a connection with the peer is not on SMC-R; reported again when the reason changes" },
	[EVENT_FALLBACK_ENDS] = { "fallback-ends", "fallback ends",
	    "d4a174f21c284a2dbb62e8146dbed2cc", LOG_LVL_NOTICE, F_OVER | F(PEER),
	    "the next connection with the peer is on SMC-R" },
	[EVENT_MPA_BLOCKED] = { "mpa-blocked", "MPA port cannot be used",
	    "1aa8672841984c17b7394571d1d0c1f0", LOG_LVL_WARNING, F(SERVICE) | F(PEER) | F(HOST) | F(MPA) | F(REASON),
	    "the reason of a fallback: the iWARP connection to this address and port cannot be made" },
	[EVENT_MPA_OPEN] = { "mpa-open", "MPA port can be used again",
	    "e619df5edf544d01849181fd8de19128", LOG_LVL_NOTICE, F(SERVICE) | F(PEER) | F(HOST) | F(MPA) | F(AFTER_MS),
	    "a link over this port came up again" },
	[EVENT_HOLDOFF_BEGINS] = { "holdoff-begins", "peer held off",
	    "e9fb63dcf3954d7b8302f9c4c270c284", LOG_LVL_WARNING, F_WHO | F(FOR_MS) | F(REASON),
	    "making link groups with the peer failed repeatedly: connections fall back at once for a while" },
	[EVENT_HOLDOFF_ENDS] = { "holdoff-ends", "peer no longer held off",
	    "45efb6e8036a4f0798a9bbd91209de39", LOG_LVL_NOTICE, F_WHO | F(AFTER_MS),
	    "a link group with the peer was made" },
	[EVENT_SCTP_HELD_OFF] = { "sctp-held-off", "SCTP to the peer held off",
	    "be4950c191d444689d7904db7a417c71", LOG_LVL_WARNING, F_WHO | F(FOR_MS) | F(REASON),
	    "first contact over SCTP failed: other transports are used for a while" },
	[EVENT_GROUP_UP] = { "group-up", "link group up",
	    "5e99780b169f40e19bd7370bde28dd2b", LOG_LVL_NOTICE, F_GROUP | F(ROLE),
	    "a link group was established" },
	[EVENT_GROUP_DOWN] = { "group-down", "link group down",
	    "5ef0a5d9d14646c9beb235b376359490", LOG_LVL_NOTICE, F_GROUP | F(REASON),
	    "it has ended" },
	[EVENT_LINK_UP] = { "link-up", "link up",
	    "d56e1c1abc884536a69a0ff6af0764b6", LOG_LVL_NOTICE, F_LINK | F(DEVICE) | F(TRANSPORT),
	    "a link of a group was established" },
	[EVENT_LINK_ENDED] = { "link-ended", "link ended",
	    "c7a2b3d5c38f4a37a7fbf7d3bd69f6de", LOG_LVL_NOTICE, F_LINK | F(REASON),
	    "the link ended in order; for one that was removed from its group `reason` begins with \"peer: \" when the peer removed it" },
	[EVENT_LINK_DOWN] = { "link-down", "link down",
	    "66d227b4488c4729a628b7ddf5c6c9a1", LOG_LVL_WARNING, F_LINK | F(REASON),
	    "the link failed" },
	[EVENT_LINK_SILENT] = { "link-silent", "link silent",
	    "1dc5f8734e134228b6f97a10e4978fad", LOG_LVL_WARNING, F_LINK | F(FOR_MS) | F(REASON),
	    "the peer does not answer, and no other link can replace this one: it is kept for this time at most" },
	[EVENT_LINK_ANSWERS] = { "link-answers", "link answers again",
	    "1b19b7e3a82f4800bf970af42cd68361", LOG_LVL_NOTICE, F_LINK | F(AFTER_MS),
	    "the peer answers over it again" },
	[EVENT_LINK_REFUSED] = { "link-refused", "link of the peer refused",
	    "11fcd5a6f88243fcbf7d3b0ab05cc8aa", LOG_LVL_WARNING, F_LINK | F(REASON),
	    "the peer offered a link to an address that this host does not connect to" },
	[EVENT_PROTOCOL_VIOLATION] = { "protocol-violation", "protocol violation by the peer",
	    "222f2230d3a0412badc2c0b6ddb2d668", LOG_LVL_WARNING, F_LINK | F(REASON),
	    "the peer broke the protocol" },
	[EVENT_DEVICE_TROUBLE] = { "device-trouble", "device trouble",
	    "16028f60d92a498085786c47ccebb73f", LOG_LVL_WARNING, F(DEVICE) | F(REASON),
	    "an RDMA device has trouble" },
	[EVENT_ACCEPTING_PAUSED] = { "accepting-paused", "accepting paused",
	    "f3db854af7ef4299ba1bac72e7a699e3", LOG_LVL_WARNING, F(SERVICE) | F(REASON) | F(FAILURES),
	    "descriptors or memory are exhausted: no connection is accepted for now. Reported once for all listening sockets; `service` is the first that failed, \"\" for a socket of control or metrics" },
	[EVENT_ACCEPTING_GOES_ON] = { "accepting-goes-on", "accepting goes on",
	    "40401e68a1eb4ad9aa18b0983de35c39", LOG_LVL_NOTICE, F(SERVICE) | F(FAILURES) | F(AFTER_MS),
	    "no listening socket is paused now; `service` was the last" },
};
/* clang-format on */

uint64_t
event_number(const struct event *e, const struct event_field *f)
{
	uint64_t n;

	memcpy(&n, (const char *)e + f->off, sizeof(n));
	return n;
}

const char *
event_value(const struct event *e, const struct event_field *f, char *buf)
{
	if (f->cap > 0)
		return (const char *)e + f->off;
	uint64_t n = event_number(e, f);
	buf[0] = '\0';
	if (n != 0)
		(void)snprintf(buf, 24, "%" PRIu64, n);
	return buf;
}

char *
event_text(const struct event *e, char *buf)
{
	const struct event_kind_row *kind = &event_kinds[e->kind];
	char number[24];

	buf[0] = '\0';
	str_append(buf, EVENT_TEXT_MAX, "%s:", kind->phrase);
	for (unsigned i = 0; i < EVENT_FIELD_CNT; i++) {
		const char *value = event_value(e, &event_fields[i], number);

		if ((kind->fields & 1u << i) == 0 || value[0] == '\0')
			continue;
		str_append(buf, EVENT_TEXT_MAX, strchr(value, ' ') != NULL ? " %s=\"%s\"" : " %s=%s",
		    event_fields[i].key, value);
	}
	return buf;
}

void
event_clean(struct event *e)
{
	for (unsigned i = 0; i < EVENT_FIELD_CNT; i++) {
		char *p = (char *)e + event_fields[i].off;

		for (size_t n = event_fields[i].cap; n > 0 && *p != '\0'; n--, p++) {
			if ((unsigned char)*p < ' ' || *p == 0x7f)
				*p = '?';
			else if (*p == '"')
				*p = '\'';
		}
	}
}
