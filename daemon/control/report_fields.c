/* Every member of what is reported, by kind of object, in the order in which it is written; see report_rows.h and field.h. */
#include <arpa/inet.h>
#include <inttypes.h>
#include <stdio.h>

#include "base/addr.h"
#include "daemon/control/control.h"
#include "daemon/control/report_rows.h"
#include "daemon/session/session.h"
#include "wire/clc.h"

/* -- forms -- */

/* clang-format off */
/* A text of a member m of this type. */
#define FORM(name, of, expr) \
	static const char *name(const void *member, char buf[FIELD_TEXT_MAX]) { const of *m = member; (void)buf; return expr; }

FORM(hex32, uint32_t, (snprintf(buf, FIELD_TEXT_MAX, "0x%08" PRIx32, *m), buf))
FORM(peer_id, uint8_t, (snprintf(buf, FIELD_TEXT_MAX, "%02x%02x%02x%02x%02x%02x%02x%02x", m[0], m[1], m[2], m[3], m[4], m[5], m[6], m[7]), buf))
FORM(mac, uint8_t, (snprintf(buf, FIELD_TEXT_MAX, "%02x:%02x:%02x:%02x:%02x:%02x", m[0], m[1], m[2], m[3], m[4], m[5]), buf))
FORM(gid, struct rnic_gid, inet_ntop(AF_INET6, m->b, buf, FIELD_TEXT_MAX))
/* "192.0.2.1:80", "[2001:db8::1]:80"; "" for no address. */
FORM(address, struct sockaddr_storage, m->ss_family != AF_UNSPEC ? addr_format_port(m, buf, FIELD_TEXT_MAX) : "")
FORM(transport, enum rnic_transport, rnic_transport_str(*m))
FORM(os, uint8_t, *m != 0 ? clc_os_str(*m) : "")
FORM(diag, uint32_t, *m != 0 ? clc_diag_str(*m) : "")
FORM(reason, uint32_t, clc_diag_str(*m))
FORM(detail, struct smcr_diag, m->local != 0 ? m->detail : "")
FORM(side, bool, *m ? "remote" : "local")
FORM(app, union net_addr, m->sa.sa_family != AF_UNSPEC ? net_addr_str(m, buf, FIELD_TEXT_MAX) : "")
FORM(endpoint_state, enum endpoint_fault, *m != ENDPOINT_OK ? "failed" : "ok")
FORM(endpoint_why, struct endpoint, m->fault != ENDPOINT_OK ? m->why : "")
/* clang-format on */

/* Of a GID of iWARP: its IP address. */
static const char *
ip(const void *member, char buf[FIELD_TEXT_MAX])
{
	struct sockaddr_storage ss = { 0 };

	addr_from_v6(((const struct rnic_gid *)member)->b, 0, &ss);
	return addr_format(&ss, buf, FIELD_TEXT_MAX);
}

static const char *
mpa_peer(const void *member, char buf[FIELD_TEXT_MAX])
{
	struct sockaddr_storage ss = { 0 };
	const struct smcr_diag *d = member;

	if (d->local != 0 && d->mpa_port != 0)
		addr_from_v6(d->rnic.b, d->mpa_port, &ss);
	return address(&ss, buf);
}

static void
write_offered(struct json_writer *jw, const void *member)
{
	const uint8_t offered = *(const uint8_t *)member;

	for (unsigned bit = 1; bit < CLC_TRANSPORT_PREWARM; bit <<= 1)
		if ((offered & bit) != 0 && clc_transport_str(bit) != NULL)
			jw_string(jw, NULL, clc_transport_str(bit));
}

static void
write_addresses(struct json_writer *jw, const void *member)
{
	const struct report_device *d = member;
	char buf[FIELD_TEXT_MAX];

	if (rnic_is_iwarp(d->d.rnic.transport))
		jw_string(jw, NULL, ip(&d->d.rnic.gid, buf));
	for (unsigned i = 0; d->d.more_addrs != NULL && i < d->d.more_addrs->cnt; i++)
		jw_string(jw, NULL, addr_format(&d->d.more_addrs->at[i], buf, sizeof(buf)));
}

/* clang-format off */
#define BOUNDS(name, bounds) static void name(struct json_writer *jw, const void *member) \
	{ (void)member; for (unsigned i = 0; i < HISTOGRAM_BOUNDS; i++) jw_uint(jw, NULL, bounds[i]); }

BOUNDS(write_times, histogram_times_us)
BOUNDS(write_sizes, histogram_sizes)

/* A member of each struct history_sample, from that of the first one on. */
#define SERIES_OF(name, type) static void name(struct json_writer *jw, const void *member) \
	{ for (unsigned i = 0; i < HISTORY_SAMPLES; i++) jw_uint(jw, NULL, *(const type *)(const void *)((const char *)member + i * sizeof(struct history_sample))); }

SERIES_OF(write_counts, uint32_t) SERIES_OF(write_bytes, uint64_t)
/* -- words -- */
const char *const report_gid_type_words[] = {
	[RNIC_GID_NONE] = "", [RNIC_GID_IB] = "ib", [RNIC_GID_ROCE_V1] = "roce_v1", [RNIC_GID_ROCE_V2] = "roce_v2" };
static const char *const conn_role_words[] = { [CONFIG_INGRESS] = "client", [CONFIG_EGRESS] = "server" };
static const char *const role_words[] = { [SMCR_CLIENT] = "client", [SMCR_SERVER] = "server" };
static const char *const protection_words[] = { "none", "macsec", "ipsec", "psp" }; /* enum rnic_protection */
static const char *const port_words[] = { [RNIC_PORT_DOWN] = "down", [RNIC_PORT_UP] = "up" };
static const char *const path_state_words[] = { [RNIC_PATH_UNKNOWN] = "unknown", [RNIC_PATH_ACTIVE] = "active",
	[RNIC_PATH_SUSPECT] = "doubted", [RNIC_PATH_INACTIVE] = "inactive", [RNIC_PATH_UNCONFIRMED] = "unconfirmed" };

/* -- tables; s is the tag of a struct, m its member -- */

