/* A session: this gateway's half of a proxied connection. Its two legs are the app leg (client of an ingress, server of
 * an egress) and the CLC connection to the other gateway. It has an engine connection while data is on SMC-R.
 *
 * Calls go down: session.c (start, pump, events, end), session_setup.c, session_measure.c, session_pump.c,
 * session_secure.c, session_detect.c, session_client.c, session_requested.c, session_way.c, session_path.c, session_dial.c,
 * session_state.c. A lower file
 * reports by session_raise, which only records the event: session.c handles it after the step of the pump has returned.
 * So a step ends at the first event that it raises, and a session cannot end inside a call. Callbacks only latch and
 * schedule the session.
 *
 * Owned by the pool (id table). Ends in state SES_DEAD and is freed at the end of the turn. */
#pragma once

#include "daemon/state/session_state.h"

/* Starts a session for an admitted connection; source: of its packets, which is a balancer's or the peer's. Takes fd, the
 * way (or NULL) and the admission; logs and counts a failure. */
void session_start(
    struct service *, int fd, const union net_addr *source, const union net_addr *peer, struct way *, bool counted);
/* Likewise at an egress, for a connection that the peer opened over a link, to this destination if the service leads to
 * many. False: out of memory; takes nothing. */
bool session_opened(
    struct service *, struct smcr_conn *, const struct clc_dest *, const union net_addr *peer, bool counted);
/* One bounded round of a scheduled session; requests another one by session_schedule. */
void session_pump(struct session *);
/* The daemon ends: the first call notifies the peer, the second one ends the session. */
void session_stop(struct session *);
void session_free(struct session *);
bool session_matches(const struct session *, const struct close_filter *);
/* By an operator, for this static reason, NULL: an order. The next round resets both app legs and sends an smcrd the
 * reason. False: already ending. */
bool session_close(struct session *, const char *why);

/* -- among the session files -- */

/* session_setup.c */
/* Runs SES_CONNECT, SES_LOOK, SES_RENDEZVOUS, SES_LEAVING, SES_TCP_CONNECT. */
void setup_pump(struct session *);
/* The engine has ended the connection. If the target aborted the rendezvous, connects to another working target, or after
 * an OPEN to the same for a while; no data was read or carried yet. False: not in a rendezvous, or no target is left. */
bool setup_redial(struct session *);
/* How long the answer to an OPEN is awaited. */
uint32_t setup_answer_ms(const struct session *);
/* It did not come. */
void setup_unanswered(struct session *);
/* Egress: the connect to the server has failed, 0: for lack of an address. True: the answer to a probe, which goes on. */
bool setup_probe_failed(struct session *, int err);
/* Ingress: no set-up with the chosen target, for this reason. True: another one has not been tried. */
bool setup_target_failed(struct session *, const char *why);
/* The engine has aborted the rendezvous: reports an outage if the fault is the peer's. */
void setup_note_outage(struct session *);

/* session_secure.c: SES_SECURE */
/* The connection opens over a link: its peer's name is that of the group. */
void secure_over_link(struct session *);
/* The CLC connection of a service with `secure` is connected or accepted; detect_peer() follows. */
void secure_begin(struct session *);
void secure_pump(struct session *);
void secure_timeout(struct session *);

/* session_trust.c */
/* By keys and settings in force, the peer may be connected with this service. False: the reason. */
bool trust_holds(const struct session_pool *, const struct service *, enum config_kind, const struct tls_proof *,
    const struct sockaddr_storage *peer, char why[TLS_WHY_MAX]);
/* After these have changed: ends connections and link groups of peers that are not permitted now. */
void trust_judge(struct session_pool *);

/* session_client.c */
/* Adds the program's client, for the peer, or that one is used. */
void client_describe(const struct session *, struct smcr_open *);
/* Egress, before it connects: takes the client that the peer has sent. False, with an event raised: it is not allowed. */
bool client_settle(struct session *);
/* Egress, connected: writes the PROXY header. False: an event is raised. */
bool client_announce(struct session *);
/* Egress: sets the source of a connection to this address of the server. False: the client cannot be it. */
bool client_is_source(struct session *, const struct sockaddr_storage *to);
/* No server was connected: true, with an event raised, when that is for the client's address. */
bool client_ends_dial(struct session *, int err);
/* Ingress, before data flows: the peer uses the client, or need not. False: an event is raised. */
bool client_is_passed_on(struct session *);

