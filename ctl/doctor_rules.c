/* What the answers of the daemon say about its health; see doctor.h. */
#include <stdlib.h>
#include <string.h>

#include "base/addr.h"
#include "control/files.h"
#include "ctl/delta.h"
#include "ctl/doctor.h"
#include "ctl/doctor_parts.h"
#include "ctl/show.h"
#include "ctl/template.h"

#define NEARLY(now, most) ((most) > 0 && (now)*10 >= (most)*9)
/* From three quarters on send buffers are small (smcr/data/window.c); of RMB elements that are, elems_shrunk is told. */
#define SHORT_OF_SEND(now, most) ((most) > 0 && (now) >= (most) / 4 * 3)
#define PACKET_MAX 65535 /* of IP; loopback's MTU is more */

const char *const doctor_level_words[] = {
	[DOCTOR_OK] = "ok", [DOCTOR_NOTE] = "note", [DOCTOR_WARNING] = "warning", [DOCTOR_PROBLEM] = "problem"
};

/* A finding, when there is something to say of an object: the text of a template (template.h), and what to do. */
struct rule {
	enum doctor_level level;
	const char *what, *advice;
};

void
doctor_begin_area(struct doctor *d, const char *area)
{
	d->area = area;
	d->worst = DOCTOR_OK;
}

/* Does the template say anything of o? */
static bool
says(const json_t *o, const char *template)
{
	char *what = template_str(o, template);
	bool any = what != NULL && what[0] != '\0';

	free(what);
	return any;
}

void
doctor_find(struct doctor *d, const json_t *o, enum doctor_level level, const char *template, const char *advice)
{
	const json_t *rises = json_object_get(o, "rises");
	char *what = template_str(o, template);

	if (what != NULL && what[0] != '\0') {
		if (rises != NULL && level > DOCTOR_NOTE && !says(rises, template))
			level = DOCTOR_NOTE;
		if (level > d->worst)
			d->worst = level;
		if (level > d->verdict && level != DOCTOR_NOTE)
			d->verdict = level;
		json_array_append_new(d->findings,
		    json_pack("{s:s, s:s, s:s, s:s}", "level", doctor_level_words[level], "area", d->area, "what", what,
		        "advice", advice));
	}
	free(what);
}

#define FIND(d, o, rules) find_all(d, o, rules, ARRAY_LEN(rules))
#define FIND_EACH(d, list, rules) find_each(d, list, rules, ARRAY_LEN(rules))

static void
find_all(struct doctor *d, const json_t *o, const struct rule *rules, size_t cnt)
{
	for (size_t i = 0; i < cnt; i++)
		doctor_find(d, o, rules[i].level, rules[i].what, rules[i].advice);
}

static void
find_each(struct doctor *d, const json_t *list, const struct rule *rules, size_t cnt)
{
	for (size_t i = 0; i < json_array_size(list); i++)
		find_all(d, json_array_get(list, i), rules, cnt);
}

void
doctor_end_area(struct doctor *d, const json_t *o, const char *template)
{
	if (d->worst == DOCTOR_OK)
		doctor_find(d, o, DOCTOR_OK, template, "");
}

/* -- the daemon: of its status, with the counters of stats -- */

static const struct rule daemon_rules[] = {
	{ DOCTOR_PROBLEM, "[reload_error?{reload_error}]", "correct it, and reload" },
	{ DOCTOR_WARNING, "[tls_expiry?{tls_expiry}]", "put a new certificate and key in the place of the old ones" },
	{ DOCTOR_PROBLEM, "[tls_error?changed files of tls are not in force: {tls_error}]", "correct them" },
	{ DOCTOR_WARNING, "[draining?it drains: new connections are refused]",
	    "smcrctl undrain, unless that is meant" },
	{ DOCTOR_WARNING, "[confinement.mode=off?it is not confined]",
	    "set confine = \"auto\", and systemctl reload smcrd" },
	{ DOCTOR_WARNING,
	    "[tcp_option.services?[tcp_option.usable?|SMC-R's TCP option cannot be used: {tcp_option.text}]]",
	    "give it CAP_BPF and CAP_NET_ADMIN at start, or set peer = \"smcrd\" where an smcrd is" },
};

