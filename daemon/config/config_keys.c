/* The table of settings; see config_keys.h. A test compares defaults with those of the libraries' config_init. */
#include "daemon/config/config_keys.h"

#include <string.h>
#include <sys/socket.h>

#include "base/idtable.h"
#include "base/log.h"
#include "base/typo.h"
#include "daemon/config/config.h"

/* Short names of places. */
enum {
	TOP = CONFIG_AT_TOP,
	CONTROL = CONFIG_AT_CONTROL,
	METRICS = CONFIG_AT_METRICS,
	LOG = CONFIG_AT_LOG,
	CONFINE = CONFIG_AT_CONFINE,
	TLS = CONFIG_AT_TLS,
	ALIVE = CONFIG_AT_KEEPALIVE,
	SMCR = CONFIG_AT_SMCR,
	SIW = CONFIG_AT_SIW,
	VERBS = CONFIG_AT_VERBS,
	DEV = CONFIG_AT_DEVICE,
	PROBE = CONFIG_AT_PROBE,
	VIA = CONFIG_AT_VIA,
	IN = CONFIG_AT_INGRESS,
	OUT = CONFIG_AT_EGRESS,
	SVC = CONFIG_AT_INGRESS | CONFIG_AT_EGRESS,
	REQ = CONFIG_REQUIRED,
	LIVE = CONFIG_RELOAD,
	ZERO = CONFIG_OR_ZERO,
	POW2 = CONFIG_POW2,
	TCP = CONFIG_TCP_ONLY,
	UNIX = CONFIG_UNIX_ONLY,
};

#define DAY_MS (24u * 3600 * 1000)

#define WORDS(...) ((const struct config_word[]){ __VA_ARGS__, { NULL, 0 } })
#define CFG(member) offsetof(struct config, member), sizeof(((struct config *)NULL)->member)
#define OF_SVC(member) offsetof(struct config_service, member), sizeof(((struct config_service *)NULL)->member)
#define OF_PROBE(member) offsetof(struct config_probe, member), sizeof(((struct config_probe *)NULL)->member)
#define OF_VIA(member) offsetof(struct config_via, member), sizeof(((struct config_via *)NULL)->member)
#define OF_DEV(member) offsetof(struct config_device, member), sizeof(((struct config_device *)NULL)->member)

