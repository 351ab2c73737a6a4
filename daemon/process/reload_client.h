/* `smcrd --reload`: requests a reload of the running daemon and waits for its outcome, for systemd's ExecReload=. Finds out what only a
 * take-over can do. */
#pragma once

#include <stdio.h>
#include <sys/types.h>

enum reload_outcome {
	RELOAD_IN_FORCE,
	RELOAD_REFUSED,
	RELOAD_UNREACHABLE,
	/* The caller may take over: another program runs, settings wait for it, or the refusal may be for lack of a privilege. */
	RELOAD_NEEDS_TAKE_OVER,
};

/* Messages of the daemon go to out; the reason why it was refused, or why the daemon cannot be asked, to err. */
enum reload_outcome reload_client_run(const char *control_path, FILE *out, FILE *err);

/* The process of the daemon that answers there; 0: none does. */
pid_t reload_client_find(const char *control_path);
/* Reports to the daemon that its successor has failed, and why, for its status. Nothing happens if none listens. */
void reload_client_report(const char *control_path, const char *why);
