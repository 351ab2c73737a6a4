/* System calls: a seccomp filter of the table, for all threads. Any other call fails with ENOSYS, on which C libraries
 * use an older call, and the kernel logs it (audit, type SECCOMP). In tests it ends the process. A small filter before
 * it refuses the calls that libraries always try first (confine_absent). Logging is an attribute of a filter, and
 * otherwise each new thread would log a line that looks like an attack. */
#include <errno.h>
#include <seccomp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/confine/confine_parts.h"

/* The action for calls outside the table, chosen by CONFINE_TEST_ENV; by default they are refused. */
struct violation {
	const char *env;
	uint32_t action;
	const char *words;
};

static const struct violation violations[] = {
	{ "", SCMP_ACT_ERRNO(ENOSYS), "others are refused, and logged by the kernel" },
	{ "kill", SCMP_ACT_TRAP, "others end the process (test)" },
	{ "log", SCMP_ACT_LOG, "others are only logged (test)" },
};

/* In tests: a line before the end. */
static void
report_and_die(int signo, siginfo_t *info, void *ucontext)
{
	static const char head[] = "confine: system call refused: number=";
	char text[sizeof(head) + 16], *p = text + sizeof(text);
	unsigned nr = (unsigned)info->si_syscall;

	(void)ucontext;
	*--p = '\n';
	do
		*--p = (char)('0' + nr % 10);
	while ((nr /= 10) != 0);
	p -= sizeof(head) - 1;
	memcpy(p, head, sizeof(head) - 1);
	(void)!write(STDERR_FILENO, p, (size_t)(text + sizeof(text) - p));
	(void)signal(signo, SIG_DFL);
	(void)raise(signo);
}

/* The number of calls in the row that this processor and libseccomp have, or negative. */
static int
add_row(scmp_filter_ctx ctx, const struct confine_call *call)
{
	struct scmp_arg_cmp cmp[CONFINE_ARGS_MAX];
	char names[512], *save;
	unsigned cnt = 0;
	int known = 0;

	for (unsigned i = 0; i < CONFINE_ARGS_MAX; i++) {
		const struct confine_arg *a = &call->args[i];

		if (a->mask != 0)
			cmp[cnt++] = (struct scmp_arg_cmp){ a->index, SCMP_CMP_MASKED_EQ, a->mask,
				a->own_pid ? (uint64_t)getpid() : a->value };
	}
	snprintf(names, sizeof(names), "%s", call->names);
	for (char *name = strtok_r(names, " ", &save); name != NULL; name = strtok_r(NULL, " ", &save)) {
		int nr = seccomp_syscall_resolve_name(name);
		int rc = nr != __NR_SCMP_ERROR ? seccomp_rule_add_array(ctx, SCMP_ACT_ALLOW, nr, cnt, cmp) : -EDOM;

		/* Not a direct call on this processor (socketcall), or already allowed without conditions. */
		if (rc != 0 && rc != -EDOM && rc != -EEXIST)
			return rc;
		known += rc == 0;
	}
	return known;
}

/* The same action for each existing call of confine_absent. */
static int
add_absent(scmp_filter_ctx ctx, uint32_t action)
{
	for (unsigned i = 0; confine_absent[i] != NULL; i++) {
		int nr = seccomp_syscall_resolve_name(confine_absent[i]);
		int rc = nr != __NR_SCMP_ERROR ? seccomp_rule_add(ctx, action, nr, 0) : 0;

		if (rc != 0)
			return rc;
	}
	return 0;
}

/* log: refusals are logged by the kernel. The filter is a search tree instead of a list. The mitigation of speculative
 * store bypass is for programs that run foreign code and slows all calls; kernels since 5.16 leave it off. Attributes
 * that libseccomp or the kernel does not know are skipped, but the filter has to apply to all threads. */
static int
set_attributes(scmp_filter_ctx ctx, bool log)
{
	(void)seccomp_attr_set(ctx, SCMP_FLTATR_CTL_LOG, log);
	(void)seccomp_attr_set(ctx, SCMP_FLTATR_CTL_SSB, 1);
	(void)seccomp_attr_set(ctx, SCMP_FLTATR_CTL_OPTIMIZE, 2);
	return seccomp_attr_set(ctx, SCMP_FLTATR_CTL_TSYNC, 1);
}

/* A filter with this action for all calls but those of the rows; calls of confine_absent have an action of their own.
 * Returns the number of known calls in the rows, or negative. */
static int
filter(enum confine_do what, uint32_t action, uint32_t absent, const struct confine_call *rows)
{
	const struct sigaction sa = { .sa_sigaction = report_and_die, .sa_flags = SA_SIGINFO };
	scmp_filter_ctx ctx = seccomp_init(action);
	int known = 0;

	if (ctx == NULL)
		return -ENOMEM;
	int rc = set_attributes(ctx, action != SCMP_ACT_ALLOW);
	if (rc == 0)
		rc = add_absent(ctx, absent);
	for (; rows->names != NULL && rc >= 0; rows++) {
		rc = add_row(ctx, rows);
		known += rc;
	}
	if (rc >= 0 && what == CONFINE_APPLY) {
		/* A thread that blocks signals ends the process without the line. */
		if (action == SCMP_ACT_TRAP)
			(void)sigaction(SIGSYS, &sa, NULL);
		rc = seccomp_load(ctx);
	}
	seccomp_release(ctx);
	return rc < 0 ? rc : known;
}

void
confine_system_calls(enum confine_do what, struct confine_part_state *out)
{
	const struct scmp_version *ver = seccomp_version();
	const struct confine_call no_rows = { .names = NULL };
	const struct violation *v = violations;
	const char *test = getenv(CONFINE_TEST_ENV);

#ifdef SMCRD_COVERAGE
	confine_part_set(out, false, "built for measuring coverage, which writes files");
	return;
#endif
	for (size_t i = 0; test != NULL && i < sizeof(violations) / sizeof(violations[0]); i++)
		if (strcmp(test, violations[i].env) == 0)
			v = &violations[i];
	/* The first one, as the second refuses another. The kernel runs both. */
	int rc = filter(what, SCMP_ACT_ALLOW, SCMP_ACT_ERRNO(ENOSYS), &no_rows);
	if (rc == 0)
		rc = filter(what, v->action, SCMP_ACT_ALLOW, confine_allowed);
	if (rc < 0)
		confine_part_set(out, false, "seccomp: %s", strerror(-rc));
	else
		confine_part_set(out, v->action != SCMP_ACT_LOG, "libseccomp %u.%u.%u, %d rules; %s", ver->major,
		    ver->minor, ver->micro, rc, v->words);
}
