/* smcrd --unit: the main process of the systemd unit is a keeper, and the daemon its child. So `systemctl restart`, which is a stop and
 * a start, is a take-over: at the stop the keeper ends alone, and the daemon accepts until the next one has taken over. At a real stop
 * the daemon gets the signal. When a new daemon fails at its start, the keeper adopts the one that still runs in the unit. */
#pragma once

#include <stdbool.h>

#define KEEPER_IS_DAEMON (-1)

/* Forks, before there are threads. failed: 0, or the exit code of a start that has failed before. *ready: of background_start, or -1; in
 * the daemon the same for its keeper. adopts: control_path may have a daemon to go on with. KEEPER_IS_DAEMON in the daemon; in the
 * keeper the exit code, when the daemon or the keeper's work has ended. */
int keeper_run(const char *control_path, int failed, bool adopts, int *ready);