static const struct rule limit_rules[] = {
	{ DOCTOR_PROBLEM,
	    "[counters.accept_pauses?accepting has paused {counters.accept_pauses:n} time{counters.accept_pauses:s}, as "
	    "there were no descriptors left of {open_files_max:n}]",
	    "raise LimitNOFILE of the unit (ulimit -n)" },
	{ DOCTOR_WARNING,
	    "[counters.accept_pauses?|files_are_few?{open_files_max:n} open files are allowed, and max_connections of all "
	    "services may need about {files_needed:n}]",
	    "raise LimitNOFILE of the unit (ulimit -n), or lower max_connections" },
	{ DOCTOR_WARNING,
	    "[lock_limited?locked memory is limited to {locked_bytes_max:n} bytes, and RDMA cards need it for all buffers]",
	    "set LimitMEMLOCK=infinity in the unit (ulimit -l unlimited)" },
};

/* Counters of what was refused because something was full. */
#define COUNTED(name, text) DOCTOR_WARNING, "[counters." name "?{counters." name ":n} " text "]"

static const struct rule memory_rules[] = {
	{ DOCTOR_WARNING, "[rmbs_short?receive buffers take {rmb_bytes:b} of at most {rmb_bytes_max:b}]",
	    "raise rmb_memory_max" },
	{ DOCTOR_WARNING,
	    "[send_short?send buffers take {sndbuf_bytes:b} of at most {sndbuf_bytes_max:b}: further ones are small]",
	    "raise send_memory_max" },
	{ COUNTED("refused_conns_max", "connections refused: the engine's table is full"),
	    "raise smcr.max_connections" },
	{ COUNTED("refused_rmb_memory", "receive buffers refused: memory"),
	    "raise rmb_memory_max or group_memory_max" },
	{ COUNTED("refused_send_memory", "send buffers refused: memory"), "raise send_memory_max or group_memory_max" },
	{ COUNTED("refused_memory", "connections refused: out of memory"),
	    "give the machine, or the unit, more memory" },
	{ COUNTED("refused_qp", "link groups declined: no queue pair"), "raise max_qp of the device" },
	{ COUNTED("refused_groups_addr", "link groups declined: too many of one address"),
	    "raise smcr.groups_per_address" },
	{ COUNTED("refused_peers_max", "first contacts declined: with too many peers at once"),
	    "find the client that connects so often" },
	{ COUNTED("refused_rmbs_max", "receive buffers refused: too many in one link group"),
	    "raise smcr.rmb_elements, or rmb_element of services" },
	{ COUNTED("refused_quarantine", "connections refused: elements in quarantine"),
	    "look for a peer that dies often; smcr.quarantine_max" },
	{ COUNTED("elems_shrunk", "connections got a smaller buffer: memory was short"), "raise rmb_memory_max" },
};

/* Open files that all services at their max_connections take. */
static int64_t
most_files(const json_t *status, const json_t *devices)
{
	const json_t *services = json_object_get(status, "services");
	size_t workers = json_array_size(json_object_get(status, "workers"));
	struct files files = {
		.workers = workers > 0 ? workers : 1,
		.services = json_array_size(services),
		.devices = json_array_size(devices),
	};

	for (size_t i = 0; i < json_array_size(services); i++)
		files.connections += (uint64_t)get_int(json_array_get(services, i), "connections_max");
	return (int64_t)files_needed(&files);
}

/* rises: of the object's counters, which all stand in this member of it. */
static void
set_rises(json_t *o, const char *member, json_t *rises)
{
	json_t *copy = json_copy(o);

	json_object_set_new(copy, member, rises);
	json_object_set_new(o, "rises", copy);
}

