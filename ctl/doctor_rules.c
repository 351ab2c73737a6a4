/* What the answers of the daemon say about its health; see doctor.h. */
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include "base/addr.h"
#include "control/files.h"
#include "ctl/doctor.h"
#include "ctl/show.h"
#include "ctl/text.h"

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))
#define TEXT_MAX 640
#define SERVICES_MAX 120
#define NEARLY(now, most) ((most) > 0 && (now)*10 >= (most)*9)
/* From three quarters on send buffers are small (smcr/data/window.c); of RMB elements that are, elems_shrunk is told. */
#define SHORT_OF_SEND(now, most) ((most) > 0 && (now) >= (most) / 4 * 3)
#define PACKET_MAX 65535 /* of IP; loopback's MTU is more */

static const char *const level_words[] = {
	[DOCTOR_OK] = "ok",
	[DOCTOR_WARNING] = "warning",
	[DOCTOR_PROBLEM] = "problem",
};

const char *
doctor_level_str(enum doctor_level level)
{
	return level_words[level];
}

/* One finding; of an area without any that is worse than ok, end_area() says what is well. */
struct doctor {
	json_t *findings;
	const char *area;
	enum doctor_level worst; /* of this area */
};

static void
begin_area(struct doctor *d, const char *area)
{
	d->area = area;
	d->worst = DOCTOR_OK;
}

/* advice: what to do, "" of what is well. */
static void __attribute__((format(printf, 4, 5)))
find(struct doctor *d, enum doctor_level level, const char *advice, const char *fmt, ...)
{
	char what[TEXT_MAX];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(what, sizeof(what), fmt, ap);
	va_end(ap);
	if (level > d->worst)
		d->worst = level;
	json_array_append_new(d->findings,
	    json_pack("{s:s, s:s, s:s+, s:s}", "level", level_words[level], "area", d->area, "what", what, "", "advice",
	        advice));
}

static void __attribute__((format(printf, 2, 3))) end_area(struct doctor *d, const char *fmt, ...)
{
	char what[TEXT_MAX];
	va_list ap;

	if (d->worst > DOCTOR_OK)
		return;
	va_start(ap, fmt);
	(void)vsnprintf(what, sizeof(what), fmt, ap);
	va_end(ap);
	find(d, DOCTOR_OK, "", "%s", what);
}

static const char *
string_at(const json_t *array, size_t i)
{
	const char *s = json_string_value(json_array_get(array, i));

	return s != NULL ? s : "";
}

static int64_t
counter(const struct doctor_facts *f, const char *name)
{
	return get_int(json_object_get(f->stats, "counters"), name);
}

/* -- areas -- */

static void
look_at_daemon(struct doctor *d, const struct doctor_facts *f)
{
	const json_t *confined = json_object_get(f->status, "confinement"),
	             *option = json_object_get(f->status, "tcp_option");
	char up[HUMAN_MAX];

	begin_area(d, "daemon");
	if (get_bool(f->status, "draining"))
		find(d, DOCTOR_WARNING, "wait for its end, and start it again",
		    "it drains: new connections are refused");
	if (strcmp(get_string(confined, "mode"), "off") == 0)
		find(d, DOCTOR_WARNING, "set confine = \"auto\", and restart it", "it is not confined");
	if (get_int(option, "services") > 0 && !get_bool(option, "usable"))
		find(d, DOCTOR_WARNING,
		    "give it CAP_BPF and CAP_NET_ADMIN at start, or set peer = \"smcrd\" where an smcrd is",
		    "SMC-R's TCP option cannot be used: %s", get_string(option, "text"));
	end_area(d, "smcrd %s runs for %s", get_string(f->status, "version"),
	    human_duration(up, get_int(f->status, "uptime_ms")));
}

