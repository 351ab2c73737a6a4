/* The gateway's half of a flow; see session.h. */
#include "tests/scenario/session.h"

#include <stdlib.h>
#include <string.h>

#include "smcr/data/conn.h"
#include "tests/scenario/hostile.h"
#include "tests/scenario/trace.h"

#define COPY_MAX 65536
#define CLC_OUT_MAX 512

/* A failure at this end of this flow; at the liar's own end nothing is judged. */
#define session_fail(s, ...)                                \
	do {                                                \
		if (!(s)->h->lies)                          \
			world_fail((s)->h->w, __VA_ARGS__); \
	} while (0)

static struct flow_half *
half(const struct session *s)
{
	return &s->f->half[s->role == SMCR_SERVER];
}

static const char *
side(const struct session *s)
{
	return s->role == SMCR_SERVER ? "egress" : "ingress";
}

void
session_wake(void *arg)
{
	struct session *s = arg;

	if (list_empty(&s->dirty))
		list_push(&s->h->dirty, &s->dirty);
	host_wake(s->h);
}

static struct session *
session_new(struct host *h, struct flow *f, enum smcr_role role)
{
	struct session *s = must_calloc(1, sizeof(*s));

	s->h = h;
	s->f = f;
	s->role = role;
	list_init(&s->dirty);
	list_push(&h->sessions, &s->node);
	return s;
}

static void
connect_middle(struct session *s)
{
	struct host *h = s->h;
	struct flow *f = s->f;

	s->mode = SESSION_CONNECT;
	s->mid = stcp_connect(
	    h->w, &h->mid_net, &h->all[f->to].egress, f, (struct stcp_user){ .wake = session_wake, .arg = s });
	f->middle = s->mid;
}

static void
session_end(struct session *s, bool reset)
{
	world_log(s->h->w, "flow %u %s ends%s", s->f->nr, side(s), reset ? " with a reset" : "");
	if (s->conn != NULL)
		smcr_release(s->conn);
	s->conn = half(s)->conn = NULL;
	if (s->app != NULL)
		reset ? stcp_abort(s->app) : stcp_close(s->app);
	if (s->role == SMCR_CLIENT)
		s->f->middle = NULL;
	if (s->mid != NULL)
		reset ? stcp_abort(s->mid) : stcp_close(s->mid);
	s->app = s->mid = NULL;
	s->mode = SESSION_DEAD;
	half(s)->ended = true;
	half(s)->reset = reset;
	session_wake(s);
}

static unsigned
level_of(const struct flow *f)
{
	return plan_level(f->plan, f->nr, f->hostile);
}

static struct smcr_open
describe(struct session *s)
{
	struct flow *f = s->f;
	struct smcr_open o = { .role = s->role,
		.app = s,
		.elem_size = f->elem_size,
		.origin = f->nr + 1,
		.remote = { .level = (uint8_t)level_of(f) },
		.scope = { { (uint8_t)level_of(f) } },
		.ticket = s->role == SMCR_SERVER ? 1 + level_of(f) : 0 };

	snprintf(o.peer_key, sizeof(o.peer_key), "host%u:%u", f->to, level_of(f));
	o.remote.name_id[0] = level_of(f) != 0 ? (uint8_t)(1 + (s->role == SMCR_CLIENT ? f->to : f->from)) : 0;
	if (s->h->plan->af_smc != 0) {
		o.peer = s->h->plan->af_smc == AF_SMC_SOME && s->h->nr != 2 ? SMCR_PEER_AUTO : SMCR_PEER_LINUX;
		o.remote.addr[10] = o.remote.addr[11] = 0xff; /* IPv4 */
	}
	o.remote.addr[15] = (uint8_t)HOST_ADDR(s->role == SMCR_CLIENT ? f->to : f->from);
	o.subnet_cnt = 1;
	o.subnet[0] = host_subnet(s->h);
	if (s->h->plan->far_middle != 0 && s->role == SMCR_SERVER)
		o.subnet[0] = (struct smcr_subnet){ .addr = { 127 }, .prefix_len = 8 };
	if (host_first_dev(s->h) != NULL)
		o.local_addr = rnic_query(host_first_dev(s->h)).gid;
	o.prewarm = f->prewarm && s->role == SMCR_CLIENT;
	/* What the handshake would have left at both ends: a secret of this middle. */
	o.in_tls = s->h->plan->secure != 0 && o.remote.level > 0;
	o.only_tls = o.in_tls && o.remote.level > 1;
	if (o.in_tls) {
		memset(o.secret, 's', sizeof(o.secret));
		memcpy(o.secret, &f->nr, sizeof(f->nr));
	}
	return o;
}

