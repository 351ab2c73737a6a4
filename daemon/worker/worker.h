/* A worker: one event loop, one engine (one SMC-R peer instance), its devices, listeners and proxied connections
 * ("sessions"). All state is below this context, without globals, so that several workers can run, each in its own
 * thread. These functions run in that thread, or before it starts; workers.h calls them there. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/socket.h>

#include "daemon/net/listen_socket.h"
#include "daemon/account/outage.h"
#include "daemon/probe/probe.h"
#include "daemon/service/session_pool.h"

struct worker;

/* Opens devices and listeners (or uses those among socks, passed by systemd or opened before) and starts prewarm. On
 * failure all is undone except unused sockets in socks, and err has the reason. The caller owns cfg, which must
 * outlive the worker or the next worker_commit; the option must outlive the worker. */
int worker_new(struct loop *, const struct worker_place *, const struct config *cfg, const struct tcp_option *,
    struct listen_socket *socks, unsigned sock_cnt, FILE *err, struct worker **);
/* A reload: adds, removes and changes services while live connections continue. First all steps that can fail. Uses
 * listening sockets among socks, which have to stay until it returns. 0, or -errno with the reason in err. */
int worker_prepare(
    struct worker *, const struct config *next, struct listen_socket *socks, unsigned sock_cnt, FILE *err);
/* Adds copies of the UNIX sockets opened for the reload, for a worker that prepares the same. 0, or -errno: some. */
int worker_share(const struct worker *, struct listen_socket_list *);
/* Then either applies what was prepared; err gets warnings. */
void worker_commit(struct worker *, const struct config *next, FILE *err);
/* Or drops it; all is as before. */
void worker_abort(struct worker *, void *unused);
/* For workers_call_all: changed files of `tls` were read, a struct tls_ctx; or refused, for the first worker alone. */
void worker_use_tls(struct worker *, void *tls_ctx);
void worker_count_tls_refused(struct worker *, void *unused);
/* The names of this waiting service have addresses now: a link group may be made ahead. For workers_call_all. */
void worker_targets_changed(struct worker *, void *service_name);
/* The health of targets as another process knew it, a struct targets_known_list. In the first worker. */
void worker_inherit_health(struct worker *, void *known);
#define WORKER_NO_LIMIT UINT32_MAX
/* Stops accepting and ends groups as connections end. Calls done(arg), unless that is NULL, when all are gone or limit_ms has
 * passed. Allowed again after a call with NULL. */
void worker_drain(struct worker *, uint32_t limit_ms, void (*done)(void *arg), void *arg);
/* Another limit from now on, a uint32_t, unless done was called. For workers_call_all. */
void worker_limit_drain(struct worker *, void *limit_ms);
/* Cancels a drain; done is not called. 0, or -errno when a service cannot listen again, which is logged. */
int worker_undrain(struct worker *);
/* Ends all; runs the loop until cards have released their queue pairs, for 5 s at most. NULL is allowed. */
void worker_free(struct worker *);

/* Adds other descriptors of its services' listening sockets. 0 or -errno. */
int worker_add_sockets(struct worker *, struct listen_socket_list *out);
/* And of the ports of its soft iWARP devices on TCP. */
int worker_add_ports(struct worker *, struct listen_socket_list *out);
/* For workers_call_all. Another process accepts on this one of them, a struct sockaddr_storage. */
void worker_drop_port(struct worker *, void *port);
/* *lent, a bool: closing these sockets keeps their files. */
void worker_lend_sockets(struct worker *, void *lent);
/* Stops accepting; the files stay. */
void worker_release_sockets(struct worker *, void *unused);

/* reload.c: prepares the change of pool->services to cfg, which must stay until the commit or abort. Listening sockets
 * among socks are used where their address matches, and are then removed there. starting: the process may change the
 * owner of a socket's file. 0, or -errno: all is as before and err has the reason. */
struct services_plan;
int services_prepare(struct session_pool *, const struct config *cfg, struct listen_socket *socks, unsigned sock_cnt,
    bool starting, FILE *err, struct services_plan **);
/* See worker_share. */
int services_share(const struct services_plan *, struct listen_socket_list *);
/* Applies the change; pool->cfg already has the new settings. Frees the plan. */
void services_commit(struct services_plan *, FILE *err);
void services_abort(struct services_plan *);

struct smcr *worker_engine(struct worker *);
const struct devices *worker_devices(const struct worker *);
struct session_pool *worker_sessions(struct worker *);

/* -- sessions and services for smcrctl -- */

/* Walks as in smcr.h: *pos starts at 0. */
bool worker_session_next(const struct worker *, uint32_t *pos, struct session_info *);
bool worker_service_next(const struct worker *, uint32_t *pos, struct service_info *);
/* The service of this name, and whether its far end serves (NULL: not asked); false: not found. */
bool worker_service_find(const struct worker *, const char *name, struct service_info *, struct outage_info *);
void worker_stats(const struct worker *, struct worker_stats *);

/* Is SMC-R possible to this peer? Runs a rendezvous of its own and calls done once with the result, never before this
 * returned. worker_free calls it for pending checks. bulk: bytes of a measurement, or 0 (probe.h). 0, or -errno
 * without done. */
int worker_check(struct worker *, const struct sockaddr_storage *peer, uint32_t timeout_ms, uint64_t bulk,
    void (*done)(void *arg, const struct check_result *), void *arg);

/* -- commands of the operator -- */

/* One step of a walk as above: closes the next connection if it matches, and sets whether it did; false at the end. */
bool worker_close_next(struct worker *, uint32_t *pos, const struct close_filter *, bool *closed);
/* A disabled service does not accept; its connections continue. 0, -ENOENT, or -errno: it cannot listen again. */
int worker_set_disabled(struct worker *, const char *name, bool disabled);
/* The last target of a service failed, or the first one works again: listeners follow (when_down). */
void worker_follow_targets(struct worker *, void *unused);

struct worker_retried {
	struct smcr_retried engine;
	unsigned prewarms; /* link groups to be made ahead, of services that waited for a retry */
	unsigned targets;  /* failed targets, tried now */
	unsigned devices;  /* missing devices */
};

/* Ends retry delays of this peer (port 0: any port) or, with NULL, of all peers and devices. */
struct worker_retried worker_retry(struct worker *, const struct sockaddr_storage *peer);
