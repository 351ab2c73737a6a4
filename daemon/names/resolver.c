/* Name look-ups by c-ares; see resolver.h. Called by names.c. */
#include "daemon/names/resolver.h"

#include <ares.h>
#include <arpa/nameser.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/addr.h"
#include "base/list.h"
#include "base/minmax.h"

/* Per name server: 2 s and then 4 s. c-ares' defaults add up to 75 s, which is long for a waiting service. */
#define TRIES 2
#define TIMEOUT_MS 2000
#define FILE_TTL_S 60 /* of an entry of /etc/hosts */
#define ROUNDS 64     /* of a socket, per turn */
#define SOCKS_A_TURN 32
#define SRV_HOSTS_MAX 16

static const char resolv_conf[] = "/etc/resolv.conf";

/* A socket of c-ares. */
struct sock {
	struct loop_io io;
	struct list_node node;
	struct resolver *r;
	bool writes; /* waits until it is writable */
};

struct resolver {
	struct loop *loop;
	ares_channel channel; /* NULL: not open */
	struct list_node socks;
	struct timespec conf; /* modification time of resolv.conf */
	ino_t conf_ino;
	unsigned under_way; /* queries */
	bool more;          /* a socket has unread data */
};

struct host {
	char name[CONFIG_HOST_MAX];
	uint16_t port, priority, weight;
};

/* A look-up. */
struct query {
	struct resolver *r;
	resolver_done done;
	void *arg;
	bool srv;
	struct host hosts[SRV_HOSTS_MAX]; /* of SRV records, by priority; otherwise the name itself */
	unsigned host_cnt, host;          /* the one whose addresses are looked up */
	struct resolver_answer answer;
};

/* -- sockets on the loop -- */

/* The loop reports edges, and c-ares may leave data unread. */
static void
serve(struct resolver *r, int fd)
{
	for (unsigned i = 0; i < ROUNDS; i++) {
		const struct sock *s = LIST_FIND(struct sock, it, &r->socks, node, it->io.fd == fd);

		if (s == NULL)
			return;
		struct pollfd p = { .fd = fd, .events = (short)(POLLIN | (s->writes ? POLLOUT : 0)) };
		if (poll(&p, 1, 0) <= 0)
			return;
		ares_process_fd(r->channel, (p.revents & ~POLLOUT) != 0 ? fd : ARES_SOCKET_BAD,
		    (p.revents & POLLOUT) != 0 ? fd : ARES_SOCKET_BAD);
	}
	r->more = true;
	loop_again(r->loop);
}

/* Serving one may close others, so they are found by number. */
static void
serve_all(struct resolver *r)
{
	int fds[SOCKS_A_TURN];
	unsigned cnt = 0;

	r->more = false;
	LIST_EACH(struct sock, s, &r->socks, node)
		if (cnt < SOCKS_A_TURN)
			fds[cnt++] = s->io.fd;
	while (cnt > 0)
		serve(r, fds[--cnt]);
}

static void
on_sock(struct loop_io *io, unsigned events)
{
	(void)events;
	serve(CONTAINER_OF(io, struct sock, io)->r, io->fd);
}

/* c-ares waits for these events of a socket from now on; with no event it closes the socket. */
static void
on_sock_state(void *arg, ares_socket_t fd, int readable, int writable)
{
	struct resolver *r = arg;
	struct sock *s = LIST_FIND(struct sock, it, &r->socks, node, it->io.fd == fd);

	if (!readable && !writable) {
		if (s == NULL)
			return;
		loop_del(r->loop, &s->io);
		list_remove(&s->node);
		free(s);
		return;
	}
	if (s == NULL) {
		/* Without memory the answer is not read, and the query ends by its timeout. */
		s = calloc(1, sizeof(*s));
		if (s == NULL)
			return;
		s->r = r;
		s->io = (struct loop_io){ .fd = fd, .cb = on_sock };
		if (loop_add(r->loop, &s->io) != 0) {
			free(s);
			return;
		}
		list_push(&r->socks, &s->node);
	}
	s->writes = writable != 0;
}

/* -- the channel -- */

/* Has resolv.conf changed since the last check? */
static bool
conf_changed(struct resolver *r)
{
	struct stat st = { .st_ino = 0 };

	(void)stat(resolv_conf, &st);
	bool same = st.st_ino == r->conf_ino && st.st_mtim.tv_sec == r->conf.tv_sec &&
	    st.st_mtim.tv_nsec == r->conf.tv_nsec;
	r->conf = st.st_mtim;
	r->conf_ino = st.st_ino;
	return !same;
}

static bool
open_channel(struct resolver *r)
{
	struct ares_options options = {
		.tries = TRIES, .timeout = TIMEOUT_MS, .sock_state_cb = on_sock_state, .sock_state_cb_data = r
	};

	(void)conf_changed(r);
	int rc = ares_init_options(&r->channel, &options, ARES_OPT_TRIES | ARES_OPT_TIMEOUTMS | ARES_OPT_SOCK_STATE_CB);
	if (rc != ARES_SUCCESS)
		r->channel = NULL;
	return r->channel != NULL;
}