static void
has_conn(struct session *s, struct smcr_conn *conn, enum session_mode mode)
{
	s->mode = mode;
	s->conn = conn;
	s->opened_ns = s->h->w->now_ns;
	half(s)->opened = conn != NULL;
	half(s)->conn = conn;
	if (conn != NULL && s->f->hostile)
		trace_hostile(s->h->trace, s->h->nr, conn->id);
}

static void
open_conn(struct session *s)
{
	struct smcr_open o = describe(s);
	int err = 0;

	has_conn(s, smcr_open(s->h->eng, &o, &err), SESSION_SETUP);
	if (s->conn == NULL)
		session_end(s, true);
}

struct session *
session_ingress(struct host *h, struct flow *f, struct stcp_end *app)
{
	struct session *s = session_new(h, f, SMCR_CLIENT);
	struct smcr_open o = describe(s);
	struct smcr_conn *conn = NULL;

	s->app = app;
	if (app != NULL && f->nr * 37 % 100 < h->plan->opens) {
		smcr_set_now(h->eng, h->w->now_ns);
		conn = smcr_open_over_link(h->eng, &o);
	}
	if (conn == NULL) {
		connect_middle(s);
		return s;
	}
	world_log(h->w, "flow %u opens over a link", f->nr);
	has_conn(s, conn, SESSION_OPENING);
	session_wake(s);
	return s;
}

/* Some are refused, so that the client has to connect. */
struct session *
session_opened(struct host *h, struct smcr_conn *conn)
{
	uint32_t origin;
	uint8_t hops;

	smcr_proposed_way(conn, &hops, &origin);
	struct flow *f = origin >= 1 && origin <= h->flow_cnt ? &h->flows[origin - 1] : NULL;
	const unsigned level = smcr_opened_ticket(conn) - 1, scope = smcr_opened_scope(conn).b[0];
	const struct smcr_identity by = smcr_opened_by(conn);

	/* A ticket leads to the service that gave it, in a group of its level, whose owner it permits. The group may have ended in
	 * this turn. */
	if (smcr_conn_group(conn) == 0) {
		smcr_abort(conn, SMCR_R_NOT_OPENED);
		smcr_release(conn);
		return NULL;
	}
	if (level > 2 || by.level != level || scope != level ||
	    (level == 2 && by.addr[15] == HOST_ADDR(2) && h->plan->hostile != 0 && h->plan->secure != 2))
		world_fail(h->w, "host%u: opened by ticket %u and scope %u in a group of level %u", h->nr, level + 1,
		    scope, by.level);
	if (f == NULL || f->to != h->nr || by.addr[15] != HOST_ADDR(f->from) || f->half[1].opened || f->nr % 8 == 3 ||
	    level != level_of(f)) {
		smcr_abort(conn, SMCR_R_NOT_OPENED);
		smcr_release(conn);
		return NULL;
	}
	struct session *s = session_new(h, f, SMCR_SERVER);
	smcr_set_app(conn, s);
	has_conn(s, conn, SESSION_SETUP);
	return s;
}

void
session_cut(struct session *s, bool reset)
{
	session_end(s, reset);
}