/* Open files that all services at their max_connections take. */
static int64_t
most_files(const struct doctor_facts *f)
{
	const json_t *services = json_object_get(f->status, "services");
	size_t workers = json_array_size(json_object_get(f->status, "workers"));
	struct files files = {
		.workers = workers > 0 ? workers : 1,
		.services = json_array_size(services),
		.devices = json_array_size(json_object_get(f->devices, "devices")),
	};

	for (size_t i = 0; i < json_array_size(services); i++)
		files.connections += (uint64_t)get_int(json_array_get(services, i), "connections_max");
	return (int64_t)files_needed(&files);
}

static void
look_at_limits(struct doctor *d, const struct doctor_facts *f)
{
	const json_t *devices = json_object_get(f->devices, "devices");
	int64_t files = get_int(f->status, "open_files_max"), locked = get_int(f->status, "locked_bytes_max");
	int64_t needed = most_files(f);
	bool cards = false;

	begin_area(d, "limits");
	for (size_t i = 0; i < json_array_size(devices); i++)
		cards = cards || get_string(json_array_get(devices, i), "card")[0] != '\0';
	if (counter(f, "accept_pauses") > 0)
		find(d, DOCTOR_PROBLEM, "raise LimitNOFILE of the unit (ulimit -n)",
		    "accepting has paused %" PRId64 " time%s, as there were no descriptors left of %" PRId64,
		    counter(f, "accept_pauses"), plural(counter(f, "accept_pauses")), files);
	else if (files > 0 && files_are_few((uint64_t)files, (uint64_t)needed))
		find(d, DOCTOR_WARNING, "raise LimitNOFILE of the unit (ulimit -n), or lower max_connections",
		    "%" PRId64 " open files are allowed, and max_connections of all services may need about %" PRId64,
		    files, needed);
	if (cards && locked >= 0)
		find(d, DOCTOR_WARNING, "set LimitMEMLOCK=infinity in the unit (ulimit -l unlimited)",
		    "locked memory is limited to %" PRId64 " bytes, and RDMA cards need it for all buffers", locked);
	if (files > 0 && files < needed)
		end_area(d,
		    "%" PRId64
		    " open files are ample; all services at their max_connections at once would need about %" PRId64,
		    files, needed);
	else
		end_area(d, "open files and locked memory are enough");
}

/* Counters of what was refused because something was full. */
static const struct {
	const char *counter, *what, *advice;
} caps[] = {
	{ "refused_conns_max", "connections refused: the engine's table is full", "raise smcr.max_connections" },
	{ "refused_rmb_memory", "receive buffers refused: memory", "raise rmb_memory_max or group_memory_max" },
	{ "refused_send_memory", "send buffers refused: memory", "raise send_memory_max or group_memory_max" },
	{ "refused_memory", "connections refused: out of memory", "give the machine, or the unit, more memory" },
	{ "refused_qp", "link groups declined: no queue pair", "raise max_qp of the device" },
	{ "refused_groups_addr", "link groups declined: too many of one address", "raise smcr.groups_per_address" },
	{ "refused_peers_max", "first contacts declined: with too many peers at once",
	    "find out who connects so often" },
	{ "refused_rmbs_max", "receive buffers refused: too many in one link group",
	    "raise smcr.rmb_elements, or rmb_element of services" },
	{ "refused_quarantine", "connections refused: elements in quarantine",
	    "look for a peer that dies often; smcr.quarantine_max" },
	{ "elems_shrunk", "connections got a smaller buffer: memory was short", "raise rmb_memory_max" },
};