#define F(s, m, name, meaning) FIELD(struct s, m, name, meaning)
#define MS_OF(s, m, name, meaning) { FIELD_AS(FIELD_MS, struct s, m, name, meaning) }
#define US_OF(s, m, name, meaning) { FIELD_AS(FIELD_US, struct s, m, name, meaning) }
#define WORD(s, m, name, of, meaning) { FIELD_AS(FIELD_WORD, struct s, m, name, meaning), .words = of }
#define TEXT(s, m, name, by, meaning) { FIELD_AS(FIELD_TEXT, struct s, m, name, meaning), .text = by }
#define OBJECT(s, m, name, of, meaning) { FIELD_AS(FIELD_OBJECT, struct s, m, name, meaning), .members = of }
#define INLINE(s, m, of) { FIELD_AS(FIELD_INLINE, struct s, m, NULL, NULL), .members = of }
#define ARRAY(s, m, name, of, each, meaning) { FIELD_AS(FIELD_ARRAY, struct s, m, name, meaning), .members = of, .size = sizeof(each) }
/* The object is the value. */
#define VALUE(as, n, mean) { .name = n, .type = as, .meaning = mean }
/* Of members of the struct itself. */
#define SELF_OBJECT(n, of, mean) { .name = n, .type = FIELD_OBJECT, .members = of, .meaning = mean }
#define INLINE_SELF(of) { .type = FIELD_INLINE, .members = of }
#define SELF_TEXT(n, by, mean) { .name = n, .type = FIELD_TEXT, .text = by, .meaning = mean }
#define LIST(n, of, mean) { .name = n, .type = FIELD_LIST, .members = of, .meaning = mean }
#define END { .type = FIELD_END }
#define FIELDS(name, ...) const struct field name[] = { __VA_ARGS__, END };

#define MODE(mode, n, mean) { .name = n, .type = FIELD_UINT64, .off = (mode) * sizeof(uint64_t), .meaning = mean }
static FIELDS(mode_fields,
	MODE(SESSION_SMCR, "smcr", "on SMC-R"),
	MODE(SESSION_TCP, "tcp", "fallen back to TCP"),
	MODE(SESSION_SETUP, "setup", "in the rendezvous"))
FIELDS(report_peer_fields,
	F(smcr_peer_info, version, "version", "of SMC-R, 1 or 2; 0 = there is no link group, and the next ones are 0, false or \"\""),
	F(smcr_peer_info, release, "release", "of version 2, as both ends agreed: 1 is SMC-R 2.1; otherwise 0"),
	F(smcr_peer_info, foreign, "foreign", "the peer is no smcrd but a host with AF_SMC"),
	F(smcr_peer_info, eid, "eid", "the enterprise id that both ends have, in version 2; otherwise \"\""),
	TEXT(smcr_peer_info, os, "peer_os", os, "the system of the peer, as it reports: `z/OS`, `Linux`, `AIX`, `unknown`; \"\" = not reported, as in version 1"),
	F(smcr_peer_info, host, "peer_host", "the peer's host name, as it reports; bytes that are no printable ASCII are `?`; \"\" = not reported"))
FIELDS(report_reason_fields,
	TEXT(smcr_diag, local, "local_code", hex32, "our reason, as in a CLC Decline (Linux's numbers); 0x00000000 = none"),
	TEXT(smcr_diag, local, "local_text", diag, "the same in words; \"\" = none"),
	TEXT(smcr_diag, peer, "peer_code", hex32, "the reason in the peer's Decline"),
	TEXT(smcr_diag, peer, "peer_text", diag, "the same in words"),
	SELF_TEXT("detail", detail, "our reason in more words: the device's, when the first link of a group could not be made; what was missing of SMC-R's TCP option; that of several devices none fits; otherwise \"\""),
	SELF_TEXT("mpa_peer", mpa_peer, "the peer's iWARP address and port that this is about (of TCP, or with SCTP of UDP), or \"\""),
	F(smcr_diag, over, "transport", "the transport of the first link of the group, as in `devices`, when that failed, at both ends; otherwise \"\""),
	{ FIELD_AS(FIELD_TEXTS, struct smcr_diag, offered, "offered", "with \"no RDMA device\" of either end: transports that the client, another smcrd, offered; otherwise `[]`"), .write = write_offered },
	F(smcr_diag, sctp_held_off, "sctp_held_off", "of a server, with `transport`: the peer's next first contacts do not use SCTP for a while, where both ends have another transport"),
	F(smcr_diag, out_of_sync, "out_of_sync", "the ends disagreed about a link group; the next connection makes a new one"),
	F(smcr_diag, held_off, "held_off", "the peer is not tried for a while after repeated failures"))

/* -- status -- */

static FIELDS(worker_fields,
	F(report_worker, worker, "worker", "its number, from 1"),
	F(report_worker, sum.turns, "turns", "of its event loop"),
	OBJECT(report_worker, sum.conns, "connections", mode_fields, "its connections by mode"),
	F(report_worker, sum.groups, "groups", "its link groups"),
	F(report_worker, sum.links, "links", "its links"),
	F(report_worker, sum.rmb_bytes, "rmb_bytes", "memory of its RMBs"))
static FIELDS(health_fields, TEXT(report_health, addr, "address", address, "as in `addresses` of `service`"),
	WORD(report_health, state, "state", health_words, "`up`, `down`, `held-off` (SMC-R is not tried with the peer for a while, so it does not say) or `unknown`"),
	MS_OF(report_health, since_ns, "since_ms", "for how long"), MS_OF(report_health, probed_ns, "probed_ms", "time since the last result of a probe; -1 = there was none yet"), F(report_health, why, "text", "why; \"\" when it is up"))
