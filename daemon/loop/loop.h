/* The event loop. One epoll descriptor watches all sockets edge-triggered (read, write,
 * urgent, hang-up, error), paused or not. So no reset is missed, and a pause needs no system call. */
#pragma once

#include <stdbool.h>
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

/* Edge-triggered for all events at once: 0 or -errno. */
int loop_add(struct loop *, struct loop_io *);
/* Before close(fd). No callback follows, not even one already pending in this turn. */
void loop_del(struct loop *, struct loop_io *);

/* The callback runs in the loop. Blocks the signal in this thread and later ones; an earlier one would receive it. */
int loop_signal(struct loop *, int signo, void (*cb)(void *arg), void *arg);

/* Each turn runs the callbacks of ready descriptors and signals, then every turn function in the order added. A turn
 * function returns the latest time of its next call (INT64_MIN: at once, INT64_MAX: never). */
int loop_add_turn(struct loop *, int64_t (*fn)(void *arg, int64_t now_ns), void *arg);
/* While a turn function with this arg exists, fn receives the time of a turn before its first callback. */
void loop_set_clock(struct loop *, void (*fn)(void *arg, int64_t now_ns), void *arg);
/* Neither the function nor its clock is called again. A turn function may call it. */
void loop_del_turn(struct loop *, int64_t (*fn)(void *arg, int64_t now_ns), void *arg);

/* Requests another turn at once, for work that a turn function made for an earlier one. */
void loop_again(struct loop *);

/* How long a wait may poll before it sleeps, by the rules of loop/spin.h; 0 (the default): no polling. */
void loop_set_spin(struct loop *, int64_t max_ns);
const struct spin_counters *loop_spin_counters(const struct loop *);

/* Monotonic time without stalls of the thread, read once per turn. Each loop has its own. */
int64_t loop_now(const struct loop *);
/* Total stalled time of the thread, which loop_now() leaves out. */
int64_t loop_stalled(const struct loop *);
/* Runs until loop_stop; 0 or -errno. */
int loop_run(struct loop *);
void loop_stop(struct loop *);
