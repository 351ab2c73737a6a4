/* The queue of pending events; see events.h. */
#include "rnic/events.h"

/* Clears and returns the lowest set bit: the first event in the order of the enum. */
static enum rnic_event_type
take_bit(unsigned *bits)
{
	unsigned type = (unsigned)__builtin_ctz(*bits);

	*bits &= *bits - 1;
	return (enum rnic_event_type)type;
}

void
events_init(struct events *e, enum rnic_port_state port)
{
	*e = (struct events){ .port = port };
	list_init(&e->qps);
}

void
qp_events_init(struct qp_events *q, struct rnic_qp *qp)
{
	*q = (struct qp_events){ .qp = qp };
	list_init(&q->node);
}

void
events_add(struct events *e, struct qp_events *q, enum rnic_event_type type)
{
	q->bits |= 1u << type;
	if (list_empty(&q->node))
		list_push(&e->qps, &q->node);
}

void
events_drop(struct qp_events *q)
{
	q->bits = 0;
	list_remove(&q->node);
}

bool
events_set_port(struct events *e, enum rnic_port_state to)
{
	if (e->port == to)
		return false;
	e->port = to;
	if (to == RNIC_PORT_DOWN)
		e->port_bits = 1u << RNIC_EV_PORT_DOWN;
	else
		e->port_bits |= 1u << RNIC_EV_PORT_UP;
	return true;
}

void
events_set_gone(struct events *e)
{
	e->port = RNIC_PORT_DOWN;
	e->port_bits = 1u << RNIC_EV_DEV_GONE;
}

bool
events_pending(const struct events *e)
{
	return e->port_bits != 0 || e->trouble != NULL || !list_empty(&e->qps);
}

bool
events_poll(struct events *e, struct rnic_event *out)
{
	if (e->port_bits != 0) {
		*out = (struct rnic_event){ .type = take_bit(&e->port_bits) };
		return true;
	}
	if (e->trouble != NULL) {
		*out = (struct rnic_event){ .type = RNIC_EV_TROUBLE, .why = e->trouble };
		e->trouble = NULL;
		return true;
	}
	struct qp_events *q = LIST_POP(struct qp_events, &e->qps, node);
	if (q == NULL)
		return false;
	*out = (struct rnic_event){ .type = take_bit(&q->bits), .qp = q->qp, .ctx = q->qp->ctx };
	if (out->type == RNIC_EV_QP_ERROR || out->type == RNIC_EV_CONNECT_FAILED) {
		out->why = q->why;
		out->silent = q->silent;
	}
	if (q->bits != 0)
		list_push(&e->qps, &q->node);
	return true;
}
