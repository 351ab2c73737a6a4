/*
 * run [--seed N] [--set NAME=VALUE[,...]]... [--file SETTINGS | --script SCRIPT] [--verbose] [--plan]
 *	one run; the same seed and settings repeat it exactly
 * run --soak COUNT [--seed FIRST] [--jobs N]
 *	many seeds, each in a process of its own
 * run --tap [--seeds FILE]
 *	the fixed seeds, those of the file and some random ones, as TAP
 * run --tap SCRIPT...
 *	scripts, as TAP
 *
 * --hostile: seeds are those of runs with a host that lies (hostile.h)
 */
#include <config.h>
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/scenario/scenario.h"
#include "tests/scenario/script.h"
#include "tests/scenario/world.h"

#define SETTINGS_MAX 64
#define RUN_SECONDS 120 /* of the processor, which others may use as well: a run that takes longer hangs */
#define CI_SEEDS 1000000
#define TAP_FIXED 100
#ifdef SMCRD_SANITIZERS
#define TAP_RANDOM 50 /* four times as slow: what order of events finds is found without them as well */
#else
#define TAP_RANDOM 200
#endif
#define TAP_MAX 2000

/* One run among many. */
struct run_case {
	uint64_t seed;
	char set[64];       /* settings, or "" */
	char why[120];      /* what it is kept for, or "" */
	const char *script; /* file, or NULL */
};

/* Hostile runs are short: many in one process, and as many in a test run as there is time for, with a first part that is
 * always done. */
#define BATCH 100
#define HOSTILE_FIXED 1000
#define HOSTILE_RANDOM 100000
#define HOSTILE_SECONDS 10

struct options {
	uint64_t seed;
	const char *set[SETTINGS_MAX];
	unsigned set_cnt;
	const char *file;
	const char *seeds;
	bool verbose, plan, tap, hostile, stop;
	unsigned must;   /* so many cases are run in any case, and ... */
	time_t until;    /* ... others only until then; 0: all */
	unsigned *lines; /* of TAP that were printed */
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
	if (o->hostile)
		plan_draw_hostile(p, c->seed);
	else
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

	if (make_plan(o, c, &p) != 0)
		return 2;
	if (o->plan)
		plan_print(&p, stdout);
	unsigned fails = scenario_run(&p, o->verbose ? stdout : NULL, text, cap, &st);
	if (o->soak == 0 && !o->tap)
		print_stats(c->seed, &st, fails, text);
	return fails == 0 ? 0 : 1;
}

/* -- many runs -- */

/* Cases that a process runs one after the other. */
struct job {
	pid_t pid;
	const struct run_case *cases;
	unsigned cnt;
	int out;               /* what it has to say */
	volatile unsigned *at; /* the case that it is at; shared with it */
};

/* A line for each case that fails: FAIL_MARK, its index, and why. */
#define FAIL_MARK '\001'

static void
job_run(const struct options *o, const struct job *j, int out)
{
	char text[512];
	unsigned failed = 0;

	for (unsigned i = 0; i < j->cnt; i++) {
		*j->at = i;
		(void)setitimer(ITIMER_PROF, &(struct itimerval){ .it_value.tv_sec = RUN_SECONDS }, NULL);
		*text = '\0';
		if (run_one(o, &j->cases[i], text, sizeof(text)) == 0)
			continue;
		failed++;
		dprintf(out, "%c%u %s\n", FAIL_MARK, i, text);
	}
	*j->at = j->cnt;
	fflush(stdout);
	exit(failed == 0 ? 0 : 1);
}

static void
job_start(const struct options *o, struct job *j, const struct run_case *cases, unsigned cnt)
{
	int fd[2];

	if (pipe(fd) != 0)
		abort();
	fflush(stdout);
	j->cases = cases;
	j->cnt = cnt;
	j->out = fd[0];
	j->pid = fork();
	if (j->pid < 0)
		abort();
	if (j->pid > 0) {
		close(fd[1]);
		return;
	}
	close(fd[0]);
	if (dup2(fd[1], STDERR_FILENO) < 0)
		_exit(3);
	job_run(o, j, fd[1]);
}

/* All that the process said, with room for a NUL. */
static size_t
job_output(struct job *j, char *buf, size_t cap)
{
	size_t len = 0;
	ssize_t n;
	char rest[4096];

	while ((n = read(j->out, buf + len, cap - 1 - len)) > 0)
		len += (size_t)n;
	while (read(j->out, rest, sizeof(rest)) > 0)
		; /* so that it can end */
	buf[len] = '\0';
	close(j->out);
	j->pid = 0;
	return len;
}

