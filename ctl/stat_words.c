/* Counters in words; see stat_words.h. Every counter of the daemon is here (check_ctl_show.c looks). */
#include "ctl/stat_words.h"

#define H_SESSIONS "Proxied connections"
#define H_RENDEZVOUS "SMC-R rendezvous"
#define H_DATA "SMC-R data"
#define H_GROUPS "Link groups, links and memory"
#define H_MESSAGES "Protocol messages"
#define H_ERRORS "Errors and limits"
#define H_DAEMON "Daemon"

static const struct stat_words stats[] = {
	{ "sessions_opened", H_SESSIONS, "opened" },
	{ "sessions_closed", H_SESSIONS, "closed" },
	{ "sessions_reset", H_SESSIONS, "ended by a reset" },
	{ "tcp_bytes", H_SESSIONS, "bytes carried on TCP after fallback" },

	{ "conns_client", H_RENDEZVOUS, "begun as client" },
	{ "conns_server", H_RENDEZVOUS, "begun as server" },
	{ "established_client", H_RENDEZVOUS, "on SMC-R as client" },
	{ "established_server", H_RENDEZVOUS, "on SMC-R as server" },
	{ "fallback_local", H_RENDEZVOUS, "fallen back to TCP for our reason" },
	{ "fallback_peer", H_RENDEZVOUS, "fallen back to TCP, declined by the peer" },
	{ "fallback_held_off", H_RENDEZVOUS, "fallen back to TCP, peer held off after failures" },
	{ "first_contacts", H_RENDEZVOUS, "first contacts (new link group)" },
	{ "first_contacts_failed", H_RENDEZVOUS, "first contacts failed" },
	{ "out_of_sync", H_RENDEZVOUS, "ends disagreed about a link group" },

	{ "bytes_sent", H_DATA, "bytes sent" },
	{ "bytes_received", H_DATA, "bytes received" },
	{ "writes", H_DATA, "RDMA writes" },
	{ "urgent_sent", H_DATA, "urgent bytes sent" },
	{ "urgent_received", H_DATA, "urgent bytes received" },
	{ "writer_blocked", H_DATA, "peer's buffer was full" },
	{ "sndbuf_full", H_DATA, "send buffer was full" },
	{ "sndbuf_short", H_DATA, "send buffer missing (pool empty)" },
	{ "closed_ok", H_DATA, "connections closed in order" },
	{ "closed_reset", H_DATA, "connections aborted" },

	{ "groups_deleted", H_GROUPS, "link groups ended" },
	{ "groups_ended_for_room", H_GROUPS, "link groups ended early, as queue pairs were short" },
	{ "links_up", H_GROUPS, "links came up" },
	{ "links_down", H_GROUPS, "links went down" },
	{ "failovers", H_GROUPS, "links lost while others went on" },
	{ "conns_moved", H_GROUPS, "connections moved to another link" },
	{ "conns_replayed", H_GROUPS, "of them, with data sent again" },
	{ "bytes_replayed", H_GROUPS, "bytes sent again" },
	{ "failover_validations", H_GROUPS, "moves that the peer told us" },
	{ "failover_lost", H_GROUPS, "of them, data was lost: connection reset" },
	{ "links_added", H_GROUPS, "links added to a group" },
	{ "add_link_rejected", H_GROUPS, "ADD LINK rejected, ours or by us" },
	{ "add_link_failed", H_GROUPS, "links that could not be added" },
	{ "add_link_retries", H_GROUPS, "missing links tried again" },
	{ "delete_link_resent", H_GROUPS, "DELETE LINK sent again over another link" },
	{ "rkey_retries", H_GROUPS, "CONFIRM RKEY tried again" },
	{ "llc_collisions", H_GROUPS, "LLC exchanges that met the peer's" },
	{ "llc_limited", H_GROUPS, "ADD LINKs of peers that came too often" },
	{ "asymmetric_replaced", H_GROUPS, "asymmetric links replaced" },
	{ "rebalanced", H_GROUPS, "connections moved by the operator" },
	{ "rmbs_made", H_GROUPS, "RMBs made" },
	{ "rmbs_deleted", H_GROUPS, "RMBs deleted" },
	{ "elems_reused", H_GROUPS, "RMB elements used again" },
	{ "elems_quarantined", H_GROUPS, "RMB elements put in quarantine" },
	{ "elems_let_go", H_GROUPS, "RMB elements that came back from quarantine" },
	{ "elem_conflicts", H_GROUPS, "RMB element conflicts" },

	{ "clc_sent", H_MESSAGES, "CLC sent" },
	{ "clc_received", H_MESSAGES, "CLC received" },
	{ "llc_sent", H_MESSAGES, "LLC sent" },
	{ "llc_received", H_MESSAGES, "LLC received" },
	{ "cdc_sent", H_MESSAGES, "CDC sent" },
	{ "cdc_received", H_MESSAGES, "CDC received" },
	{ "test_links", H_MESSAGES, "TEST LINK sent" },

	{ "bad_clc", H_ERRORS, "malformed CLC messages" },
	{ "bad_llc", H_ERRORS, "malformed LLC messages" },
	{ "bad_cdc", H_ERRORS, "malformed CDC messages" },
	{ "cdc_unknown", H_ERRORS, "CDC messages for no connection of ours" },
	{ "cdc_stale", H_ERRORS, "CDC messages that came too late" },
	{ "llc_ignored", H_ERRORS, "LLC messages ignored" },
	{ "llc_queue_full", H_ERRORS, "LLC messages that the peer did not take" },
	{ "clc_timeouts", H_ERRORS, "CLC messages not answered in time" },
	{ "llc_timeouts", H_ERRORS, "LLC messages not answered in time" },
	{ "refused_mpa_peers", H_ERRORS, "RDMA addresses of servers refused (mpa_peers)" },
	{ "refused_conns_max", H_ERRORS, "refused: too many connections" },
	{ "refused_peers_max", H_ERRORS, "declined: first contact with too many peers at once" },
	{ "refused_rmbs_max", H_ERRORS, "refused: RMBs beyond the limit of a link group" },
	{ "refused_groups_addr", H_ERRORS, "declined: link groups beyond groups_per_address" },
	{ "refused_qp", H_ERRORS, "declined: no queue pair for another link group" },
	{ "refused_rmb_memory", H_ERRORS, "refused: RMBs beyond rmb_memory_max" },
	{ "refused_quarantine", H_ERRORS, "refused: connections on a link group with quarantine_max elements" },
	{ "refused_memory", H_ERRORS, "refused: out of memory" },
	{ "accept_pauses", H_ERRORS, "accepting paused (out of file descriptors)" },

	{ "turns", H_DAEMON, "turns of the event loop" },
	{ "control_clients", H_DAEMON, "control clients" },
	{ "control_clients_refused", H_DAEMON, "control clients refused (too many)" },
	{ "control_clients_timed_out", H_DAEMON, "control clients timed out" },
	{ "control_requests", H_DAEMON, "control requests" },
	{ "control_requests_bad", H_DAEMON, "control requests malformed" },
	{ "control_trace_sent", H_DAEMON, "trace messages delivered" },
	{ "control_trace_dropped", H_DAEMON, "trace messages dropped (slow reader)" },
	{ "control_traces_evicted", H_DAEMON, "traces ended for want of a place" },
};

unsigned
stat_words_cnt(void)
{
	return sizeof(stats) / sizeof(stats[0]);
}

const struct stat_words *
stat_words_at(unsigned i)
{
	return &stats[i];
}
