/* Closes connections: a walk through all of them, as a report of them would be, in which those that are meant are closed. */
#include "daemon/control/report.h"

bool
report_close(struct report *r)
{
	const struct close_filter filter = { .id = r->req.id, .service = r->req.service, .peer = r->req.peer };
	bool closed = false;

	for (unsigned i = 0; i < REPORT_STEP_ITEMS; i++) {
		if (!worker_close_next(r->worker, &r->pos, &filter, &closed)) {
			if (report_next_worker(r))
				return true;
			report_members(r, &r->closed);
			return false;
		}
		r->closed += closed;
		/* Closing takes system calls: enough for this turn. */
		r->tired = r->tired || closed;
	}
	return true;
}
