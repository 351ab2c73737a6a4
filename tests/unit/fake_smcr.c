/* The engine's stand-in; see fake_smcr.h. */
#include "fake_smcr.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>

#include "base/addr.h"
#include "base/list.h"
#include "rnic/siw/siw.h"
#include "smcr/smcr.h"
#include "smcr/proof.h"

/* Much of the engine is of no interest here. */
#pragma GCC diagnostic ignored "-Wunused-parameter"

#define MS 1000000LL
#define NONE INT64_MAX
#define RING_SIZE (64u * 1024)

struct fake_knobs fake;
struct fake_seen fake_seen;

/* One direction of one connection: positions in bytes since its start. */
struct stream {
	uint8_t *ring;
	uint64_t head;            /* committed by the writer */
	uint64_t sent;            /* flushed: the reader sees it */
	uint64_t tail;            /* consumed by the reader */
	uint64_t urgent;          /* one past an urgent byte, 0 = none */
	bool done, done_sent;     /* D */
	bool closed, closed_sent; /* C */
	bool full;                /* the writer waits for room */
};

enum step {
	WAIT_TURN, /* server: to be admitted */
	WAIT_MSG,
	OPEN,
	LATE, /* fallen back: what comes may be a Decline */
	OVER, /* closed or fallen back */
};

struct smcr_conn {
	struct list_node node;
	struct list_node ev_node;
	struct smcr *eng;
	struct smcr_open o;
	uint32_t id;
	enum step step;
	bool prewarm, released, prewarmed_by_peer, resets;
	uint8_t server;
	unsigned events;
	uint8_t in[FAKE_MSG_LEN], out[4 * FAKE_MSG_LEN];
	size_t in_len, out_len, left_len;
	struct smcr_conn *peer;
	uint32_t peer_id;
	struct stream tx;
	struct smcr_diag diag;
	enum smcr_reason reason;
	int64_t deadline; /* CLC, or grace after FIN */
	bool fin_grace;
};

struct smcr {
	struct smcr_config cfg;
	struct list_node conns;
	struct list_node events;
	uint32_t next_id;
	int64_t now_ns;
};

static struct smcr *the_engine;

void
fake_encode(uint8_t msg[FAKE_MSG_LEN], enum fake_msg type, uint8_t flags, uint32_t value)
{
	memset(msg, 0, FAKE_MSG_LEN);
	memcpy(msg, "FAKE", 4);
	msg[4] = (uint8_t)type;
	msg[5] = flags;
	memcpy(msg + 8, &value, 4);
}

void
smcr_config_init(struct smcr_config *cfg)
{
	*cfg = (struct smcr_config){ .conns_max = 100000, .clc_ms = 30000, .fin_grace_ms = 30000 };
}

struct smcr *
smcr_new(const struct smcr_config *cfg, struct rng *rng, int64_t now_ns)
{
	struct smcr *eng = calloc(1, sizeof(*eng));

	assert(the_engine == NULL);
	eng->cfg = fake_seen.cfg = *cfg;
	eng->now_ns = now_ns;
	eng->next_id = 1;
	list_init(&eng->conns);
	list_init(&eng->events);
	return the_engine = eng;
}

static void
conn_free(struct smcr_conn *c)
{
	if (c->peer != NULL)
		c->peer->peer = NULL;
	list_remove(&c->node);
	list_remove(&c->ev_node);
	free(c->tx.ring);
	free(c);
}

void
smcr_free(struct smcr *eng)
{
	if (eng == NULL)
		return;
	LIST_EACH(struct smcr_conn, c, &eng->conns, node)
		conn_free(c);
	free(eng);
	the_engine = NULL;
}

void
smcr_reconfigure(struct smcr *eng, const struct smcr_config *cfg)
{
	eng->cfg = fake_seen.cfg = *cfg;
}

struct fake_dial_policy fake_dial_policy;

void
smcr_set_dial_policy(
    struct smcr *eng, bool (*may)(void *ctx, const struct rnic_gid *to, const struct smcr_identity *middle), void *ctx)
{
	fake_dial_policy = (struct fake_dial_policy){ may, ctx };
}

bool
smcr_has_peer(const struct smcr *eng, const uint8_t addr[16])
{
	return false;
}

int64_t
smcr_met_ns(const struct smcr *eng, const struct smcr_identity *remote)
{
	return 0;
}

uint64_t
smcr_contacts_over(const struct smcr *eng)
{
	return 0;
}

