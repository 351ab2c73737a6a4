/* Documents, pages and their answers; see web.h. */
#include "daemon/metrics/web.h"

#include <arpa/inet.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "daemon/metrics/exposition.h"
#include "daemon/metrics/page.h"

#define TEXT "text/plain; charset=utf-8"

static const struct {
	const char *path, *type;
} pages[WEB_CNT] = {
	[WEB_METRICS] = { "/metrics", "text/plain; version=0.0.4; charset=utf-8" },
	[WEB_OPENMETRICS] = { "",
	    "application/openmetrics-text; version=1.0.0; charset=utf-8" }, /* at the path of WEB_METRICS */
	[WEB_HEALTH] = { "/healthz", TEXT },
	[WEB_STATUS] = { "/status.json", "application/json" },
	[WEB_INDEX] = { "/", "text/html; charset=utf-8" },
};

bool
web_find(const char *path, const char *accept, enum web_page *page)
{
	for (unsigned i = 0; i < WEB_CNT; i++) {
		if (path[0] == '\0' || strcmp(path, pages[i].path) != 0)
			continue;
		*page = (enum web_page)i;
		if (*page == WEB_METRICS && accept != NULL && strstr(accept, "application/openmetrics-text") != NULL)
			*page = WEB_OPENMETRICS;
		return true;
	}
	return false;
}

void
web_service(const char *query, char name[CONFIG_NAME_MAX])
{
	static const char key[] = "service=";
	const char *text = query != NULL && strncmp(query, key, sizeof(key) - 1) == 0 ? query + sizeof(key) - 1 : "";

	(void)snprintf(name, CONFIG_NAME_MAX, "%.*s", (int)strcspn(text, "&"), text);
}

bool
web_host_is_near(const char *host)
{
	char name[INET_ADDRSTRLEN] = "";
	struct in_addr addr;

	/* An address in brackets has no name server either. */
	if (host == NULL || strchr(host, '.') == NULL || host[0] == '[')
		return true;
	size_t len = strcspn(host, ":");
	if (len < sizeof(name))
		memcpy(name, host, len);
	return inet_pton(AF_INET, name, &addr) == 1 || strcasecmp(name, "localhost.") == 0;
}

static struct web_answer
plain(int status, const char *reason, const char *text)
{
	return (struct web_answer){ status, reason, TEXT, { (char *)(uintptr_t)text, strlen(text) }, false };
}

static struct web_answer
health_of_service(const struct documents *d, const char *name)
{
	static const char *const ok[HEALTH_STATE_CNT] = { [HEALTH_NONE] = "ok\n",
		[HEALTH_UNKNOWN] = "unknown\n",
		[HEALTH_UP] = "up\n",
		[HEALTH_HELD_OFF] = "held off\n" };

	SNAPSHOT_EACH(row, &d->seen, REPORT_SERVICE) {
		const struct report_service *s = row;
		const char *not = s->info.disabled   ? "disabled\n"
		    : s->info.closed                 ? "closed: no target works\n"
		    : s->health.state == HEALTH_DOWN ? "down\n"
		                                     : NULL;

		if (s->name == NULL || strcmp(s->name, name) != 0)
			continue;
		return not != NULL ? plain(503, "Service Unavailable", not ) : plain(200, "OK", ok[s->health.state]);
	}
	return d->failed ? plain(503, "Service Unavailable", "out of memory\n")
	                 : plain(404, "Not Found", "no such service\n");
}

struct web_answer
web_answer(struct documents *d, enum web_page page, const char *service)
{
	if (d == NULL)
		return plain(503, "Service Unavailable", "the daemon does not answer\n");
	const struct report_status *status = snapshot_first(&d->seen, REPORT_STATUS);
	if (page == WEB_HEALTH && service[0] != '\0' && status != NULL && !status->worker.draining)
		return health_of_service(d, service);
	if (page == WEB_HEALTH)
		return status != NULL && status->worker.draining ? plain(503, "Service Unavailable", "draining\n")
		                                                 : plain(200, "OK", "ok\n");
	struct text *body = &d->made[page];
	if (!d->failed && page != WEB_STATUS && body->p == NULL) {
		FILE *f = open_memstream(&body->p, &body->len);

		if (f != NULL && page == WEB_INDEX)
			page_write(&d->seen, f);
		else if (f != NULL)
			exposition_write(&d->seen, page == WEB_OPENMETRICS, f);
		if (f != NULL && fclose(f) != 0) {
			free(body->p);
			*body = (struct text){ 0 };
		}
	}
	if (d->failed || body->p == NULL)
		return plain(503, "Service Unavailable", "out of memory, or the documents are too large\n");
	return (struct web_answer){ 200, "OK", pages[page].type, *body, true };
}

struct web_answer
web_refusal(enum web_refusal r)
{
	/* clang-format off */
	static const struct { int status; const char *reason, *text; } of[] = {
		[WEB_FORBIDDEN] = { 403, "Forbidden", "not on the allow list\n" },
		[WEB_MISDIRECTED] = { 421, "Misdirected Request", "over loopback: by an address, localhost, or a name without a dot\n" },
		[WEB_NOT_FOUND] = { 404, "Not Found", "there are /, /metrics, /healthz and /status.json\n" },
		[WEB_BUSY] = { 503, "Service Unavailable", "too many clients\n" },
	};
	/* clang-format on */

	return plain(of[r].status, of[r].reason, of[r].text);
}

void
documents_free(struct documents *d)
{
	if (d == NULL)
		return;
	snapshot_fini(&d->seen);
	for (unsigned i = 0; i < WEB_CNT; i++)
		free(d->made[i].p);
	free(d);
}

void
documents_put(struct documents *d)
{
	struct documents **at = d->all;

	if (--d->uses > 0)
		return;
	while (*at != d)
		at = &(*at)->next;
	*at = d->next;
	documents_free(d);
}
