/* Documents, pages and their answers; see web.h. */
#include "daemon/metrics/web.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "daemon/metrics/exposition.h"

#define PAGE_FROM_MAX 1000000
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
	[WEB_SERVICE] = { "/service", "text/html; charset=utf-8" },
};

/* The value of a member of a query, without its percent signs; false: not there, broken, or too long. */
static bool
query_value(const char *query, const char *name, char *buf, size_t cap)
{
	const size_t name_len = strlen(name);
	size_t len = 0;

	for (; query != NULL && (strncmp(query, name, name_len) != 0 || query[name_len] != '='); query++)
		if ((query = strchr(query, '&')) == NULL)
			return false;
	if (query == NULL)
		return false;
	for (const char *p = query + name_len + 1; *p != '\0' && *p != '&'; p++) {
		char hex[3] = "";

		if (len + 1 >= cap)
			return false;
		buf[len] = *p == '+' ? ' ' : *p;
		if (*p == '%') {
			if (!isxdigit((unsigned char)p[1]) || !isxdigit((unsigned char)p[2]))
				return false;
			memcpy(hex, p + 1, 2);
			buf[len] = (char)strtoul(hex, NULL, 16);
			p += 2;
		}
		if (buf[len++] == '\0')
			return false;
	}
	buf[len] = '\0';
	return true;
}

bool
web_find(const char *path, const char *query, const char *accept, struct web_request *req)
{
	char word[16];

	*req = (struct web_request){ .page = WEB_CNT };
	for (unsigned i = 0; i < WEB_CNT; i++)
		if (path[0] != '\0' && strcmp(path, pages[i].path) == 0)
			req->page = (enum web_page)i;
	if (req->page == WEB_METRICS && accept != NULL && strstr(accept, "application/openmetrics-text") != NULL)
		req->page = WEB_OPENMETRICS;
	for (unsigned i = 0; query_value(query, "show", word, sizeof(word)) && i < PAGE_SHOW_CNT; i++)
		if (strcmp(word, page_show_words[i]) == 0)
			req->view.show = (enum page_show)i;
	if (query_value(query, "from", word, sizeof(word)))
		req->view.from = (unsigned)strtoul(word, NULL, 10) % PAGE_FROM_MAX;
	if (req->page == WEB_HEALTH)
		(void)query_value(query, "service", req->view.service, sizeof(req->view.service));
	if (req->page == WEB_SERVICE)
		return query_value(query, "name", req->view.service, sizeof(req->view.service));
	return req->page != WEB_CNT;
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
	return (struct web_answer){ status, reason, TEXT, { (char *)(uintptr_t)text, strlen(text) }, false, false };
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

/* False: there is no such thing. Without memory nothing is made. */
static bool
make_page(struct documents *d, const struct web_request *req, struct text *body)
{
	FILE *f = open_memstream(&body->p, &body->len);
	bool found = true;

	if (f != NULL && req->page == WEB_INDEX)
		page_write(&d->seen, &req->view, f);
	else if (f != NULL && req->page == WEB_SERVICE)
		found = page_write_service(&d->seen, &req->view, f);
	else if (f != NULL)
		exposition_write(&d->seen, req->page == WEB_OPENMETRICS, f);
	if (f != NULL && (fclose(f) != 0 || !found)) {
		free(body->p);
		*body = (struct text){ 0 };
	}
	return found;
}

struct web_answer
web_answer(struct documents *d, const struct web_request *req)
{
	struct text own = { 0 };

	if (d == NULL)
		return plain(503, "Service Unavailable", "the daemon does not answer\n");
	const struct report_status *status = snapshot_first(&d->seen, REPORT_STATUS);
	if (req->page == WEB_HEALTH && req->view.service[0] != '\0' && status != NULL && !status->worker.draining)
		return health_of_service(d, req->view.service);
	if (req->page == WEB_HEALTH)
		return status != NULL && status->worker.draining ? plain(503, "Service Unavailable", "draining\n")
		                                                 : plain(200, "OK", "ok\n");
	/* Made once, but for views that few clients ask for. */
	const bool shared = req->page != WEB_SERVICE &&
	    (req->page != WEB_INDEX || (req->view.show == PAGE_ALL && req->view.from == 0));
	struct text *body = shared ? &d->made[req->page] : &own;
	if (!d->failed && req->page != WEB_STATUS && body->p == NULL && !make_page(d, req, body))
		return plain(404, "Not Found", "there is no such service\n");
	if (d->failed || body->p == NULL)
		return plain(503, "Service Unavailable", "out of memory, or the documents are too large\n");
	return (struct web_answer){ 200, "OK", pages[req->page].type, *body, shared, !shared };
}

struct web_answer
web_refusal(enum web_refusal r)
{
	/* clang-format off */
	static const struct { int status; const char *reason, *text; } of[] = {
		[WEB_FORBIDDEN] = { 403, "Forbidden", "not on the allow list\n" },
		[WEB_MISDIRECTED] = { 421, "Misdirected Request", "over loopback: by an address, localhost, or a name without a dot\n" },
		[WEB_NOT_FOUND] = { 404, "Not Found", "there are /, /service, /metrics, /healthz and /status.json\n" },
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