/* session_way.c */
/* Of an ingress without targets: the way that this accepted connection wants to go. NULL: it is refused, for this reason,
 * counted there; no counter: it was smcrd-run's, and is answered and closed. */
#define WAY_WHY_MAX 200
struct way *way_find(struct service *, int fd, char why[WAY_WHY_MAX], uint64_t **counter);
/* " destination=..." for the log, or "". */
#define WAY_TEXT_MAX (ADDR_STR_MAX + 16)
const char *way_text(const struct session *, char buf[WAY_TEXT_MAX]);
void way_free(struct service *, struct way *);
/* Adds the destination, for the peer. */
void way_describe(const struct session *, struct smcr_open *);
/* Before data flows: the peer goes to the destination, or none is wanted. False: an event is raised. */
bool way_is_taken(struct session *);

/* session_requested.c: an egress for many destinations (to = "requested") */
/* Before it connects: takes the destination that the peer has sent, as the address to pick. False: it is refused. */
bool requested_settle(struct session *);
/* The engine has fallen back because of the destination, here or at the peer: reports that, and raises the end. */
void requested_refused(struct session *);

/* session_detect.c */
/* The CLC connection is connected or accepted: starts the rendezvous, plain TCP or SES_LOOK, or ends the session. */
void detect_peer(struct session *);
/* SES_LOOK: checks for first bytes of the client or the server. */
void detect_look(struct session *);
/* SF_UNSEEN: true when the peer's first bytes have arrived and are data. False: none yet, or an event is raised. */
bool detect_first_bytes_done(struct session *);

/* session_path.c */
/* Chooses the path of a session that cannot use SMC-R, by its diag; counts and logs it. PATH_NONE: SMC-R is retried. */
void setup_choose_path(struct session *);
/* Starts TCP or the end, as chosen; not for PATH_NONE. */
void setup_take_path(struct session *);
/* SES_LEAVING: both of these, after the engine's last message to the peer. */
void setup_fall_back(struct session *);
/* Data may flow: writes pending CLC bytes, then frees the setup. False while they are not written. */
bool setup_finish(struct session *);
/* After a fallback: reads the peer's late Decline. False while the bytes may be one, or an event is raised. */
bool setup_decline_done(struct session *);

/* session_dial.c */
/* What the engine is to know of the session; an ingress adds the peer. */
struct smcr_open setup_describe(const struct session *);
/* Connects to the peer (ingress), or opens the connection over a link to it (SES_OPENING); or to the server (egress). */
void setup_dial(struct session *);
/* Closes the CLC connection of an ingress, by RST or FIN, and connects again. */
void setup_dial_again(struct session *, bool reset);
/* Tries the next address. why: errno that ends the running attempt; 0: none runs, or the dial has the errno. */
void setup_dial_next(struct session *, int why);
/* The timer of an attempt has expired: ends or repeats it. */
void setup_dial_timeout(struct session *);
/* An attempt to connect runs or waits. */
bool setup_dialing(const struct session *);

/* session_measure.c: SES_MEASURE */
void measure_begin(struct session *);
void measure_end(const struct session *);
void session_pump_measure(struct session *);

/* session_pump.c: data by state. Writes pending CLC bytes first, and reports the FIN of the CLC connection once. */
void session_pump_smcr(struct session *);
/* SES_OPENING: sends the client's first bytes, and holds them. */
void session_pump_first(struct session *);
void session_pump_draining(struct session *);
void session_pump_aborting(struct session *);
void session_pump_delivering(struct session *);
void session_pump_tcp(struct session *);
void session_pump_tcp_draining(struct session *);
/* The CLC connection only, with data on RDMA. */
void session_pump_middle(struct session *);
/* Grows with each forwarded byte that a reset waits for. */
uint64_t session_reset_progress(const struct session *);