static void
look_at_memory(struct doctor *d, const struct doctor_facts *f)
{
	int64_t rmbs = get_int(f->status, "rmb_bytes"), rmbs_max = get_int(f->status, "rmb_bytes_max");
	int64_t send = get_int(f->status, "sndbuf_bytes"), send_max = get_int(f->status, "sndbuf_bytes_max");
	char a[HUMAN_MAX], b[HUMAN_MAX], send_text[TEXT_MAX] = "";

	begin_area(d, "memory");
	if (NEARLY(rmbs, rmbs_max))
		find(d, DOCTOR_WARNING, "raise rmb_memory_max", "receive buffers take %s of at most %s",
		    human_bytes(a, (uint64_t)rmbs), human_bytes(b, (uint64_t)rmbs_max));
	if (SHORT_OF_SEND(send, send_max))
		find(d, DOCTOR_WARNING, "raise send_memory_max",
		    "send buffers take %s of at most %s: further ones are small", human_bytes(a, (uint64_t)send),
		    human_bytes(b, (uint64_t)send_max));
	for (size_t i = 0; i < ARRAY_LEN(caps); i++)
		if (counter(f, caps[i].counter) > 0)
			find(d, DOCTOR_WARNING, caps[i].advice, "%" PRId64 " %s", counter(f, caps[i].counter),
			    caps[i].what);
	if (send_max > 0) /* an older daemon does not tell */
		snprintf(send_text, sizeof(send_text), ", send buffers %s of at most %s",
		    human_bytes(a, (uint64_t)send), human_bytes(b, (uint64_t)send_max));
	end_area(d, "receive buffers take %s of at most %s%s, and nothing was refused for want of room",
	    human_bytes(a, (uint64_t)rmbs), human_bytes(b, (uint64_t)rmbs_max), send_text);
}

/* Counters of a device that are 0 when all is well. */
static const struct {
	const char *counter, *what, *advice;
} troubles[] = {
	{ "mpa_bad", "strangers or broken peers on its MPA port",
	    "see the log for who it was last; set mpa_clients, or a firewall rule" },
	{ "mpa_refused_token", "MPA connections without the token of a link group", "see the log for who it was last" },
	{ "mpa_refused_address", "MPA connections from addresses that may not",
	    "see the log for who it was last; set mpa_clients if that is a peer" },
	{ "crc_errors", "frames with a wrong checksum", "look for a broken network card, cable or middlebox" },
	{ "accept_pauses", "pauses of accepting", "raise LimitNOFILE" },
	{ "retry_exc", "links lost, as the peer did not answer", "look at the path: cable, switch, PFC or ECN" },
	{ "rnr_retry_exc", "links lost, as the peer had no receive posted", "raise rq_depth" },
	{ "remote_access_errs", "accesses that the peer refused", "report it: one of both ends breaks the protocol" },
	{ "no_memory", "times that memory was out", "give the machine, or the unit, more memory" },
};

static void
look_at_device(struct doctor *d, const json_t *dev)
{
	const char *name = get_string(dev, "name"), *interface = get_string(dev, "interface");
	const json_t *stats = json_object_get(dev, "stats");
	bool iwarp = strncmp(get_string(dev, "transport"), "iwarp", 5) == 0, card = get_string(dev, "card")[0] != '\0';

	if (strcmp(get_string(dev, "port"), "up") != 0)
		find(d, DOCTOR_WARNING, "ip link show says why: cable, switch, or set it up",
		    "the port of %s%s%s is down", name, interface[0] != '\0' ? " on " : "", interface);
	if (iwarp && !card && get_int(dev, "mpa_port") == 0)
		find(d, DOCTOR_PROBLEM, "see the log; set another mpa_ports range",
		    "%s does not listen for MPA connections", name);
	for (size_t i = 0; i < ARRAY_LEN(troubles); i++)
		if (get_int(stats, troubles[i].counter) > 0)
			find(d, DOCTOR_WARNING, troubles[i].advice, "%s: %" PRId64 " %s", name,
			    get_int(stats, troubles[i].counter), troubles[i].what);
}

static void
look_at_devices(struct doctor *d, const struct doctor_facts *f)
{
	const json_t *devices = json_object_get(f->devices, "devices");
	size_t up = 0;

	begin_area(d, "devices");
	for (size_t i = 0; i < json_array_size(devices); i++) {
		look_at_device(d, json_array_get(devices, i));
		up += strcmp(get_string(json_array_get(devices, i), "port"), "up") == 0;
	}
	if (json_array_size(devices) == 0)
		find(d, DOCTOR_PROBLEM, "smcrd -t shows what is configured and found",
		    "there is no RDMA device: nothing goes by RDMA");
	else if (up == 0)
		find(d, DOCTOR_PROBLEM, "set an interface up",
		    "the ports of all devices are down: nothing goes by RDMA");
	end_area(d, "%zu, all with their port up", json_array_size(devices));
}

