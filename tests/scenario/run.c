/*
 * run [--seed N] [--set NAME=VALUE[,...]]... [--file SETTINGS | --script SCRIPT] [--verbose] [--plan]
 *	one run; the same seed and settings repeat it exactly
 * run --soak COUNT [--first N] [--jobs N]
 *	many seeds, each in a process of its own
 * run --tap [--seeds FILE]
 *	the fixed seeds, those of the file and some random ones, as TAP
 * run --tap SCRIPT...
 *	scripts, as TAP
 */
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/scenario/scenario.h"
#include "tests/scenario/script.h"
#include "tests/scenario/world.h"

#define SETTINGS_MAX 64
#define RUN_SECONDS 120 /* of real time: a run that takes longer hangs */
#define CI_SEEDS 1000000
#define TAP_FIXED 100
#define TAP_RANDOM 400
#define TAP_MAX 2000

/* One run among many. */
struct run_case {
	uint64_t seed;
	char set[64];       /* settings, or "" */
	char why[120];      /* what it is kept for, or "" */
	const char *script; /* file, or NULL */
};

struct options {
	uint64_t seed;
	const char *set[SETTINGS_MAX];
	unsigned set_cnt;
	const char *file;
	const char *seeds;
	bool verbose, plan, tap;
	uint32_t soak, jobs;
};

static struct script script;

static int
load_script(const char *path, struct plan *p)
{
	FILE *in = fopen(path, "r");
	int line = in == NULL ? -1 : script_load(&script, p, in);

	if (in != NULL)
		fclose(in);
	if (line != 0) {
		fprintf(stderr, "%s:%d: not understood\n", path, line);
		return -EINVAL;
	}
	return 0;
}

/* NAME=VALUE, or several with commas between them. */
static int
set_some(struct plan *p, const char *settings)
{
	char text[256], *one, *rest = text;

	(void)snprintf(text, sizeof(text), "%s", settings);
	while ((one = strsep(&rest, ",")) != NULL)
		if (plan_set(p, one) != 0) {
			fprintf(stderr, "bad setting: %s\n", one);
			return -EINVAL;
		}
	return 0;
}

static int
make_plan(const struct options *o, const struct run_case *c, struct plan *p)
{
	plan_draw(p, c->seed);
	if (c->script != NULL && load_script(c->script, p) != 0)
		return -EINVAL;
	p->seed = c->seed;
	if (o->file != NULL) {
		FILE *in = fopen(o->file, "r");
		int line = in == NULL ? -1 : plan_load(p, in);

		if (in != NULL)
			fclose(in);
		if (line != 0) {
			fprintf(stderr, "%s:%d: cannot be read\n", o->file, line);
			return -EINVAL;
		}
	}
	for (unsigned i = 0; i < o->set_cnt; i++)
		if (set_some(p, o->set[i]) != 0)
			return -EINVAL;
	if (*c->set != '\0' && set_some(p, c->set) != 0)
		return -EINVAL;
	return 0;
}

static void
print_stats(uint64_t seed, const struct scenario_stats *st, unsigned fails, const char *text)
{
	printf(
	    "seed %llu: %u flows: %u well, %u reset; %u on SMC-R, %u fallen back; %llu groups, %llu RMBs, "
	    "%llu writes, %llu CDC, %llu LLC; %llu failovers: %llu moved, %llu replayed, %llu lost; %llu turns, "
	    "%.1f s virtual: %s%s\n",
	    (unsigned long long)seed, st->flows, st->ok, st->reset, st->smcr, st->fallback,
	    (unsigned long long)st->groups, (unsigned long long)st->rmbs, (unsigned long long)st->writes,
	    (unsigned long long)st->cdc, (unsigned long long)st->llc, (unsigned long long)st->failovers,
	    (unsigned long long)st->moved, (unsigned long long)st->replayed, (unsigned long long)st->lost,
	    (unsigned long long)st->turns, (double)st->virtual_ms / 1000, fails == 0 ? "ok" : "FAILED ", text);
}

static int
run_one(const struct options *o, const struct run_case *c, char *text, size_t cap)
{
	struct plan p;
	struct scenario_stats st;
	unsigned fails;

	if (make_plan(o, c, &p) != 0)
		return 2;
	if (o->plan)
		plan_print(&p, stdout);
	fails = scenario_run(&p, o->verbose ? stdout : NULL, text, cap, &st);
	if (o->soak == 0 && !o->tap)
		print_stats(c->seed, &st, fails, text);
	return fails == 0 ? 0 : 1;
}

/* -- many runs -- */

struct job {
	pid_t pid;
	struct run_case c;
	int out; /* what it has to say */
};