const struct config_key config_keys[] = {
	/* name, where, type, flags, min, max, default, place in memory, words */
	{ "log_level", TOP, CONFIG_T_WORD, LIVE, 0, 0, "notice", CFG(log_level),
	    WORDS({ "error", LOG_LVL_ERROR }, { "warning", LOG_LVL_WARNING }, { "notice", LOG_LVL_NOTICE },
	        { "info", LOG_LVL_INFO }, { "debug", LOG_LVL_DEBUG }) },
	{ "workers", TOP, CONFIG_T_UINT, CONFIG_AUTO, 1, CONFIG_WORKERS_MAX, "1", CFG(workers), NULL },
	{ "drain_timeout", TOP, CONFIG_T_MS, LIVE, 0, DAY_MS, "30s", CFG(drain_ms), NULL },
	{ "take_over_timeout", TOP, CONFIG_T_MS, LIVE | ZERO, 100, 7 * DAY_MS, "0", CFG(take_over_ms), NULL },
	{ "spin", TOP, CONFIG_T_US_WORD, LIVE, 1, 1000, "off", CFG(spin_us),
	    WORDS({ "off", 0 }, { "auto", CONFIG_SPIN_AUTO }) },

	{ "include", TOP, CONFIG_T_PATTERN, LIVE | CONFIG_NOT_PRINTED, 0, 0, NULL, CFG(include), NULL },

	{ "format", LOG, CONFIG_T_WORD, LIVE, 0, 0, "text", CFG(log.format),
	    WORDS({ "text", CONFIG_LOG_TEXT }, { "json", CONFIG_LOG_JSON }) },
	{ "connections", LOG, CONFIG_T_BOOL, LIVE, 0, 0, "false", CFG(log.connections), NULL },

	{ "path", CONTROL, CONFIG_T_PATH, 0, 0, 0, RUNSTATEDIR "/smcrd/control", CFG(control_path), NULL },
	{ "mode", CONTROL, CONFIG_T_MODE, 0, 0, 0777, "0660", CFG(control_mode), NULL },
	{ "admin_group", CONTROL, CONFIG_T_GROUP, LIVE, 0, 0, NULL, CFG(control_admin_group), NULL },
	{ "readonly", CONTROL, CONFIG_T_PATH, 0, 0, 0, NULL, CFG(control_readonly), NULL },
	{ "readonly_mode", CONTROL, CONFIG_T_MODE, 0, 0, 0777, "0666", CFG(control_readonly_mode), NULL },

	{ "listen", METRICS, CONFIG_T_LISTEN, 0, 0, 0, NULL, CFG(metrics.listen), NULL },
	{ "mode", METRICS, CONFIG_T_MODE, 0, 0, 0777, "0660", CFG(metrics.mode), NULL },
	{ "allow", METRICS, CONFIG_T_NETS, LIVE, 0, 0, NULL, CFG(metrics.allow), NULL },

	{ "mode", CONFINE, CONFIG_T_WORD, 0, 0, 0, "auto", CFG(confine.mode),
	    WORDS({ "auto", CONFIG_CONFINE_AUTO }, { "require", CONFIG_CONFINE_REQUIRE },
	        { "off", CONFIG_CONFINE_OFF }) },
	{ "low_ports", CONFINE, CONFIG_T_BOOL, 0, 0, 0, "false", CFG(confine.low_ports), NULL },

	{ "cert", TLS, CONFIG_T_PATH, LIVE, 0, 0, NULL, CFG(tls.cert), NULL },
	{ "key", TLS, CONFIG_T_PATH, LIVE, 0, 0, NULL, CFG(tls.key), NULL },
	{ "ca", TLS, CONFIG_T_PATH, LIVE, 0, 0, NULL, CFG(tls.ca), NULL },
	{ "crl", TLS, CONFIG_T_PATH, LIVE, 0, 0, NULL, CFG(tls.crl), NULL },
	{ "name", TLS, CONFIG_T_NAME, LIVE, 0, 0, NULL, CFG(tls.name), NULL },
	{ "psk", TLS, CONFIG_T_PATH, LIVE, 0, 0, NULL, CFG(tls.psk), NULL },
	{ "suites", TLS, CONFIG_T_WORDS, LIVE, 0, 0, "TLS_AES_128_GCM_SHA256, TLS_CHACHA20_POLY1305_SHA256",
	    CFG(tls.suites),
	    WORDS({ "TLS_AES_128_GCM_SHA256", TLS_AES_128 }, { "TLS_CHACHA20_POLY1305_SHA256", TLS_CHACHA20 },
	        { "TLS_AES_256_GCM_SHA384", TLS_AES_256 }) },
	{ "handshakes", TLS, CONFIG_T_UINT, LIVE | ZERO, 1, 100000, "50", CFG(tls.handshakes), NULL },
	{ "resume", TLS, CONFIG_T_MS, LIVE | ZERO, 1000, DAY_MS, "1h", CFG(tls.resume_ms), NULL },
	{ "recheck", TLS, CONFIG_T_MS, LIVE | ZERO, 1000, DAY_MS, "1m", CFG(tls.recheck_ms), NULL },

	{ "enabled", ALIVE, CONFIG_T_BOOL, LIVE, 0, 0, "true", CFG(keepalive.enabled), NULL },
	{ "idle", ALIVE, CONFIG_T_SECONDS, LIVE, 1, 32767, "2m", CFG(keepalive.idle_s), NULL },
	{ "interval", ALIVE, CONFIG_T_SECONDS, LIVE, 1, 32767, "1m", CFG(keepalive.interval_s), NULL },
	{ "probes", ALIVE, CONFIG_T_UINT, LIVE, 1, 127, "13", CFG(keepalive.probes), NULL },
	{ "ack_timeout", ALIVE, CONFIG_T_SECONDS, LIVE | ZERO, 1, 32767, "0", CFG(keepalive.ack_s), NULL },
	{ "smcr_idle_min", ALIVE, CONFIG_T_SECONDS, LIVE, 1, 32767, "1m", CFG(keepalive.smcr_min_s), NULL },

	{ "max_connections", SMCR, CONFIG_T_UINT, 0, 1, IDTABLE_MAX, "65536", CFG(smcr.conns_max), NULL },
	{ "connections_per_group", SMCR, CONFIG_T_UINT, LIVE, 1, SMCR_CONNS_PER_GROUP, "255", CFG(smcr.conns_per_group),
	    NULL },
	{ "quarantine_max", SMCR, CONFIG_T_UINT, LIVE, 1, 4096, "64", CFG(smcr.quarantine_max), NULL },
	{ "groups_per_address", SMCR, CONFIG_T_UINT, LIVE, 1, 4096, "16", CFG(smcr.groups_per_addr), NULL },
	{ "rmb_memory_max", SMCR, CONFIG_T_SIZE, LIVE, 1u << 20, 1ull << 42, "4G", CFG(smcr.rmb_bytes_max), NULL },
	{ "rmb_elements", SMCR, CONFIG_T_UINT, LIVE, 1, 255, "255", CFG(smcr.rmb_elems), NULL },
	{ "links_max", SMCR, CONFIG_T_UINT, LIVE, 1, SMCR_LINKS_MAX, "2", CFG(smcr.links_max), NULL },
	{ "send_buffer", SMCR, CONFIG_T_SIZE, POW2 | CONFIG_AUTO, SMCR_ELEM_MIN, 2 * SMCR_ELEM_MAX, "auto",
	    CFG(smcr.sndbuf_size), NULL },
	{ "send_memory_max", SMCR, CONFIG_T_SIZE, LIVE, 1u << 20, 1ull << 42, "1G", CFG(smcr.sndbuf_bytes_max), NULL },
	{ "group_memory_max", SMCR, CONFIG_T_SIZE, LIVE, 1u << 20, 1ull << 42, "1G", CFG(smcr.group_bytes_max), NULL },
	{ "send_queue", SMCR, CONFIG_T_UINT, 0, 16, 8192, "1024", CFG(smcr.sq_depth), NULL },
	{ "receive_queue", SMCR, CONFIG_T_UINT, 0, 16, 8192, "1024", CFG(smcr.rq_depth), NULL },
	{ "mpa_peers", SMCR, CONFIG_T_NETS, LIVE, 0, 0, NULL, CFG(mpa_peers), NULL },
	{ "open_over_link", SMCR, CONFIG_T_BOOL, LIVE, 0, 0, "true", CFG(open_over_link), NULL },
	{ "rfc_cursors", SMCR, CONFIG_T_BOOL, LIVE, 0, 0, "false", CFG(smcr.rfc_cursors), NULL },
	{ "smc_version", SMCR, CONFIG_T_CHOICE, LIVE, 0, 0, "any", CFG(smcr.smc_version),
	    WORDS({ "any", 0 }, { "1", 1 }, { "2", 2 }) },
	{ "ueids", SMCR, CONFIG_T_EIDS, LIVE, 0, 0, NULL, offsetof(struct config, smcr.ueid_cnt),
	    sizeof(uint8_t) + CLC_MAX_EIDS * sizeof(struct clc_eid), NULL },
	{ "clc_timeout", SMCR, CONFIG_T_MS, LIVE, 100, 60000, "6s", CFG(smcr.clc_ms), NULL },
	{ "llc_timeout", SMCR, CONFIG_T_MS, LIVE, 100, 60000, "2s", CFG(smcr.llc_ms), NULL },
	{ "confirm_link_timeout", SMCR, CONFIG_T_MS, LIVE, 100, 60000, "4s", CFG(smcr.confirm_link_ms), NULL },
	{ "add_link_timeout", SMCR, CONFIG_T_MS, LIVE, 100, 60000, "2s", CFG(smcr.add_link_ms), NULL },
	{ "add_link_retry", SMCR, CONFIG_T_MS, LIVE, 100, 600000, "10s", CFG(smcr.add_link_retry_ms), NULL },
	{ "add_link_retry_max", SMCR, CONFIG_T_MS, LIVE, 10000, DAY_MS, "10m", CFG(smcr.add_link_retry_max_ms), NULL },
	{ "test_link_interval", SMCR, CONFIG_T_MS, LIVE | ZERO, 100, DAY_MS, "30s", CFG(smcr.keepalive_ms), NULL },
	{ "test_link_timeout", SMCR, CONFIG_T_MS, LIVE, 100, 60000, "2s", CFG(smcr.keepalive_answer_ms), NULL },
	{ "last_link_timeout", SMCR, CONFIG_T_MS, LIVE, 1000, DAY_MS, "15m", CFG(smcr.last_link_ms), NULL },
	{ "group_idle", SMCR, CONFIG_T_MS, LIVE, 100, DAY_MS, "10m", CFG(smcr.group_idle_ms), NULL },
	{ "rmb_idle", SMCR, CONFIG_T_MS, LIVE, 100, DAY_MS, "1m", CFG(smcr.rmb_idle_ms), NULL },
	{ "close_timeout", SMCR, CONFIG_T_MS, LIVE, 100, DAY_MS, "1m", CFG(smcr.close_ms), NULL },
	{ "abort_timeout", SMCR, CONFIG_T_MS, LIVE, 100, DAY_MS, "10s", CFG(smcr.abort_ms), NULL },
	{ "fin_grace", SMCR, CONFIG_T_MS, LIVE, 10, 60000, "2s", CFG(smcr.fin_grace_ms), NULL },
	{ "reset_grace", SMCR, CONFIG_T_MS, LIVE, 10, 600000, "5s", CFG(reset_grace_ms), NULL },
	{ "hold_off", SMCR, CONFIG_T_MS, LIVE, 10, 60000, "1s", CFG(smcr.holdoff_ms), NULL },
	{ "hold_off_max", SMCR, CONFIG_T_MS, LIVE, 1000, DAY_MS, "1m", CFG(smcr.holdoff_max_ms), NULL },
	{ "mpa_clients", SMCR, CONFIG_T_NETS, LIVE, 0, 0, NULL, CFG(mpa_clients), NULL },

	{ "type", DEV, CONFIG_T_WORD, REQ, 0, 0, NULL, OF_DEV(type),
	    WORDS({ "siw", CONFIG_DEVICE_SIW }, { "verbs", CONFIG_DEVICE_VERBS }) },
	{ "name", DEV, CONFIG_T_NAME, 0, 0, 0, NULL, OF_DEV(name), NULL }, /* default: see load_device */
	/* exactly one of these */
	{ "address", DEV, CONFIG_T_ADDR, 0, 0, 0, NULL, OF_DEV(addr), NULL },
	{ "interface", DEV, CONFIG_T_IFNAME, 0, 0, 0, NULL, OF_DEV(interface), NULL },
	{ "device", VERBS, CONFIG_T_CARD, 0, 0, 0, NULL, OF_DEV(card), NULL },
	{ "port", VERBS, CONFIG_T_UINT, 0, 0, 254, "0", OF_DEV(port), NULL },
	{ "gid_type", VERBS, CONFIG_T_WORD, 0, 0, 0, "any", OF_DEV(gid_type),
	    WORDS({ "any", CONFIG_GID_ANY }, { "roce_v1", CONFIG_GID_ROCE_V1 }, { "roce_v2", CONFIG_GID_ROCE_V2 }) },
	{ "protected", VERBS, CONFIG_T_WORD, 0, 0, 0, "none", OF_DEV(verbs.protection),
	    WORDS({ "none", RNIC_PROTECTED_NONE }, { "macsec", RNIC_PROTECTED_MACSEC },
	        { "ipsec", RNIC_PROTECTED_IPSEC }, { "psp", RNIC_PROTECTED_PSP }) },
	{ "traffic_class", VERBS, CONFIG_T_UINT, 0, 0, 255, "0", OF_DEV(verbs.traffic_class), NULL },
	{ "service_level", VERBS, CONFIG_T_UINT, 0, 0, 15, "0", OF_DEV(verbs.service_level), NULL },
	{ "hop_limit", VERBS, CONFIG_T_UINT, 0, 1, 255, "64", OF_DEV(verbs.hop_limit), NULL },
	{ "timeout", VERBS, CONFIG_T_UINT, 0, 1, 31, "15", OF_DEV(verbs.timeout), NULL },
	/* 7 means no limit on some devices. */
	{ "retry_count", VERBS, CONFIG_T_UINT, 0, 0, 6, "6", OF_DEV(verbs.retry_cnt), NULL },
	{ "rnr_timer", VERBS, CONFIG_T_UINT, 0, 0, 31, "5", OF_DEV(verbs.min_rnr_timer), NULL },
	{ "busy_poll", VERBS, CONFIG_T_US, 0, 0, 10000, "0", OF_DEV(verbs.busy_poll_us), NULL },
	{ "transport", SIW, CONFIG_T_WORD, 0, 0, 0, "tcp", OF_DEV(siw.transport),
	    WORDS({ "tcp", SIW_TCP }, { "sctp", SIW_SCTP }) },
	{ "addresses", SIW, CONFIG_T_ADDRS, 0, 0, 0, NULL, OF_DEV(siw.more_addrs), NULL },
	{ "sctp_stack", SIW, CONFIG_T_WORD, 0, 0, 0, "auto", OF_DEV(siw.sctp_stack),
	    WORDS({ "auto", SIW_STACK_AUTO }, { "kernel", SIW_STACK_KERNEL }, { "user", SIW_STACK_USER }) },
	{ "sctp_udp", SIW, CONFIG_T_UINT, ZERO, 1, 65535, "0", OF_DEV(siw.sctp_udp), NULL },
	{ "sctp_profile", SIW, CONFIG_T_WORD, 0, 0, 0, "rfc5043", OF_DEV(siw.sctp_profile),
	    WORDS({ "rfc5043", SCTP_DDP_RFC5043 }, { "draft-00", SCTP_DDP_DRAFT00 }) },
	{ "mpa_ports", SIW, CONFIG_T_PORTS, 0, 0, 65535, "7471-7570", offsetof(struct config_device, siw.port_min),
	    2 * sizeof(uint16_t), NULL },
	/* Different from soft iWARP's: on the same address a card would accept them before the kernel. */
	{ "mpa_ports", VERBS, CONFIG_T_PORTS, 0, 0, 65535, "7571-7670",
	    offsetof(struct config_device, verbs.mpa_port_min), 2 * sizeof(uint16_t), NULL },
	{ "crc", SIW, CONFIG_T_BOOL, 0, 0, 0, "true", OF_DEV(siw.crc), NULL },
	{ "markers", SIW, CONFIG_T_BOOL, 0, 0, 0, "false", OF_DEV(siw.markers), NULL },
	{ "rtr", SIW, CONFIG_T_WORDS, 0, 0, 0, "send, write, read", OF_DEV(siw.rtr),
	    WORDS({ "send", RTR_SEND }, { "write", RTR_WRITE }, { "read", RTR_READ }) },
	{ "mpa_revision", SIW, CONFIG_T_UINT, 0, 1, 2, "2", OF_DEV(siw.mpa_rev), NULL },
	/* RFC 6581 section 4: 14 bits, all ones = not negotiated. */
	{ "ird", SIW, CONFIG_T_UINT, 0, 1, 0x3ffe, "16", OF_DEV(siw.ird), NULL },
	{ "ord", SIW, CONFIG_T_UINT, 0, 1, 0x3ffe, "16", OF_DEV(siw.ord), NULL },
	{ "fpdu_max", SIW, CONFIG_T_SIZE, ZERO, 128, 64768, "16K", OF_DEV(siw.fpdu_max), NULL },
	{ "connect_timeout", SIW, CONFIG_T_MS, 0, 100, 60000, "2s", OF_DEV(siw.connect_ms), NULL },
	{ "connect_timeout", VERBS, CONFIG_T_MS, 0, 100, 60000, "2s", OF_DEV(verbs.connect_ms), NULL },
	{ "answer_timeout", SIW, CONFIG_T_MS, 0, 100, 60000, "5s", OF_DEV(siw.answer_ms), NULL },
	{ "answer_timeout", VERBS, CONFIG_T_MS, 0, 100, 60000, "5s", OF_DEV(verbs.answer_ms), NULL },
	{ "confirm_delay", SIW, CONFIG_T_MS, 0, 0, 1000, "5ms", OF_DEV(siw.fence_ms), NULL },
	{ "confirm_delay", VERBS, CONFIG_T_MS, 0, 0, 1000, "5ms", OF_DEV(verbs.fence_ms), NULL },
	{ "max_qp", SIW, CONFIG_T_UINT, 0, 1, 4094, "1024", OF_DEV(siw.max_qp), NULL },
	{ "max_qp", VERBS, CONFIG_T_UINT, 0, 1, 4094, "1024", OF_DEV(verbs.max_qp), NULL },

	{ "name", SVC, CONFIG_T_NAME, REQ | LIVE, 0, 0, NULL, OF_SVC(name), NULL },
	{ "listen", SVC, CONFIG_T_LISTEN, REQ | LIVE, 0, 0, NULL, OF_SVC(listen), NULL },
	{ "to", SVC, CONFIG_T_TARGET, REQ | LIVE, 0, 0, NULL, OF_SVC(to), NULL },
	{ "capture", IN, CONFIG_T_WORD, LIVE | TCP, 0, 0, "redirect", OF_SVC(capture),
	    WORDS({ "redirect", CONFIG_CAPTURE_REDIRECT }, { "tproxy", CONFIG_CAPTURE_TPROXY }) },
	{ "via", IN, CONFIG_T_VIAS, LIVE | TCP, 0, VIA, NULL, OF_SVC(via), NULL },
	{ "nets", VIA, CONFIG_T_DESTS, REQ | LIVE, 0, 0, NULL, OF_VIA(nets), NULL },
	{ "peer", VIA, CONFIG_T_PEER_ADDR, REQ | LIVE, 0, 0, NULL, OF_VIA(peer), NULL },
	{ "policy", SVC, CONFIG_T_WORD, LIVE, 0, 0, "first", OF_SVC(policy),
	    WORDS({ "first", CONFIG_POLICY_FIRST }, { "spread", CONFIG_POLICY_SPREAD }) },
	{ "target_retry", SVC, CONFIG_T_MS, LIVE, 1000, 3600000, "10s", OF_SVC(retry_ms), NULL },
	{ "when_down", SVC, CONFIG_T_WORD, LIVE | TCP, 0, 0, "accept", OF_SVC(when_down),
	    WORDS({ "accept", CONFIG_DOWN_ACCEPT }, { "close_listener", CONFIG_DOWN_CLOSE_LISTENER }) },
	{ "probe", SVC, CONFIG_T_INNER, LIVE, 0, PROBE, NULL, OF_SVC(probe), NULL },
	{ "kind", PROBE, CONFIG_T_WORD, LIVE, 0, 0, "auto", OF_PROBE(kind),
	    WORDS({ "auto", CONFIG_PROBE_AUTO }, { "connect", CONFIG_PROBE_CONNECT }, { "smcr", CONFIG_PROBE_SMCR }) },
	{ "interval", PROBE, CONFIG_T_MS, LIVE, 100, 3600000, "5s", OF_PROBE(interval_ms), NULL },
	{ "timeout", PROBE, CONFIG_T_MS, LIVE, 100, 60000, "2s", OF_PROBE(timeout_ms), NULL },
	{ "rise", PROBE, CONFIG_T_UINT, LIVE, 1, 100, "2", OF_PROBE(rise), NULL },
	{ "fall", PROBE, CONFIG_T_UINT, LIVE, 1, 100, "3", OF_PROBE(fall), NULL },
	{ "send", PROBE, CONFIG_T_BYTES, LIVE, 0, 0, NULL, OF_PROBE(send), NULL },
	{ "expect", PROBE, CONFIG_T_BYTES, LIVE, 0, 0, NULL, OF_PROBE(expect), NULL },
	/* The file is created once: a reload changes it only with the path. */
	{ "listen_mode", IN, CONFIG_T_MODE, LIVE | UNIX, 0, 0777, "0660", OF_SVC(listen_mode), NULL },
	{ "listen_owner", IN, CONFIG_T_USER, LIVE | UNIX, 0, 0, NULL, OF_SVC(listen_owner), NULL },
	{ "listen_group", IN, CONFIG_T_GROUP, LIVE | UNIX, 0, 0, NULL, OF_SVC(listen_group), NULL },
	{ "freebind", SVC, CONFIG_T_BOOL, LIVE | TCP, 0, 0, "false", OF_SVC(freebind), NULL },
	{ "allow", SVC, CONFIG_T_NETS, LIVE | TCP, 0, 0, NULL, OF_SVC(allow), NULL },
	{ "allow_users", IN, CONFIG_T_USERS, LIVE | UNIX, 0, 0, NULL, OF_SVC(allow_users), NULL },
	{ "max_connections", SVC, CONFIG_T_UINT, LIVE, 1, 1048576, "4096", OF_SVC(max_connections), NULL },
	{ "max_connections_per_peer", SVC, CONFIG_T_UINT, LIVE, 0, 1048576, "0", OF_SVC(max_per_peer), NULL },
	{ "connect_timeout", SVC, CONFIG_T_MS, LIVE, 100, 600000, "10s", OF_SVC(connect_ms), NULL },
	{ "idle_timeout", SVC, CONFIG_T_MS, LIVE | ZERO, 1000, 7 * DAY_MS, "0", OF_SVC(idle_ms), NULL },
	{ "fallback", SVC, CONFIG_T_WORD, LIVE, 0, 0, "tcp", OF_SVC(fallback),
	    WORDS({ "tcp", CONFIG_FALLBACK_TCP }, { "refuse", CONFIG_FALLBACK_REFUSE }) },
	{ "peer", SVC, CONFIG_T_WORD, LIVE, 0, 0, "smcrd", OF_SVC(peer),
	    WORDS({ "smcrd", SMCR_PEER_SMCRD }, { "linux", SMCR_PEER_LINUX }, { "auto", SMCR_PEER_AUTO }) },
	{ "rmb_element", SVC, CONFIG_T_SIZE, LIVE | POW2 | CONFIG_AUTO, SMCR_ELEM_MIN, SMCR_ELEM_MAX, "auto",
	    OF_SVC(elem_size), NULL },
	{ "prewarm", IN, CONFIG_T_BOOL, LIVE, 0, 0, "false", OF_SVC(prewarm), NULL },
	{ "proxy_protocol", IN, CONFIG_T_WORD, LIVE, 0, 0, "off", OF_SVC(proxy_protocol),
	    WORDS({ "off", CONFIG_PROXY_OFF }, { "v1", CONFIG_PROXY_V1 }, { "v2", CONFIG_PROXY_V2 }) },
	{ "accept_proxy", IN, CONFIG_T_NETS, LIVE | TCP, 0, 0, NULL, OF_SVC(accept_proxy), NULL },
	{ "forward_client", IN, CONFIG_T_WORD, LIVE, 0, 0, "off", OF_SVC(forward_client),
	    WORDS(
	        { "off", CONFIG_FORWARD_OFF }, { "on", CONFIG_FORWARD_ON }, { "required", CONFIG_FORWARD_REQUIRED }) },
	{ "client_address", OUT, CONFIG_T_WORD, LIVE, 0, 0, "off", OF_SVC(client_address),
	    WORDS({ "off", CONFIG_CLIENT_OFF }, { "proxy_v1", CONFIG_CLIENT_PROXY_V1 },
	        { "proxy_v2", CONFIG_CLIENT_PROXY_V2 }, { "connect", CONFIG_CLIENT_CONNECT }) },
	{ "clients", OUT, CONFIG_T_NETS, LIVE, 0, 0, NULL, OF_SVC(clients), NULL },
	{ "client_fallback", OUT, CONFIG_T_BOOL, LIVE, 0, 0, "false", OF_SVC(client_fallback), NULL },
	{ "socket_mark", OUT, CONFIG_T_UINT, LIVE, 0, UINT32_MAX, "0", OF_SVC(socket_mark), NULL },
	{ "to_allow", OUT, CONFIG_T_DESTS, LIVE, 0, 0, NULL, OF_SVC(to_allow), NULL },
	{ "secure", SVC, CONFIG_T_WORD, LIVE, 0, 0, "off", OF_SVC(secure),
	    WORDS({ "off", CONFIG_SECURE_OFF }, { "accept", CONFIG_SECURE_ACCEPT }, { "auth", CONFIG_SECURE_AUTH },
	        { "required", CONFIG_SECURE_REQUIRED }) },
	{ "tls_name", IN, CONFIG_T_NAME, LIVE, 0, 0, NULL, OF_SVC(tls_name), NULL },
	{ "peer_names", SVC, CONFIG_T_PEERS, LIVE, 0, 0, NULL, OF_SVC(peer_names), NULL },
	{ .name = NULL },
};

