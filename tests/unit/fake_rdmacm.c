/* librdmacm for tests; see fake_rdmacm.h. */
#include "fake_rdmacm.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/list.h"
#include "checks.h"
#include "fake_ibverbs.h"
#include "rnic/mpa_pdata.h"

#define IDS 1024

enum id_state { NEW, BOUND, LISTENING, RESOLVED, ROUTED, CONNECTING, ASKED, ACCEPTING, UP, DOWN };

struct fake_id {
	struct rdma_cm_id id; /* first */
	enum id_state state;
	unsigned dev;
	uint16_t port;
	struct sockaddr_in to;
	struct fake_id *peer;
	bool raw;         /* of no program */
	int answer;       /* raw */
	unsigned verdict; /* raw */
	uint32_t qpn;
	unsigned given, acked;
};

struct cm_ev {
	struct rdma_cm_event ev; /* first */
	struct list_node node;
	struct fake_id *of; /* whose it is to acknowledge */
	uint8_t pd[256];
};

struct fake_cm_channel {
	struct rdma_event_channel ch; /* first */
	int wr;
	struct list_node events;
};

struct fake_cm_state fake_cm;

static pthread_mutex_t lock;
static pthread_cond_t go;
static unsigned waiting, gone;
static int go_err;
static struct fake_id *ids[IDS];
static unsigned ids_end; /* no entry from here on has been used */
static struct ibv_context contexts[FAKE_DEVS];
static uint16_t next_port;

void
fake_cm_reset(void)
{
	pthread_mutexattr_t attr;

	pthread_mutexattr_init(&attr);
	pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_RECURSIVE);
	pthread_mutex_init(&lock, &attr);
	pthread_mutexattr_destroy(&attr);
	pthread_cond_init(&go, NULL);
	fake_cm = (struct fake_cm_state){ .ord = 8 };
	waiting = gone = 0;
	memset(ids, 0, sizeof(ids));
	ids_end = 0;
	next_port = 20000;
}

void
fake_cm_check_clean(void)
{
	pthread_mutex_lock(&lock);
	for (unsigned i = 0; i < IDS; i++)
		if (ids[i] != NULL && ids[i]->raw) {
			free(ids[i]);
			ids[i] = NULL;
		}
	ck_assert_int_eq(fake_cm.id_cnt, 0);
	ck_assert_int_eq(fake_cm.channel_cnt, 0);
	pthread_mutex_unlock(&lock);
}

static struct fake_id *
fid(struct rdma_cm_id *id)
{
	return (struct fake_id *)(void *)id;
}

static int
fails(int err)
{
	errno = err;
	return err != 0 ? -1 : 0;
}

static struct fake_id *
new_id(void)
{
	unsigned i = 0;

	while (i < IDS && ids[i] != NULL)
		i++;
	ck_assert_uint_lt(i, IDS);
	ids[i] = fake_alloc(sizeof(*ids[i]));
	ids_end = i < ids_end ? ids_end : i + 1;
	ids[i]->answer = -1;
	return ids[i];
}

static struct cm_ev *
push(struct fake_id *to, enum rdma_cm_event_type type, int status, const void *pd, uint8_t len)
{
	struct fake_cm_channel *ch = (struct fake_cm_channel *)(void *)to->id.channel;
	struct cm_ev *e;

	if (to->raw)
		return NULL;
	e = fake_alloc(sizeof(*e));
	e->ev = (struct rdma_cm_event){ .id = &to->id, .event = type, .status = status };
	e->of = to;
	if (len > 0)
		memcpy(e->pd, pd, len);
	e->ev.param.conn.private_data = len > 0 ? e->pd : NULL;
	e->ev.param.conn.private_data_len = len;
	list_push(&ch->events, &e->node);
	ck_assert_int_eq(write(ch->wr, "", 1), 1);
	return e;
}

/* -- channels -- */

