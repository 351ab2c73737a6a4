/* See duo.h. */
#include "duo.h"

#include <stdio.h>
#include <string.h>

static const char *
clc_name(const uint8_t *msg)
{
	switch (msg[4]) {
	case CLC_PROPOSAL:
		return "PROPOSAL";
	case CLC_ACCEPT:
		return (msg[7] & 0x08) != 0 ? "ACCEPT first contact" : "ACCEPT";
	case CLC_CONFIRM:
		return "CONFIRM";
	default:
		return (msg[7] & 0x08) != 0 ? "DECLINE out of sync" : "DECLINE";
	}
}

static const char *
llc_name(uint8_t type)
{
	switch (type) {
	case LLC_CONFIRM_LINK:
		return "CONFIRM LINK";
	case LLC_ADD_LINK:
		return "ADD LINK";
	case LLC_ADD_LINK_CONT:
		return "ADD LINK CONTINUATION";
	case LLC_CONFIRM_RKEY_CONT:
		return "CONFIRM RKEY CONTINUATION";
	case LLC_DELETE_LINK:
		return "DELETE LINK";
	case LLC_CONFIRM_RKEY:
		return "CONFIRM RKEY";
	case LLC_DELETE_RKEY:
		return "DELETE RKEY";
	case LLC_TEST_LINK:
		return "TEST LINK";
	default:
		return "other LLC";
	}
}

struct duo_trace {
	struct duo *d;
	unsigned host;
};
static struct duo_trace trace_of[2];

static void
on_trace(void *ctx, const struct smcr_trace *t)
{
	struct duo_trace *dt = ctx;
	struct duo_seen *s;

	if (!t->sent || t->kind == SMCR_TRACE_CDC || dt->d->seen_cnt == DUO_SEEN)
		return;
	s = &dt->d->seen[dt->d->seen_cnt++];
	s->host = dt->host;
	s->kind = t->kind;
	if (t->kind == SMCR_TRACE_CLC)
		snprintf(s->text, sizeof(s->text), "%s", clc_name(t->msg));
	else
		snprintf(
		    s->text, sizeof(s->text), "%s%s", llc_name(t->msg[0]), (t->msg[3] & 0x80) != 0 ? " response" : "");
}

static void
on_breach(void *ctx, const struct rnic_dev *dev, const char *what)
{
	struct duo *d = ctx;

	fprintf(stderr, "# breach on %s: %s\n", rnic_query((struct rnic_dev *)dev).name, what);
	d->breaches++;
}

static enum sim_fate
on_message(void *ctx, const struct sim_msg *msg)
{
	struct duo *d = ctx;

	return d->holds != NULL && d->holds(msg) ? SIM_HOLD : SIM_DELIVER;
}

/* d->transport and d->sim.no_deny are set. */
static void
init(struct duo *d, const bool device[2], void (*change)(struct smcr_config *))
{
	bool no_deny = d->sim.no_deny;
	struct smcr_config cfg;

	sim_config_init(&d->sim);
	d->sim.seed = 1;
	d->sim.ctx = d;
	d->sim.breach = on_breach;
	d->sim.filter = on_message;
	d->sim.no_deny = no_deny;
	d->fab = sim_fabric_new(&d->sim);
	smcr_config_init(&cfg);
	cfg.clc_ms = 6000;
	cfg.llc_ms = 300;
	cfg.confirm_link_ms = 500;
	cfg.add_link_ms = 300;
	cfg.keepalive_ms = 0;
	cfg.sq_depth = cfg.rq_depth = 64;
	if (change != NULL)
		change(&cfg);
	for (unsigned i = 0; i < 2; i++) {
		struct rnic_gid gid = { .b = { [10] = 0xff, 0xff, 10, 0, 0, (uint8_t)(i + 1) } };
		uint8_t mac[6] = { 2, 0, 0, 0, 0, (uint8_t)(i + 1) };

		rng_init_seeded(&d->rng[i], i + 1);
		d->eng[i] = smcr_new(&cfg, &d->rng[i], 0);
		trace_of[i] = (struct duo_trace){ d, i };
		smcr_set_trace(d->eng[i], on_trace, &trace_of[i]);
		if (!device[i])
			continue;
		d->dev[i] = sim_dev_new(d->fab, i == A ? "a" : "b", d->transport[i], &gid, mac);
		ck_assert_int_eq(smcr_add_device(d->eng[i], d->dev[i]), 0);
	}
}

void
duo_init(struct duo *d, bool device_a, bool device_b, void (*change)(struct smcr_config *))
{
	const bool device[2] = { device_a, device_b };

	memset(d, 0, sizeof(*d));
	d->transport[A] = d->transport[B] = RNIC_TRANSPORT_IWARP;
	init(d, device, change);
}

void
duo_init_as(struct duo *d, const enum rnic_transport transport[2], bool no_deny, void (*change)(struct smcr_config *))
{
	const bool device[2] = { true, true };

	memset(d, 0, sizeof(*d));
	memcpy(d->transport, transport, sizeof(d->transport));
	d->sim.no_deny = no_deny;
	init(d, device, change);
}

