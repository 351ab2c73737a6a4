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

/* -- words -- */

const char *const report_kind_words[] = { [CONFIG_INGRESS] = "ingress", [CONFIG_EGRESS] = "egress" };
const char *const report_gid_type_words[] = {
	[RNIC_GID_NONE] = "", [RNIC_GID_IB] = "ib", [RNIC_GID_ROCE_V1] = "roce_v1", [RNIC_GID_ROCE_V2] = "roce_v2" };
static const char *const conn_role_words[] = { [CONFIG_INGRESS] = "client", [CONFIG_EGRESS] = "server" };
static const char *const role_words[] = { [SMCR_CLIENT] = "client", [SMCR_SERVER] = "server" };
static const char *const port_words[] = { [RNIC_PORT_DOWN] = "down", [RNIC_PORT_UP] = "up" };
static const char *const path_state_words[] = { [RNIC_PATH_UNKNOWN] = "unknown", [RNIC_PATH_ACTIVE] = "active",
	[RNIC_PATH_SUSPECT] = "doubted", [RNIC_PATH_INACTIVE] = "inactive", [RNIC_PATH_UNCONFIRMED] = "unconfirmed" };

/* -- tables; T is the struct of the one that follows -- */

#define F(m, name, meaning) FIELD(T, m, name, meaning)
#define MS_OF(m, name, meaning) { FIELD_AS(FIELD_MS, T, m, name, meaning) }
#define US_OF(m, name, meaning) { FIELD_AS(FIELD_US, T, m, name, meaning) }
#define WORD(m, name, of, meaning) { FIELD_AS(FIELD_WORD, T, m, name, meaning), .words = of }
#define TEXT(m, name, by, meaning) { FIELD_AS(FIELD_TEXT, T, m, name, meaning), .text = by }
#define OBJECT(m, name, of, meaning) { FIELD_AS(FIELD_OBJECT, T, m, name, meaning), .members = of }
#define INLINE(m, of) { FIELD_AS(FIELD_INLINE, T, m, NULL, NULL), .members = of }
#define ARRAY(m, name, of, s, meaning) { FIELD_AS(FIELD_ARRAY, T, m, name, meaning), .members = of, .size = sizeof(s) }
/* The object is the value. */
#define VALUE(as, n, mean) { .name = n, .type = as, .meaning = mean }
/* Of members of the struct itself. */
#define SELF_OBJECT(n, of, mean) { .name = n, .type = FIELD_OBJECT, .members = of, .meaning = mean }
#define SELF_TEXT(n, by, mean) { .name = n, .type = FIELD_TEXT, .text = by, .meaning = mean }
#define LIST(n, of, mean) { .name = n, .type = FIELD_LIST, .members = of, .meaning = mean }
#define END { .type = FIELD_END }
#define FIELDS(name, ...) const struct field name[] = { __VA_ARGS__, END };

#define MODE(mode, n, mean) { .name = n, .type = FIELD_UINT64, .off = (mode) * sizeof(uint64_t), .meaning = mean }
static FIELDS(mode_fields,
	MODE(SESSION_SMCR, "smcr", "on SMC-R"),
	MODE(SESSION_TCP, "tcp", "fallen back to TCP"),
	MODE(SESSION_SETUP, "setup", "in the rendezvous"))

#define T struct smcr_peer_info
FIELDS(report_peer_fields,
	F(version, "version", "of SMC-R, 1 or 2; 0 = there is no link group, and the next ones are 0, false or \"\""),
	F(release, "release", "of version 2, as both ends agreed: 1 is SMC-R 2.1; otherwise 0"),
	F(foreign, "foreign", "the peer is no smcrd but a host with AF_SMC"),
	F(eid, "eid", "the enterprise id that both ends have, in version 2; otherwise \"\""),
	TEXT(os, "peer_os", os, "the system of the peer, as it reports: `z/OS`, `Linux`, `AIX`, `unknown`; \"\" = not reported, as in version 1"),
	F(host, "peer_host", "the peer's host name, as it reports; bytes that are no printable ASCII are `?`; \"\" = not reported"))
#undef T

