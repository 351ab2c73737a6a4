/* All counters by name; see stat_table.h. */
#include "daemon/control/stat_table.h"

#include <string.h>

/* clang-format off */
#define S(field) { #field, STAT_SMCR, offsetof(struct smcr_counters, field) }
#define W(field) { #field, STAT_WORKER, offsetof(struct worker_stats, field) }
#define C(field) { "control_" #field, STAT_CONTROL, offsetof(struct control_stats, field) }
/* clang-format on */

static const struct stat_desc stats[] = {
	W(sessions_opened),
	W(sessions_closed),
	W(sessions_reset),
	W(tcp_bytes),

	S(conns_client),
	S(conns_server),
	S(established_client),
	S(established_server),
	S(fallback_local),
	S(fallback_peer),
	S(fallback_held_off),
	S(first_contacts),
	S(first_contacts_failed),
	S(out_of_sync),

	S(bytes_sent),
	S(bytes_received),
	S(writes),
	S(urgent_sent),
	S(urgent_received),
	S(writer_blocked),
	S(sndbuf_full),
	S(sndbuf_short),
	S(closed_ok),
	S(closed_reset),

	S(groups_deleted),
	S(groups_ended_for_room),
	S(links_up),
	S(links_down),
	S(failovers),
	S(conns_moved),
	S(conns_replayed),
	S(bytes_replayed),
	S(failover_validations),
	S(failover_lost),
	S(links_added),
	S(add_link_rejected),
	S(add_link_failed),
	S(add_link_retries),
	S(delete_link_resent),
	S(rkey_retries),
	S(llc_collisions),
	S(llc_limited),
	S(asymmetric_replaced),
	S(rebalanced),
	S(rmbs_made),
	S(rmbs_deleted),
	S(elems_reused),
	S(elems_quarantined),
	S(elems_let_go),
	S(elem_conflicts),

	S(clc_sent),
	S(clc_received),
	S(llc_sent),
	S(llc_received),
	S(cdc_sent),
	S(cdc_received),
	S(test_links),

	S(bad_clc),
	S(bad_llc),
	S(bad_cdc),
	S(cdc_unknown),
	S(cdc_stale),
	S(llc_ignored),
	S(llc_queue_full),
	S(clc_timeouts),
	S(llc_timeouts),
	S(refused_mpa_peers),
	S(refused_conns_max),
	S(refused_peers_max),
	S(refused_rmbs_max),
	S(refused_groups_addr),
	S(refused_qp),
	S(refused_rmb_memory),
	S(refused_quarantine),
	S(refused_memory),
	W(accept_pauses),

	W(turns),
	C(clients),
	C(clients_refused),
	C(clients_timed_out),
	C(requests),
	C(requests_bad),
	C(trace_sent),
	C(trace_dropped),
	C(traces_evicted),
};

unsigned
stat_cnt(void)
{
	return sizeof(stats) / sizeof(stats[0]);
}

const struct stat_desc *
stat_at(unsigned i)
{
	return &stats[i];
}

uint64_t
stat_value(const struct stat_desc *d, const struct stat_sources *src)
{
	const void *base[] = {
		[STAT_SMCR] = src->smcr,
		[STAT_WORKER] = src->worker,
		[STAT_CONTROL] = src->control,
	};
	uint64_t v;

	memcpy(&v, (const char *)base[d->source] + d->off, sizeof(v));
	return v;
}

static const char *const device_stats[] = {
	/* of cards */
	"sends_posted",
	"writes_posted",
	"doorbells",
	"completions",
	"polls",
	"wakeups",
	"rnr_retry_exc",
	"retry_exc",
	"remote_access_errs",
	"flushed",
	"other_errs",
	"async_events",
	"reads_sent",
	"mpa_refused_token",
	"mpa_refused_parked",
	/* of soft iWARP */
	"fpdus_sent",
	"fpdus_received",
	"bytes_sent",
	"bytes_received",
	"reads_served",
	"mpa_refused_address",
	"mpa_bad",
	"terminates_sent",
	"terminates_received",
	"crc_errors",
	"recv_stalls",
	"accept_pauses",
	"linger_refused",
	"no_memory",
};

unsigned
device_stat_cnt(void)
{
	return sizeof(device_stats) / sizeof(device_stats[0]);
}

const char *
device_stat_at(unsigned i)
{
	return device_stats[i];
}

uint64_t
device_stat_value(const char *key, const struct rnic_stat *of, unsigned cnt)
{
	for (unsigned i = 0; i < cnt; i++)
		if (strcmp(of[i].name, key) == 0)
			return of[i].value;
	return 0;
}