struct session *
session_egress(struct host *h, struct flow *f, struct stcp_end *mid)
{
	struct session *s = session_new(h, f, SMCR_SERVER);

	s->mid = mid;
	s->mode = SESSION_CONNECT;
	if (f->hostile) /* it may have opened the same one over a link */
		half(s)->established = false;
	return s;
}

/* -- rendezvous -- */

/* The liar's part in what has just come from the engine, from byte `at` of the output on. */
static void
clc_lies(struct session *s, size_t at)
{
	struct liar *l = s->h->liar;
	enum liar_end end = LIAR_GO_ON;

	if (l == NULL || s->out_len == at)
		return;
	if (!s->f->hostile)
		liar_overhears(l, s->out + at, s->out_len - at);
	else if (!s->h->lies)
		liar_hears(l, s->out + at, s->out_len - at);
	else
		s->out_len = at + liar_says(l, s->f->nr, s->out + at, s->out_len - at, sizeof(s->out) - at, &end);
	if (end != LIAR_GO_ON)
		s->lie_end = end;
}

/* More bytes of the engine; what a liar that is silent has to say is lost. */
static void
clc_take(struct session *s)
{
	size_t at = s->out_len;

	if (at < CLC_OUT_MAX)
		s->out_len += smcr_clc_output(s->conn, s->out + at, CLC_OUT_MAX - at);
	if (s->hushed)
		s->out_len = 0;
	else
		clc_lies(s, at);
}

static void
clc_push(struct session *s)
{
	size_t sent = stcp_send(s->mid, s->out, s->out_len, false);

	memmove(s->out, s->out + sent, s->out_len - sent);
	s->out_len -= sent;
}

static void
clc_out(struct session *s)
{
	size_t left;

	do {
		clc_take(s);
		left = s->out_len;
		if (left > 0)
			clc_push(s);
	} while (s->out_len < left);
	if (s->lie_end != LIAR_GO_ON && !s->hushed && s->out_len == 0) {
		/* A liar's last word was said: what it does then. */
		s->hushed = true;
		if (s->lie_end == LIAR_FIN && !stcp_is_shut(s->mid))
			stcp_shutdown(s->mid);
		else if (s->lie_end == LIAR_RST)
			session_cut(s, true);
	}
}

/* An smcrd of before SCTP does not look at its bits in a Proposal. n more bytes of CLC. */
static void
mask_sctp(struct session *s, uint8_t *buf, size_t n)
{
	const size_t at = 58; /* of the transports in a Proposal */

	if (s->role == SMCR_SERVER && !plan_knows_sctp(s->h->plan, s->h->nr) && s->clc_cnt <= at && at - s->clc_cnt < n)
		buf[at - s->clc_cnt] &= (uint8_t) ~(CLC_TRANSPORT_IWARP_SCTP | CLC_TRANSPORT_IWARP_SCTP_UDP);
	s->clc_cnt += n;
}

static void
clc_in(struct session *s)
{
	uint8_t buf[COPY_MAX];
	bool urgent;
	size_t want, n;

	while ((want = smcr_clc_want(s->conn)) > 0) {
		n = stcp_recv(s->mid, buf, want < sizeof(buf) ? want : sizeof(buf), &urgent);
		if (n == 0)
			return;
		s->heard_ns = s->h->w->now_ns;
		s->then = *smcr_counters(s->h->eng);
		mask_sctp(s, buf, n);
		smcr_clc_input(s->conn, buf, n);
	}
}

/* FIN and RST of the middle, which the engine is to hear about. */
static void
watch_middle(struct session *s)
{
	if (!s->rst_told && stcp_state(s->mid) == STCP_RESET) {
		s->rst_told = true;
		world_log(s->h->w, "flow %u %s: middle RST", s->f->nr, side(s));
		trace_middle_ended(s->h->trace, s->h->nr, s->conn->id);
		smcr_tcp_event(s->conn, SMCR_TCP_RST);
	} else if (!s->fin_told && stcp_eof(s->mid)) {
		s->fin_told = true;
		world_log(s->h->w, "flow %u %s: middle FIN", s->f->nr, side(s));
		trace_middle_ended(s->h->trace, s->h->nr, s->conn->id);
		smcr_tcp_event(s->conn, SMCR_TCP_FIN);
	}
}

