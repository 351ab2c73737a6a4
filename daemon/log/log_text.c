/* Log lines about the engine; see log/log_text.h. */
#include "daemon/log/log_text.h"

#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "wire/clc.h"

/* The fields of the event that an entry fills; 0: not used. */
static const struct {
	int kind; /* enum event_kind, or -1: only a line */
	enum { NO_TEXT, IS_REASON, IS_ROLE, IS_TRANSPORT } text;
	enum { NO_VALUE, IS_FOR_MS, IS_AFTER_MS } value;
} entries[] = {
	[SMCR_LOG_GROUP_UP] = { EVENT_GROUP_UP, IS_ROLE, NO_VALUE },
	[SMCR_LOG_GROUP_DOWN] = { EVENT_GROUP_DOWN, IS_REASON, NO_VALUE },
	[SMCR_LOG_LINK_UP] = { EVENT_LINK_UP, IS_TRANSPORT, NO_VALUE },
	[SMCR_LOG_LINK_ENDED] = { EVENT_LINK_ENDED, IS_REASON, NO_VALUE },
	[SMCR_LOG_LINK_DOWN] = { EVENT_LINK_DOWN, IS_REASON, NO_VALUE },
	[SMCR_LOG_LINK_SILENT] = { EVENT_LINK_SILENT, IS_REASON, IS_FOR_MS },
	[SMCR_LOG_LINK_ANSWERS] = { EVENT_LINK_ANSWERS, NO_TEXT, IS_AFTER_MS },
	[SMCR_LOG_HELD_OFF] = { EVENT_HOLDOFF_BEGINS, IS_REASON, IS_FOR_MS },
	[SMCR_LOG_HELD_LONGER] = { -1, NO_TEXT, NO_VALUE },
	[SMCR_LOG_HOLD_OVER] = { EVENT_HOLDOFF_ENDS, NO_TEXT, IS_AFTER_MS },
	[SMCR_LOG_SCTP_SHUNNED] = { EVENT_SCTP_HELD_OFF, IS_REASON, IS_FOR_MS },
	[SMCR_LOG_REFUSED] = { EVENT_LINK_REFUSED, IS_REASON, NO_VALUE },
	[SMCR_LOG_PROTOCOL] = { EVENT_PROTOCOL_VIOLATION, IS_REASON, NO_VALUE },
	[SMCR_LOG_DEVICE] = { EVENT_DEVICE_TROUBLE, IS_REASON, NO_VALUE },
	[SMCR_LOG_STATE] = { -1, NO_TEXT, NO_VALUE },
	[SMCR_LOG_OVERRUN] = { -1, NO_TEXT, NO_VALUE },
};

/* Its key, or its address as far as known. */
static void
put_peer(const struct smcr_log *l, struct event *e)
{
	static const uint8_t none[sizeof(l->remote)];
	struct sockaddr_storage ss;

	if (l->is_key) {
		str_append(e->peer, sizeof(e->peer), "%s", l->peer);
	} else if (memcmp(l->remote, none, sizeof(none)) != 0) {
		addr_from_v6(l->remote, 0, &ss);
		addr_format(&ss, e->peer, sizeof(e->peer));
	}
	str_append(e->host, sizeof(e->host), "%s", l->host);
	str_append(e->peer_id, sizeof(e->peer_id), "%s", l->peer_id);
}

bool
log_text_event(const struct smcr_log *l, struct event *out)
{
	if (entries[l->type].kind < 0)
		return false;
	*out = (struct event){ .kind = (enum event_kind)entries[l->type].kind, .group = l->group_id, .link = l->link };
	put_peer(l, out);
	str_append(out->device, sizeof(out->device), "%s", l->device);
	if (entries[l->type].text == IS_REASON)
		str_append(out->reason, sizeof(out->reason), "%s", l->text);
	else if (entries[l->type].text == IS_ROLE)
		str_append(out->role, sizeof(out->role), "%s", l->text);
	else if (entries[l->type].text == IS_TRANSPORT)
		str_append(out->transport, sizeof(out->transport), "%s", l->text);
	if (entries[l->type].value == IS_FOR_MS)
		out->for_ms = l->value;
	else if (entries[l->type].value == IS_AFTER_MS)
		out->after_ms = l->value;
	return true;
}

enum log_level
log_text_engine(const struct smcr_log *l, char *buf, size_t cap)
{
	buf[0] = '\0';
	if (l->type == SMCR_LOG_OVERRUN) {
		str_append(buf, cap, "engine log lines lost: count=%llu", (unsigned long long)l->value);
		return LOG_LVL_WARNING;
	}
	if (l->type == SMCR_LOG_HELD_LONGER) {
		str_append(buf, cap, "peer still held off: peer=%s for_ms=%llu reason=\"%s\"", l->peer,
		    (unsigned long long)l->value, l->text);
		return LOG_LVL_INFO;
	}
	str_append(buf, cap, "state:");
	if (l->group_id != 0)
		str_append(buf, cap, " group=%u", l->group_id);
	if (l->link != 0)
		str_append(buf, cap, " link=%u", l->link);
	str_append(buf, cap, " peer=%s change=\"%s\"", l->peer, l->text);
	return LOG_LVL_DEBUG;
}

const char *
log_text_mpa_peer(const struct smcr_diag *diag, char buf[ADDR_STR_MAX])
{
	struct sockaddr_storage ss;

	addr_from_v6(diag->rnic.b, diag->mpa_port, &ss);
	return addr_format_port(&ss, buf, ADDR_STR_MAX);
}

const char *
log_text_diag(const struct smcr_diag *diag, char *buf, size_t cap)
{
	char peer[ADDR_STR_MAX], transports[CLC_TRANSPORTS_STR_MAX];

	buf[0] = '\0';
	if (diag->local != 0)
		str_append(buf, cap, " local_code=0x%08x local_reason=\"%s\"", diag->local, clc_diag_str(diag->local));
	if (diag->local != 0 && diag->detail != NULL) {
		str_append(buf, cap, " detail=\"");
		const size_t at = strlen(buf);

		str_append(buf, cap, "%s", diag->detail);
		for (char *p = buf + at; (p = strchr(p, '"')) != NULL;)
			*p = '\''; /* the peer may have chosen a part of it */
		str_append(buf, cap, "\"");
	}
	if (diag->local != 0 && diag->mpa_port != 0)
		str_append(buf, cap, " mpa_peer=%s", log_text_mpa_peer(diag, peer));
	if (diag->peer != 0)
		str_append(buf, cap, " peer_code=0x%08x peer_reason=\"%s\"", diag->peer, clc_diag_str(diag->peer));
	if (diag->over != NULL)
		str_append(buf, cap, " transport=%s", diag->over);
	if (diag->sctp_held_off)
		str_append(buf, cap, " sctp_held_off=yes");
	if (diag->offered != 0) {
		clc_transports_str(diag->offered, transports);
		str_append(buf, cap, " offered=%s", transports);
	}
	if (diag->out_of_sync)
		str_append(buf, cap, " out_of_sync=yes");
	if (diag->held_off)
		str_append(buf, cap, " held_off=yes");
	return buf;
}
