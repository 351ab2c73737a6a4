/*
 * The event loop: the only file that knows libevent. One epoll descriptor
 * watches all sockets edge-triggered (read, write, urgent, hang-up, error),
 * paused or not, so that a reset is never missed and pausing costs no system
 * call; libevent runs the signals.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/epoll.h>

#include "daemon/loop/spin.h"

struct loop;

enum {
	LOOP_READ = EPOLLIN,
	LOOP_WRITE = EPOLLOUT,
	LOOP_URGENT = EPOLLPRI,
	LOOP_RDHUP = EPOLLRDHUP,
	LOOP_HUP = EPOLLHUP,
	LOOP_ERR = EPOLLERR,
};

/* A watched descriptor; embedded in its owner. */
struct loop_io {
	int fd;
	void (*cb)(struct loop_io *, unsigned events);
};

struct loop *loop_new(void);
void loop_free(struct loop *);

/* Edge-triggered for everything at once: 0 or -errno. */
int loop_add(struct loop *, struct loop_io *);
/* Before close(fd); no callback comes after this, even one already pending in this turn. */
void loop_del(struct loop *, struct loop_io *);

/* The callback runs in the loop. From here on the signal is blocked in this thread, and in threads that it makes: to be called
 * before any is made, or those would take it. */
int loop_signal(struct loop *, int signo, void (*cb)(void *arg), void *arg);

/* Each turn: callbacks of ready descriptors and signals, then every turn function in the order added. A turn
 * function returns when it wants to run again at the latest (INT64_MIN: at once, INT64_MAX: never). */
int loop_add_turn(struct loop *, int64_t (*fn)(void *arg, int64_t now_ns), void *arg);
/* As long as a turn function with this arg is there, fn gets the time of each turn before any callback of the turn. */
void loop_set_clock(struct loop *, void (*fn)(void *arg, int64_t now_ns), void *arg);
/* Neither the function nor its clock is called again. May be called by a turn function. */
void loop_del_turn(struct loop *, int64_t (*fn)(void *arg, int64_t now_ns), void *arg);

/* Asks for another turn at once, for work that a turn function made for one before it. */
void loop_again(struct loop *);

/* How long a wait may look for events before it sleeps, by the rules of loop/spin.h; 0, the default: not at all. */
void loop_set_spin(struct loop *, int64_t max_ns);
const struct spin_counters *loop_spin_counters(const struct loop *);

/* Monotonic time without the spells in which the thread stood still, read once per turn. Each loop has its own. */
int64_t loop_now(const struct loop *);
/* How long the thread has stood still so far, which that time leaves out. */
int64_t loop_stalled(const struct loop *);
/* Runs until loop_stop; 0 or -errno. */
int loop_run(struct loop *);
void loop_stop(struct loop *);