/* Two members used as one: the second directly follows the first. */
#define BEHIND(type, second, first, first_type) \
	_Static_assert(offsetof(type, second) == offsetof(type, first) + sizeof(first_type), #first)

BEHIND(struct siw_config, port_max, port_min, uint16_t);
BEHIND(struct verbs_config, mpa_port_max, mpa_port_min, uint16_t);
BEHIND(struct config_service, to_cnt, to, struct config_target *);
BEHIND(struct config_service, to_word, to_cnt, unsigned);
BEHIND(struct config_service, via_cnt, via, struct config_via *);
BEHIND(struct config_via, net_cnt, nets, struct config_dest *);
BEHIND(struct config_service, allow_cnt, allow, struct config_net *);
BEHIND(struct config_service, accept_proxy_cnt, accept_proxy, struct config_net *);
BEHIND(struct config_service, clients_cnt, clients, struct config_net *);
BEHIND(struct config_service, to_allow_cnt, to_allow, struct config_dest *);
BEHIND(struct config_service, allow_users_cnt, allow_users, struct config_id *);
BEHIND(struct smcr_config, ueids, ueid_cnt, uint8_t);
BEHIND(struct config, mpa_clients_cnt, mpa_clients, struct config_net *);
BEHIND(struct config, metrics.allow_cnt, metrics.allow, struct config_net *);
BEHIND(struct config, mpa_peers_cnt, mpa_peers, struct config_net *);

const char *const config_kind_words[] = { [CONFIG_INGRESS] = "ingress", [CONFIG_EGRESS] = "egress" };

const struct config_section config_sections[] = {
	{ "", "", CONFIG_AT_TOP, 0 },
	{ "log", "log.", CONFIG_AT_LOG, 0 },
	{ "control", "control.", CONFIG_AT_CONTROL, 0 },
	{ "metrics", "metrics.", CONFIG_AT_METRICS, 0 },
	{ "confine", "confine.", CONFIG_AT_CONFINE, 0 },
	{ "tls", "tls.", CONFIG_AT_TLS, 0 },
	{ "keepalive", "keepalive.", CONFIG_AT_KEEPALIVE, 0 },
	{ "smcr", "smcr.", CONFIG_AT_SMCR, 0 },
	{ "defaults", "defaults.", CONFIG_AT_DEFAULTS, 0 },
	{ "devices", "devices.", CONFIG_AT_DEVICE, SMCR_LINKS_MAX },
	{ "ingress", "ingress.", CONFIG_AT_INGRESS, CONFIG_SERVICES_MAX },
	{ "egress", "egress.", CONFIG_AT_EGRESS, CONFIG_SERVICES_MAX },
	{ NULL, NULL, 0, 0 },
};

const struct config_key *
config_key_find(unsigned places, const char *name)
{
	for (const struct config_key *k = config_keys; k->name != NULL; k++)
		if ((k->where & places) != 0 && strcmp(k->name, name) == 0)
			return k;
	return NULL;
}

bool
config_key_fits(const struct config_key *key, int family)
{
	return (key->flags & (family == AF_UNIX ? CONFIG_TCP_ONLY : CONFIG_UNIX_ONLY)) == 0;
}

enum config_place
config_device_place(unsigned type)
{
	return type == CONFIG_DEVICE_VERBS ? CONFIG_AT_VERBS : CONFIG_AT_SIW;
}

enum config_place
config_service_place(unsigned kind)
{
	return kind == CONFIG_INGRESS ? CONFIG_AT_INGRESS : CONFIG_AT_EGRESS;
}

const struct config_section *
config_section_find(const char *name)
{
	for (const struct config_section *s = config_sections + 1; s->name != NULL; s++)
		if (strcmp(s->name, name) == 0)
			return s;
	return NULL;
}

const char *
config_nearest(unsigned places, const char *name)
{
	struct typo typo = typo_of(name);

	for (const struct config_key *k = config_keys; k->name != NULL; k++)
		if ((k->where & places) != 0)
			typo_compare(&typo, k->name);
	for (const struct config_section *s = config_sections + 1; s->name != NULL; s++)
		if ((places & CONFIG_AT_TOP) != 0 || ((places & CONFIG_AT_INCLUDED) != 0 && s->list_max > 0))
			typo_compare(&typo, s->name);
	return typo.nearest;
}