const struct smcr_config *
smcr_settings(const struct smcr *eng)
{
	static const struct smcr_config settings = { .clc_ms = 6000 };

	return &settings;
}

void
smcr_set_now(struct smcr *eng, int64_t now_ns)
{
}

int
smcr_add_device(struct smcr *eng, struct rnic_dev *dev)
{
	return 0;
}

void
smcr_remove_device(struct smcr *eng, struct rnic_dev *dev)
{
	dev->ops->free(dev);
}

bool
smcr_has_devices(const struct smcr *eng)
{
	return fake.device_turns > 0;
}

static void
raise_event(struct smcr_conn *c, unsigned events)
{
	if (c->released)
		return;
	c->events |= events;
	if (list_empty(&c->ev_node))
		list_push(&c->eng->events, &c->ev_node);
}

static void
end(struct smcr_conn *c, enum smcr_reason reason)
{
	if (c->step == OVER)
		return;
	c->step = OVER;
	c->reason = reason;
	c->deadline = NONE;
	raise_event(c, SMCR_EV_CLOSED);
}

static void
send_msg(struct smcr_conn *c, enum fake_msg type, uint8_t flags, uint32_t value)
{
	assert(c->out_len + FAKE_MSG_LEN <= sizeof(c->out));
	fake_encode(c->out + c->out_len, type, flags, value);
	c->out_len += FAKE_MSG_LEN;
	raise_event(c, SMCR_EV_CLC_OUT);
}

static void
fall_back(struct smcr_conn *c)
{
	c->step = OVER;
	c->deadline = NONE;
	raise_event(c, SMCR_EV_FALLBACK);
}

/* The knob's Decline, if it applies still. */
static bool
decline(struct smcr_conn *c, uint32_t diag)
{
	if (diag == 0 || (fake.decline_cnt != 0 && fake_seen.declines >= fake.decline_cnt))
		return false;
	fake_seen.declines++;
	c->diag.local = diag;
	c->diag.out_of_sync = fake.out_of_sync;
	send_msg(c, FAKE_DECLINE, fake.out_of_sync ? FAKE_F_SYNC : 0, diag);
	fall_back(c);
	if (fake.late_declines)
		c->step = LATE;
	return true;
}

static void
wait_msg(struct smcr_conn *c)
{
	c->step = WAIT_MSG;
	c->deadline = c->eng->now_ns + c->eng->cfg.clc_ms * MS;
	raise_event(c, SMCR_EV_CLC_WANT);
}

struct smcr_conn *
smcr_open(struct smcr *eng, const struct smcr_open *o, int *err)
{
	struct smcr_conn *c;

	fake_seen.opens++;
	if (fake.open_fails) {
		*err = -EMFILE;
		return NULL;
	}
	c = calloc(1, sizeof(*c));
	c->eng = eng;
	c->o = *o;
	c->id = eng->next_id++;
	c->prewarm = o->prewarm;
	fake_seen.insisted = o->insist;
	c->tx.ring = malloc(RING_SIZE);
	list_push(&eng->conns, &c->node);
	list_init(&c->ev_node);
	if (o->role == SMCR_CLIENT) {
		if (decline(c, fake.client_declines))
			return c;
		send_msg(
		    c, FAKE_PROPOSAL, (o->prewarm ? FAKE_F_PREWARM : 0) | (o->ask_server ? FAKE_F_ASKS : 0), c->id);
	}
	wait_msg(c);
	return c;
}

bool
smcr_is_prewarm(const struct smcr_conn *c)
{
	return c->prewarm || c->prewarmed_by_peer;
}

void
smcr_proposed_way(const struct smcr_conn *c, uint8_t *hops, uint32_t *origin)
{
	(void)c;
	*hops = 0;
	*origin = 0;
}

struct clc_tlvs
smcr_proposed_tlvs(const struct smcr_conn *c)
{
	(void)c;
	return (struct clc_tlvs){ .unknown = 0 };
}

void
smcr_take_dest(struct smcr_conn *c, uint32_t ticket)
{
	(void)c;
	(void)ticket;
}

void
smcr_refuse_dest(struct smcr_conn *c)
{
	(void)c;
}

bool
smcr_dest_is_used(const struct smcr_conn *c)
{
	(void)c;
	return false;
}

bool
smcr_dest_is_refused(const struct smcr_conn *c)
{
	(void)c;
	return false;
}

