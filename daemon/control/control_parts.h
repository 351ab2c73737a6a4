/* The state of the control socket and its clients, shared by control*.c alone. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "daemon/control/control.h"
#include "daemon/net/listen_socket.h"
#include "daemon/control/control_request.h"
#include "daemon/control/outbuf.h"
#include "daemon/control/report.h"
#include "daemon/control/trace_tap.h"

#define CONTROL_CLIENTS_MAX 16                        /* of the control socket */
#define CONTROL_READERS_MAX 8                         /* of the read-only one, besides */
#define CONTROL_CLIENTS_KEPT 2                        /* of each, for the daemon's user and root */
#define CONTROL_TRACES_MAX 8                          /* running at once, at each */
#define CONTROL_CHECKS_MAX 8                          /* running at once */
#define CONTROL_LINE_MAX 4096                         /* bytes of a request */
#define CONTROL_OUT_BYTES 65536                       /* buffered for a client */
#define CONTROL_TRACE_BYTES 8192                      /* room that a trace line needs */
#define CONTROL_STEPS_PER_TURN 64                     /* report steps of all clients together */
#define CONTROL_TIMEOUT_NS (30 * INT64_C(1000000000)) /* without a complete request or a byte taken */

/* A listening socket, and the places of its clients. */
struct control_port {
	struct control *ctl;
	struct listen_socket listen; /* none: it is not configured */
	struct loop_io io;
	unsigned clients_max;
	bool readonly;              /* takes questions alone */
	bool acceptable;            /* clients may be waiting */
	int64_t accept_at_ns;       /* not before: out of descriptors */
	struct accept_pause paused; /* as it is told */
};

struct control {
	struct loop *loop;
	struct workers *workers;
	struct control_hooks hooks;
	struct control_port ports[CONTROL_PORTS];
	uint32_t mode;            /* of the control socket's file */
	struct list_node clients; /* struct control_client.node */
	uint64_t traces_begun;
	struct list_node checks; /* struct control_check.node */
	unsigned check_cnt;
	struct control_client *reloader;  /* waits for the end of a reload; NULL = nobody */
	struct trace_tap *taps;           /* one for each worker */
	bool events_followed;             /* each event wakes the main loop */
	struct control_client *successor; /* takes over; NULL = nobody */
	uint32_t successor_pid;           /* has taken over; 0 = nobody */
	struct control_stats stats;
};

enum client_state {
	CLIENT_READING,   /* waits for a request */
	CLIENT_REPORTING, /* an answer is being made */
	CLIENT_WAITING,   /* for a check or a reload */
	CLIENT_TRACING,   /* gets trace lines until it goes */
	CLIENT_EVENTS,    /* gets events: those kept, and if it follows, others until it goes */
	CLIENT_TAKING,    /* takes over from this process: control_handover.c moves its bytes */
	CLIENT_CLOSING,   /* closed when the last byte is sent */
};

/* One client. Owner: the list of struct control. */
struct control_client {
	struct list_node node;
	struct control *ctl;
	const struct control_port *port;
	struct loop_io io;
	enum client_state state;
	bool can_read, can_write; /* the socket, as far as known */
	bool eof;                 /* the client sends nothing more */
	bool hup;                 /* the client is gone */
	bool dead;                /* to be freed by control.c */
	bool trusted;             /* the daemon's user, or root */
	uint64_t trace_nr;        /* of all traces and listeners to events: the lower, the older */
	int64_t active_ns;
	char in[CONTROL_LINE_MAX];
	size_t in_len;
	struct outbuf out;
	struct report report;
	struct control_request req; /* of a trace: its filter */
	struct control_check *check;
	struct handover *handover;
	uint64_t dropped;     /* trace lines or events since the last one delivered */
	uint64_t event_nr;    /* of events: the last one that it got, or does not want */
	uint64_t event_until; /* the last one that it asked for, if it does not follow */
};

/* A check that runs in a worker; it may outlive its client and the control socket. Freed when it is done. */
struct control_check {
	struct mail mail; /* the worker's, with the result */
	struct mailbox *main;
	struct check_result result;
	struct list_node node;
	struct control *ctl;           /* NULL when the control socket is gone */
	struct control_client *client; /* NULL when the client is gone */
	struct sockaddr_storage peer;
};

