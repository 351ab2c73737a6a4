/* The state of the control socket and its clients, shared by control*.c alone. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "base/log.h"
#include "daemon/control/control.h"
#include "daemon/net/listen_socket.h"
#include "daemon/control/control_request.h"
#include "daemon/control/outbuf.h"
#include "daemon/control/report.h"

#define CONTROL_CLIENTS_MAX 16                        /* of the control socket */
#define CONTROL_READERS_MAX 8                         /* of the read-only one */
#define CONTROL_CLIENTS_KEPT 2                        /* of each, for the daemon's user and root */
#define CONTROL_TRACES_MAX 8                          /* running at once, of each */
#define CONTROL_CHECKS_MAX 8                          /* running at once */
#define CONTROL_LINE_MAX 4096                         /* bytes of a request */
#define CONTROL_OUT_BYTES 65536                       /* buffered for a client */
#define CONTROL_TRACE_BYTES 8192                      /* space that a trace line needs */
#define CONTROL_STEPS_PER_TURN 64                     /* report steps of all clients together */
#define CONTROL_TIMEOUT_NS (30 * INT64_C(1000000000)) /* without a complete request or a byte taken */

/* A listening socket, and the limit of its clients. */
struct control_port {
	struct control *ctl;
	struct listen_socket listen; /* LISTEN_SOCKET_NONE: not configured */
	struct loop_io io;
	unsigned clients_max;
	bool readonly;              /* refuses requests that change something */
	bool acceptable;            /* clients may be waiting */
	int64_t accept_at_ns;       /* not before: out of descriptors */
	struct accept_pause paused; /* as it is reported */
};

struct control {
	struct loop *loop;
	struct workers *workers;
	struct control_hooks hooks;
	struct control_port ports[CONTROL_PORTS];
	uint32_t mode; /* of the control socket's file */
	struct config_admins admins;
	struct log_limit refusals; /* of orders */
	struct list_node clients;  /* struct control_client.node */
	uint64_t traces_begun;
	struct list_node checks; /* struct control_check.node */
	unsigned check_cnt;
	struct control_client *reloader;  /* waits for the end of a reload; NULL = no client */
	struct trace_tap *taps;           /* one for each worker; NULL before the first trace */
	bool events_followed;             /* each event wakes the main loop */
	struct control_client *successor; /* takes over; NULL = no process */
	uint32_t successor_pid;           /* has taken over; 0 = no process */
	struct control_stats stats;
};

enum client_state {
	CLIENT_READING,   /* waits for a request */
	CLIENT_REPORTING, /* an answer is being made */
	CLIENT_WAITING,   /* for a check or a reload */
	CLIENT_TRACING,   /* gets trace lines until it disconnects */
	CLIENT_EVENTS,    /* gets the kept events; if it follows, new ones until it disconnects */
	CLIENT_TAKING,    /* takes over from this process: control_handover.c moves its bytes */
	CLIENT_CLOSING,   /* closed when the last byte is sent */
};

/* What a step of a client's work has come to. */
enum client_step {
	STEP_MOVED,   /* go on */
	STEP_BLOCKED, /* until the socket is ready, or a worker, reload or event has come */
	STEP_BUDGET,  /* more to do, but not in this turn */
};

/* One client. Owner: the list of struct control. */
struct control_client {
	struct list_node node;
	struct control *ctl;
	const struct control_port *port;
	struct loop_io io;
	enum client_state state;
	bool can_read, can_write; /* the socket, as far as known */
	bool eof;                 /* the client has shut down its side */
	bool hup;                 /* the client has disconnected */
	bool dead;                /* to be freed by control.c */
	uid_t uid;                /* of its process; -1 = not known */
	pid_t pid;                /* 0 = not known */
	bool trusted;             /* the daemon's user, or root */
	uint64_t trace_nr;        /* of all traces and followed events: the lower, the older */
	int64_t active_ns;
	char in[CONTROL_LINE_MAX];
	size_t in_len;
	struct outbuf out;
	struct report report;
	struct control_request req; /* of a trace: its filter */
	struct control_check *check;
	struct handover *handover;
	uint64_t dropped;     /* trace lines or events since the last one delivered */
	uint64_t event_nr;    /* of events: the last one sent or filtered out */
	uint64_t event_until; /* the last one to send, if it does not follow */
};

