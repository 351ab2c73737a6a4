/* Rows of reports, a struct for each kind of object: filled in by report_*.c, written as JSON and kept for metrics by the tables of
 * report_fields.c. The maker owns its row; texts in it are static, or live as long as the step. */
#pragma once

#include "control/counters.h"
#include "daemon/confine/confine.h"
#include "daemon/control/control_request.h"
#include "daemon/control/field.h"
#include "daemon/service/session_pool.h"
#include "daemon/target/targets.h"
#include "daemon/worker/workers.h"

/* Those before REPORT_KEPT_CNT are kept for metrics. REPORT_SERVICE is of status, REPORT_FIGURES of a service in stats. */
/* clang-format off */
enum report_kind {
	REPORT_STATUS, REPORT_WORKER, REPORT_SERVICE, REPORT_STATS, REPORT_FIGURES, REPORT_GROUP, REPORT_LINK, REPORT_DEVICE,
	REPORT_HISTORY, REPORT_EVENT,
	REPORT_KEPT_CNT,
	REPORT_GID = REPORT_KEPT_CNT, REPORT_CONNECTION, REPORT_RMB, REPORT_TARGET, REPORT_ADDRESS, REPORT_VIA, REPORT_SETTING,
	REPORT_KIND_CNT
};
/* clang-format on */

/* The control socket's own counters. */
struct control_stats {
	uint64_t clients, clients_refused, clients_timed_out;
	uint64_t requests, requests_bad;
	uint64_t trace_sent, trace_dropped, traces_evicted;
};

#define REPORT_PREDECESSORS_MAX 16

/* A process that was taken over. */
struct report_predecessor {
	uint32_t pid;
};

/* Our certificate of `tls`. */
struct report_certificate {
	const char *file;
	int64_t not_after_ms; /* since 1970 */
};

/* The state of the process as a whole, which main changes. */
struct report_process {
	const struct confine_state *confine; /* filled in later */
	char host[65];                       /* its name; "" = not known */
	uint32_t successor;                  /* the process that has taken over; 0 = none */
	bool ends;                           /* with its last connection */
	int64_t started_ms, loaded_ms;       /* since 1970: the process was started, its configuration put in force */
	const char *reload_error;            /* of the last reload; "" = it was in order */
	const char *tls_error;               /* of changed files of tls; "": in force */
	const char *tls_expiry;              /* of our certificate, when that is soon; else "" */
	const struct report_certificate *certificates;
	unsigned certificate_cnt;
	uint32_t waiting_settings; /* of the file at the last reload: only a take-over applies them */
	int64_t limit_ns;          /* by clock_ns(): then it resets the connections that are left; 0 = no limit */
	struct report_predecessor predecessors[REPORT_PREDECESSORS_MAX];
	unsigned predecessor_cnt;
};

/* Where a report takes its data from. */
struct report_source {
	struct workers *workers;
	const struct control_stats *control;
	const struct report_process *process; /* of main; NULL: not known */
	const char *version;
	int64_t wall_ms; /* time of day, since 1970 */
	int64_t now_ns;  /* by clock_ns(), at that time */
	uint32_t pid;
	/* of status, by report_source_measure() */
	uint64_t rss_bytes, cpu_us;
	int64_t open_files;                       /* -1: not known */
	int64_t open_files_max, locked_bytes_max; /* the process's limits; -1: none */
};

/* Of a worker, or of all; uint64_t alone, so that sums are made as of an array. */
struct report_sum {
	uint64_t conns[3]; /* by enum session_mode */
	uint64_t secured;  /* connections whose peer has proven a name */
	uint64_t groups, links, rmb_bytes, rmb_bytes_max, sndbuf_bytes, sndbuf_bytes_max;
	uint64_t devices, devices_up, turns;
};

/* Also of drain. */
struct report_status {
	struct report_source src;
	struct worker_stats worker; /* what all workers have alike, of the last one */
	struct report_sum sum;
	struct report_process process;
	struct field_array predecessors; /* struct report_predecessor */
	struct field_array certificates; /* struct report_certificate */
	bool reload_failed;
	int64_t left_ns; /* until process.limit_ns; -1 = no limit */
	struct confine_state confine;
	uint32_t option_services;
	bool option_usable;
	const char *option_why;
};

