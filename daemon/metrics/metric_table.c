/* The table of metrics; see metric_table.h. */
#include "daemon/metrics/metric_table.h"

#include <stdio.h>
#include <string.h>

static const struct metric_labels none = { .sub = NULL };
static const struct metric_labels service = { NULL, { { "service", "name" }, { "kind", "kind" } }, { { 0 } } };
static const struct metric_labels local = { "fallback_reasons_local", { { "service", "name" }, { "kind", "kind" } },
	{ { "code", "code" }, { "reason", "text" } } };
static const struct metric_labels peer = { "fallback_reasons_peer", { { "service", "name" }, { "kind", "kind" } },
	{ { "code", "code" }, { "reason", "text" } } };
static const struct metric_labels resets = { "reset_reasons", { { "service", "name" }, { "kind", "kind" } },
	{ { "reason", "text" } } };
static const struct metric_labels worker = { NULL, { { "worker", "worker" } }, { { 0 } } };
static const struct metric_labels group = { NULL, { { "group", "id" } }, { { 0 } } };
static const struct metric_labels group_info = { NULL,
	{ { "group", "id" }, { "worker", "worker" }, { "role", "role" }, { "type", "type" }, { "state", "state" },
	    { "peer", "peer" }, { "peer_id", "peer_id" } },
	{ { 0 } } };
static const struct metric_labels link = { NULL,
	{ { "group", "group" }, { "link", "number" }, { "user_id", "user_id" }, { "device", "device" } }, { { 0 } } };
static const struct metric_labels link_info = { NULL,
	{ { "group", "group" }, { "link", "number" }, { "user_id", "user_id" }, { "device", "device" },
	    { "transport", "transport" }, { "state", "state" }, { "gid", "gid" } },
	{ { 0 } } };
static const struct metric_labels device = { NULL, { { "device", "name" }, { "worker", "worker" } }, { { 0 } } };
static const struct metric_labels device_info = { NULL,
	{ { "device", "name" }, { "worker", "worker" }, { "provider", "provider" }, { "transport", "transport" },
	    { "interface", "interface" }, { "gid", "gid" }, { "card", "card" } },
	{ { 0 } } };
static const struct metric_labels build = { NULL, { { "version", "version" } }, { { 0 } } };

#define REFUSED(member, why)                                                                                 \
	{                                                                                                    \
		"service_refused", METRIC_COUNTER, REPORT_SERVICE, &service, member, NULL, "reason", why, 0, \
		    "Connections that were refused."                                                         \
	}
#define MODES(name, of, labels, member, help)                                                   \
	{ name, METRIC_GAUGE, of, labels, member ".smcr", NULL, "mode", "smcr", 0, help },      \
	    { name, METRIC_GAUGE, of, labels, member ".tcp", NULL, "mode", "tcp", 0, help },    \
	{                                                                                       \
		name, METRIC_GAUGE, of, labels, member ".setup", NULL, "mode", "setup", 0, help \
	}
#define GAUGE(name, of, labels, member, help)                                     \
	{                                                                         \
		name, METRIC_GAUGE, of, labels, member, NULL, NULL, NULL, 0, help \
	}
#define COUNTER(name, of, labels, member, help)                                     \
	{                                                                           \
		name, METRIC_COUNTER, of, labels, member, NULL, NULL, NULL, 0, help \
	}
#define OF(name, per, of, labels, member, help)                                     \
	{                                                                           \
		name, METRIC_GAUGE, of, labels, member, NULL, NULL, NULL, per, help \
	}
#define IS(name, of, labels, member, word, help)                                  \
	{                                                                         \
		name, METRIC_GAUGE, of, labels, member, word, NULL, NULL, 0, help \
	}
#define INFO(name, of, labels, help)                                           \
	{                                                                      \
		name, METRIC_INFO, of, labels, NULL, NULL, NULL, NULL, 0, help \
	}
#define TIMES(name, of, labels, member, help)                                     \
	{                                                                         \
		name, METRIC_TIMES, of, labels, member, NULL, NULL, NULL, 0, help \
	}

#define STATS(source, field, words)                                      \
	COUNTER(CONTROL_COUNTER_KEY(source, field), REPORT_STATS, &none, \
	    "counters." CONTROL_COUNTER_KEY(source, field), words),

#define DEVICE(field, help) COUNTER("device_" #field, REPORT_DEVICE, &device, "stats." #field, help),

/* clang-format off */
const struct metric metric_table[] = {
	INFO("build", REPORT_STATUS, &build, "The smcrd that runs."),
	OF("uptime_seconds", 1000, REPORT_STATUS, &none, "uptime_ms", "Time since the daemon was started."),
	GAUGE("draining", REPORT_STATUS, &none, "draining", "1 when the daemon takes no new connections and ends with the last one."),
	GAUGE("resident_memory_bytes", REPORT_STATUS, &none, "rss_bytes", "Resident memory of the process."),
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
	COUNTER("service_accepted", REPORT_SERVICE, &service, "accepted", "Connections that were accepted, those refused included."),
	REFUSED("refused_allow", "not_allowed"),
	REFUSED("refused_max", "max_connections"),
	REFUSED("refused_per_peer", "max_connections_per_peer"),
	REFUSED("refused_connect", "far_end"),
	REFUSED("refused_fallback", "fallback_forbidden"),
	REFUSED("refused_disabled", "disabled"),
	COUNTER("service_fallbacks", REPORT_SERVICE, &service, "fallbacks", "Connections that went by TCP."),
	COUNTER("service_fallback_reasons_local", REPORT_FIGURES, &local, "count", "Why connections went by TCP or were refused, for a reason of ours: the 10 most frequent ones."),
	COUNTER("service_fallback_reasons_peer", REPORT_FIGURES, &peer, "count", "Why connections went by TCP or were refused, as the peer declined: the 10 most frequent ones."),
	COUNTER("service_resets", REPORT_SERVICE, &service, "resets", "Connections that ended by a reset."),
	COUNTER("service_reset_reasons", REPORT_FIGURES, &resets, "count", "Why connections ended by a reset."),
	{ "service_bytes", METRIC_COUNTER, REPORT_FIGURES, &service, "bytes_from_app", NULL, "direction", "from_app", 0, "Bytes from and to a service's programs." },
	{ "service_bytes", METRIC_COUNTER, REPORT_FIGURES, &service, "bytes_to_app", NULL, "direction", "to_app", 0, "Bytes from and to a service's programs." },
	TIMES("service_setup_seconds", REPORT_FIGURES, &service, "setup_time", "From accepting a connection to carrying data."),
	TIMES("service_connect_seconds", REPORT_FIGURES, &service, "connect_time", "Connecting to the peer (ingress) or the server (egress)."),
	TIMES("service_life_seconds", REPORT_FIGURES, &service, "life_time", "From accepting a connection to its end."),
	{ "write_size_bytes", METRIC_SIZES, REPORT_STATS, &none, "write_size", NULL, NULL, NULL, 0, "Sizes of RDMA writes." },
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
	const size_t len = strlen(m->name);
	bool us = is_us(m);

	snprintf(buf, METRIC_NAME_MAX, "smcrd_%.*s%s", (int)(us ? len - 3 : len), m->name, us ? "_seconds" : "");
	*per = us ? 1000000 : m->per;
	return buf;
}

const char *
metric_help(const struct metric *m)
{
	static const char micro[] = "micro";
	const size_t len = sizeof(micro) - 1;

	return is_us(m) && strncmp(m->help, micro, len) == 0 ? m->help + len : m->help;
}