static void
look_at_daemon(struct doctor *d, const json_t *facts, const json_t *devices)
{
	json_t *o = json_copy(json_object_get(facts, "status"));
	json_t *counters = json_object_get(json_object_get(facts, "stats"), "counters");
	const json_t *before = json_object_get(json_object_get(json_object_get(facts, "before"), "stats"), "counters");
	int64_t files = get_int(o, "open_files_max"), needed = most_files(o, devices);
	bool cards = false;

	for (size_t i = 0; i < json_array_size(devices); i++)
		cards = cards || template_holds(json_array_get(devices, i), "card");
	json_object_set(o, "counters", counters);
	json_t *more = json_pack("{s:I, s:b, s:b, s:b, s:b, s:b}", "files_needed", (json_int_t)needed, "files_are_few",
	    files > 0 && files_are_few((uint64_t)files, (uint64_t)needed), "files_are_ample",
	    files > 0 && files < needed, "lock_limited", cards && get_int(o, "locked_bytes_max") >= 0, "rmbs_short",
	    NEARLY(get_int(o, "rmb_bytes"), get_int(o, "rmb_bytes_max")), "send_short",
	    SHORT_OF_SEND(get_int(o, "sndbuf_bytes"), get_int(o, "sndbuf_bytes_max")));
	json_object_update(o, more);
	json_decref(more);
	set_rises(o, "counters", delta_counters(before, counters));

	doctor_begin_area(d, "daemon");
	FIND(d, o, daemon_rules);
	doctor_end_area(d, o, "smcrd {version} runs for {uptime_ms:t}");
	doctor_begin_area(d, "limits");
	FIND(d, o, limit_rules);
	doctor_end_area(d, o,
	    "[files_are_ample?{open_files_max:n} open files are ample; all services at their max_connections at once would "
	    "need about {files_needed:n}|open files and locked memory are enough]");
	doctor_begin_area(d, "memory");
	FIND(d, o, memory_rules);
	/* An older daemon does not tell the limit of send buffers. */
	doctor_end_area(d, o,
	    "receive buffers take {rmb_bytes:b} of at most {rmb_bytes_max:b}[sndbuf_bytes_max?, send buffers "
	    "{sndbuf_bytes:b} of at most {sndbuf_bytes_max:b}], and nothing was refused for want of room");
	json_decref(o);
}

/* -- devices, links -- */

/* Counters of a device that are 0 when all is well. */
#define TROUBLE(name, text) DOCTOR_WARNING, "[stats." name "?{name}: {stats." name ":n} " text "]"

static const struct rule device_rules[] = {
	{ DOCTOR_WARNING, "[port=up?|the port of {name}[interface? on {interface}] is down]",
	    "ip link show says why: cable, switch, or set it up" },
	{ DOCTOR_PROBLEM, "[transport~iwarp?[card,mpa_port?|{name} does not listen for MPA connections]]",
	    "see the log; set another mpa_ports range" },
	{ TROUBLE("mpa_bad", "strangers or broken peers on its MPA port"),
	    "the log names the last one; set mpa_clients, or a firewall rule" },
	{ TROUBLE("mpa_refused_token", "MPA connections without the token of a link group"),
	    "the log names the last one" },
	{ TROUBLE("mpa_refused_address", "MPA connections from addresses that may not"),
	    "the log names the last one; set mpa_clients if it is a peer" },
	{ TROUBLE("crc_errors", "frames with a wrong checksum"), "look for a broken network card, cable or middlebox" },
	{ TROUBLE("accept_pauses", "pauses of accepting"), "raise LimitNOFILE" },
	{ TROUBLE("retry_exc", "links lost, as the peer did not answer"),
	    "look at the path: cable, switch, PFC or ECN" },
	{ TROUBLE("rnr_retry_exc", "links lost, as the peer had no receive posted"), "raise rq_depth" },
	{ TROUBLE("remote_access_errs", "accesses that the peer refused"),
	    "report it: one of both ends breaks the protocol" },
	{ TROUBLE("no_memory", "times that memory was out"), "give the machine, or the unit, more memory" },
};

static const struct rule all_devices_rules[] = {
	{ DOCTOR_PROBLEM, "[devices?|there is no RDMA device: nothing goes by RDMA]",
	    "smcrd -t shows what is configured and found" },
	{ DOCTOR_PROBLEM, "[devices?[up?|the ports of all devices are down: nothing goes by RDMA]]",
	    "set an interface up" },
};