static struct rnic_dev *
add_device(struct duo *d, unsigned host, bool neighbour)
{
	struct rnic_gid gid = { .b = { [10] = 0xff, 0xff, 10, 0, 0, (uint8_t)(host + 1) } };
	uint8_t mac[6] = { 2, 0, 0, 0, 0, (uint8_t)(host + 1) };
	unsigned k = 0;
	char name[8];

	while (d->more[host][k] != NULL)
		k++;
	gid.b[14] = (uint8_t)(k + 1);
	mac[4] = neighbour ? 0 : gid.b[14];
	snprintf(name, sizeof(name), "%c%u", host == A ? 'a' : 'b', k + 1);
	d->more[host][k] = sim_dev_new(d->fab, name, d->transport[host], &gid, mac);
	ck_assert_int_eq(smcr_add_device(d->eng[host], d->more[host][k]), 0);
	return d->more[host][k];
}

struct rnic_dev *
duo_add_device(struct duo *d, unsigned host)
{
	return add_device(d, host, false);
}

struct rnic_dev *
duo_add_neighbour(struct duo *d, unsigned host)
{
	return add_device(d, host, true);
}

static uint8_t
byte_at(uint64_t pos)
{
	return (uint8_t)(pos * 7 + pos / 251);
}

size_t
duo_write(struct duo_end *e, size_t len)
{
	struct iovec iov[2];
	size_t room = smcr_tx_space(e->conn, iov), n = len < room ? len : room;

	for (size_t i = 0; i < n; i++) {
		uint8_t *p = i < iov[0].iov_len ? (uint8_t *)iov[0].iov_base + i
		                                : (uint8_t *)iov[1].iov_base + (i - iov[0].iov_len);
		*p = byte_at(e->written + i);
	}
	e->written += n;
	smcr_tx_commit(e->conn, n, false);
	return n;
}

size_t
duo_read(struct duo_end *e)
{
	struct iovec iov[2];
	bool urgent;
	size_t n = smcr_rx_data(e->conn, iov, &urgent);

	for (size_t i = 0; i < n; i++) {
		const uint8_t *p = i < iov[0].iov_len ? (const uint8_t *)iov[0].iov_base + i
		                                      : (const uint8_t *)iov[1].iov_base + (i - iov[0].iov_len);
		ck_assert_uint_eq(*p, byte_at(e->read + i));
	}
	e->read += n;
	smcr_rx_consume(e->conn, n);
	return n;
}

void
duo_fini(struct duo *d)
{
	struct sim_live live;

	smcr_free(d->eng[A]);
	smcr_free(d->eng[B]);
	sim_live(d->fab, &live);
	ck_assert_uint_eq(live.qp, 0);
	ck_assert_uint_eq(live.mr, 0);
	ck_assert_uint_eq(live.pd, 0);
	for (unsigned i = 0; i < 2; i++) {
		if (d->dev[i] != NULL)
			d->dev[i]->ops->free(d->dev[i]);
		for (unsigned k = 0; k < DUO_MORE; k++)
			if (d->more[i][k] != NULL)
				d->more[i][k]->ops->free(d->more[i][k]);
	}
	sim_fabric_free(d->fab);
	ck_assert_uint_eq(d->breaches, 0);
}

void
duo_open_one(struct duo *d, struct duo_end *e, enum smcr_role role, bool prewarm)
{
	struct smcr_open open = { .role = role,
		.app = e,
		.elem_size = SMCR_ELEM_MIN,
		.peer_key = "server:1",
		.subnet_cnt = 1,
		.subnet = { { .addr = { 10, 0, 0, 0 }, .prefix_len = 16 } },
		.remote.addr[15] = d->remote };
	int err = 0;

	*e = (struct duo_end){ .host = role == SMCR_CLIENT ? A : B };
	e->conn = prewarm ? smcr_prewarm(d->eng[e->host], &open, &err) : smcr_open(d->eng[e->host], &open, &err);
	ck_assert_ptr_nonnull(e->conn);
}

void
duo_open(struct duo *d, struct duo_end *client, struct duo_end *server)
{
	duo_open_one(d, server, SMCR_SERVER, false);
	duo_open_one(d, client, SMCR_CLIENT, false);
	client->peer = server;
	server->peer = client;
}

void
duo_close(struct duo *d, struct duo_end *e)
{
	(void)d;
	if (e->conn != NULL)
		smcr_release(e->conn);
	e->conn = NULL;
}

void
duo_feed(struct duo_end *e, const void *buf, size_t len)
{
	const uint8_t *p = buf;

	while (len > 0 && e->conn != NULL) {
		size_t n = smcr_clc_want(e->conn);

		if (n == 0)
			return;
		if (n > len)
			n = len;
		smcr_clc_input(e->conn, p, n);
		p += n;
		len -= n;
	}
}

void
duo_feed_msg(struct duo_end *e, const struct clc_msg *msg)
{
	uint8_t buf[512];
	int n = clc_encode(msg, buf, sizeof(buf));

	ck_assert_int_gt(n, 0);
	duo_feed(e, buf, (size_t)n);
}

