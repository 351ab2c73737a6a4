/* Collecting documents in the main thread; see metrics.h. */
#include "daemon/metrics/metrics.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/addr.h"
#include "base/log.h"
#include "daemon/metrics/http.h"
#include "daemon/net/net.h"

#define BACKLOG 16
#define STEPS_PER_TURN 64
#define BLOCK_BYTES (64u * 1024)
#define DOCUMENTS_MAX (32u * 1024 * 1024) /* bytes of the rows of a look, and of its status */

static const enum control_command commands[] = { CONTROL_STATUS, CONTROL_STATS, CONTROL_GROUPS, CONTROL_LINKS,
	CONTROL_DEVICES, CONTROL_HISTORY };

#define REPORTS (sizeof(commands) / sizeof(commands[0]))

struct metrics {
	struct loop *loop;
	struct workers *workers;
	const struct control_stats *control;
	const struct report_process *process;
	struct event_history *news; /* NULL in tests */
	struct http *http;
	struct mail wanted; /* from the thread of http */
	/* While documents are being collected. */
	struct documents *docs; /* NULL: not collecting */
	unsigned nr;            /* the report at hand, of commands */
	struct report report;
	struct outbuf out; /* of status */
};

int
metrics_listen(const struct config *cfg, struct listen_socket_list *passed, struct listen_socket *out, FILE *err)
{
	const struct listen_socket_file file = { "metrics socket", addr_path(&cfg->metrics.listen), cfg->metrics.mode,
		(uid_t)-1, (gid_t)-1, .waits = true };
	char text[ADDR_STR_MAX];

	*out = LISTEN_SOCKET_NONE;
	if (cfg->metrics.listen.ss_family == 0)
		return 0;
	for (unsigned i = 0; i < passed->cnt; i++)
		if (passed->v[i].fd >= 0 && listen_socket_listens_at(&passed->v[i], &cfg->metrics.listen)) {
			*out = passed->v[i];
			passed->v[i] = LISTEN_SOCKET_NONE;
			return 0;
		}
	if (cfg->metrics.listen.ss_family == AF_UNIX) {
		int rc = listen_socket_open(out, &file, err);

		return rc == 0 ? listen_socket_start(out, file.what, BACKLOG, err) : rc;
	}
	int fd = net_listen(&cfg->metrics.listen, NET_ALONE, false, NULL);
	if (fd < 0) {
		fprintf(err, "metrics: cannot listen on %s: %s\n",
		    addr_format_port(&cfg->metrics.listen, text, sizeof(text)), strerror(-fd));
		return fd;
	}
	(void)listen(fd, BACKLOG); /* shorter than a service's backlog */
	*out = listen_socket_of_fd(fd);
	return 0;
}

static void
begin_report(struct metrics *m)
{
	const struct control_request req = { .command = commands[m->nr] };
	struct report_source src;

	report_source_init(&src, m->workers, m->control, m->process);
	if (req.command == CONTROL_STATUS)
		report_source_measure(&src);
	report_start(&m->report, &src, &req, req.command == CONTROL_STATUS ? &m->out : NULL);
	m->report.keep = &m->docs->seen;
}

static void
keep_events(const struct metrics *m, struct snapshot *seen)
{
	char text[EVENT_TEXT_MAX];
	struct event_record e;

	for (uint64_t nr = 0; m->news != NULL && event_history_next(m->news, nr, &e); nr = e.nr) {
		const struct report_event row = { e.time_us, e.event.kind, e.event.service,
			event_text(&e.event, text) };

		snapshot_add(seen, REPORT_EVENT, &row);
	}
}

static void
end_collecting(struct metrics *m, bool failed)
{
	struct documents *docs = m->docs;

	if (docs != NULL)
		docs->failed = failed;
	m->docs = NULL;
	outbuf_fini(&m->out);
	http_deliver(m->http, docs);
}

