/* System calls: a seccomp filter of what the table allows, in all threads. Any other call fails with ENOSYS, the
 * sign for C libraries to use an older call, and the kernel logs it (audit, type SECCOMP). In tests it ends the
 * process. In front of it a small one refuses the calls that libraries try first as a matter of course (confine_absent):
 * whether refusals are logged is a filter's attribute, and each new thread would leave a line that looks like an attack. */
#include <errno.h>
#include <seccomp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/confine/confine_parts.h"

/* The fate of a call that is not allowed: refused, unless CONFINE_TEST_ENV says otherwise. */
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

/* -- in tests: a word before the end -- */

static void
say_and_die(int signo, siginfo_t *info, void *ucontext)
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

/* -- the filter -- */

/* How many calls of the row exist on this processor and for this libseccomp, or negative. */
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

		/* Called by another way on this processor (socketcall), or there already without conditions. */
		if (rc != 0 && rc != -EDOM && rc != -EEXIST)
			return rc;
		known += rc == 0;
	}
	return known;
}

/* Calls that are known here, or negative. */
static int
add_rules(scmp_filter_ctx ctx)
{
	int known = 0;

	for (const struct confine_call *c = confine_allowed; c->names != NULL; c++) {
		int added = add_row(ctx, c);

		if (added < 0)
			return added;
		known += added;
	}
	return known;
}

/* The same thing for each of confine_absent, where it exists. */
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

/* With a line in the kernel's log for each refusal, or without; a search tree in place of a list. The processor's guard against
 * reading past stores is for programs that run foreign code, and costs every one of ours; kernels since 5.16 leave it off by
 * themselves. Attributes that libseccomp or the kernel does not know are done without, but a filter has to be for all threads. */
static int
set_attributes(scmp_filter_ctx ctx, bool log)
{
	(void)seccomp_attr_set(ctx, SCMP_FLTATR_CTL_LOG, log);
	(void)seccomp_attr_set(ctx, SCMP_FLTATR_CTL_SSB, 1);
	(void)seccomp_attr_set(ctx, SCMP_FLTATR_CTL_OPTIMIZE, 2);
	return seccomp_attr_set(ctx, SCMP_FLTATR_CTL_TSYNC, 1);
}

/* 0 or negative. */
static int
filter_absent(enum confine_do what)
{
	scmp_filter_ctx ctx = seccomp_init(SCMP_ACT_ALLOW);
	int rc;

	if (ctx == NULL)
		return -ENOMEM;
	rc = set_attributes(ctx, false);
	if (rc == 0)
		rc = add_absent(ctx, SCMP_ACT_ERRNO(ENOSYS));
	if (rc == 0 && what == CONFINE_APPLY)
		rc = seccomp_load(ctx);
	seccomp_release(ctx);
	return rc;
}

/* How many rules there are, or negative. */
static int
filter(enum confine_do what, const struct violation *v)
{
	const struct sigaction sa = { .sa_sigaction = say_and_die, .sa_flags = SA_SIGINFO };
	scmp_filter_ctx ctx = seccomp_init(v->action);
	int rc, known;

	if (ctx == NULL)
		return -ENOMEM;
	/* The other one, which the kernel asks as well, has refused these. It has to be there first: this one lets no other in. */
	rc = filter_absent(what);
	if (rc == 0)
		rc = set_attributes(ctx, true);
	if (rc == 0)
		rc = add_absent(ctx, SCMP_ACT_ALLOW);
	known = rc == 0 ? add_rules(ctx) : rc;
	if (known > 0 && what == CONFINE_APPLY) {
		/* A thread that blocks signals ends the process without the word. */
		if (v->action == SCMP_ACT_TRAP)
			(void)sigaction(SIGSYS, &sa, NULL);
		rc = seccomp_load(ctx);
	}
	seccomp_release(ctx);
	return rc != 0 ? rc : known;
}

void
confine_system_calls(enum confine_do what, struct confine_part_state *out)
{
	const struct scmp_version *ver = seccomp_version();
	const struct violation *v = violations;
	const char *test = getenv(CONFINE_TEST_ENV);
	int rc;

#ifdef SMCRD_COVERAGE
	confine_part_set(out, false, "built for measuring coverage, which writes files");
	return;
#endif
	for (size_t i = 0; test != NULL && i < sizeof(violations) / sizeof(violations[0]); i++)
		if (strcmp(test, violations[i].env) == 0)
			v = &violations[i];
	rc = filter(what, v);
	if (rc < 0)
		confine_part_set(out, false, "seccomp: %s", strerror(-rc));
	else
		confine_part_set(out, v->action != SCMP_ACT_LOG, "libseccomp %u.%u.%u, %d rules; %s", ver->major,
		    ver->minor, ver->micro, rc, v->words);
}
