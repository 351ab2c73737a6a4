/* The configuration as the daemon uses it: parsed, checked and constant after config_load. A reload builds a new one,
 * compares both and swaps them, or keeps the old one on any error. Owner: smcrd.c; freed by config_free. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/socket.h>

#include "rnic/rnic.h"
#include "rnic/siw/siw.h"
#include "rnic/verbs/verbs.h"
#include "smcr/smcr.h"
#include "tls/tls.h"

#define CONFIG_NAME_MAX 64
#define CONFIG_HOST_MAX 256
#define CONFIG_BACKUP " backup" /* behind a target */
#define CONFIG_TARGET_STR_MAX (CONFIG_HOST_MAX + 16)
#define CONFIG_TARGETS_MAX 16 /* of a service */
#define CONFIG_TO_STR_MAX 512
#define CONFIG_TARGET_ADDRS_MAX 16 /* that are used */
#define CONFIG_WORKERS_MAX 64

enum config_fallback {
	CONFIG_FALLBACK_TCP,
	CONFIG_FALLBACK_REFUSE,
};

enum config_proxy {
	CONFIG_PROXY_OFF,
	CONFIG_PROXY_V1,
	CONFIG_PROXY_V2,
};

/* Ingress: forwards the client's address to the peer (doc/transparent.md). */
enum config_forward {
	CONFIG_FORWARD_OFF,
	CONFIG_FORWARD_ON,
	CONFIG_FORWARD_REQUIRED, /* the peer must use it */
};

/* Egress: how the server learns the client's address. */
enum config_client {
	CONFIG_CLIENT_OFF,
	CONFIG_CLIENT_PROXY_V1,
	CONFIG_CLIENT_PROXY_V2,
	CONFIG_CLIENT_CONNECT, /* it is the source of the connection */
};

/* How the process confines itself: see confine.h. */
enum config_confine {
	CONFIG_CONFINE_OFF,
	CONFIG_CONFINE_AUTO,    /* as far as possible */
	CONFIG_CONFINE_REQUIRE, /* fully, or no start */
};

enum config_kind {
	CONFIG_INGRESS, /* plain TCP or a UNIX socket in, SMC-R out to `to` */
	CONFIG_EGRESS,  /* SMC-R in, plain TCP or a UNIX socket out to `to` */
};
extern const char *const config_kind_words[];

/* An address block of an allow list, IPv4 as IPv6-mapped. */
struct config_net {
	uint8_t addr[16];
	uint8_t prefix_len; /* of 128 */
};

/* Addresses and ports of servers, as written "192.0.2.0/24:5432-5439" or "[2001:db8::/32]:443"; IPv4 as IPv6-mapped. */
struct config_dest {
	uint8_t addr[16];
	uint8_t prefix_len;          /* of 128 */
	uint16_t port_min, port_max; /* 1 to 65535: any */
};

/* The way to some destinations of an ingress with to = "original". */
struct config_via {
	struct config_dest *nets; /* at least one */
	unsigned net_cnt;
	struct sockaddr_storage peer; /* with a port; unspecified: at the destination's own address */
};

/* What `to` is instead of targets. */
enum config_to {
	CONFIG_TO_TARGETS,
	CONFIG_TO_ORIGINAL,  /* ingress: where the program wanted to go */
	CONFIG_TO_REQUESTED, /* egress: where such an ingress says */
};
extern const char *const config_to_words[]; /* "" for targets; NULL ends the list */

/* How the destination of a captured connection is found. */
enum config_capture {
	CONFIG_CAPTURE_REDIRECT, /* from connection tracking */
	CONFIG_CAPTURE_TPROXY,   /* it is the local address */
};

/* A user or group as written, a name or a number, and its id when the configuration was loaded. */
struct config_id {
	char name[CONFIG_NAME_MAX]; /* "" = not set */
	uint32_t id;
};

