/* The process confines itself: at start, once what needs more is open (process/smcrd_open.c), it gives up what it will not need
 * again, for good. Four parts, each as far as the kernel and the build offer it; what is in force, and why what is
 * not, is kept in words for the log, smcrd -t and smcrctl status. */
#pragma once

#include <errno.h>
#include <linux/capability.h>
#include <stdbool.h>
#include <stdio.h>

#include "daemon/config/config.h"

/* X(constant, word in JSON and in the log, meaning). */
/* clang-format off */
#define CONFINE_PARTS(X) \
	X(PRIVILEGES, "no_new_privs", "no program that could be executed gives more rights") \
	X(CAPABILITIES, "capabilities", "those that are left") \
	X(FILES, "files", "files, by Landlock") \
	X(SYSTEM_CALLS, "system_calls", "system calls, by seccomp")
/* clang-format on */

#define CONFINE_PART(constant, ...) CONFINE_##constant,

enum confine_part { CONFINE_PARTS(CONFINE_PART) CONFINE_PART_CNT };

#define CONFINE_TEXT_MAX 192
#define CONFINE_REFUSED (-EKEYREJECTED) /* no other reason of a start that fails */

struct confine_part_state {
	bool on;
	char text[CONFINE_TEXT_MAX]; /* what holds, or why it does not */
};

struct confine_state {
	enum config_confine mode;
	struct confine_part_state part[CONFINE_PART_CNT];
};

/* For tests, in the environment: what becomes of a system call that is not allowed. "kill": it ends the process with
 * SIGSYS and a word why; "log": it is carried out, and the kernel logs it. Otherwise it is refused, and logged. */
#define CONFINE_TEST_ENV "SMCRD_CONFINE_TEST"

/* As in JSON, by enum confine_part and enum config_confine. */
extern const char *const confine_part_words[], *const confine_mode_words[];

/* Not in the headers of all distributions. */
#ifndef CAP_BPF
#define CAP_BPF 39
#endif

/* What else is kept. */
enum {
	CONFINE_KEEP_BPF = 1 << 0, /* CAP_BPF, on kernels that let nobody use a BPF map without */
};
/* Writes down what confine_rights and confine_calls would put in force; changes nothing. */
void confine_preview(const struct config *, unsigned keep, struct confine_state *out);

/* Put it in force, in two steps. confine_rights, everything but system calls: before devices are opened, because the
 * kernel's RDMA devices take requests only from who has the same rights as when it opened them, and before there is
 * a thread, as threads that run already keep their rights; a part that is so incomplete is not `on`. confine_calls:
 * when the daemon has started, for all threads. 0, or CONFINE_REFUSED when the mode is "require" and a part is not
 * in force. */
int confine_rights(const struct config *, unsigned keep, struct confine_state *out);
int confine_calls(struct confine_state *);
/* A line for each part. */
void confine_print(const struct confine_state *, FILE *out);