#define T struct smcr_diag
FIELDS(report_reason_fields,
	TEXT(local, "local_code", hex32, "our reason, as in a CLC Decline (Linux's numbers); 0x00000000 = none"),
	TEXT(local, "local_text", diag, "the same in words; \"\" = none"),
	TEXT(peer, "peer_code", hex32, "the reason in the peer's Decline"),
	TEXT(peer, "peer_text", diag, "the same in words"),
	SELF_TEXT("detail", detail, "our reason in more words: the device's, when the first link of a group could not be made; what was missing of SMC-R's TCP option; that of several devices none fits; otherwise \"\""),
	SELF_TEXT("mpa_peer", mpa_peer, "the peer's iWARP address and port that this is about (of TCP, or with SCTP of UDP), or \"\""),
	F(over, "transport", "the transport of the first link of the group, as in `devices`, when that failed, at both ends; otherwise \"\""),
	{ FIELD_AS(FIELD_TEXTS, T, offered, "offered", "with \"no RDMA device\" of either end: transports that the client, another smcrd, offered; otherwise `[]`"), .write = write_offered },
	F(sctp_held_off, "sctp_held_off", "of a server, with `transport`: the peer's next first contacts do not use SCTP for a while, where both ends have another transport"),
	F(out_of_sync, "out_of_sync", "the ends disagreed about a link group; the next connection makes a new one"),
	F(held_off, "held_off", "the peer is not tried for a while after repeated failures"))
#undef T

/* -- status -- */

#define T struct report_worker
static FIELDS(worker_fields,
	F(worker, "worker", "its number, from 1"),
	F(sum.turns, "turns", "of its event loop"),
	OBJECT(sum.conns, "connections", mode_fields, "its connections by mode"),
	F(sum.groups, "groups", "its link groups"),
	F(sum.links, "links", "its links"),
	F(sum.rmb_bytes, "rmb_bytes", "memory of its RMBs"))
#undef T

#define T struct report_service
static FIELDS(service_fields,
	F(name, "name", "as configured"),
	WORD(kind, "kind", report_kind_words, "`ingress` (TCP in, SMC-R out) or `egress` (SMC-R in, TCP out)"),
	TEXT(listen, "listen", address, "where it listens; `unix:/path` for a UNIX socket"),
	F(to, "to", "where it connects to, as configured; several targets separated by `, `, up to 511 characters, then `...`"),
	F(waiting, "waiting", "what keeps it from connecting anywhere: `waiting for the name X: NXDOMAIN, ...`; \"\" when it has an address"),
	F(peer, "peer", "the other end of the CLC connection, as configured: `smcrd`, `linux` or `auto`"),
	F(info.disabled, "disabled", "an operator has disabled it: it takes no new connections"),
	F(info.closed, "closed", "does not listen, as no target works (`when_down`)"),
	F(info.connections, "connections", "now"),
	F(connections_max, "connections_max", "limit of them"),
	F(info.accepted, "accepted", "connections accepted since start; of an egress, those of clients: not those by which the peer's daemon makes a link group ahead, or checks"),
	F(info.refused_allow, "refused_allow", "refused: not in the allow list, or that of users"),
	F(info.refused_max, "refused_max", "refused: too many"),
	F(info.refused_per_peer, "refused_per_peer", "refused: too many of one address or user (`max_connections_per_peer`)"),
	F(info.refused_connect, "refused_connect", "refused: far end not reached, or it broke off the set-up"),
	F(info.refused_fallback, "refused_fallback", "refused: no SMC-R and `fallback = \"refuse\"`"),
	F(info.refused_disabled, "refused_disabled", "turned away while disabled or draining, where the kernel does not refuse for us (UNIX sockets, sockets of systemd)"),
	F(info.fallbacks, "fallbacks", "gone to TCP"),
	F(info.resets, "resets", "ended by a reset"),
	F(info.bytes_from_app, "bytes_from_app", "bytes from its programs since start, of all of its connections, also those that have ended"),
	F(info.bytes_to_app, "bytes_to_app", "the same to its programs"))
#undef T

static FIELDS(confine_part_fields,
	FIELD(struct confine_part_state, on, "on", "in force"),
	FIELD(struct confine_part_state, text, "text", "what is in force, or why it is not"))

#define PART(constant, word, meaning) OBJECT(part[CONFINE_##constant], word, confine_part_fields, meaning),
#define T struct confine_state
static const struct field confine_fields[] = {
	WORD(mode, "mode", confine_mode_words, "`off`, `auto` or `require`, as configured"),
	CONFINE_PARTS(PART)
	END
};
#undef T