static void
close_channel(struct resolver *r)
{
	if (r->channel != NULL)
		ares_destroy(r->channel);
	r->channel = NULL;
}

int
resolver_new(struct loop *loop, struct resolver **out)
{
	struct resolver *r = calloc(1, sizeof(*r));

	if (r == NULL)
		return -ENOMEM;
	r->loop = loop;
	list_init(&r->socks);
	if (ares_library_init(ARES_LIB_INIT_ALL) != ARES_SUCCESS) {
		free(r);
		return -ENOMEM;
	}
	*out = r;
	return 0;
}

void
resolver_free(struct resolver *r)
{
	if (r == NULL)
		return;
	close_channel(r);
	ares_library_cleanup();
	free(r);
}

/* -- answers -- */

static const char *
status_words(int status)
{
	static const char *const words[] = {
		[ARES_ENOTFOUND] = "NXDOMAIN, there is no such name",
		[ARES_ENODATA] = "NODATA, the name has no such record",
		[ARES_ESERVFAIL] = "SERVFAIL, the name server has failed",
		[ARES_EREFUSED] = "REFUSED, the name server does not answer this host",
		[ARES_ETIMEOUT] = "timeout, no name server answers",
		/* c-ares 1.18 returns it when all servers failed, for any reason. */
		[ARES_ECONNREFUSED] = "no name server can be reached, or they answer SERVFAIL or REFUSED",
		[ARES_EBADRESP] = "a malformed answer of the name server",
		[ARES_EFORMERR] = "a malformed answer of the name server",
		[ARES_ECANCELLED] = "the look-up was cancelled",
		[ARES_EDESTRUCTION] = "the look-up was cancelled",
	};
	const size_t cnt = sizeof(words) / sizeof(words[0]);

	return (size_t)status < cnt && words[status] != NULL ? words[status] : ares_strerror(status);
}

static void
resolver_finish(struct query *q, const char *why)
{
	q->r->under_way--;
	q->answer.why = q->answer.cnt > 0 ? NULL : q->answer.left_out_cnt > 0 ? config_only_special : why;
	q->done(q->arg, &q->answer);
	free(q);
}

static void
lasts_for(struct query *q, uint32_t ttl_s)
{
	q->answer.ttl_s = q->answer.lasts ? min_u32(q->answer.ttl_s, ttl_s) : ttl_s;
	q->answer.lasts = true;
}

static void
on_negative(void *arg, int status, int timeouts, unsigned char *msg, int len)
{
	struct query *q = arg;
	uint32_t ttl_s;

	(void)timeouts;
	if (len > 0 && dns_negative_ttl(msg, (size_t)len, &ttl_s))
		lasts_for(q, ttl_s);
	resolver_finish(q, status_words(status == ARES_SUCCESS ? ARES_ENODATA : status));
}

/* ::ffff:127.0.0.1 is 127.0.0.1. */
static void
plain_v4(struct sockaddr_storage *addr)
{
	struct in6_addr v6;

	addr_to_v6(addr, v6.s6_addr);
	if (addr->ss_family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(&v6))
		addr_from_v6(v6.s6_addr, 0, addr);
}

/* Answers mixed with records of another kind are left out. */
static void
add_addrs(struct query *q, const struct ares_addrinfo *res)
{
	const struct host *from = &q->hosts[q->host];
	uint32_t ttl_s = UINT32_MAX;

	for (const struct ares_addrinfo_cname *c = res->cnames; c != NULL; c = c->next)
		ttl_s = min_u32(ttl_s, (uint32_t)(c->ttl > 0 ? c->ttl : 0));
	for (const struct ares_addrinfo_node *n = res->nodes; n != NULL; n = n->ai_next) {
		struct target_addr a = { .priority = from->priority, .weight = from->weight };

		if ((n->ai_family != AF_INET && n->ai_family != AF_INET6) || q->answer.cnt == CONFIG_TARGET_ADDRS_MAX)
			continue;
		memcpy(&a.ss, n->ai_addr, (size_t)n->ai_addrlen);
		plain_v4(&a.ss);
		addr_set_port(&a.ss, from->port);
		/* A name of the configuration may be one of the host; the name server chooses that of an SRV record. */
		if (config_addr_is_special(&a.ss) &&
		    (addr_is_any(&a.ss) || q->srv || !config_name_is_this_hosts(from->name))) {
			if (q->answer.left_out_cnt++ == 0)
				q->answer.left_out = a.ss;
			continue;
		}
		q->answer.addrs[q->answer.cnt++] = a;
		ttl_s = min_u32(ttl_s, (uint32_t)(n->ai_ttl > 0 ? n->ai_ttl : 0));
	}
	if (ttl_s == 0 && config_name_is_this_hosts(from->name))
		ttl_s = FILE_TTL_S;
	if (ttl_s != UINT32_MAX)
		lasts_for(q, ttl_s);
}

