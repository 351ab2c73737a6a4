/* `smcrd --reload`: requests a reload of the running daemon and waits for its outcome, for systemd's ExecReload=. */
#pragma once

#include <stdio.h>

/* Messages of the daemon go to out; the reason why it was refused, or why the daemon cannot be asked, to err. 0: reloaded; -ECANCELED:
 * refused by the daemon; or another -errno. */
int reload_client_run(const char *control_path, FILE *out, FILE *err);
