/*
 * A session: one proxied connection, this gateway's half of it. Two legs, the
 * app leg (client of an ingress, server of an egress) and the middle (the SMC-R
 * TCP connection to the other gateway), and an engine connection while SMC-R
 * carries the data.
 *
 *	session.c		birth, the pump, events by the table of session_table.c, end, log line
 *	session_setup.c		the rendezvous, and what follows when a leg is connected
 *	session_measure.c	no client, but a measurement of the peer's
 *	session_pump.c		data between app leg and engine, or app leg and middle
 *	session_detect.c		SMC-R's TCP option: rendezvous or plain TCP
 *	session_path.c		TCP, a retry or a refusal; the end of the set-up
 *	session_dial.c		connecting
 *	session_state.c		state, place in the turn, cause of the end
 *
 * Calls go down this list. What a lower file has to report it raises
 * (session_raise), which acts on nothing: session.c acts on raised events when
 * the step of the pump that raised them has returned. So a step ends at the first
 * event that it raises, and a session cannot end under a caller's feet.
 * Callbacks of legs and of the engine only latch and schedule the session.
 *
 * Owned by the pool (id table). Ends in state SES_DEAD and is freed at the
 * end of the turn.
 */
#pragma once

#include "daemon/probe/measure.h"
#include "daemon/state/session_state.h"

/* A connection was accepted, from a client (ingress) or another gateway (egress), and admitted. Takes fd and the admission
 * over; a failure is logged and counted. */
void session_start(struct service *, int fd, const union net_addr *peer, bool counted);
/* One round for a scheduled session: bounded, asks for another one by session_schedule. */
void session_pump(struct session *);
/* The daemon ends: a word to the peer; at the second call the session ends. */
void session_stop(struct session *);
/* Frees a dead session. */
void session_free(struct session *);
void session_info(const struct session *, struct session_info *);
bool session_matches(const struct session *, const struct close_filter *);
/* By order of an operator: both app legs are reset in the next round of the pump, and the peer gets the reason if it is an smcrd.
 * False: its end has begun before. */
bool session_close(struct session *);

/* -- among the session files -- */

/* session_setup.c */
/* The accepted leg is watched: connects the middle (ingress), or starts the rendezvous (egress). */
void setup_begin(struct session *);
/* SES_CONNECT, SES_LOOK, SES_RENDEZVOUS, SES_LEAVING, SES_TCP_CONNECT: goes on. */
void setup_pump(struct session *);
/* The engine has ended the connection. In a rendezvous that the target has broken off: goes on to another one that works. Nothing is
 * lost, as no data has been carried, or read. False: there is no other one. */
bool setup_redial(struct session *);
/* The engine has broken off the rendezvous: reports an outage where that is a fault of the far end. */
void setup_note_outage(struct session *);

/* session_detect.c */
/* The middle is connected, or accepted: rendezvous, plain TCP, a look at the first bytes, or the end. */
void detect_peer(struct session *);
/* SES_LOOK: has somebody spoken? */
void detect_look(struct session *);
/* SF_UNSEEN: the peer's first bytes have come, and are data. False while there are none, or when an event is raised. */
bool detect_first_bytes_done(struct session *);

/* session_path.c */
/* Decides what becomes of a session that cannot use SMC-R, by its diag; counts and logs it. PATH_NONE: it is tried once more. */
void setup_choose_path(struct session *);
/* Goes on as decided, by TCP or with the end; not for PATH_NONE. */
void setup_take_path(struct session *);
/* SES_LEAVING: both of these, after a word of the engine to the peer. */
void setup_fall_back(struct session *);
/* Data may flow, but CLC bytes may still wait: writes them, frees the setup. False while the middle is not free. */
bool setup_finish(struct session *);
/* After a fallback: reads the peer's late Decline, if it is one. False while what comes may still become one, or when an event is
 * raised. */
bool setup_decline_done(struct session *);

/* session_dial.c */
/* The far end of an ingress or the server of an egress is being connected. */
void setup_dial(struct session *);
/* The middle of an ingress is closed, by RST or FIN, and connected once more. */
void setup_dial_again(struct session *, bool reset);
/* Tries the next address; why: the errno that ends the attempt that runs, 0 when there is none or the dial knows. */
void setup_dial_next(struct session *, int why);
/* The timer of an attempt to connect is over: it ends, or is made once more. */
void setup_dial_timeout(struct session *);
/* An attempt to connect is under way, or waits to be made once more. */
bool setup_dialing(const struct session *);

/* session_measure.c: SES_MEASURE. The end of one is to be told. */
void measure_begin(struct session *);
void measure_end(const struct session *);
void session_pump_measure(struct session *);

/* session_pump.c: data, state by state. What is left of CLC is written first, and the middle's FIN passed on to the engine, once. */
void session_pump_smcr(struct session *);
void session_pump_draining(struct session *);
void session_pump_aborting(struct session *);
void session_pump_delivering(struct session *);
void session_pump_tcp(struct session *);
void session_pump_tcp_draining(struct session *);
/* The middle alone, beside data on RDMA. */
void session_pump_middle(struct session *);
/* Grows with each byte that a reset has waited for. */
uint64_t session_reset_progress(const struct session *);
