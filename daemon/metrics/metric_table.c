/* The table of metrics; see metric_table.h. */
#include "daemon/metrics/metric_table.h"

#include <stdio.h>
#include <string.h>

/* clang-format off */
#define OF_SERVICE { { "service", "name" }, { "kind", "kind" } }
#define OF_LINK { "group", "group" }, { "link", "number" }, { "user_id", "user_id" }, { "device", "device" }
static const struct metric_labels none = { .sub = NULL };
static const struct metric_labels service = { .of = OF_SERVICE };
static const struct metric_labels local = { "fallback_reasons_local", OF_SERVICE, { { "code", "code" }, { "reason", "text" } } };
static const struct metric_labels peer = { "fallback_reasons_peer", OF_SERVICE, { { "code", "code" }, { "reason", "text" } } };
static const struct metric_labels resets = { "reset_reasons", OF_SERVICE, { { "reason", "text" } } };
static const struct metric_labels probed = { "probed", OF_SERVICE, { { "address", "address" } } };
static const struct metric_labels worker = { .of = { { "worker", "worker" } } };
static const struct metric_labels group = { .of = { { "group", "id" } } };
static const struct metric_labels group_info = { .of = { { "group", "id" }, { "worker", "worker" }, { "role", "role" },
	{ "type", "type" }, { "state", "state" }, { "peer", "peer" }, { "peer_id", "peer_id" } } };
static const struct metric_labels link = { .of = { OF_LINK } };
static const struct metric_labels link_info = { .of = { OF_LINK, { "transport", "transport" }, { "state", "state" }, { "gid", "gid" } } };
static const struct metric_labels device = { .of = { { "device", "name" }, { "worker", "worker" } } };
static const struct metric_labels device_info = { .of = { { "device", "name" }, { "worker", "worker" }, { "provider", "provider" },
	{ "transport", "transport" }, { "interface", "interface" }, { "gid", "gid" }, { "card", "card" } } };
static const struct metric_labels certificate = { .sub = "certificates", .of_sub = { { "file", "file" } } };
static const struct metric_labels build = { .of = { { "version", "version" } } };

#define REFUSED(member, why) { "service_refused", METRIC_COUNTER, REPORT_SERVICE, &service, member, .label = "reason", .value = why, .help = "Connections that were refused." }
#define DEST(member, how) { "service_destinations", METRIC_COUNTER, REPORT_SERVICE, &service, member, .label = "result", .value = how, .help = "Connections with a destination, by what became of it (to = original, requested)." }
#define MODE(n, of, labels, member, mode, h) { n, METRIC_GAUGE, of, labels, member "." mode, .label = "mode", .value = mode, .help = h }
#define MODES(n, of, labels, member, h) MODE(n, of, labels, member, "smcr", h), MODE(n, of, labels, member, "tcp", h), MODE(n, of, labels, member, "setup", h)
#define GAUGE(n, of, labels, member, h) { n, METRIC_GAUGE, of, labels, member, .help = h }
#define COUNTER(n, of, labels, member, h) { n, METRIC_COUNTER, of, labels, member, .help = h }
#define OF(n, parts, of, labels, member, h) { n, METRIC_GAUGE, of, labels, member, .per = parts, .help = h }
#define IS(n, of, labels, member, w, h) { n, METRIC_GAUGE, of, labels, member, w, .help = h }
#define INFO(n, of, labels, h) { n, METRIC_INFO, of, labels, .help = h }
#define TIMES(n, of, labels, member, h) { n, METRIC_TIMES, of, labels, member, .help = h }
#define BYTES(d) { "service_bytes", METRIC_COUNTER, REPORT_FIGURES, &service, "bytes_" d, .label = "direction", .value = d, .help = "Bytes from and to a service's programs." }
#define STATS(source, field, words) COUNTER(CONTROL_COUNTER_KEY(source, field), REPORT_STATS, &none, "counters." CONTROL_COUNTER_KEY(source, field), words),
#define DEVICE(field, help) COUNTER("device_" #field, REPORT_DEVICE, &device, "stats." #field, help),

