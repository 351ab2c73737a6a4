/* Journal entries with fields; see journal.h. */
#define SD_JOURNAL_SUPPRESS_LOCATION /* the place in our source does not help an operator */
#include "daemon/event/journal.h"

#include <string.h>
#include <systemd/sd-journal.h>
#include <unistd.h>

#include "base/str.h"

#define SOCKET "/run/systemd/journal/socket"
#define FIXED 4 /* MESSAGE, MESSAGE_ID, PRIORITY, SMCRD_EVENT */
#define NAME_MAX_LEN 32
/* Large enough for all fields: none is cut, so each ends with a newline. */
#define ENTRY_MAX (FIXED * NAME_MAX_LEN + EVENT_TEXT_MAX + EVENT_FIELD_CNT * (NAME_MAX_LEN + EVENT_REASON_MAX))

/* Runs in the log thread. The library's socket blocks. */
static bool
send_entry(const char *entry, size_t len)
{
	struct iovec iov[FIXED + EVENT_FIELD_CNT];
	unsigned cnt = 0;

	for (const char *p = entry, *end; p < entry + len; p = end + 1) {
		end = memchr(p, '\n', (size_t)(entry + len - p));
		iov[cnt++] = (struct iovec){ (void *)(uintptr_t)p, (size_t)(end - p) };
	}
	/* Without a socket at this path the library returns success. */
	return access(SOCKET, F_OK) == 0 && sd_journal_sendv(iov, (int)cnt) == 0;
}

void
journal_log(const struct event *e, const char *text)
{
	const struct event_kind_row *kind = &event_kinds[e->kind];
	char entry[ENTRY_MAX] = "", number[24];

	str_append(entry, sizeof(entry), "MESSAGE=%s\nMESSAGE_ID=%s\nPRIORITY=%d\nSMCRD_EVENT=%s\n", text, kind->id,
	    log_priority(kind->level), kind->word);
	for (unsigned i = 0; i < EVENT_FIELD_CNT; i++) {
		const char *value = event_value(e, &event_fields[i], number);

		if ((kind->fields & 1u << i) != 0 && value[0] != '\0')
			str_append(entry, sizeof(entry), "%s=%s\n", event_fields[i].journal, value);
	}
	log_entry(kind->level, text, send_entry, entry);
}