static FIELDS(service_fields,
	F(report_service, name, "name", "as configured"),
	WORD(report_service, kind, "kind", config_kind_words, "`ingress` (TCP in, SMC-R out) or `egress` (SMC-R in, TCP out)"),
	TEXT(report_service, listen, "listen", address, "where it listens; `unix:/path` for a UNIX socket"),
	F(report_service, to, "to", "where it connects to, as configured; several targets separated by `, `, up to 511 characters, then `...`"),
	F(report_service, waiting, "waiting", "what keeps it from connecting anywhere: `waiting for the name X: NXDOMAIN, ...`; \"\" when it has an address"),
	F(report_service, peer, "peer", "the other end of the CLC connection, as configured: `smcrd`, `linux` or `auto`"),
	F(report_service, info.disabled, "disabled", "an operator has disabled it: it takes no new connections"),
	F(report_service, info.closed, "closed", "does not listen, as no target works (`when_down`)"),
	MS_OF(report_service, held_off_ns, "held_off_ms", "of an ingress: for how long connections do not try SMC-R with the peer, as it failed repeatedly: the longest of all addresses and workers; 0 = they do"),
	WORD(report_service, health.state, "health", health_words, "with `probe`: the best state of its addresses, as below; \"\" without"),
	MS_OF(report_service, health.since_ns, "health_ms", "for how long"), F(report_service, health.why, "health_text", "why; \"\" when it is up"), ARRAY(report_service, probed, "probed", health_fields, struct report_health, "with `probe`: up to 16 of its addresses"),
	F(report_service, info.connections, "connections", "now"),
	F(report_service, connections_max, "connections_max", "limit of them"),
	F(report_service, info.accepted, "accepted", "connections accepted since start; of an egress, those of clients: not those by which the peer's daemon makes a link group ahead, or checks"),
	F(report_service, info.refused_allow, "refused_allow", "refused: not in the allow list, that of users, or that of clients"),
	F(report_service, info.refused_max, "refused_max", "refused: too many"),
	F(report_service, info.refused_per_peer, "refused_per_peer", "refused: too many of one address or user (`max_connections_per_peer`)"),
	F(report_service, info.refused_connect, "refused_connect", "refused: far end not reached, or it broke off the set-up"),
	F(report_service, info.refused_fallback, "refused_fallback", "refused: no SMC-R and `fallback = \"refuse\"`"),
	F(report_service, info.refused_disabled, "refused_disabled", "turned away while disabled or draining, where the kernel does not refuse for us (UNIX sockets, sockets of systemd)"),
	F(report_service, info.refused_header, "refused_header", "of an ingress with `accept_proxy`: a balancer's connection without a good PROXY header"),
	F(report_service, info.fallbacks, "fallbacks", "gone to TCP"),
	F(report_service, info.resets, "resets", "ended by a reset"),
	F(report_service, info.resets_client, "resets_client", "of these, by the client, or the peer for it, after data both ways: many programs end so"),
	F(report_service, info.clients_unused, "clients_unused", "of an ingress with `forward_client`: the peer did not pass the client's address on"),
	F(report_service, info.client_bind_failed, "client_bind_failed", "of an egress with `client_address` \"connect\": reset, as no port was free for the client's address"),
	F(report_service, info.not_captured, "not_captured", "of an ingress with `to` \"original\": refused, as no rule of the host had captured them"),
	F(report_service, info.no_via, "no_via", "refused, as `via` has no way to their destination"),
	F(report_service, info.dest_own, "dest_own", "refused, as the daemon itself is their source or destination"),
	F(report_service, info.dest_taken, "dest_taken", "whose destination was taken, by the peer or, of an egress with `to` \"requested\", here"),
	F(report_service, info.dest_refused, "dest_refused", "whose destination was refused, by the peer or, of an egress, here: not in `to_allow`, none, or one where `to` is fixed"),
	F(report_service, info.dest_unused, "dest_unused", "reset, as the peer takes no destinations"),
	F(report_service, info.bytes_from_app, "bytes_from_app", "bytes from its programs since start, of all of its connections, also those that have ended"),
	F(report_service, info.bytes_to_app, "bytes_to_app", "the same to its programs"))
static FIELDS(confine_part_fields,
	F(confine_part_state, on, "on", "in force"),
	F(confine_part_state, text, "text", "what is in force, or why it is not"))

#define PART(constant, word, meaning) OBJECT(confine_state, part[CONFINE_##constant], word, confine_part_fields, meaning),
static const struct field confine_fields[] = {
	WORD(confine_state, mode, "mode", confine_mode_words, "`off`, `auto` or `require`, as configured"),
	CONFINE_PARTS(PART)
	END
};

static FIELDS(option_fields,
	F(report_status, option_services, "services", "services that want it (`peer` is not `smcrd`)"),
	F(report_status, option_usable, "usable", "the kernel writes it for us"),
	F(report_status, option_why, "text", "why not; \"\" when it does"))
static FIELDS(certificate_fields, F(report_certificate, file, "file", "its path"),
	F(report_certificate, not_after_ms, "not_after_ms", "its end, since 1970"))
static FIELDS(predecessor_fields, F(report_predecessor, pid, "pid", "its process"))
static FIELDS(status_fields,
	F(report_status, src.version, "version", "of smcrd"),
	F(report_status, src.pid, "pid", "its process"),
	F(report_status, process.host, "host", "name of its host"),
	MS_OF(report_status, worker.uptime_ns, "uptime_ms", "since start"),
	F(report_status, worker.draining, "draining", "takes no new connections"),
	F(report_status, process.ends, "ends", "with its last connection"),
	MS_OF(report_status, left_ns, "limit_in_ms", "time until it resets the connections that are left; -1 = no limit"),
	F(report_status, process.successor, "successor", "the process that has taken over from this one; 0 = none"),
	ARRAY(report_status, predecessors, "predecessors", predecessor_fields, struct report_predecessor, "processes that were taken over and still run"),
	F(report_status, reload_failed, "reload_failed", "the last reload was refused: the configuration in force is not that of the file"),
	F(report_status, process.reload_error, "reload_error", "why it was refused; \"\" = it was not"),
	F(report_status, process.tls_error, "tls_error", "why changed files of `tls` are not in force; \"\" = they are"),
	F(report_status, process.tls_expiry, "tls_expiry", "from 14 days before the end of our certificate: when that is; else \"\""),
	ARRAY(report_status, certificates, "certificates", certificate_fields, struct report_certificate, "our certificate of `tls`"),
	F(report_status, process.waiting_settings, "waiting_settings", "settings of the file that were read by a reload, and wait for a take-over"),
	F(report_status, src.rss_bytes, "rss_bytes", "resident memory of the process"),
	F(report_status, src.cpu_us, "cpu_us", "processor time of the process so far, of all threads"),
	F(report_status, process.started_ms, "started_ms", "when the process was started, since 1970"),
	F(report_status, process.loaded_ms, "loaded_ms", "when the configuration in force was put there, at the start or by a reload, since 1970"),
	F(report_status, src.open_files, "open_files", "open files of the process; -1 = not known"),
	F(report_status, src.open_files_max, "open_files_max", "the process's limit of open files; -1 = none"),
	F(report_status, src.locked_bytes_max, "locked_bytes_max", "the process's limit of locked memory; -1 = none"),
	OBJECT(report_status, sum.conns, "connections", mode_fields, "connections by mode"),
	F(report_status, sum.secured, "secured", "connections now whose peer has proven its name by TLS"),
	F(report_status, sum.groups, "groups", "link groups"),
	F(report_status, sum.links, "links", "links of all of them"),
	F(report_status, sum.rmb_bytes, "rmb_bytes", "memory of our RMBs"),
	F(report_status, sum.rmb_bytes_max, "rmb_bytes_max", "limit of all RMBs together (`rmb_memory_max`)"),
	F(report_status, sum.sndbuf_bytes, "sndbuf_bytes", "memory of send buffers"),
	F(report_status, sum.sndbuf_bytes_max, "sndbuf_bytes_max", "limit of all send buffers together (`send_memory_max`)"),
	F(report_status, sum.devices, "devices", "RDMA devices"),
	F(report_status, sum.devices_up, "devices_up", "those whose port is up"),
	OBJECT(report_status, confine, "confinement", confine_fields, "how the process is confined (smcrd(8) has the parts)"),
	SELF_OBJECT("tcp_option", option_fields, "SMC-R's TCP option (`peer` in smcrd.conf(5))"),
	LIST("workers", worker_fields, "each worker; the members above are their sums"),
	LIST("services", service_fields, "each service"))