/* In the main thread: clients wait. */
static void
on_wanted(struct mail *mail)
{
	struct metrics *m = CONTAINER_OF(mail, struct metrics, wanted);

	m->nr = 0;
	m->docs = calloc(1, sizeof(*m->docs));
	if (m->docs != NULL)
		m->docs->seen.bytes_max = DOCUMENTS_MAX;
	if (m->docs == NULL || outbuf_init(&m->out, BLOCK_BYTES) != 0)
		end_collecting(m, true);
	else
		begin_report(m);
}

/* Moves the output of the report to the documents. False when it or the rows are too large, or memory is out. */
static bool
metrics_take(struct metrics *m)
{
	struct text *doc = &m->docs->made[WEB_STATUS];
	const size_t len = m->out.len;

	if (m->docs->seen.failed || len == 0)
		return !m->docs->seen.failed;
	char *bytes = doc->len + len <= DOCUMENTS_MAX ? realloc(doc->p, doc->len + len + 1) : NULL;
	if (bytes == NULL)
		return false;
	memcpy(bytes + doc->len, outbuf_data(&m->out), len);
	doc->p = bytes;
	doc->len += len;
	outbuf_consume(&m->out, len);
	return true;
}

static int64_t
metrics_collect(void *arg, int64_t now_ns)
{
	unsigned budget = STEPS_PER_TURN;
	struct metrics *m = arg;

	(void)now_ns;
	while (m->docs != NULL && budget > 0) {
		bool more = report_run(&m->report, &budget);

		if (!metrics_take(m))
			end_collecting(m, true);
		else if (!more && ++m->nr < REPORTS)
			begin_report(m);
		else if (!more) {
			keep_events(m, &m->docs->seen);
			end_collecting(m, m->docs->seen.failed);
		}
	}
	return m->docs != NULL ? INT64_MIN : INT64_MAX;
}

/* In the thread of http. */
static void
want(void *arg)
{
	struct metrics *m = arg;

	mailbox_post(workers_mailbox(m->workers), &m->wanted);
}

int
metrics_new(struct loop *loop, struct workers *ws, const struct config *cfg, const struct listen_socket *listen,
    const struct control_stats *control, const struct report_process *process, struct event_history *news, FILE *err,
    struct metrics **out)
{
	int rc = -ENOMEM;

	*out = NULL;
	if (listen->fd < 0)
		return 0;
	struct metrics *m = calloc(1, sizeof(*m));
	if (m != NULL) {
		const int fd = listen_socket_copy(listen).fd;

		*m = (struct metrics){ loop, ws, control, process, news, .wanted.fn = on_wanted };
		rc = fd < 0 ? -errno : http_new(fd, cfg, workers_accept_pauses(ws), want, m, &m->http);
		if (rc != 0 && fd >= 0)
			close(fd);
	}
	if (rc == 0)
		rc = loop_add_turn(loop, metrics_collect, m);
	if (rc != 0) {
		fprintf(err, "metrics: %s\n", strerror(-rc));
		metrics_free(m);
		return rc;
	}
	*out = m;
	return 0;
}

int
metrics_start(struct metrics *m)
{
	return m != NULL ? http_start(m->http) : 0;
}

void
metrics_reload(struct metrics *m, const struct config *cfg)
{
	if (m != NULL && http_allow(m->http, cfg->metrics.allow, cfg->metrics.allow_cnt) != 0)
		log_msg(LOG_LVL_WARNING, "metrics.allow stays as it was: out of memory");
}

void
metrics_free(struct metrics *m)
{
	if (m == NULL)
		return;
	/* Mails that the thread posted before its end are run below, before the memory is freed. */
	if (m->http != NULL)
		http_stop(m->http);
	mailbox_run(workers_mailbox(m->workers));
	loop_del_turn(m->loop, metrics_collect, m);
	outbuf_fini(&m->out);
	documents_free(m->docs);
	http_free(m->http);
	free(m);
}
