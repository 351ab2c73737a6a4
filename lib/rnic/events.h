/*
 * The events of a device that wait to be polled: its queue pairs', its port's
 * and its trouble. What rnic_ops.poll_event hands out, in one order for all
 * devices. Internal to lib/rnic.
 */
#pragma once

#include "base/list.h"
#include "rnic/rnic.h"

/* Of a device. */
struct events {
	struct list_node qps;      /* struct qp_events with something in it, oldest first */
	unsigned port_bits;        /* DEV_GONE, PORT_DOWN, PORT_UP: bits of enum rnic_event_type */
	enum rnic_port_state port; /* as the user knows it once all events are polled */
	const char *trouble;       /* NULL: none */
};

/* Of a queue pair, which embeds it and drops it before its own end. */
struct qp_events {
	struct list_node node;
	struct rnic_qp *qp;
	unsigned bits;   /* of enum rnic_event_type */
	const char *why; /* goes with CONNECT_FAILED and QP_ERROR */
	bool silent;     /* the same */
};

void events_init(struct events *, enum rnic_port_state);
void qp_events_init(struct qp_events *, struct rnic_qp *);
/* An event of this type is given once, however often it was added before it is polled. */
void events_add(struct events *, struct qp_events *, enum rnic_event_type);
/* Forgets what was not polled. */
void events_drop(struct qp_events *);
/*
 * The port's state. The user hears of each time that the port was down, and last of what it is now: an "up" that was not
 * polled yet is taken back. False: it is in this state already.
 */
bool events_set_port(struct events *, enum rnic_port_state);
/* The card was taken away: nothing about port or card follows. */
void events_set_gone(struct events *);
bool events_pending(const struct events *);
/* The next event into *out: the card's and the port's first, then trouble, then those of queue pairs in turn; the device frees
 * the queue pair of a QP_FREED. False: none. */
bool events_poll(struct events *, struct rnic_event *out);
