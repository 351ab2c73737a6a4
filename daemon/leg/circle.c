/* Detection of circles of services; see circle.h. Called by session*.c and leg.c. */
#include "daemon/leg/circle.h"

#include <assert.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/addr.h"
#include "base/hash.h"
#include "base/minmax.h"
#include "daemon/state/session_state.h"

/* -- origins -- */

static uint32_t
mix_addr(uint32_t hash, const struct sockaddr_storage *ss)
{
	uint8_t bytes[18];

	addr_to_v6(ss, bytes);
	bytes[16] = (uint8_t)(addr_port(ss) >> 8);
	bytes[17] = (uint8_t)addr_port(ss);
	return hash_mix(hash, bytes, sizeof(bytes));
}

/* Hash of both ends of a TCP connection, as several may share a local port. 0: not a TCP connection. */
static uint32_t
origin_of(const struct circles *all, const struct sockaddr_storage *from, const struct sockaddr_storage *to)
{
	if ((from->ss_family != AF_INET && from->ss_family != AF_INET6) || to->ss_family != from->ss_family)
		return 0;
	uint32_t hash = mix_addr(mix_addr(addr_is_loopback(to) ? all->host : HASH_START, from), to);
	return hash != 0 ? hash : 1;
}

void
circles_init(struct circles *all)
{
	char boot[64] = "";
	struct stat st = { 0 };
	int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);

	if (fd >= 0) {
		(void)!read(fd, boot, sizeof(boot));
		close(fd);
	}
	(void)stat("/proc/self/ns/net", &st);
	*all = (struct circles){ 0 };
	all->host = hash_mix(hash_mix(HASH_START, boot, sizeof(boot)), &st.st_ino, sizeof(st.st_ino));
	(void)pthread_mutex_init(&all->lock, NULL);
	(void)pthread_rwlock_init(&all->connecting, NULL);
}

void
circles_fini(struct circles *all)
{
	for (unsigned i = 0; i < CIRCLE_PLACES; i++)
		assert(all->at[i] == NULL);
	(void)pthread_mutex_destroy(&all->lock);
	(void)pthread_rwlock_destroy(&all->connecting);
}

/* -- the table -- */

/* A leg whose connect() is in progress is not in the table yet: its far end, on this host, may be quicker. */
static void
wait_for_connects(const struct session *s, const struct sockaddr_storage *from, const struct sockaddr_storage *at)
{
	struct circles *all = s->pool->place.circles;

	if (s->pool->place.cnt == 1 || (s->way == NULL && !addr_is_loopback(from) && !addr_same_host(at, from)))
		return;
	(void)pthread_rwlock_wrlock(&all->connecting);
	(void)pthread_rwlock_unlock(&all->connecting);
}

/* Of the leg that the session comes from, at these addresses. 0: not a leg of this process. */
static unsigned
hops_from(
    const struct session *s, uint32_t origin, const struct sockaddr_storage *from, const struct sockaddr_storage *at)
{
	struct circles *all = s->pool->place.circles;
	unsigned hops = 0;

	if (origin == 0)
		return 0;
	wait_for_connects(s, from, at);
	(void)pthread_mutex_lock(&all->lock);
	for (const struct circle_leg *l = all->at[origin % CIRCLE_PLACES]; l != NULL; l = l->next)
		if (l->origin == origin)
			hops = max_u32(hops, l->hops);
	(void)pthread_mutex_unlock(&all->lock);
	return hops;
}

void
circle_forget(struct circles *all, struct circle_leg *leg)
{
	if (leg->origin == 0)
		return;
	(void)pthread_mutex_lock(&all->lock);
	struct circle_leg **p = &all->at[leg->origin % CIRCLE_PLACES];
	while (*p != leg)
		p = &(*p)->next;
	*p = leg->next;
	(void)pthread_mutex_unlock(&all->lock);
	leg->origin = 0;
}

int
circle_connect(struct circles *all, struct circle_leg *leg, const struct sockaddr_storage *to,
    struct worker_ports *ports, const struct config_keepalive *ka, const struct tcp_option *opt,
    const struct net_source *from)
{
	if (all == NULL || to->ss_family == AF_UNIX)
		return net_connect(to, ports, ka, opt, from);
	circle_forget(all, leg);
	(void)pthread_rwlock_rdlock(&all->connecting);
	int fd = net_connect(to, ports, ka, opt, from);
	if (fd >= 0) {
		const struct sockaddr_storage local = net_local_addr(fd);

		leg->origin = origin_of(all, &local, to);
	}
	if (leg->origin != 0) {
		(void)pthread_mutex_lock(&all->lock);
		struct circle_leg **p = &all->at[leg->origin % CIRCLE_PLACES];
		leg->next = *p;
		*p = leg;
		(void)pthread_mutex_unlock(&all->lock);
	}
	(void)pthread_rwlock_unlock(&all->connecting);
	return fd;
}

/* -- sessions -- */

void
circle_accepted(struct session *s, int fd, const union net_addr *peer)
{
	struct circles *all = s->pool->place.circles;
	const struct sockaddr_storage from = net_addr_get(peer),
	                              at = s->way != NULL ? net_addr_get(&s->way->to) : net_local_addr(fd);

	s->origin = origin_of(all, &from, &at);
	if (s->origin == 0)
		return;
	s->hops = (uint8_t)hops_from(s, s->origin, &from, &at);
	s->circle.hops = (uint8_t)(s->hops + 1);
}

bool
circle_may_go_on(const struct session *s)
{
	const union net_addr *from = session_kind(s) == CONFIG_INGRESS ? &s->app_peer : &s->mid_peer;
	struct event e = { .kind = EVENT_CIRCLE };
	char to[ADDR_STR_MAX];

	if (s->hops < (s->way != NULL ? 1 : CIRCLE_HOPS_MAX))
		return true;
	(void)snprintf(e.service, sizeof(e.service), "%s", s->settings->cfg.name);
	if (s->way != NULL) {
		s->settings->svc->ctr.dest_own++;
		(void)snprintf(e.reason, sizeof(e.reason),
		    "a rule has captured a connection of this daemon itself, to %s",
		    net_addr_str(&s->way->to, to, sizeof(to)));
	} else {
		(void)snprintf(
		    e.reason, sizeof(e.reason), "a connection has passed through %u gateway services", s->hops);
	}
	net_addr_str(from, e.peer, sizeof(e.peer));
	session_pool_report(s->pool, &e);
	return false;
}

bool
circle_proposed(struct session *s)
{
	struct circles *all = s->pool->place.circles;
	uint32_t origin;
	uint8_t hops;

	smcr_proposed_way(s->conn, &hops, &origin);
	const struct sockaddr_storage from = net_addr_get(&s->mid_peer);
	unsigned ours = hops_from(s, origin, &from, &s->settings->cfg.listen);
	hops = (uint8_t)min_u32(max_u32(hops, ours > 0 ? ours + 1 : 0), CIRCLE_HOPS_MAX);
	if (hops <= s->hops)
		return true;
	s->hops = hops;
	(void)pthread_mutex_lock(&all->lock); /* the leg may already be in the table */
	s->circle.hops = (uint8_t)(hops + 1);
	(void)pthread_mutex_unlock(&all->lock);
	return circle_may_go_on(s);
}
