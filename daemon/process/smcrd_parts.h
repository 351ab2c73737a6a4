/* The state of the daemon, shared by smcrd*.c alone: smcrd.c runs it, process/smcrd_open.c opens everything at the start,
 * process/smcrd_requests.c does what others request, such as a new configuration. */
#pragma once

#include "daemon/process/background.h"
#include "daemon/config/config.h"
#include "daemon/confine/confine.h"
#include "daemon/control/control.h"
#include "daemon/control/report.h"
#include "daemon/handover/inherited.h"
#include "daemon/event/event_history.h"
#include "daemon/process/log_choice.h"
#include "daemon/loop/loop.h"
#include "daemon/net/listen_socket.h"
#include "daemon/metrics/metrics.h"
#include "daemon/names/names.h"
#include "daemon/handover/notify.h"
#include "daemon/process/fd_limit.h"
#include "daemon/process/options.h"
#include "daemon/process/reload_job.h"
#include "daemon/process/tls_watch.h"
#include "daemon/net/tcp_option.h"
#include "daemon/handover/predecessors.h"
#include "daemon/handover/takeover.h"
#include "daemon/worker/workers.h"

struct daemon {
	struct options opt;
	char *load_msgs; /* of the file, until the log is set up */
	struct loop *loop;
	struct config *cfg; /* in force */
	struct workers *workers;
	struct control *control;
	struct names *names;
	struct metrics *metrics; /* NULL: not configured */
	/* Opened before the process gives its rights up, because it may need them. Devices are opened later: the kernel's RDMA devices
	 * take requests only from a process that still has the rights with which it opened them. */
	struct listen_socket listen[CONTROL_PORTS]; /* control_new takes them over */
	struct listen_socket metrics_listen;
	struct inherited early; /* workers_new takes the sockets over */
	struct tcp_option option;
	bool option_tried; /* at start, as a service wanted it */
	struct confine_state confine;
	struct event_history news;
	struct notify notify;
	struct takeover takeover; /* while starting */
	struct predecessors before;
	int background;                   /* of background_start; -1 = none */
	int running;                      /* of running_open; -1 = none */
	char running_at[CONFIG_HOST_MAX]; /* the daemon to take over from, if not at control.path */
	struct report_process process;
	bool draining;  /* accepts no new connections */
	bool drained;   /* and has none left; waits for predecessors at most */
	bool unstored;  /* by a client's drain: systemd keeps no sockets */
	bool broken;    /* a worker's loop has failed */
	bool term_seen; /* the next one ends it at once */
	struct log_choice log;
	struct reload_job reloading;
	struct tls_watch tls;
	struct report_certificate certificates[1];
	struct fd_limit files; /* of the last configuration that was checked */
};

/* process/smcrd_open.c: opens what needs rights (TCP option, UNIX sockets, ports below 1024), gives the rights up, then
 * opens devices and starts threads, those of the workers last. 0, CONFINE_REFUSED, CONFINE_LACKS_RIGHT, or -errno with the reason in err. */
int smcrd_open(struct daemon *, FILE *err);
/* Is there a service for SMC-R's TCP option? */
bool smcrd_wants_option(const struct config *);
/* Has this process the right that client_address = "connect" takes, if a service has that? False: the reason is in err. */
bool smcrd_may_connect_as_client(const struct config *, const char *more, FILE *err);
/* For `smcrd -t`. Opens the TCP option if the configuration wants it: the rights to keep depend on it. */
void smcrd_print_rights(struct daemon *);

/* process/smcrd_requests.c; smcrd_apply is for struct reload_job. */
int smcrd_apply(void *daemon, struct config *next, struct config_plan *, FILE *text);
/* For struct tls_watch. */
void smcrd_apply_tls(void *daemon, struct tls_ctx *next, const char *why);
void smcrd_certificate_expires(void *daemon, const char *text, uint64_t for_ms);
void smcrd_on_term(void *daemon);
/* Also after the start: reports name the processes that still run. */
void smcrd_on_predecessor_end(void *daemon);
void smcrd_on_hup(void *daemon);
struct control_hooks smcrd_control_hooks(struct daemon *);
/* lent: the files of listening sockets stay when these are closed. */
void smcrd_lend(struct daemon *, bool lent);
/* Stores the listening sockets at systemd for the next process; not without systemd, and not while draining. */
void smcrd_store_sockets(void *daemon);