#define CONFIG_ADMIN_GROUP "smcrd-admin" /* the default of control.admin_group, if it exists */

/* Clients of the control socket that may give orders, beside root and the daemon's user. */
struct config_admins {
	enum config_orders {
		CONFIG_ORDERS_NONE,
		CONFIG_ORDERS_GROUP, /* members of gid */
		CONFIG_ORDERS_ALL, /* without such a group, as a file of an earlier version with its own control.mode had it */
	} orders;
	uint32_t gid;
	char group[CONFIG_NAME_MAX];
};

/* host:port as written, with its addresses at the load; "unix:/path" or "srv:name": port 0. */
struct config_target {
	char host[CONFIG_HOST_MAX];
	uint16_t port;
	bool srv;                       /* host is a name of SRV records */
	bool backup;                    /* used only while the others do not work */
	struct sockaddr_storage *addrs; /* tried in order; empty: a name to be looked up */
	unsigned addr_cnt;
};

/* For clients while no target works. */
enum config_when_down {
	CONFIG_DOWN_ACCEPT,         /* accepted, and each is an attempt */
	CONFIG_DOWN_CLOSE_LISTENER, /* refused by the kernel; targets are probed in the background */
};

/* Selects one of several targets for a connection. */
enum config_policy {
	CONFIG_POLICY_FIRST,  /* in the order of the list */
	CONFIG_POLICY_SPREAD, /* in turn */
};

/* TLS between the gateways (doc/secure.md). */
enum config_secure {
	CONFIG_SECURE_OFF,
	CONFIG_SECURE_ACCEPT,   /* egress: as the peer's first byte says */
	CONFIG_SECURE_AUTH,     /* the CLC connection in TLS, links in clear */
	CONFIG_SECURE_REQUIRED, /* nothing in clear */
};

enum config_probe_kind {
	CONFIG_PROBE_OFF,
	CONFIG_PROBE_AUTO,    /* of an ingress to smcrd SMCR, else CONNECT */
	CONFIG_PROBE_CONNECT, /* a TCP connection, and `send` and `expect` over it */
	CONFIG_PROBE_SMCR,    /* ingress: asks the peer for its server */
};

#define CONFIG_PROBE_TEXT_MAX 64

/* Health probes of a service's targets; without padding, as it is compared as a whole. */
struct config_probe {
	enum config_probe_kind kind;
	uint32_t interval_ms, timeout_ms;
	uint32_t rise, fall;                                             /* results in a row that change the state */
	char send[CONFIG_PROBE_TEXT_MAX], expect[CONFIG_PROBE_TEXT_MAX]; /* "": nothing */
};

/* One ingress mapping or egress service. */
struct config_service {
	unsigned place; /* in the files, see config_place(); not a setting, so it is not compared */
	enum config_kind kind;
	char name[CONFIG_NAME_MAX]; /* unique over all services */
	struct sockaddr_storage listen;
	bool freebind;            /* listen may be an address that this host does not have yet */
	struct config_target *to; /* at least one, or none and a word */
	unsigned to_cnt;
	enum config_to to_word;
	enum config_capture capture;
	struct config_via *via;
	unsigned via_cnt;
	enum config_policy policy;
	uint32_t retry_ms; /* interval of retries for a failed target */
	enum config_when_down when_down;
	struct config_probe probe;
	struct config_net *allow; /* clients that may connect; empty = all */
	unsigned allow_cnt;
	struct config_net *accept_proxy; /* ingress: balancers, whose connections begin with a PROXY header */
	unsigned accept_proxy_cnt;
	/* For an ingress that listens on a UNIX socket. */
	struct config_id *allow_users; /* users that may connect; empty = as the file's mode allows */
	unsigned allow_users_cnt;
	uint32_t listen_mode;
	struct config_id listen_owner, listen_group;
	uint32_t max_connections;
	uint32_t max_per_peer; /* of one source at the same time; 0 = only max_connections */
	uint32_t connect_ms;   /* to the peer (ingress) or the server (egress) */
	uint32_t idle_ms;      /* 0 = never */
	enum config_fallback fallback;
	enum smcr_peer_kind peer;         /* the kind of peer on the CLC connection */
	uint32_t elem_size;               /* RMB element */
	bool prewarm;                     /* ingress: make the link group at start */
	enum config_proxy proxy_protocol; /* ingress */
	enum config_forward forward_client;
	enum config_client client_address;
	struct config_net *clients; /* egress: whom a peer may name as the client; empty = all */
	unsigned clients_cnt;
	bool client_fallback;         /* egress, connect: a client that the server cannot see goes by our own address */
	uint32_t socket_mark;         /* egress, connect: of connections by a client's address; 0: none */
	struct config_dest *to_allow; /* egress with CONFIG_TO_REQUESTED: servers that a peer may want; at least one */
	unsigned to_allow_cnt;
	enum config_secure secure;
	char peer_names[TLS_NAMES_MAX]; /* separated by '\n'; "": tls_name, or the host of `to` */
	char tls_name[TLS_NAME_MAX];    /* sent as SNI in the place of that host; "": not set */
};