struct rdma_event_channel *
rdma_create_event_channel(void)
{
	struct fake_cm_channel *ch;
	int fds[2];

	if (fails(fake_cm.channel_err) < 0)
		return NULL;
	ch = fake_alloc(sizeof(*ch));
	ck_assert_int_eq(pipe(fds), 0);
	ch->ch.fd = fds[0];
	ch->wr = fds[1];
	list_init(&ch->events);
	fake_cm.channel_cnt++;
	return &ch->ch;
}

void
rdma_destroy_event_channel(struct rdma_event_channel *channel)
{
	struct fake_cm_channel *ch = (struct fake_cm_channel *)(void *)channel;

	pthread_mutex_lock(&lock);
	ck_assert(list_empty(&ch->events));
	for (unsigned i = 0; i < IDS; i++)
		ck_assert_msg(ids[i] == NULL || ids[i]->id.channel != channel, "a channel is destroyed in use");
	close(channel->fd);
	close(ch->wr);
	free(ch);
	fake_cm.channel_cnt--;
	pthread_mutex_unlock(&lock);
}

int
rdma_get_cm_event(struct rdma_event_channel *channel, struct rdma_cm_event **event)
{
	struct fake_cm_channel *ch = (struct fake_cm_channel *)(void *)channel;
	struct cm_ev *e;
	char byte;

	ck_assert_msg(fcntl(channel->fd, F_GETFL) & O_NONBLOCK, "reading events may block");
	pthread_mutex_lock(&lock);
	if (read(channel->fd, &byte, 1) != 1) {
		pthread_mutex_unlock(&lock);
		return -1;
	}
	e = CONTAINER_OF(list_pop(&ch->events), struct cm_ev, node);
	e->of->given++;
	*event = &e->ev;
	pthread_mutex_unlock(&lock);
	return 0;
}

int
rdma_ack_cm_event(struct rdma_cm_event *event)
{
	struct cm_ev *e = (struct cm_ev *)(void *)event;

	pthread_mutex_lock(&lock);
	e->of->acked++;
	memset(e, 0xee, sizeof(*e)); /* who still looks at it sees that */
	free(e);
	pthread_mutex_unlock(&lock);
	return 0;
}

/* -- ids -- */

int
rdma_create_id(struct rdma_event_channel *channel, struct rdma_cm_id **out, void *context, enum rdma_port_space ps)
{
	struct fake_id *f;

	ck_assert_int_eq(ps, RDMA_PS_TCP);
	if (fails(fake_cm.create_err) < 0)
		return -1;
	pthread_mutex_lock(&lock);
	f = new_id();
	f->id.channel = channel;
	f->id.context = context;
	f->id.ps = ps;
	fake_cm.id_cnt++;
	*out = &f->id;
	pthread_mutex_unlock(&lock);
	return 0;
}

static bool
is_pending(const struct fake_id *f)
{
	return f->state == CONNECTING || f->state == ACCEPTING;
}

bool
fake_cm_holds(uint32_t qpn)
{
	bool held = false;

	pthread_mutex_lock(&lock);
	for (unsigned i = 0; i < IDS; i++)
		held = held || (ids[i] != NULL && ids[i]->qpn == qpn && is_pending(ids[i]));
	pthread_mutex_unlock(&lock);
	return held;
}

static void
forget_events(struct fake_id *f)
{
	struct fake_cm_channel *ch = (struct fake_cm_channel *)(void *)f->id.channel;
	char byte;

	LIST_FOREACH(n, &ch->events) {
		struct cm_ev *e = CONTAINER_OF(n, struct cm_ev, node);

		if (e->ev.id != &f->id && e->of != f)
			continue;
		list_remove(n);
		/* A request that nobody read goes with the listener. */
		if (e->ev.event == RDMA_CM_EVENT_CONNECT_REQUEST && e->of == f) {
			for (unsigned i = 0; i < IDS; i++)
				if (ids[i] != NULL && &ids[i]->id == e->ev.id) {
					free(ids[i]);
					ids[i] = NULL;
					fake_cm.id_cnt--;
				}
		}
		free(e);
		ck_assert_int_eq(read(ch->ch.fd, &byte, 1), 1);
	}
}