static FIELDS(drain_fields,
	F(report_status, worker.draining, "draining", "takes no new connections"),
	F(report_status, process.ends, "ends", "with its last connection"),
	OBJECT(report_status, sum.conns, "connections", mode_fields, "connections by mode"))
static FIELDS(close_fields, VALUE(FIELD_UINT64, "closed", "connections closed; one whose end has begun is not counted"))

/* -- service -- */

static FIELDS(target_fields,
	F(report_target, target, "target", "as configured"),
	F(report_target, name_error, "name_error", "why its name was not found when it was looked up last; \"\" when it was, or is an address"))
static FIELDS(address_fields,
	TEXT(report_address, e.addr, "address", address, "`192.0.2.1:80`"),
	F(report_address, target, "target", "which of `to` it belongs to"),
	F(report_address, e.priority, "priority", "of its SRV record; 0"),
	F(report_address, e.weight, "weight", "of its SRV record; 0"),
	TEXT(report_address, e.fault, "state", endpoint_state, "`ok`, as far as is known, or `failed`"),
	TEXT(report_address, e, "text", endpoint_why, "why it failed; \"\""),
	F(report_address, e.connections, "connections", "TCP connections made to it for the service's connections"),
	F(report_address, e.failures, "failures", "of these, those that could not be made, or that it broke off in the set-up"),
	F(report_address, e.passed_over, "passed_over", "connections that another address was chosen for because it had failed"))
static FIELDS(via_fields,
	F(report_via, net, "net", "destinations: `192.0.2.0/24`"),
	F(report_via, port_min, "port_min", "their first port"),
	F(report_via, port_max, "port_max", "their last port"),
	F(report_via, peer, "peer", "where their egress listens; `*:15000`: at the destination's address"))
static FIELDS(setting_fields,
	F(report_setting, name, "name", "the setting"),
	F(report_setting, value, "value", "as the configuration would have it; \"\" when it has none; up to 2000 characters, then `...`"))
static FIELDS(outage_fields,
	F(outage_info, text, "text", "why it cannot be reached now; \"\" when it can, as far as is known"),
	F(outage_info, failed, "failed", "connections since"),
	MS_OF(outage_info, age_ns, "age_ms", "for how long"))
static FIELDS(one_service_fields,
	INLINE(report_one_service, service, service_fields),
	OBJECT(report_one_service, modes, "modes", mode_fields, "its connections by mode"),
	LIST("targets", target_fields, "what `to` names"),
	LIST("addresses", address_fields, "what `to` stands for at present, over all workers"),
	LIST("via", via_fields, "destinations of an ingress with `to = \"original\"`"),
	F(report_one_service, listens_here, "listens_here", "false: an address with `freebind` that no interface has now"),
	OBJECT(report_one_service, outage, "outage", outage_fields, "of the far end"),
	F(report_one_service, user, "user", "the daemon's user: rules that capture connections leave its own out"),
	LIST("settings", setting_fields, "each setting that it has"))

/* -- stats -- */

static FIELDS(count_fields,
	TEXT(tally_entry, key, "code", hex32, "number as in a CLC Decline (Linux's numbers)"),
	TEXT(tally_entry, key, "text", reason, "in words"),
	F(tally_entry, cnt, "count", "how often"))
static FIELDS(reset_fields,
	F(report_reset, text, "text", "in words, which may change"),
	F(report_reset, cnt, "count", "how often"))

#define COUNTER(source, field, words) \
	{ .name = CONTROL_COUNTER_KEY(source, field), .type = FIELD_UINT64, .off = REPORT_COUNTER(source, field) * sizeof(uint64_t), .meaning = words },
static const struct field counter_fields[] = {
	CONTROL_COUNTERS(REPORT_NONE, COUNTER)
	END
};

static FIELDS(figures_fields,
	F(report_figures, name, "name", "as in `status`"),
	WORD(report_figures, kind, "kind", config_kind_words, "as in `status`"),
	OBJECT(report_figures, stats.modes, "modes", mode_fields, "its connections now, by mode"),
	F(report_figures, stats.bytes[WAY_FROM_APP], "bytes_from_app", "bytes from its programs, those of connections that go on included"),
	F(report_figures, stats.bytes[WAY_TO_APP], "bytes_to_app", "the same to its programs"),
	{ FIELD_AS(FIELD_TIMES, struct report_figures, stats.setup, "setup_time", "from accepting a connection to carrying data, on SMC-R or on TCP") },
	{ FIELD_AS(FIELD_TIMES, struct report_figures, stats.connect, "connect_time", "of the connection to the peer (ingress) or the server (egress), the attempt that was answered") },
	{ FIELD_AS(FIELD_TIMES, struct report_figures, stats.life, "life_time", "of connections that have ended") },
	ARRAY(report_figures, local, "fallback_reasons_local", count_fields, struct tally_entry, "as above, of this service alone"),
	ARRAY(report_figures, peer, "fallback_reasons_peer", count_fields, struct tally_entry, "as above, of this service alone"),
	ARRAY(report_figures, resets, "reset_reasons", reset_fields, struct report_reset, "why its connections were reset"))
