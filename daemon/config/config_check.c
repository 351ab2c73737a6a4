/* Rules over several settings. Called by config.c after all are stored; one that failed is zero here and skipped. */
#include <string.h>

#include "base/addr.h"
#include "daemon/config/config_int.h"
#include "daemon/config/config_value.h"

static const char between_hosts[] = "cannot be a UNIX socket: between the gateways SMC-R begins on TCP";

/* The path of a UNIX listener must be unique. */
static void
check_path(struct config_build *b, const char *prefix, unsigned line, const struct sockaddr_storage *listen)
{
	const char *path = listen->ss_family == AF_UNIX ? addr_path(listen) : "";

	if (path[0] != '\0' && strcmp(path, b->cfg->control_path) == 0)
		config_error(b, line, "%s.listen is the path of the control socket", prefix);
	if (path[0] != '\0' && strcmp(path, b->cfg->control_readonly) == 0)
		config_error(b, line, "%s.listen is the path of the read-only control socket", prefix);
}

/* A setting for the other kind of listening socket would have no effect. */
static void
check_unix(struct config_build *b, const struct config_service *svc, const config_setting_t *src)
{
	int family = svc->listen.ss_family;

	if (svc->kind == CONFIG_EGRESS) {
		if (family == AF_UNIX)
			config_error(b, config_line(src, "listen"), "egress.listen %s", between_hosts);
		return;
	}
	for (unsigned i = 0; i < svc->to_cnt; i++)
		if (svc->to[i].addr_cnt > 0 && svc->to[i].addrs[0].ss_family == AF_UNIX)
			config_error(b, config_line(src, "to"), "ingress.to %s", between_hosts);
	check_path(b, "ingress", config_line(src, "listen"), &svc->listen);
	for (const struct config_key *k = config_keys; family != 0 && k->name != NULL; k++)
		if ((k->where & CONFIG_AT_INGRESS) != 0 && config_member(src, k->name) != NULL &&
		    !config_key_fits(k, family))
			config_error(b, config_line(src, k->name),
			    strcmp(k->name, "allow") == 0 ? "ingress.%s is for TCP; for a UNIX socket use allow_users"
			        : family == AF_UNIX       ? "ingress.%s is for a service that listens on TCP"
			                                  : "ingress.%s is for a service that listens on a UNIX socket",
			    k->name);
}

bool
config_is_chosen(enum config_place place, const config_setting_t *src, const char *name, const void *base)
{
	const struct config_key *key = config_key_find(place, name);
	union {
		struct config cfg;
		struct config_service svc;
		struct config_device dev;
	} fresh;

	memset(&fresh, 0, sizeof(fresh));
	return config_member(src, name) != NULL &&
	    (config_value_set_default(key, &fresh) != 0 || !config_value_equal(key, base, &fresh));
}

/* A peer that is no smcrd knows nothing of a server behind it, and an egress has no peer behind it. */
static void
check_probe(struct config_build *b, const struct config_service *svc, const config_setting_t *src)
{
	const bool ingress = svc->kind == CONFIG_INGRESS,
	           talks = svc->probe.send[0] != '\0' || svc->probe.expect[0] != '\0';
	const char *kind = config_kind_words[svc->kind];
	unsigned backups = 0;

	for (unsigned i = 0; i < svc->to_cnt; i++)
		backups += svc->to[i].backup;
	if (svc->to_cnt > 0 && backups == svc->to_cnt)
		config_error(b, config_line(src, "to"), "%s.to has only backup targets", kind);
	if (svc->probe.kind == CONFIG_PROBE_SMCR && (!ingress || svc->peer == SMCR_PEER_LINUX))
		config_error(b, config_line(src, "probe"),
		    "%s.probe.kind \"smcr\" is for an ingress whose peer is an smcrd", kind);
	if (talks && ingress)
		config_error(b, config_line(src, "probe"),
		    "%s.probe.send and expect are for an egress: the far end of an ingress is a gateway", kind);
}