/* control_client.c: owns fd from here on, also on failure. NULL when memory is out. */
struct control_client *client_new(const struct control_port *, int fd);
/* Takes it out of its list, too. */
void client_free(struct control_client *);
/* Reads, works and sends as far as it goes; each report step takes one off *budget. True when there is more to do
 * at once. The client may be dead after it. */
bool client_run(struct control_client *, int64_t now_ns, unsigned *budget);
/* When the client has to be given up unless something moves; INT64_MAX for never. */
int64_t client_deadline(const struct control_client *);

/* Has no end of its own, and may be silent for long. */
static inline bool
client_listens(const struct control_client *c)
{
	return c->state == CLIENT_TRACING || (c->state == CLIENT_EVENTS && c->req.follow);
}

/* control_port.c: none listens yet. */
void control_init_ports(struct control *);
/* Sockets opened before are moved out of `opened`; NULL: they are opened here. 0, or -errno with a line in err. */
int control_start_ports(struct control *, const struct config *, struct listen_socket *opened, FILE *err);
void control_stop_ports(struct control *);
/* Listens at another path than before, whose file stays. 0, or -errno: the control socket has no listener then. */
int control_move(struct control *, const char *path);

/* control_place.c: is the process at the other end the daemon's own user, or root? */
bool control_is_trusted(int fd);
/* Is there a place for one more client, or for one more trace? Maybe another trace had to end for it, whose client is dead then. */
bool control_make_place(const struct control_port *, bool trusted);
bool control_make_trace_place(const struct control_client *asking);

/* control_answer.c: why its request, which was read, could not be carried out. */
void client_answer_error(struct control_client *, const char *code, const char *text);
/* Is this worker, from 0, among those that the request is about? A group is one worker's. */
bool client_wants_worker(const struct control_request *, const struct workers *, unsigned nr);
/* Its answer is made in steps, by the client's turns. */
void client_start_report(struct control_client *);
/* The answer that the client waited for is in its buffer. */
void client_end_wait(struct control_client *);
/* Begins a line of a trace, or of events: what both have in common, with how many were left out since the last one. */
void client_begin_line(struct control_client *, struct json_writer *, const char *what, int64_t time_us);
/* A line of a trace; the message is NULL when the line only says how many were left out. */
void client_write_message(
    struct control_client *, const struct smcr_trace *, int64_t time_us, unsigned worker, const char *text);
/* Writes how many lines were left out, when there is room for it. */
void client_flush_dropped(struct control_client *);
/* Sends what is in its buffer. True when it could send all of it or some. */
bool client_send(struct control_client *, int64_t now_ns);
/* Ends a trace whose place another client needs: an error is sent if it fits, and the client is dead. */
void client_evict(struct control_client *);

/* control_handover.c: is this line a successor's request? */
bool handover_is_request(const char *line, size_t len);
/* Begins it; the client gets a reason when it may not. */
void handover_start(struct control_client *, const char *line, size_t len);
/* As far as it goes. True when something has moved. The client may be dead after it. */
bool handover_step(struct control_client *, int64_t now_ns);
/* When it has to be looked at again; INT64_MAX for never. */
int64_t handover_wakes(const struct control_client *);
/* This process ends: what is being set up is waited for no longer, so that the other one hears that it may accept. */
void handover_now(struct control_client *);
/* Of a client that goes: all stays as it was unless the hand-over is complete. */
void handover_end(struct control_client *);

/* control_command.c: answers a request, at once or by a new state of the client. */
void client_answer(struct control_client *, const struct control_request *);
/* control_check.c: does what a request for a check asks. */
void client_check(struct control_client *);
/* Asks the workers for what the tracing clients want; nothing when there are none. Once a turn. */
void control_update_trace(struct control *);
/* Ends all traces, whoever listens. */
void control_end_traces(struct control *);

/* control_events.c */
void control_start_events(struct control_client *);
enum events_step {
	EVENTS_WAIT,   /* for an event, or room */
	EVENTS_BUDGET, /* more to do, but not in this turn */
	EVENTS_OVER,   /* all are in its block */
};
/* Writes as many as there is room for; each one looked at takes one off *budget. */
enum events_step control_events_step(struct control_client *, unsigned *budget);
/* Wakes the main loop for events no longer when nobody follows. Once a turn. */
void control_update_events(struct control *);

/* control_order.c: carries out what changes something, and answers; false when the command is no such. */
bool client_order(struct control_client *);
/* Who asked for it goes into the log. */
void client_log_order(const struct control_client *);
