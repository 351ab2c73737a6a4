/* Texts of causes; see end_cause.h. */
#include "daemon/session/end_cause.h"

/* For an ingress and an egress. */
static const char *const words[SEV_EVENT_CNT][2] = {
	[SEV_APP_RESET] = { "client reset the connection", "server reset the connection" },
	[SEV_MID_RESET] = { "peer reset the TCP connection", "peer reset the TCP connection" },
	[SEV_CONNECT_FAILED] = { "peer cannot be connected", "server cannot be connected" },
	[SEV_CIRCLE] = { "services lead in a circle", "services lead in a circle" },
	[SEV_CLIENT] = { "client's address not passed on", "client's address refused" },
	[SEV_DEST] = { "peer does not take the destination", "destination refused" },
	[SEV_TIMEOUT] = { "idle for too long", "idle for too long" },
	[SEV_OPERATOR] = { "closed by the operator", "closed by the operator" },
	[SEV_STOP] = { "daemon ends", "daemon ends" },
};

const char *
end_cause_of_event(enum session_event event, enum config_kind kind)
{
	return words[event][kind != CONFIG_INGRESS];
}

const char *
end_cause_str(enum config_kind kind, unsigned cause)
{
	if (cause > SEV_EVENT_CNT)
		return smcr_reason_str((enum smcr_reason)(cause - 1 - SEV_EVENT_CNT));
	if (cause == 0)
		return "other";
	const enum session_event event = (enum session_event)(cause - 1);
	const char *text = event == SEV_REFUSED ? "no SMC-R" : end_cause_of_event(event, kind);
	return text != NULL ? text : session_event_str(event);
}
