/* What checks of the ingresses' addresses say; see doctor_parts.h. */
#include "ctl/doctor_parts.h"

#include <string.h>

#include "ctl/doctor.h"
#include "ctl/show.h"
#include "ctl/template.h"

#define SERVICES_MAX 120

static const char *
preflight_for(const char *finding)
{
	static const struct {
		const char *finding, *advice;
	} advices[] = {
		{ "unreachable", "start smcrd there, and let the port pass firewalls" },
		{ "no-option",
		    "nothing, if it is a plain server; else let its kernel use SMC, or set peer = \"smcrd\"" },
		{ "plain-server", "let `to` be the listen address of an egress there" },
		{ "closed",
		    "is `to` the listen address of an egress there, and not the server's? Then look at its allow, "
		    "max_connections, secure and log" },
		{ "no-tls", "look at `tls`, secure and peer_names of both ends, and at the log there" },
		{ "silent", "look at what listens there: `to` should be the listen address of an egress" },
		{ "declined", "look at smcrctl devices and stats there" },
		{ "declined-here", "look at smcrctl devices here" },
		{ "link-failed",
		    "let the peer's MPA port pass firewalls, from here to there; see mpa_peers, and mpa_clients there" },
		{ "timeout", "look at the path, and at the log there" },
		{ "server-down", "start the server behind it, or look at `to` of the egress there" },
	};

	for (size_t i = 0; i < ARRAY_LEN(advices); i++)
		if (strcmp(advices[i].finding, finding) == 0)
			return advices[i].advice;
	return "try again";
}

bool
doctor_check_works_for(const json_t *checks, const json_t *service)
{
	for (size_t i = 0; i < json_array_size(checks); i++) {
		const json_t *c = json_array_get(checks, i), *services = json_object_get(c, "services");

		for (size_t k = 0; get_bool(c, "possible") && k < json_array_size(services); k++)
			if (json_equal(json_array_get(services, k), service))
				return true;
	}
	return false;
}

/* Did another address do, for each service with this one? A client takes that. */
static bool
others_do(const json_t *checks, const json_t *services)
{
	for (size_t k = 0; k < json_array_size(services); k++)
		if (!doctor_check_works_for(checks, json_array_get(services, k)))
			return false;
	return json_array_size(services) > 0;
}

/* The services of one address, with commas between. */
static const char *
services_str(const json_t *services, char buf[SERVICES_MAX])
{
	size_t len = 0;

	buf[0] = '\0';
	for (size_t k = 0; k < json_array_size(services) && len < SERVICES_MAX - 1; k++) {
		const char *name = json_string_value(json_array_get(services, k));

		len += (size_t)snprintf(
		    buf + len, SERVICES_MAX - len, "%s%s", k > 0 ? ", " : "", name != NULL ? name : "");
	}
	if (len >= SERVICES_MAX)
		strcpy(buf + SERVICES_MAX - 4, "...");
	return buf;
}

void
doctor_look_at_checks(struct doctor *d, const json_t *facts)
{
	const json_t *checks = json_object_get(facts, "checks");
	char names[SERVICES_MAX];

	doctor_begin_area(d, "check");
	for (size_t i = 0; i < json_array_size(checks); i++) {
		json_t *c = json_copy(json_array_get(checks, i));
		const json_t *services = json_object_get(c, "services");
		/* Where plain ends are expected, too, they are no problem. */
		bool fine = template_holds(c, "possible"), plain = template_holds(c, "finding=no-option");

		json_object_set_new(c, "names", json_string(services_str(services, names)));
		doctor_find(d, c,
		    fine                                       ? DOCTOR_OK
		        : plain || others_do(checks, services) ? DOCTOR_WARNING
		                                               : DOCTOR_PROBLEM,
		    "{names}: [possible?SMC-R to {peer} works, round trip [steps*[step=round-trip?{took_us:u}]]|{text}]",
		    fine ? "" : preflight_for(get_string(c, "finding")));
		json_decref(c);
	}
	doctor_find(d, facts, DOCTOR_WARNING,
	    "[left_out=1?1 address was|left_out?{left_out:n} addresses were][left_out? not checked: too many]",
	    "smcrctl check HOST:PORT looks at one");
	doctor_find(d, facts, DOCTOR_WARNING,
	    "[read_only?no peer was checked: a check costs something, and this socket takes questions alone]",
	    "ask on the control socket itself (control.path, smcrctl's default)");
	doctor_find(d, facts, DOCTOR_OK, "[read_only,checks?|no ingress service whose peer could be checked]", "");
}