#define T struct report_status
static FIELDS(option_fields,
	F(option_services, "services", "services that want it (`peer` is not `smcrd`)"),
	F(option_usable, "usable", "the kernel writes it for us"),
	F(option_why, "text", "why not; \"\" when it does"))

static FIELDS(status_fields,
	F(src.version, "version", "of smcrd"),
	F(src.pid, "pid", "its process"),
	MS_OF(worker.uptime_ns, "uptime_ms", "since start"),
	F(worker.draining, "draining", "takes no new connections, ends with the last one"),
	F(src.successor, "successor", "the process that has taken over from this one; 0 = none"),
	F(src.rss_bytes, "rss_bytes", "resident memory of the process"),
	F(src.open_files_max, "open_files_max", "the process's limit of open files; -1 = none"),
	F(src.locked_bytes_max, "locked_bytes_max", "the process's limit of locked memory; -1 = none"),
	OBJECT(sum.conns, "connections", mode_fields, "connections by mode"),
	F(sum.groups, "groups", "link groups"),
	F(sum.links, "links", "links of all of them"),
	F(sum.rmb_bytes, "rmb_bytes", "memory of our RMBs"),
	F(sum.rmb_bytes_max, "rmb_bytes_max", "limit of all RMBs together (`rmb_memory_max`)"),
	F(sum.sndbuf_bytes, "sndbuf_bytes", "memory of send buffers"),
	F(sum.sndbuf_bytes_max, "sndbuf_bytes_max", "limit of all send buffers together (`send_memory_max`)"),
	F(sum.devices, "devices", "RDMA devices"),
	F(sum.devices_up, "devices_up", "those whose port is up"),
	OBJECT(confine, "confinement", confine_fields, "how the process is confined (smcrd(8) has the parts)"),
	SELF_OBJECT("tcp_option", option_fields, "SMC-R's TCP option (`peer` in smcrd.conf(5))"),
	LIST("workers", worker_fields, "each worker; the members above are their sums"),
	LIST("services", service_fields, "each service"))

static FIELDS(drain_fields,
	F(worker.draining, "draining", "takes no new connections"),
	OBJECT(sum.conns, "connections", mode_fields, "connections by mode"))
#undef T

static FIELDS(close_fields, VALUE(FIELD_UINT64, "closed", "connections closed; one whose end has begun is not counted"))

/* -- service -- */

static FIELDS(target_fields,
	FIELD(struct report_target, target, "target", "as configured"),
	FIELD(struct report_target, name_error, "name_error", "why its name was not found when it was looked up last; \"\" when it was, or is an address"))

#define T struct report_address
static FIELDS(address_fields,
	TEXT(e.addr, "address", address, "`192.0.2.1:80`"),
	F(target, "target", "which of `to` it belongs to"),
	F(e.priority, "priority", "of its SRV record; 0"),
	F(e.weight, "weight", "of its SRV record; 0"),
	TEXT(e.fault, "state", endpoint_state, "`ok`, as far as is known, or `failed`"),
	TEXT(e, "text", endpoint_why, "why it failed; \"\""),
	F(e.connections, "connections", "TCP connections made to it for the service's connections"),
	F(e.failures, "failures", "of these, those that could not be made, or that it broke off in the set-up"),
	F(e.passed_over, "passed_over", "connections that another address was chosen for because it had failed"))
#undef T

static FIELDS(setting_fields,
	FIELD(struct report_setting, name, "name", "the setting"),
	FIELD(struct report_setting, value, "value", "as the configuration would have it; \"\" when it has none; up to 2000 characters, then `...`"))

#define T struct outage_info
static FIELDS(outage_fields,
	F(text, "text", "why it cannot be reached now; \"\" when it can, as far as is known"),
	F(failed, "failed", "connections since"),
	MS_OF(age_ns, "age_ms", "for how long"))
#undef T

#define T struct report_one_service
static FIELDS(one_service_fields,
	INLINE(service, service_fields),
	OBJECT(modes, "modes", mode_fields, "its connections by mode"),
	LIST("targets", target_fields, "what `to` names"),
	LIST("addresses", address_fields, "what `to` stands for at present, over all workers"),
	F(listens_here, "listens_here", "false: an address with `freebind` that no interface has now"),
	MS_OF(held_off_ns, "held_off_ms", "of an ingress: for how long connections do not try SMC-R with the peer, as it failed repeatedly: the longest of all addresses and workers; 0 = they do"),
	OBJECT(outage, "outage", outage_fields, "of the far end"),
	LIST("settings", setting_fields, "each setting that it has"))