struct report_worker {
	uint32_t worker;
	struct report_sum sum;
};

/* An address that is probed. */
struct report_health {
	struct sockaddr_storage addr;
	enum health_state state;
	int64_t since_ns, probed_ns; /* for how long; how long ago, -1: not yet */
	char why[HEALTH_WHY_MAX];
};

#define REPORT_PROBED_MAX 16 /* addresses in a row: bounded by REPORT_STEP_BYTES */

struct report_service {
	const char *name, *peer;
	enum config_kind kind;
	struct sockaddr_storage listen;
	char to[CONFIG_TO_STR_MAX], waiting[TARGETS_WAIT_MAX];
	uint32_t connections_max;
	int64_t held_off_ns; /* the longest of its addresses in all workers */
	struct outage_info outage;
	struct service_info info;
	struct report_health health; /* of its addresses together; without addr */
	struct field_array probed;   /* struct report_health */
};

/* Of a field_array. */
struct report_reset {
	const char *text;
	uint64_t cnt;
};

/* Places of the counters. */
#define REPORT_COUNTER(source, field) REPORT_COUNTER_##source##_##field
#define REPORT_COUNTER_ROW(source, field, words) REPORT_COUNTER(source, field),
#define REPORT_NONE(heading)
enum { CONTROL_COUNTERS(REPORT_NONE, REPORT_COUNTER_ROW) REPORT_COUNTERS };

struct report_stats {
	uint64_t counters[REPORT_COUNTERS];
	struct field_array local, peer; /* struct tally_entry */
	struct smcr_histograms histograms;
};

struct report_figures {
	const char *name;
	enum config_kind kind;
	struct service_stats stats;
	struct field_array local, peer, resets; /* struct tally_entry, the last one struct report_reset */
};

/* Kept for pages alone. */
struct report_event {
	int64_t time_us; /* since 1970 */
	enum event_kind kind;
	const char *service, *text;
};

/* Of a service, or with the name "" of all together: samples of all workers, the oldest first. */
struct report_history {
	const char *name;
	enum config_kind kind;
	uint32_t step_ms;
	int64_t end_ms; /* of the newest sample: time of day, since 1970 */
	struct history_sample at[HISTORY_SAMPLES];
};

struct report_group {
	uint32_t worker;
	struct smcr_group_info g; /* without a failover: failover_ns is -1, failover_why "", failover_conns 0 */
	const char *protection, *suite;
};

struct report_link {
	uint32_t worker;
	struct smcr_link_info l;
	uint32_t mtu;
	struct field_array paths; /* of l.conn */
};

struct report_rmb {
	uint32_t worker;
	struct smcr_rmb_info m;
};

/* Counters of all kinds of devices, first those of cards, then those of soft iWARP: each device is shown with all of them. */
/* clang-format off */
#define REPORT_DEVICE_STATS(X) \
	X(sends_posted, "Sends that were posted on a card.") \
	X(writes_posted, "RDMA writes that were posted on a card.") \
	X(doorbells, "Calls that handed requests to a card.") \
	X(completions, "Completions that were taken of a card.") \
	X(polls, "Calls that looked for completions of a card.") \
	X(wakeups, "Times that a card woke the daemon.") \
	X(rnr_retry_exc, "Requests that failed because the peer had no receive posted.") \
	X(retry_exc, "Requests that failed because the peer did not answer.") \
	X(remote_access_errs, "Requests that the peer refused.") \
	X(flushed, "Requests that ended with their queue pair.") \
	X(other_errs, "Requests that failed otherwise.") \
	X(async_events, "Events of card, port or queue pair.") \
	X(reads_sent, "Reads that confirm what was posted before them.") \
	X(mpa_refused_token, "iWARP connections refused: not of a peer, or not for a link that waits.") \
	X(mpa_refused_parked, "iWARP connections refused: not expected in time.") \
	X(fpdus_sent, "DDP segments sent.") \
	X(fpdus_received, "DDP segments received.") \
	X(bytes_sent, "Bytes sent in DDP streams.") \
	X(bytes_received, "Bytes received in DDP streams.") \
	X(reads_served, "Reads of peers that were answered.") \
	X(mpa_refused_address, "iWARP connections from addresses that may not connect.") \
	X(mpa_bad, "iWARP connections without a proper request in time, or that made place for others.") \
	X(terminates_sent, "Terminate messages sent.") \
	X(terminates_received, "Terminate messages received.") \
	X(crc_errors, "FPDUs or SCTP packets with a wrong CRC.") \
	X(recv_stalls, "Times that reading stopped because no receive was posted.") \
	X(accept_pauses, "Times that accepting stopped because descriptors ran out.") \
	X(linger_refused, "Connections closed at once though something was left to say.") \
	X(strangers_limited, "SCTP packets without an association, over the limit.") \
	X(sctp_retransmits, "SCTP messages sent again, by all devices of the daemon together.") \
	X(no_memory, "Connections closed, or last words not sent, for want of memory.")
