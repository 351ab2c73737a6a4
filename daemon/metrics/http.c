/* HTTP clients; see http.h. All members belong to the thread, except those under the lock. */
#include "daemon/metrics/http.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/http.h>
#include <event2/listener.h>

#include "base/addr.h"
#include "base/clock.h"
#include "base/log.h"
#include "daemon/net/net.h"

#define GUARDS_MAX (HTTP_CLIENTS_MAX + HTTP_ACCEPTS) /* some were shut down and are not freed yet */

/* libevent passes evhttp's argument to the listener's error callback, not ours. */
static _Thread_local struct http *http_of_thread;

/* A connection. The bufferevent is held here as well: evhttp has freed its connection when the callbacks are gone. */
struct guard {
	struct bufferevent *bev;
	int64_t until_ms;
	bool asked;                 /* its request is complete */
	bool away;                  /* the socket was shut down; evhttp will notice */
	bool known;                 /* its address was checked */
	uint8_t from[16];           /* its source; zero: a UNIX socket, or not known */
	size_t left;                /* bytes of its answer that were not taken at the last look */
	int64_t moved_ms;           /* when they became fewer; 0: there is no answer yet */
	const struct documents *of; /* the answer is made of these */
};

struct waiting {
	struct evhttp_request *req; /* evhttp's; to be answered even if the connection has ended */
	struct web_request what;
};

enum { EVENT_WAKE, EVENT_TICK, EVENT_SOON, EVENTS };

struct http {
	pthread_t thread;
	bool running;
	struct event_base *base;
	struct evhttp *evhttp;
	struct evconnlistener *listener;
	struct event *events[EVENTS];
	int wake_fd;
	void (*want)(void *arg);
	void *want_arg;
	struct guard guards[GUARDS_MAX]; /* in the order of accepting */
	unsigned guard_cnt;
	unsigned accepts; /* left in this tick */
	struct accept_pauses *pauses;
	struct accept_pause paused; /* accepting has failed, */
	bool tried;                 /* and was tried again since */
	struct waiting waiting[GUARDS_MAX];
	unsigned waiting_cnt;
	struct documents *docs; /* the newest first; the others are still being sent */
	bool has_docs;          /* the newest may serve while they are fresh */
	int64_t docs_ms;
	bool wanted;
	int64_t wanted_ms;

	pthread_mutex_t lock;
	struct documents *delivered;
	bool has_delivered, stop;
	struct config_net *allow;
	unsigned allow_cnt;
};

/* -- connections -- */

/* Also sets its source. */
static bool
may_connect(struct http *h, struct guard *g)
{
	struct sockaddr_storage ss = { 0 };
	socklen_t len = sizeof(ss);

	if (getpeername(bufferevent_getfd(g->bev), (struct sockaddr *)&ss, &len) != 0)
		return false;
	if (ss.ss_family == AF_UNIX)
		return true;
	addr_to_v6(&ss, g->from);
	(void)pthread_mutex_lock(&h->lock);
	bool may = net_allowed(h->allow, h->allow_cnt, &ss);
	(void)pthread_mutex_unlock(&h->lock);
	return may;
}

/* evhttp reads the end, or fails to write, and frees the connection. */
static void
send_away(struct guard *g)
{
	g->away = true;
	(void)shutdown(bufferevent_getfd(g->bev), SHUT_RDWR);
}

/* Of two clients of one source, a accepted before b: true if b is the one to end. */
static bool
goes_first(const struct guard *a, const struct guard *b, int64_t now)
{
	const bool a_still = a->moved_ms != 0 && now - a->moved_ms >= HTTP_STALL_MS;
	const bool b_still = b->moved_ms != 0 && now - b->moved_ms >= HTTP_STALL_MS;

	if (a_still || b_still)
		return b_still && (!a_still || b->moved_ms < a->moved_ms);
	return a->asked;
}

