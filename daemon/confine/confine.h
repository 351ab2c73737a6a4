/* The process confines itself: at start, after it has opened what needs more rights (process/smcrd_open.c), it drops
 * all other rights for good. Each of the four parts is applied as far as the kernel and the build support it. The
 * state of each part, with the reason where it is off, is text for the log, smcrd -t and smcrctl status. */
#pragma once

#include <errno.h>
#include <linux/capability.h>
#include <stdbool.h>

#include "daemon/config/config.h"

/* X(constant, word in JSON and in the log, meaning). */
/* clang-format off */
#define CONFINE_PARTS(X) \
	X(PRIVILEGES, "no_new_privs", "an executed program gets no more rights") \
	X(CAPABILITIES, "capabilities", "the remaining capabilities") \
	X(FILES, "files", "files, by Landlock") \
	X(SYSTEM_CALLS, "system_calls", "system calls, by seccomp")
/* clang-format on */

#define CONFINE_PART(constant, ...) CONFINE_##constant,

enum confine_part { CONFINE_PARTS(CONFINE_PART) CONFINE_PART_CNT };

#define CONFINE_TEXT_MAX 192
#define CONFINE_REFUSED (-EKEYREJECTED) /* this and the next one: distinct from all other start errors */
#define CONFINE_LACKS_RIGHT (-ENOKEY)   /* to what the configuration needs */

struct confine_part_state {
	bool on;
	char text[CONFINE_TEXT_MAX]; /* what is in force, or the reason why not */
};

struct confine_state {
	enum config_confine mode;
	struct confine_part_state part[CONFINE_PART_CNT];
};

/* For tests, in the environment: the action for a refused system call. "kill": SIGSYS ends the process, after a line
 * on stderr. "log": the kernel logs the call and runs it. Otherwise the call is refused and logged. */
#define CONFINE_TEST_ENV "SMCRD_CONFINE_TEST"

/* As in JSON, by enum confine_part and enum config_confine. */
extern const char *const confine_part_words[], *const confine_mode_words[];

/* Not in the headers of all distributions. */
#ifndef CAP_BPF
#define CAP_BPF 39
#endif

/* Describes what confine_rights and confine_calls would put in force; changes nothing. keep_bpf: CAP_BPF stays, for
 * kernels that refuse a BPF map without it. */
void confine_preview(const struct config *, bool keep_bpf, struct confine_state *out);

/* Apply the confinement, in two steps. confine_rights applies all but system calls. It runs before devices are opened,
 * as the kernel's RDMA devices accept requests only with the rights of their open. It also runs before the first
 * thread, as running threads keep their rights; a part that missed a thread is not `on`. confine_calls runs when the
 * daemon has started, for all threads. 0, or CONFINE_REFUSED when the mode is "require" and a part is not in force. */
int confine_rights(const struct config *, bool keep_bpf, struct confine_state *out);
int confine_calls(struct confine_state *);