static void
want_server(struct session *s)
{
	if (s->role != SMCR_SERVER || s->app_wanted || s->app != NULL)
		return;
	s->app_wanted = true;
	s->app = stcp_connect(
	    s->h->w, &s->h->app_net, &s->h->server, s->f, (struct stcp_user){ .wake = session_wake, .arg = s });
}

/* The application leg while it may still be connecting: true when it is open. */
static bool
app_ready(struct session *s)
{
	if (s->app == NULL)
		return false;
	switch (stcp_state(s->app)) {
	case STCP_CONNECTING:
		return false;
	case STCP_OPEN:
		return true;
	case STCP_REFUSED:
		break;
	case STCP_RESET:
		if (stcp_unread(s->app) > 0 || s->held_len > 0 || s->mode == SESSION_SMCR)
			return true; /* the other end gets that first */
		break;
	}
	if (s->mode == SESSION_TCP) {
		session_end(s, true);
	} else if (!s->aborted) {
		s->aborted = true;
		smcr_abort(s->conn, stcp_state(s->app) == STCP_RESET ? SMCR_R_APP_RESET : SMCR_R_REFUSED);
	}
	return false;
}

/* The application sees and sends nothing before the connection is established. */
static void
check_early(const struct session *s)
{
	struct iovec iov[2];
	bool urgent;

	if (s->conn == NULL || s->f->prewarm)
		return;
	if (smcr_rx_data(s->conn, iov, &urgent) > 0 || smcr_rx_eof(s->conn))
		session_fail(s, "flow %u %s: data can be read before the connection is established", s->f->nr, side(s));
	if (smcr_tx_space(s->conn, iov) > 0)
		session_fail(s, "flow %u %s: data can be sent before the connection is established", s->f->nr, side(s));
}

static void
setup_io(struct session *s)
{
	check_early(s);
	if (s->mid == NULL) { /* opened over a link */
		if (app_ready(s) && s->admit) {
			s->admit = false;
			smcr_admit(s->conn);
		}
		return;
	}
	clc_in(s); /* what came before a RST as well, as by the daemon's will_read() */
	if (stcp_state(s->mid) == STCP_OPEN)
		clc_out(s);
	if (s->mode == SESSION_DEAD)
		return;
	watch_middle(s);
	if (app_ready(s) && s->admit) {
		s->admit = false;
		smcr_admit(s->conn);
		clc_out(s);
	}
}

/* Sends the first bytes and keeps them; all else of the application waits for the answer. */
static void
opening_io(struct session *s)
{
	struct iovec iov[2];
	size_t room = s->held_len == 0 && stcp_unread(s->app) > 0 ? smcr_tx_space(s->conn, iov) : 0;

	if (room == 0)
		return;
	if (room > sizeof(s->held))
		room = sizeof(s->held);
	if (room > iov[0].iov_len)
		room = iov[0].iov_len;
	s->held_len = stcp_recv(s->app, s->held, room, &s->held_urgent);
	memcpy(iov[0].iov_base, s->held, s->held_len);
	smcr_tx_commit(s->conn, s->held_len, s->held_urgent);
}

/* The peer did not take the connection. */
static void
not_opened(struct session *s)
{
	world_log(s->h->w, "flow %u is not opened: %s", s->f->nr, half(s)->detail);
	/* Its program may be connected: the peer aborted before its answer. Without data the peer may take it yet, over links
	 * that are lost here. */
	s->f->twice = *half(s)->detail != '\0' || s->f->server_app.state != APP_NONE;
	if (*half(s)->detail != '\0')
		world_excuse(s->h->w, "a connection without data was opened twice");
	smcr_release(s->conn);
	s->conn = half(s)->conn = NULL;
	half(s)->opened = false;
	connect_middle(s);
}