/* A client of the source that has the most; NULL: there are not too many. */
static struct guard *
one_too_many(struct http *h)
{
	struct guard *goes = NULL;
	unsigned cnt = 0, most = 0;

	for (struct guard *g = h->guards; g < h->guards + h->guard_cnt; g++) {
		unsigned same = 0;

		if (g->away)
			continue;
		cnt++;
		for (const struct guard *o = h->guards; o < h->guards + h->guard_cnt; o++)
			same += !o->away && addr_same_prefix(g->from, o->from, addr_source_bits(g->from));
		if (same > most || (same == most && goes_first(goes, g, clock_ms())))
			goes = g;
		most = same > most ? same : most;
	}
	return cnt > HTTP_CLIENTS_MAX ? goes : NULL;
}

/* Removes guards of freed connections; shuts down clients that may not connect, or whose time is over. */
static void
sweep(struct http *h)
{
	const int64_t now = clock_ms();
	unsigned kept = 0;

	for (unsigned i = 0; i < h->guard_cnt; i++) {
		struct guard *g = &h->guards[i];
		bufferevent_event_cb cb = NULL;

		bufferevent_getcb(g->bev, NULL, NULL, &cb, NULL);
		if (cb == NULL) { /* evhttp has freed its connection */
			bufferevent_decref(g->bev);
			continue;
		}
		if (!g->away && ((!g->known && !may_connect(h, g)) || now >= g->until_ms))
			send_away(g);
		g->known = true;
		const size_t left = evbuffer_get_length(bufferevent_get_output(g->bev));
		if (g->moved_ms != 0 && left < g->left)
			g->moved_ms = now;
		g->left = left;
		h->guards[kept++] = *g;
	}
	h->guard_cnt = kept;
	for (struct guard *g; (g = one_too_many(h)) != NULL;)
		send_away(g);
}

/* libevent answers CONNECT badly or twice, then takes another request: answered and shut down before libevent writes. */
static void
on_input(struct evbuffer *in, const struct evbuffer_cb_info *info, void *arg)
{
	static const char connect[] = "CONNECT";
	static const char no[] = "HTTP/1.1 501 Not Implemented\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
	char method[sizeof(connect) - 1];
	struct http *h = arg;

	if (info->n_added == 0 || evbuffer_copyout(in, method, sizeof(method)) < (ssize_t)sizeof(method) ||
	    memcmp(method, connect, sizeof(method)) != 0)
		return;
	for (struct guard *g = h->guards; g < h->guards + h->guard_cnt; g++)
		if (bufferevent_get_input(g->bev) == in && !g->away) {
			(void)!send(bufferevent_getfd(g->bev), no, sizeof(no) - 1, MSG_NOSIGNAL | MSG_DONTWAIT);
			send_away(g);
		}
}

/* For evhttp: the bufferevent of the next connection. Its descriptor is set after this has returned. */
static struct bufferevent *
new_connection(struct event_base *base, void *arg)
{
	struct http *h = arg;
	struct bufferevent *bev = bufferevent_socket_new(base, -1, BEV_OPT_CLOSE_ON_FREE);

	if (bev == NULL)
		return NULL;
	h->accepts -= h->accepts > 0;
	if (h->accepts == 0 || h->guard_cnt + 1 >= GUARDS_MAX)
		(void)evconnlistener_disable(h->listener);
	bufferevent_setwatermark(bev, EV_READ, 0, 2 * HTTP_REQUEST_BYTES);
	if (h->guard_cnt < GUARDS_MAX) {
		bufferevent_incref(bev);
		(void)evbuffer_add_cb(bufferevent_get_input(bev), on_input, h);
		h->guards[h->guard_cnt++] = (struct guard){ .bev = bev, .until_ms = clock_ms() + HTTP_REQUEST_MS };
	}
	event_active(h->events[EVENT_SOON], EV_TIMEOUT, 1);
	return bev;
}

/* -- answers -- */

/* For libevent: an answer was taken, or its client is gone. */
static void
on_taken(const void *p, size_t len, void *docs)
{
	(void)p;
	(void)len;
	documents_put(docs);
}

/* No more pages are made of the newest; those that were made stay until they are sent. */
static void
forget_docs(struct http *h)
{
	if (h->has_docs) {
		snapshot_fini(&h->docs->seen);
		documents_put(h->docs);
	}
	h->has_docs = false;
}

