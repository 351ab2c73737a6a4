/* Advice about a configuration: see process/preflight.h. */
#include "daemon/process/preflight.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/addr.h"
#include "base/clock.h"
#include "daemon/loop/loop.h"
#include "daemon/names/resolver.h"
#include "daemon/net/net.h"

/* -- access and names -- */

static void
look_at_access(const struct config *cfg, const struct config_service *svc, FILE *out)
{
	char listen[ADDR_STR_MAX], to[CONFIG_TO_STR_MAX];

	if (svc->client_address == CONFIG_CLIENT_CONNECT &&
	    (svc->secure == CONFIG_SECURE_OFF || svc->secure == CONFIG_SECURE_ACCEPT))
		config_advise(cfg, svc->place, out,
		    "egress \"%s\" connects by addresses of clients that peers name, whose own names are not proven: see secure",
		    svc->name);
	if (svc->to_word == CONFIG_TO_REQUESTED &&
	    (svc->secure == CONFIG_SECURE_OFF || svc->secure == CONFIG_SECURE_ACCEPT))
		config_advise(cfg, svc->place, out,
		    "egress \"%s\" connects where peers want, whose own names are not proven: see secure", svc->name);
	if (!addr_is_exposed(&svc->listen) || svc->allow_cnt > 0)
		return;
	config_advise(cfg, svc->place, out, "%s \"%s\" has no allow list: any client that reaches %s can connect to %s",
	    config_kind_words[svc->kind], svc->name, addr_format_port(&svc->listen, listen, sizeof(listen)),
	    config_to_str(svc, to));
}

/* Reported once, for the first name. */
static void
preflight_look_at_names(const struct config *cfg, FILE *out)
{
	char to[CONFIG_TARGET_STR_MAX];

	for (unsigned i = 0; i < cfg->service_cnt && !config_names_wait(); i++) {
		const struct config_service *svc = &cfg->services[i];

		for (unsigned k = 0; k < svc->to_cnt; k++) {
			if (config_target_is_literal(&svc->to[k]))
				continue;
			config_advise(cfg, svc->place, out,
			    "names, like %s of %s \"%s\", are looked up at start and at a reload only: "
			    "this smcrd was built without c-ares",
			    config_target_str(&svc->to[k], to), config_kind_words[svc->kind], svc->name);
			return;
		}
	}
}

/* -- SRV records -- */

/* The SRV records of a target. Other names were looked up when the file was read. */
struct record {
	const struct config_service *svc;
	const struct config_target *to;
	struct records *all;
	struct resolver_answer answer;
};

struct records {
	struct record *at; /* NULL: no records, or out of memory */
	unsigned cnt, left;
	bool too_many;
	struct loop *loop;
	struct resolver *resolver;
	int64_t end_ns;
};

static void
add_records(const struct config_service *svc, struct records *records)
{
	for (unsigned i = 0; i < svc->to_cnt; i++) {
		if (!svc->to[i].srv)
			continue;
		if (records->at == NULL)
			records->at = calloc(PREFLIGHT_RECORDS_MAX, sizeof(*records->at));
		if (records->at == NULL || records->cnt == PREFLIGHT_RECORDS_MAX) {
			records->too_many = true;
			return;
		}
		records->at[records->cnt++] = (struct record){ .svc = svc, .to = &svc->to[i], .all = records };
	}
}

static void
on_answer(void *arg, const struct resolver_answer *answer)
{
	struct record *r = arg;

	r->answer = *answer;
	r->all->left--;
}

static int64_t
turn(void *arg, int64_t now_ns)
{
	struct records *records = arg;
	int64_t next = resolver_turn(records->resolver, now_ns);

	if (records->left == 0 || now_ns >= records->end_ns)
		loop_stop(records->loop);
	return next < records->end_ns ? next : records->end_ns;
}

static void
ask_for_records(struct records *records, unsigned wait_ms)
{
	records->loop = loop_new();
	int rc = records->loop != NULL ? resolver_new(records->loop, &records->resolver) : -ENOMEM;
	if (rc == 0)
		rc = loop_add_turn(records->loop, turn, records);
	if (rc == 0) {
		records->end_ns = loop_now(records->loop) + (int64_t)wait_ms * 1000000;
		records->left = records->cnt;
		for (unsigned i = 0; i < records->cnt; i++)
			resolver_ask(records->resolver, records->at[i].to->host, true, 0, on_answer, &records->at[i]);
		rc = loop_run(records->loop);
	}
	for (unsigned i = 0; i < records->cnt; i++)
		if (records->at[i].answer.cnt == 0 && records->at[i].answer.why == NULL)
			records->at[i].answer.why = rc != 0 ? strerror(-rc) : "no name server has answered yet";
}

/* Of all services, also of ingress services: a query to a name server disturbs no peer. */
static void
look_at_records(const struct config *cfg, unsigned wait_ms, struct records *records, FILE *out)
{
	char to[CONFIG_TARGET_STR_MAX];

	for (unsigned i = 0; i < cfg->service_cnt; i++)
		add_records(&cfg->services[i], records);
	if (records->cnt > 0)
		ask_for_records(records, wait_ms);
	for (unsigned i = 0; i < records->cnt; i++)
		if (records->at[i].answer.why != NULL)
			config_advise(cfg, records->at[i].svc->place, out,
			    "%s \"%s\": cannot resolve %s now: %s; it waits until the name is there",
			    config_kind_words[records->at[i].svc->kind], records->at[i].svc->name,
			    config_target_str(records->at[i].to, to), records->at[i].answer.why);
	if (records->too_many)
		config_advise(cfg, 0, out, "not all SRV records were looked up: they are too many");
}

