/* See duo.h. */
#include "duo.h"

#include <stdio.h>
#include <string.h>

#include "smcr/group/llc.h"
#include "smcr/group/llc_impl.h"
#include "smcr_help.h"
#include "tests/numbered.h"
#include "tests/seeded_rng.h"

struct duo d;
struct duo_end c[DUO_PAIRS], s[DUO_PAIRS];

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
	if (type == OPEN_GRANT || type == OPEN_CONN)
		return type == OPEN_CONN ? "OPEN" : "GRANT";
	switch (type & 0x0f) { /* the rest is the version */
	case LLC_CONFIRM_LINK:
		return "CONFIRM LINK";
	case LLC_ADD_LINK:
		return "ADD LINK";
	case LLC_REQUEST_ADD_LINK:
		return "REQUEST ADD LINK";
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

/* ctx: the engine's place in d.eng */
static void
on_trace(void *ctx, const struct smcr_trace *t)
{
	struct duo_seen *seen;

	if (!t->sent || t->kind == SMCR_TRACE_CDC || d.seen_cnt == DUO_SEEN)
		return;
	seen = &d.seen[d.seen_cnt++];
	seen->host = (unsigned)((struct smcr **)ctx - d.eng);
	memcpy(seen->head, t->msg, sizeof(seen->head));
	seen->len = t->len;
	if (t->kind == SMCR_TRACE_CLC)
		snprintf(seen->text, sizeof(seen->text), "%s", clc_name(t->msg));
	else
		snprintf(seen->text, sizeof(seen->text), "%s%s", llc_name(t->msg[0]),
		    (t->msg[3] & 0x80) != 0 ? " response" : "");
}

static void
on_breach(void *ctx, const struct rnic_dev *dev, const char *what)
{
	(void)ctx;
	fprintf(stderr, "# breach on %s: %s\n", rnic_query((struct rnic_dev *)dev).name, what);
	d.breaches++;
}

static enum sim_fate
on_message(void *ctx, const struct sim_msg *msg)
{
	(void)ctx;
	if (d.ghosts != NULL && d.ghosts(msg))
		return SIM_GHOST;
	return d.holds != NULL && d.holds(msg) ? SIM_HOLD : SIM_DELIVER;
}

static struct rnic_dev *
new_device(const char *name, unsigned host, unsigned n, unsigned if_nr)
{
	struct rnic_dev *dev = sim_dev_at(d.fab, name, d.transport[host], host, n, if_nr);

	if (d.gid_type[host] != RNIC_GID_NONE)
		sim_gid_type(dev, d.gid_type[host]);
	ck_assert_int_eq(smcr_add_device(d.eng[host], dev), 0);
	return dev;
}

static void
configure(struct smcr_config *cfg, const struct smcr_config *change)
{
#define TAKE(field) cfg->field = change->field != 0 ? change->field : cfg->field
	TAKE(abort_ms);
	TAKE(add_link_retry_max_ms);
	TAKE(add_link_retry_ms);
	TAKE(clc_ms);
	TAKE(confirm_link_ms);
	TAKE(conns_per_group);
	TAKE(features);
	TAKE(group_idle_ms);
	TAKE(holdoff_max_ms);
	TAKE(holdoff_ms);
	TAKE(keepalive_answer_ms);
	TAKE(keepalive_ms);
	TAKE(last_link_ms);
	TAKE(links_max);
	TAKE(llc_ms);
	TAKE(quarantine_max);
	TAKE(rfc_cursors);
	TAKE(rmb_bytes_max);
	TAKE(rmb_elems);
	TAKE(rmb_idle_ms);
	TAKE(smc_version);
	TAKE(ueid_cnt);
#undef TAKE
	memcpy(cfg->ueids, change->ueids, sizeof(cfg->ueids));
}

static void
start(const bool device[2], const enum rnic_transport transport[2], bool no_deny, const struct smcr_config *change)
{
	struct smcr_config cfg;

	memset(&d, 0, sizeof(d));
	memset(c, 0, sizeof(c));
	memset(s, 0, sizeof(s));
	memcpy(d.transport, transport, sizeof(d.transport));
	sim_config_init(&d.sim);
	d.sim.seed = 1;
	d.sim.breach = on_breach;
	d.sim.filter = on_message;
	d.sim.no_deny = no_deny;
	d.fab = sim_fabric_new(&d.sim);
	smcr_config_init(&cfg);
	cfg.clc_ms = 6000;
	cfg.llc_ms = 300;
	cfg.confirm_link_ms = 500;
	cfg.add_link_ms = 300;
	cfg.keepalive_ms = 0;
	cfg.sq_depth = cfg.rq_depth = 64;
	if (change != NULL)
		configure(&cfg, change);
	for (unsigned i = 0; i < 2; i++) {
		rng_init_seeded(&d.rng[i], i + 1);
		d.eng[i] = smcr_new(&cfg, &d.rng[i], 0);
		smcr_set_trace(d.eng[i], on_trace, &d.eng[i]);
		if (!device[i])
			continue;
		d.dev[i] = new_device(i == A ? "a" : "b", i, 0, 0);
	}
}

void
duo_init(bool device_a, bool device_b, const struct smcr_config *change)
{
	static const enum rnic_transport iwarp[2] = { RNIC_TRANSPORT_IWARP, RNIC_TRANSPORT_IWARP };

	start((const bool[]){ device_a, device_b }, iwarp, false, change);
}

void
duo_init_as(const enum rnic_transport transport[2], bool no_deny, const struct smcr_config *change)
{
	start((const bool[]){ true, true }, transport, no_deny, change);
}

void
duo_init_linux(const enum rnic_gid_type type[2], const struct smcr_config *change)
{
	static const enum rnic_transport roce[2] = { RNIC_TRANSPORT_ROCE, RNIC_TRANSPORT_ROCE };

	duo_init_as(roce, true, change);
	d.peer = SMCR_PEER_LINUX;
	d.ipv4 = true;
	memcpy(d.gid_type, type, sizeof(d.gid_type));
	for (unsigned h = A; h <= B; h++)
		sim_gid_type(d.dev[h], type[h]);
}

void
duo_init_version(unsigned version, const struct smcr_config *change)
{
	enum rnic_gid_type type = version == 2 ? RNIC_GID_ROCE_V2 : RNIC_GID_ROCE_V1;
	struct smcr_config cfg = { .links_max = 0 };

	if (change != NULL)
		cfg = *change;
	cfg.ueid_cnt = 1;
	memset(&cfg.ueids[0], 'U', sizeof(cfg.ueids[0]));
	duo_init_linux((const enum rnic_gid_type[]){ type, type }, &cfg);
}

void
duo_begin(const struct smcr_config *change)
{
	duo_init(true, true, change);
	duo_connect(0, 1, 100);
}

static struct rnic_dev *
add_device(unsigned host, bool neighbour)
{
	uint8_t k = 0;
	char name[8];

	while (d.more[host][k] != NULL)
		k++;
	snprintf(name, sizeof(name), "%c%u", host == A ? 'a' : 'b', k + 1);
	d.more[host][k] = new_device(name, host, k + 1, neighbour ? 0 : k + 1);
	return d.more[host][k];
}

struct rnic_dev *
duo_add_device(unsigned host)
{
	return add_device(host, false);
}

void
duo_add_devices(void)
{
	duo_add_device(A);
	duo_add_device(B);
}

struct rnic_dev *
duo_add_neighbour(unsigned host)
{
	return add_device(host, true);
}

size_t
duo_write(struct duo_end *e, size_t len)
{
	struct iovec iov[2];
	size_t room = smcr_tx_space(e->conn, iov), n = len < room ? len : room;

	numbered_fill(iov, n, e->written);
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

	ck_assert(numbered_holds(iov, n, e->read));
	e->read += n;
	smcr_rx_consume(e->conn, n);
	return n;
}

static int64_t linger_ms; /* of duo_case */

void
duo_fini(void)
{
	struct smcr_conn *conn;
	struct sim_live live;

	if (d.fab == NULL)
		return;
	for (unsigned i = 0; i < 2; i++)
		for (uint32_t pos = 0; (conn = idtable_next(&d.eng[i]->conns, &pos)) != NULL;)
			if (!conn->released && conn->state != CONN_SPARE)
				smcr_release(conn);
	duo_run(linger_ms);
	smcr_free(d.eng[A]);
	smcr_free(d.eng[B]);
	sim_live(d.fab, &live);
	ck_assert_uint_eq(live.qp, 0);
	ck_assert_uint_eq(live.mr, 0);
	ck_assert_uint_eq(live.pd, 0);
	sim_fabric_free(d.fab);
	d.fab = NULL;
	ck_assert_uint_eq(d.breaches, 0);
}

void
duo_case(TCase *tc, int64_t ms)
{
	linger_ms = ms;
	tcase_add_checked_fixture(tc, NULL, duo_fini);
}

static struct smcr_open
describe(struct duo_end *e, enum smcr_role role)
{
	struct smcr_open open = { .role = role,
		.peer = d.peer,
		.app = e,
		.elem_size = SMCR_ELEM_MIN,
		.subnet_cnt = 1,
		.subnet = { { .addr = { 10, 0, 0, 0 }, .prefix_len = 16 } },
		.remote = { .addr = { [15] = d.remote }, .level = d.level, .proof = d.proof },
		.in_tls = d.in_tls,
		.only_tls = d.only_tls[role == SMCR_CLIENT ? A : B],
		.secret = { 7, 7, 7 },
		.tcp_only = d.tcp_only[role == SMCR_CLIENT ? A : B],
		.insist = d.insist,
		.measure = d.measure,
		.ask_server = d.ask_server,
		.scope = { { d.scope } },
		.client = d.client,
		.takes_client = d.takes_client,
		.dest = d.dest,
		.wants_dest = d.wants_dest,
		.ticket = role == SMCR_SERVER && !d.wants_dest ? d.ticket : 0 };

	snprintf(open.peer_name, sizeof(open.peer_name), "%s", d.level != 0 ? "spiffe://duo" : "");
	if (d.ipv4)
		open.remote.addr[10] = open.remote.addr[11] = 0xff;
	snprintf(open.peer_key, sizeof(open.peer_key), "server:%u", d.port != 0 ? d.port : 1);
	*e = (struct duo_end){ .host = role == SMCR_CLIENT ? A : B };
	return open;
}

void
duo_open_one(struct duo_end *e, enum smcr_role role, bool prewarm)
{
	struct smcr_open open = describe(e, role);
	int err = 0;

	open.prewarm = prewarm;
	e->conn = smcr_open(d.eng[e->host], &open, &err);
	ck_assert_ptr_nonnull(e->conn);
}

bool
duo_open_over_link(unsigned pair)
{
	struct smcr_open open = describe(&c[pair], SMCR_CLIENT);

	s[pair] = (struct duo_end){ .host = B, .refuse = s[pair].refuse };
	d.next_opened = pair;
	duo_join(pair);
	c[pair].conn = smcr_open_over_link(d.eng[A], &open);
	return c[pair].conn != NULL;
}

void
duo_join(unsigned pair)
{
	c[pair].peer = &s[pair];
	s[pair].peer = &c[pair];
}

void
duo_open(unsigned pair)
{
	duo_open_one(&s[pair], SMCR_SERVER, false);
	duo_open_one(&c[pair], SMCR_CLIENT, false);
	duo_join(pair);
}

void
duo_connect(unsigned first, unsigned cnt, int64_t ms)
{
	for (unsigned i = first; i < first + cnt; i++)
		duo_open(i);
	duo_run(ms);
	for (unsigned i = first; i < first + cnt; i++)
		ck_assert(BOTH(i, ESTABLISHED));
}

void
duo_close(unsigned pair)
{
	smcr_close(c[pair].conn);
	smcr_close(s[pair].conn);
}

void
duo_release(struct duo_end *e)
{
	if (e->conn != NULL)
		smcr_release(e->conn);
	e->conn = NULL;
}

void
duo_release_pair(unsigned pair)
{
	duo_release(&c[pair]);
	duo_release(&s[pair]);
}

void
duo_end_pairs(unsigned first, unsigned cnt, int64_t ms)
{
	for (unsigned i = first; i < first + cnt; i++)
		duo_close(i);
	duo_run(ms);
	for (unsigned i = first; i < first + cnt; i++)
		duo_release_pair(i);
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

void
duo_feed_held(struct duo_end *from, struct duo_end *to)
{
	duo_feed(to, from->out, from->out_len);
	from->out_len = 0;
}

void
duo_inject(struct link *link, const struct llc_msg *msg)
{
	struct smcr *eng = link->lgr->eng;
	uint8_t buf[LLC_MAX_SENT_LEN];
	int n = llc_encode(msg, link->lgr->version, buf, sizeof(buf));

	ck_assert_int_ge(n, LLC_LEN);
	llc_recv(link, buf, (size_t)n);
	engine_act_on_marks(eng);
}

/* The Proposal may lead to a fallback, and end the rendezvous. */
static void
note_tlvs(struct duo_end *e)
{
	const struct clc_tlvs tlvs = smcr_proposed_tlvs(e->conn);

	if (e->client.kind == CLC_CLIENT_NONE)
		e->client = tlvs.client;
	if (e->dest.kind == CLC_DEST_NONE)
		e->dest = tlvs.dest;
}

static void
pass_on(struct duo_end *e)
{
	if (e->hold || e->peer == NULL || e->peer->conn == NULL || e->out_len == 0)
		return;
	size_t n = smcr_clc_want(e->peer->conn);
	if (n == 0)
		return;
	if (n > e->out_len)
		n = e->out_len;
	smcr_clc_input(e->peer->conn, e->out, n);
	note_tlvs(e->peer);
	memmove(e->out, e->out + n, e->out_len - n);
	e->out_len -= n;
}

static void
handle(struct duo_end *e, unsigned ev)
{
	e->events |= ev;
	e->out_len += smcr_clc_output(e->conn, e->out + e->out_len, sizeof(e->out) - e->out_len);
	if ((ev & SMCR_EV_PROPOSAL) != 0)
		note_tlvs(e);
	if ((ev & SMCR_EV_PROPOSAL) != 0 && e->dest.kind != CLC_DEST_NONE && !d.ignores_dest) {
		if (d.refuses_dest)
			smcr_refuse_dest(e->conn);
		else
			smcr_take_dest(e->conn, d.ticket);
	}
	if ((ev & SMCR_EV_PROPOSAL) != 0 && !e->refuse && smcr_is_prewarm(e->conn))
		smcr_admit_asking(e->conn, d.server);
	else if ((ev & SMCR_EV_PROPOSAL) != 0 && !e->refuse)
		smcr_admit(e->conn);
	if ((e->events & SMCR_EV_FALLBACK) != 0) {
		/* Called again when the peer's Decline, or data, has come later. */
		smcr_fallback(e->conn, &e->diag);
		e->left_len += smcr_clc_leftover(e->conn, e->left + e->left_len, sizeof(e->left));
	}
	if ((ev & SMCR_EV_CLOSED) != 0)
		e->reason = smcr_closed(e->conn, NULL);
}

/* One instant: until nothing more happens. The bound is far above what any test needs. */
static void
settle(void)
{
	for (unsigned spin = 0;; spin++) {
		bool more = false;
		unsigned ev;
		struct smcr_conn *conn;

		ck_assert_uint_lt(spin, 10000);
		sim_run(d.fab, d.now_ns);
		for (unsigned i = 0; i < 2; i++) {
			smcr_poll(d.eng[i], d.now_ns);
			while ((conn = smcr_next_event(d.eng[i], &ev)) != NULL) {
				if (smcr_app(conn) == NULL) {
					struct duo_end *e = &s[d.next_opened++];

					e->conn = conn;
					smcr_set_app(conn, e);
				}
				handle(smcr_app(conn), ev);
				more = true;
			}
			for (uint32_t pos = 0; (conn = idtable_next(&d.eng[i]->conns, &pos)) != NULL;) {
				struct duo_end *e = smcr_app(conn);

				if (conn->released || e == NULL)
					continue;
				size_t before = e->out_len;
				pass_on(e);
				more |= before != e->out_len;
			}
			more |= smcr_flush(d.eng[i]);
		}
		if (!more && sim_next(d.fab) > d.now_ns && smcr_deadline(d.eng[A]) > d.now_ns &&
		    smcr_deadline(d.eng[B]) > d.now_ns)
			return;
	}
}

/* To the next thing that happens, not beyond end: false when that is the end. */
static bool
step(int64_t end)
{
	int64_t at[3] = { sim_next(d.fab), smcr_deadline(d.eng[A]), smcr_deadline(d.eng[B]) };
	int64_t next = end;

	for (unsigned i = 0; i < 3; i++)
		if (at[i] < next)
			next = at[i];
	d.now_ns = next;
	settle();
	return next < end;
}

void
duo_run(int64_t ms)
{
	int64_t end = d.now_ns + ms * DUO_MS;

	settle();
	while (step(end))
		;
}

void
duo_bystander_is_well(void)
{
	ck_assert(!IS(c[0], CLOSED) && !IS(s[0], CLOSED));
	ck_assert_uint_eq(duo_write(&c[0], 3000), 3000);
	ck_assert_uint_eq(duo_write(&s[0], 3000), 3000);
	duo_run(20);
	ck_assert_uint_eq(duo_read(&s[0]), 3000);
	ck_assert_uint_eq(duo_read(&c[0]), 3000);
}

void
duo_until(unsigned host, const char *text)
{
	settle();
	while (duo_count(host, text) == 0)
		ck_assert(step(INT64_MAX));
}

struct lgr *
duo_lgr(unsigned host)
{
	struct list_node *n = list_first(&d.eng[host]->lgrs);

	return n != NULL ? CONTAINER_OF(n, struct lgr, node) : NULL;
}

unsigned
duo_lgr_cnt(unsigned host)
{
	unsigned n = 0;

	LIST_FOREACH(l, &d.eng[host]->lgrs)
		n++;
	return n;
}

void
duo_expect_groups(unsigned cnt)
{
	ck_assert_uint_eq(duo_lgr_cnt(A), cnt);
	ck_assert_uint_eq(duo_lgr_cnt(B), cnt);
}

struct link *
duo_link(unsigned host)
{
	return lgr_pick_link(duo_lgr(host));
}

struct link *
duo_link_nr(unsigned host, uint8_t number)
{
	return lgr_link_by_number(duo_lgr(host), number);
}

void
duo_expect_links(unsigned cnt)
{
	for (unsigned i = 0; i < 2; i++) {
		ck_assert_uint_eq(duo_lgr(i)->active_cnt, cnt);
		ck_assert_uint_eq(duo_lgr(i)->link_cnt, cnt);
	}
}

void
duo_expect(unsigned n, unsigned host, const char *text)
{
	ck_assert_uint_lt(n, d.seen_cnt);
	ck_assert_msg(d.seen[n].host == host && strcmp(d.seen[n].text, text) == 0, "message %u is %c's %s, not %c's %s",
	    n, "AB"[d.seen[n].host], d.seen[n].text, "AB"[host], text);
}

unsigned
duo_count(const unsigned host, const char *text)
{
	unsigned n = 0;

	for (unsigned i = 0; i < d.seen_cnt; i++)
		n += d.seen[i].host == host && strcmp(d.seen[i].text, text) == 0;
	return n;
}

void
duo_lose(struct link *link, const char *why)
{
	link_lost(link, why);
	engine_act_on_marks(link->lgr->eng);
}
