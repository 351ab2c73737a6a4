/* Would everything that listens find its address? See process/preflight.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/addr.h"
#include "daemon/control/control.h"
#include "daemon/net/net.h"
#include "daemon/process/control_ask.h"
#include "daemon/process/preflight.h"

#define DAEMON_WAIT_S 2
#define USUAL_DIRECTORY RUNSTATEDIR "/smcrd" /* and that of an instance */

/* The daemon of this configuration: an address that is in use may be its own. */
struct running {
	int rc; /* of asking; -ECONNREFUSED, -ENOENT: it does not run */
	json_t *status;
};

static struct running
ask_running(const struct config *cfg)
{
	FILE *f = control_dial(cfg->control_path, DAEMON_WAIT_S);
	struct running r = { .rc = f != NULL ? 0 : -errno };

	r.status = f != NULL ? control_ask(f, "{\"command\":\"status\"}\n") : NULL;
	if (f != NULL && r.status == NULL)
		r.rc = -errno;
	if (f != NULL)
		(void)fclose(f);
	return r;
}

/* Does it listen there, or would it no longer after a reload of this configuration? */
static bool
is_its_own(const struct running *r, const struct sockaddr_storage *addr)
{
	const json_t *services = json_object_get(json_object_get(r->status, "data"), "services");
	struct sockaddr_storage at;

	for (size_t i = 0; i < json_array_size(services); i++) {
		const char *listen = json_string_value(json_object_get(json_array_get(services, i), "listen"));

		if (listen == NULL)
			continue;
		if (addr->ss_family == AF_UNIX
		        ? addr_is_unix_text(listen) && strcmp(listen + strlen(ADDR_UNIX), addr_path(addr)) == 0
		        : addr_parse_port(listen, &at) == 0 && addr_overlaps(&at, addr))
			return true;
	}
	return false;
}

/* Whose the address is that is in use. NULL: the running daemon's. */
static const char *
whose(const struct running *r, const struct sockaddr_storage *addr)
{
	if (r->rc == -ECONNREFUSED || r->rc == -ENOENT)
		return "";
	if (r->rc != 0)
		return ", perhaps by the running smcrd, which cannot be asked";
	return is_its_own(r, addr) ? NULL : "";
}

/* what: "ingress \"x\"". A right to low ports is the unit's, which the caller may lack. */
static void
try_port(const struct config *cfg, unsigned place, const char *what, const struct sockaddr_storage *addr, bool freebind,
    struct running *r, FILE *out)
{
	int rc = net_try_bind(addr, freebind);
	char text[ADDR_STR_MAX];
	const char *by = rc == -EADDRINUSE ? whose(r, addr) : "";

	if (rc == 0 || rc == -EACCES || by == NULL)
		return;
	config_advise(cfg, place, out, "%s cannot listen on %s now: %s%s%s", what,
	    addr_format_port(addr, text, sizeof(text)), strerror(-rc), by,
	    rc == -EADDRINUSE ? " (ss -ltnp shows by what)" : "");
}

/* addr: NULL of a socket that the running daemon has under the same name. systemd makes the usual directory. */
static void
try_file(const struct config *cfg, unsigned place, const struct listen_socket_file *file,
    const struct sockaddr_storage *addr, const struct running *r, FILE *out)
{
	char *text = NULL;
	size_t len = 0;
	FILE *f = open_memstream(&text, &len);
	int rc = f != NULL ? listen_socket_try(file, f) : 0;

	if (f != NULL)
		(void)fclose(f);
	bool own = rc == -EADDRINUSE && (addr == NULL || whose(r, addr) == NULL);
	bool made_later = rc == -ENOENT && strncmp(file->path, USUAL_DIRECTORY, strlen(USUAL_DIRECTORY)) == 0;
	if (rc != 0 && !own && !made_later && text != NULL)
		config_advise(cfg, place, out, "%.*s", (int)strcspn(text, "\n"), text);
	free(text);
}

void
preflight_listen(const struct config *cfg, FILE *out)
{
	const struct sockaddr_storage *metrics = &cfg->metrics.listen;
	struct running running = ask_running(cfg);
	char what[CONFIG_NAME_MAX + 32];

	for (unsigned i = 0; i < CONTROL_PORTS; i++) {
		const struct listen_socket_file file = control_file(cfg, i);

		if (file.path[0] != '\0')
			try_file(cfg, 0, &file, NULL, &running, out);
	}
	/* A daemon does not say where its metrics are: those of a running one are not tried. */
	if (metrics->ss_family == AF_UNIX)
		try_file(cfg, 0, &(struct listen_socket_file){ .what = "metrics socket", .path = addr_path(metrics) },
		    NULL, &running, out);
	else if (metrics->ss_family != 0 && running.rc != 0)
		try_port(cfg, 0, "metrics", metrics, false, &running, out);
	for (unsigned i = 0; i < cfg->service_cnt; i++) {
		const struct config_service *svc = &cfg->services[i];

		snprintf(what, sizeof(what), "%s \"%s\"", config_kind_words[svc->kind], svc->name);
		if (svc->listen.ss_family == AF_UNIX)
			try_file(cfg, svc->place,
			    &(struct listen_socket_file){ .what = what, .path = addr_path(&svc->listen) }, &svc->listen,
			    &running, out);
		else
			try_port(cfg, svc->place, what, &svc->listen, svc->freebind, &running, out);
	}
	json_decref(running.status);
}
