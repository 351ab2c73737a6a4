/*
 * Notifications of systemd (sd_notify(3)): ready, reloading, stopping, a status
 * line, and that the loop still turns (watchdog). Nothing is sent when the daemon
 * was not started by systemd. Owner: smcrd.c.
 *
 * The library's functions wait while systemd's socket is full, and the main loop may not. So these send by themselves, and what
 * finds no room is kept, in its order, and sent again at the next turns; the last few are enough for systemd to know the state.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/net/listen_socket.h"

#define NOTIFY_STATUS_MAX 256
#define NOTIFY_TEXT_MAX 80
#define NOTIFY_KEPT 8
#define NOTIFY_AGAIN_NS (100 * 1000000LL)
#define NOTIFY_END_MS 2000           /* how long the end of the process waits for room */
#define NOTIFY_FDNAME "smcrd-listen" /* of listening sockets in systemd's store */

struct notify {
	bool enabled;        /* somebody listens: a status is worth making */
	int64_t watchdog_ns; /* half of what systemd waits; 0 = no watchdog */
	int64_t watchdog_at_ns;
	int64_t status_at_ns;           /* not sent again before */
	char status[NOTIFY_STATUS_MAX]; /* as sent last */
	/* What found no room, the oldest first. */
	char kept[NOTIFY_KEPT][NOTIFY_TEXT_MAX];
	unsigned kept_cnt;
	bool store_again; /* nor did all of the sockets that are to be stored */
	int64_t again_ns; /* when the next attempt is due */
};

void notify_init(struct notify *, int64_t now_ns);
/* After the start and after each reload; the status follows at once. */
void notify_ready(struct notify *);
/* Before the new configuration is loaded; notify_ready ends it, whether that worked or not. */
void notify_reloading(struct notify *);
/* The end may take up to stop_ms from now; the status follows at once. */
void notify_stopping(struct notify *, uint32_t stop_ms);

/* Another process is the service's from here on; this one tells nothing more. */
void notify_successor(struct notify *, uint32_t pid);
/* Systemd keeps these for the next process, in place of what it has had of us; those of socket units it has anyway. */
void notify_store(struct notify *, const struct listen_socket_list *);

/* Systemd keeps nothing from here on. */
void notify_unstore(struct notify *);

/* notify_store found no room: it is to be called again now. */
bool notify_store_due(const struct notify *, int64_t now_ns);

/* The next notify_turn gives the sign of life. */
bool notify_watchdog_due(const struct notify *, int64_t now_ns);
/* Each turn of the loop: the watchdog's sign of life and, every few seconds, the status if it changed.
 * Returns when it wants to be called again at the latest. */
int64_t notify_turn(struct notify *, int64_t now_ns, void (*describe)(void *arg, char *buf, size_t cap), void *arg);

/* The process ends: what is kept is sent, for which this waits up to NOTIFY_END_MS. No loop may run any more. */
void notify_end(struct notify *);
