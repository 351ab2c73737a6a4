/* Connections that wait for their PROXY header; see arrival.h. */
#include "daemon/service/arrival.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "daemon/leg/proxy_header.h"
#include "daemon/service/service.h"

#define HEADER_MS 3000
#define ARRIVALS_MAX 4096 /* of a worker */

struct arrival {
	struct loop_io io;
	struct list_node node; /* pool->arrivals */
	struct service *svc;   /* counted */
	struct timer timer;
	struct sockaddr_storage source;
};

/* What a look at the first bytes has found. */
enum arrival_step {
	STEP_WAIT,
	STEP_ADMIT,
	STEP_REFUSE,
	STEP_GONE, /* closed before a byte, as health checks do */
};

bool
arrival_expected(const struct service *svc, const struct sockaddr_storage *source)
{
	const struct config_service *cfg = &svc->settings->cfg;

	return cfg->accept_proxy_cnt > 0 && source->ss_family != AF_UNIX &&
	    net_allowed(cfg->accept_proxy, cfg->accept_proxy_cnt, source);
}

/* Consumes the header alone: what follows is the client's. */
static enum arrival_step
arrival_look(int fd, bool ended, struct sockaddr_storage *client, const char **why)
{
	uint8_t buf[PROXY_READ_MAX];
	const ssize_t n = recv(fd, buf, sizeof(buf), MSG_PEEK);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return STEP_WAIT;
	if (n <= 0)
		return STEP_GONE;
	const int rc = proxy_header_decode((struct span){ buf, (size_t)n }, client, why);
	if (rc > 0)
		return recv(fd, buf, (size_t)rc, 0) == rc ? STEP_ADMIT : STEP_GONE;
	if (rc == 0 && !ended)
		return STEP_WAIT;
	if (rc == 0)
		*why = "the connection ended within the PROXY header";
	return STEP_REFUSE;
}

static void
arrival_finish(struct service *svc, int fd, const struct sockaddr_storage *source, enum arrival_step step,
    const struct sockaddr_storage *client, const char *why)
{
	union net_addr from;

	if (step == STEP_GONE || svc->settings == NULL) {
		net_reset(fd);
	} else if (step == STEP_ADMIT) {
		listener_admit(svc, fd, source, client->ss_family != AF_UNSPEC ? client : source);
	} else {
		net_addr_set(&from, source);
		svc->ctr.accepted++;
		listener_refuse(svc, fd, &from, why, &svc->ctr.refused_header);
	}
}

static void
leave(struct arrival *a, enum arrival_step step, const struct sockaddr_storage *client, const char *why)
{
	struct service *svc = a->svc;
	struct env *env = svc->pool->env;
	const int fd = a->io.fd;

	loop_del(env->loop, &a->io);
	timer_cancel(&env->timers, &a->timer);
	timerq_unreserve(&env->timers, 1);
	list_remove(&a->node);
	svc->pool->arrivals_cnt--;
	arrival_finish(svc, fd, &a->source, step, client, why);
	service_put(svc);
	free(a);
	/* A draining worker may have waited for this one. */
	loop_again(env->loop);
}

static void
on_bytes(struct loop_io *io, unsigned events)
{
	struct arrival *a = CONTAINER_OF(io, struct arrival, io);
	struct sockaddr_storage client;
	const char *why = NULL;
	const enum arrival_step step = arrival_look(io->fd, (events & (LOOP_RDHUP | LOOP_HUP)) != 0, &client, &why);

	if (step != STEP_WAIT)
		leave(a, step, &client, why);
}

static void
on_no_header(struct timer *t)
{
	leave(CONTAINER_OF(t, struct arrival, timer), STEP_REFUSE, NULL, "no PROXY header within 3 s");
}

/* NULL: out of memory, or too many wait; takes nothing. */
static struct arrival *
arrival_new(struct service *svc, int fd, const struct sockaddr_storage *source)
{
	struct env *env = svc->pool->env;
	struct arrival *a = svc->pool->arrivals_cnt < ARRIVALS_MAX ? malloc(sizeof(*a)) : NULL;

	if (a == NULL || timerq_reserve(&env->timers, 1) != 0) {
		free(a);
		return NULL;
	}
	*a = (struct arrival){ .io = { .fd = fd, .cb = on_bytes }, .svc = svc, .source = *source };
	timer_init(&a->timer, on_no_header);
	list_init(&a->node);
	if (loop_add(env->loop, &a->io) == 0)
		return a;
	timerq_unreserve(&env->timers, 1);
	free(a);
	return NULL;
}

void
arrival_start(struct service *svc, int fd, const struct sockaddr_storage *source)
{
	struct sockaddr_storage client;
	const char *why = NULL;
	enum arrival_step step = arrival_look(fd, false, &client, &why);
	struct arrival *a = step == STEP_WAIT ? arrival_new(svc, fd, source) : NULL;

	if (a == NULL) {
		if (step == STEP_WAIT)
			why = "too many connections wait for their PROXY header";
		arrival_finish(svc, fd, source, step != STEP_WAIT ? step : STEP_REFUSE, &client, why);
		return;
	}
	svc->refs++;
	svc->pool->arrivals_cnt++;
	list_push(&svc->pool->arrivals, &a->node);
	env_arm(svc->pool->env, &a->timer, HEADER_MS);
}

void
arrivals_stop(struct session_pool *pool)
{
	struct list_node *first;

	while ((first = list_first(&pool->arrivals)) != NULL)
		leave(CONTAINER_OF(first, struct arrival, node), STEP_GONE, NULL, NULL);
}
