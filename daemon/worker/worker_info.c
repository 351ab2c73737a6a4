/* Sessions and services for smcrctl, commands of the operator, new addresses of names, and listening sockets for
 * another process; see worker.h. */
#include <errno.h>
#include <string.h>

#include "base/addr.h"
#include "daemon/session/session.h"
#include "daemon/service/service.h"
#include "daemon/probe/prober.h"
#include "daemon/worker/worker_int.h"
#include "smcr/proof.h"

struct smcr *
worker_engine(struct worker *w)
{
	return w->env.eng;
}

const struct devices *
worker_devices(const struct worker *w)
{
	return w->devices;
}

bool
worker_session_next(const struct worker *w, uint32_t *pos, struct session_info *info)
{
	const struct session *s = idtable_next(&w->sessions.sessions, pos);

	if (s == NULL)
		return false;
	*info = (struct session_info){
		.id = session_number(s),
		.service = s->settings->cfg.name,
		.kind = session_kind(s),
		.app_peer = s->app_peer,
		.to = s->way != NULL ? s->way->to : (union net_addr){ .sa.sa_family = AF_UNSPEC },
		.client = s->client != NULL ? *s->client : (union net_addr){ .sa.sa_family = AF_UNSPEC },
		.middle_peer = net_addr_get(&s->mid_peer),
		.mode = session_mode(s),
		.state = session_state_str(s->state),
		.diag = s->diag,
		.conn = s->path != PATH_TCP ? s->conn : NULL,
		.protection = s->proof == NULL                      ? "clear"
		    : s->path == PATH_SMCR && !smcr_in_tls(s->conn) ? "auth"
		                                                    : "tls",
		.suite = tls_suite_name(s->proof == NULL ? 0
		        : s->path == PATH_SMCR           ? smcr_suite(s->conn)
		        : s->mid.tls != NULL             ? tls_io_suite(s->mid.tls)
		                                         : 0),
		.proven = s->proof != NULL ? tls_proof_who(s->proof)->name : "",
		.bytes_to_app = s->bytes[WAY_TO_APP],
		.bytes_from_app = s->bytes[WAY_FROM_APP],
		.age_ns = w->env.now_ns - s->born_ns,
		.idle_ns = w->env.now_ns - s->active_ns,
	};
	return true;
}

/* Names are unique over ingresses and egresses. */
static struct service *
find_by_name(const struct worker *w, const char *name)
{
	LIST_EACH(struct service, svc, &w->sessions.services, node)
		if (strcmp(svc->settings->cfg.name, name) == 0)
			return svc;
	return NULL;
}

static void
fill_info(const struct service *svc, struct service_info *info)
{
	*info = svc->ctr;
	info->cfg = &svc->settings->cfg;
	info->disabled = svc->disabled;
	info->closed = service_is_closed(svc);
	info->targets = svc->settings->targets;
	info->stats = &svc->stats;
	info->history = svc->history;
	info->bytes_from_app = svc->stats.bytes[WAY_FROM_APP];
	info->bytes_to_app = svc->stats.bytes[WAY_TO_APP];
}

bool
worker_service_next(const struct worker *w, uint32_t *pos, struct service_info *info)
{
	uint32_t passed = 0;

	LIST_EACH(const struct service, svc, &w->sessions.services, node) {
		if (passed++ < *pos)
			continue;
		++*pos;
		fill_info(svc, info);
		return true;
	}
	return false;
}

bool
worker_service_find(const struct worker *w, const char *name, struct service_info *info, struct outage_info *outage)
{
	const struct service *svc = find_by_name(w, name);

	if (svc == NULL)
		return false;
	fill_info(svc, info);
	if (outage != NULL && far_ends_look(&svc->admission->far_ends, svc, outage) == 0)
		outage_look(svc, svc->outage, outage);
	return true;
}

void
worker_stats(const struct worker *w, struct worker_stats *stats)
{
	const struct spin_counters *spin = loop_spin_counters(w->env.loop);
	const uint64_t *failed = tls_counts()->failed;

	*stats = w->sessions.stats;
	stats->tls_not_spoken = failed[TLS_NOT_SPOKEN];
	stats->tls_certificates_refused = failed[TLS_CERTIFICATE];
	stats->tls_names_refused = failed[TLS_NAME];
	stats->tls_psks_refused = failed[TLS_PSK];
	stats->tls_no_suite = failed[TLS_SUITE];
	stats->tls_streams_broken = failed[TLS_BROKEN];
	stats->turns = w->turns;
	stats->spins = spin->spins;
	stats->spin_hits = spin->hits;
	stats->spin_wanted = spin->wanted;
	stats->spun_us = spin->spun_us;
	stats->draining = w->draining;
	stats->uptime_ns = w->env.now_ns - w->started_ns;
}

struct session_pool *
worker_sessions(struct worker *w)
{
	return &w->sessions;
}

