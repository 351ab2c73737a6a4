/* Reloads with a simulated loader, owner and systemd: their notifications, and the start of the next reload. */
#include "daemon/process/reload_job.h"

#include <errno.h>
#include <stdarg.h>

#include "captured.h"
#include "daemon/config/loader.h"
#include "unit.h"

/* -- stand-ins: the loader, of which there is one at a time, and what systemd hears -- */

static struct {
	loader_done done;
	void *arg;
	int rc; /* of loader_start */
	unsigned started, cancelled;
} loads;

static char heard[256]; /* by systemd, the owner and the client, in order */

static void __attribute__((format(printf, 1, 2))) hear(const char *fmt, ...)
{
	size_t len = strlen(heard);
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(heard + len, sizeof(heard) - len, fmt, ap);
	va_end(ap);
}

static void
has_heard(const char *text)
{
	ck_assert_str_eq(heard, text);
	heard[0] = '\0';
}

int
loader_start(struct loop *loop, const char *path, const char *instance, loader_done done, void *arg, struct job **out)
{
	(void)instance;
	ck_assert_ptr_null(loads.done);
	ck_assert_ptr_null(loop);
	ck_assert_str_eq(path, "/the/file");
	if (loads.rc != 0)
		return loads.rc;
	loads.done = done;
	loads.arg = arg;
	loads.started++;
	*out = (struct job *)&loads;
	return 0;
}

void
job_cancel(struct job *l)
{
	ck_assert(l == NULL || l == (struct job *)&loads);
	loads.cancelled += l != NULL;
	loads.done = NULL;
}

void
notify_reloading(struct notify *n)
{
	(void)n;
	hear("RELOADING ");
}

void
notify_ready(struct notify *n)
{
	n->enabled = true;
	hear("READY ");
}

/* -- the owner, and a client -- */

static struct config *in_force;
static int apply_rc;

static int
apply(void *arg, struct config *next, struct config_plan *plan, FILE *text)
{
	ck_assert_ptr_eq(arg, &in_force);
	hear("apply ");
	fputs(apply_rc == 0 ? "service b added\n" : "cannot listen\n", text);
	if (apply_rc != 0) {
		config_free(next);
		return apply_rc;
	}
	*plan = (struct config_plan){ .added = 1, .removed = 2, .changed = 3, .settings = 4, .fixed = 5 };
	config_free(in_force);
	in_force = next;
	return 0;
}

static void
client(void *arg, int rc, const char *msgs)
{
	hear("client(%s,%d,%s) ", (const char *)arg, rc, msgs);
}

static struct notify notify;
static struct reload_job r;

static void
setup(void)
{
	capture_begin(LOG_LVL_INFO);
	notify = (struct notify){ 0 };
	r = (struct reload_job){ .path = "/the/file", .notify = &notify, .apply = apply, .arg = &in_force };
	memset(&loads, 0, sizeof(loads));
	heard[0] = '\0';
	apply_rc = 0;
	in_force = NULL;
}

static void
teardown(void)
{
	config_free(in_force);
	capture_end();
}

/* The thread is done. */
static void
loaded(int rc, const char *msgs)
{
	loader_done done = loads.done;

	ck_assert_ptr_nonnull(done);
	loads.done = NULL;
	done(loads.arg, rc, rc == 0 ? calloc(1, sizeof(struct config)) : NULL, msgs);
}

static void
in_log(const char *text)
{
	const char *log = capture_take();

	ck_assert_msg(strstr(log, text) != NULL, "\"%s\" not in:\n%s", text, log);
}

UNIT_FIXTURE(setup, teardown);

START_TEST(a_reload_is_reported_from_begin_to_end)
{
	reload_job_want(&r);
	has_heard("RELOADING ");
	loaded(0, "");
	has_heard("apply READY ");
	ck_assert_ptr_nonnull(in_force);
	ck_assert(notify.enabled);
	in_log("configuration reloaded: file=/the/file added=1 changed=3 removed=2 settings=4 restart_needed_for=5");
	ck_assert_str_eq(r.note, "");
	ck_assert_uint_eq(loads.started, 1);
}

START_TEST(what_the_file_and_its_use_are_warned_of_goes_to_log_and_client)
{
	ck_assert_int_eq(reload_job_start_for(&r, client, (void *)"c"), 0);
	loaded(0, "f:1: warning: odd\n");
	has_heard("RELOADING apply READY client(c,0,f:1: warning: odd\nservice b added\n) ");
	const char *log = capture_take();
	ck_assert_ptr_nonnull(strstr(log, "warning: f:1: odd\n"));
	ck_assert_ptr_nonnull(strstr(log, "info: service b added\n"));
	/* He is told of his alone. */
	reload_job_want(&r);
	loaded(0, "");
	has_heard("RELOADING apply READY ");
}