/* A path that takes less than the interface at this end. */
static void
look_at_path(struct doctor *d, const json_t *devices, const json_t *link, int64_t mtu, const char *to)
{
	for (size_t i = 0; i < json_array_size(devices); i++) {
		const json_t *dev = json_array_get(devices, i);
		int64_t own = get_int(dev, "interface_mtu");

		if (own > PACKET_MAX)
			own = PACKET_MAX;

		if (strcmp(get_string(dev, "name"), get_string(link, "device")) != 0 || mtu <= 0 || own <= mtu)
			continue;
		find(d, DOCTOR_WARNING, "set the same MTU on the way, or a smaller one here (ip link set mtu)",
		    "link %" PRId64 "/%" PRId64 ": the path to %s takes packets of %" PRId64
		    " bytes, %s sends up to %" PRId64,
		    get_int(link, "group"), get_int(link, "number"), to, mtu, get_string(dev, "interface"), own);
		return;
	}
}

/* Those of devices. An address that is no interface's has none that is known. */
static void
tell_mtus(struct doctor *d, const json_t *devices)
{
	int64_t least = 0, most = 0;
	size_t cnt = json_array_size(devices), known = 0;
	char unknown[HUMAN_MAX * 2] = "", range[HUMAN_MAX * 2] = "";

	for (size_t i = 0; i < cnt; i++) {
		int64_t mtu = get_int(json_array_get(devices, i), "interface_mtu");

		if (mtu <= 0)
			continue;
		least = known == 0 || mtu < least ? mtu : least;
		most = mtu > most ? mtu : most;
		known++;
	}
	if (known == 0) {
		end_area(d, "not known of any device's interface");
		return;
	}
	if (known < cnt)
		snprintf(unknown, sizeof(unknown), ", not known of %zu device%s", cnt - known,
		    plural((int64_t)(cnt - known)));
	if (least < most)
		snprintf(range, sizeof(range), "%" PRId64 " to ", least);
	end_area(d, "%s%" PRId64 " bytes on the interfaces of devices%s", range, most, unknown);
}

static void
look_at_mtu(struct doctor *d, const struct doctor_facts *f)
{
	const json_t *links = json_object_get(f->links, "links"), *devices = json_object_get(f->devices, "devices");

	begin_area(d, "mtu");
	for (size_t i = 0; i < json_array_size(links); i++) {
		const json_t *link = json_array_get(links, i), *paths = json_object_get(link, "paths");

		for (size_t k = 0; k < json_array_size(paths); k++)
			look_at_path(d, devices, link, get_int(json_array_get(paths, k), "mtu"),
			    get_string(json_array_get(paths, k), "address"));
	}
	tell_mtus(d, devices);
}

static void
look_at_links(struct doctor *d, const struct doctor_facts *f)
{
	const json_t *groups = json_object_get(f->groups, "groups");

	begin_area(d, "links");
	for (size_t i = 0; i < json_array_size(groups); i++) {
		const json_t *g = json_array_get(groups, i);

		if (get_int(g, "links") == 0)
			find(d, DOCTOR_WARNING, "see smcrctl groups", "link group %" PRId64 " with %s has no link: %s",
			    get_int(g, "id"), get_string(g, "peer"), get_string(g, "state"));
		else if (strncmp(get_string(g, "type"), "asymmetric", 10) == 0)
			find(d, DOCTOR_WARNING, "a second interface at the end with one would let an interface fail",
			    "link group %" PRId64 " with %s is %s", get_int(g, "id"), get_string(g, "peer"),
			    get_string(g, "type"));
	}
	if (json_array_size(groups) == 0)
		end_area(d, "no link group so far");
	else
		end_area(d, "%zu link group%s, %s", json_array_size(groups), plural((int64_t)json_array_size(groups)),
		    json_array_size(groups) == 1 ? "with a link" : "each with a link");
}

