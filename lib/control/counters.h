/*
 * Every counter of the daemon: X(source, field, words). The source is the struct that it is a field of: SMCR (struct
 * smcr_counters), WORKER (struct worker_stats) or CONTROL (struct control_stats, with "control_" before its name),
 * or LOG (struct log_counters, with "log_").
 * H(heading) begins a section of smcrctl's list. The words are also their meaning in doc/json-fields.md and the help of their metrics.
 */
#pragma once

/* clang-format off */
#define CONTROL_COUNTERS(H, X) \
	H("Proxied connections") \
	X(WORKER, sessions_opened, "opened") \
	X(WORKER, sessions_closed, "closed") \
	X(WORKER, sessions_reset, "ended by a reset") \
	X(WORKER, sessions_closed_operator, "of them, closed by the operator") \
	X(WORKER, tcp_bytes, "bytes carried on TCP after fallback") \
	H("SMC-R's TCP option, where a service looks at it") \
	X(WORKER, option_agreed, "both ends had it") \
	X(WORKER, option_missing, "the peer had none") \
	X(WORKER, option_unknown, "ours could not be sent") \
	X(WORKER, option_stray_clc, "CLC messages of clients without it") \
	H("SMC-R rendezvous") \
	X(SMCR, conns_client, "begun as client") \
	X(SMCR, conns_server, "begun as server") \
	X(SMCR, established_client, "on SMC-R as client") \
	X(SMCR, established_server, "on SMC-R as server") \
	X(SMCR, fallback_local, "fallen back to TCP for our reason") \
	X(SMCR, fallback_peer, "fallen back to TCP, declined by the peer") \
	X(SMCR, fallback_held_off, "fallen back to TCP, peer held off after failures") \
	X(SMCR, first_contacts, "first contacts (new link group)") \
	X(SMCR, first_contacts_v2, "of them, SMC version 2") \
	X(SMCR, first_contacts_failed, "first contacts failed") \
	X(SMCR, sctp_shunned, "first contacts not over SCTP, which had failed with the peer") \
	X(SMCR, no_common_ueid, "SMC version 2 offered without a UEID in common") \
	X(SMCR, out_of_sync, "ends disagreed about a link group") \
	H("SMC-R data") \
	X(SMCR, bytes_sent, "bytes sent") \
	X(SMCR, bytes_received, "bytes received") \
	X(SMCR, writes, "RDMA writes") \
	X(SMCR, urgent_sent, "urgent bytes sent") \
	X(SMCR, urgent_received, "urgent bytes received") \
	X(SMCR, writer_blocked, "peer's buffer was full") \
	X(SMCR, started_over, "steps to the start of a buffer of which all was consumed") \
	X(SMCR, sndbuf_full, "send buffer was full") \
	X(SMCR, sndbuf_short, "send buffer missing (pool empty)") \
	X(SMCR, closed_ok, "connections closed in order") \
	X(SMCR, closed_reset, "connections aborted") \
	X(SMCR, closed_peer_operator, "of them, by the peer's operator") \
	H("Link groups, links and memory") \
	X(SMCR, groups_deleted, "link groups ended") \
	X(SMCR, groups_ended_for_room, "link groups ended early, as queue pairs were short") \
	X(SMCR, links_up, "links came up") \
	X(SMCR, links_down, "links went down") \
	X(SMCR, links_lost, "of them, those that broke") \
	X(SMCR, failovers, "links lost while others went on") \
	X(SMCR, conns_moved, "connections moved to another link") \
	X(SMCR, conns_replayed, "of them, with data sent again") \
	X(SMCR, bytes_replayed, "bytes sent again") \
	X(SMCR, failover_validations, "moves that the peer told us") \
	X(SMCR, failover_lost, "of them, data was lost: connection reset") \
	X(SMCR, links_added, "links added to a group") \
	X(SMCR, add_link_rejected, "ADD LINK rejected, ours or by us: usual where a side has one device") \
	X(SMCR, add_link_failed, "attempts at another link that came to none, rejections included") \
	X(SMCR, add_link_retries, "missing links tried again") \
	X(SMCR, delete_link_resent, "DELETE LINK sent again over another link") \
	X(SMCR, rkey_retries, "CONFIRM RKEY tried again") \
	X(SMCR, llc_collisions, "LLC exchanges that met the peer's") \
	X(SMCR, llc_limited, "ADD LINKs of peers that came too often") \
	X(SMCR, asymmetric_replaced, "asymmetric links replaced") \
	X(SMCR, rebalanced, "connections moved by the operator") \
	X(SMCR, rmbs_made, "RMBs made") \
	X(SMCR, rmbs_deleted, "RMBs deleted") \
	X(SMCR, elems_reused, "RMB elements used again") \
	X(SMCR, pages_given_back, "bytes of idle RMB elements given back to the system") \
	X(SMCR, elems_quarantined, "RMB elements put in quarantine") \
	X(SMCR, elems_let_go, "RMB elements that came back from quarantine") \
	X(SMCR, elem_conflicts, "RMB element conflicts") \
	H("Protocol messages") \
	X(SMCR, clc_sent, "CLC sent") \
	X(SMCR, clc_received, "CLC received") \
	X(SMCR, llc_sent, "LLC sent") \
	X(SMCR, llc_received, "LLC received") \
	X(SMCR, cdc_sent, "CDC sent") \
	X(SMCR, cdc_received, "CDC received") \
	X(SMCR, test_links, "TEST LINK sent") \
	H("Errors and limits") \
	X(SMCR, bad_clc, "malformed CLC messages") \
	X(SMCR, bad_llc, "malformed LLC messages") \
	X(SMCR, bad_cdc, "malformed CDC messages") \
	X(SMCR, cdc_unknown, "CDC messages for no connection of ours") \
	X(SMCR, cdc_stale, "CDC messages that came too late") \
	X(SMCR, llc_ignored, "LLC messages ignored") \
	X(SMCR, llc_queue_full, "LLC messages that the peer did not take") \
	X(SMCR, clc_timeouts, "CLC messages not answered in time") \
	X(SMCR, llc_timeouts, "LLC messages not answered in time") \
	X(SMCR, refused_mpa_peers, "RDMA addresses of servers refused (mpa_peers)") \
	X(SMCR, refused_conns_max, "refused: too many connections") \
	X(SMCR, refused_peers_max, "declined: first contact with too many peers at once") \
	X(SMCR, refused_rmbs_max, "refused: RMBs beyond the limit of a link group") \
	X(SMCR, refused_groups_addr, "declined: link groups beyond groups_per_address") \
	X(SMCR, refused_qp, "declined: no queue pair for another link group") \
	X(SMCR, refused_rmb_memory, "refused: RMBs beyond rmb_memory_max or group_memory_max") \
	X(SMCR, refused_send_memory, "refused: send buffers beyond send_memory_max or group_memory_max") \
	X(SMCR, elems_shrunk, "connections with a smaller RMB element, as memory was short") \
	X(SMCR, refused_quarantine, "refused: connections on a link group with quarantine_max elements") \
	X(SMCR, refused_memory, "refused: out of memory") \
	X(WORKER, accept_pauses, "accepting paused (out of file descriptors)") \
	H("Daemon") \
	X(WORKER, turns, "turns of the event loop") \
	X(WORKER, spins, "waits that began by polling (spin)") \
	X(WORKER, spin_hits, "of them ended by an event before the sleep") \
	X(WORKER, spin_wanted, "of them given up: others wanted the processor") \
	X(WORKER, spun_us, "microseconds of polling") \
	X(LOG, lines_lost, "log lines lost (not written in time)") \
	X(CONTROL, clients, "control clients") \
	X(CONTROL, clients_refused, "control clients refused (too many)") \
	X(CONTROL, clients_timed_out, "control clients timed out") \
	X(CONTROL, requests, "control requests") \
	X(CONTROL, requests_bad, "control requests malformed") \
	X(CONTROL, trace_sent, "trace messages delivered") \
	X(CONTROL, trace_dropped, "trace messages dropped (slow reader)") \
	X(CONTROL, traces_evicted, "traces ended for want of a place")
/* clang-format on */

/* The name of a counter in JSON. */
#define CONTROL_COUNTER_KEY(source, field) CONTROL_COUNTER_OF_##source #field
#define CONTROL_COUNTER_OF_SMCR
#define CONTROL_COUNTER_OF_WORKER
#define CONTROL_COUNTER_OF_CONTROL "control_"
#define CONTROL_COUNTER_OF_LOG "log_"