bool
smcr_client_is_used(const struct smcr_conn *c)
{
	(void)c;
	return false;
}

uint8_t
smcr_test_link(struct smcr *eng, uint32_t group_id)
{
	fake_seen.tests++;
	return fake.no_link ? 0 : 1;
}

int64_t
smcr_held_off_ns(const struct smcr *eng, const char *key)
{
	return fake.held_off_ns;
}

void
smcr_end_hold_off(struct smcr *eng, const char *key)
{
	fake_seen.hold_offs_ended++;
}

void *
smcr_app(const struct smcr_conn *c)
{
	return c->o.app;
}

size_t
smcr_clc_want(const struct smcr_conn *c)
{
	return c->step == WAIT_MSG || c->step == LATE ? FAKE_MSG_LEN - c->in_len : 0;
}

size_t
smcr_clc_leftover(struct smcr_conn *c, void *buf, size_t cap)
{
	size_t n = c->left_len;

	assert(n <= cap);
	memcpy(buf, c->in, n);
	c->left_len = 0;
	return n;
}

size_t
smcr_clc_output(struct smcr_conn *c, void *buf, size_t cap)
{
	size_t n = c->out_len < cap ? c->out_len : cap;

	memcpy(buf, c->out, n);
	memmove(c->out, c->out + n, c->out_len - n);
	c->out_len -= n;
	return n;
}

static struct smcr_conn *
find(struct smcr *eng, uint32_t id)
{
	LIST_EACH(struct smcr_conn, c, &eng->conns, node)
		if (c->id == id)
			return c;
	return NULL;
}

static void
establish(struct smcr_conn *c)
{
	c->deadline = NONE;
	if (c->prewarm || c->prewarmed_by_peer) {
		end(c, SMCR_OK);
		return;
	}
	c->peer = find(c->eng, c->peer_id);
	c->step = OPEN;
	raise_event(c, SMCR_EV_ESTABLISHED);
}

static void
message(struct smcr_conn *c)
{
	uint32_t value;

	memcpy(&value, c->in + 8, 4);
	c->in_len = 0;
	if (c->in[4] == FAKE_DECLINE) {
		c->diag.peer = value;
		c->diag.out_of_sync = c->in[5] & FAKE_F_SYNC;
		fall_back(c);
	} else if (c->o.role == SMCR_SERVER && c->in[4] == FAKE_PROPOSAL) {
		c->peer_id = value;
		c->prewarmed_by_peer = c->in[5] & FAKE_F_PREWARM;
		if (decline(c, fake.server_declines))
			return;
		c->step = WAIT_TURN;
		c->deadline = NONE;
		if (c->prewarmed_by_peer && (c->in[5] & FAKE_F_ASKS) == 0)
			smcr_admit(c);
		else
			raise_event(c, SMCR_EV_PROPOSAL);
	} else if (c->o.role == SMCR_SERVER && c->in[4] == FAKE_CONFIRM) {
		establish(c);
	} else if (c->o.role == SMCR_CLIENT && c->in[4] == FAKE_ACCEPT) {
		c->peer_id = value;
		c->server = c->in[5];
		send_msg(c, FAKE_CONFIRM, 0, c->id);
		establish(c);
	} else {
		end(c, SMCR_R_PROTOCOL);
	}
}

/* What came is a Decline, or data. */
static void
late_is_over(struct smcr_conn *c, bool declined)
{
	if (declined)
		memcpy(&c->diag.peer, c->in + 8, 4);
	c->left_len = declined ? 0 : c->in_len;
	c->step = OVER;
	raise_event(c, SMCR_EV_CLC_WANT);
}

void
smcr_clc_input(struct smcr_conn *c, const void *buf, size_t len)
{
	assert(len <= smcr_clc_want(c));
	memcpy(c->in + c->in_len, buf, len);
	c->in_len += len;
	size_t cmp = c->in_len < 4 ? c->in_len : 4;
	if (c->step == LATE && (memcmp(c->in, "FAKE", cmp) != 0 || c->in_len == FAKE_MSG_LEN))
		late_is_over(c, c->in_len == FAKE_MSG_LEN);
	else if (memcmp(c->in, "FAKE", cmp) != 0)
		end(c, SMCR_R_PROTOCOL);
	else if (c->in_len == FAKE_MSG_LEN)
		message(c);
}