enum config_device_type {
	CONFIG_DEVICE_SIW,
	CONFIG_DEVICE_VERBS,
};

/* Which GIDs of a card are used. */
enum config_gid_type {
	CONFIG_GID_ANY,
	CONFIG_GID_ROCE_V1,
	CONFIG_GID_ROCE_V2,
};

#define CONFIG_IFNAME_MAX 16      /* IF_NAMESIZE */
#define CONFIG_ALL_INTERFACES "*" /* except the loopback interface */
#define CONFIG_ALL_CARDS "*"

/* One device, one per address of an interface, or one per port of cards. One of addr, interface and card is set. */
struct config_device {
	unsigned place; /* in the files, see config_place(); not a setting, so it is not compared */
	enum config_device_type type;
	char name[RNIC_NAME_MAX]; /* "": from the interface or the card */
	struct sockaddr_storage addr;
	char interface[CONFIG_IFNAME_MAX];
	/* verbs only */
	char card[VERBS_DEV_NAME_MAX];
	uint8_t port; /* 0: each port of the card */
	enum config_gid_type gid_type;
	/* The settings of the type; names and places in them are set when the device is opened. */
	struct siw_config siw;
	struct verbs_config verbs;
};

struct config_keepalive {
	bool enabled;
	uint32_t idle_s;
	uint32_t interval_s;
	uint32_t probes;
	uint32_t ack_s;      /* sent data unacknowledged; 0: as long as keepalive takes, see net_ack_limit_s() */
	uint32_t smcr_min_s; /* between gateways, with data on SMC-R: the longer of idle_s and this (RFC 7609 4.5.3) */
};

#define CONFIG_SPIN_AUTO INT32_MAX

/* Paths of files, "" = not set. */
struct config_tls {
	char cert[CONFIG_HOST_MAX], key[CONFIG_HOST_MAX], ca[CONFIG_HOST_MAX], crl[CONFIG_HOST_MAX];
	char name[TLS_PSK_NAME_MAX + 1], psk[CONFIG_HOST_MAX];
	uint32_t recheck_ms; /* how often changed files are looked for; 0: never */
	uint32_t handshakes; /* full ones a second of one source; 0: no limit */
	uint32_t resume_ms;  /* how long an association lives; 0: none is made */
	unsigned suites;     /* TLS_ suites of tls.h */
};

