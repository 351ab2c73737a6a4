/* Load at a given rate, and how long its answers take: GETs of one key of a Redis server, over many connections.
 *
 * The load is open: requests are due at random times (exponential gaps, the same in every run), whether or not earlier ones
 * were answered, and a request's latency counts from when it was due, not from when it could be sent. So the tail has all
 * delayed requests; a program that sends only after an answer would omit them.
 *
 *	open_load HOST PORT CONNECTIONS REQUESTS_PER_SECOND SECONDS KEY
 *
 * Prints one JSON object; ends with status 1 and a word if the connection fails or answers do not come. */
#include <arpa/inet.h>
#include <err.h>
#include <errno.h>
#include <math.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define CONNS_MAX 4096
#define REQUESTS_MAX 50000000u
#define REPEAT 64   /* requests that one send can take at most */
#define ANSWER_S 20 /* the last answers may take so long */
#define NS 1000000000ull

/* Request i goes to connection i % conn_cnt; so a connection's k-th one is known without a queue. */
struct conn {
	int fd;
	bool blocked;       /* its socket took less than it was given */
	uint32_t due, done; /* requests of it */
	uint64_t sent_len, got_len;
};

struct load {
	int ep;
	uint32_t conn_cnt, req_cnt;
	uint32_t answered;
	char request[REPEAT * 128];
	size_t req_len, answer_len;
	uint64_t *due_ns;
	uint32_t *latency_us;
	struct conn conns[CONNS_MAX];
};

static uint64_t
now_ns(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * NS + (uint64_t)ts.tv_nsec;
}

/* A number in (0, 1]. */
static double
uniform(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return (double)((*state >> 11) + 1) / 9007199254740992.0;
}

static void
plan(struct load *l, double rate)
{
	uint64_t state = 88172645463325252ull;
	double at = 0;
	for (uint32_t i = 0; i < l->req_cnt; i++) {
		at -= log(uniform(&state)) / rate;
		l->due_ns[i] = (uint64_t)(at * (double)NS);
	}
}

/* One request and its answer, while the socket still blocks; all answers have the length of this one. */
static size_t
first_answer(const struct load *l, int fd)
{
	char buf[64];
	size_t got = 0, want = SIZE_MAX;
	if (send(fd, l->request, l->req_len, MSG_NOSIGNAL) != (ssize_t)l->req_len)
		err(1, "first request");
	while (got < want) {
		/* As long as the length is not known, the answer's bytes are kept. */
		bool in_head = want == SIZE_MAX;
		char skip[16384];
		size_t room = in_head ? sizeof(buf) - 1 - got : want - got;
		ssize_t n = recv(
		    fd, in_head ? buf + got : skip, in_head || room < sizeof(skip) ? room : sizeof(skip), 0);
		if (n <= 0)
			err(1, "first answer");
		got += (size_t)n;
		if (!in_head)
			continue;
		buf[got] = '\0';
		char *end = strstr(buf, "\r\n");
		if (end != NULL) {
			int value_len = 0;
			if (sscanf(buf, "$%d\r", &value_len) != 1 || value_len < 0)
				errx(1, "the answer is no value: %.40s", buf);
			want = (size_t)(end - buf) + 2 + (size_t)value_len + 2;
		} else if (got == sizeof(buf) - 1) {
			errx(1, "the answer is no value: %.40s", buf);
		}
	}
	return got;
}

static void
open_conns(struct load *l, const char *host, const char *port)
{
	struct sockaddr_in sin = { .sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(port)) };
	if (inet_pton(AF_INET, host, &sin.sin_addr) != 1)
		errx(1, "%s: no IPv4 address", host);
	for (uint32_t i = 0; i < l->conn_cnt; i++) {
		struct conn *c = &l->conns[i];
		struct timeval patience = { .tv_sec = ANSWER_S };
		int on = 1;
		c->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		if (c->fd < 0 || setsockopt(c->fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)) != 0 ||
		    setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) != 0 ||
		    connect(c->fd, (struct sockaddr *)&sin, sizeof(sin)) != 0)
			err(1, "connect to %s:%s", host, port);
		l->answer_len = first_answer(l, c->fd);
		struct epoll_event ev = { .events = EPOLLIN | EPOLLOUT | EPOLLET, .data.u32 = i };
		if (epoll_ctl(l->ep, EPOLL_CTL_ADD, c->fd, &ev) != 0)
			err(1, "epoll_ctl");
	}
}

/* Sends what is due on this connection, as far as its socket takes it. */
static void
conn_send(struct load *l, struct conn *c)
{
	while (!c->blocked && c->sent_len < (uint64_t)c->due * l->req_len) {
		size_t from = (size_t)(c->sent_len % l->req_len);
		uint64_t left = (uint64_t)c->due * l->req_len - c->sent_len;
		size_t len = REPEAT * l->req_len - from;
		ssize_t n = send(
		    c->fd, l->request + from, left < len ? (size_t)left : len, MSG_NOSIGNAL | MSG_DONTWAIT);
		if (n < 0 && errno != EAGAIN)
			err(1, "send");
		c->blocked = n < 0;
		c->sent_len += n > 0 ? (size_t)n : 0;
	}
}