/* What belongs to client_address = "connect". */
static void
check_connect(struct config_build *b, const struct config_service *svc, const config_setting_t *src)
{
	const bool connects = svc->client_address == CONFIG_CLIENT_CONNECT;
	const config_setting_t *clients = config_member(src, "clients");

	if (connects && svc->clients_cnt == 0 && (clients == NULL || config_setting_length(clients) == 0))
		config_error(b, config_line(src, "client_address"),
		    "egress.client_address \"connect\" needs egress.clients: the clients whose addresses a peer may use");
	for (unsigned i = 0; connects && i < svc->to_cnt; i++)
		if (svc->to[i].addr_cnt > 0 && svc->to[i].addrs[0].ss_family == AF_UNIX)
			config_error(b, config_line(src, "to"),
			    "egress.to cannot be a UNIX socket with egress.client_address \"connect\"");
	if (connects)
		return;
	if (svc->client_fallback)
		config_warning(b, config_line(src, "client_fallback"),
		    "egress.client_fallback has no effect: egress.client_address is not \"connect\"");
	if (svc->socket_mark != 0)
		config_warning(b, config_line(src, "socket_mark"),
		    "egress.socket_mark has no effect: egress.client_address is not \"connect\"");
}

/* Of smcrd alone, and said once to a server. */
static void
check_client(struct config_build *b, const struct config_service *svc, const config_setting_t *src)
{
	const bool forwards = svc->forward_client != CONFIG_FORWARD_OFF,
	           uses = svc->client_address != CONFIG_CLIENT_OFF;
	const char *kind = config_kind_words[svc->kind], *name = forwards ? "forward_client" : "client_address";

	if ((forwards || uses) && svc->peer != SMCR_PEER_SMCRD)
		config_error(b, config_line(src, name), "%s.%s needs %s.peer = \"smcrd\": no other peer takes part",
		    kind, name, kind);
	if (forwards && svc->proxy_protocol != CONFIG_PROXY_OFF)
		config_error(b, config_line(src, name),
		    "ingress.forward_client and ingress.proxy_protocol exclude each other: the server gets one header");
	for (unsigned i = 0; i < svc->accept_proxy_cnt; i++)
		if (svc->accept_proxy[i].prefix_len == 0 || svc->accept_proxy[i].prefix_len == 96)
			config_warning(b, config_line(src, "accept_proxy"),
			    "ingress.accept_proxy has a network of all hosts: each of them can name any client");
	if (svc->clients_cnt > 0 && !uses)
		config_warning(
		    b, config_line(src, "clients"), "egress.clients has no effect: egress.client_address is off");
	check_connect(b, svc, src);
}

/* The limit of the engine is lower. */
static void
check_max_connections(struct config_build *b, const struct config_service *svc, const config_setting_t *src)
{
	const uint32_t max = b->cfg->smcr.conns_max;

	if (max != 0 && svc->max_connections > max &&
	    config_is_chosen(config_service_place(svc->kind), src, "max_connections", svc))
		config_warning(b, config_line(src, "max_connections"),
		    "%s.max_connections %u will not be reached: smcr.max_connections is %u",
		    config_kind_words[svc->kind], svc->max_connections, max);
}

static void
check_service(struct config_build *b, unsigned i)
{
	const struct config_service *svc = &b->cfg->services[i], *others = b->cfg->services;
	const config_setting_t *src = b->service_src[i];
	const char *kind = config_kind_words[svc->kind];
	char mine[ADDR_STR_MAX], other[ADDR_STR_MAX], where[CONFIG_THERE_MAX];
	unsigned j = 0;

	while (j < i && (svc->name[0] == '\0' || strcmp(svc->name, others[j].name) != 0))
		j++;
	if (j < i)
		config_error(b, config_line(src, "name"), "%s.name \"%s\" is already used in %s", kind, svc->name,
		    config_there(b, src, b->service_src[j], "name", where));
	j = 0;
	while (j < i && !addr_overlaps(&svc->listen, &others[j].listen))
		j++;
	if (j < i) {
		addr_format_port(&svc->listen, mine, sizeof(mine));
		addr_format_port(&others[j].listen, other, sizeof(other));
		config_error(b, config_line(src, "listen"),
		    strcmp(mine, other) == 0 ? "%s.listen %s is the same as %s of \"%s\" in %s"
		                             : "%s.listen %s overlaps %s of \"%s\" in %s",
		    kind, mine, other, others[j].name, config_there(b, src, b->service_src[j], "listen", where));
	}
	check_unix(b, svc, src);
	check_probe(b, svc, src);
	config_check_via(b, svc, src);
	check_client(b, svc, src);
	check_max_connections(b, svc, src);
	/* The first connection would use up all connections. */
	for (unsigned k = 0; k < svc->to_cnt; k++)
		if (svc->to[k].addr_cnt > 0 && config_leads_to(&svc->to[k].addrs[0], &svc->listen))
			config_error(b, config_line(src, "to"), "%s.to is the service's own listen address", kind);
}