static void
lose_peer(struct fake_id *f, enum rdma_cm_event_type type)
{
	struct fake_id *p = f->peer;

	if (p == NULL)
		return;
	f->peer = p->peer = NULL;
	if (p->state == DOWN)
		return;
	p->state = DOWN;
	(void)push(p, type, 0, NULL, 0);
}

int
rdma_destroy_id(struct rdma_cm_id *id)
{
	struct fake_id *f = fid(id);

	pthread_mutex_lock(&lock);
	ck_assert_msg(f->given == f->acked, "an id is destroyed with events not acknowledged: this blocks");
	ck_assert_msg(!is_pending(f), "an id is destroyed while it is being connected: this blocks");
	lose_peer(f, f->state == UP ? RDMA_CM_EVENT_DISCONNECTED : RDMA_CM_EVENT_REJECTED);
	forget_events(f);
	for (unsigned i = 0; i < IDS; i++)
		if (ids[i] == f)
			ids[i] = NULL;
	free(f);
	fake_cm.id_cnt--;
	pthread_mutex_unlock(&lock);
	return 0;
}

/* The card that has the address. */
static int
dev_at(const struct sockaddr *sa)
{
	const struct sockaddr_in *sin = (const struct sockaddr_in *)(const void *)sa;
	uint32_t a;

	if (sa->sa_family != AF_INET)
		return -1;
	a = ntohl(sin->sin_addr.s_addr);
	if (a >> 16 != 0x0a00 || (a & 0xff) < 1 || (a & 0xff) > 2 || (a >> 8 & 0xff) >= FAKE_DEVS)
		return -1;
	return (int)(a >> 8 & 0xff);
}

static void
bind_to(struct fake_id *f, int dev)
{
	f->dev = (unsigned)dev;
	contexts[dev].device = &fake.devs[fake_cm.foreign_dev ? (dev + 1) % FAKE_DEVS : dev].dev;
	f->id.verbs = &contexts[dev];
	f->id.port_num = 1;
}

int
rdma_bind_addr(struct rdma_cm_id *id, struct sockaddr *addr)
{
	int dev = dev_at(addr);

	if (fails(fake_cm.bind_err) < 0)
		return -1;
	if (dev < 0)
		return fails(EADDRNOTAVAIL);
	bind_to(fid(id), dev);
	memcpy(&id->route.addr.src_addr, addr, sizeof(struct sockaddr_in));
	fid(id)->state = BOUND;
	return 0;
}

int
rdma_listen(struct rdma_cm_id *id, int backlog)
{
	struct fake_id *f = fid(id);
	struct sockaddr_in *sin = &id->route.addr.src_sin;

	ck_assert_int_gt(backlog, 0);
	ck_assert_int_eq(f->state, BOUND);
	if (fails(fake_cm.listen_err) < 0)
		return -1;
	if (fake_cm.busy_ports > 0) {
		fake_cm.busy_ports--;
		return fails(EADDRINUSE);
	}
	if (sin->sin_port == 0)
		sin->sin_port = htons(next_port++);
	f->port = ntohs(sin->sin_port);
	f->state = LISTENING;
	return 0;
}

__be16
rdma_get_src_port(struct rdma_cm_id *id)
{
	return id->route.addr.src_sin.sin_port;
}

/* -- the active side -- */

