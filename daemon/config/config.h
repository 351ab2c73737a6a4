/* The configuration as the daemon uses it: parsed and checked, never changed after config_load. A reload builds a
 * new one beside the old, compares, and swaps (or keeps the old one on any error). Owner: smcrd.c; freed by
 * config_free. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/socket.h>

#include "rnic/rnic.h"
#include "rnic/siw/siw.h"
#include "rnic/verbs/verbs.h"
#include "smcr/smcr.h"

#define CONFIG_NAME_MAX 64
#define CONFIG_HOST_MAX 256
#define CONFIG_TARGET_STR_MAX (CONFIG_HOST_MAX + 16)
#define CONFIG_TARGETS_MAX 16 /* of a service */
#define CONFIG_TO_STR_MAX 512
#define CONFIG_TARGET_ADDRS_MAX 16 /* that count */
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

/* How the process confines itself: see confine.h. */
enum config_confine {
	CONFIG_CONFINE_OFF,
	CONFIG_CONFINE_AUTO,    /* as far as it goes */
	CONFIG_CONFINE_REQUIRE, /* or it does not start */
};

enum config_kind {
	CONFIG_INGRESS, /* plain TCP or a UNIX socket in, SMC-R out to `to` */
	CONFIG_EGRESS,  /* SMC-R in, plain TCP or a UNIX socket out to `to` */
};

/* Where something stands in the files, for config_advise. No setting: what differs in this alone is the same. */
struct config_source {
	unsigned file; /* of struct config's files */
	unsigned line; /* 0: nowhere in particular */
};

/* An address block of an allow list, IPv4 as IPv6-mapped. */
struct config_net {
	uint8_t addr[16];
	uint8_t prefix_len; /* of 128 */
};

/* A user or group as written, a name or a number, and which it was when the configuration was loaded. */
struct config_id {
	char name[CONFIG_NAME_MAX]; /* "" = none */
	uint32_t id;
};

/* host:port as written, and the addresses it stood for when the configuration was loaded; or "unix:/path", port 0; or
 * "srv:name", whose host is the name, port 0. */
struct config_target {
	char host[CONFIG_HOST_MAX];
	uint16_t port;
	bool srv;                       /* host is where SRV records are */
	struct sockaddr_storage *addrs; /* tried in order; none: a name that is still to be looked up */
	unsigned addr_cnt;
};

/* What becomes of clients while no target works. */
enum config_when_down {
	CONFIG_DOWN_ACCEPT,         /* each is a try */
	CONFIG_DOWN_CLOSE_LISTENER, /* the kernel refuses them; targets are looked at in the background */
};

/* Which of several targets a connection gets. */
enum config_policy {
	CONFIG_POLICY_FIRST,  /* in the order of the list */
	CONFIG_POLICY_SPREAD, /* in turn */
};

/* One ingress mapping or egress service. */
struct config_service {
	struct config_source src;
	enum config_kind kind;
	char name[CONFIG_NAME_MAX]; /* unique over all services */
	struct sockaddr_storage listen;
	bool freebind;            /* listen may be an address that this host does not have yet */
	struct config_target *to; /* at least one */
	unsigned to_cnt;
	enum config_policy policy;
	uint32_t retry_ms; /* a target that failed is looked at again so often */
	enum config_when_down when_down;
	struct config_net *allow; /* who may connect; empty = everybody */
	unsigned allow_cnt;
	/* Of an ingress that listens on a UNIX socket. */
	struct config_id *allow_users; /* who may connect; empty = whoever the file lets */
	unsigned allow_users_cnt;
	uint32_t listen_mode;
	struct config_id listen_owner, listen_group;
	uint32_t max_connections;
	uint32_t max_per_peer; /* of one source at the same time; 0 = no limit but max_connections */
	uint32_t connect_ms;   /* to the peer (ingress) or the server (egress) */
	uint32_t idle_ms;      /* 0 = never */
	enum config_fallback fallback;
	enum smcr_peer_kind peer;         /* who is at the other end of the middle */
	uint32_t elem_size;               /* RMB element */
	bool prewarm;                     /* ingress: make the link group at start */
	enum config_proxy proxy_protocol; /* ingress */
};

enum config_device_type {
	CONFIG_DEVICE_SIW,
	CONFIG_DEVICE_VERBS,
};

/* Which GIDs of a card count. */
enum config_gid_type {
	CONFIG_GID_ANY,
	CONFIG_GID_ROCE_V1,
	CONFIG_GID_ROCE_V2,
};

#define CONFIG_IFNAME_MAX 16      /* IF_NAMESIZE */
#define CONFIG_ALL_INTERFACES "*" /* but the loopback interface */
#define CONFIG_ALL_CARDS "*"

/* One device, or as many as an interface has addresses, or as there are ports of cards. Exactly one of addr,
 * interface and card says where. */
struct config_device {
	struct config_source src;
	enum config_device_type type;
	char name[RNIC_NAME_MAX]; /* "": the interface's or the card's */
	struct sockaddr_storage addr;
	char interface[CONFIG_IFNAME_MAX];
	/* verbs only */
	char card[VERBS_DEV_NAME_MAX];
	uint8_t port; /* 0: each port of the card */
	enum config_gid_type gid_type;
	/* The settings of the type; names and places in them are filled in when the device is opened. */
	struct siw_config siw;
	struct verbs_config verbs;
};

struct config_keepalive {
	bool enabled;
	uint32_t idle_s;
	uint32_t interval_s;
	uint32_t probes;
	uint32_t ack_s;      /* sent data unacknowledged; 0: as long as keepalive takes, see net_ack_limit_s() */
	uint32_t smcr_min_s; /* between gateways, with data on SMC-R: idle_s or this, the longer one (RFC 7609 4.5.3) */
};