static void ask_host(struct query *);

static void
on_addrs(void *arg, int status, int timeouts, struct ares_addrinfo *res)
{
	struct query *q = arg;
	unsigned before = q->answer.cnt;
	bool ending = status == ARES_EDESTRUCTION || status == ARES_ECANCELLED;

	(void)timeouts;
	if (status == ARES_SUCCESS) {
		add_addrs(q, res);
		ares_freeaddrinfo(res);
		if (q->answer.cnt == before)
			status = ARES_ENODATA;
	}
	if (!ending && ++q->host < q->host_cnt && q->answer.cnt < CONFIG_TARGET_ADDRS_MAX)
		ask_host(q);
	else if (q->answer.cnt > 0 || q->answer.left_out_cnt > 0)
		resolver_finish(q, NULL);
	else if (q->srv || (status != ARES_ENOTFOUND && status != ARES_ENODATA))
		resolver_finish(q, status_words(status));
	else /* the lifetime of a negative answer is in the message, which c-ares shows only for a single question */
		ares_query(q->r->channel, q->hosts[0].name, C_IN, T_A, on_negative, q);
}

static void
ask_host(struct query *q)
{
	const struct ares_addrinfo_hints hints = { .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM };

	ares_getaddrinfo(q->r->channel, q->hosts[q->host].name, NULL, &hints, on_addrs, q);
}

/* -- SRV records (RFC 2782) -- */

static void
take_hosts(struct query *q, const struct ares_srv_reply *list)
{
	for (const struct ares_srv_reply *s = list; s != NULL && q->host_cnt < SRV_HOSTS_MAX; s = s->next) {
		unsigned at = q->host_cnt;

		/* The root: the service explicitly does not exist. */
		if (s->host[0] == '\0' || strcmp(s->host, ".") == 0 || strlen(s->host) >= CONFIG_HOST_MAX ||
		    s->port == 0)
			continue;
		for (; at > 0 && q->hosts[at - 1].priority > s->priority; at--)
			q->hosts[at] = q->hosts[at - 1];
		q->hosts[at] = (struct host){ .port = s->port, .priority = s->priority, .weight = s->weight };
		strcpy(q->hosts[at].name, s->host);
		q->host_cnt++;
	}
}

static void
on_srv(void *arg, int status, int timeouts, unsigned char *msg, int len)
{
	struct query *q = arg;
	struct ares_srv_reply *list = NULL;
	uint32_t ttl_s;

	(void)timeouts;
	if (status == ARES_SUCCESS)
		status = ares_parse_srv_reply(msg, len, &list);
	if (status == ARES_SUCCESS) {
		take_hosts(q, list);
		ares_free_data(list);
		if (dns_answer_ttl(msg, (size_t)len, &ttl_s))
			lasts_for(q, ttl_s);
	} else if (len > 0 && dns_negative_ttl(msg, (size_t)len, &ttl_s)) {
		lasts_for(q, ttl_s);
	}
	if (q->host_cnt > 0)
		ask_host(q);
	else
		resolver_finish(q, status == ARES_SUCCESS ? "its SRV records name no host" : status_words(status));
}

void
resolver_ask(struct resolver *r, const char *name, bool srv, uint16_t port, resolver_done done, void *arg)
{
	const struct resolver_answer failed = { .why = "the resolver cannot be set up" };
	struct query *q = calloc(1, sizeof(*q));

	/* A channel in use is replaced once it is idle. */
	if (r->channel != NULL && r->under_way == 0 && conf_changed(r))
		close_channel(r);
	if (q == NULL || strlen(name) >= CONFIG_HOST_MAX || (r->channel == NULL && !open_channel(r))) {
		free(q);
		done(arg, &failed);
		return;
	}
	*q = (struct query){ .r = r, .done = done, .arg = arg, .srv = srv };
	r->under_way++;
	if (srv) {
		ares_query(r->channel, name, C_IN, T_SRV, on_srv, q);
		return;
	}
	q->hosts[q->host_cnt++].port = port;
	strcpy(q->hosts[0].name, name);
	ask_host(q);
}

int64_t
resolver_turn(struct resolver *r, int64_t now_ns)
{
	struct timeval tv, *next;

	if (r->channel == NULL || r->under_way == 0)
		return INT64_MAX;
	if (r->more)
		serve_all(r);
	ares_process_fd(r->channel, ARES_SOCKET_BAD, ARES_SOCKET_BAD);
	next = ares_timeout(r->channel, NULL, &tv);
	if (next == NULL)
		return INT64_MAX;
	return now_ns + next->tv_sec * INT64_C(1000000000) + (next->tv_usec + 1000) * INT64_C(1000);
}