#undef T

/* -- stats -- */

#define T struct tally_entry
static FIELDS(count_fields,
	TEXT(key, "code", hex32, "number as in a CLC Decline (Linux's numbers)"),
	TEXT(key, "text", reason, "in words"),
	F(cnt, "count", "how often"))
#undef T

static FIELDS(reset_fields,
	FIELD(struct report_reset, text, "text", "in words, which may change"),
	FIELD(struct report_reset, cnt, "count", "how often"))

#define COUNTER(source, field, words) \
	{ .name = CONTROL_COUNTER_KEY(source, field), .type = FIELD_UINT64, .off = REPORT_COUNTER(source, field) * sizeof(uint64_t), .meaning = words },
static const struct field counter_fields[] = {
	CONTROL_COUNTERS(REPORT_NONE, COUNTER)
	END
};

#define T struct report_figures
static FIELDS(figures_fields,
	F(name, "name", "as in `status`"),
	WORD(kind, "kind", report_kind_words, "as in `status`"),
	OBJECT(stats.modes, "modes", mode_fields, "its connections now, by mode"),
	F(stats.bytes[WAY_FROM_APP], "bytes_from_app", "bytes from its programs, those of connections that go on included"),
	F(stats.bytes[WAY_TO_APP], "bytes_to_app", "the same to its programs"),
	{ FIELD_AS(FIELD_TIMES, T, stats.setup, "setup_time", "from accepting a connection to carrying data, on SMC-R or on TCP") },
	{ FIELD_AS(FIELD_TIMES, T, stats.connect, "connect_time", "of the connection to the peer (ingress) or the server (egress), the attempt that was answered") },
	{ FIELD_AS(FIELD_TIMES, T, stats.life, "life_time", "of connections that have ended") },
	ARRAY(local, "fallback_reasons_local", count_fields, struct tally_entry, "as above, of this service alone"),
	ARRAY(peer, "fallback_reasons_peer", count_fields, struct tally_entry, "as above, of this service alone"),
	ARRAY(resets, "reset_reasons", reset_fields, struct report_reset, "why its connections were reset"))
#undef T

#define T struct report_stats
static FIELDS(stats_fields,
	OBJECT(counters, "counters", counter_fields, "since the start of the daemon; they are never reset"),
	ARRAY(local, "fallback_reasons_local", count_fields, struct tally_entry, "the up to 10 most frequent reasons of ours why connections went by TCP or were refused"),
	ARRAY(peer, "fallback_reasons_peer", count_fields, struct tally_entry, "the same of peers' Declines"),
	{ .name = "time_bounds_us", .type = FIELD_NUMBERS, .write = write_times, .meaning = "the upper bounds of all histograms of times" },
	{ .name = "size_bounds_bytes", .type = FIELD_NUMBERS, .write = write_sizes, .meaning = "the upper bounds of all histograms of sizes" },
	{ FIELD_AS(FIELD_SIZES, T, histograms.write_size, "write_size", "sizes of RDMA writes") },
	{ FIELD_AS(FIELD_TIMES, T, histograms.blocked, "blocked_time", "for how long a peer's full buffer held our writing up, each time") },
	LIST("services", figures_fields, "each service"))
#undef T

/* -- lists -- */