/* -- data over SMC-R -- */

/* What was sent in vain over a link goes first: how many bytes of it, into a buffer. */
static size_t
take_held(struct session *s, uint8_t *buf, size_t room, bool *urgent)
{
	size_t n = s->held_len < room ? s->held_len : room;

	memcpy(buf, s->held, n);
	memmove(s->held, s->held + n, s->held_len - n);
	s->held_len -= n;
	*urgent = s->held_urgent && s->held_len == 0 && n > 0;
	return n;
}

/* Reads a piece of the application's data into the ring: false when there is nothing to read or no room. */
static bool
app_to_ring(struct session *s, size_t *budget)
{
	struct iovec iov[2] = { { 0 } };
	size_t room = smcr_tx_space(s->conn, iov);
	bool urgent = false;

	if (room == 0)
		return false;
	if (iov[0].iov_len + iov[1].iov_len != room || iov[0].iov_len == 0)
		session_fail(s, "flow %u: tx_space says %zu and gives %zu + %zu", s->f->nr, room, iov[0].iov_len,
		    iov[1].iov_len);
	size_t n = s->held_len > 0 ? take_held(s, iov[0].iov_base, iov[0].iov_len, &urgent)
	                           : stcp_recv(s->app, iov[0].iov_base, iov[0].iov_len, &urgent);
	smcr_tx_commit(s->conn, n, urgent);
	*budget -= n < *budget ? n : *budget;
	return n > 0;
}

static void
app_to_engine(struct session *s)
{
	size_t budget = s->h->plan->read_budget_kb * 1024;

	while (budget > 0 && app_to_ring(s, &budget))
		;
	if (budget == 0)
		session_wake(s);
	if (stcp_eof(s->app) && s->held_len == 0 && !s->closing)
		smcr_shutdown_wr(s->conn);
}

/* Writes a piece of received data to the application: false when there is none or no room. */
static bool
element_to_app(struct session *s)
{
	struct iovec iov[2] = { { 0 } };
	bool urgent = false;
	size_t len, n, room = stcp_space(s->app);

	len = smcr_rx_data(s->conn, iov, &urgent);
	if (len == 0 || room == 0)
		return false;
	if (iov[0].iov_len + iov[1].iov_len != len || iov[0].iov_len == 0 || (urgent && len != 1))
		session_fail(
		    s, "flow %u: rx_data says %zu and gives %zu + %zu", s->f->nr, len, iov[0].iov_len, iov[1].iov_len);
	n = stcp_send(s->app, iov[0].iov_base, iov[0].iov_len, urgent);
	smcr_rx_consume(s->conn, n);
	return n > 0;
}

static void
engine_to_app(struct session *s)
{
	if (stcp_is_shut(s->app))
		return;
	while (element_to_app(s))
		;
	if (smcr_rx_eof(s->conn))
		stcp_shutdown(s->app);
}

/* The application has reset its leg. */
static void
reset_io(struct session *s)
{
	struct iovec iov[2] = { { 0 } };
	bool urgent;
	size_t n;

	while ((n = smcr_rx_data(s->conn, iov, &urgent)) > 0)
		smcr_rx_consume(s->conn, n);
	if (s->aborted)
		return;
	app_to_engine(s);
	if (stcp_unread(s->app) > 0 || s->held_len > 0)
		return;
	s->aborted = true;
	smcr_reset(s->conn);
}

/* The engine's connection has ended by a reset. */
static void
deliver_io(struct session *s)
{
	struct iovec iov[2] = { { 0 } };
	bool urgent;

	if (stcp_state(s->app) == STCP_OPEN)
		engine_to_app(s);
	if (stcp_state(s->app) != STCP_OPEN || stcp_is_shut(s->app) || smcr_rx_data(s->conn, iov, &urgent) == 0)
		session_end(s, true);
}

