/* The table of metrics; see metric_table.h. */
#include "daemon/metrics/metric_table.h"

#include <stdio.h>
#include <string.h>

#include "control/counters.h"

static const struct metric_labels none = { .array = NULL };
static const struct metric_labels service = { "services", NULL, { { "service", "name" }, { "kind", "kind" } },
	{ { 0 } } };
static const struct metric_labels local = { "services", "fallback_reasons_local",
	{ { "service", "name" }, { "kind", "kind" } }, { { "code", "code" }, { "reason", "text" } } };
static const struct metric_labels peer = { "services", "fallback_reasons_peer",
	{ { "service", "name" }, { "kind", "kind" } }, { { "code", "code" }, { "reason", "text" } } };
static const struct metric_labels resets = { "services", "reset_reasons", { { "service", "name" }, { "kind", "kind" } },
	{ { "reason", "text" } } };
static const struct metric_labels worker = { "workers", NULL, { { "worker", "worker" } }, { { 0 } } };
static const struct metric_labels group = { "groups", NULL, { { "group", "id" } }, { { 0 } } };
static const struct metric_labels group_info = { "groups", NULL,
	{ { "group", "id" }, { "worker", "worker" }, { "role", "role" }, { "type", "type" }, { "state", "state" },
	    { "peer", "peer" }, { "peer_id", "peer_id" } },
	{ { 0 } } };
static const struct metric_labels link = { "links", NULL,
	{ { "group", "group" }, { "link", "number" }, { "user_id", "user_id" }, { "device", "device" } }, { { 0 } } };
static const struct metric_labels link_info = { "links", NULL,
	{ { "group", "group" }, { "link", "number" }, { "user_id", "user_id" }, { "device", "device" },
	    { "transport", "transport" }, { "state", "state" }, { "gid", "gid" } },
	{ { 0 } } };
static const struct metric_labels device = { "devices", NULL, { { "device", "name" }, { "worker", "worker" } },
	{ { 0 } } };
static const struct metric_labels device_info = { "devices", NULL,
	{ { "device", "name" }, { "worker", "worker" }, { "provider", "provider" }, { "transport", "transport" },
	    { "interface", "interface" }, { "gid", "gid" }, { "card", "card" } },
	{ { 0 } } };
static const struct metric_labels build = { NULL, NULL, { { "version", "version" } }, { { 0 } } };

#define REFUSED(member, why)                                                                             \
	{                                                                                                \
		"service_refused", METRIC_COUNTER, DOC_STATUS, &service, member, NULL, "reason", why, 0, \
		    "Connections that were refused."                                                     \
	}
#define MODES(name, doc, labels, member, help)                                                   \
	{ name, METRIC_GAUGE, doc, labels, member ".smcr", NULL, "mode", "smcr", 0, help },      \
	    { name, METRIC_GAUGE, doc, labels, member ".tcp", NULL, "mode", "tcp", 0, help },    \
	{                                                                                        \
		name, METRIC_GAUGE, doc, labels, member ".setup", NULL, "mode", "setup", 0, help \
	}
#define GAUGE(name, doc, labels, member, help)                                     \
	{                                                                          \
		name, METRIC_GAUGE, doc, labels, member, NULL, NULL, NULL, 0, help \
	}
#define COUNTER(name, doc, labels, member, help)                                     \
	{                                                                            \
		name, METRIC_COUNTER, doc, labels, member, NULL, NULL, NULL, 0, help \
	}
#define OF(name, per, doc, labels, member, help)                                     \
	{                                                                            \
		name, METRIC_GAUGE, doc, labels, member, NULL, NULL, NULL, per, help \
	}
#define IS(name, doc, labels, member, word, help)                                  \
	{                                                                          \
		name, METRIC_GAUGE, doc, labels, member, word, NULL, NULL, 0, help \
	}
#define INFO(name, doc, labels, help)                                           \
	{                                                                       \
		name, METRIC_INFO, doc, labels, NULL, NULL, NULL, NULL, 0, help \
	}
#define TIMES(name, labels, member, help)                                                \
	{                                                                                \
		name, METRIC_TIMES, DOC_STATS, labels, member, NULL, NULL, NULL, 0, help \
	}

#define NO_COUNTER(heading)
#define STATS(source, field, words)                                                                                   \
	COUNTER(CONTROL_COUNTER_KEY(source, field), DOC_STATS, &none, "counters." CONTROL_COUNTER_KEY(source, field), \
	    words),

/* Of report_device_stats, which a test compares. */
#define DEVICE(field, help) COUNTER("device_" field, DOC_DEVICES, &device, "stats." field, help)