#define T struct report_connection
static FIELDS(connection_fields,
	F(s.id, "id", "of the proxied connection; no other worker has the same"),
	F(worker, "worker", "its worker"),
	F(s.service, "service", "its service"),
	WORD(s.kind, "kind", report_kind_words, "`ingress` or `egress`"),
	WORD(s.kind, "role", conn_role_words, "our SMC role: `client` (ingress) or `server` (egress)"),
	WORD(s.mode, "mode", control_mode_words, "`smcr`, `tcp` or `setup`"),
	F(s.state, "state", "of the proxied connection, in words"),
	TEXT(s.app_peer, "app", app, "address of the program: the client of an ingress, the server of an egress; on a UNIX socket `unix:/path` of a server, `unix:uid=1000,pid=4711` of a client"),
	F(app_uid, "app_uid", "on a UNIX socket: its user, of a server the one that listened; -1 = not known, or on TCP"),
	F(app_pid, "app_pid", "on a UNIX socket: its process, of a server the one that listened; 0 = not known, or on TCP"),
	TEXT(s.middle_peer, "peer", address, "address of the far end of the SMC-R TCP connection"),
	OBJECT(s.diag, "reason", report_reason_fields, "why it is on TCP"),
	F(c.state, "smc_state", "state of RFC 7609, 4.8, or the step of the rendezvous; \"\" on TCP"),
	F(c.group_id, "group", "link group; 0 = none"),
	F(c.link, "link", "number of the link; 0 = none"),
	INLINE(c.peer, report_peer_fields),
	TEXT(c.id, "token", hex32, "our alert token"),
	TEXT(c.peer_token, "peer_token", hex32, "the peer's alert token"),
	F(c.sndbuf_size, "sndbuf_bytes", "send buffer"),
	F(c.elem_size, "rmbe_bytes", "our RMB element"),
	F(c.elem_idx, "rmbe_index", "our RMB element"),
	F(c.peer_elem_size, "peer_rmbe_bytes", "the peer's"),
	F(c.peer_elem_idx, "peer_rmbe_index", "the peer's"),
	F(c.tx_written, "tx_written", "bytes since the start: taken from the program"),
	F(c.tx_sent, "tx_sent", "written to the peer"),
	F(c.tx_consumed, "tx_consumed", "taken by the peer"),
	F(c.rx_produced, "rx_produced", "written by the peer"),
	F(c.rx_consumed, "rx_consumed", "passed on"),
	F(c.writer_blocked, "writer_blocked", "we wait for space at the peer"),
	F(c.peer_blocked, "peer_blocked", "the peer waits for space here"),
	F(s.bytes_to_app, "bytes_to_app", "bytes to the program, in either mode"),
	F(s.bytes_from_app, "bytes_from_app", "bytes from the program, in either mode"),
	MS_OF(s.age_ns, "age_ms", "since it was accepted"),
	MS_OF(s.idle_ns, "idle_ms", "since the last byte"))
#undef T

#define T struct report_group
static FIELDS(failover_fields,
	MS_OF(g.failover_age_ns, "age_ms", "since it began; -1 = no failover"),
	US_OF(g.failover_ns, "duration_us", "from there until every connection had resumed; -1 = no failover"),
	F(g.failover_why, "cause", "why the link was lost, \"peer: ...\" when only the other end had noticed; \"\" = no failover"),
	F(g.failover_conns, "connections", "that were moved"))

static FIELDS(group_fields,
	F(g.id, "id", "link group; no other worker has the same"),
	F(worker, "worker", "its worker"),
	WORD(g.role, "role", role_words, "ours: `client` or `server`"),
	F(g.type, "type", "`single`, `symmetric`, `asymmetric local`, `asymmetric peer`"),
	F(g.state, "state", "in words"),
	TEXT(g.peer_id, "peer_id", peer_id, "the peer's id, 16 hexadecimal digits"),
	F(g.peer_key, "peer", "address and port of the far end of the SMC-R TCP connection that it was made over: of a client's group where it connects to, of a server's where that one came from"),
	INLINE(g.peer, report_peer_fields),
	F(g.conn_cnt, "connections", "in the group"),
	F(g.conns_limit, "connections_limit", "connections at most, as both ends agreed"),
	F(g.link_cnt, "links", "in the group"),
	F(g.links_limit, "links_limit", "links at most, as both ends agreed"),
	MS_OF(g.add_retry_ns, "add_link_retry_ms", "until a missing link is tried again; -1 = that is not planned, or nothing can come of it as far as this end knows: the group uses each of its devices already and, at a server, the client has rejected another link to them"),
	F(g.waits_for, "waits_for", "what connections of a new group wait for; \"\" = nothing"),
	SELF_OBJECT("last_failover", failover_fields, "of the last link that was lost while others went on"),
	F(g.rmb_cnt, "rmbs", "our RMBs"),
	F(g.peer_rmb_cnt, "peer_rmbs", "the peer's RMBs that we know"),
	F(g.rmb_bytes, "rmb_bytes", "memory of our RMBs"),
	F(g.sndbuf_bytes, "sndbuf_bytes", "memory of send buffers"),
	F(g.rfc_cursors, "rfc_cursors", "cursors as RFC 7609 has them (eye catcher), not as Linux"),
	MS_OF(g.age_ns, "age_ms", "since it was made"))
#undef T