int
rdma_resolve_addr(struct rdma_cm_id *id, struct sockaddr *src, struct sockaddr *dst, int timeout_ms)
{
	struct fake_id *f = fid(id);
	int dev = dev_at(src);

	ck_assert_int_gt(timeout_ms, 0);
	if (dev < 0)
		return fails(ENODEV);
	pthread_mutex_lock(&lock);
	bind_to(f, dev);
	memcpy(&f->to, dst, sizeof(f->to));
	f->state = RESOLVED;
	if (fake_cm.addr_event_err != 0)
		(void)push(f, RDMA_CM_EVENT_ADDR_ERROR, -fake_cm.addr_event_err, NULL, 0);
	else if (!fake_cm.hold_addr)
		(void)push(f, RDMA_CM_EVENT_ADDR_RESOLVED, 0, NULL, 0);
	pthread_mutex_unlock(&lock);
	return 0;
}

int
rdma_resolve_route(struct rdma_cm_id *id, int timeout_ms)
{
	struct fake_id *f = fid(id);

	ck_assert_int_gt(timeout_ms, 0);
	ck_assert_int_eq(f->state, RESOLVED);
	if (fails(fake_cm.route_err) < 0)
		return -1;
	pthread_mutex_lock(&lock);
	f->state = ROUTED;
	if (fake_cm.route_event_err != 0)
		(void)push(f, RDMA_CM_EVENT_ROUTE_ERROR, -fake_cm.route_event_err, NULL, 0);
	else
		(void)push(f, RDMA_CM_EVENT_ROUTE_RESOLVED, 0, NULL, 0);
	pthread_mutex_unlock(&lock);
	return 0;
}

static struct fake_id *
listener(int dev, uint16_t port)
{
	for (unsigned i = 0; i < IDS; i++)
		if (ids[i] != NULL && ids[i]->state == LISTENING && (int)ids[i]->dev == dev && ids[i]->port == port)
			return ids[i];
	return NULL;
}

static void
request(struct fake_id *from, struct fake_id *l, const void *pd, uint8_t len)
{
	struct fake_id *f = new_id();
	struct cm_ev *e;

	f->id.channel = l->id.channel;
	f->id.context = l->id.context;
	f->state = ASKED;
	f->peer = from;
	from->peer = f;
	bind_to(f, (int)l->dev);
	fake_cm.id_cnt++;
	e = push(l, RDMA_CM_EVENT_CONNECT_REQUEST, 0, pd, len);
	f->id.route.addr.dst_sin = (struct sockaddr_in){
		.sin_family = AF_INET, .sin_addr.s_addr = htonl(0xc0000209), .sin_port = htons(40009)
	};
	e->ev.id = &f->id;
	e->ev.listen_id = &l->id;
	e->ev.param.conn.initiator_depth = fake_cm.ord;
	e->ev.param.conn.responder_resources = 1;
}

static void
check_param(const struct rdma_conn_param *p, unsigned peer_ird)
{
	ck_assert_uint_eq(p->responder_resources, 2);
	ck_assert_uint_eq(p->initiator_depth, peer_ird == 1 ? 1 : 2);
	ck_assert_uint_eq(p->private_data_len, MPA_PDATA_LEN);
}

int
rdma_connect(struct rdma_cm_id *id, struct rdma_conn_param *p)
{
	struct fake_id *f = fid(id), *l;
	unsigned before;
	int err = 0;

	pthread_mutex_lock(&lock);
	ck_assert_int_eq(f->state, ROUTED);
	ck_assert_ptr_null(id->qp);
	check_param(p, 2);
	f->state = CONNECTING;
	f->qpn = p->qp_num;
	fake_cm.connects++;
	before = gone;
	waiting++;
	while (fake_cm.connect_waits && gone == before)
		pthread_cond_wait(&go, &lock);
	waiting--;
	if (gone != before)
		err = go_err;
	l = listener(dev_at((const struct sockaddr *)&f->to), ntohs(f->to.sin_port));
	if (err != 0) {
		f->state = DOWN;
	} else if (fake_cm.unreachable != 0) {
		f->state = DOWN;
		(void)push(f, RDMA_CM_EVENT_UNREACHABLE, -fake_cm.unreachable, NULL, 0);
	} else if (l == NULL) {
		f->state = DOWN;
		(void)push(f, RDMA_CM_EVENT_REJECTED, -ECONNREFUSED, NULL, 0);
	} else if (!fake_cm.lose_requests) {
		request(f, l, p->private_data, p->private_data_len);
	}
	pthread_mutex_unlock(&lock);
	return fails(err);
}