static void
look_at_devices(struct doctor *d, const json_t *devices, const json_t *before)
{
	int64_t up = 0;

	doctor_begin_area(d, "devices");
	for (size_t i = 0; i < json_array_size(devices); i++) {
		json_t *dev = json_copy(json_array_get(devices, i));
		const json_t *earlier = delta_item(before, "name", json_object_get(dev, "name"));

		set_rises(
		    dev, "stats", delta_counters(json_object_get(earlier, "stats"), json_object_get(dev, "stats")));
		FIND(d, dev, device_rules);
		up += template_holds(dev, "port=up");
		json_decref(dev);
	}
	json_t *all = json_pack("{s:O*, s:I}", "devices", devices, "up", (json_int_t)up);
	FIND(d, all, all_devices_rules);
	doctor_end_area(d, all, "{devices:n}, all with their port up");
	json_decref(all);
}

/* A path that takes less than the interface at this end. */
static void
look_at_path(struct doctor *d, const json_t *devices, const json_t *link, const json_t *path)
{
	int64_t mtu = get_int(path, "mtu");

	for (size_t i = 0; i < json_array_size(devices); i++) {
		const json_t *dev = json_array_get(devices, i);
		int64_t own = get_int(dev, "interface_mtu");

		if (own > PACKET_MAX)
			own = PACKET_MAX;
		if (strcmp(get_string(dev, "name"), get_string(link, "device")) != 0 || mtu <= 0 || own <= mtu)
			continue;
		json_t *o = json_pack(
		    "{s:O*, s:O*, s:O*, s:I}", "link", link, "path", path, "device", dev, "own", (json_int_t)own);
		doctor_find(d, o, DOCTOR_WARNING,
		    "link {link.group:n}/{link.number:n}: the path to {path.address} takes packets of {path.mtu:n} bytes, "
		    "{device.interface} sends up to {own:n}",
		    "set the same MTU on the way, or a smaller one here (ip link set mtu)");
		json_decref(o);
		return;
	}
}

static void
look_at_mtu(struct doctor *d, const json_t *links, const json_t *devices)
{
	int64_t least = 0, most = 0, unknown = 0;

	doctor_begin_area(d, "mtu");
	for (size_t i = 0; i < json_array_size(links); i++) {
		const json_t *link = json_array_get(links, i), *paths = json_object_get(link, "paths");

		for (size_t k = 0; k < json_array_size(paths); k++)
			look_at_path(d, devices, link, json_array_get(paths, k));
	}
	/* The MTU of a device without an interface is unknown. */
	for (size_t i = 0; i < json_array_size(devices); i++) {
		int64_t mtu = get_int(json_array_get(devices, i), "interface_mtu");

		if (mtu <= 0) {
			unknown++;
			continue;
		}
		least = most == 0 || mtu < least ? mtu : least;
		most = mtu > most ? mtu : most;
	}
	json_t *o = json_pack("{s:I, s:I, s:I}", "least", (json_int_t)(least < most ? least : 0), "most",
	    (json_int_t)most, "unknown", (json_int_t)unknown);
	doctor_end_area(d, o,
	    "[most?[least?{least:n} to ]{most:n} bytes on the interfaces of devices[unknown?, not known of {unknown:n} "
	    "device{unknown:s}]|not known of any device's interface]");
	json_decref(o);
}

static const struct rule group_rules[] = {
	{ DOCTOR_WARNING, "[links?|link group {id:n} with {peer} has no link: {state}]", "see smcrctl groups" },
	{ DOCTOR_WARNING, "[links?[type~asymmetric?link group {id:n} with {peer} is {type}]]",
	    "a second interface at the end with one would let an interface fail" },
};

/* -- services -- */

/* Connections that were refused, or are not on SMC-R. */
#define REFUSED_TEXT(name, text) "[" name "?{name}: {" name ":n} connection{" name ":s} " text ", since the start]"
#define REFUSED(name, text) DOCTOR_WARNING, REFUSED_TEXT(name, text)