/* A check that runs in a worker; may outlive its client and the control socket. Freed when it is done. */
struct control_check {
	struct mail mail; /* the worker's, with the result */
	struct mailbox *main;
	struct check_result result;
	struct list_node node;
	struct control *ctl;           /* NULL when the control socket is freed */
	struct control_client *client; /* NULL when the client is freed */
	struct sockaddr_storage peer;
	int rc; /* of its start */
};

/* control_client.c: owns fd, also on failure. NULL when memory is out. */
struct control_client *client_new(const struct control_port *, int fd);
/* Also removes it from its list. */
void client_free(struct control_client *);
/* Reads, works and sends until it blocks; a report step takes one off *budget. True: more to do. May leave it dead. */
bool client_run(struct control_client *, int64_t now_ns, unsigned *budget);
/* The time at which an inactive client is closed; INT64_MAX for never. */
int64_t client_deadline(const struct control_client *);

/* Has no end of its own, and may be silent for a long time. */
static inline bool
client_listens(const struct control_client *c)
{
	return c->state == CLIENT_TRACING || (c->state == CLIENT_EVENTS && c->req.follow);
}

/* control_port.c: the ports begin to listen. Sockets that were opened before are moved out of `opened`; NULL: they are opened here. 0, or
 * -errno with a line in err. */
int control_start_ports(struct control *, const struct config *, struct listen_socket *opened, FILE *err);
void control_stop_ports(struct control *);
/* Listens at another path; the file of the old one stays. 0, or -errno: the control socket has no listener then. */
int control_move(struct control *, const char *path);

/* control_place.c: true when there is a slot for another client, or another trace. A trace may have been ended for it; its client is dead
 * then. */
bool control_make_place(const struct control_port *, bool trusted);
bool control_make_trace_place(const struct control_client *asking);

/* control_rights.c: root, the daemon's user, or a process with the admin group when it connected. */
bool control_may_order(const struct control_client *);

/* control_answer.c: the error of a request that was parsed. */
void client_answer_error(struct control_client *, const char *code, const char *text);
/* True when the request is about this worker, from 0. A group belongs to one worker. */
bool client_wants_worker(const struct control_request *, const struct workers *, unsigned nr);
/* The answer that the client waited for is in its buffer. */
void client_end_wait(struct control_client *);
/* Begins a line of a trace or of events: the members that both have, with the number of lines left out since the last one. */
void client_begin_line(struct control_client *, struct json_writer *, const char *what, int64_t time_us);
/* A line of a trace; the message is NULL when the line only has the number of those left out. */
void client_write_message(
    struct control_client *, const struct smcr_trace *, int64_t time_us, unsigned worker, const char *text);
/* Sends bytes of its buffer. True when some were sent. */
bool client_send(struct control_client *, int64_t now_ns);

/* control_handover.c: begins the hand-over, or refuses it with a reason. False: the line is no successor's request. */
bool handover_start(struct control_client *, const char *line, size_t len);
/* The client may be dead after it. */
enum client_step handover_step(struct control_client *, int64_t now_ns);
/* The time of its next step; INT64_MAX for never. */
int64_t handover_wakes(const struct control_client *);
/* This process ends: it no longer waits for connections in their set-up, so that the successor is notified and may accept. */
void handover_now(struct control_client *);
/* The client is freed: nothing changes unless the hand-over is complete. */
void handover_end(struct control_client *);

/* control_command.c: answers a request, at once or by a new state of the client. */
void client_answer(struct control_client *, const struct control_request *);
/* control_check.c: starts the check of a request. */
void client_check(struct control_client *);
/* control_trace.c: begins a trace, or refuses it. */
void control_start_trace(struct control_client *);
/* Sets the taps of the workers to the messages that tracing clients want. Once a turn. */
void control_update_trace(struct control *);

/* control_events.c */
void control_start_events(struct control_client *);
/* Writes as many as there is space for; each one looked at takes one off *budget. */
enum client_step control_events_step(struct control_client *, unsigned *budget);
/* Events stop waking the main loop when no client follows. Once a turn. */
void control_update_events(struct control *);