unsigned
fake_cm_waiting(unsigned n)
{
	unsigned got = 0;

	for (unsigned i = 0; i < 20000; i++) {
		const struct timespec ms = { .tv_nsec = 1000000 };

		pthread_mutex_lock(&lock);
		got = waiting;
		pthread_mutex_unlock(&lock);
		if (got >= n)
			break;
		nanosleep(&ms, NULL);
	}
	return got;
}

void
fake_cm_go(int err)
{
	pthread_mutex_lock(&lock);
	go_err = err;
	gone++;
	pthread_cond_broadcast(&go);
	pthread_mutex_unlock(&lock);
}

/* -- the passive side -- */

static void
spoil(uint8_t pd[MPA_PDATA_LEN], uint8_t *len)
{
	switch (fake_cm.reply_spoilt) {
	case 1:
		pd[0] ^= 1;
		break;
	case 2:
		pd[27] ^= 1;
		break;
	case 3:
		pd[6] = pd[7] = 0;
		break;
	case 4:
		*len = 0;
		break;
	default:
		break;
	}
}

int
rdma_accept(struct rdma_cm_id *id, struct rdma_conn_param *p)
{
	struct fake_id *f = fid(id), *peer;
	uint8_t pd[MPA_PDATA_LEN], len = p->private_data_len;
	struct fake_qp *a, *b = fake_qp_of(p->qp_num);

	ck_assert_ptr_null(id->qp);
	check_param(p, fake_cm.ord);
	if (fails(fake_cm.accept_err) < 0)
		return -1;
	pthread_mutex_lock(&lock);
	peer = f->peer;
	fake_cm.accepts++;
	f->qpn = p->qp_num;
	memcpy(pd, p->private_data, sizeof(pd));
	spoil(pd, &len);
	if (peer == NULL) { /* gone meanwhile */
		f->state = DOWN;
		(void)push(f, RDMA_CM_EVENT_CONNECT_ERROR, -ECONNRESET, NULL, 0);
	} else if (peer->raw) {
		peer->answer = 0;
		f->state = ACCEPTING;
	} else {
		a = fake_qp_of(peer->qpn);
		if (a->qp.state == IBV_QPS_INIT && b->qp.state == IBV_QPS_INIT) {
			fake_join(a, b);
			peer->state = UP;
			f->state = fake_cm.lose_first ? ACCEPTING : UP;
			(void)push(peer, RDMA_CM_EVENT_ESTABLISHED, 0, pd, len);
			if (!fake_cm.lose_first)
				(void)push(f, RDMA_CM_EVENT_ESTABLISHED, 0, NULL, 0);
		} else {
			peer->state = f->state = DOWN;
			peer->peer = f->peer = NULL;
			(void)push(peer, RDMA_CM_EVENT_CONNECT_ERROR, -EINVAL, NULL, 0);
			(void)push(f, RDMA_CM_EVENT_CONNECT_ERROR, -EINVAL, NULL, 0);
		}
	}
	pthread_mutex_unlock(&lock);
	return 0;
}

int
rdma_reject(struct rdma_cm_id *id, const void *pd, uint8_t len)
{
	struct fake_id *f = fid(id), *peer;

	pthread_mutex_lock(&lock);
	peer = f->peer;
	ck_assert_int_eq(len, MPA_PDATA_LEN);
	fake_cm.rejects++;
	f->state = DOWN;
	f->peer = NULL;
	if (peer != NULL) {
		peer->peer = NULL;
		peer->state = DOWN;
		peer->answer = 1;
		peer->verdict = ((const uint8_t *)pd)[5];
		(void)push(peer, RDMA_CM_EVENT_REJECTED, -ECONNREFUSED, pd, len);
	}
	pthread_mutex_unlock(&lock);
	return 0;
}