/* What smcrd -t warns of, too, what an operator has ordered and may have forgotten, and what clients have met. */
static const struct rule access_rules[] = {
	{ DOCTOR_WARNING, "[exposed?{name}: it has no allow list: any host that reaches {listen} can connect to {to}]",
	    "set allow; [ \"::/0\" ] if everybody may" },
	{ DOCTOR_WARNING, "[disabled?{name}: it is disabled: new connections are refused]",
	    "smcrctl enable NAME, when it may have connections again" },
	{ DOCTOR_WARNING, "[listen~unix:?|" REFUSED_TEXT("refused_allow", "refused: not on the allow list") "]",
	    "the log has their addresses; add them to allow if they may" },
	{ DOCTOR_WARNING, "[listen~unix:?" REFUSED_TEXT("refused_allow", "refused: not on the allow list") "]",
	    "the log has their users; add them to allow_users if they may" },
	{ REFUSED("refused_max", "refused: too many at once"), "raise max_connections" },
	{ REFUSED("refused_per_peer", "refused: too many of one source"), "raise max_connections_per_peer" },
	{ REFUSED("refused_header", "refused: no PROXY header of a source in accept_proxy"),
	    "the log has why; let the balancer send the header" },
	{ REFUSED("not_captured", "refused: no rule had captured them"), "smcrctl capture NAME prints the rules" },
	{ REFUSED("no_via", "refused: via has no way to their destination"),
	    "the log has the destinations; add them to via" },
	{ REFUSED("dest_own", "refused: this daemon is their source or destination"),
	    "exempt the daemon's user in the rules, as smcrctl capture NAME does" },
	{ REFUSED("dest_refused", "refused: their destination"), "the log has the destinations; add them to to_allow" },
	{ REFUSED("refused_connect", "refused: the far end was not reached, or broke off"),
	    "see smcrctl service, and the log" },
	{ REFUSED("refused_fallback", "refused: no SMC-R, and fallback = \"refuse\""),
	    "smcrctl stats has the reasons" },
	{ REFUSED("fallbacks", "gone to TCP"), "smcrctl stats has the reasons" },
	{ DOCTOR_WARNING, "[modes.tcp?{name}: {modes.tcp:n} connection{modes.tcp:s} on TCP now]",
	    "smcrctl connections --tcp has the reasons" },
	{ DOCTOR_WARNING, "[full?{name}: {connections:n} connection{connections:s} of at most {connections_max:n}]",
	    "raise max_connections" },
};

static const struct rule peer_rules[] = {
	{ DOCTOR_WARNING, "[listens_here=false?{name}: no interface has its address, {listen}]",
	    "nothing, if another host has it now; else add it (ip addr add)" },
	{ DOCTOR_WARNING, "[held_off_ms?{name}: the peer was held off after failures, for another {held_off_ms:t}]",
	    "see what the check says" },
	{ DOCTOR_PROBLEM, "[waits,works?|outage.text?{name}: {to} {outage.text}]", "look at the far end" },
	{ DOCTOR_NOTE,
	    "[works?[outage.text?{name}: {to} works again, no client has come since it was out: {outage.text}]]",
	    "nothing, the next client ends this" },
};

/* Anybody may connect, from anywhere. */
static bool
is_exposed(const json_t *s)
{
	const json_t *settings = json_object_get(s, "settings");
	struct sockaddr_storage at;
	bool open = false;

	for (size_t i = 0; i < json_array_size(settings); i++) {
		const json_t *one = json_array_get(settings, i);

		open = open || (template_holds(one, "name=allow") && get_string(one, "value")[0] == '\0');
	}
	return open && addr_parse_port(get_string(s, "listen"), &at) == 0 && addr_is_exposed(&at);
}

/* A name that is not found leaves the service without an address, or with fewer. True: it is what a client fails for. */
static bool
look_at_names(struct doctor *d, const json_t *s)
{
	const json_t *targets = json_object_get(s, "targets");
	bool waits = json_array_size(json_object_get(s, "addresses")) == 0, found = false;

	for (size_t i = 0; i < json_array_size(targets); i++) {
		json_t *o = json_copy(json_array_get(targets, i));

		json_object_set(o, "service", json_object_get(s, "name"));
		json_object_set_new(o, "waits", json_boolean(waits));
		doctor_find(d, o, waits ? DOCTOR_PROBLEM : DOCTOR_WARNING,
		    "[name_error?{service}: the name of {target} is not found: {name_error}[waits?; the service waits for it]]",
		    "look at the name in `to`, and at DNS on this host (resolv.conf, getent hosts, dig)");
		found = found || template_holds(o, "name_error");
		json_decref(o);
	}
	return found && waits;
}