static void
smcr_io(struct session *s)
{
	bool urgent;
	uint8_t c;

	if (s->delivers) {
		deliver_io(s);
		return;
	}
	if (s->mid != NULL)
		watch_middle(s);
	/* Where a link broke late in first contact the server may have declined: it resets soon. */
	if (s->mid != NULL && !plan_faulty(s->h->plan) && !s->f->hostile && stcp_unread(s->mid) > 0 &&
	    stcp_recv(s->mid, &c, 1, &urgent) > 0)
		session_fail(
		    s, "flow %u %s: byte %02x on the middle though data goes over SMC-R", s->f->nr, side(s), c);
	if (!app_ready(s))
		return;
	if (stcp_state(s->app) == STCP_RESET) {
		reset_io(s);
		return;
	}
	app_to_engine(s);
	engine_to_app(s);
	if (stcp_eof(s->app) && stcp_is_shut(s->app) && !s->closing) {
		s->closing = true;
		smcr_close(s->conn);
	}
}

/* -- data over TCP -- */

static void
copy(struct session *s, struct stcp_end *from, struct stcp_end *to)
{
	uint8_t buf[COPY_MAX];
	size_t budget = s->h->plan->read_budget_kb * 1024, room, n;
	bool urgent;

	while (budget > 0 && (room = stcp_space(to)) > 0) {
		room = room < sizeof(buf) ? room : sizeof(buf);
		n = from == s->app && s->held_len > 0 ? take_held(s, buf, room, &urgent)
		                                      : stcp_recv(from, buf, room, &urgent);
		if (n == 0)
			break;
		stcp_send(to, buf, n, urgent);
		budget -= n < budget ? n : budget;
	}
	if (budget == 0)
		session_wake(s);
	if (stcp_eof(from) && !stcp_is_shut(to) && (from != s->app || s->held_len == 0))
		stcp_shutdown(to);
}

/* Done with the engine's connection, unless the peer's Decline may still come. */
static void
leave_engine(struct session *s)
{
	if (smcr_clc_want(s->conn) > 0)
		return;
	s->left_len = smcr_clc_leftover(s->conn, s->left, sizeof(s->left));
	s->f->read_as_clc |= s->left_len > 0;
	smcr_release(s->conn);
	s->conn = NULL;
}

static void
tcp_io(struct session *s)
{
	bool mid_over = stcp_state(s->mid) != STCP_OPEN && stcp_unread(s->mid) == 0 && s->left_len == 0 &&
	    (s->conn == NULL || smcr_clc_want(s->conn) > 0);

	if (mid_over || s->hushed) {
		session_end(s, true);
		return;
	}
	if (s->out_len > 0)
		clc_push(s);
	if (s->f->prewarm) {
		if (s->out_len == 0)
			session_end(s, false);
		return;
	}
	want_server(s);
	if ((s->out_len > 0 && stcp_state(s->mid) == STCP_OPEN) || !app_ready(s))
		return;
	if (stcp_state(s->app) != STCP_OPEN && stcp_state(s->mid) != STCP_OPEN) {
		session_end(s, true);
		return;
	}
	copy(s, s->app, s->mid);
	if (s->conn != NULL) {
		clc_in(s);
		if (stcp_eof(s->mid))
			smcr_tcp_event(s->conn, SMCR_TCP_FIN);
		leave_engine(s);
	}
	if (s->left_len > 0 && stcp_space(s->app) >= s->left_len) {
		stcp_send(s->app, s->left, s->left_len, false);
		s->left_len = 0;
	}
	if (s->left_len == 0 && s->conn == NULL)
		copy(s, s->mid, s->app);
	/* Until what came before a reset was read; without room the reader wakes the session. */
	if ((stcp_state(s->app) == STCP_RESET && stcp_space(s->mid) > 0) ||
	    (stcp_state(s->mid) == STCP_RESET && stcp_space(s->app) > 0))
		session_wake(s);
	if (stcp_eof(s->app) && stcp_eof(s->mid) && stcp_is_shut(s->app) && stcp_is_shut(s->mid))
		session_end(s, false);
}