/* -- servers -- */

/* Addresses of servers. */
struct tries {
	struct attempt {
		const struct config_service *svc;
		const struct config_target *to;
		int fd; /* -1 = over */
		int err;
	} at[PREFLIGHT_SERVERS_MAX];
	unsigned cnt;
};

static void
end_try(struct attempt *t, int err)
{
	close(t->fd);
	t->fd = -1;
	t->err = err;
}

/* False: there is no space for its addresses. */
static bool
begin_target(const struct config *cfg, const struct config_service *svc, const struct config_target *to,
    const struct records *records, struct tries *tries)
{
	const struct record *r = NULL;

	for (unsigned i = 0; i < records->cnt && r == NULL; i++)
		r = records->at[i].to == to ? &records->at[i] : NULL;
	unsigned cnt = r != NULL ? r->answer.cnt : to->addr_cnt;
	if (cnt > PREFLIGHT_SERVERS_MAX - tries->cnt)
		return false;
	for (unsigned i = 0; i < cnt; i++) {
		const struct sockaddr_storage *addr = r != NULL ? &r->answer.addrs[i].ss : &to->addrs[i];
		struct attempt *t = &tries->at[tries->cnt++];
		int fd = net_connect(addr, NULL, &cfg->keepalive, NULL, NULL);

		*t = (struct attempt){ .svc = svc, .to = to, .fd = fd < 0 ? -1 : fd, .err = fd < 0 ? -fd : 0 };
	}
	return true;
}

/* Connects to servers in the order of the file, as far as there is space. Returns the first service that is left out; NULL. */
static const struct config_service *
begin_tries(const struct config *cfg, const struct records *records, struct tries *tries)
{
	for (unsigned i = 0; i < cfg->service_cnt; i++) {
		const struct config_service *svc = &cfg->services[i];

		if (svc->kind != CONFIG_EGRESS)
			continue;
		for (unsigned k = 0; k < svc->to_cnt; k++)
			if (!begin_target(cfg, svc, &svc->to[k], records, tries))
				return svc;
	}
	return NULL;
}

/* Until all have ended, or for wait_ms. */
static void
await_tries(struct tries *tries, unsigned wait_ms)
{
	const int64_t end = clock_ms() + wait_ms;
	struct pollfd fds[PREFLIGHT_SERVERS_MAX];
	unsigned left = 1;

	while (left > 0) {
		int64_t rest = end - clock_ms();

		left = 0;
		for (unsigned i = 0; i < tries->cnt; i++) {
			fds[i] = (struct pollfd){ .fd = tries->at[i].fd, .events = POLLOUT };
			left += tries->at[i].fd >= 0;
		}
		int n = left > 0 ? poll(fds, tries->cnt, rest > 0 ? (int)rest : 0) : 0;
		if (n < 0 && errno != EINTR)
			break;
		for (unsigned i = 0; i < tries->cnt && n > 0; i++)
			if (fds[i].fd >= 0 && fds[i].revents != 0)
				end_try(&tries->at[i], net_error(fds[i].fd));
		if (n == 0 && rest <= 0)
			break;
	}
	for (unsigned i = 0; i < tries->cnt; i++)
		if (tries->at[i].fd >= 0)
			end_try(&tries->at[i], ETIMEDOUT);
}

/* A server is available when one of its addresses is; otherwise the error of the last one is reported. */
static void
tell_tries(const struct config *cfg, const struct tries *tries, FILE *out)
{
	char to[CONFIG_TARGET_STR_MAX];
	bool there = false;

	for (unsigned i = 0; i < tries->cnt; i++) {
		const struct attempt *t = &tries->at[i];

		there = there || t->err == 0;
		if (i + 1 < tries->cnt && tries->at[i + 1].svc == t->svc && tries->at[i + 1].to == t->to)
			continue;
		if (!there)
			config_advise(cfg, t->svc->place, out,
			    "egress \"%s\": its server %s cannot be connected now: %s", t->svc->name,
			    config_target_str(t->to, to),
			    t->err == ETIMEDOUT ? "it does not answer" : strerror(t->err));
		there = false;
	}
}

static void
look_at_servers(const struct config *cfg, const struct records *records, unsigned wait_ms, FILE *out)
{
	struct tries tries = { .cnt = 0 };
	const struct config_service *rest = begin_tries(cfg, records, &tries);

	await_tries(&tries, wait_ms);
	tell_tries(cfg, &tries, out);
	if (rest != NULL)
		config_advise(cfg, rest->place, out,
		    "servers of egress \"%s\" and of those behind it were not tried: they are too many", rest->name);
}

void
preflight_print(const struct config *cfg, unsigned wait_ms, FILE *out)
{
	const struct sockaddr_storage *metrics = &cfg->metrics.listen;
	struct records records = { .cnt = 0 };
	char text[ADDR_STR_MAX];

	if (cfg->service_cnt == 0)
		config_advise(cfg, 0, out, "no ingress and no egress: nothing to do");
	if (addr_is_exposed(metrics) && cfg->metrics.allow_cnt == 0)
		config_advise(cfg, 0, out, "metrics has no allow list: any client that reaches %s can read it",
		    addr_format_port(metrics, text, sizeof(text)));
	for (unsigned i = 0; i < cfg->service_cnt; i++)
		look_at_access(cfg, &cfg->services[i], out);
	preflight_look_at_names(cfg, out);
	look_at_records(cfg, wait_ms, &records, out);
	look_at_servers(cfg, &records, wait_ms, out);
	resolver_free(records.resolver);
	loop_free(records.loop);
	free(records.at);
}