static FIELDS(stats_fields,
	OBJECT(report_stats, counters, "counters", counter_fields, "since the start of the daemon; they are never reset"),
	ARRAY(report_stats, local, "fallback_reasons_local", count_fields, struct tally_entry, "the up to 10 most frequent reasons of ours why connections went by TCP or were refused"),
	ARRAY(report_stats, peer, "fallback_reasons_peer", count_fields, struct tally_entry, "the same of peers' Declines"),
	{ .name = "time_bounds_us", .type = FIELD_NUMBERS, .write = write_times, .meaning = "the upper bounds of all histograms of times" },
	{ .name = "size_bounds_bytes", .type = FIELD_NUMBERS, .write = write_sizes, .meaning = "the upper bounds of all histograms of sizes" },
	{ FIELD_AS(FIELD_SIZES, struct report_stats, histograms.write_size, "write_size", "sizes of RDMA writes") },
	{ FIELD_AS(FIELD_TIMES, struct report_stats, histograms.blocked, "blocked_time", "for how long a peer's full buffer held our writing up, each time") },
	LIST("services", figures_fields, "each service"))

/* -- history -- */
#define SERIES(m, n, by, mean) { FIELD_AS(FIELD_NUMBERS, struct report_history, at[0].m, n, mean), .write = by }
static FIELDS(series_fields,
	SERIES(modes[SESSION_SMCR], "smcr", write_counts, "connections on SMC-R, at the end of each step"),
	SERIES(modes[SESSION_TCP], "tcp", write_counts, "the same on TCP"),
	SERIES(modes[SESSION_SETUP], "setup", write_counts, "the same in the rendezvous"),
	SERIES(accepted, "accepted", write_counts, "accepted in each step, those refused included"),
	SERIES(refused, "refused", write_counts, "refused or turned away in each step"),
	SERIES(bytes[WAY_FROM_APP], "bytes_from_app", write_bytes, "bytes from programs in each step"),
	SERIES(bytes[WAY_TO_APP], "bytes_to_app", write_bytes, "the same to programs"),
	SERIES(rtt_us, "rtt_us", write_counts, "round trip by the last TEST LINK, at the end of each step: the longest of links in use, of a service those of the link group that its newest connection came to; 0 = not known"))
static FIELDS(history_fields, F(report_history, name, "name", "as in `status`"),
	WORD(report_history, kind, "kind", config_kind_words, "as in `status`"),
	INLINE_SELF(series_fields))

static FIELDS(histories_fields,
	F(report_history, step_ms, "step_ms", "length of a step"),
	F(report_history, end_ms, "end_ms", "end of the last step: time of day, milliseconds since 1970-01-01 UTC. The step that runs now is not shown yet"),
	SELF_OBJECT("total", series_fields, "all services together, also those that a reload has removed; 120 steps, the oldest first, with zeros before the start"),
	LIST("services", history_fields, "each service that had a connection in this time, up to 128 in a worker, or the one that was asked for"))

/* -- lists -- */

static FIELDS(connection_fields,
	F(report_connection, s.id, "id", "of the proxied connection; no other worker has the same"), F(report_connection, worker, "worker", "its worker"),
	F(report_connection, s.service, "service", "its service"),
	WORD(report_connection, s.kind, "kind", config_kind_words, "`ingress` or `egress`"),
	WORD(report_connection, s.kind, "role", conn_role_words, "our SMC role: `client` (ingress) or `server` (egress)"),
	WORD(report_connection, s.mode, "mode", control_mode_words, "`smcr`, `tcp` or `setup`"),
	F(report_connection, s.state, "state", "of the proxied connection, in words"),
	TEXT(report_connection, s.app_peer, "app", app, "address of the program: the client of an ingress, the server of an egress; on a UNIX socket `unix:/path` of a server, `unix:uid=1000,pid=4711` of a client"), F(report_connection, app_uid, "app_uid", "on a UNIX socket: its user, of a server the one that listened; -1 = not known, or on TCP"),
	F(report_connection, app_pid, "app_pid", "on a UNIX socket: its process, of a server the one that listened; 0 = not known, or on TCP"),
	TEXT(report_connection, s.client, "client", app, "of an egress with `client_address`: the client that the peer forwards; \"\" without"),
	TEXT(report_connection, s.to, "destination", app, "of an ingress with `to` \"original\": where the program wanted to go; \"\" without"),
	TEXT(report_connection, s.middle_peer, "peer", address, "address of the far end of the SMC-R TCP connection"),
	F(report_connection, s.protection, "protection", "`tls`: all in TLS; `auth`: the peer has proven its name by TLS, and data is in clear on a card or SCTP; `clear`"),
	F(report_connection, s.suite, "tls_suite", "cipher suite of TLS 1.3, by its name in RFC 8446; with `auth` that of the CLC connection; \"\" without TLS"),
	F(report_connection, s.proven, "peer_name", "the name that the peer has proven by TLS; \"\" without"),
	OBJECT(report_connection, s.diag, "reason", report_reason_fields, "why it is on TCP"),
	F(report_connection, c.state, "smc_state", "state of RFC 7609, 4.8, or the step of the rendezvous; \"\" on TCP"),
	F(report_connection, c.group_id, "group", "link group; 0 = none"),
	F(report_connection, c.link, "link", "number of the link; 0 = none"),
	F(report_connection, c.over_link, "over_link", "opened over a link, without a CLC connection"),
	INLINE(report_connection, c.peer, report_peer_fields),
	TEXT(report_connection, c.id, "token", hex32, "our alert token"),
	TEXT(report_connection, c.peer_token, "peer_token", hex32, "the peer's alert token"),
	F(report_connection, c.sndbuf_size, "sndbuf_bytes", "send buffer"),
	F(report_connection, c.elem_size, "rmbe_bytes", "our RMB element"),
	F(report_connection, c.elem_idx, "rmbe_index", "our RMB element"),
	F(report_connection, c.peer_elem_size, "peer_rmbe_bytes", "the peer's"),
	F(report_connection, c.peer_elem_idx, "peer_rmbe_index", "the peer's"),
	F(report_connection, c.tx_written, "tx_written", "bytes since the start: taken from the program"),
	F(report_connection, c.tx_sent, "tx_sent", "written to the peer"),
	F(report_connection, c.tx_consumed, "tx_consumed", "taken by the peer"),
	F(report_connection, c.rx_produced, "rx_produced", "written by the peer"),
	F(report_connection, c.rx_consumed, "rx_consumed", "passed on"),
	F(report_connection, c.writer_blocked, "writer_blocked", "we wait for space at the peer"),
	F(report_connection, c.peer_blocked, "peer_blocked", "the peer waits for space here"),
	F(report_connection, s.bytes_to_app, "bytes_to_app", "bytes to the program, in either mode"),
	F(report_connection, s.bytes_from_app, "bytes_from_app", "bytes from the program, in either mode"),
	MS_OF(report_connection, s.age_ns, "age_ms", "since it was accepted"),
	MS_OF(report_connection, s.idle_ns, "idle_ms", "since the last byte"))