/* clang-format off */
const struct metric metric_table[] = {
	INFO("build", DOC_STATUS, &build, "The smcrd that runs."),
	OF("uptime_seconds", 1000, DOC_STATUS, &none, "uptime_ms", "Time since the daemon was started."),
	GAUGE("draining", DOC_STATUS, &none, "draining", "1 when the daemon takes no new connections and ends with the last one."),
	GAUGE("resident_memory_bytes", DOC_STATUS, &none, "rss_bytes", "Resident memory of the process."),
	MODES("connections", DOC_STATUS, &none, "connections", "Proxied connections now: on SMC-R, on TCP after a fallback, being set up."),
	GAUGE("groups", DOC_STATUS, &none, "groups", "Link groups now."),
	GAUGE("links", DOC_STATUS, &none, "links", "Links now, of all groups."),
	GAUGE("rmb_bytes", DOC_STATUS, &none, "rmb_bytes", "Memory of our RMBs now."),
	GAUGE("rmb_bytes_limit", DOC_STATUS, &none, "rmb_bytes_max", "What all RMBs together may have (rmb_memory_max)."),
	GAUGE("send_buffer_bytes", DOC_STATUS, &none, "sndbuf_bytes", "Memory of send buffers now."),
	GAUGE("send_buffer_bytes_limit", DOC_STATUS, &none, "sndbuf_bytes_max", "What all send buffers together may have (send_memory_max)."),
	GAUGE("devices", DOC_STATUS, &none, "devices", "RDMA devices now."),
	GAUGE("devices_up", DOC_STATUS, &none, "devices_up", "RDMA devices now, of them those whose port is up."),
	COUNTER("worker_turns", DOC_STATUS, &worker, "turns", "Turns of a worker's event loop."),
	MODES("worker_connections", DOC_STATUS, &worker, "connections", "Proxied connections of a worker now."),
	GAUGE("worker_groups", DOC_STATUS, &worker, "groups", "Link groups of a worker now."),
	GAUGE("worker_links", DOC_STATUS, &worker, "links", "Links of a worker now."),
	GAUGE("worker_rmb_bytes", DOC_STATUS, &worker, "rmb_bytes", "Memory of a worker's RMBs now."),

	MODES("service_connections", DOC_STATS, &service, "modes", "Proxied connections of a service now."),
	GAUGE("service_connections_limit", DOC_STATUS, &service, "connections_max", "Connections that a service may have (max_connections)."),
	GAUGE("service_closed", DOC_STATUS, &service, "closed", "1 when a service does not listen, as no target works (when_down)."),
	GAUGE("service_disabled", DOC_STATUS, &service, "disabled", "1 when a service takes no new connections, as an operator has disabled it."),
	COUNTER("service_accepted", DOC_STATUS, &service, "accepted", "Connections that were accepted, those refused included."),
	REFUSED("refused_allow", "not_allowed"),
	REFUSED("refused_max", "max_connections"),
	REFUSED("refused_per_peer", "max_connections_per_peer"),
	REFUSED("refused_connect", "far_end"),
	REFUSED("refused_fallback", "fallback_forbidden"),
	REFUSED("refused_disabled", "disabled"),
	COUNTER("service_fallbacks", DOC_STATUS, &service, "fallbacks", "Connections that went by TCP."),
	COUNTER("service_fallback_reasons_local", DOC_STATS, &local, "count", "Why connections went by TCP or were refused, for a reason of ours: the 10 most frequent ones."),
	COUNTER("service_fallback_reasons_peer", DOC_STATS, &peer, "count", "Why connections went by TCP or were refused, as the peer declined: the 10 most frequent ones."),
	COUNTER("service_resets", DOC_STATUS, &service, "resets", "Connections that ended by a reset."),
	COUNTER("service_reset_reasons", DOC_STATS, &resets, "count", "Why connections ended by a reset."),
	{ "service_bytes", METRIC_COUNTER, DOC_STATS, &service, "bytes_from_app", NULL, "direction", "from_app", 0, "Bytes from and to a service's programs." },
	{ "service_bytes", METRIC_COUNTER, DOC_STATS, &service, "bytes_to_app", NULL, "direction", "to_app", 0, "Bytes from and to a service's programs." },
	TIMES("service_setup_seconds", &service, "setup_time", "From accepting a connection to carrying data."),
	TIMES("service_connect_seconds", &service, "connect_time", "Connecting to the peer (ingress) or the server (egress)."),
	TIMES("service_life_seconds", &service, "life_time", "From accepting a connection to its end."),
	{ "write_size_bytes", METRIC_SIZES, DOC_STATS, &none, "write_size", NULL, NULL, NULL, 0, "Sizes of RDMA writes." },
	TIMES("blocked_seconds", &none, "blocked_time", "How long a peer's full buffer held writing up, each time."),

	INFO("group", DOC_GROUPS, &group_info, "A link group."),
	GAUGE("group_connections", DOC_GROUPS, &group, "connections", "Connections of a link group now."),
	GAUGE("group_links", DOC_GROUPS, &group, "links", "Links of a link group now."),
	GAUGE("group_links_limit", DOC_GROUPS, &group, "links_limit", "Links that a link group may have, as both ends agreed."),
	GAUGE("group_rmb_bytes", DOC_GROUPS, &group, "rmb_bytes", "Memory of a link group's RMBs now."),
	GAUGE("group_send_buffer_bytes", DOC_GROUPS, &group, "sndbuf_bytes", "Memory of a link group's send buffers now."),
	OF("group_last_failover_seconds", 1000000, DOC_GROUPS, &group, "last_failover.duration_us", "How long the last failover took until every connection had resumed; nothing when there was none."),
	INFO("link", DOC_LINKS, &link_info, "A link of a link group."),
	IS("link_active", DOC_LINKS, &link, "state", "active", "1 when the link carries data, or could."),
	GAUGE("link_connections", DOC_LINKS, &link, "connections", "Connections on a link now."),
	OF("link_round_trip_seconds", 1000000, DOC_LINKS, &link, "rtt_us", "Round trip of the last TEST LINK; nothing before the first."),
	OF("link_idle_seconds", 1000, DOC_LINKS, &link, "idle_ms", "Time since something was received on a link."),
	COUNTER("link_retransmits", DOC_LINKS, &link, "retransmits", "Packets that were sent again below a link of soft iWARP; nothing where it is not known."),
	GAUGE("link_unacked", DOC_LINKS, &link, "unacked", "Packets below a link of soft iWARP that are not acknowledged now; nothing where it is not known."),

	INFO("device", DOC_DEVICES, &device_info, "An RDMA device, as a worker has it."),
	IS("device_up", DOC_DEVICES, &device, "port", "up", "1 when the port of a device is up."),
	GAUGE("device_queue_pairs", DOC_DEVICES, &device, "qps", "Queue pairs of a device now."),
	GAUGE("device_queue_pairs_limit", DOC_DEVICES, &device, "qps_max", "Queue pairs that a device may have."),
	GAUGE("device_memory_regions", DOC_DEVICES, &device, "mrs", "Memory regions of a device now."),
	GAUGE("device_memory_regions_limit", DOC_DEVICES, &device, "mrs_max", "Memory regions that a device may have."),
	GAUGE("device_registered_bytes", DOC_DEVICES, &device, "registered_bytes", "Memory that is registered with a device now."),
	DEVICE("sends_posted", "Sends that were posted on a card."),
	DEVICE("writes_posted", "RDMA writes that were posted on a card."),
	DEVICE("doorbells", "Calls that handed requests to a card."),
	DEVICE("completions", "Completions that were taken of a card."),
	DEVICE("polls", "Calls that looked for completions of a card."),
	DEVICE("wakeups", "Times that a card woke the daemon."),
	DEVICE("rnr_retry_exc", "Requests that failed because the peer had no receive posted."),
	DEVICE("retry_exc", "Requests that failed because the peer did not answer."),
	DEVICE("remote_access_errs", "Requests that the peer refused."),
	DEVICE("flushed", "Requests that ended with their queue pair."),
	DEVICE("other_errs", "Requests that failed otherwise."),
	DEVICE("async_events", "Events of card, port or queue pair."),
	DEVICE("reads_sent", "Reads that confirm what was posted before them."),
	DEVICE("mpa_refused_token", "iWARP connections refused: not of a peer, or not for a link that waits."),
	DEVICE("mpa_refused_parked", "iWARP connections refused: nobody expected them in time."),
	DEVICE("fpdus_sent", "DDP segments sent."),
	DEVICE("fpdus_received", "DDP segments received."),
	DEVICE("bytes_sent", "Bytes sent in DDP streams."),
	DEVICE("bytes_received", "Bytes received in DDP streams."),
	DEVICE("reads_served", "Reads of peers that were answered."),
	DEVICE("mpa_refused_address", "iWARP connections from addresses that may not connect."),
	DEVICE("mpa_bad", "iWARP connections without a proper request in time, or that made place for others."),
	DEVICE("terminates_sent", "Terminate messages sent."),
	DEVICE("terminates_received", "Terminate messages received."),
	DEVICE("crc_errors", "FPDUs or SCTP packets with a wrong CRC."),
	DEVICE("recv_stalls", "Times that reading stopped because no receive was posted."),
	DEVICE("accept_pauses", "Times that accepting stopped because descriptors ran out."),
	DEVICE("linger_refused", "Connections closed at once though something was left to say."),
	DEVICE("strangers_limited", "SCTP packets of no association, more than are looked at."),
	DEVICE("sctp_retransmits", "SCTP messages sent again, by all devices of the daemon together."),
	DEVICE("no_memory", "Connections closed, or last words not sent, for want of memory."),

	CONTROL_COUNTERS(NO_COUNTER, STATS)
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
