/* Several times one worker, without threads, as the control socket sees them (daemon/worker/workers.h). */
#pragma once

#include "daemon/worker/workers.h"

/* Those that something was asked of, 1 << nr; the test clears it. */
extern unsigned fake_workers_asked;

/* NULL for the loop: their mailbox is not used. */
struct workers *fake_workers_new(struct loop *, struct worker *, unsigned cnt);
/* Mails that are still there are run. */
void fake_workers_free(struct workers *);
