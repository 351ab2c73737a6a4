/* Frame and parts of all reports; see report.h. */
#include <config.h>

#include "daemon/control/report.h"

#include <arpa/inet.h>
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "base/addr.h"
#include "wire/clc.h"

enum {
	PHASE_FRAME, /* the frame is not yet written; the maker's phases follow */
	PHASE_FIRST,
};

static bool (*const makers[])(struct report *) = {
	[CONTROL_STATUS] = report_status,
	[CONTROL_DEVICES] = report_devices,
	[CONTROL_GROUPS] = report_groups,
	[CONTROL_LINKS] = report_links,
	[CONTROL_CONNECTIONS] = report_connections,
	[CONTROL_RMBS] = report_rmbs,
	[CONTROL_STATS] = report_stats,
	[CONTROL_DRAIN] = report_drain,
	[CONTROL_COMMAND_CNT] = NULL, /* none for those that act */
};

/* Resident memory of this process; 0 when the kernel does not say. */
static uint64_t
read_rss(void)
{
	FILE *f = fopen("/proc/self/statm", "re");
	uint64_t pages = 0;

	if (f == NULL)
		return 0;
	if (fscanf(f, "%*u %" SCNu64, &pages) != 1)
		pages = 0;
	fclose(f);
	return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

int64_t
report_wall_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	return (int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

int64_t
report_wall_ms(void)
{
	return report_wall_us() / 1000;
}

void
report_source_init(struct report_source *src, struct worker *w, const struct control_stats *stats)
{
	*src = (struct report_source){
		.worker = w,
		.control = stats,
		.version = PACKAGE_VERSION,
		.wall_ms = report_wall_ms(),
		.pid = (uint32_t)getpid(),
		.rss_bytes = read_rss(),
	};
}

static void
begin_frame(struct json_writer *jw, struct outbuf *out, const char *command, int64_t wall_ms)
{
	jw_init(jw, out);
	jw_object(jw, NULL);
	jw_int(jw, "schema", REPORT_SCHEMA);
	jw_string(jw, "command", command);
	jw_int(jw, "time_ms", wall_ms);
}

void
report_begin(struct json_writer *jw, struct outbuf *out, enum control_command c, int64_t wall_ms)
{
	begin_frame(jw, out, control_commands[c].name, wall_ms);
	jw_null(jw, "error");
	jw_object(jw, "data");
}

void
report_end(struct json_writer *jw)
{
	jw_object_end(jw);
	jw_object_end(jw);
	jw_end(jw);
}

void
report_error(struct outbuf *out, const char *command, int64_t wall_ms, const char *code, const char *text)
{
	struct json_writer jw;

	begin_frame(&jw, out, command, wall_ms);
	jw_object(&jw, "error");
	jw_string(&jw, "code", code);
	jw_string(&jw, "text", text);
	jw_object_end(&jw);
	jw_null(&jw, "data");
	jw_object_end(&jw);
	jw_end(&jw);
}

bool
report_has(enum control_command c)
{
	return makers[c] != NULL;
}

void
report_start(struct report *r, const struct report_source *src, const struct control_request *req, struct outbuf *out)
{
	assert(report_has(req->command));
	*r = (struct report){ .src = *src, .req = *req, .phase = PHASE_FRAME };
	jw_init(&r->jw, out);
}

bool
report_step(struct report *r)
{
	if (r->phase == PHASE_FRAME) {
		report_begin(&r->jw, r->jw.out, r->req.command, r->src.wall_ms);
		r->phase = PHASE_FIRST;
	}
	if (makers[r->req.command](r))
		return true;
	report_end(&r->jw);
	return false;
}

bool
report_next_phase(struct report *r)
{
	r->phase++;
	r->pos = 0;
	return true;
}

bool
report_count_sessions(struct report *r)
{
	struct session_info s;

	for (unsigned i = 0; i < REPORT_STEP_ITEMS; i++) {
		if (!worker_session_next(r->src.worker, &r->pos, &s))
			return false;
		r->sum.conns[s.mode]++;
	}
	return true;
}

void
report_reason(struct json_writer *jw, const char *key, const struct smcr_diag *d)
{
	struct sockaddr_storage mpa_peer = { 0 };

	jw_object(jw, key);
	report_hex32(jw, "local_code", d->local);
	jw_string(jw, "local_text", d->local != 0 ? clc_diag_str(d->local) : "");
	report_hex32(jw, "peer_code", d->peer);
	jw_string(jw, "peer_text", d->peer != 0 ? clc_diag_str(d->peer) : "");
	jw_string(jw, "detail", d->local != 0 && d->detail != NULL ? d->detail : "");
	if (d->local != 0 && d->mpa_port != 0)
		addr_from_v6(d->rnic.b, d->mpa_port, &mpa_peer);
	report_sockaddr(jw, "mpa_peer", &mpa_peer);
	jw_bool(jw, "out_of_sync", d->out_of_sync);
	jw_bool(jw, "held_off", d->held_off);
	jw_object_end(jw);
}

void
report_sockaddr(struct json_writer *jw, const char *key, const struct sockaddr_storage *ss)
{
	char text[ADDR_STR_MAX];

	jw_string(jw, key, ss->ss_family != AF_UNSPEC ? addr_format_port(ss, text, sizeof(text)) : "");
}

void
report_gid(struct json_writer *jw, const char *key, const struct rnic_gid *gid)
{
	char text[INET6_ADDRSTRLEN];

	inet_ntop(AF_INET6, gid->b, text, sizeof(text));
	jw_string(jw, key, text);
}

void
report_mac(struct json_writer *jw, const char *key, const uint8_t mac[6])
{
	char text[18];

	snprintf(text, sizeof(text), "%02x:%02x:%02x:%02x:%02x:%02x", mac[0], mac[1], mac[2], mac[3], mac[4], mac[5]);
	jw_string(jw, key, text);
}

void
report_hex32(struct json_writer *jw, const char *key, uint32_t v)
{
	char text[11];

	snprintf(text, sizeof(text), "0x%08" PRIx32, v);
	jw_string(jw, key, text);
}

void
report_ms(struct json_writer *jw, const char *key, int64_t ns)
{
	jw_int(jw, key, ns / 1000000);
}
