/* The tables of events and their fields, and the log line made from them; see event_kinds.h. */
#include "daemon/event/event_kinds.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"

#define TEXT(member) offsetof(struct event, member), sizeof(((struct event *)0)->member)
#define NUMBER(member) offsetof(struct event, member), 0
#define FIELD(constant, key, member, meaning) { key, "SMCRD_" #constant, member, meaning },
const struct event_field event_fields[EVENT_FIELD_CNT] = { EVENT_FIELDS(FIELD) };

#define F(name) (1u << EVENT_F_##name)
#define F_OUTAGE (F(SERVICE) | F(HOST) | F(REASON) | F(CONNECTIONS))
#define F_OVER (F(SERVICE) | F(HOST) | F(CONNECTIONS) | F(AFTER_MS))
#define F_WHO (F(SERVICE) | F(PEER) | F(HOST) | F(PEER_ID))
#define F_GROUP (F(GROUP) | F_WHO)
#define F_LINK (F(LINK) | F_GROUP)

#define KIND(constant, word, phrase, id, level, fields, when) { word, phrase, id, LOG_LVL_##level, fields, when },
const struct event_kind_row event_kinds[EVENT_KIND_CNT] = { EVENT_KINDS(KIND) };

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