static FIELDS(failover_fields,
	MS_OF(report_group, g.failover_age_ns, "age_ms", "since it began; -1 = no failover"),
	US_OF(report_group, g.failover_ns, "duration_us", "from there until every connection had resumed; -1 = no failover"),
	F(report_group, g.failover_why, "cause", "why the link was lost, \"peer: ...\" when only the other end had noticed; \"\" = no failover"),
	F(report_group, g.failover_conns, "connections", "that were moved"))
static FIELDS(group_fields,
	F(report_group, g.id, "id", "link group; no other worker has the same"),
	F(report_group, worker, "worker", "its worker"),
	WORD(report_group, g.role, "role", role_words, "ours: `client` or `server`"),
	F(report_group, protection, "protection", "`required`: of services whose links are in TLS; `auth`: of those with a proven peer, whose links may be in clear (`tls` of `links`); `clear`"),
	F(report_group, suite, "tls_suite", "cipher suite of TLS 1.3 at the first contact, and of links in TLS; \"\" without TLS"),
	F(report_group, g.peer_name, "peer_name", "the name that the peer has proven by TLS at the first contact; \"\" without"),
	F(report_group, g.type, "type", "`single`, `symmetric`, `asymmetric local`, `asymmetric peer`"),
	F(report_group, g.state, "state", "in words"),
	TEXT(report_group, g.peer_id, "peer_id", peer_id, "the peer's id, 16 hexadecimal digits"),
	F(report_group, g.peer_key, "peer", "address and port of the far end of the SMC-R TCP connection that it was made over: of a client's group where it connects to, of a server's where that one came from"),
	INLINE(report_group, g.peer, report_peer_fields),
	F(report_group, g.conn_cnt, "connections", "in the group"),
	F(report_group, g.conns_limit, "connections_limit", "connections at most, as both ends agreed"),
	F(report_group, g.link_cnt, "links", "in the group"),
	F(report_group, g.links_limit, "links_limit", "links at most, as both ends agreed"),
	MS_OF(report_group, g.add_retry_ns, "add_link_retry_ms", "until a missing link is tried again; -1 = that is not planned, or nothing can come of it as far as this end knows: the group uses each of its devices already and, at a server, the client has rejected another link to them"),
	F(report_group, g.waits_for, "waits_for", "what connections of a new group wait for; \"\" = nothing"),
	SELF_OBJECT("last_failover", failover_fields, "of the last link that was lost while others went on"),
	F(report_group, g.rmb_cnt, "rmbs", "our RMBs"),
	F(report_group, g.peer_rmb_cnt, "peer_rmbs", "the peer's RMBs that we know"),
	F(report_group, g.rmb_bytes, "rmb_bytes", "memory of our RMBs"),
	F(report_group, g.sndbuf_bytes, "sndbuf_bytes", "memory of send buffers"),
	F(report_group, g.rfc_cursors, "rfc_cursors", "cursors as RFC 7609 has them (eye catcher), not as Linux"),
	MS_OF(report_group, g.age_ns, "age_ms", "since it was made"))
static FIELDS(path_fields,
	TEXT(rnic_path, to, "address", ip, "IP address of the peer, without port"),
	WORD(rnic_path, state, "state", path_state_words, "`active`; `doubted`: what was sent last is sent again, without an answer so far; `inactive`: given up until the peer answers there; `unconfirmed`: the peer has named it, and not answered there yet; `unknown`"),
	F(rnic_path, primary, "primary", "the one that data take"),
	{ FIELD_AS(FIELD_KNOWN, struct rnic_path, rtt_us, "rtt_us", "smoothed round trip, over SCTP in whole milliseconds; -1 = not known, or shorter than that") },
	{ FIELD_AS(FIELD_KNOWN, struct rnic_path, rto_us, "rto_us", "time until a packet is sent again; -1 = not known") },
	F(rnic_path, mtu, "mtu", "longest IP packet in bytes; 0 = not known"),
	F(rnic_path, cwnd, "cwnd_bytes", "congestion window; 0 = not known"))
static FIELDS(link_fields,
	F(report_link, worker, "worker", "its worker"),
	F(report_link, l.group_id, "group", "link group"),
	F(report_link, l.number, "number", "number of the link in it"),
	TEXT(report_link, l.user_id, "user_id", hex32, "our link user id"),
	TEXT(report_link, l.peer_user_id, "peer_user_id", hex32, "the peer's link user id"),
	INLINE(report_link, l.peer, report_peer_fields),
	F(report_link, l.state, "state", "in words; `lost`: its connections have moved, the peer has not confirmed its end yet"),
	F(report_link, l.device, "device", "our device"),
	TEXT(report_link, l.transport, "transport", transport, "what carries the link, as in `devices`"),
	F(report_link, l.in_tls, "tls", "it is in TLS"),
	WORD(report_link, l.protection, "protected", protection_words, "of our device, as the configuration says, not verified: `none`, `macsec`, `ipsec`, `psp`"),
	TEXT(report_link, l.gid, "gid", gid, "of our device"),
	TEXT(report_link, l.peer_gid, "peer_gid", gid, "of the peer's device"),
	TEXT(report_link, l.mac, "mac", mac, "of our device"),
	TEXT(report_link, l.peer_mac, "peer_mac", mac, "of the peer's device"),
	F(report_link, l.qpn, "qpn", "queue pair number"),
	F(report_link, l.peer_qpn, "peer_qpn", "the peer's queue pair number"),
	F(report_link, mtu, "mtu", "bytes, of the path"),
	F(report_link, l.conn_cnt, "connections", "on this link"),
	MS_OF(report_link, l.idle_ns, "idle_ms", "since something was received"),
	US_OF(report_link, l.rtt_ns, "rtt_us", "round trip of the last TEST LINK; -1 = not measured yet"),
	F(report_link, l.peer_depths.ird, "peer_ird", "iWARP: the Read depth IRD that the peer named in the start-up of the stream (RFC 6581, 9.1); -1 = not named, as by a peer of revision 1, or the device does not report it, as a card"),
	F(report_link, l.peer_depths.ord, "peer_ord", "the same for ORD"),
	F(report_link, l.conn.retransmits, "retransmits", "soft iWARP: packets that TCP has sent again, since the start; -1 = not known: of a card, of SCTP by libusrsctp, or without a connection"),
	F(report_link, l.conn.unacked, "unacked", "soft iWARP: packets, over SCTP messages, that are sent and not acknowledged; -1 = not known"),
	ARRAY(report_link, paths, "paths", path_fields, struct rnic_path, "soft iWARP: each path, at most 8, of the TCP connection, which has one, or of the SCTP association; of a card, or without a connection, `[]`"))