#define T struct rnic_path
static FIELDS(path_fields,
	TEXT(to, "address", ip, "IP address of the peer, without port"),
	WORD(state, "state", path_state_words, "`active`; `doubted`: what was sent last is sent again, without an answer so far; `inactive`: given up until the peer answers there; `unconfirmed`: the peer has named it, and not answered there yet; `unknown`"),
	F(primary, "primary", "the one that data take"),
	{ FIELD_AS(FIELD_KNOWN, T, rtt_us, "rtt_us", "smoothed round trip, over SCTP in whole milliseconds; -1 = not known, or shorter than that") },
	{ FIELD_AS(FIELD_KNOWN, T, rto_us, "rto_us", "time until a packet is sent again; -1 = not known") },
	F(mtu, "mtu", "longest IP packet in bytes; 0 = not known"),
	F(cwnd, "cwnd_bytes", "congestion window; 0 = not known"))
#undef T

#define T struct report_link
static FIELDS(link_fields,
	F(worker, "worker", "its worker"),
	F(l.group_id, "group", "link group"),
	F(l.number, "number", "number of the link in it"),
	TEXT(l.user_id, "user_id", hex32, "our link user id"),
	TEXT(l.peer_user_id, "peer_user_id", hex32, "the peer's link user id"),
	INLINE(l.peer, report_peer_fields),
	F(l.state, "state", "in words; `lost`: its connections have moved, the peer has not confirmed its end yet"),
	F(l.device, "device", "our device"),
	TEXT(l.transport, "transport", transport, "what carries the link, as in `devices`"),
	TEXT(l.gid, "gid", gid, "of our device"),
	TEXT(l.peer_gid, "peer_gid", gid, "of the peer's device"),
	TEXT(l.mac, "mac", mac, "of our device"),
	TEXT(l.peer_mac, "peer_mac", mac, "of the peer's device"),
	F(l.qpn, "qpn", "queue pair number"),
	F(l.peer_qpn, "peer_qpn", "the peer's queue pair number"),
	F(mtu, "mtu", "bytes, of the path"),
	F(l.conn_cnt, "connections", "on this link"),
	MS_OF(l.idle_ns, "idle_ms", "since something was received"),
	US_OF(l.rtt_ns, "rtt_us", "round trip of the last TEST LINK; -1 = not measured yet"),
	F(l.peer_depths.ird, "peer_ird", "iWARP: the Read depth IRD that the peer named in the start-up of the stream (RFC 6581, 9.1); -1 = not named, as by a peer of revision 1, or the device does not report it, as a card"),
	F(l.peer_depths.ord, "peer_ord", "the same for ORD"),
	F(l.conn.retransmits, "retransmits", "soft iWARP: packets that TCP has sent again, since the start; -1 = not known: of a card, of SCTP by libusrsctp, or without a connection"),
	F(l.conn.unacked, "unacked", "soft iWARP: packets, over SCTP messages, that are sent and not acknowledged; -1 = not known"),
	ARRAY(paths, "paths", path_fields, struct rnic_path, "soft iWARP: each path, at most 8, of the TCP connection, which has one, or of the SCTP association; of a card, or without a connection, `[]`"))
#undef T

#define T struct report_rmb
static FIELDS(rmb_fields,
	F(worker, "worker", "its worker"),
	F(m.group_id, "group", "link group"),
	F(m.number, "number", "number of the RMB in it"),
	TEXT(m.remote, "side", side, "`local` (ours) or `remote` (the peer's)"),
	F(m.state, "state", "in words"),
	F(m.elem_size, "element_bytes", "size of its elements"),
	F(m.elem_cnt, "elements", "number of them; of a remote one it is not known (0)"),
	F(m.used, "used", "elements in use"),
	F(m.quarantined, "quarantined", "elements kept back because the peer has not released them"))
#undef T

#define T struct report_gid
static FIELDS(gid_fields,
	TEXT(g.gid, "gid", gid, "the GID"),
	WORD(g.type, "type", report_gid_type_words, "`roce_v2`, `roce_v1` or `ib`"),
	F(g.index, "index", "its place in the port's table"),
	F(interface, "interface", "its network interface; \"\" = not known"))
#undef T

#define T struct report_device_stats
#define STAT(name, meaning) F(name, #name, meaning),
static const struct field device_stat_fields[] = {
	REPORT_DEVICE_STATS(STAT)
	END
};
#undef T