/* One setting says where a device is. */
static void
check_device_place(struct config_build *b, unsigned i)
{
	static const char *const places[] = { "address", "interface", "device" };
	const struct config_device *dev = &b->cfg->devices[i];
	const config_setting_t *src = b->device_src[i];
	const char *first = NULL, *second = NULL;
	bool one_card = dev->card[0] != '\0' && strcmp(dev->card, CONFIG_ALL_CARDS) != 0;

	for (unsigned p = 0; p < 3 && second == NULL; p++)
		if (config_member(src, places[p]) != NULL)
			*(first == NULL ? &first : &second) = places[p];
	if (first == NULL && dev->type == CONFIG_DEVICE_SIW)
		config_error(b, config_line(src, ""), "devices.address or devices.interface is missing");
	else if (first == NULL)
		config_error(
		    b, config_line(src, ""), "devices.device, devices.interface or devices.address is missing");
	else if (second != NULL)
		config_error(
		    b, config_line(src, second), "devices.%s and devices.%s exclude each other", second, first);
	if (dev->port != 0 && !one_card)
		config_error(b, config_line(src, "port"), "devices.port is for one card, named in devices.device");
	if (dev->addr.ss_family != 0 && addr_is_any(&dev->addr))
		config_error(
		    b, config_line(src, "address"), "devices.address must be one local address, not a wildcard");
}

/* More addresses need the device's one address, and must differ. */
static void
check_addresses(struct config_build *b, unsigned i)
{
	const struct config_device *dev = &b->cfg->devices[i];
	const struct siw_addrs *more = &dev->siw.more_addrs;
	unsigned line = config_line(b->device_src[i], "addresses");

	if (more->cnt == 0)
		return;
	if (dev->siw.sctp_stack == SIW_STACK_USER)
		config_error(b, line, "devices.addresses needs the kernel's SCTP: devices.sctp_stack is user");
	if (dev->addr.ss_family == 0)
		config_error(b, line, "devices.addresses needs devices.address");
	for (unsigned k = 0; k < more->cnt && dev->addr.ss_family != 0; k++) {
		if (more->at[k].ss_family != dev->addr.ss_family)
			config_error(b, line, "devices.addresses and devices.address must be all IPv4 or all IPv6");
		else if (addr_same_host(&more->at[k], &dev->addr))
			config_error(b, line, "devices.addresses has devices.address");
	}
}

static void
check_sctp(struct config_build *b, unsigned i)
{
	static const char *const settings[] = { "addresses", "sctp_stack", "sctp_udp", "sctp_profile" };
	const struct config_device *dev = &b->cfg->devices[i];
	const config_setting_t *src = b->device_src[i];

	if (dev->type != CONFIG_DEVICE_SIW)
		return;
	for (unsigned k = 0; k < sizeof(settings) / sizeof(settings[0]) && dev->siw.transport != SIW_SCTP; k++)
		if (config_is_chosen(CONFIG_AT_SIW, src, settings[k], dev))
			config_warning(b, config_line(src, settings[k]),
			    "devices.%s has no effect: devices.transport is tcp", settings[k]);
	if (dev->siw.transport != SIW_SCTP)
		return;
	check_addresses(b, i);
	if (dev->siw.sctp_stack == SIW_STACK_USER && !config_has_user_sctp())
		config_error(b, config_line(src, "sctp_stack"),
		    "devices.sctp_stack \"user\" needs libusrsctp, which this smcrd was built without");
	if (b->cfg->workers == 1)
		return;
	/* libusrsctp has one stack per process, for one thread; a port belongs to one worker. */
	if (dev->siw.sctp_stack != SIW_STACK_KERNEL)
		config_error(b, config_line(src, "transport"),
		    "devices.transport \"sctp\" needs workers = 1, or devices.sctp_stack \"kernel\"");
	else if (dev->siw.sctp_udp != 0)
		config_error(b, config_line(src, "sctp_udp"), "devices.sctp_udp needs workers = 1");
}