/* -- services -- */

static void
look_at_refusals(struct doctor *d, const json_t *s)
{
	static const struct {
		const char *counter, *what, *advice, *local; /* local: of a service on a UNIX socket, if it differs */
	} refusals[] = {
		{ "refused_allow", "refused: not on the allow list",
		    "the log has their addresses; add them to allow if they may",
		    "the log has their users; add them to allow_users if they may" },
		{ "refused_max", "refused: too many at once", "raise max_connections", NULL },
		{ "refused_per_peer", "refused: too many of one source", "raise max_connections_per_peer", NULL },
		{ "refused_connect", "refused: the far end was not reached, or broke off",
		    "see smcrctl service, and the log", NULL },
		{ "refused_fallback", "refused: no SMC-R, and fallback = \"refuse\"", "smcrctl stats has the reasons",
		    NULL },
		{ "fallbacks", "gone to TCP", "smcrctl stats has the reasons", NULL },
	};
	const char *name = get_string(s, "name");
	bool local = strncmp(get_string(s, "listen"), "unix:", 5) == 0;
	int64_t now = get_int(s, "connections"), most = get_int(s, "connections_max");

	for (size_t i = 0; i < ARRAY_LEN(refusals); i++) {
		int64_t cnt = get_int(s, refusals[i].counter);

		if (cnt > 0)
			find(d, DOCTOR_WARNING,
			    local && refusals[i].local != NULL ? refusals[i].local : refusals[i].advice,
			    "%s: %" PRId64 " connection%s %s, since the start", name, cnt, plural(cnt),
			    refusals[i].what);
	}
	if (NEARLY(now, most))
		find(d, DOCTOR_WARNING, "raise max_connections", "%s: %" PRId64 " connection%s of at most %" PRId64,
		    name, now, plural(now), most);
}

/* The value of a setting; NULL when the service has none of this name. */
static const char *
setting(const json_t *s, const char *name)
{
	const json_t *settings = json_object_get(s, "settings");

	for (size_t i = 0; i < json_array_size(settings); i++)
		if (strcmp(get_string(json_array_get(settings, i), "name"), name) == 0)
			return get_string(json_array_get(settings, i), "value");
	return NULL;
}

/* Who may connect: what smcrd -t warns of, too, and what an operator has ordered and may have forgotten. */
static void
look_at_access(struct doctor *d, const json_t *s)
{
	const char *name = get_string(s, "name"), *listen = get_string(s, "listen"), *allow = setting(s, "allow");
	struct sockaddr_storage at;

	if (allow != NULL && allow[0] == '\0' && addr_parse_port(listen, &at) == 0 && addr_is_exposed(&at))
		find(d, DOCTOR_WARNING, "set allow; [ \"::/0\" ] if everybody may",
		    "%s: it has no allow list: whoever reaches %s can connect to %s", name, listen,
		    get_string(s, "to"));
	if (get_bool(s, "disabled"))
		find(d, DOCTOR_WARNING, "smcrctl enable NAME, when it may have connections again",
		    "%s: it is disabled: new connections are refused", name);
}

/* A name that is not found leaves the service without an address, or with fewer. True: it is what a client fails for. */
static bool
look_at_names(struct doctor *d, const json_t *s)
{
	const json_t *targets = json_object_get(s, "targets");
	bool waits = json_array_size(json_object_get(s, "addresses")) == 0, found = false;

	for (size_t i = 0; i < json_array_size(targets); i++) {
		const json_t *t = json_array_get(targets, i);

		if (get_string(t, "name_error")[0] == '\0')
			continue;
		find(d, waits ? DOCTOR_PROBLEM : DOCTOR_WARNING,
		    "look at the name in `to`, and at DNS on this host (resolv.conf, getent hosts, dig)",
		    "%s: the name of %s is not found: %s%s", get_string(s, "name"), get_string(t, "target"),
		    get_string(t, "name_error"), waits ? "; the service waits for it" : "");
		found = true;
	}
	return found && waits;
}