/* clang-format on */

#define REPORT_DEVICE_STAT(name, meaning) uint64_t name;

struct report_device_stats {
	REPORT_DEVICE_STATS(REPORT_DEVICE_STAT)
};

struct report_device {
	uint32_t worker;
	struct device_info d; /* d.more_addrs and d.card live as long as the step */
	uint32_t mtu;
	/* Of a card; "", 0 and -1 for a device of software. */
	const char *card, *link_layer, *gid_type;
	uint32_t card_port;
	int64_t gid_index;
	struct report_device_stats stats;
};

struct report_gid {
	struct verbs_gid g;
	const char *interface;
};

struct report_connection {
	uint32_t worker;
	struct session_info s;
	struct smcr_conn_info c; /* zeros and "" unless it is on SMC-R */
	int64_t app_uid, app_pid;
};

struct report_one_service {
	struct report_service service;
	uint64_t modes[3]; /* connections by enum session_mode */
	bool listens_here;
	struct outage_info outage;
	uint32_t user;
};

struct report_target {
	char target[CONFIG_TARGET_STR_MAX], name_error[ENDPOINT_WHY_MAX];
};

struct report_via {
	char net[CONFIG_DEST_STR_MAX], peer[ADDR_STR_MAX];
	uint32_t port_min, port_max;
};

struct report_address {
	struct endpoint e;
	char target[CONFIG_TARGET_STR_MAX];
};

struct report_setting {
	const char *name, *value;
};

struct report_check_step {
	const char *step, *result, *text;
	int64_t took_ns;
};

struct report_check_bulk {
	const char *path, *direction;
	uint64_t bytes;
	int64_t took_ns;
};

struct report_check {
	struct sockaddr_storage peer;
	const char *finding;
	struct check_result res;
	struct field_array steps, bulk;
};

struct report_disable {
	const char *service;
	bool disabled;
};

struct report_retry {
	struct worker_retried retried;
	uint32_t names;
};

struct report_line {
	int schema;
	const char *event;
	int64_t time_us;
	uint64_t dropped;
};

struct report_message {
	const char *direction, *kind, *text;
	uint32_t worker;
	struct smcr_trace t;
};

/* The members of each kind, and the size of its struct. */
struct report_table {
	const struct field *fields;
	size_t size;
};

extern const struct report_table report_tables[REPORT_KIND_CNT];
/* The members of "data", by command; NULL: none. */
extern const struct field *const report_data[CONTROL_COMMAND_CNT];
extern const char *const report_gid_type_words[]; /* by enum rnic_gid_type */
extern const char *const report_device_stats[];   /* names, in order; ends with NULL */
/* Members of several kinds of objects. */
extern const struct field report_peer_fields[];   /* struct smcr_peer_info */
extern const struct field report_reason_fields[]; /* struct smcr_diag */
/* Lines of traces and events: how both begin, and the rest of a trace's line. */
extern const struct field report_line_fields[], report_message_fields[];