static void
conn_receive(struct load *l, struct conn *c)
{
	static char buf[1 << 16];
	for (;;) {
		ssize_t n = recv(c->fd, buf, sizeof(buf), MSG_DONTWAIT);
		if (n < 0 && errno == EAGAIN)
			return;
		if (n <= 0)
			err(1, "a connection ended");
		uint64_t now = now_ns();
		uint64_t begin = c->got_len;
		c->got_len += (uint64_t)n;
		for (; c->got_len >= (uint64_t)(c->done + 1) * l->answer_len; c->done++, l->answered++) {
			uint64_t first = (uint64_t)c->done * l->answer_len; /* of this answer in the stream */
			if (c->done == c->due || (first >= begin && buf[first - begin] != '$'))
				errx(1, "an unsolicited answer");
			uint32_t i = c->done * l->conn_cnt + (uint32_t)(c - l->conns);
			l->latency_us[i] = (uint32_t)((now - l->due_ns[i]) / 1000);
		}
	}
}

static void
run(struct load *l)
{
	uint64_t start = now_ns() + NS / 100;
	for (uint32_t i = 0; i < l->req_cnt; i++)
		l->due_ns[i] += start;
	uint64_t last = l->due_ns[l->req_cnt - 1] + ANSWER_S * NS;
	uint32_t next = 0;
	while (l->answered < l->req_cnt) {
		uint64_t now = now_ns();
		for (; next < l->req_cnt && l->due_ns[next] <= now; next++) {
			l->conns[next % l->conn_cnt].due++;
			conn_send(l, &l->conns[next % l->conn_cnt]);
		}
		if (now > last)
			errx(1, "%u of %u requests have no answer after %d s", l->req_cnt - l->answered, l->req_cnt,
			    ANSWER_S);
		uint64_t until = next < l->req_cnt ? l->due_ns[next] : last;
		uint64_t wait = until > now ? until - now : 0;
		struct timespec ts = { .tv_sec = (time_t)(wait / NS), .tv_nsec = (long)(wait % NS) };
		struct epoll_event evs[256];
		int n = epoll_pwait2(l->ep, evs, 256, &ts, NULL);
		if (n < 0 && errno != EINTR)
			err(1, "epoll_pwait2");
		for (int i = 0; i < n; i++) {
			struct conn *c = &l->conns[evs[i].data.u32];
			conn_receive(l, c);
			c->blocked = false;
			conn_send(l, c);
		}
	}
}

static int
by_value(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	return (x > y) - (x < y);
}

static double
percentile_ms(const struct load *l, double part)
{
	return (double)l->latency_us[(uint32_t)(part * (double)(l->req_cnt - 1))] / 1000;
}

static double
number(const char *text, double least, double greatest, const char *what)
{
	char *end;
	double x = strtod(text, &end);
	if (end == text || *end != '\0' || !(x >= least && x <= greatest))
		errx(1, "%s: %s is a number from %g to %g", text, what, least, greatest);
	return x;
}

int
main(int argc, char **argv)
{
	static struct load l;
	if (argc != 7 || strlen(argv[6]) > 64)
		errx(1, "usage: open_load HOST PORT CONNECTIONS REQUESTS_PER_SECOND SECONDS KEY");
	l.conn_cnt = (uint32_t)number(argv[3], 1, CONNS_MAX, "connections");
	double rate = number(argv[4], 1, 10e6, "requests per second");
	l.req_cnt = (uint32_t)fmax(1, fmin(REQUESTS_MAX, rate * number(argv[5], 0.1, 3600, "seconds")));
	l.due_ns = calloc(l.req_cnt, sizeof(*l.due_ns));
	l.latency_us = calloc(l.req_cnt, sizeof(*l.latency_us));
	l.ep = epoll_create1(EPOLL_CLOEXEC);
	if (l.due_ns == NULL || l.latency_us == NULL || l.ep < 0)
		err(1, "start");
	l.req_len = (size_t)snprintf(l.request, 128, "*2\r\n$3\r\nGET\r\n$%zu\r\n%s\r\n", strlen(argv[6]), argv[6]);
	for (size_t i = 1; i < REPEAT; i++)
		memcpy(l.request + i * l.req_len, l.request, l.req_len);
	(void)prctl(PR_SET_TIMERSLACK, 1ul);
	plan(&l, rate);
	open_conns(&l, argv[1], argv[2]);
	run(&l);
	qsort(l.latency_us, l.req_cnt, sizeof(*l.latency_us), by_value);
	printf(
	    "{\"requests\": %u, \"rate\": %.0f, \"p50_ms\": %.3f, \"p99_ms\": %.3f, \"p999_ms\": %.3f, \"max_ms\": %.3f}\n",
	    l.req_cnt, rate, percentile_ms(&l, 0.5), percentile_ms(&l, 0.99), percentile_ms(&l, 0.999),
	    percentile_ms(&l, 1));
	return 0;
}
