/* Notifications to systemd (sd_notify(3)), if it started the daemon: ready, reloading, stopping, a status line, and the
 * watchdog of the loop. The library's functions block while systemd's socket is full, and the main loop must not. So
 * these send by themselves; texts that the socket does not take are kept in order, and sent again at the next turns.
 * The last few are enough for systemd to know the state. Owner: smcrd.c. */
#pragma once

#include "daemon/net/listen_socket.h"

#define NOTIFY_STATUS_MAX 256
#define NOTIFY_TEXT_MAX 80
#define NOTIFY_KEPT 8
#define NOTIFY_AGAIN_NS (100 * 1000000LL)
#define NOTIFY_END_MS 2000           /* how long the end of the process waits for systemd's socket */
#define NOTIFY_FDNAME "smcrd-listen" /* of listening sockets in systemd's store */

struct notify {
	bool enabled;        /* systemd listens: a status is worth making */
	int64_t watchdog_ns; /* half of what systemd waits; 0 = no watchdog */
	int64_t watchdog_at_ns;
	int64_t status_at_ns;           /* not sent again before */
	char status[NOTIFY_STATUS_MAX]; /* as sent last */
	/* Texts to send again, the oldest first. */
	char kept[NOTIFY_KEPT][NOTIFY_TEXT_MAX];
	unsigned kept_cnt;
	bool store_again; /* not all sockets could be stored */
	bool barrier;     /* a successor was named: the end waits until systemd knows */
	int64_t again_ns; /* when the next attempt is due */
};

void notify_init(struct notify *, int64_t now_ns);
/* After the start and after each reload; the status follows at once. */
void notify_ready(struct notify *);
/* Before the new configuration is loaded; notify_ready ends it, also after a failure. */
void notify_reloading(struct notify *);
/* The end may take up to stop_ms from now; the status follows at once. */
void notify_stopping(struct notify *, uint32_t stop_ms);

/* Another process is the service's main process from here on; this one sends nothing more. */
void notify_successor(struct notify *, uint32_t pid);
/* Stores these at systemd for the next process, in place of those before; it has those of socket units anyway. */
void notify_store(struct notify *, const struct listen_socket_list *);

/* Removes all of them from systemd's store. */
void notify_unstore(struct notify *);

/* True when notify_store has to be called again: systemd's socket was full. */
bool notify_store_due(const struct notify *, int64_t now_ns);

/* True when the next notify_turn sends the watchdog message. */
bool notify_watchdog_due(const struct notify *, int64_t now_ns);
/* In each turn: sends the watchdog message and, every few seconds, a changed status. Returns when to call it again. */
int64_t notify_turn(struct notify *, int64_t now_ns, void (*describe)(void *arg, char *buf, size_t cap), void *arg);

/* The process ends: sends the kept texts, and blocks for up to NOTIFY_END_MS, twice of that if a successor was named. For after
 * the last turn of all loops. */
void notify_end(struct notify *);