/* Of its counters alone; the rest of its numbers are of now. */
static void
set_service_rises(json_t *s, const json_t *before)
{
	json_t *rises = json_copy(s), *v;
	const char *key;

	json_object_foreach(s, key, v)
	{
		if (strncmp(key, "refused_", 8) == 0 || strcmp(key, "fallbacks") == 0)
			json_object_set_new(rises, key, json_integer(delta_of(before, s, key)));
	}
	json_object_set_new(s, "rises", rises);
}

static void
look_at_services(struct doctor *d, const json_t *facts)
{
	const json_t *services = json_object_get(facts, "services");
	const json_t *before = json_object_get(json_object_get(facts, "before"), "services");

	doctor_begin_area(d, "services");
	for (size_t i = 0; i < json_array_size(services); i++) {
		json_t *s = json_copy(json_array_get(services, i));

		json_object_set_new(s, "exposed", json_boolean(is_exposed(s)));
		json_object_set_new(
		    s, "full", json_boolean(NEARLY(get_int(s, "connections"), get_int(s, "connections_max"))));
		const json_t *name = json_object_get(s, "name"), *earlier = delta_item(before, "name", name);
		bool works = template_holds(s, "health=up") ||
		    (!template_holds(s, "health=down") &&
		        doctor_check_works_for(json_object_get(facts, "checks"), name));

		/* Clients that fail all the same know better. */
		works = works && earlier != NULL &&
		    delta_of(json_object_get(earlier, "outage"), json_object_get(s, "outage"), "failed") == 0;
		json_object_set_new(s, "works", json_boolean(works));
		set_service_rises(s, earlier);
		FIND(d, s, access_rules);
		json_object_set_new(s, "waits", json_boolean(look_at_names(d, s)));
		FIND(d, s, peer_rules);
		json_decref(s);
	}
	doctor_find(d, facts, DOCTOR_WARNING, "[services?|no service: the daemon has nothing to do]",
	    "add an ingress or egress");
	doctor_end_area(d, facts, "{services:n}, and no connection was refused or has gone to TCP");
}

static void
look_at_reasons(struct doctor *d, const json_t *facts)
{
	static const struct {
		const char *list, *template;
	} sides[] = {
		{ "fallback_reasons_local", "[count?against SMC-R, ours: {text} ({code}), {count:n} time{count:s}]" },
		{ "fallback_reasons_peer",
		    "[count?against SMC-R, the peers': {text} ({code}), {count:n} time{count:s}]" },
	};
	const json_t *stats = json_object_get(facts, "stats");
	const json_t *before = json_object_get(json_object_get(facts, "before"), "stats");

	doctor_begin_area(d, "reasons");
	for (size_t i = 0; i < ARRAY_LEN(sides); i++) {
		const json_t *list = json_object_get(stats, sides[i].list);
		const json_t *earlier = json_object_get(before, sides[i].list);

		for (size_t k = 0; k < json_array_size(list); k++) {
			json_t *r = json_copy(json_array_get(list, k));
			const json_t *same = delta_item(earlier, "code", json_object_get(r, "code"));

			set_rises(r, "count", json_integer(delta_of(same, r, "count")));
			doctor_find(d, r, DOCTOR_WARNING, sides[i].template, "smcrctl connections --tcp lists them");
			json_decref(r);
		}
	}
	doctor_end_area(d, NULL, "none against SMC-R so far");
}

json_t *
doctor_findings(const json_t *facts, enum doctor_level *verdict)
{
	const json_t *devices = json_object_get(json_object_get(facts, "devices"), "devices");
	const json_t *before = json_object_get(json_object_get(json_object_get(facts, "before"), "devices"), "devices");
	const json_t *groups = json_object_get(facts, "groups");
	struct doctor d = { .findings = json_array() };

	look_at_daemon(&d, facts, devices);
	look_at_devices(&d, devices, before);
	look_at_mtu(&d, json_object_get(json_object_get(facts, "links"), "links"), devices);
	doctor_begin_area(&d, "links");
	FIND_EACH(&d, json_object_get(groups, "groups"), group_rules);
	doctor_end_area(&d, groups,
	    "[groups=1?1 link group, with a link|groups?{groups:n} link groups, each with a link|no link group so far]");
	look_at_services(&d, facts);
	look_at_reasons(&d, facts);
	doctor_look_at_checks(&d, facts);
	*verdict = d.verdict;
	return d.findings;
}
