/* Frame and parts of all reports; the summaries: status, drain, stats. See report.h. */
#include <config.h>

#include "daemon/control/report.h"

#include <arpa/inet.h>
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/addr.h"
#include "daemon/session/cause.h"
#include "daemon/session/peer_rule.h"
#include "daemon/session/session.h"
#include "daemon/session/targets.h"
#include "wire/clc.h"

#define REASONS_SHOWN 10

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

static int64_t
limit_of(int resource)
{
	struct rlimit lim;

	return getrlimit((__rlimit_resource_t)resource, &lim) == 0 && lim.rlim_cur <= INT64_MAX ? (int64_t)lim.rlim_cur
	                                                                                        : -1;
}

void
report_source_init(struct report_source *src, struct workers *ws, const struct control_stats *stats,
    const struct confine_state *confine)
{
	FILE *f = fopen("/proc/self/statm", "re");
	uint64_t pages = 0; /* resident; 0 when the kernel does not say */

	if (f != NULL && fscanf(f, "%*u %" SCNu64, &pages) != 1)
		pages = 0;
	if (f != NULL)
		fclose(f);
	*src = (struct report_source){
		.workers = ws,
		.control = stats,
		.confine = confine,
		.version = PACKAGE_VERSION,
		.wall_ms = report_wall_ms(),
		.pid = (uint32_t)getpid(),
		.rss_bytes = pages * (uint64_t)sysconf(_SC_PAGESIZE),
		.open_files_max = limit_of(RLIMIT_NOFILE),
		.locked_bytes_max = limit_of(RLIMIT_MEMLOCK),
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
	jw_string(jw, "transport", d->over != NULL ? d->over : "");
	jw_array(jw, "offered");
	for (unsigned bit = 1; bit < CLC_TRANSPORT_PREWARM; bit <<= 1)
		if ((d->offered & bit) != 0 && clc_transport_str(bit) != NULL)
			jw_string(jw, NULL, clc_transport_str(bit));
	jw_array_end(jw);
	jw_bool(jw, "sctp_held_off", d->sctp_held_off);
	jw_bool(jw, "out_of_sync", d->out_of_sync);
	jw_bool(jw, "held_off", d->held_off);
	jw_object_end(jw);
}

void
report_peer(struct json_writer *jw, const struct smcr_peer_info *p)
{
	jw_uint(jw, "version", p->version);
	jw_uint(jw, "release", p->release);
	jw_bool(jw, "foreign", p->foreign);
	jw_string(jw, "eid", p->eid);
	jw_string(jw, "peer_os", p->os != 0 ? clc_os_str(p->os) : "");
	jw_string(jw, "peer_host", p->host);
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

/* -- summaries: objects are counted in several steps, worker by worker, before anything is written -- */

enum status_phase {
	STATUS_SESSIONS,
	STATUS_GROUPS,
	STATUS_LINKS,
	STATUS_REST,
	STATUS_SUMMARY,
	STATUS_WORKERS,
	STATUS_SERVICES,
};

bool
report_next_worker(struct report *r)
{
	if (r->nr == r->last)
		return false;
	r->nr++;
	r->pos = 0;
	return true;
}

/* Counts up to REPORT_STEP_ITEMS objects of the phase; false when all are counted. */
static bool
count_objects(struct report *r)
{
	const struct smcr *eng = worker_engine(r->worker);
	struct report_sum *sum = &r->sum[r->nr];
	struct smcr_group_info g;
	struct smcr_link_info l;
	struct session_info s;
	bool more = true;

	for (unsigned i = 0; more && i < REPORT_STEP_ITEMS; i++) {
		if (r->phase == STATUS_SESSIONS) {
			more = worker_session_next(r->worker, &r->pos, &s);
			if (more)
				sum->conns[s.mode]++;
		} else if (r->phase == STATUS_GROUPS) {
			more = smcr_group_next(eng, &r->pos, &g);
			sum->groups += more;
			sum->rmb_bytes += more ? g.rmb_bytes : 0;
			sum->sndbuf_bytes += more ? g.sndbuf_bytes : 0;
		} else {
			more = smcr_link_next(eng, &r->pos, &l);
			sum->links += more;
		}
	}
	return more;
}

static void
count_rest(struct report *r)
{
	struct report_sum *sum = &r->sum[r->nr];
	struct worker_stats ws;
	struct rnic_dev *dev;

	worker_stats(r->worker, &ws);
	sum->turns = ws.turns;
	sum->rmb_bytes_max = smcr_rmb_bytes_max(worker_engine(r->worker));
	while ((dev = devices_get(worker_devices(r->worker), (unsigned)sum->devices)) != NULL) {
		sum->devices++;
		sum->devices_up += rnic_query(dev).port == RNIC_PORT_UP;
	}
}

static struct report_sum
total_of(const struct report *r)
{
	struct report_sum all = { 0 };

	for (unsigned i = r->first; i <= r->last; i++) {
		const struct report_sum *one = &r->sum[i];

		for (unsigned mode = 0; mode < 3; mode++)
			all.conns[mode] += one->conns[mode];
		all.groups += one->groups;
		all.links += one->links;
		all.rmb_bytes += one->rmb_bytes;
		all.rmb_bytes_max += one->rmb_bytes_max;
		all.sndbuf_bytes += one->sndbuf_bytes;
		all.devices += one->devices;
		all.devices_up += one->devices_up;
	}
	return all;
}

void
report_conn_counts(struct json_writer *jw, const char *key, const uint64_t conns[3])
{
	jw_object(jw, key);
	jw_uint(jw, "smcr", conns[SESSION_SMCR]);
	jw_uint(jw, "tcp", conns[SESSION_TCP]);
	jw_uint(jw, "setup", conns[SESSION_SETUP]);
	jw_object_end(jw);
}

static void
write_option(struct json_writer *jw, const struct session_pool *pool)
{
	const struct smcopt *option = pool->option;

	jw_object(jw, "tcp_option");
	jw_uint(jw, "services", pool->option_services);
	jw_bool(jw, "usable", smcopt_usable(option));
	jw_string(jw, "text", option != NULL ? option->why : "");
	jw_object_end(jw);
}

static void
write_summary(struct report *r)
{
	static const struct confine_state none = { 0 };
	const struct confine_state *confine = r->src.confine != NULL ? r->src.confine : &none;
	const struct report_sum sum = total_of(r);
	struct json_writer *jw = &r->jw;
	struct worker_stats ws;

	/* What all workers have alike, of the one at hand. */
	worker_stats(r->worker, &ws);
	jw_string(jw, "version", r->src.version);
	jw_uint(jw, "pid", r->src.pid);
	report_ms(jw, "uptime_ms", ws.uptime_ns);
	jw_bool(jw, "draining", ws.draining);
	jw_uint(jw, "successor", r->src.successor);
	jw_uint(jw, "rss_bytes", r->src.rss_bytes);
	jw_int(jw, "open_files_max", r->src.open_files_max);
	jw_int(jw, "locked_bytes_max", r->src.locked_bytes_max);
	report_conn_counts(jw, "connections", sum.conns);
	jw_uint(jw, "groups", sum.groups);
	jw_uint(jw, "links", sum.links);
	jw_uint(jw, "rmb_bytes", sum.rmb_bytes);
	jw_uint(jw, "rmb_bytes_max", sum.rmb_bytes_max);
	jw_uint(jw, "sndbuf_bytes", sum.sndbuf_bytes);
	jw_uint(jw, "devices", sum.devices);
	jw_uint(jw, "devices_up", sum.devices_up);
	jw_object(jw, "confinement");
	jw_string(jw, "mode", confine_mode_words[confine->mode]);
	for (unsigned i = 0; i < CONFINE_PART_CNT; i++) {
		jw_object(jw, confine_part_words[i]);
		jw_bool(jw, "on", confine->part[i].on);
		jw_string(jw, "text", confine->part[i].text);
		jw_object_end(jw);
	}
	jw_object_end(jw);
	write_option(jw, worker_sessions(r->worker));
}

static void
write_worker(struct json_writer *jw, unsigned nr, const struct report_sum *sum)
{
	jw_object(jw, NULL);
	jw_uint(jw, "worker", nr + 1);
	jw_uint(jw, "turns", sum->turns);
	report_conn_counts(jw, "connections", sum->conns);
	jw_uint(jw, "groups", sum->groups);
	jw_uint(jw, "links", sum->links);
	jw_uint(jw, "rmb_bytes", sum->rmb_bytes);
	jw_object_end(jw);
}

void
report_write_service(struct json_writer *jw, const struct service_info *s)
{
	char text[CONFIG_TO_STR_MAX], waits[TARGETS_WAIT_MAX];

	jw_string(jw, "name", s->cfg->name);
	jw_string(jw, "kind", s->cfg->kind == CONFIG_INGRESS ? "ingress" : "egress");
	report_sockaddr(jw, "listen", &s->cfg->listen);
	jw_string(jw, "to", config_to_str(s->cfg, text));
	jw_string(jw, "waiting", targets_waiting(s->targets, waits));
	jw_string(jw, "peer", peer_rule_word(s->cfg->peer));
	jw_bool(jw, "disabled", s->disabled);
	jw_uint(jw, "connections", s->connections);
	jw_uint(jw, "connections_max", s->cfg->max_connections);
	jw_uint(jw, "accepted", s->accepted);
	jw_uint(jw, "refused_allow", s->refused_allow);
	jw_uint(jw, "refused_max", s->refused_max);
	jw_uint(jw, "refused_per_peer", s->refused_per_peer);
	jw_uint(jw, "refused_connect", s->refused_connect);
	jw_uint(jw, "refused_fallback", s->refused_fallback);
	jw_uint(jw, "refused_disabled", s->refused_disabled);
	jw_uint(jw, "fallbacks", s->fallbacks);
	jw_uint(jw, "resets", s->resets);
}

void
report_add_service(struct service_info *sum, const struct service_info *one)
{
	sum->cfg = one->cfg;
	sum->targets = one->targets;
	sum->connections += one->connections;
	sum->accepted += one->accepted;
	sum->refused_allow += one->refused_allow;
	sum->refused_max += one->refused_max;
	sum->refused_per_peer += one->refused_per_peer;
	sum->refused_connect += one->refused_connect;
	sum->refused_fallback += one->refused_fallback;
	sum->refused_disabled += one->refused_disabled;
	sum->disabled = sum->disabled || one->disabled;
	sum->fallbacks += one->fallbacks;
	sum->resets += one->resets;
}

/* The service at pos, which is the same in every worker: a reload does not come between them. False when there is none. */
static bool
step_service(struct report *r)
{
	struct service_info one;
	uint32_t pos = r->pos;

	if (!worker_service_next(r->worker, &pos, &one))
		return false;
	report_add_service(&r->service, &one);
	if (r->nr < r->last) {
		r->nr++;
		return true;
	}
	jw_object(&r->jw, NULL);
	report_write_service(&r->jw, &r->service);
	jw_object_end(&r->jw);
	r->service = (struct service_info){ 0 };
	r->pos = pos;
	r->nr = r->first;
	return true;
}

static bool
report_status(struct report *r)
{
	switch ((enum status_phase)r->phase) {
	case STATUS_SESSIONS:
	case STATUS_GROUPS:
	case STATUS_LINKS:
		if (count_objects(r))
			return true;
		break;
	case STATUS_REST:
		count_rest(r);
		if (report_next_worker(r)) {
			r->phase = STATUS_SESSIONS;
			return true;
		}
		break;
	case STATUS_SUMMARY:
		write_summary(r);
		jw_array(&r->jw, "workers");
		break;
	case STATUS_WORKERS:
		if (r->first + r->pos <= r->last) {
			write_worker(&r->jw, r->first + r->pos, &r->sum[r->first + r->pos]);
			r->pos++;
			return true;
		}
		jw_array_end(&r->jw);
		jw_array(&r->jw, "services");
		r->nr = r->first;
		break;
	case STATUS_SERVICES:
		if (step_service(r))
			return true;
		jw_array_end(&r->jw);
		return false;
	}
	r->phase++;
	r->pos = 0;
	return true;
}

static bool
report_drain(struct report *r)
{
	struct worker_stats ws;

	if (count_objects(r) || report_next_worker(r))
		return true;
	worker_stats(r->worker, &ws);
	const struct report_sum sum = total_of(r);
	jw_bool(&r->jw, "draining", ws.draining);
	report_conn_counts(&r->jw, "connections", sum.conns);
	return false;
}

static void
write_reasons(struct json_writer *jw, const char *key, const struct tally *t)
{
	struct tally_entry top[REASONS_SHOWN];
	unsigned n = tally_top(t, top, REASONS_SHOWN);

	jw_array(jw, key);
	for (unsigned i = 0; i < n; i++) {
		jw_object(jw, NULL);
		report_hex32(jw, "code", top[i].key);
		jw_string(jw, "text", clc_diag_str(top[i].key));
		jw_uint(jw, "count", top[i].cnt);
		jw_object_end(jw);
	}
	jw_array_end(jw);
}

#define OF_SMCR smcr
#define OF_WORKER (&worker)
#define OF_CONTROL control
#define KEY(source, field, words) CONTROL_COUNTER_KEY(source, field),
#define VALUE(source, field, words) OF_##source->field,

static void
add_counters(struct report *r)
{
	static const struct control_stats no_control = { 0 };
	const struct session_fallbacks *fb = &worker_sessions(r->worker)->fallbacks;
	const struct smcr_counters *smcr = smcr_counters(worker_engine(r->worker));
	const struct control_stats *control = r->nr == r->first ? r->src.control : &no_control; /* it is no worker's */
	struct worker_stats worker;

	worker_stats(r->worker, &worker);
	const uint64_t values[] = { CONTROL_COUNTERS(REPORT_NONE, VALUE) };
	for (size_t i = 0; i < REPORT_COUNTERS; i++)
		r->counters[i] += values[i];
	tally_merge(&r->fallbacks.local, &fb->local);
	tally_merge(&r->fallbacks.peer, &fb->peer);
	const struct smcr_histograms *h = smcr_histograms(worker_engine(r->worker));
	histogram_merge(&r->histograms.write_size, &h->write_size);
	histogram_merge(&r->histograms.blocked, &h->blocked);
}

/* -- stats: histograms, and what the sessions of each service come to -- */

static void
write_bounds(struct json_writer *jw, const char *key, const uint64_t bounds[HISTOGRAM_BOUNDS])
{
	jw_array(jw, key);
	for (unsigned i = 0; i < HISTOGRAM_BOUNDS; i++)
		jw_uint(jw, NULL, bounds[i]);
	jw_array_end(jw);
}

static void
write_histogram(struct json_writer *jw, const char *key, const struct histogram *h, const char *sum_key, uint64_t unit)
{
	jw_object(jw, key);
	jw_array(jw, "counts");
	for (unsigned i = 0; i <= HISTOGRAM_BOUNDS; i++)
		jw_uint(jw, NULL, h->cnt[i]);
	jw_array_end(jw);
	jw_uint(jw, sum_key, h->sum / unit);
	jw_object_end(jw);
}

static void
write_histograms(struct json_writer *jw, const struct smcr_histograms *h)
{
	write_bounds(jw, "time_bounds_us", histogram_times_us);
	write_bounds(jw, "size_bounds_bytes", histogram_sizes);
	write_histogram(jw, "write_size", &h->write_size, "sum_bytes", 1);
	write_histogram(jw, "blocked_time", &h->blocked, "sum_us", 1000);
}

static void
write_resets(struct json_writer *jw, enum config_kind kind, const struct tally *t)
{
	struct tally_entry top[TALLY_KEYS];
	unsigned n = tally_top(t, top, TALLY_KEYS);

	jw_array(jw, "reset_reasons");
	for (unsigned i = 0; i < n; i++) {
		jw_object(jw, NULL);
		jw_string(jw, "text", cause_str(kind, top[i].key));
		jw_uint(jw, "count", top[i].cnt);
		jw_object_end(jw);
	}
	jw_array_end(jw);
}

static void
write_figures(struct json_writer *jw, const struct config_service *cfg, const struct service_figures *f)
{
	jw_object(jw, NULL);
	jw_string(jw, "name", cfg->name);
	jw_string(jw, "kind", cfg->kind == CONFIG_INGRESS ? "ingress" : "egress");
	report_conn_counts(jw, "modes", f->modes);
	jw_uint(jw, "bytes_from_app", f->bytes[WAY_FROM_APP]);
	jw_uint(jw, "bytes_to_app", f->bytes[WAY_TO_APP]);
	write_histogram(jw, "setup_time", &f->setup, "sum_us", 1000);
	write_histogram(jw, "connect_time", &f->connect, "sum_us", 1000);
	write_histogram(jw, "life_time", &f->life, "sum_us", 1000);
	write_reasons(jw, "fallback_reasons_local", &f->reasons->local);
	write_reasons(jw, "fallback_reasons_peer", &f->reasons->peer);
	write_resets(jw, cfg->kind, &f->reasons->reset);
	jw_object_end(jw);
}

/* As step_service. */
static bool
step_figures(struct report *r)
{
	const struct service_figures *one;
	const struct config_service *cfg;
	uint32_t pos = r->pos;

	if (!worker_figures_next(r->worker, &pos, &cfg, &one))
		return false;
	r->figures.reasons = &r->reasons;
	figures_merge(&r->figures, one);
	if (r->nr < r->last) {
		r->nr++;
		return true;
	}
	write_figures(&r->jw, cfg, &r->figures);
	r->figures = (struct service_figures){ 0 };
	r->reasons = (struct service_reasons){ 0 };
	r->pos = pos;
	r->nr = r->first;
	return true;
}

static bool
report_stats(struct report *r)
{
	static const char *const keys[] = { CONTROL_COUNTERS(REPORT_NONE, KEY) };
	struct json_writer *jw = &r->jw;

	if (r->phase > 0) {
		if (step_figures(r))
			return true;
		jw_array_end(jw);
		return false;
	}
	add_counters(r);
	if (report_next_worker(r))
		return true;
	jw_object(jw, "counters");
	for (size_t i = 0; i < REPORT_COUNTERS; i++)
		jw_uint(jw, keys[i], r->counters[i]);
	jw_object_end(jw);
	write_reasons(jw, "fallback_reasons_local", &r->fallbacks.local);
	write_reasons(jw, "fallback_reasons_peer", &r->fallbacks.peer);
	write_histograms(jw, &r->histograms);
	jw_array(jw, "services");
	r->phase++;
	r->pos = 0;
	r->nr = r->first;
	return true;
}

/* -- the walk -- */

/* A maker does one step and writes members of "data"; false when there are no more. It keeps its place in phase and pos. */
static bool (*const makers[])(struct report *) = {
	[CONTROL_STATUS] = report_status,
	[CONTROL_SERVICE] = report_service,
	[CONTROL_DEVICES] = report_list,
	[CONTROL_GROUPS] = report_list,
	[CONTROL_LINKS] = report_list,
	[CONTROL_CONNECTIONS] = report_list,
	[CONTROL_RMBS] = report_list,
	[CONTROL_STATS] = report_stats,
	[CONTROL_CLOSE] = report_close,
	[CONTROL_DRAIN] = report_drain,
	[CONTROL_UNDRAIN] = report_drain,
	[CONTROL_COMMAND_CNT] = NULL, /* none for those that act */
};

void
report_start(struct report *r, const struct report_source *src, const struct control_request *req, struct outbuf *out)
{
	assert(makers[req->command] != NULL);
	*r = (struct report){ .src = *src, .req = *req, .last = workers_cnt(src->workers) - 1 };
	if (req->worker != 0)
		r->first = r->last = req->worker - 1;
	r->nr = r->first;
	report_begin(&r->jw, out, req->command, src->wall_ms);
}

struct batch {
	struct report *r;
	unsigned *budget;
	bool more;
};

static void
run_batch(struct worker *w, void *arg)
{
	struct batch *b = arg;
	struct report *r = b->r;
	const unsigned nr = r->nr;

	r->worker = w;
	do {
		--*b->budget;
		b->more = makers[r->req.command](r);
		if (r->tired)
			*b->budget = 0;
		r->tired = false;
	} while (b->more && *b->budget > 0 && r->nr == nr && outbuf_room(r->jw.out) >= REPORT_STEP_BYTES);
	r->worker = NULL;
}

bool
report_run(struct report *r, unsigned *budget)
{
	struct batch b = { .r = r, .budget = budget };

	workers_call(r->src.workers, r->nr, run_batch, &b);
	if (!b.more)
		report_end(&r->jw);
	return b.more;
}

bool
report_step(struct report *r)
{
	unsigned budget = 1;

	return report_run(r, &budget);
}