void
smcr_admit(struct smcr_conn *c)
{
	if (c->step != WAIT_TURN)
		return;
	send_msg(c, FAKE_ACCEPT, c->server, c->id);
	wait_msg(c);
}

void
smcr_admit_asking(struct smcr_conn *c, enum clc_server server)
{
	c->server = (uint8_t)server;
	smcr_admit(c);
}

unsigned
smcr_server(const struct smcr_conn *c)
{
	return c->server;
}

void
smcr_fallback(const struct smcr_conn *c, struct smcr_diag *d)
{
	*d = c->diag;
}

static size_t
pieces(const struct stream *s, uint64_t from, size_t len, struct iovec iov[2])
{
	size_t at = from % RING_SIZE, first = RING_SIZE - at < len ? RING_SIZE - at : len;

	iov[0] = (struct iovec){ s->ring + at, first };
	iov[1] = (struct iovec){ s->ring, len - first };
	return len;
}

size_t
smcr_tx_space(struct smcr_conn *c, struct iovec iov[2])
{
	if (c->step != OPEN || c->tx.done || c->resets)
		return 0;
	size_t room = RING_SIZE - (size_t)(c->tx.head - c->tx.tail);
	/* One urgent byte at a time. */
	if (c->tx.urgent > c->tx.tail)
		room = 0;
	c->tx.full = room == 0;
	return pieces(&c->tx, c->tx.head, room, iov);
}

void
smcr_tx_commit(struct smcr_conn *c, size_t len, bool urgent)
{
	assert(!urgent || len == 1);
	c->tx.head += len;
	if (urgent)
		c->tx.urgent = c->tx.head;
}

static struct stream *
rx(const struct smcr_conn *c)
{
	return c->peer != NULL ? &c->peer->tx : NULL;
}

size_t
smcr_rx_data(struct smcr_conn *c, struct iovec iov[2], bool *urgent)
{
	struct stream *s = rx(c);

	*urgent = false;
	if (s == NULL || (c->step != OPEN && c->reason != SMCR_R_PEER_ABORT))
		return 0;
	size_t len = (size_t)(s->sent - s->tail);
	if (s->urgent > s->tail && s->urgent <= s->sent) {
		len = (size_t)(s->urgent - 1 - s->tail);
		if (len == 0) {
			*urgent = true;
			len = 1;
		}
	}
	return pieces(s, s->tail, len, iov);
}

void
smcr_rx_consume(struct smcr_conn *c, size_t len)
{
	struct stream *s = rx(c);

	s->tail += len;
	assert(s->tail <= s->sent);
	if (s->full && len > 0) {
		s->full = false;
		raise_event(c->peer, SMCR_EV_WRITABLE);
	}
}

bool
smcr_rx_eof(const struct smcr_conn *c)
{
	const struct stream *s = rx(c);

	return s != NULL && (s->done_sent || s->closed_sent) && s->tail == s->head;
}

void
smcr_shutdown_wr(struct smcr_conn *c)
{
	c->tx.done = true;
}

void
smcr_close(struct smcr_conn *c)
{
	fake_seen.closes++;
	if (rx(c) != NULL && rx(c)->sent != rx(c)->tail) {
		smcr_abort(c, SMCR_R_APP_RESET);
		return;
	}
	c->tx.done = c->tx.closed = true;
}

const char *
smcr_reason_str(enum smcr_reason r)
{
	return r == SMCR_OK ? "ok" : r == SMCR_R_PROTOCOL ? "protocol" : "some reason";
}

void
smcr_abort(struct smcr_conn *c, enum smcr_reason reason)
{
	fake_seen.aborts++;
	if (c->step == OVER || c->step == LATE)
		return;
	if (c->peer != NULL)
		end(c->peer, SMCR_R_PEER_ABORT);
	end(c, reason);
}

/* A goes with the next flush, behind what was committed. */
void
smcr_reset(struct smcr_conn *c)
{
	c->resets = true;
}

enum smcr_reason
smcr_closed(const struct smcr_conn *c, const char **detail)
{
	if (detail != NULL)
		*detail = "";
	return c->reason;
}

/* One group serves all: a host of Linux's. */
#define FAKE_GROUP 7

void
smcr_conn_info(const struct smcr_conn *c, struct smcr_conn_info *info)
{
	*info = (struct smcr_conn_info){ .id = c->id, .group_id = FAKE_GROUP };
}

uint32_t
smcr_conn_group(const struct smcr_conn *c)
{
	(void)c;
	return FAKE_GROUP;
}