static void
pass_on(struct duo_end *e)
{
	size_t n;

	if (e->hold || e->peer == NULL || e->peer->conn == NULL || e->out_len == 0)
		return;
	n = smcr_clc_want(e->peer->conn);
	if (n == 0)
		return;
	if (n > e->out_len)
		n = e->out_len;
	smcr_clc_input(e->peer->conn, e->out, n);
	memmove(e->out, e->out + n, e->out_len - n);
	e->out_len -= n;
}

/* And again when the peer's Decline, or data, has come later. */
static void
after_fallback(struct duo_end *e)
{
	smcr_fallback(e->conn, &e->diag);
	e->left_len += smcr_clc_leftover(e->conn, e->left + e->left_len, sizeof(e->left));
}

static void
handle(struct duo_end *e, unsigned ev)
{
	e->events |= ev;
	e->out_len += smcr_clc_output(e->conn, e->out + e->out_len, sizeof(e->out) - e->out_len);
	if ((ev & SMCR_EV_PROPOSAL) != 0 && !e->refuse)
		smcr_admit(e->conn);
	if ((e->events & SMCR_EV_FALLBACK) != 0)
		after_fallback(e);
	if ((ev & SMCR_EV_CLOSED) != 0)
		e->reason = smcr_closed(e->conn, NULL);
}

/* One instant: until nothing more happens. The bound is far above what any test needs. */
static void
settle(struct duo *d)
{
	for (unsigned spin = 0;; spin++) {
		bool more = false;
		unsigned ev;
		struct smcr_conn *c;

		ck_assert_uint_lt(spin, 10000);
		sim_run(d->fab, d->now_ns);
		for (unsigned i = 0; i < 2; i++) {
			smcr_poll(d->eng[i], d->now_ns);
			while ((c = smcr_next_event(d->eng[i], &ev)) != NULL) {
				handle(smcr_app(c), ev);
				more = true;
			}
			for (uint32_t pos = 0; (c = idtable_next(&d->eng[i]->conns, &pos)) != NULL;) {
				struct duo_end *e = smcr_app(c);
				size_t before = e->out_len;

				if (c->released)
					continue;
				pass_on(e);
				more |= before != e->out_len;
			}
			more |= smcr_flush(d->eng[i]);
		}
		if (!more && sim_next(d->fab) > d->now_ns && smcr_deadline(d->eng[A]) > d->now_ns &&
		    smcr_deadline(d->eng[B]) > d->now_ns)
			return;
	}
}

/* To the next thing that happens, not beyond end: false when that is the end. */
static bool
step(struct duo *d, int64_t end)
{
	int64_t at[3] = { sim_next(d->fab), smcr_deadline(d->eng[A]), smcr_deadline(d->eng[B]) };
	int64_t next = end;

	for (unsigned i = 0; i < 3; i++)
		if (at[i] < next)
			next = at[i];
	d->now_ns = next;
	settle(d);
	return next < end;
}

void
duo_run(struct duo *d, int64_t ms)
{
	int64_t end = d->now_ns + ms * DUO_MS;

	settle(d);
	while (step(d, end))
		;
}

void
duo_both_are_well(struct duo *d, struct duo_end *client, struct duo_end *server)
{
	ck_assert((client->events & SMCR_EV_CLOSED) == 0 && (server->events & SMCR_EV_CLOSED) == 0);
	ck_assert_uint_eq(duo_write(client, 3000), 3000);
	ck_assert_uint_eq(duo_write(server, 3000), 3000);
	duo_run(d, 20);
	ck_assert_uint_eq(duo_read(server), 3000);
	ck_assert_uint_eq(duo_read(client), 3000);
}

void
duo_until(struct duo *d, unsigned host, const char *text)
{
	settle(d);
	while (duo_count(d, host, text) == 0)
		ck_assert(step(d, INT64_MAX));
}

struct lgr *
duo_lgr(struct duo *d, unsigned host)
{
	struct list_node *n = list_first(&d->eng[host]->lgrs);

	return n != NULL ? CONTAINER_OF(n, struct lgr, node) : NULL;
}

unsigned
duo_lgr_cnt(struct duo *d, unsigned host)
{
	unsigned n = 0;

	LIST_FOREACH(l, &d->eng[host]->lgrs)
		n++;
	return n;
}

struct link *
duo_link(struct duo *d, unsigned host)
{
	return lgr_pick_link(duo_lgr(d, host));
}

void
duo_expect(struct duo *d, unsigned n, unsigned host, const char *text)
{
	ck_assert_uint_lt(n, d->seen_cnt);
	ck_assert_msg(d->seen[n].host == host && strcmp(d->seen[n].text, text) == 0,
	    "message %u is %c's %s, not %c's %s", n, "AB"[d->seen[n].host], d -> seen[n].text, "AB"[host], text);
}

unsigned
duo_count(const struct duo *d, unsigned host, const char *text)
{
	unsigned n = 0;

	for (unsigned i = 0; i < d->seen_cnt; i++)
		n += d->seen[i].host == host && strcmp(d->seen[i].text, text) == 0;
	return n;
}