static const uint16_t *
mpa_ports(const struct config_device *dev)
{
	return dev->type == CONFIG_DEVICE_SIW ? &dev->siw.port_min : &dev->verbs.mpa_port_min;
}

enum place {
	PLACE_OTHER,
	PLACE_MAYBE,
	PLACE_SAME,
};

/* Are two devices on one address? The addresses of interfaces and cards are unknown here. */
static enum place
same_place(const struct config_device *a, const struct config_device *b)
{
	if (a->addr.ss_family != 0 && b->addr.ss_family != 0)
		return addr_same_host(&a->addr, &b->addr) ? PLACE_SAME : PLACE_OTHER;
	if (a->interface[0] != '\0' && b->interface[0] != '\0' && strcmp(a->interface, CONFIG_ALL_INTERFACES) != 0 &&
	    strcmp(b->interface, CONFIG_ALL_INTERFACES) != 0)
		return strcmp(a->interface, b->interface) == 0 ? PLACE_SAME : PLACE_OTHER;
	return PLACE_MAYBE;
}

static bool
is_over_sctp(const struct config_device *dev)
{
	return dev->type == CONFIG_DEVICE_SIW && dev->siw.transport == SIW_SCTP;
}

/* An iWARP card accepts connections to its MPA port before the kernel's TCP. Soft iWARP on the same port of that
 * address would get none. Ports of SCTP and UDP are separate. */
static void
check_mpa_ports(struct config_build *b, unsigned i, unsigned j)
{
	const struct config_device *dev = &b->cfg->devices[i], *other = &b->cfg->devices[j];
	const uint16_t *mine = mpa_ports(dev), *others = mpa_ports(other);
	unsigned line = config_line(b->device_src[i], "mpa_ports");
	char where[CONFIG_THERE_MAX];
	enum place place = same_place(dev, other);

	if (place == PLACE_OTHER || is_over_sctp(dev) || is_over_sctp(other))
		return;
	/* 0: any free port, chosen by the kernel. */
	if (mine[0] == 0 || others[0] == 0 || mine[0] > others[1] || others[0] > mine[1])
		return;
	config_there(b, b->device_src[i], b->device_src[j], "mpa_ports", where);
	if (place == PLACE_SAME)
		config_error(b, line,
		    "devices.mpa_ports overlaps that of %s, a device of another type on the same address", where);
	else
		config_warning(b, line,
		    "devices.mpa_ports overlaps that of %s: if an iWARP card and soft iWARP have the same address, "
		    "soft iWARP cannot be reached there",
		    where);
}

/* A setting that two devices cannot share. */
static void
used_twice(struct config_build *b, unsigned i, unsigned j, const char *key, const char *text)
{
	const config_setting_t *src = b->device_src[i];
	char where[CONFIG_THERE_MAX];

	config_error(b, config_line(src, key), "devices.%s \"%s\" is already used in %s", key, text,
	    config_there(b, src, b->device_src[j], key, where));
}