int64_t
smcr_rtt_ns(const struct smcr *eng, uint32_t group)
{
	(void)eng;
	return group == 0 ? fake.rtt_ns : fake.rtt_ns / 2;
}

void
smcr_set_proofs(struct smcr *eng, void (*hold)(void *proof, bool on))
{
	(void)eng;
	(void)hold;
}

void *
smcr_proof(const struct smcr_conn *c)
{
	(void)c;
	return NULL;
}

bool
smcr_end_group(struct smcr *eng, uint32_t group_id, const char *why)
{
	(void)eng;
	(void)group_id;
	(void)why;
	return false;
}

uint16_t
smcr_suite(const struct smcr_conn *c)
{
	(void)c;
	return 0;
}

bool
smcr_in_tls(const struct smcr_conn *c)
{
	(void)c;
	return false;
}

bool
smcr_group_next(const struct smcr *eng, uint32_t *pos, struct smcr_group_info *info)
{
	(void)eng;
	*info = (struct smcr_group_info){ .id = FAKE_GROUP,
		.peer = { .version = 2,
		    .release = 1,
		    .foreign = true,
		    .eid = "FAKE.EID",
		    .os = CLC_OS_LINUX,
		    .host = "fake" } };
	return (*pos)++ == 0;
}

bool
smcr_link_next(const struct smcr *eng, uint32_t *pos, struct smcr_link_info *info)
{
	(void)eng;
	*info = (struct smcr_link_info){ .group_id = FAKE_GROUP,
		.number = 1,
		.is_active = !fake.link_dies,
		.is_tested = fake.test_turns > 0,
		.rtt_ns = MS };
	fake.test_turns -= fake.test_turns > 0;
	return (*pos)++ == 0;
}

bool
smcr_may_reset_middle(const struct smcr_conn *c)
{
	return c->step == OPEN;
}

bool
smcr_peer_is_there(const struct smcr_conn *c)
{
	(void)c;
	return true;
}

void
smcr_tcp_event(struct smcr_conn *c, enum smcr_tcp_event ev)
{
	if (ev == SMCR_TCP_RST && c->step == OPEN)
		return; /* the link answers */
	if (ev == SMCR_TCP_RST) {
		if (c->peer != NULL)
			end(c->peer, SMCR_R_PEER_ABORT);
		end(c, SMCR_R_TCP_RESET);
		return;
	}
	if (c->step == LATE) {
		late_is_over(c, false);
		return;
	}
	if (c->step != OPEN) {
		end(c, SMCR_R_TCP_FIN);
		return;
	}
	c->fin_grace = true;
	c->deadline = c->eng->now_ns + c->eng->cfg.fin_grace_ms * MS;
}

uint32_t
smcr_elem_need(const struct smcr_conn *c)
{
	(void)c;
	return 0;
}

void
smcr_release(struct smcr_conn *c)
{
	if (c->step == OPEN)
		smcr_abort(c, SMCR_R_APP_RESET);
	list_remove(&c->ev_node);
	c->released = true;
}

void
smcr_stood_still(struct smcr *eng, int64_t total_ns)
{
	(void)eng;
	(void)total_ns;
}

void
smcr_poll(struct smcr *eng, int64_t now_ns)
{
	eng->now_ns = now_ns;
	fake.device_turns -= fake.device_turns > 0;
	LIST_EACH(struct smcr_conn, c, &eng->conns, node) {
		if (c->step == OVER || c->deadline > now_ns)
			continue;
		if (c->fin_grace && c->peer != NULL)
			end(c->peer, SMCR_R_PEER_ABORT);
		end(c, c->fin_grace ? SMCR_R_TCP_FIN : SMCR_R_CLC_TIMEOUT);
	}
}

struct smcr_conn *
smcr_next_event(struct smcr *eng, unsigned *events)
{
	struct smcr_conn *c = LIST_POP(struct smcr_conn, &eng->events, ev_node);

	if (c == NULL)
		return NULL;
	*events = c->events;
	c->events = 0;
	return c;
}

