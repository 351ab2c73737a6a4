/* Wording of the log lines about the engine; see log_text.h. */
#include "daemon/log_text.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "wire/clc.h"

/* Behind what is there already; cut off where the buffer ends. */
static void __attribute__((format(printf, 3, 4))) add(char *buf, size_t cap, const char *fmt, ...)
{
	size_t len = strlen(buf);
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(buf + len, cap - len, fmt, ap);
	va_end(ap);
}

enum log_level
log_text_engine(const struct smcr_log *l, char *buf, size_t cap)
{
	static const struct {
		enum log_level level;
		const char *phrase;
		const char *text_key;
		const char *value_key; /* NULL: the value means nothing */
	} kinds[] = {
		[SMCR_LOG_GROUP_UP] = { LOG_LVL_NOTICE, "link group up", "role", NULL },
		[SMCR_LOG_GROUP_DOWN] = { LOG_LVL_NOTICE, "link group down", "reason", NULL },
		[SMCR_LOG_LINK_UP] = { LOG_LVL_NOTICE, "link up", "transport", NULL },
		[SMCR_LOG_LINK_ENDED] = { LOG_LVL_NOTICE, "link ended", "reason", NULL },
		[SMCR_LOG_LINK_DOWN] = { LOG_LVL_WARNING, "link down", "reason", NULL },
		[SMCR_LOG_HELD_OFF] = { LOG_LVL_WARNING, "peer held off", "reason", "for_ms" },
		[SMCR_LOG_SCTP_SHUNNED] = { LOG_LVL_WARNING, "SCTP to the peer held off", "reason", "for_ms" },
		[SMCR_LOG_REFUSED] = { LOG_LVL_WARNING, "link of the peer refused", "reason", NULL },
		[SMCR_LOG_PROTOCOL] = { LOG_LVL_WARNING, "protocol violation by the peer", "what", NULL },
		[SMCR_LOG_DEVICE] = { LOG_LVL_WARNING, "device trouble", "reason", NULL },
		[SMCR_LOG_STATE] = { LOG_LVL_DEBUG, "state", "change", NULL },
		[SMCR_LOG_OVERRUN] = { LOG_LVL_WARNING, "engine log lines lost", "reason", "count" },
	};

	buf[0] = '\0';
	add(buf, cap, "%s:", kinds[l->type].phrase);
	if (l->group_id != 0)
		add(buf, cap, " group=%u", l->group_id);
	if (l->link != 0)
		add(buf, cap, " link=%u", l->link);
	if (l->peer[0] != '\0')
		add(buf, cap, " peer=%s", l->peer);
	if (l->device[0] != '\0')
		add(buf, cap, " device=%s", l->device);
	if (kinds[l->type].value_key != NULL)
		add(buf, cap, " %s=%llu", kinds[l->type].value_key, (unsigned long long)l->value);
	if (l->text[0] != '\0')
		add(buf, cap, strchr(l->text, ' ') != NULL ? " %s=\"%s\"" : " %s=%s", kinds[l->type].text_key, l->text);
	return kinds[l->type].level;
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
		add(buf, cap, " local_code=0x%08x local_reason=\"%s\"", diag->local, clc_diag_str(diag->local));
	if (diag->local != 0 && diag->detail != NULL)
		add(buf, cap, " detail=\"%s\"", diag->detail);
	if (diag->local != 0 && diag->mpa_port != 0)
		add(buf, cap, " mpa_peer=%s", log_text_mpa_peer(diag, peer));
	if (diag->peer != 0)
		add(buf, cap, " peer_code=0x%08x peer_reason=\"%s\"", diag->peer, clc_diag_str(diag->peer));
	if (diag->over != NULL)
		add(buf, cap, " transport=%s", diag->over);
	if (diag->sctp_held_off)
		add(buf, cap, " sctp_held_off=yes");
	if (diag->offered != 0) {
		clc_transports_str(diag->offered, transports);
		add(buf, cap, " offered=%s", transports);
	}
	if (diag->out_of_sync)
		add(buf, cap, " out_of_sync=yes");
	if (diag->held_off)
		add(buf, cap, " held_off=yes");
	return buf;
}