static FIELDS(rmb_fields,
	F(report_rmb, worker, "worker", "its worker"),
	F(report_rmb, m.group_id, "group", "link group"),
	F(report_rmb, m.number, "number", "number of the RMB in it"),
	TEXT(report_rmb, m.remote, "side", side, "`local` (ours) or `remote` (the peer's)"),
	F(report_rmb, m.state, "state", "in words"),
	F(report_rmb, m.elem_size, "element_bytes", "size of its elements"),
	F(report_rmb, m.elem_cnt, "elements", "number of them; of a remote one it is not known (0)"),
	F(report_rmb, m.used, "used", "elements in use"),
	F(report_rmb, m.quarantined, "quarantined", "elements kept back because the peer has not released them"))
static FIELDS(gid_fields,
	TEXT(report_gid, g.gid, "gid", gid, "the GID"),
	WORD(report_gid, g.type, "type", report_gid_type_words, "`roce_v2`, `roce_v1` or `ib`"),
	F(report_gid, g.index, "index", "its place in the port's table"),
	F(report_gid, interface, "interface", "its network interface; \"\" = not known"))

#define STAT(name, meaning) F(report_device_stats, name, #name, meaning),
static const struct field device_stat_fields[] = {
	REPORT_DEVICE_STATS(STAT)
	END
};

static FIELDS(device_fields,
	F(report_device, d.rnic.name, "name", "the device"),
	F(report_device, worker, "worker", "its worker"),
	F(report_device, d.rnic.provider, "provider", "what drives it: `siw` (soft iWARP), or the driver of a card (`mlx5`, `rxe`, ...)"),
	TEXT(report_device, d.rnic.transport, "transport", transport, "`roce`, `iwarp` (MPA on TCP), `iwarp-sctp`, or `iwarp-sctp-udp` (in UDP, RFC 6951)"),
	F(report_device, d.rnic.stack, "stack", "over SCTP, what runs it: `user` (libusrsctp in the daemon) or `kernel`; \"\" elsewhere"),
	F(report_device, d.rnic.profile, "profile", "over SCTP, `rfc5043` or `draft-00`; \"\" elsewhere"),
	WORD(report_device, d.rnic.port, "port", port_words, "`up` or `down`"),
	F(report_device, d.interface, "interface", "network interface of its address or GID; \"\" = not known"),
	F(report_device, d.interface_mtu, "interface_mtu", "its MTU in bytes; 0 = not known"),
	TEXT(report_device, d.rnic.gid, "gid", gid, "the GID in use"),
	{ .name = "addresses", .type = FIELD_TEXTS, .write = write_addresses, .meaning = "iWARP: all IP addresses at which peers reach it, without port; otherwise `[]`" },
	TEXT(report_device, d.rnic.mac, "mac", mac, "of its port"),
	F(report_device, mtu, "mtu", "bytes"),
	F(report_device, d.rnic.mpa_port, "mpa_port", "iWARP: port for connections, of TCP; over SCTP, its port, which is that of UDP as well; otherwise 0"),
	F(report_device, d.rnic.qp_cnt, "qps", "queue pairs in use"),
	F(report_device, d.rnic.max_qp, "qps_max", "limit of them"),
	F(report_device, d.rnic.mr_cnt, "mrs", "memory regions in use"),
	F(report_device, d.rnic.max_mr, "mrs_max", "limit of them"),
	F(report_device, d.rnic.mr_bytes, "registered_bytes", "memory registered"),
	F(report_device, d.rnic.max_sq, "sq_max", "limit of requests in a send queue"),
	F(report_device, d.rnic.max_rq, "rq_max", "limit of requests in a receive queue"),
	F(report_device, d.rnic.max_sge, "sge_max", "limit of pieces of a request"),
	F(report_device, d.rnic.max_inline, "inline_max", "limit of bytes inline"),
	F(report_device, card, "card", "RDMA card (`mlx5_0`); \"\" for a device of software, which has nothing of the next ones either"),
	F(report_device, card_port, "card_port", "port of the card; 0"),
	F(report_device, link_layer, "link_layer", "`ethernet` or `infiniband`; \"\""),
	F(report_device, gid_type, "gid_type", "of the GID in use: `roce_v2`, `roce_v1` or `ib`; \"\""),
	F(report_device, gid_index, "gid_index", "its place in the port's table; -1 = none"),
	OBJECT(report_device, stats, "stats", device_stat_fields, "counters since the device was opened, those of cards first, then those of soft iWARP, on TCP and over SCTP alike; each kind has 0 for what it does not count"),
	LIST("gids", gid_fields, "all GIDs of the port, 64 at most"))

/* -- the others -- */

static FIELDS(step_fields,
	F(report_check_step, step, "step", "`tcp`: the TCP connection; `clc`: Proposal and Accept, with a link group there already the whole rendezvous; `connect`: the queue pair of a new group's first link, over iWARP MPA's start-up or an SCTP association; `link`: CONFIRM LINK, and what else a new group does before its first data; `round-trip`: a TEST LINK and its answer; `server`: what the egress says of its server, in the Accept"),
	F(report_check_step, result, "result", "`ok`, `failed`, `skipped`, `not-reached`"),
	US_OF(report_check_step, took_ns, "took_us", "how long; 0 when it was skipped or not reached"),
	F(report_check_step, text, "text", "why it failed or was skipped; otherwise \"\""))
static FIELDS(bulk_fields,
	F(report_check_bulk, path, "path", "`smcr`: the connection as SMC-R carries it; `tcp`: the TCP connection beneath it"),
	F(report_check_bulk, direction, "direction", "`out`: until all had arrived at the peer's daemon, as its answer says; `back`: from then on, until as many bytes were here"),
	F(report_check_bulk, bytes, "bytes", "as asked"),
	US_OF(report_check_bulk, took_ns, "took_us", "how long"))