#define T struct report_device
static FIELDS(device_fields,
	F(d.rnic.name, "name", "the device"),
	F(worker, "worker", "its worker"),
	F(d.rnic.provider, "provider", "what drives it: `siw` (soft iWARP), or the driver of a card (`mlx5`, `rxe`, ...)"),
	TEXT(d.rnic.transport, "transport", transport, "`roce`, `iwarp` (MPA on TCP), `iwarp-sctp`, or `iwarp-sctp-udp` (in UDP, RFC 6951)"),
	F(d.rnic.stack, "stack", "over SCTP, what runs it: `user` (libusrsctp in the daemon) or `kernel`; \"\" elsewhere"),
	F(d.rnic.profile, "profile", "over SCTP, `rfc5043` or `draft-00`; \"\" elsewhere"),
	WORD(d.rnic.port, "port", port_words, "`up` or `down`"),
	F(d.interface, "interface", "network interface of its address or GID; \"\" = not known"),
	F(d.interface_mtu, "interface_mtu", "its MTU in bytes; 0 = not known"),
	TEXT(d.rnic.gid, "gid", gid, "the GID in use"),
	{ .name = "addresses", .type = FIELD_TEXTS, .write = write_addresses, .meaning = "iWARP: all IP addresses at which peers reach it, without port; otherwise `[]`" },
	TEXT(d.rnic.mac, "mac", mac, "of its port"),
	F(mtu, "mtu", "bytes"),
	F(d.rnic.mpa_port, "mpa_port", "iWARP: port for connections, of TCP; over SCTP, its port, which is that of UDP as well; otherwise 0"),
	F(d.rnic.qp_cnt, "qps", "queue pairs in use"),
	F(d.rnic.max_qp, "qps_max", "limit of them"),
	F(d.rnic.mr_cnt, "mrs", "memory regions in use"),
	F(d.rnic.max_mr, "mrs_max", "limit of them"),
	F(d.rnic.mr_bytes, "registered_bytes", "memory registered"),
	F(d.rnic.max_sq, "sq_max", "limit of requests in a send queue"),
	F(d.rnic.max_rq, "rq_max", "limit of requests in a receive queue"),
	F(d.rnic.max_sge, "sge_max", "limit of pieces of a request"),
	F(d.rnic.max_inline, "inline_max", "limit of bytes inline"),
	F(card, "card", "RDMA card (`mlx5_0`); \"\" for a device of software, which has nothing of the next ones either"),
	F(card_port, "card_port", "port of the card; 0"),
	F(link_layer, "link_layer", "`ethernet` or `infiniband`; \"\""),
	F(gid_type, "gid_type", "of the GID in use: `roce_v2`, `roce_v1` or `ib`; \"\""),
	F(gid_index, "gid_index", "its place in the port's table; -1 = none"),
	OBJECT(stats, "stats", device_stat_fields, "counters since the device was opened, those of cards first, then those of soft iWARP, on TCP and over SCTP alike; each kind has 0 for what it does not count"),
	LIST("gids", gid_fields, "all GIDs of the port, 64 at most"))
#undef T

/* -- the others -- */

#define T struct report_check_step
static FIELDS(step_fields,
	F(step, "step", "`tcp`: the TCP connection; `clc`: Proposal and Accept, with a link group there already the whole rendezvous; `connect`: the queue pair of a new group's first link, over iWARP MPA's start-up or an SCTP association; `link`: CONFIRM LINK, and what else a new group does before its first data; `round-trip`: a TEST LINK and its answer"),
	F(result, "result", "`ok`, `failed`, `skipped`, `not-reached`"),
	US_OF(took_ns, "took_us", "how long; 0 when it was skipped or not reached"),
	F(text, "text", "why it failed or was skipped; otherwise \"\""))
#undef T

#define T struct report_check_bulk
static FIELDS(bulk_fields,
	F(path, "path", "`smcr`: the connection as SMC-R carries it; `tcp`: the TCP connection beneath it"),
	F(direction, "direction", "`out`: until all had arrived at the peer's daemon, as its answer says; `back`: from then on, until as many bytes were here"),
	F(bytes, "bytes", "as asked"),
	US_OF(took_ns, "took_us", "how long"))
#undef T

