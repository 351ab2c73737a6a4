/* Answers of the control socket: walks workers and their engines, and writes what it finds as JSON (doc/json-schema.md), keeps it
 * for metrics, or both. A report is made in steps, each bounded in work and in bytes, so that 5,000 connections neither hold a loop
 * nor fill memory; between steps the set may change, so a list is no snapshot. A step looks at one worker and runs in its thread.
 * Used by the control socket and metrics. Owns only its place in the walk. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "daemon/control/json_writer.h"
#include "daemon/control/outbuf.h"
#include "daemon/control/report_rows.h"
#include "daemon/control/snapshot.h"

#define REPORT_SCHEMA 1         /* version of everything written here */
#define REPORT_STEP_BYTES 16384 /* space that a step needs */
#define REPORT_STEP_ITEMS 64    /* objects that a step looks at */

struct report {
	struct report_source src;
	struct control_request req;
	struct json_writer jw;
	unsigned phase;           /* of its walks, from 0 */
	uint32_t pos;             /* of the walk of this phase */
	uint32_t sub;             /* of a walk in it: the GIDs of a device, from 1; 0: it is not begun */
	unsigned first, last;     /* the workers that are asked for, from 0 */
	unsigned nr;              /* the worker of the next step */
	struct worker *worker;    /* that one, during a step */
	bool tired;               /* the step was work enough for this turn, whatever is left of the budget */
	const struct field *next; /* of "data": not written yet */
	struct report_health probed[REPORT_PROBED_MAX]; /* of the service of this step */
	struct snapshot *keep; /* objects of the kinds that metrics take are kept there as well; NULL: not kept */

	union {
		/* status, drain */
		struct {
			struct report_sum sum[CONFIG_WORKERS_MAX];
			struct service_info service; /* in all workers so far */
			int64_t held_off_ns;         /* its */
		};

		struct report_one_service one; /* service: in all workers so far; its texts live as long as the step */
		uint64_t closed;

		/* stats */
		struct {
			uint64_t counters[REPORT_COUNTERS];
			struct service_reasons fallbacks;
			struct smcr_histograms histograms;
			struct service_stats stats;     /* of a service, in all workers so far */
			struct service_reasons reasons; /* its */
		};

		/* history: of a service, or of all, in all workers so far */
		struct {
			struct report_history history;
			bool active; /* there are samples */
		};
	};
};

/* Time of day, since 1970. */
int64_t report_wall_ms(void);
int64_t report_wall_us(void);
/* Fills in version, time, process id and limits. */
void report_source_init(
    struct report_source *, struct workers *, const struct control_stats *, const struct report_process *);
/* Its memory, open files and processor time, for status. It reads files of /proc, and takes time with thousands of open files. */
void report_source_measure(struct report_source *);
/* For how long the peers of an ingress are held off in this worker, the longest; 0. */
int64_t report_held_off_ns(struct worker *, const struct service_info *);

/* For commands that only look, and drain; the buffer is empty. NULL: nothing is written. */
void report_start(struct report *, const struct report_source *, const struct control_request *, struct outbuf *);
/* Up to *budget steps, less those made, while the buffer has REPORT_STEP_BYTES free and the worker stays the same. False when the report
 * is complete. */
bool report_run(struct report *, unsigned *budget);

/* The frame around every answer: between begin and end the caller writes the members of "data". */
void report_begin(struct json_writer *, struct outbuf *, enum control_command, int64_t wall_ms);
void report_end(struct json_writer *);
/* A whole answer, of the row that the command has in report_data; NULL: "data" is empty. */
void report_answer(struct outbuf *, enum control_command, const void *row);
/* A whole answer with an error; command is "" when the request could not be read. */
void report_error(struct outbuf *, const char *command, int64_t wall_ms, const char *code, const char *text);

/* -- report_parts.c, for the makers -- */

/* Goes on with an object that is summed over all workers. False behind the last one: the walk is at pos, in the first worker. */
bool report_next_summand(struct report *, uint32_t pos);
/* Adds numbers, as many as fit len bytes. */
void report_add(uint64_t *sum, const uint64_t *one, size_t len);
/* Members of "data" of this row up to the next list, which is open then. */
void report_members(struct report *, const void *row);
/* An object of the open list. */
void report_item(struct report *, enum report_kind, const void *row);
/* The same; the list in it is open then. */
void report_item_begin(struct report *, enum report_kind, const void *row);
/* Ends the open list, and goes on as report_members. */
void report_list_end(struct report *, const void *row);
/* A row of "data" that metrics take. */
void report_keep(struct report *, enum report_kind kind, const void *row);

/* In report_service.c, for `status` as well: adds up, and makes a row of the sum that lives as long as the step. */
void report_add_service(struct service_info *sum, const struct service_info *one);
struct report_service report_service_row(struct report *, const struct service_info *);

/* What a step has come to; it looks at one object of the worker at hand. */
enum report_step {
	REPORT_PASSED,      /* the object is not written, and was little work: the next one belongs to the same step */
	REPORT_WRITTEN,     /* there may be more */
	REPORT_NEXT_WORKER, /* there are no more in this worker */
	REPORT_OVER,        /* the phase is over */
	REPORT_STOP,        /* the report is over */
};

/* A walk over the objects of all workers that are asked for. A report has one, or several that follow each other, each from the first
 * worker on; the last entry has no step. The maker keeps its place in pos, which a phase and a worker begin with 0. */
struct report_phase {
	enum report_step (*step)(struct report *);
	void (*end)(struct report *); /* in the worker of the last step; NULL: ends the open list */
};

/* In report_status.c, report_stats.c, report_history.c, report_service.c and report_lists.c, one for each command. */
extern const struct report_phase report_status[], report_drain[], report_stats[], report_history[], report_service[],
    report_connections[], report_groups[], report_links[], report_rmbs[], report_devices[], report_close[];