static void
tap_line(const struct options *o, const struct run_case *c, bool ok, const char *text)
{
	if (ok && o->hostile)
		return; /* a line for all that a process has run */
	if (o->lines != NULL)
		++*o->lines;
	/* Not numbered: they end in another order than they begin. */
	printf("%s - seed %llu%s%s\n", ok ? "ok" : "not ok", (unsigned long long)c->seed, *c->why != '\0' ? ": " : "",
	    c->why);
	if (!ok)
		printf("# repeat it: tests/scenario/run%s --seed %llu%s%s --verbose\n# %.400s\n",
		    o->hostile ? " --hostile" : "", (unsigned long long)c->seed, *c->set != '\0' ? " --set " : "",
		    c->set, text);
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

static void
case_ended(const struct options *o, const struct run_case *c, bool ok, const char *text)
{
	if (c->script != NULL)
		tap_script(c, ok, text);
	else if (o->tap)
		tap_line(o, c, ok, text);
	else if (!ok)
		printf("seed %llu: %s\n", (unsigned long long)c->seed, text);
}

/* The complaint in the line about case nr, or NULL: the case went well. */
static char *
find_failure(char *said, unsigned nr)
{
	char mark[16];

	snprintf(mark, sizeof(mark), "%c%u ", FAIL_MARK, nr);
	char *line = strstr(said, mark);
	if (line == NULL)
		return NULL;
	line += strlen(mark);
	char *end = strchr(line, '\n');
	if (end != NULL)
		*end = '\0';
	return line;
}

/* Of a process that died under a case. */
static void
death_text(char *said, int status, char *text, size_t cap)
{
	char *last = strrchr(said, FAIL_MARK), *end = last != NULL ? strchr(last, '\n') : NULL;
	const char *what = last == NULL ? said : end != NULL ? end + 1 : "";

	if (WIFSIGNALED(status))
		snprintf(text, cap, "%s: %.2000s",
		    WTERMSIG(status) == SIGPROF ? "takes too long" : strsignal(WTERMSIG(status)), what);
	else
		snprintf(text, cap, "%.2000s", what);
	for (char *c = text; *c != '\0'; c++)
		if (*c == '\n')
			*c = '|';
}

/* A process has ended: how many of its cases failed. *again: so many at their end are still to be run. */
static unsigned
job_end(const struct options *o, struct job *j, int status, unsigned *again)
{
	static char said[1 << 16];
	char text[2200];
	unsigned at = *j->at, failed = 0;

	(void)job_output(j, said, sizeof(said));
	*again = 0;
	/* The process came to the end of all cases, and complains all the same (of a leak): which case was it? */
	if (at == j->cnt && j->cnt > 1 && (!WIFEXITED(status) || WEXITSTATUS(status) > 1)) {
		*again = j->cnt;
		return 0;
	}
	if (at == j->cnt && WIFEXITED(status) && WEXITSTATUS(status) > 1)
		at = j->cnt - 1;
	for (unsigned i = 0; i < at || (i == at && i < j->cnt); i++) {
		char *why = find_failure(said, i);

		if (i == at)
			death_text(said, status, text, sizeof(text));
		case_ended(o, &j->cases[i], i < at && why == NULL, i == at ? text : why != NULL ? why : "");
		failed += i == at || why != NULL;
	}
	*again = at < j->cnt ? j->cnt - at - 1 : 0;
	if (o->lines != NULL && failed == 0) {
		++*o->lines;
		printf("ok - %u hostile seeds, %llu to %llu\n", at, (unsigned long long)j->cases[0].seed,
		    (unsigned long long)j->cases[at - 1].seed);
	}
	return failed;
}

struct jobs {
	struct job job[64];
	uint32_t cnt, busy;
	const struct run_case *cases;
	unsigned next, total, batch;
	/* The cases that a process that died left; behind a leak, with one case a process. */
	struct {
		const struct run_case *cases;
		unsigned cnt, batch;
	} left[64];
	unsigned left_cnt;
};

static void
jobs_wait(const struct options *o, struct jobs *all, unsigned *failed)
{
	int status;
	pid_t pid = wait(&status);

	for (uint32_t i = 0; i < all->cnt; i++) {
		struct job *j = &all->job[i];
		unsigned again;

		if (j->pid != pid)
			continue;
		*failed += job_end(o, j, status, &again);
		all->busy--;
		if (again == 0)
			continue;
		all->left[all->left_cnt].cases = j->cases + j->cnt - again;
		all->left[all->left_cnt].cnt = again;
		all->left[all->left_cnt++].batch = again == j->cnt ? 1 : all->batch;
	}
}

/* The next cases for a process: how many. */
static unsigned
jobs_next(struct jobs *all, const struct run_case **cases)
{
	unsigned n = all->total - all->next < all->batch ? all->total - all->next : all->batch;

	if (all->left_cnt > 0) {
		unsigned at = all->left_cnt - 1;

		n = all->left[at].cnt < all->left[at].batch ? all->left[at].cnt : all->left[at].batch;
		*cases = all->left[at].cases;
		all->left[at].cases += n;
		all->left[at].cnt -= n;
		all->left_cnt -= all->left[at].cnt == 0;
		return n;
	}
	*cases = all->cases + all->next;
	all->next += n;
	return n;
}

/* Starts them all, some at a time: how many failed. */
static unsigned
run_cases(const struct options *o, const struct run_case *cases, unsigned total)
{
	static struct jobs all;
	unsigned failed = 0, n;
	const struct run_case *some;
	volatile unsigned *shared = mmap(NULL, sizeof(all.job) / sizeof(all.job[0]) * sizeof(*shared),
	    PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (shared == MAP_FAILED)
		abort();
	all = (struct jobs){ .cnt = o->jobs < 1 ? 1 : o->jobs > 60 ? 60 : o->jobs, .cases = cases, .total = total };
	all.batch = o->hostile ? BATCH : 1;
	while (all.next < all.total || all.left_cnt > 0 || all.busy > 0) {
		if ((o->until != 0 && all.next >= o->must && time(NULL) >= o->until) || (o->stop && failed > 0))
			all.total = all.next;
		if (all.busy == all.cnt || (all.next == all.total && all.left_cnt == 0)) {
			jobs_wait(o, &all, &failed);
			continue;
		}
		n = jobs_next(&all, &some);
		for (uint32_t i = 0; i < all.cnt; i++)
			if (all.job[i].pid == 0) {
				all.job[i].at = &shared[i];
				*all.job[i].at = 0;
				job_start(o, &all.job[i], some, n);
				break;
			}
		all.busy++;
	}
	return failed;
}

static int
soak(const struct options *o)
{
	struct run_case *cases = must_calloc(o->soak, sizeof(*cases));

	for (uint32_t i = 0; i < o->soak; i++)
		cases[i].seed = o->seed + i;
	unsigned failed = run_cases(o, cases, o->soak);
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

/* Of seeds without settings, some have hosts that are Linux's AF_SMC to one another, of either version or both, or such a host
 * among smcrds. */
static void
draw_af_smc(struct run_case *c, unsigned i)
{
	if (i % 6 < AF_SMC_SOME)
		snprintf(c->set, sizeof(c->set), "af_smc=%u", i % 6 + 1);
}

static int
tap_hostile(const struct options *given)
{
	struct run_case *cases = must_calloc(TAP_MAX + HOSTILE_RANDOM, sizeof(*cases));
	uint64_t random = getenv("CI") != NULL ? CI_SEEDS : (uint64_t)time(NULL) * 1000;
	struct options o = *given;
	unsigned cnt = o.seeds != NULL ? load_seeds(o.seeds, cases, TAP_MAX - HOSTILE_FIXED) : 0, lines = 0;

	for (unsigned i = 1; i <= HOSTILE_FIXED + HOSTILE_RANDOM; i++) {
		if (i > HOSTILE_FIXED)
			draw_af_smc(&cases[cnt], i);
		cases[cnt++].seed = i <= HOSTILE_FIXED ? i : random + i;
	}
	o.must = cnt - HOSTILE_RANDOM;
	o.until = time(NULL) + HOSTILE_SECONDS;
	o.lines = &lines;
	run_cases(&o, cases, cnt);
	printf("1..%u\n", lines);
	free(cases);
	return 0;
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
	for (unsigned i = 1; i <= TAP_FIXED + TAP_RANDOM; i++) {
		if (i > TAP_FIXED)
			draw_af_smc(&cases[cnt], i);
		cases[cnt++].seed = i <= TAP_FIXED ? i : random + i;
	}
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
	    "--hostile: with a host that lies; --stop: at the first failure\n"
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
		{ "hostile", no_argument, NULL, 'h' },
		{ "stop", no_argument, NULL, 'x' },
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
		else if (c == 'h')
			o.hostile = true;
		else if (c == 'x')
			o.stop = true;
		else
			return usage();
	}
	if (optind < argc && !o.tap)
		return usage();
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (optind < argc)
		return tap_scripts(&o, argv + optind, (unsigned)(argc - optind));
	one.seed = o.seed;
	if (o.tap && o.hostile)
		return tap_hostile(&o);
	return o.tap ? tap(&o) : o.soak > 0 ? soak(&o) : run_one(&o, &one, text, sizeof(text));
}
