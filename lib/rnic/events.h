/* Pending events of a device: of its queue pairs, its port, and device errors. rnic_ops.poll_event returns them in one
 * order for all devices. Internal to lib/rnic. */
#pragma once

#include "base/list.h"
#include "rnic/rnic.h"

struct events {
	struct list_node qps;      /* struct qp_events with pending events, oldest first */
	unsigned port_bits;        /* DEV_GONE, PORT_DOWN, PORT_UP: bits of enum rnic_event_type */
	enum rnic_port_state port; /* as known to the user once all events are polled */
	const char *trouble;       /* NULL: none */
};

/* Embedded in a queue pair, which drops it before its own end. */
struct qp_events {
	struct list_node node;
	struct rnic_qp *qp;
	unsigned bits;   /* of enum rnic_event_type */
	const char *why; /* for CONNECT_FAILED and QP_ERROR */
	bool silent;     /* likewise */
};

void events_init(struct events *, enum rnic_port_state);
void qp_events_init(struct qp_events *, struct rnic_qp *);
/* Repeated adds of one type before it is polled give one event. */
void events_add(struct events *, struct qp_events *, enum rnic_event_type);
void events_drop(struct qp_events *);
/* Each "down" is reported, then the current state: a pending "up" is withdrawn. False: unchanged. */
bool events_set_port(struct events *, enum rnic_port_state);
/* The card was removed: no further port or device event follows. */
void events_set_gone(struct events *);
bool events_pending(const struct events *);
/* The next event in *out: device and port first, then trouble, then queue pairs in turn. False: none. The device frees
 * the queue pair of a QP_FREED. */
bool events_poll(struct events *, struct rnic_event *out);