/* The settings of the ingress with TLS that leads to this peer; NULL: none. */
static struct settings *
secure_to(const struct session_pool *pool, const struct sockaddr_storage *peer)
{
	unsigned nr;

	LIST_EACH(struct service, svc, &pool->services, node) {
		const struct config_service *cfg = &svc->settings->cfg;

		if (cfg->kind == CONFIG_INGRESS && cfg->secure != CONFIG_SECURE_OFF &&
		    (targets_find(svc->settings->targets, peer, &nr) || config_via_leads_to(cfg, peer)))
			return svc->settings;
	}
	return NULL;
}

int
worker_check(struct worker *w, const struct sockaddr_storage *peer, uint32_t timeout_ms, uint64_t bulk,
    void (*done)(void *arg, const struct check_result *), void *arg)
{
	const struct probe_target target = {
		.addrs = peer,
		.addr_cnt = 1,
		.elem_size = bulk > 0 ? 0 : SMCR_ELEM_MIN, /* measured with the size of services */
		.bulk = bulk,
		.timeout_ms = timeout_ms,
		.peer = SMCR_PEER_AUTO,
		.insist = true,
		.secure = secure_to(&w->sessions, peer),
	};

	return probe_start(&w->sessions, &target, done, arg) != NULL ? 0 : -ENOMEM;
}

bool
worker_close_next(struct worker *w, uint32_t *pos, const struct close_filter *filter, bool *closed)
{
	struct session *s = idtable_next(&w->sessions.sessions, pos);

	*closed = s != NULL && session_matches(s, filter) && session_close(s, NULL);
	if (*closed)
		loop_again(w->env.loop);
	return s != NULL;
}

int
worker_set_disabled(struct worker *w, const char *name, bool disabled)
{
	struct service *svc = find_by_name(w, name);

	if (svc == NULL)
		return -ENOENT;
	if (w->sessions.place.nr == 0 && svc->disabled != disabled)
		log_msg(LOG_LVL_NOTICE, "service %s: service=%s", disabled ? "disabled" : "enabled", name);
	svc->disabled = disabled;
	return service_follow(svc);
}

void
worker_follow_targets(struct worker *w, void *unused)
{
	(void)unused;
	LIST_EACH(struct service, svc, &w->sessions.services, node)
		if (svc->settings->cfg.when_down == CONFIG_DOWN_CLOSE_LISTENER)
			(void)service_follow(svc);
}

/* The engine's key of a peer (clc_stream_describe), or, with port 0, the prefix of the keys of that address. */
static const char *
middle_key(const struct sockaddr_storage *peer, char *buf, size_t cap)
{
	struct sockaddr_storage any = *peer;

	if (addr_port(peer) != 0)
		return addr_format_port(peer, buf, cap);
	/* Cuts the port off the text for port 1. */
	addr_set_port(&any, 1);
	addr_format_port(&any, buf, cap);
	buf[strlen(buf) - 1] = '\0';
	return buf;
}

struct worker_retried
worker_retry(struct worker *w, const struct sockaddr_storage *peer)
{
	struct worker_retried done = { .targets = 0 };
	char key[ADDR_STR_MAX + 1];
	uint8_t addr[16];

	done.prewarms = services_retry(&w->sessions, peer, &done.targets);
	if (peer == NULL) {
		done.devices = devices_retry(w->devices);
		done.engine = smcr_retry(w->env.eng, NULL, NULL);
	} else {
		addr_to_v6(peer, addr);
		done.engine = smcr_retry(w->env.eng, addr, middle_key(peer, key, sizeof(key)));
	}
	loop_again(w->env.loop);
	return done;
}

void
worker_targets_changed(struct worker *w, void *service)
{
	struct service *svc = find_by_name(w, service);

	if (svc != NULL && !w->draining)
		service_prewarm(svc);
	prober_follow(&w->sessions);
}

void
worker_inherit_health(struct worker *w, void *known)
{
	prober_inherit(&w->sessions, known);
}

/* -- hand-over of listening sockets -- */

int
worker_add_sockets(struct worker *w, struct listen_socket_list *out)
{
	int rc = 0;

	LIST_EACH(const struct service, svc, &w->sessions.services, node)
		/* The closed socket of a disabled service is not handed over. */
		if (rc == 0 && svc->listener.mode != LISTENER_SHUT)
			rc = listen_socket_list_add_copies(out, &svc->listener.sock);
	return rc;
}

int
worker_add_ports(struct worker *w, struct listen_socket_list *out)
{
	return devices_add_ports(w->devices, out);
}

void
worker_drop_port(struct worker *w, void *port)
{
	devices_drop_port(w->devices, port);
}

void
worker_lend_sockets(struct worker *w, void *lent)
{
	LIST_EACH(struct service, svc, &w->sessions.services, node)
		listen_socket_set_lent(&svc->listener.sock, *(const bool *)lent);
}

void
worker_release_sockets(struct worker *w, void *unused)
{
	(void)unused;
	LIST_EACH(struct service, svc, &w->sessions.services, node) {
		listen_socket_set_lent(&svc->listener.sock, true);
		service_stop(svc);
	}
}