const struct metric metric_table[] = {
	INFO("build", REPORT_STATUS, &build, "The smcrd that runs."),
	OF("uptime_seconds", 1000, REPORT_STATUS, &none, "uptime_ms", "Time since the daemon was started."),
	GAUGE("draining", REPORT_STATUS, &none, "draining", "1 when the daemon takes no new connections."),
	GAUGE("reload_failed", REPORT_STATUS, &none, "reload_failed", "1 when the last reload was refused, until one is in order."),
	OF("config_loaded_timestamp_seconds", 1000, REPORT_STATUS, &none, "loaded_ms", "When the configuration in force was put there, by the start or a reload, since 1970."),
	OF("tls_certificate_not_after_timestamp_seconds", 1000, REPORT_STATUS, &certificate, "not_after_ms", "End of our certificate of tls, since 1970."),
	OF("process_start_time_seconds", 1000, REPORT_STATUS, &none, "started_ms", "When the process was started, since 1970."),
	COUNTER("process_cpu_us", REPORT_STATUS, &none, "cpu_us", "Processor time of all threads."),
	GAUGE("process_resident_memory_bytes", REPORT_STATUS, &none, "rss_bytes", "Resident memory of the process."),
	GAUGE("process_open_fds", REPORT_STATUS, &none, "open_files", "Open files of the process."),
	GAUGE("process_max_fds", REPORT_STATUS, &none, "open_files_max", "Limit of open files; nothing without one."),
	MODES("connections", REPORT_STATUS, &none, "connections", "Proxied connections now: on SMC-R, on TCP after a fallback, being set up."),
	GAUGE("groups", REPORT_STATUS, &none, "groups", "Link groups now."),
	GAUGE("links", REPORT_STATUS, &none, "links", "Links now, of all groups."),
	GAUGE("rmb_bytes", REPORT_STATUS, &none, "rmb_bytes", "Memory of our RMBs now."),
	GAUGE("rmb_bytes_limit", REPORT_STATUS, &none, "rmb_bytes_max", "What all RMBs together may have (rmb_memory_max)."),
	GAUGE("send_buffer_bytes", REPORT_STATUS, &none, "sndbuf_bytes", "Memory of send buffers now."),
	GAUGE("send_buffer_bytes_limit", REPORT_STATUS, &none, "sndbuf_bytes_max", "What all send buffers together may have (send_memory_max)."),
	GAUGE("devices", REPORT_STATUS, &none, "devices", "RDMA devices now."),
	GAUGE("devices_up", REPORT_STATUS, &none, "devices_up", "RDMA devices now, of them those whose port is up."),
	COUNTER("worker_turns", REPORT_WORKER, &worker, "turns", "Turns of a worker's event loop."),
	MODES("worker_connections", REPORT_WORKER, &worker, "connections", "Proxied connections of a worker now."),
	GAUGE("worker_groups", REPORT_WORKER, &worker, "groups", "Link groups of a worker now."),
	GAUGE("worker_links", REPORT_WORKER, &worker, "links", "Links of a worker now."),
	GAUGE("worker_rmb_bytes", REPORT_WORKER, &worker, "rmb_bytes", "Memory of a worker's RMBs now."),

	MODES("service_connections", REPORT_FIGURES, &service, "modes", "Proxied connections of a service now."),
	GAUGE("service_connections_limit", REPORT_SERVICE, &service, "connections_max", "Connections that a service may have (max_connections)."),
	GAUGE("service_closed", REPORT_SERVICE, &service, "closed", "1 when a service does not listen, as no target works (when_down)."),
	GAUGE("service_disabled", REPORT_SERVICE, &service, "disabled", "1 when a service takes no new connections, as an operator has disabled it."),
	OF("service_held_off_seconds", 1000, REPORT_SERVICE, &service, "held_off_ms", "For how long connections of an ingress do not try SMC-R with the peer, as it failed repeatedly; 0 when they do."),
	IS("target_up", REPORT_SERVICE, &probed, "state", "up", "1 when probes say that a target works (probe)."),
	IS("target_down", REPORT_SERVICE, &probed, "state", "down", "1 when probes say that a target does not work; 0 with target_up 0 as well: not known, or held off."),
	OF("target_state_seconds", 1000, REPORT_SERVICE, &probed, "since_ms", "Time since the state of a target changed."),
	OF("target_probe_age_seconds", 1000, REPORT_SERVICE, &probed, "probed_ms", "Time since the last result of a target's probe; nothing before the first."),
	COUNTER("service_accepted", REPORT_SERVICE, &service, "accepted", "Connections that were accepted, those refused included."),
	REFUSED("refused_allow", "not_allowed"),
	REFUSED("refused_max", "max_connections"),
	REFUSED("refused_per_peer", "max_connections_per_peer"),
	REFUSED("refused_connect", "far_end"),
	REFUSED("refused_fallback", "fallback_forbidden"),
	REFUSED("refused_disabled", "disabled"),
	REFUSED("refused_header", "proxy_header"),
	COUNTER("service_clients_unused", REPORT_SERVICE, &service, "clients_unused", "Connections whose client's address the peer did not pass on (forward_client)."),
	COUNTER("service_client_bind_failed", REPORT_SERVICE, &service, "client_bind_failed", "Connections reset as no port was free for the client's address (client_address connect)."),
	DEST("not_captured", "not_captured"),
	DEST("no_via", "no_via"),
	DEST("dest_own", "own"),
	DEST("dest_taken", "taken"),
	DEST("dest_refused", "refused"),
	DEST("dest_unused", "unused"),
	COUNTER("service_fallbacks", REPORT_SERVICE, &service, "fallbacks", "Connections that went by TCP."),
	COUNTER("service_fallback_reasons_local", REPORT_FIGURES, &local, "count", "Why connections went by TCP or were refused, for a reason of ours: the 10 most frequent ones."),
	COUNTER("service_fallback_reasons_peer", REPORT_FIGURES, &peer, "count", "Why connections went by TCP or were refused, as the peer declined: the 10 most frequent ones."),
	COUNTER("service_resets", REPORT_SERVICE, &service, "resets", "Connections that ended by a reset."),
	COUNTER("service_reset_reasons", REPORT_FIGURES, &resets, "count", "Why connections ended by a reset."),
	BYTES("from_app"),
	BYTES("to_app"),
	TIMES("service_setup_seconds", REPORT_FIGURES, &service, "setup_time", "From accepting a connection to carrying data."),
	TIMES("service_connect_seconds", REPORT_FIGURES, &service, "connect_time", "Connecting to the peer (ingress) or the server (egress)."),
	TIMES("service_life_seconds", REPORT_FIGURES, &service, "life_time", "From accepting a connection to its end."),
	{ "write_size_bytes", METRIC_SIZES, REPORT_STATS, &none, "write_size", .help = "Sizes of RDMA writes." },
	TIMES("blocked_seconds", REPORT_STATS, &none, "blocked_time", "How long a peer's full buffer held writing up, each time."),

	INFO("group", REPORT_GROUP, &group_info, "A link group."),
	GAUGE("group_connections", REPORT_GROUP, &group, "connections", "Connections of a link group now."),
	GAUGE("group_links", REPORT_GROUP, &group, "links", "Links of a link group now."),
	GAUGE("group_links_limit", REPORT_GROUP, &group, "links_limit", "Links that a link group may have, as both ends agreed."),
	GAUGE("group_rmb_bytes", REPORT_GROUP, &group, "rmb_bytes", "Memory of a link group's RMBs now."),
	GAUGE("group_send_buffer_bytes", REPORT_GROUP, &group, "sndbuf_bytes", "Memory of a link group's send buffers now."),
	OF("group_last_failover_seconds", 1000000, REPORT_GROUP, &group, "last_failover.duration_us", "How long the last failover took until every connection had resumed; nothing when there was none."),
	INFO("link", REPORT_LINK, &link_info, "A link of a link group."),
	IS("link_active", REPORT_LINK, &link, "state", "active", "1 when the link carries data, or could."),
	GAUGE("link_connections", REPORT_LINK, &link, "connections", "Connections on a link now."),
	OF("link_round_trip_seconds", 1000000, REPORT_LINK, &link, "rtt_us", "Round trip of the last TEST LINK; nothing before the first."),
	OF("link_idle_seconds", 1000, REPORT_LINK, &link, "idle_ms", "Time since something was received on a link."),
	COUNTER("link_retransmits", REPORT_LINK, &link, "retransmits", "Packets that were sent again below a link of soft iWARP; nothing where it is not known."),
	GAUGE("link_unacked", REPORT_LINK, &link, "unacked", "Packets below a link of soft iWARP that are not acknowledged now; nothing where it is not known."),

	INFO("device", REPORT_DEVICE, &device_info, "An RDMA device, as a worker has it."),
	IS("device_up", REPORT_DEVICE, &device, "port", "up", "1 when the port of a device is up."),
	GAUGE("device_queue_pairs", REPORT_DEVICE, &device, "qps", "Queue pairs of a device now."),
	GAUGE("device_queue_pairs_limit", REPORT_DEVICE, &device, "qps_max", "Queue pairs that a device may have."),
	GAUGE("device_memory_regions", REPORT_DEVICE, &device, "mrs", "Memory regions of a device now."),
	GAUGE("device_memory_regions_limit", REPORT_DEVICE, &device, "mrs_max", "Memory regions that a device may have."),
	GAUGE("device_registered_bytes", REPORT_DEVICE, &device, "registered_bytes", "Memory that is registered with a device now."),
	REPORT_DEVICE_STATS(DEVICE)

	CONTROL_COUNTERS(REPORT_NONE, STATS)
};
/* clang-format on */

const unsigned metric_cnt = sizeof(metric_table) / sizeof(metric_table[0]);

static bool
is_us(const struct metric *m)
{
	const size_t len = strlen(m->name);

	return len > 3 && strcmp(m->name + len - 3, "_us") == 0;
}

char *
metric_name(const struct metric *m, char buf[METRIC_NAME_MAX], unsigned *per)
{
	const bool us = is_us(m);
	/* Of any process, as Prometheus's libraries name them. */
	const char *prefix = strncmp(m->name, "process_", 8) == 0 ? "" : "smcrd_";

	snprintf(buf, METRIC_NAME_MAX, "%s%.*s%s", prefix, (int)strlen(m->name) - (us ? 3 : 0), m->name,
	    us ? "_seconds" : "");
	*per = us ? 1000000 : m->per;
	return buf;
}

const char *
metric_help(const struct metric *m)
{
	return is_us(m) && strncmp(m->help, "micro", 5) == 0 ? m->help + 5 : m->help;
}