/* -- what the host calls -- */

static void
connect_io(struct session *s)
{
	switch (stcp_state(s->mid)) {
	case STCP_CONNECTING:
		break;
	case STCP_OPEN:
		open_conn(s);
		break;
	case STCP_REFUSED:
	case STCP_RESET:
		session_end(s, true);
		break;
	}
}

void
session_io(struct session *s)
{
	switch (s->mode) {
	case SESSION_CONNECT:
		connect_io(s);
		break;
	case SESSION_OPENING:
		opening_io(s);
		break;
	case SESSION_SETUP:
		setup_io(s);
		break;
	case SESSION_SMCR:
		smcr_io(s);
		break;
	case SESSION_TCP:
		tcp_io(s);
		break;
	case SESSION_DEAD:
		break;
	}
}

/* By us, or by the peer, which says so with this reason. */
static bool
held_off(const struct flow_half *h)
{
	return h->diag.held_off || h->diag.peer == CLC_DIAG_NO_ACTIVE_LINK;
}

/* A client's idle group that ends to make room may be the one that an Accept on its way has chosen: known (room.c), and rare. */
static bool
chosen_group_made_room(const struct session *s)
{
	const struct smcr *client = s->h->all[s->f->from].eng;

	return half(s)->diag.out_of_sync && smcr_counters(client)->groups_ended_for_room > 0;
}

/*
 * Each new RMB takes an exchange with the peer, one after the other. Where these take long, late waiters use TCP after
 * three quarters of the time that the peer waits for its CLC message (rdv_peer_waits), and not before; each exchange has come to
 * its end, and has led to an RMB. That there was one all the time is a bound (bounds.c).
 */
static bool
stood_in_line(const struct session *s)
{
	const struct smcr_counters *now = smcr_counters(s->h->eng);
	uint64_t ms = (uint64_t)(s->h->w->now_ns - s->heard_ns) / MS, rmbs = now->rmbs_made - s->then.rmbs_made;

	/* The engine counts whole ms that are left. */
	return ms + 1 >= s->h->plan->clc_ms / 4 * 3 && rmbs * s->h->plan->llc_ms > ms &&
	    now->llc_timeouts == s->then.llc_timeouts && now->rkey_retries == s->then.rkey_retries;
}

/* A group of this host has as many RMBs as it may. Where they are small, and elements of several sizes are asked for, a client may
 * have none of the size, though the server has, and has chosen the group for that. */
static bool
has_all_rmbs(const struct smcr *eng)
{
	uint32_t cnt = 0, group = 0;
	struct smcr_rmb_info rmb;

	for (uint32_t pos = 0; smcr_rmb_next(eng, &pos, &rmb);) {
		if (rmb.remote)
			continue;
		cnt = rmb.group_id == group ? cnt + 1 : 1;
		group = rmb.group_id;
		if (cnt == SMCR_RMBS_PER_GROUP)
			return true;
	}
	return false;
}

static bool
came_to_no_rmb(const struct session *s)
{
	if (half(s)->diag.local != CLC_DIAG_RTOKEN)
		return half(s)->diag.peer == CLC_DIAG_RTOKEN && s->f->half[s->role != SMCR_SERVER].no_rmb;
	return stood_in_line(s) || (s->role == SMCR_CLIENT && has_all_rmbs(s->h->eng));
}