struct config {
	char path[CONFIG_HOST_MAX];
	char include[CONFIG_HOST_MAX]; /* the pattern as written; "" = no include */
	char **included;               /* paths of files 1 and up; file 0 is path */
	unsigned included_cnt;
	struct config_service *services;
	unsigned service_cnt;
	struct config_device *devices;
	unsigned device_cnt;
	bool devices_default; /* not in the file: soft iWARP on each local address of the services' CLC connections */
	struct smcr_config smcr;
	struct config_net *mpa_peers; /* where RDMA devices of servers may be; empty: see mpa_policy.h */
	unsigned mpa_peers_cnt;
	struct config_net *mpa_clients; /* where iWARP connections may come from; empty: see mpa_policy.h */
	unsigned mpa_clients_cnt;
	bool open_over_link;
	uint32_t reset_grace_ms;           /* longest wait of a reset while no earlier byte moves */
	struct config_keepalive keepalive; /* TCP keepalive of every TCP leg */
	char control_path[108];
	uint32_t control_mode;                /* file mode of the control socket */
	struct config_id control_admin_group; /* as written */
	struct config_admins control_admins;  /* looked up */
	char control_readonly[108];           /* path of the second, query-only control socket; "": not opened */
	uint32_t control_readonly_mode;

	struct {
		enum config_log_format {
			CONFIG_LOG_TEXT,
			CONFIG_LOG_JSON,
		} format;
		bool connections; /* the line of each connection's end, at any level */
	} log;

	/* Metrics over HTTP. */
	struct {
		struct sockaddr_storage listen; /* no family: not served */
		uint32_t mode;                  /* file mode of a UNIX socket */
		struct config_net *allow;       /* clients that may connect over TCP; empty = all */
		unsigned allow_cnt;
	} metrics;

	struct {
		enum config_confine mode;
		bool low_ports; /* a reload may listen on ports below 1024 */
	} confine;

	struct config_tls tls;
	struct tls_ctx *tls_ctx; /* made of its files, and of later ones (tls_watch.h); NULL: no service has TLS */

	uint32_t workers;      /* 0: the number of processors */
	uint32_t drain_ms;     /* longest wait of SIGTERM for connections */
	uint32_t take_over_ms; /* of a process that was taken over; 0: no limit */
	uint32_t spin_us;      /* how long the loop polls before it sleeps; or CONFIG_SPIN_AUTO */
	int log_level;         /* enum log_level */
};

/* Reads and checks the file. 0, or negative with all errors in err, "FILE:LINE: what"; warnings also with success.
 * -EAGAIN when the only error is a name service that did not answer. Names are looked up here, blocking, at start and
 * on reload only. An unknown name is no error with config_names_wait(). instance: control/instance.h, NULL: none. */
int config_load(const char *path, const char *instance, FILE *err, struct config **out);
void config_free(struct config *);
/* A name that does not resolve makes its service wait for the next look-up; false: it is an error of the file. */
bool config_names_wait(void);
/* Has it an entry for cards? */
bool config_has_verbs(const struct config *);
/* The first service that connects by its clients' addresses; NULL: none. */
const struct config_service *config_connects_as_client(const struct config *);
/* SCTP may use libusrsctp. */
bool config_has_user_sctp(void);
/* The directory of included files, above variable parts of the pattern. 0 or -ENOENT. buf has PATH_MAX bytes. */
int config_include_dir(const struct config *, char *buf);
/* As written: "host:port", "[IPv6]:port", "unix:/path"; buf has CONFIG_TARGET_STR_MAX bytes and is returned. */
const char *config_target_str(const struct config_target *, char *buf);
/* All targets of a service, separated by commas, "..." if too long; returns buf, of CONFIG_TO_STR_MAX bytes. */
const char *config_to_str(const struct config_service *, char *buf);
/* A list of targets with their addresses. */
void config_targets_free(struct config_target *, unsigned cnt);
/* How closely an entry names this destination, of this address as IPv6: the larger, the closer; -1: not at all. */
int config_dest_rank(const struct config_dest *, const uint8_t addr[16], uint16_t port);
/* The closest entry of the list; NULL: none. */
const struct config_dest *config_dest_find(
    const struct config_dest *, unsigned cnt, const uint8_t addr[16], uint16_t port);