static void
look_at_services(struct doctor *d, const struct doctor_facts *f)
{
	char time[HUMAN_MAX];

	begin_area(d, "services");
	for (size_t i = 0; i < json_array_size(f->services); i++) {
		const json_t *s = json_array_get(f->services, i), *outage = json_object_get(s, "outage");
		const char *name = get_string(s, "name");

		look_at_access(d, s);
		look_at_refusals(d, s);
		bool waits = look_at_names(d, s);
		if (json_is_false(json_object_get(s, "listens_here")))
			find(d, DOCTOR_WARNING, "nothing, if another host has it now; else add it (ip addr add)",
			    "%s: no interface has its address, %s", name, get_string(s, "listen"));
		if (get_int(s, "held_off_ms") > 0)
			find(d, DOCTOR_WARNING, "see what the check says",
			    "%s: the peer was held off after failures, for another %s", name,
			    human_duration(time, get_int(s, "held_off_ms")));
		if (!waits && get_string(outage, "text")[0] != '\0')
			find(d, DOCTOR_PROBLEM, "look at the far end", "%s: %s %s", name, get_string(s, "to"),
			    get_string(outage, "text"));
	}
	if (json_array_size(f->services) == 0)
		find(d, DOCTOR_WARNING, "add an ingress or egress", "there are none: the daemon has nothing to do");
	end_area(d, "%zu, and no connection was refused or has gone to TCP", json_array_size(f->services));
}

static void
look_at_reasons(struct doctor *d, const struct doctor_facts *f)
{
	static const char *const whose[][2] = { { "fallback_reasons_local", "ours" },
		{ "fallback_reasons_peer", "the peers'" } };

	begin_area(d, "reasons");
	for (size_t w = 0; w < ARRAY_LEN(whose); w++) {
		const json_t *list = json_object_get(f->stats, whose[w][0]);

		for (size_t i = 0; i < json_array_size(list); i++)
			find(d, DOCTOR_WARNING, "smcrctl connections --tcp shows who",
			    "against SMC-R, %s: %s (%s), %" PRId64 " time%s", whose[w][1],
			    get_string(json_array_get(list, i), "text"), get_string(json_array_get(list, i), "code"),
			    get_int(json_array_get(list, i), "count"),
			    plural(get_int(json_array_get(list, i), "count")));
	}
	end_area(d, "none against SMC-R so far");
}

/* -- checks -- */

static const char *
advice_for(const char *finding)
{
	static const struct {
		const char *finding, *advice;
	} advices[] = {
		{ "unreachable", "start smcrd there, and let the port pass firewalls" },
		{ "no-option",
		    "nothing, if it is a plain server; else let its kernel use SMC, or set peer = \"smcrd\"" },
		{ "plain-server", "let `to` be the listen address of an egress there" },
		{ "closed", "look at allow, max_connections and the log there" },
		{ "silent", "look at what listens there: `to` should be the listen address of an egress" },
		{ "declined", "look at smcrctl devices and stats there" },
		{ "declined-here", "look at smcrctl devices here" },
		{ "link-failed",
		    "let the peer's MPA port pass firewalls, from here to there; see mpa_peers, and mpa_clients there" },
		{ "timeout", "look at the path, and at the log there" },
	};

	for (size_t i = 0; i < ARRAY_LEN(advices); i++)
		if (strcmp(advices[i].finding, finding) == 0)
			return advices[i].advice;
	return "try again";
}