static void
job_start(const struct options *o, struct job *j, const struct run_case *c)
{
	int fd[2];
	char text[512] = "";
	int rc;

	if (pipe(fd) != 0)
		abort();
	fflush(stdout);
	*j = (struct job){ .c = *c, .out = fd[0] };
	j->pid = fork();
	if (j->pid < 0)
		abort();
	if (j->pid > 0) {
		close(fd[1]);
		return;
	}
	close(fd[0]);
	alarm(RUN_SECONDS);
	if (dup2(fd[1], STDERR_FILENO) < 0)
		_exit(3);
	rc = run_one(o, c, text, sizeof(text));
	if (rc != 0)
		dprintf(fd[1], "%s", text);
	fflush(stdout);
	exit(rc);
}

static void
job_end(struct job *j, int status, char *text, size_t cap)
{
	char buf[4096];
	ssize_t n;
	size_t len = 0;

	while ((n = read(j->out, buf + len, sizeof(buf) - 1 - len)) > 0)
		len += (size_t)n;
	buf[len] = '\0';
	close(j->out);
	j->pid = 0;
	if (WIFSIGNALED(status))
		snprintf(text, cap, "%s: %.2000s",
		    WTERMSIG(status) == SIGALRM ? "takes too long" : strsignal(WTERMSIG(status)), buf);
	else
		snprintf(text, cap, "%.2000s", buf);
	for (char *c = text; *c != '\0'; c++)
		if (*c == '\n')
			*c = '|';
}

static void
tap_line(const struct run_case *c, bool ok, const char *text)
{
	/* Not numbered: they end in another order than they begin. */
	printf("%s - seed %llu%s%s\n", ok ? "ok" : "not ok", (unsigned long long)c->seed, *c->why != '\0' ? ": " : "",
	    c->why);
	if (!ok)
		printf("# repeat it: tests/scenario/run --seed %llu%s%s --verbose\n# %.400s\n",
		    (unsigned long long)c->seed, *c->set != '\0' ? " --set " : "", c->set, text);
}

static void
tap_script(const struct run_case *c, bool ok, const char *text)
{
	const char *name = strrchr(c->script, '/');

	printf("%s - %s%s%s\n", ok ? "ok" : "not ok", name != NULL ? name + 1 : c->script,
	    *c->why != '\0' ? " # TODO " : "", c->why);
	if (!ok)
		printf("# repeat it: tests/scenario/run --script %s --verbose\n# %.400s\n", c->script, text);
}

static unsigned
job_wait(const struct options *o, struct job *jobs, uint32_t cnt)
{
	char text[2200];
	int status;
	pid_t pid = wait(&status);

	for (uint32_t i = 0; i < cnt; i++) {
		bool ok = WIFEXITED(status) && WEXITSTATUS(status) == 0;
		struct job *j = &jobs[i];

		if (j->pid != pid)
			continue;
		job_end(j, status, text, sizeof(text));
		if (j->c.script != NULL)
			tap_script(&j->c, ok, text);
		else if (o->tap)
			tap_line(&j->c, ok, text);
		else if (!ok)
			printf("seed %llu: %s\n", (unsigned long long)j->c.seed, text);
		return ok ? 0 : 1;
	}
	return 0;
}

/* Starts them all, some at a time: how many failed. */
static unsigned
run_cases(const struct options *o, const struct run_case *cases, unsigned total)
{
	struct job jobs[64] = { { 0 } };
	uint32_t cnt = o->jobs < 1 ? 1 : o->jobs > 64 ? 64 : o->jobs, busy = 0;
	unsigned failed = 0;

	for (unsigned nr = 0; nr < total || busy > 0;) {
		if (nr == total || busy == cnt) {
			failed += job_wait(o, jobs, cnt);
			busy--;
			continue;
		}
		for (uint32_t i = 0; i < cnt; i++)
			if (jobs[i].pid == 0) {
				job_start(o, &jobs[i], &cases[nr]);
				break;
			}
		nr++;
		busy++;
	}
	return failed;
}

static int
soak(const struct options *o)
{
	struct run_case *cases = must_calloc(o->soak, sizeof(*cases));
	unsigned failed;

	for (uint32_t i = 0; i < o->soak; i++)
		cases[i].seed = o->seed + i;
	failed = run_cases(o, cases, o->soak);
	printf("%u runs, %u failures (seeds %llu to %llu)\n", o->soak, failed, (unsigned long long)o->seed,
	    (unsigned long long)(o->seed + o->soak - 1));
	free(cases);
	return failed == 0 ? 0 : 1;
}