#define CONFIG_SPIN_AUTO INT32_MAX

struct config {
	char path[CONFIG_HOST_MAX];
	char include[CONFIG_HOST_MAX]; /* the pattern as written; "" = none */
	char **included;               /* paths of files 1 and up; file 0 is path */
	unsigned included_cnt;
	struct config_service *services;
	unsigned service_cnt;
	struct config_device *devices; /* none in the file: a soft iWARP device on each service's middle address */
	unsigned device_cnt;
	bool devices_default; /* the file names none */
	struct smcr_config smcr;
	struct config_net *mpa_peers; /* where servers' RDMA devices may be; none: see mpa_policy.h */
	unsigned mpa_peers_cnt;
	struct config_net *mpa_clients; /* where iWARP connections may come from; none: see mpa_policy.h */
	unsigned mpa_clients_cnt;
	uint32_t reset_grace_ms;           /* how long a reset waits while no byte before it moves */
	struct config_keepalive keepalive; /* TCP keepalive of every TCP leg */
	char control_path[108];
	uint32_t control_mode;      /* file mode of the control socket */
	char control_readonly[108]; /* path of the second one, on which is only asked; "": there is none */
	uint32_t control_readonly_mode;

	/* What is counted, over HTTP. */
	struct {
		struct sockaddr_storage listen; /* no family: nowhere */
		uint32_t mode;                  /* file mode of a UNIX socket */
		struct config_net *allow;       /* who may connect over TCP; empty = everybody */
		unsigned allow_cnt;
	} metrics;

	struct {
		enum config_confine mode;
		bool low_ports; /* a reload may listen on ports below 1024 */
	} confine;

	uint32_t workers;  /* 0: as many as there are processors */
	uint32_t drain_ms; /* SIGTERM waits this long for connections */
	uint32_t spin_us;  /* the loop looks so long for events before it sleeps; or CONFIG_SPIN_AUTO */
	int log_level;     /* enum log_level */
};

/* Reads and checks the file. 0, or negative with all errors printed to err, "FILE:LINE: what"; lines "FILE:LINE:
 * warning: what" may come with success too. -EAGAIN when nothing is wrong but that the name service did not answer.
 * Names are asked for here: blocking, at start and on reload only. One that is not found is no mistake: the names of a daemon that
 * runs are daemon/names', where that is there (config_names_wait). */
int config_load(const char *path, FILE *err, struct config **out);
void config_free(struct config *);
/* A name that does not resolve makes its service wait, as it is looked up again; false: it is a mistake of the file. */
bool config_names_wait(void);
/* SCTP can be libusrsctp's. */
bool config_has_user_sctp(void);
/* Where a reload looks for included files: the directory, above all that is variable in the pattern. 0, or -ENOENT when there
 * is none. buf has PATH_MAX bytes. */
int config_include_dir(const struct config *, char *buf);
/* As written: "host:port", "[IPv6]:port", "unix:/path"; buf has CONFIG_TARGET_STR_MAX bytes and is returned. */
const char *config_target_str(const struct config_target *, char *buf);
/* All targets of a service, separated by commas; buf has CONFIG_TO_STR_MAX bytes and is returned. What has no room is "...". */
const char *config_to_str(const struct config_service *, char *buf);
/* A list of them, with their addresses. */
void config_targets_free(struct config_target *, unsigned cnt);
/* Written the same. */
bool config_target_same(const struct config_target *, const struct config_target *);
/* It has addresses by itself: an IP address, or the path of a UNIX socket. */
bool config_target_is_literal(const struct config_target *);
/* Loopback, link-local, multicast and unspecified addresses lead to this host, or not beyond the segment that it is in: whoever answers
 * for a name would choose what is asked there. */
bool config_addr_is_special(const struct sockaddr_storage *);
/* The host itself says what the name stands for: localhost, or in /etc/hosts. Then it may be a special address. */
bool config_name_is_this_hosts(const char *name);
extern const char config_only_special[], config_only_ours[]; /* why a name has no address: words */
/* Would a connection to this address come to who listens there? Asks the kernel whether it is this host's where that is the
 * question, sending nothing. */
bool config_leads_to(const struct sockaddr_storage *to, const struct sockaddr_storage *listen);
/* Prints a line "FILE:LINE: warning: ..." about what stands there, "FILE: warning: ..." of the file as a whole. */
void config_advise(const struct config *, struct config_source, FILE *out, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
/* Canonical form, with every default written out; parses again to the same configuration (-T). */
void config_print(const struct config *, FILE *out);

/* The changes that a reload would make. */
struct config_plan {
	unsigned added, removed, changed; /* services */
	unsigned settings;                /* settings outside services */
	unsigned fixed;                   /* settings that differ but count only after a restart */
};

/* The service of this name; NULL when there is none. */
const struct config_service *config_find_service(const struct config *, const char *name);
/* Same kind and same settings. */
bool config_service_equal(const struct config_service *, const struct config_service *);

/* Compares. One line each to text: "service web added", "service web changed: to, allow", "setting smcr.clc_timeout
 * changed", and "warning: ..." for what needs a restart. */
void config_plan(const struct config *old, const struct config *next, struct config_plan *, FILE *text);

/* Copies the settings that need a restart from old, all devices included, so that next says what is in force. 0 or -ENOMEM
 * (next unchanged). */
int config_keep_fixed(const struct config *old, struct config *next);
