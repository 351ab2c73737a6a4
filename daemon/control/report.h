/*
 * Answers of the control socket: walks workers and their engines and writes
 * JSON (doc/json-schema.md). A report is made in steps, each bounded in work
 * and in bytes, so that 5,000 connections neither hold a loop nor fill
 * memory; between steps the set may change, so a list is no snapshot. A step
 * looks at one worker and runs in its thread.
 * Used by the control socket. Owns nothing but its place in the walk.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "control/counters.h"
#include "daemon/confine/confine.h"
#include "daemon/control/control_request.h"
#include "daemon/control/json_writer.h"
#include "daemon/control/outbuf.h"
#include "daemon/worker/workers.h"

#define REPORT_SCHEMA 1        /* version of everything written here */
#define REPORT_STEP_BYTES 8192 /* room that a step needs */
#define REPORT_STEP_ITEMS 64   /* objects that a step looks at */

/* The control socket's own counters. */
struct control_stats {
	uint64_t clients, clients_refused, clients_timed_out;
	uint64_t requests, requests_bad;
	uint64_t trace_sent, trace_dropped, traces_evicted;
};

/* Where a report takes its data from. */
struct report_source {
	struct workers *workers;
	const struct control_stats *control;
	const struct confine_state *confine; /* NULL: nothing is known of it */
	const char *version;
	int64_t wall_ms; /* time of day, since 1970 */
	uint32_t pid;
	uint32_t successor; /* the process that has taken over; 0 = none */
	uint64_t rss_bytes;
	int64_t open_files_max, locked_bytes_max; /* the process's limits; -1: none */
};

/* What a worker has, or all of them. */
struct report_sum {
	uint64_t conns[3]; /* by enum session_mode */
	uint64_t groups, links, rmb_bytes, rmb_bytes_max, sndbuf_bytes, sndbuf_bytes_max;
	uint64_t devices, devices_up, turns;
};

#define REPORT_ONE(...) +1
#define REPORT_NONE(heading)
#define REPORT_COUNTERS (0 CONTROL_COUNTERS(REPORT_NONE, REPORT_ONE))

struct report {
	struct report_source src;
	struct control_request req;
	struct json_writer jw;
	unsigned phase;        /* of its maker, from 0 */
	uint32_t pos;          /* of the walk of this phase */
	uint32_t sub;          /* of a walk in it: the GIDs of a device */
	unsigned first, last;  /* the workers that are asked for, from 0 */
	unsigned nr;           /* the one that the next step looks at */
	struct worker *worker; /* that one, during a step */
	bool tired;            /* the step was work enough for this turn, whatever is left of the budget */

	union {
		/* status, drain */
		struct {
			struct report_sum sum[CONFIG_WORKERS_MAX];
			struct service_info service; /* in all workers so far */
		};

		/* service */
		struct {
			struct service_info of_one; /* in all workers so far; cfg: the last one's, in its step only */
			struct outage_info outage;
			uint64_t modes[3];   /* connections by enum session_mode */
			int64_t held_off_ns; /* the longest, of its addresses in all workers */
		};

		/* close */
		uint64_t closed;

		/* stats */
		struct {
			uint64_t counters[REPORT_COUNTERS];
			struct session_fallbacks fallbacks;
			struct smcr_histograms histograms;
			struct service_figures figures; /* of a service, in all workers so far */
			struct service_reasons reasons; /* its */
		};
	};
};

/* Time of day, since 1970. */
int64_t report_wall_ms(void);
int64_t report_wall_us(void);
/* Fills in version, time, process id and memory. */
void report_source_init(
    struct report_source *, struct workers *, const struct control_stats *, const struct confine_state *);

/* For commands that only look, and drain; the buffer is empty. */
void report_start(struct report *, const struct report_source *, const struct control_request *, struct outbuf *);
/* One step; the buffer has REPORT_STEP_BYTES of room. False when the report is complete. */
bool report_step(struct report *);
/* As many steps as *budget, less those that were made, as far as there is room and the worker stays the same. */
bool report_run(struct report *, unsigned *budget);

/* The frame around every answer: between begin and end the caller writes the members of "data". */
void report_begin(struct json_writer *, struct outbuf *, enum control_command, int64_t wall_ms);
void report_end(struct json_writer *);
/* A whole answer that says what went wrong; command is "" when the request could not be read. */
void report_error(struct outbuf *, const char *command, int64_t wall_ms, const char *code, const char *text);

/* Why SMC-R was not possible, as an object. */
void report_reason(struct json_writer *, const char *key, const struct smcr_diag *);
/* How the peer of a group speaks SMC-R, and who it says that it is: members of the object at hand. */
void report_peer(struct json_writer *, const struct smcr_peer_info *);
/* "192.0.2.1:80", "[2001:db8::1]:80"; "" for no address. */
void report_sockaddr(struct json_writer *, const char *key, const struct sockaddr_storage *);
void report_gid(struct json_writer *, const char *key, const struct rnic_gid *);
void report_mac(struct json_writer *, const char *key, const uint8_t mac[6]);
/* Eight digits behind 0x. */
void report_hex32(struct json_writer *, const char *key, uint32_t);
/* Nanoseconds as whole milliseconds. */
void report_ms(struct json_writer *, const char *key, int64_t ns);
/* By enum session_mode, as an object. */
void report_conn_counts(struct json_writer *, const char *key, const uint64_t conns[3]);

/* -- between report.c and the makers, which do one step and write members of "data"; false when there are no more -- */

/* Goes on to the next worker that is asked for, and the beginning of its objects; false when this was the last. */
bool report_next_worker(struct report *);
/* In report_service.c, for `status`, too. */
void report_add_service(struct service_info *sum, const struct service_info *one);
/* Members of an object. */
void report_write_service(struct json_writer *, const struct service_info *);

bool report_status(struct report *);
bool report_drain(struct report *);
bool report_stats(struct report *);
/* About one service. */
bool report_service(struct report *);
/* Closing connections. */
bool report_close(struct report *);
/* Of a command whose answer is the list of its name. */
bool report_list(struct report *);

/* The counters of all kinds of devices, by name, so that each device is shown with the same ones. Ends with NULL. */
extern const char *const report_device_stats[];