static void
flush_conn(struct smcr_conn *c)
{
	struct stream *s = &c->tx;
	bool news = s->sent != s->head || s->done != s->done_sent || s->closed != s->closed_sent;

	if (c->step != OPEN || c->peer == NULL)
		return;
	s->sent = s->head;
	s->done_sent = s->done;
	s->closed_sent = s->closed;
	if (news)
		raise_event(c->peer, SMCR_EV_READABLE);
	if (c->resets) {
		smcr_abort(c, SMCR_R_APP_RESET);
		return;
	}
	if (s->closed_sent && c->peer->tx.closed_sent) {
		end(c->peer, SMCR_OK);
		end(c, SMCR_OK);
	}
}

bool
smcr_flush(struct smcr *eng)
{
	LIST_EACH(struct smcr_conn, c, &eng->conns, node) {
		flush_conn(c);
		if (c->released)
			conn_free(c);
	}
	return !list_empty(&eng->events);
}

int64_t
smcr_deadline(const struct smcr *eng)
{
	int64_t at = fake.device_turns > 0 ? INT64_MIN : NONE;

	LIST_EACH(struct smcr_conn, c, &eng->conns, node)
		if (c->step != OVER && c->deadline < at)
			at = c->deadline;
	return at;
}

void
smcr_drain(struct smcr *eng, bool on)
{
}

struct smcr_retried
smcr_retry(struct smcr *eng, const uint8_t addr[16], const char *key)
{
	snprintf(fake_seen.retried, sizeof(fake_seen.retried), "%s", key != NULL ? key : "*");
	return (struct smcr_retried){ .peers = 1 };
}

bool
smcr_take_device_changes(struct smcr *eng)
{
	return false;
}

bool
smcr_device_gone(const struct smcr *eng, const struct rnic_dev *dev)
{
	return false;
}

bool
smcr_idle(const struct smcr *eng)
{
	return !fake.busy;
}

void
smcr_set_networks(struct smcr *eng, const struct smcr_subnet *nets, unsigned cnt)
{
}

void
smcr_log_states(struct smcr *eng, bool on)
{
	(void)eng, (void)on;
}

bool
smcr_next_log(struct smcr *eng, struct smcr_log *l)
{
	return false;
}

/* -- the device -- */

struct fake_dev {
	struct rnic_dev dev;
	struct rnic_info info;
};

static void
dev_query(struct rnic_dev *dev, struct rnic_info *info)
{
	*info = CONTAINER_OF(dev, struct fake_dev, dev)->info;
}

static void
dev_free(struct rnic_dev *dev)
{
	free(CONTAINER_OF(dev, struct fake_dev, dev));
}
static const struct rnic_ops dev_ops = { .query = dev_query, .free = dev_free };

int
siw_listening(const struct rnic_dev *dev)
{
	return -1;
}

void
siw_stop_listening(struct rnic_dev *dev)
{
}

void
siw_set_port_state(struct rnic_dev *dev, enum rnic_port_state to)
{
	CONTAINER_OF(dev, struct fake_dev, dev)->info.port = to;
}

void
siw_config_init(struct siw_config *cfg)
{
	*cfg = (struct siw_config){ 0 };
}

int
siw_open(const struct siw_config *cfg, const struct rnic_loop *loop, struct rng *rng, struct rnic_dev **dev,
    const char **err)
{
	struct fake_dev *me;

	if (strcmp(cfg->name, "broken") == 0 || (strcmp(cfg->name, "late") == 0 && !fake.late_device)) {
		*err = "address";
		return cfg->name[0] == 'l' ? -EADDRNOTAVAIL : -EADDRINUSE;
	}
	me = calloc(1, sizeof(*me));
	me->dev.ops = &dev_ops;
	me->info.port = RNIC_PORT_UP;
	memcpy(me->info.name, cfg->name, sizeof(me->info.name));
	addr_to_v6(&cfg->addr, me->info.gid.b);
	*dev = &me->dev;
	return 0;
}

/* -- over a link: it opens nothing there -- */

struct smcr_conn *
smcr_open_over_link(struct smcr *eng, const struct smcr_open *open)
{
	return NULL;
}

uint32_t
smcr_opened_ticket(const struct smcr_conn *conn)
{
	return 0;
}

struct smcr_scope
smcr_opened_scope(const struct smcr_conn *conn)
{
	return (struct smcr_scope){ { 0 } };
}

struct smcr_identity
smcr_opened_by(const struct smcr_conn *conn)
{
	return (struct smcr_identity){ .scope = 0 };
}

bool
smcr_opened_is_small(struct smcr_conn *conn, const struct smcr_open *want)
{
	return false;
}

void
smcr_set_app(struct smcr_conn *conn, void *app)
{
}
