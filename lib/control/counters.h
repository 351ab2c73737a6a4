/* Every counter of the daemon: X(source, field, words). The source is the struct of the field: SMCR (struct
 * smcr_counters), WORKER (struct worker_stats), CONTROL (struct control_stats, JSON prefix "control_") or LOG (struct
 * log_counters, JSON prefix "log_"). H(heading) begins a section of smcrctl's list. The words are also the meaning in
 * doc/json-fields.md and the help of the metric. */
#pragma once

/* clang-format off */
#define CONTROL_COUNTERS(H, X) \
	H("Proxied connections") \
	X(WORKER, sessions_opened, "opened") \
	X(WORKER, sessions_closed, "closed") \
	X(WORKER, sessions_reset, "ended by a reset") \
	X(WORKER, sessions_closed_operator, "of them, closed by the operator") \
	X(WORKER, tcp_bytes, "bytes carried on TCP after fallback") \
	H("SMC-R TCP option, on services that check it") \
	X(WORKER, option_agreed, "sent by both ends") \
	X(WORKER, option_missing, "not sent by the peer") \
	X(WORKER, option_unknown, "could not be sent by this host") \
	X(WORKER, option_stray_clc, "CLC messages from clients without it") \
	H("SMC-R rendezvous") \
	X(SMCR, conns_client, "begun as client") \
	X(SMCR, opened_client, "of them, opened over a link") \
	X(SMCR, not_opened_client, "of them, refused there by the peer, and begun again") \
	X(SMCR, opens_silent, "opened over a link that was silent then") \
	X(SMCR, conns_server, "begun as server") \
	X(SMCR, opened_server, "of them, opened over a link by the peer") \
	X(SMCR, not_opened_server, "of them, refused") \
	X(SMCR, established_client, "on SMC-R as client") \
	X(SMCR, established_server, "on SMC-R as server") \
	X(SMCR, fallback_local, "fallen back to TCP, local reason") \
	X(SMCR, fallback_peer, "fallen back to TCP, declined by the peer") \
	X(SMCR, fallback_held_off, "fallen back to TCP, peer held off after failures") \
	X(SMCR, first_contacts, "first contacts (new link group)") \
	X(SMCR, first_contacts_v2, "of them, SMC version 2") \
	X(SMCR, first_contacts_failed, "first contacts failed") \
	X(SMCR, sctp_shunned, "first contacts without SCTP, after SCTP failed with the peer") \
	X(SMCR, no_common_ueid, "SMC version 2 offered without a UEID in common") \
	X(SMCR, out_of_sync, "ends disagreed about a link group") \
	H("SMC-R data") \
	X(SMCR, bytes_sent, "bytes sent") \
	X(SMCR, bytes_received, "bytes received") \
	X(SMCR, writes, "RDMA writes") \
	X(SMCR, urgent_sent, "urgent bytes sent") \
	X(SMCR, urgent_received, "urgent bytes received") \
	X(SMCR, writer_blocked, "peer's buffer was full") \
	X(SMCR, started_over, "restarts at the start of a fully consumed buffer") \
	X(SMCR, sndbuf_full, "send buffer was full") \
	X(SMCR, sndbuf_short, "send buffer missing (pool empty)") \
	X(SMCR, closed_ok, "connections closed in order") \
	X(SMCR, closed_reset, "connections aborted") \
	X(SMCR, closed_peer_operator, "of them, by the peer's operator") \
	H("Link groups, links and memory") \
	X(SMCR, groups_deleted, "link groups ended") \
	X(SMCR, groups_ended_for_room, "link groups ended early for lack of queue pairs") \
	X(SMCR, links_up, "links came up") \
	X(SMCR, links_down, "links went down") \
	X(SMCR, links_lost, "of them, broken links") \
	X(SMCR, failovers, "links lost while another link of the group remained") \
	X(SMCR, conns_moved, "connections moved to another link") \
	X(SMCR, conns_replayed, "of them, with data sent again") \
	X(SMCR, bytes_replayed, "bytes sent again") \
	X(SMCR, failover_validations, "moves reported by the peer") \
	X(SMCR, failover_lost, "of them, data was lost: connection reset") \
	X(SMCR, links_added, "links added to a group") \
	X(SMCR, add_link_rejected, "ADD LINK rejected by either end: usual if one end has a single device") \
	X(SMCR, add_link_failed, "failed attempts to add a link, rejections included") \
	X(SMCR, add_link_retries, "retries of missing links") \
	X(SMCR, delete_link_resent, "DELETE LINK retransmitted over another link") \
	X(SMCR, rkey_retries, "CONFIRM RKEY retries") \
	X(SMCR, llc_collisions, "LLC exchanges that crossed one of the peer") \
	X(SMCR, llc_limited, "ADD LINK messages above the rate limit") \
	X(SMCR, asymmetric_replaced, "asymmetric links replaced") \
	X(SMCR, rebalanced, "connections moved by the operator") \
	X(SMCR, rmbs_made, "RMBs created") \
	X(SMCR, rmbs_deleted, "RMBs deleted") \
	X(SMCR, elems_reused, "RMB elements reused") \
	X(SMCR, pages_given_back, "bytes of idle RMB elements returned to the system") \
	X(SMCR, elems_quarantined, "RMB elements put in quarantine") \
	X(SMCR, elems_let_go, "RMB elements released from quarantine") \
	X(SMCR, elem_conflicts, "RMB element conflicts") \
	H("TLS between gateways") \
	X(WORKER, tls_handshakes, "peers that have proven their name") \
	X(WORKER, tls_resumed, "of these, by the keys of an earlier handshake") \
	X(WORKER, tls_failed, "connections without TLS, refused") \
	X(WORKER, tls_clear, "connections in clear, taken by the setting accept") \
	X(WORKER, tls_limited, "of tls_failed: too many handshakes of one source (tls.handshakes)") \
	X(WORKER, tls_not_spoken, "peers without TLS 1.3, or without smcrd/1") \
	X(WORKER, tls_certificates_refused, "certificates refused by either end, or missing") \
	X(WORKER, tls_names_refused, "proven names that either end does not permit") \
	X(WORKER, tls_psks_refused, "PSKs refused by either end, name or key") \
	X(WORKER, tls_no_suite, "no cipher suite in common") \
	X(WORKER, tls_streams_broken, "streams changed, cut or flooded") \
	X(WORKER, tls_ended, "connections ended, their peer is no longer permitted") \
	X(WORKER, tls_reread, "changed files of tls put in force") \
	X(WORKER, tls_refused, "changed files of tls refused") \
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
	X(SMCR, cdc_unknown, "CDC messages for an unknown connection") \
	X(SMCR, cdc_stale, "CDC messages that arrived too late") \
	X(SMCR, llc_ignored, "LLC messages ignored") \
	X(SMCR, llc_queue_full, "LLC messages not sent: queue full") \
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
	X(SMCR, elems_shrunk, "connections with a smaller RMB element for lack of memory") \
	X(SMCR, refused_quarantine, "refused: connections on a link group with quarantine_max elements") \
	X(SMCR, refused_memory, "refused: out of memory") \
	X(WORKER, accept_pauses, "accepting paused (out of file descriptors)") \
	H("Daemon") \
	X(WORKER, turns, "turns of the event loop") \
	X(WORKER, spins, "waits begun by polling (spin)") \
	X(WORKER, spin_hits, "of them ended by an event before the sleep") \
	X(WORKER, spin_wanted, "of them given up: another process needed the CPU") \
	X(WORKER, spun_us, "microseconds of polling") \
	X(LOG, lines_lost, "log lines lost (not written in time)") \
	X(CONTROL, clients, "control clients") \
	X(CONTROL, clients_refused, "control clients refused (too many)") \
	X(CONTROL, clients_timed_out, "control clients timed out") \
	X(CONTROL, requests, "control requests") \
	X(CONTROL, requests_bad, "control requests malformed") \
	X(CONTROL, trace_sent, "trace messages delivered") \
	X(CONTROL, trace_dropped, "trace messages dropped (slow reader)") \
	X(CONTROL, traces_evicted, "traces ended to make room for another client")
/* clang-format on */

/* The JSON name of a counter. */
#define CONTROL_COUNTER_KEY(source, field) CONTROL_COUNTER_OF_##source #field
#define CONTROL_COUNTER_OF_SMCR
#define CONTROL_COUNTER_OF_WORKER
#define CONTROL_COUNTER_OF_CONTROL "control_"
#define CONTROL_COUNTER_OF_LOG "log_"