/* By the longest network of the list that has it: the port is one of those there, and a link-local address a host's. NULL:
 * yes, or the reason. */
const char *config_dest_objection(const struct config_dest *, unsigned cnt, const struct sockaddr_storage *);
/* A network as "192.0.2.0/24"; returns buf, of CONFIG_DEST_STR_MAX bytes. */
const char *config_net_str(const struct config_net *, char *buf);
/* As written; returns buf, of CONFIG_DEST_STR_MAX bytes. */
#define CONFIG_DEST_STR_MAX 80
const char *config_dest_str(const struct config_dest *, char *buf);
/* The way to this destination, and the address of its peer; NULL: none. */
const struct config_via *config_via_find(
    const struct config_service *, const struct sockaddr_storage *to, struct sockaddr_storage *peer);
/* A peer of some destinations is there. */
bool config_via_leads_to(const struct config_service *, const struct sockaddr_storage *peer);
bool config_via_equal(const struct config_service *, const struct config_service *);
void config_vias_free(struct config_via *, unsigned cnt);
/* Written the same. */
bool config_target_same(const struct config_target *, const struct config_target *);
/* It needs no look-up: an IP address, or the path of a UNIX socket. */
bool config_target_is_literal(const struct config_target *);
/* Loopback, link-local, multicast, unspecified: a name server that returned one would choose a local service. */
bool config_addr_is_special(const struct sockaddr_storage *);
/* The host itself defines the name: localhost, or in /etc/hosts. Then it may have a special address. */
bool config_name_is_this_hosts(const char *name);
extern const char config_only_special[], config_only_ours[]; /* reasons why a name has no address */
/* An address of this host. Asks the kernel; sends nothing. */
bool config_addr_is_ours(const struct sockaddr_storage *);
/* Would a connection to this address reach this listener? May ask the kernel if the address is local; sends nothing. */
bool config_leads_to(const struct sockaddr_storage *to, const struct sockaddr_storage *listen);
/* The same for the listeners of all services. */
bool config_is_ours(const struct config *, const struct sockaddr_storage *to);
/* Likewise for that of metrics as well. */
bool config_listens_on(const struct config *, const struct sockaddr_storage *to);
/* The TLS_AS_ bits that its services need. */
unsigned config_tls_uses(const struct config *);
/* Reads the files of `tls`, without the configuration; NULL: after errors to err, a line each. */
struct tls_ctx *config_tls_read(const struct config_tls *, unsigned uses, FILE *err);
/* What they are now. */
void config_tls_look(const struct config_tls *, struct tls_stamp *);
/* Prints "FILE:LINE: warning: ..." for the place of an entry, or "FILE: warning: ..." for the whole main file, place 0. */
void config_advise(const struct config *, unsigned place, FILE *out, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
/* Canonical form with all defaults; it parses to the same configuration (-T). */
void config_print(const struct config *, FILE *out);

/* The changes of a reload. */
struct config_plan {
	unsigned added, removed, changed; /* services */
	unsigned settings;                /* settings outside services */
	unsigned fixed;                   /* changed settings that need a take-over */
};

/* Behind what a reload cannot do: the command that does it, without a cut. */
#define CONFIG_BY_TAKE_OVER "\"systemctl reload smcrd\" or \"smcrd --reload\" does it, by a take-over"

/* The service of this name; NULL: not found. */
const struct config_service *config_find_service(const struct config *, const char *name);
/* Same kind and same settings. */
bool config_service_equal(const struct config_service *, const struct config_service *);

/* Compares. One line each to text: "service web added", "service web changed: to, allow", "setting smcr.clc_timeout
 * changed", and "warning: ..." for what needs a take-over. */
void config_plan(const struct config *old, const struct config *next, struct config_plan *, FILE *text);

/* Copies the settings in force that need a take-over, with all devices, to next. 0, or -ENOMEM with next unchanged. */
int config_keep_fixed(const struct config *old, struct config *next);