static void
fell_back(struct session *s)
{
	struct flow_half *h = half(s);

	smcr_fallback(s->conn, &h->diag);
	h->fallback = true;
	world_log(s->h->w, "flow %u %s falls back, local %08x peer %08x%s%s", s->f->nr, side(s), h->diag.local,
	    h->diag.peer, h->diag.out_of_sync ? " out of sync" : "", h->diag.held_off ? " held off" : "");
	if (h->diag.local == 0 && h->diag.peer == 0 && !h->diag.held_off && !s->f->hostile)
		session_fail(s, "flow %u %s falls back without a reason", s->f->nr, side(s));
	h->no_rmb = came_to_no_rmb(s);
	/* Resets of applications in two first contacts in a row count against the peer. */
	if (!plan_may_fall_back(s->h->plan) && !s->f->hostile && !(held_off(h) && plan_aborts(s->h->plan)) &&
	    !chosen_group_made_room(s) && !h->no_rmb)
		session_fail(s, "flow %u %s falls back though nothing speaks for it: local %08x peer %08x%s", s->f->nr,
		    side(s), h->diag.local, h->diag.peer, h->diag.held_off ? " held off" : "");
	if (h->established && !s->f->twice)
		session_fail(s, "flow %u %s falls back after it was established", s->f->nr, side(s));
	clc_take(s);
	h->closed = true;
	h->conn = NULL;
	leave_engine(s);
	s->mode = SESSION_TCP;
	session_wake(s);
}

static void
was_closed(struct session *s)
{
	struct flow_half *h = half(s);

	h->reason = smcr_closed(s->conn, &h->detail);
	if (h->reason == SMCR_R_NOT_OPENED) {
		if (s->mode != SESSION_OPENING)
			session_fail(s, "flow %u %s: not opened, after an answer", s->f->nr, side(s));
		not_opened(s);
		return;
	}
	h->closed = true;
	world_log(s->h->w, "flow %u %s closed: %s%s%s", s->f->nr, side(s), smcr_reason_str(h->reason),
	    *h->detail != '\0' ? ", " : "", h->detail);
	s->delivers = h->reason != SMCR_OK && s->mode == SESSION_SMCR && s->app != NULL;
	if (s->mode == SESSION_OPENING && plan_faulty(s->h->plan) && h->reason == SMCR_R_LINK_LOST && s->held_len > 0)
		world_excuse(s->h->w, "a group ended before it answered an OPEN with data");
	if (!s->delivers)
		session_end(s, h->reason != SMCR_OK);
}

void
session_event(struct session *s, unsigned events)
{
	if (s->mode == SESSION_DEAD)
		session_fail(s, "flow %u %s: event %x after release", s->f->nr, side(s), events);
	if (s->mode == SESSION_DEAD)
		return;
	if (s->mode == SESSION_SETUP && !s->f->prewarm && !s->aborted &&
	    (events & (SMCR_EV_READABLE | SMCR_EV_WRITABLE)) != 0 && (events & SMCR_EV_ESTABLISHED) == 0)
		session_fail(s, "flow %u %s: event %x before the connection is established", s->f->nr, side(s), events);
	if ((events & SMCR_EV_PROPOSAL) != 0) {
		s->admit = true;
		want_server(s);
	}
	if ((events & SMCR_EV_ESTABLISHED) != 0) {
		world_log(s->h->w, "flow %u %s established", s->f->nr, side(s));
		half(s)->established = true;
		if (s->h->plan->secure != 0 && !s->h->lies)
			hostile_check_level(s->h, s->f, s->conn);
		if (s->h->plan->hostile != 0 && !s->f->hostile)
			hostile_check_set_up(s->h, s->f, s->h->w->now_ns - s->opened_ns);
		clc_out(s);
		if (s->mode == SESSION_DEAD)
			return;
		if (s->out_len > 0 && stcp_state(s->mid) == STCP_OPEN && !s->f->hostile)
			session_fail(s, "flow %u %s: CLC does not fit the window", s->f->nr, side(s));
		if (s->mode == SESSION_OPENING)
			s->held_len = 0;
		s->mode = SESSION_SMCR;
	}
	if ((events & SMCR_EV_CLOSED) != 0)
		was_closed(s);
	else if ((events & SMCR_EV_FALLBACK) != 0)
		fell_back(s);
	session_io(s);
}

void
session_free(struct session *s)
{
	if (s->mode != SESSION_DEAD)
		session_end(s, true);
	list_remove(&s->node);
	list_remove(&s->dirty);
	free(s);
}