/* Beyond HTTP_TEXTS_MAX, the clients that do not take the oldest are shut down. */
static void
take_docs(struct http *h, struct documents *docs)
{
	const struct documents *oldest = NULL;
	unsigned cnt = 0;

	forget_docs(h);
	h->has_docs = docs != NULL;
	if (docs != NULL) {
		docs->next = h->docs;
		docs->all = &h->docs;
		docs->uses = 1;
		h->docs = docs;
	}
	for (const struct documents *d = h->docs; d != NULL; d = d->next, cnt++)
		oldest = d;
	for (unsigned i = 0; i < h->guard_cnt && cnt > HTTP_TEXTS_MAX; i++)
		if (h->guards[i].of == oldest && !h->guards[i].away)
			send_away(&h->guards[i]);
}

static struct guard *
guard_of(struct http *h, struct evhttp_request *req)
{
	struct evhttp_connection *conn = evhttp_request_get_connection(req);

	for (unsigned i = 0; i < h->guard_cnt && conn != NULL; i++)
		if (h->guards[i].bev == evhttp_connection_get_bufferevent(conn))
			return &h->guards[i];
	return NULL;
}

/* The body is copied, unless it is shared: then it belongs to the newest documents. */
static void
http_answer(struct http *h, struct evhttp_request *req, struct web_answer a)
{
	struct evkeyvalq *headers = evhttp_request_get_output_headers(req);
	struct evbuffer *body = evbuffer_new();
	struct guard *g = guard_of(h, req);
	char len[24];
	const char *const lines[][2] = {
		{ "Cache-Control", "no-store" },
		{ "Content-Security-Policy",
		    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; frame-ancestors 'none'" },
		{ "X-Content-Type-Options", "nosniff" },
		{ "Referrer-Policy", "no-referrer" },
		{ "Content-Type", a.type },
		{ "Content-Length", len },
		{ "Connection", "close" },
	};

	snprintf(len, sizeof(len), "%zu", a.body.len);
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		(void)evhttp_add_header(headers, lines[i][0], lines[i][1]);
	if (body != NULL && evhttp_request_get_command(req) != EVHTTP_REQ_HEAD) {
		if (!a.shared)
			(void)evbuffer_add(body, a.body.p, a.body.len);
		else if (evbuffer_add_reference(body, a.body.p, a.body.len, on_taken, h->docs) == 0)
			h->docs->uses++;
	}
	if (g != NULL) {
		g->of = a.shared ? h->docs : NULL;
		g->moved_ms = clock_ms();
	}
	evhttp_send_reply(req, a.status, a.reason, body);
	if (body != NULL)
		evbuffer_free(body);
	if (a.owned)
		free(a.body.p);
	if (g != NULL)
		g->left = evbuffer_get_length(bufferevent_get_output(g->bev));
}

static void
answer_all(struct http *h)
{
	for (unsigned i = 0; i < h->waiting_cnt; i++)
		http_answer(h, h->waiting[i].req, web_answer(h->has_docs ? h->docs : NULL, &h->waiting[i].what));
	h->waiting_cnt = 0;
}

/* A page in a browser of this host connects by loopback when its own name resolves to 127.0.0.1. */
static bool
came_by_loopback(const struct guard *g)
{
	struct sockaddr_storage ss = { 0 };
	socklen_t len = sizeof(ss);
	uint8_t v6[16];

	if (getsockname(bufferevent_getfd(g->bev), (struct sockaddr *)&ss, &len) != 0 || ss.ss_family == AF_UNIX)
		return false;
	addr_to_v6(&ss, v6); /* it may be IPv4 in IPv6 */
	addr_from_v6(v6, 0, &ss);
	return addr_is_loopback(&ss);
}

/* WEB_TAKEN: the request waits for its answer. */
static enum web_refusal
take_request(struct http *h, struct evhttp_request *req)
{
	const struct evhttp_uri *uri = evhttp_request_get_evhttp_uri(req);
	const char *path = evhttp_uri_get_path(uri);
	const char *accept = evhttp_find_header(evhttp_request_get_input_headers(req), "Accept");
	const char *host = evhttp_find_header(evhttp_request_get_input_headers(req), "Host");
	struct guard *g = guard_of(h, req);
	struct web_request what;

	if (g == NULL || g->away || !may_connect(h, g))
		return WEB_FORBIDDEN;
	g->asked = true;
	g->until_ms = clock_ms() + HTTP_ANSWER_MS;
	if (came_by_loopback(g) && !web_host_is_near(host))
		return WEB_MISDIRECTED;
	if (h->waiting_cnt == GUARDS_MAX)
		return WEB_BUSY;
	if (!web_find(path != NULL ? path : "", evhttp_uri_get_query(uri), accept, &what))
		return WEB_NOT_FOUND;
	h->waiting[h->waiting_cnt++] = (struct waiting){ .req = req, .what = what };
	return WEB_TAKEN;
}

static void
on_request(struct evhttp_request *req, void *arg)
{
	struct http *h = arg;
	const int64_t now = clock_ms();
	const enum web_refusal why = take_request(h, req);

	if (why != WEB_TAKEN) {
		http_answer(h, req, web_refusal(why));
	} else if (h->has_docs && now - h->docs_ms < HTTP_FRESH_MS) {
		answer_all(h);
	} else if (!h->wanted) {
		h->wanted = true;
		h->wanted_ms = now;
		h->want(h->want_arg);
	}
}

/* -- the thread -- */

static void
on_soon(evutil_socket_t fd, short what, void *arg)
{
	struct http *h = arg;

	(void)fd;
	(void)what;
	sweep(h);
	if (h->waiting_cnt > 0 && h->wanted && clock_ms() - h->wanted_ms >= HTTP_COLLECT_MS) {
		forget_docs(h);
		answer_all(h);
	}
}

static void
on_tick(evutil_socket_t fd, short what, void *arg)
{
	const struct pause_place at = { .now_ns = clock_ms() * NS_PER_MS, .service = "" };
	struct http *h = arg;

	on_soon(fd, what, arg);
	h->accepts = HTTP_ACCEPTS;
	if (h->tried)
		accept_pauses_over(h->pauses, &h->paused, &at);
	if (h->guard_cnt < GUARDS_MAX / 2 + HTTP_CLIENTS_MAX / 2) {
		h->tried = true;
		(void)evconnlistener_enable(h->listener);
	}
}

/* Mostly out of descriptors: clients wait in the backlog until the next tick. */
static void
on_accept_error(struct evconnlistener *listener, void *arg)
{
	const int err = EVUTIL_SOCKET_ERROR();
	const struct pause_place at = { .now_ns = clock_ms() * NS_PER_MS, .service = "" };
	struct http *h = http_of_thread;

	(void)arg;
	(void)evconnlistener_disable(listener);
	h->tried = false;
	accept_pauses_failed(h->pauses, &h->paused, &at, err);
}

static void
on_wake(evutil_socket_t fd, short what, void *arg)
{
	struct http *h = arg;
	uint64_t n;

	(void)what;
	(void)!read(fd, &n, sizeof(n));
	(void)pthread_mutex_lock(&h->lock);
	struct documents *docs = h->delivered;
	bool has = h->has_delivered, stop = h->stop;
	h->delivered = NULL;
	h->has_delivered = false;
	(void)pthread_mutex_unlock(&h->lock);
	if (has) {
		take_docs(h, docs);
		h->docs_ms = clock_ms();
		h->wanted = false;
		answer_all(h);
	}
	if (stop)
		(void)event_base_loopbreak(h->base);
}

static void *
http_run(void *arg)
{
	struct http *h = arg;

	http_of_thread = h;
	(void)event_base_dispatch(h->base);
	/* evhttp would not free requests whose connection is gone. */
	forget_docs(h);
	answer_all(h);
	return NULL;
}

/* Without it libevent writes to stderr and blocks until that is read. */
static void
log_libevent(int severity, const char *msg)
{
	(void)severity;
	log_msg(LOG_LVL_DEBUG, "libevent: %s", msg);
}

int
http_new(int fd, const struct config *cfg, struct accept_pauses *pauses, void (*want)(void *arg), void *arg,
    struct http **out)
{
	const struct timeval every = { .tv_usec = HTTP_TICK_MS * 1000 };
	struct http *h = calloc(1, sizeof(*h));

	if (h == NULL)
		return -ENOMEM;
	h->want = want;
	h->want_arg = arg;
	h->pauses = pauses;
	h->accepts = HTTP_ACCEPTS;
	(void)pthread_mutex_init(&h->lock, NULL);
	event_set_log_callback(log_libevent);
	h->base = event_base_new();
	h->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	h->evhttp = h->base != NULL ? evhttp_new(h->base) : NULL;
	if (http_allow(h, cfg->metrics.allow, cfg->metrics.allow_cnt) != 0 || h->evhttp == NULL || h->wake_fd < 0)
		goto fail;
	h->events[EVENT_WAKE] = event_new(h->base, h->wake_fd, EV_READ | EV_PERSIST, on_wake, h);
	h->events[EVENT_TICK] = event_new(h->base, -1, EV_PERSIST, on_tick, h);
	h->events[EVENT_SOON] = event_new(h->base, -1, 0, on_soon, h);
	for (unsigned i = 0; i < EVENTS; i++)
		if (h->events[i] == NULL ||
		    (i != EVENT_SOON && event_add(h->events[i], i == EVENT_TICK ? &every : NULL) != 0))
			goto fail;
	evhttp_set_allowed_methods(h->evhttp, EVHTTP_REQ_GET | EVHTTP_REQ_HEAD);
	evhttp_set_max_headers_size(h->evhttp, HTTP_REQUEST_BYTES);
	evhttp_set_max_body_size(h->evhttp, 0);
	evhttp_set_timeout(h->evhttp, HTTP_ANSWER_MS / 1000);
	evhttp_set_bevcb(h->evhttp, new_connection, h);
	evhttp_set_gencb(h->evhttp, on_request, h);
	struct evhttp_bound_socket *bound = evhttp_accept_socket_with_handle(h->evhttp, fd);
	if (bound == NULL)
		goto fail;
	h->listener = evhttp_bound_socket_get_listener(bound);
	evconnlistener_set_error_cb(h->listener, on_accept_error);
	*out = h;
	return 0;
fail:
	http_free(h);
	return -ENOMEM;
}

int
http_start(struct http *h)
{
	int err = pthread_create(&h->thread, NULL, http_run, h);

	h->running = err == 0;
	return -err;
}

static void
wake(const struct http *h)
{
	(void)!write(h->wake_fd, &(uint64_t){ 1 }, sizeof(uint64_t));
}

void
http_stop(struct http *h)
{
	if (!h->running)
		return;
	(void)pthread_mutex_lock(&h->lock);
	h->stop = true;
	(void)pthread_mutex_unlock(&h->lock);
	wake(h);
	(void)pthread_join(h->thread, NULL);
	h->running = false;
}

void
http_free(struct http *h)
{
	if (h == NULL)
		return;
	http_stop(h);
	accept_pauses_over(h->pauses, &h->paused, NULL);
	if (h->evhttp != NULL)
		evhttp_free(h->evhttp);
	for (unsigned i = 0; i < h->guard_cnt; i++)
		bufferevent_decref(h->guards[i].bev);
	for (unsigned i = 0; i < EVENTS; i++)
		if (h->events[i] != NULL)
			event_free(h->events[i]);
	/* Runs the frees that libevent defers to its next turn. */
	if (h->base != NULL) {
		(void)event_base_loop(h->base, EVLOOP_NONBLOCK);
		event_base_free(h->base);
	}
	if (h->wake_fd >= 0)
		close(h->wake_fd);
	forget_docs(h);
	documents_free(h->delivered);
	free(h->allow);
	(void)pthread_mutex_destroy(&h->lock);
	free(h);
}

void
http_deliver(struct http *h, struct documents *docs)
{
	(void)pthread_mutex_lock(&h->lock);
	documents_free(h->delivered);
	h->delivered = docs;
	h->has_delivered = true;
	(void)pthread_mutex_unlock(&h->lock);
	wake(h);
}

int
http_allow(struct http *h, const struct config_net *nets, unsigned cnt)
{
	struct config_net *copy = malloc((cnt + 1) * sizeof(*copy));

	if (copy == NULL)
		return -ENOMEM;
	if (cnt > 0)
		memcpy(copy, nets, cnt * sizeof(*copy));
	(void)pthread_mutex_lock(&h->lock);
	struct config_net *old = h->allow;
	h->allow = copy;
	h->allow_cnt = cnt;
	(void)pthread_mutex_unlock(&h->lock);
	free(old);
	return 0;
}