/* Seeds that failed once: a line each, "SEED [NAME=VALUE,...] # what it was". */
static unsigned
load_seeds(const char *path, struct run_case *cases, unsigned max)
{
	FILE *in = fopen(path, "r");
	char line[256];
	unsigned cnt = 0;

	while (in != NULL && cnt < max && fgets(line, sizeof(line), in) != NULL) {
		struct run_case *c = &cases[cnt];
		unsigned long long seed;

		*c = (struct run_case){ 0 };
		(void)sscanf(line, "%*[^#]# %119[^\n]", c->why);
		if (sscanf(line, "%llu %63[^# \n]", &seed, c->set) < 1)
			continue;
		c->seed = seed;
		cnt++;
	}
	if (in != NULL)
		fclose(in);
	return cnt;
}

static int
tap(const struct options *o)
{
	struct run_case *cases = must_calloc(TAP_MAX, sizeof(*cases));
	/* On a build server (CI is set) always the same, so that a change is judged by what it changes. */
	uint64_t random = getenv("CI") != NULL ? CI_SEEDS : (uint64_t)time(NULL) * 1000;
	unsigned cnt = 0;

	if (o->seeds != NULL) {
		cnt = load_seeds(o->seeds, cases, TAP_MAX - TAP_FIXED - TAP_RANDOM);
		if (cnt == 0) {
			printf("Bail out! no seeds in %s\n", o->seeds);
			return 1;
		}
	}
	for (unsigned i = 1; i <= TAP_FIXED + TAP_RANDOM; i++)
		cases[cnt++].seed = i <= TAP_FIXED ? i : random + i;
	printf("1..%u\n", cnt);
	run_cases(o, cases, cnt);
	free(cases);
	return 0;
}

/* Scripts, as TAP. */
static int
tap_scripts(const struct options *o, char **files, unsigned cnt)
{
	struct run_case *cases = must_calloc(cnt, sizeof(*cases));
	struct plan p;

	printf("1..%u\n", cnt);
	for (unsigned i = 0; i < cnt; i++) {
		cases[i] = (struct run_case){ .seed = 1, .script = files[i] };
		if (load_script(files[i], &p) == 0)
			snprintf(cases[i].why, sizeof(cases[i].why), "%s", script.todo);
	}
	run_cases(o, cases, cnt);
	free(cases);
	return 0;
}

static int
usage(void)
{
	fprintf(stderr,
	    "usage: run [--seed N] [--set NAME=VALUE[,...]]... [--file SETTINGS | --script SCRIPT] [--verbose] [--plan]\n"
	    "       run --soak COUNT [--seed FIRST] [--jobs N] [--set NAME=VALUE]...\n"
	    "       run --tap [--seeds FILE] [--jobs N]\n"
	    "       run --tap SCRIPT...\n");
	return 2;
}

int
main(int argc, char **argv)
{
	static const struct option opts[] = {
		{ "seed", required_argument, NULL, 's' },
		{ "set", required_argument, NULL, 'S' },
		{ "file", required_argument, NULL, 'f' },
		{ "verbose", no_argument, NULL, 'v' },
		{ "plan", no_argument, NULL, 'p' },
		{ "soak", required_argument, NULL, 'k' },
		{ "jobs", required_argument, NULL, 'j' },
		{ "tap", no_argument, NULL, 't' },
		{ "seeds", required_argument, NULL, 'l' },
		{ "script", required_argument, NULL, 'c' },
		{ 0 },
	};
	struct options o = { .seed = 1, .jobs = (uint32_t)sysconf(_SC_NPROCESSORS_ONLN) };
	struct run_case one = { 0 };
	char text[512];
	int c;

	while ((c = getopt_long(argc, argv, "", opts, NULL)) != -1) {
		if (c == 's')
			o.seed = strtoull(optarg, NULL, 0);
		else if (c == 'S' && o.set_cnt < SETTINGS_MAX)
			o.set[o.set_cnt++] = optarg;
		else if (c == 'f')
			o.file = optarg;
		else if (c == 'v')
			o.verbose = true;
		else if (c == 'p')
			o.plan = true;
		else if (c == 'k')
			o.soak = (uint32_t)strtoul(optarg, NULL, 0);
		else if (c == 'j')
			o.jobs = (uint32_t)strtoul(optarg, NULL, 0);
		else if (c == 'c')
			one.script = optarg;
		else if (c == 'l')
			o.seeds = optarg;
		else if (c == 't')
			o.tap = true;
		else
			return usage();
	}
	if (optind < argc && !o.tap)
		return usage();
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (optind < argc)
		return tap_scripts(&o, argv + optind, (unsigned)(argc - optind));
	one.seed = o.seed;
	return o.tap ? tap(&o) : o.soak > 0 ? soak(&o) : run_one(&o, &one, text, sizeof(text));
}
