/* Entries of the journal with fields; see journal.h. */
#define SD_JOURNAL_SUPPRESS_LOCATION /* where in our source it was said is of no use to an operator */
#include "daemon/event/journal.h"

#include <stdio.h>
#include <string.h>
#include <systemd/sd-journal.h>
#include <unistd.h>

#define SOCKET "/run/systemd/journal/socket"
#define FIXED 4 /* MESSAGE, MESSAGE_ID, PRIORITY, SMCRD_EVENT */
#define NAME_MAX_LEN 32

bool
journal_send(const struct event *e, const char *text)
{
	const struct event_kind_row *kind = &event_kinds[e->kind];
	char fixed[FIXED][EVENT_TEXT_MAX + NAME_MAX_LEN], fields[EVENT_FIELD_CNT][EVENT_REASON_MAX + NAME_MAX_LEN];
	struct iovec iov[FIXED + EVENT_FIELD_CNT];
	unsigned cnt = FIXED;
	char number[24];

	(void)snprintf(fixed[0], sizeof(fixed[0]), "MESSAGE=%s", text);
	(void)snprintf(fixed[1], sizeof(fixed[1]), "MESSAGE_ID=%s", kind->id);
	(void)snprintf(fixed[2], sizeof(fixed[2]), "PRIORITY=%d", log_priority(kind->level));
	(void)snprintf(fixed[3], sizeof(fixed[3]), "SMCRD_EVENT=%s", kind->word);
	for (unsigned i = 0; i < FIXED; i++)
		iov[i] = (struct iovec){ fixed[i], strlen(fixed[i]) };
	for (unsigned i = 0; i < EVENT_FIELD_CNT; i++) {
		const char *value = event_value(e, &event_fields[i], number);

		if ((kind->fields & 1u << i) == 0 || value[0] == '\0')
			continue;
		(void)snprintf(fields[i], sizeof(fields[i]), "%s=%s", event_fields[i].journal, value);
		iov[cnt++] = (struct iovec){ fields[i], strlen(fields[i]) };
	}
	/* Where nobody has the path, the library says that all is well. */
	return access(SOCKET, F_OK) == 0 && sd_journal_sendv(iov, (int)cnt) == 0;
}