/* Of the same type, for the same place. */
static void
check_device_twice(struct config_build *b, unsigned i, unsigned j)
{
	const struct config_device *dev = &b->cfg->devices[i], *other = &b->cfg->devices[j];
	char addr[ADDR_STR_MAX];

	if (dev->name[0] != '\0' && strcmp(dev->name, other->name) == 0)
		used_twice(b, i, j, "name", dev->name);
	if (dev->type != other->type) {
		check_mpa_ports(b, i, j);
		return;
	}
	/* Ports of TCP, SCTP and UDP are separate. */
	if (dev->type == CONFIG_DEVICE_SIW &&
	    (dev->siw.transport != other->siw.transport || dev->siw.sctp_stack != other->siw.sctp_stack))
		return;
	if (dev->interface[0] != '\0' && strcmp(dev->interface, other->interface) == 0)
		used_twice(b, i, j, "interface", dev->interface);
	/* Two entries may use a card, each another port. */
	if (dev->card[0] != '\0' && strcmp(dev->card, other->card) == 0 &&
	    (dev->port == other->port || dev->port == 0 || other->port == 0))
		used_twice(b, i, j, "device", dev->card);
	if (dev->addr.ss_family != 0 && addr_same_host(&dev->addr, &other->addr))
		used_twice(b, i, j, "address", addr_format(&dev->addr, addr, sizeof(addr)));
}

static void
check_smcr(struct config_build *b, const config_setting_t *src)
{
	const config_setting_t *ueids = config_member(src, "ueids");
	const struct smcr_config *smcr = &b->cfg->smcr;

	/* A list whose entries all failed has its own errors. */
	if (smcr->smc_version == 2 && (ueids == NULL || config_setting_length(ueids) == 0))
		config_error(b, config_line(src, "smc_version"), "smcr.smc_version 2 needs an entry in smcr.ueids");
	if (smcr->smc_version == 1 && smcr->ueid_cnt > 0)
		config_warning(b, config_line(src, "ueids"), "smcr.ueids has no effect: smcr.smc_version is 1");
	if (smcr->holdoff_max_ms != 0 && smcr->holdoff_ms > smcr->holdoff_max_ms)
		config_error(b, config_line(src, "hold_off"), "smcr.hold_off is larger than smcr.hold_off_max");
	if (smcr->add_link_retry_max_ms != 0 && smcr->add_link_retry_ms > smcr->add_link_retry_max_ms)
		config_error(b, config_line(src, "add_link_retry"),
		    "smcr.add_link_retry is larger than smcr.add_link_retry_max");
}

/* Metrics need an address of their own. */
static void
check_metrics(struct config_build *b, const config_setting_t *src)
{
	const struct sockaddr_storage *at = &b->cfg->metrics.listen;
	unsigned line = config_line(src, "listen");

	check_path(b, "metrics", line, at);
	for (unsigned i = 0; i < b->cfg->service_cnt; i++)
		if (addr_overlaps(at, &b->cfg->services[i].listen))
			config_error(b, line, "metrics.listen overlaps listen of \"%s\"", b->cfg->services[i].name);
	if (at->ss_family == AF_UNIX && b->cfg->metrics.allow_cnt > 0)
		config_error(
		    b, config_line(src, "allow"), "metrics.allow is for TCP; metrics.mode is that of a UNIX socket");
	if (at->ss_family != 0 || config_member(src, "listen") != NULL)
		return;
	for (const struct config_key *k = config_keys; k->name != NULL; k++)
		if ((k->where & CONFIG_AT_METRICS) != 0 && config_is_chosen(CONFIG_AT_METRICS, src, k->name, b->cfg))
			config_warning(b, config_line(src, ""), "metrics has no effect without metrics.listen");
}

void
config_check(struct config_build *b)
{
	const struct config *cfg = b->cfg;
	const config_setting_t *root = b->files[0].root;

	for (unsigned i = 0; i < cfg->service_cnt; i++)
		check_service(b, i);
	for (unsigned i = 0; i < cfg->device_cnt; i++) {
		check_device_place(b, i);
		check_sctp(b, i);
		for (unsigned j = 0; j < i; j++)
			check_device_twice(b, i, j);
	}
	config_check_tls(b);
	check_smcr(b, config_member(root, "smcr"));
	if (cfg->control_readonly[0] != '\0' && strcmp(cfg->control_readonly, cfg->control_path) == 0)
		config_error(b, config_line(config_member(root, "control"), "readonly"),
		    "control.readonly is control.path: they are two sockets");
	check_metrics(b, config_member(root, "metrics"));
}
