/* Log lines and the trace of messages; see log.h. */
#include "smcr/state/log.h"

#include <stdio.h>
#include <string.h>

#include "smcr/state/engine.h"
#include "smcr/state/lgr.h"

#define LOST_EVERY_MS 1000

/* A new line to fill in; NULL when the queue is full. */
static struct smcr_log *
new_line(struct smcr *eng, enum smcr_log_type type, const char *text)
{
	if (eng->log_cnt == SMCR_LOG_MAX) {
		eng->log_lost++;
		return NULL;
	}
	struct smcr_log *l = &eng->log[(eng->log_first + eng->log_cnt++) % SMCR_LOG_MAX];
	*l = (struct smcr_log){ .type = type };
	snprintf(l->text, sizeof(l->text), "%s", text != NULL ? text : "");
	return l;
}

struct smcr_log *
engine_log_peer(struct smcr *eng, enum smcr_log_type type, const char *key, const char *id,
    const struct smcr_identity *remote, uint64_t value, const char *text)
{
	struct smcr_log *l = new_line(eng, type, text);

	if (l == NULL)
		return NULL;
	l->value = value;
	l->is_key = key != NULL;
	snprintf(l->peer, sizeof(l->peer), "%s", key != NULL ? key : id);
	snprintf(l->peer_id, sizeof(l->peer_id), "%s", id);
	if (remote != NULL)
		memcpy(l->remote, remote->addr, sizeof(l->remote));
	return l;
}

void
engine_hex_id(const uint8_t id[8], char *buf)
{
	for (unsigned i = 0; i < 8; i++)
		snprintf(buf + 2 * i, 3, "%02x", id[i]);
}

void
engine_log(enum smcr_log_type type, const struct lgr *lgr, const struct link *link, uint64_t value, const char *text)
{
	const char *key = lgr->role == SMCR_CLIENT && lgr->peer_key[0] != '\0' ? lgr->peer_key : NULL;
	char id[17];

	engine_hex_id(lgr->peer_id, id);
	struct smcr_log *l = engine_log_peer(lgr->eng, type, key, id, &lgr->owner.remote, value, text);
	if (l == NULL)
		return;
	if (lgr->version >= 2)
		clc_field_str(lgr->terms.peer_host, l->host);
	l->group_id = lgr->id;
	l->link = link != NULL ? link->number : 0;
	if (type == SMCR_LOG_LINK_UP)
		memcpy(l->device, link->info.name, sizeof(l->device));
}

void
engine_log_device(struct smcr *eng, struct rnic_dev *dev, const char *text)
{
	struct smcr_log *l = new_line(eng, SMCR_LOG_DEVICE, text);

	if (l != NULL)
		memcpy(l->device, rnic_query(dev).name, sizeof(l->device));
}

void
engine_log_state(
    const struct lgr *lgr, const struct link *link, const char *what, const char *from, const char *to, const char *why)
{
	char text[sizeof(((struct smcr_log *)0)->text)];

	if (!lgr->eng->log_states)
		return;
	snprintf(
	    text, sizeof(text), "%s: %s -> %s%s%s", what, from, to, why != NULL ? ": " : "", why != NULL ? why : "");
	engine_log(SMCR_LOG_STATE, lgr, link, 0, text);
}

bool
smcr_next_log(struct smcr *eng, struct smcr_log *out)
{
	if (eng->log_cnt > 0) {
		*out = eng->log[eng->log_first];
		eng->log_first = (eng->log_first + 1) % SMCR_LOG_MAX;
		eng->log_cnt--;
		return true;
	}
	if (eng->log_lost == 0 || timer_armed(&eng->log_pause))
		return false;
	*out = (struct smcr_log){ .type = SMCR_LOG_OVERRUN, .value = eng->log_lost };
	eng->log_lost = 0;
	engine_arm(eng, &eng->log_pause, LOST_EVERY_MS);
	return true;
}

void
smcr_log_states(struct smcr *eng, bool on)
{
	eng->log_states = on;
}

void
smcr_set_trace(struct smcr *eng, void (*fn)(void *ctx, const struct smcr_trace *), void *ctx)
{
	eng->trace = fn;
	eng->trace_ctx = ctx;
}

void
engine_trace(struct smcr *eng, enum smcr_trace_kind kind, bool sent, const struct link *link, uint32_t conn_id,
    const uint8_t *msg, size_t len)
{
	if (eng->trace == NULL)
		return;
	struct smcr_trace t = { .kind = kind, .sent = sent, .conn_id = conn_id, .msg = msg, .len = len };
	if (link != NULL) {
		t.group_id = link->lgr->id;
		t.link = link->number;
	}

	eng->trace(eng->trace_ctx, &t);
}