/* Has a check that went well this service among those of its address? */
static bool
works_for(const json_t *checks, const char *service)
{
	for (size_t i = 0; i < json_array_size(checks); i++) {
		const json_t *c = json_array_get(checks, i), *services = json_object_get(c, "services");

		for (size_t k = 0; get_bool(c, "possible") && k < json_array_size(services); k++)
			if (strcmp(string_at(services, k), service) == 0)
				return true;
	}
	return false;
}

/* Did another address do, for each service with this one? A client takes that. */
static bool
others_do(const json_t *checks, const json_t *services)
{
	for (size_t k = 0; k < json_array_size(services); k++)
		if (!works_for(checks, string_at(services, k)))
			return false;
	return json_array_size(services) > 0;
}

/* The services of one address, with commas between. */
static const char *
services_str(const json_t *services, char buf[SERVICES_MAX])
{
	size_t len = 0;

	buf[0] = '\0';
	for (size_t k = 0; k < json_array_size(services) && len < SERVICES_MAX - 1; k++)
		len += (size_t)snprintf(
		    buf + len, SERVICES_MAX - len, "%s%s", k > 0 ? ", " : "", string_at(services, k));
	if (len >= SERVICES_MAX)
		strcpy(buf + SERVICES_MAX - 4, "...");
	return buf;
}

static int64_t
round_trip_us(const json_t *check)
{
	const json_t *steps = json_object_get(check, "steps");

	for (size_t i = 0; i < json_array_size(steps); i++)
		if (strcmp(get_string(json_array_get(steps, i), "step"), "round-trip") == 0)
			return get_int(json_array_get(steps, i), "took_us");
	return 0;
}

static void
look_at_checks(struct doctor *d, const struct doctor_facts *f)
{
	char time[HUMAN_MAX], names[SERVICES_MAX];

	begin_area(d, "check");
	for (size_t i = 0; i < json_array_size(f->checks); i++) {
		const json_t *c = json_array_get(f->checks, i), *services = json_object_get(c, "services");
		const char *finding = get_string(c, "finding"), *service = services_str(services, names);
		/* Where plain ends are expected, too, they are no problem. */
		bool plain = strcmp(finding, "no-option") == 0;

		if (get_bool(c, "possible"))
			find(d, DOCTOR_OK, "", "%s: SMC-R to %s works, round trip %s", service, get_string(c, "peer"),
			    human_us(time, round_trip_us(c)));
		else
			find(d, plain || others_do(f->checks, services) ? DOCTOR_WARNING : DOCTOR_PROBLEM,
			    advice_for(finding), "%s: %s", service, get_string(c, "text"));
	}
	if (f->left_out > 0)
		find(d, DOCTOR_WARNING, "smcrctl check HOST:PORT looks at one",
		    "%" PRId64 " address%s not checked: too many", f->left_out, f->left_out == 1 ? " was" : "es were");
	if (f->read_only)
		find(d, DOCTOR_WARNING, "ask on the control socket itself (control.path, smcrctl's default)",
		    "no peer was checked: a check costs something, and this socket takes questions alone");
	else if (json_array_size(f->checks) == 0)
		find(d, DOCTOR_OK, "", "no ingress service whose peer could be checked");
}

json_t *
doctor_findings(const struct doctor_facts *f)
{
	struct doctor d = { .findings = json_array() };

	look_at_daemon(&d, f);
	look_at_limits(&d, f);
	look_at_memory(&d, f);
	look_at_devices(&d, f);
	look_at_mtu(&d, f);
	look_at_links(&d, f);
	look_at_services(&d, f);
	look_at_reasons(&d, f);
	look_at_checks(&d, f);
	return d.findings;
}

enum doctor_level
doctor_verdict(const json_t *findings)
{
	enum doctor_level worst = DOCTOR_OK;

	for (size_t i = 0; i < json_array_size(findings); i++)
		for (enum doctor_level l = DOCTOR_WARNING; l <= DOCTOR_PROBLEM; l++)
			if (l > worst && strcmp(get_string(json_array_get(findings, i), "level"), level_words[l]) == 0)
				worst = l;
	return worst;
}