int
fake_cm_request(unsigned dev, const void *pd, uint8_t len)
{
	struct fake_id *f, *l = NULL;
	int handle = -1;

	pthread_mutex_lock(&lock);
	for (unsigned i = 0; i < IDS; i++)
		if (ids[i] != NULL && ids[i]->state == LISTENING && ids[i]->dev == dev)
			l = ids[i];
	ck_assert_ptr_nonnull(l);
	f = new_id();
	f->raw = true;
	request(f, l, pd, len);
	for (int i = 0; i < IDS; i++)
		if (ids[i] == f)
			handle = i;
	pthread_mutex_unlock(&lock);
	return handle;
}

int
fake_cm_answer(int handle, unsigned *verdict)
{
	*verdict = ids[handle]->verdict;
	return ids[handle]->answer;
}

void
fake_cm_request_close(int handle)
{
	pthread_mutex_lock(&lock);
	lose_peer(ids[handle], RDMA_CM_EVENT_DISCONNECTED);
	pthread_mutex_unlock(&lock);
}

/* -- the end -- */

int
rdma_disconnect(struct rdma_cm_id *id)
{
	const struct fake_qp *qp = fake_qp_of(fid(id)->qpn);

	ck_assert_msg(!is_pending(fid(id)), "disconnecting while it is being connected: this blocks");
	ck_assert_uint_eq(fake_sends_left(qp), 0);
	fake_cm.disconnects++;
	return 0;
}

/* Connections that have lost an end. */
bool
fake_cm_run(void)
{
	bool any = false;

	pthread_mutex_lock(&lock);
	for (unsigned i = 0; i < ids_end; i++) {
		struct fake_id *f = ids[i];
		struct fake_qp *qp, *other;

		if (f == NULL || f->raw || f->state != UP)
			continue;
		qp = fake_qp_of(f->qpn);
		other = f->peer != NULL ? fake_qp_of(f->peer->qpn) : NULL;
		if (qp != NULL && qp->qp.state == IBV_QPS_RTS && other != NULL && other->qp.state == IBV_QPS_RTS)
			continue;
		if (qp != NULL)
			qp->qp.state = IBV_QPS_ERR;
		lose_peer(f, RDMA_CM_EVENT_DISCONNECTED);
		f->state = DOWN;
		(void)push(f, RDMA_CM_EVENT_DISCONNECTED, 0, NULL, 0);
		if (other != NULL)
			other->qp.state = IBV_QPS_ERR;
		any = true;
	}
	pthread_mutex_unlock(&lock);
	return any;
}

void
fake_cm_listen_event(unsigned dev, enum rdma_cm_event_type type)
{
	pthread_mutex_lock(&lock);
	for (unsigned i = 0; i < IDS; i++)
		if (ids[i] != NULL && ids[i]->state == LISTENING && ids[i]->dev == dev)
			(void)push(ids[i], type, 0, NULL, 0);
	pthread_mutex_unlock(&lock);
}

void
fake_cm_event_all(unsigned dev, enum rdma_cm_event_type type)
{
	pthread_mutex_lock(&lock);
	for (unsigned i = 0; i < IDS; i++)
		if (ids[i] != NULL && ids[i]->state != LISTENING && ids[i]->dev == dev && !ids[i]->raw) {
			if (type == RDMA_CM_EVENT_DEVICE_REMOVAL || type == RDMA_CM_EVENT_CONNECT_ERROR)
				ids[i]->state = DOWN;
			(void)push(ids[i], type, 0, NULL, 0);
		}
	pthread_mutex_unlock(&lock);
}