#define T struct report_check
static FIELDS(check_fields,
	TEXT(peer, "peer", address, "as asked"),
	F(res.possible, "possible", "SMC-R works"),
	F(finding, "finding", "what was found, below"),
	F(res.text, "text", "a sentence: `rendezvous with 192.0.2.9:15432 done: ...`, or what failed, with the device's words where it has any, and whose reason it is"),
	US_OF(res.took_ns, "took_us", "all together"),
	MS_OF(res.held_off_ns, "held_off_ms", "for how long others would not have tried the peer when it began; 0 = they would"),
	ARRAY(steps, "steps", step_fields, struct report_check_step, "each step, always all of them in their order"),
	ARRAY(bulk, "bulk", bulk_fields, struct report_check_bulk, "of a measurement, each path and direction that was measured"),
	F(res.bulk_text, "bulk_text", "why a requested measurement is missing, or not complete; otherwise \"\""),
	OBJECT(res.diag, "reason", report_reason_fields, "why not"))
#undef T

static FIELDS(reload_fields, VALUE(FIELD_STRING, "messages", "warnings, one a line; \"\" = none"))

static FIELDS(disable_fields,
	FIELD(struct report_disable, service, "service", "as asked"),
	FIELD(struct report_disable, disabled, "disabled", "it takes no new connections now"))

static FIELDS(rebalance_fields, VALUE(FIELD_UINT64, "moving", "connections that are to move"))

static FIELDS(link_add_fields, FIELD(struct control_request, group, "group", "as asked; `links` shows whether the link comes up"))
static FIELDS(link_delete_fields,
	FIELD(struct control_request, group, "group", "as asked"),
	FIELD(struct control_request, link, "link", "as asked; the answer does not wait for the end"))

#define T struct report_retry
static FIELDS(retry_fields,
	F(retried.engine.peers, "peers", "no longer held off, or tried over SCTP again; each worker's are counted"),
	F(retried.engine.links, "links", "link groups that ask for a missing link now"),
	F(retried.prewarms, "prewarms", "link groups that are made ahead now"),
	F(retried.targets, "targets", "that have failed, beside others of their service, and are tried now"),
	F(retried.devices, "devices", "that are missing and looked for now: those that did not open, and entries of `devices` that no card serves; each worker's are counted, 0 with a `peer`"),
	F(names, "names", "of targets, that were not found and are looked up now; 0 with a `peer`"))
#undef T

#define T struct control_level
static FIELDS(log_level_fields,
	WORD(now, "level", control_level_words, "in force"),
	WORD(configured, "configured", control_level_words, "of the configuration, or the command line"),
	F(set, "set", "it was set here"))
#undef T

#define T struct report_line
FIELDS(report_line_fields,
	F(schema, "schema", "1"),
	F(event, "event", "of a trace `message`, or `dropped` for a line that only has a `dropped` count; of events `change`, or `end` for the last line"),
	F(time_us, "time_us", "time of day, microseconds since 1970-01-01 UTC"),
	F(dropped, "dropped", "lines left out since the one before, because the client reads too slowly"))
#undef T

#define T struct report_message
FIELDS(report_message_fields,
	F(direction, "direction", "`sent` or `received`"),
	F(kind, "kind", "`clc`, `llc` or `cdc`"),
	F(worker, "worker", "its worker; 0 in a line that only counts messages left out"),
	F(t.group_id, "group", "link group; 0 = not known (yet)"),
	F(t.link, "link", "number of the link; 0 = not known (yet)"),
	TEXT(t.conn_id, "token", hex32, "alert token of our connection (CLC and CDC)"),
	F(t.len, "bytes", "length of the message"),
	F(text, "text", "the message in words, without keys"))
#undef T

#define ONE_LIST(name, of) (const struct field[]){ LIST(name, of, "each of them"), END }
#define KIND(kind, of) [REPORT_##kind] = { of##_fields, sizeof(struct report_##of) }

const struct report_table report_tables[REPORT_KIND_CNT] = {
	KIND(STATUS, status), KIND(WORKER, worker), KIND(SERVICE, service), KIND(STATS, stats), KIND(FIGURES, figures),
	KIND(GROUP, group), KIND(LINK, link), KIND(DEVICE, device), KIND(GID, gid), KIND(CONNECTION, connection),
	KIND(RMB, rmb), KIND(TARGET, target), KIND(ADDRESS, address), KIND(SETTING, setting),
};

const struct field *const report_data[CONTROL_COMMAND_CNT] = {
	[CONTROL_STATUS] = status_fields, [CONTROL_SERVICE] = one_service_fields, [CONTROL_STATS] = stats_fields,
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
