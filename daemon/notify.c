/* Notifications of systemd; see notify.h. */
#include "daemon/notify.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <systemd/sd-daemon.h>
#include <time.h>

#include "base/minmax.h"

#define STATUS_INTERVAL_NS (5 * 1000000000LL)
#define STOP_MARGIN_MS 10000u
#define STORE_BATCH 64 /* descriptors of a message; the kernel takes 253 */

void
notify_init(struct notify *n, int64_t now_ns)
{
	uint64_t usec;

	*n = (struct notify){ .enabled = getenv("NOTIFY_SOCKET") != NULL };
	if (sd_watchdog_enabled(0, &usec) > 0 && usec < INT64_MAX / 1000)
		n->watchdog_ns = (int64_t)usec * 1000 / 2;
	n->watchdog_at_ns = n->status_at_ns = now_ns;
}

void
notify_ready(struct notify *n)
{
	(void)sd_notify(0, "READY=1");
	n->status_at_ns = INT64_MIN;
}

void
notify_reloading(void)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_MONOTONIC, &ts);
	(void)sd_notifyf(0, "RELOADING=1\nMONOTONIC_USEC=%llu",
	    (unsigned long long)ts.tv_sec * 1000000 + (unsigned long long)ts.tv_nsec / 1000);
}

void
notify_stopping(struct notify *n, uint32_t stop_ms)
{
	if (!n->enabled)
		return;
	(void)sd_notifyf(
	    0, "STOPPING=1\nEXTEND_TIMEOUT_USEC=%llu", ((unsigned long long)stop_ms + STOP_MARGIN_MS) * 1000);
	n->status_at_ns = INT64_MIN;
}

void
notify_successor(struct notify *n, uint32_t pid)
{
	if (n->enabled)
		(void)sd_notifyf(0, "MAINPID=%u", (unsigned)pid);
	n->enabled = false;
}

void
notify_unstore(void)
{
	(void)sd_notify(0, "FDSTOREREMOVE=1\nFDNAME=" NOTIFY_FDNAME);
}

void
notify_store(const struct lsock_list *list)
{
	int fds[STORE_BATCH];

	notify_unstore();
	for (unsigned i = 0; i < list->cnt;) {
		unsigned n = 0;

		for (; n < STORE_BATCH && i < list->cnt; i++)
			if (!list->v[i].unit)
				fds[n++] = list->v[i].fd;
		if (n > 0)
			(void)sd_pid_notify_with_fds(0, 0, "FDSTORE=1\nFDNAME=" NOTIFY_FDNAME, fds, n);
	}
}

bool
notify_watchdog_due(const struct notify *n, int64_t now_ns)
{
	return n->enabled && n->watchdog_ns != 0 && now_ns >= n->watchdog_at_ns;
}

int64_t
notify_turn(struct notify *n, int64_t now_ns, void (*describe)(void *arg, char *buf, size_t cap), void *arg)
{
	if (!n->enabled)
		return INT64_MAX;
	if (now_ns >= n->status_at_ns) {
		char status[NOTIFY_STATUS_MAX] = "";

		describe(arg, status, sizeof(status));
		for (char *p = status; *p != '\0'; p++)
			if (*p == '\n')
				*p = ' ';
		if (strcmp(status, n->status) != 0)
			(void)sd_notifyf(0, "STATUS=%s", status);
		strcpy(n->status, status);
		n->status_at_ns = now_ns + STATUS_INTERVAL_NS;
	}
	if (n->watchdog_ns == 0)
		return n->status_at_ns;
	if (notify_watchdog_due(n, now_ns)) {
		(void)sd_notify(0, "WATCHDOG=1");
		n->watchdog_at_ns = now_ns + n->watchdog_ns;
	}
	return min_i64(n->watchdog_at_ns, n->status_at_ns);
}