static FIELDS(check_fields,
	TEXT(report_check, peer, "peer", address, "as asked"),
	F(report_check, res.possible, "possible", "SMC-R works, and the server behind the peer, unless the peer does not say it"),
	F(report_check, finding, "finding", "what was found, below"),
	F(report_check, res.text, "text", "a sentence: `rendezvous with 192.0.2.9:15432 done: ...`, or what failed, with the device's words where it has any, and whose reason it is"),
	US_OF(report_check, res.took_ns, "took_us", "all together"),
	MS_OF(report_check, res.held_off_ns, "held_off_ms", "for how long others would not have tried the peer when it began; 0 = they would"),
	ARRAY(report_check, steps, "steps", step_fields, struct report_check_step, "each step, always all of them in their order"),
	ARRAY(report_check, bulk, "bulk", bulk_fields, struct report_check_bulk, "of a measurement, each path and direction that was measured"),
	F(report_check, res.bulk_text, "bulk_text", "why a requested measurement is missing, or not complete; otherwise \"\""),
	OBJECT(report_check, res.diag, "reason", report_reason_fields, "why not"))
static FIELDS(reload_fields, VALUE(FIELD_STRING, "messages", "warnings, one a line; \"\" = none"))
static FIELDS(disable_fields,
	F(report_disable, service, "service", "as asked"),
	F(report_disable, disabled, "disabled", "it takes no new connections now"))
static FIELDS(rebalance_fields, VALUE(FIELD_UINT64, "moving", "connections that are to move"))
static FIELDS(link_add_fields, F(control_request, group, "group", "as asked; `links` shows whether the link comes up"))
static FIELDS(link_delete_fields,
	F(control_request, group, "group", "as asked"),
	F(control_request, link, "link", "as asked; the answer does not wait for the end"))
static FIELDS(retry_fields,
	F(report_retry, retried.engine.peers, "peers", "no longer held off, or tried over SCTP again; each worker's are counted"),
	F(report_retry, retried.engine.links, "links", "link groups that ask for a missing link now"),
	F(report_retry, retried.prewarms, "prewarms", "link groups that are made ahead now"),
	F(report_retry, retried.targets, "targets", "that have failed, beside others of their service, and are tried now"),
	F(report_retry, retried.devices, "devices", "that are missing and looked for now: those that did not open, and entries of `devices` that no card serves; each worker's are counted, 0 with a `peer`"),
	F(report_retry, names, "names", "of targets, that were not found and are looked up now; 0 with a `peer`"))
static FIELDS(log_level_fields,
	WORD(control_level, now, "level", control_level_words, "in force"),
	WORD(control_level, configured, "configured", control_level_words, "of the configuration, or the command line"),
	F(control_level, set, "set", "it was set here"))
FIELDS(report_line_fields,
	F(report_line, schema, "schema", "1"),
	F(report_line, event, "event", "of a trace `message`, or `dropped` for a line that only has a `dropped` count; of events `change`, or `end` for the last line"),
	F(report_line, time_us, "time_us", "time of day, microseconds since 1970-01-01 UTC"),
	F(report_line, dropped, "dropped", "lines left out since the one before, because the client reads too slowly"))
FIELDS(report_message_fields,
	F(report_message, direction, "direction", "`sent` or `received`"),
	F(report_message, kind, "kind", "`clc`, `llc` or `cdc`"),
	F(report_message, worker, "worker", "its worker; 0 in a line that only counts messages left out"),
	F(report_message, t.group_id, "group", "link group; 0 = not known (yet)"),
	F(report_message, t.link, "link", "number of the link; 0 = not known (yet)"),
	TEXT(report_message, t.conn_id, "token", hex32, "alert token of our connection (CLC and CDC)"),
	F(report_message, t.len, "bytes", "length of the message"),
	F(report_message, text, "text", "the message in words, without keys"))

#define ONE_LIST(name, of) (const struct field[]){ LIST(name, of, "each of them"), END }
#define KIND(kind, of) [REPORT_##kind] = { of##_fields, sizeof(struct report_##of) }

const struct report_table report_tables[REPORT_KIND_CNT] = {
	KIND(STATUS, status), KIND(WORKER, worker), KIND(SERVICE, service), KIND(STATS, stats), KIND(FIGURES, figures),
	KIND(GROUP, group), KIND(LINK, link), KIND(DEVICE, device), KIND(GID, gid), KIND(CONNECTION, connection),
	KIND(RMB, rmb), KIND(HISTORY, history),
	[REPORT_EVENT] = { (const struct field[]){ F(report_event, service, "", ""), F(report_event, text, "", ""), END }, sizeof(struct report_event) },
	 KIND(TARGET, target), KIND(ADDRESS, address), KIND(VIA, via), KIND(SETTING, setting),
};

const struct field *const report_data[CONTROL_COMMAND_CNT] = {
	[CONTROL_STATUS] = status_fields, [CONTROL_SERVICE] = one_service_fields, [CONTROL_STATS] = stats_fields,
	[CONTROL_HISTORY] = histories_fields,
	[CONTROL_DEVICES] = ONE_LIST("devices", device_fields), [CONTROL_GROUPS] = ONE_LIST("groups", group_fields),
	[CONTROL_LINKS] = ONE_LIST("links", link_fields), [CONTROL_RMBS] = ONE_LIST("rmbs", rmb_fields),
	[CONTROL_CONNECTIONS] = ONE_LIST("connections", connection_fields),
	[CONTROL_CHECK] = check_fields, [CONTROL_CLOSE] = close_fields, [CONTROL_RETRY] = retry_fields,
	[CONTROL_DISABLE] = disable_fields, [CONTROL_ENABLE] = disable_fields, [CONTROL_REBALANCE] = rebalance_fields,
	[CONTROL_LINK_ADD] = link_add_fields, [CONTROL_LINK_DELETE] = link_delete_fields,
	[CONTROL_LOG_LEVEL] = log_level_fields, [CONTROL_RELOAD] = reload_fields,
	[CONTROL_DRAIN] = drain_fields, [CONTROL_UNDRAIN] = drain_fields,
};
/* clang-format on */

#define NAME(name, meaning) #name,

const char *const report_device_stats[] = { REPORT_DEVICE_STATS(NAME) NULL };