START_TEST(a_file_that_is_wrong_changes_nothing)
{
	ck_assert_int_eq(reload_job_start_for(&r, client, (void *)"c"), 0);
	loaded(-EINVAL, "f:1: warning: odd\nf:2: unknown key\nf:3: and more\n");
	has_heard("RELOADING READY client(c,-22,f:1: warning: odd\nf:2: unknown key\nf:3: and more\n) ");
	ck_assert_ptr_null(in_force);
	in_log("error: reload failed, the old configuration stays in force: file=/the/file");
	ck_assert_str_eq(r.note, "reload failed, old configuration in force: f:2: unknown key");
}

START_TEST(one_that_cannot_be_put_in_force_does_not_either)
{
	apply_rc = -EADDRINUSE;
	ck_assert_int_eq(reload_job_start_for(&r, client, (void *)"c"), 0);
	loaded(0, "");
	has_heard("RELOADING apply READY client(c,-98,cannot listen\n) ");
	ck_assert_str_eq(r.note, "reload failed, old configuration in force: cannot listen");
	in_log("error: cannot listen\n");
	/* The note stays until a reload works. */
	reload_job_want(&r);
	ck_assert_str_ne(r.note, "");
	apply_rc = 0;
	loaded(0, "");
	ck_assert_str_eq(r.note, "");
}

START_TEST(a_long_message_is_cut_in_the_note)
{
	char line[512];

	memset(line, 'x', sizeof(line) - 1);
	line[sizeof(line) - 1] = '\0';
	reload_job_want(&r);
	loaded(-EINVAL, line);
	ck_assert_uint_eq(strlen(r.note), RELOAD_JOB_NOTE_MAX - 1);
}

/* However many come meanwhile: the file is read once more, as it was not yet what they meant. */
START_LOOP_TEST(signals_meanwhile_are_one_more_reload, 0, 2)
{
	reload_job_want(&r);
	reload_job_want(&r);
	reload_job_want(&r);
	ck_assert_uint_eq(loads.started, 1);
	loaded(_i == 0 ? 0 : -EINVAL, "");
	ck_assert_uint_eq(loads.started, 2);
	loaded(0, "");
	ck_assert_uint_eq(loads.started, 2);
	has_heard(_i == 0 ? "RELOADING apply READY RELOADING apply READY " : "RELOADING READY RELOADING apply READY ");
}

START_TEST(a_client_does_not_join_one_that_is_going_on)
{
	reload_job_want(&r);
	ck_assert_int_eq(reload_job_start_for(&r, client, (void *)"c"), -EBUSY);
	loaded(0, "");
	has_heard("RELOADING apply READY ");
	ck_assert_uint_eq(loads.started, 1);
	ck_assert_int_eq(reload_job_start_for(&r, client, (void *)"c"), 0);
	ck_assert_int_eq(reload_job_start_for(&r, client, (void *)"d"), -EBUSY);
	loaded(0, "");
	has_heard("RELOADING apply READY client(c,0,service b added\n) ");
}

START_TEST(one_that_cannot_start_leaves_nothing)
{
	loads.rc = -EAGAIN;
	ck_assert_int_eq(reload_job_start_for(&r, client, (void *)"c"), -EAGAIN);
	in_log("error: reload cannot start: error=\"Resource temporarily unavailable\"");
	reload_job_want(&r);
	in_log("error: reload cannot start");
	has_heard("");
	loads.rc = 0;
	reload_job_want(&r);
	loaded(0, "");
	has_heard("RELOADING apply READY ");
}

START_TEST(a_cancelled_one_tells_its_client)
{
	ck_assert_int_eq(reload_job_start_for(&r, client, (void *)"c"), 0);
	reload_job_want(&r);
	reload_job_cancel(&r);
	has_heard("RELOADING client(c,-125,the daemon is ending\n) ");
	ck_assert_uint_eq(loads.cancelled, 1);
	/* Neither is done twice, nor does the signal that came meanwhile count any more. */
	reload_job_cancel(&r);
	has_heard("");
	ck_assert_uint_eq(loads.cancelled, 1);
	reload_job_want(&r);
	loaded(0, "");
	has_heard("RELOADING apply READY ");
	ck_assert_uint_eq(loads.started, 2);
}

START_TEST(there_may_be_none_to_cancel)
{
	r = (struct reload_job){ 0 };
	reload_job_cancel(&r);
	has_heard("");
}
