/* The client of a reload; see process/reload_client.h. */
#include "daemon/process/reload_client.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/control/handover_msg.h"
#include "daemon/process/control_ask.h"

#define WAIT_S 180 /* the daemon resolves names */

static const char status_request[] = "{\"command\":\"status\"}\n";

static const char *
text_of(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text != NULL ? text : "";
}

static pid_t
pid_of(const json_t *status)
{
	return (pid_t)json_integer_value(json_object_get(status, "pid"));
}

/* Only its own user may take over from a daemon. */
static bool
may_take_over(FILE *f)
{
	struct ucred cred = { 0 };
	socklen_t len = sizeof(cred);

	return getsockopt(fileno(f), SOL_SOCKET, SO_PEERCRED, &cred, &len) == 0 && cred.uid == geteuid();
}

/* A package replaces the file; the running program keeps its own. */
static bool
is_another_program(const json_t *status)
{
	struct stat its, ours;
	char path[48];

	snprintf(path, sizeof(path), "/proc/%d/exe", (int)pid_of(status));
	return stat(path, &its) == 0 && stat("/proc/self/exe", &ours) == 0 &&
	    (its.st_dev != ours.st_dev || its.st_ino != ours.st_ino);
}

static enum reload_outcome
request_plain(FILE *f, const char *control_path, FILE *out, FILE *err)
{
	enum reload_outcome outcome = RELOAD_UNREACHABLE;
	json_t *root = control_ask(f, "{\"command\":\"reload\"}\n");
	const json_t *error = json_object_get(root, "error"), *data = json_object_get(root, "data");

	if (json_is_object(error)) {
		fprintf(err, "reload refused: %s\n", text_of(error, "text"));
		outcome = strcmp(text_of(error, "code"), "reload-failed") == 0 ? RELOAD_NEEDS_TAKE_OVER
		                                                               : RELOAD_REFUSED;
	} else if (json_is_object(data)) {
		fputs(text_of(data, "messages"), out);
		outcome = RELOAD_IN_FORCE;
	} else {
		fprintf(err, "the daemon at %s cannot be asked: %s\n", control_path, strerror(errno));
	}
	json_decref(root);
	return outcome;
}

enum reload_outcome
reload_client_run(const char *control_path, FILE *out, FILE *err)
{
	FILE *f = control_dial(control_path, WAIT_S);
	json_t *root = f != NULL ? control_ask(f, status_request) : NULL;
	const json_t *status = json_object_get(root, "data");
	const bool may = f != NULL && may_take_over(f), other = is_another_program(status);
	enum reload_outcome outcome = RELOAD_UNREACHABLE;

	if (root == NULL) {
		fprintf(err, "the daemon at %s cannot be asked: %s\n", control_path, strerror(errno));
	} else if (may && other && !json_is_true(json_object_get(status, "draining"))) {
		outcome = RELOAD_NEEDS_TAKE_OVER;
	} else {
		outcome = request_plain(f, control_path, out, err);
		if (outcome == RELOAD_NEEDS_TAKE_OVER && !may)
			outcome = RELOAD_REFUSED;
		if (outcome == RELOAD_IN_FORCE && other)
			fputs("the daemon runs another program: its own user's \"smcrd --reload\" changes that\n", out);
	}
	json_decref(root);
	root = outcome == RELOAD_IN_FORCE && may ? control_ask(f, status_request) : NULL;
	if (json_integer_value(json_object_get(json_object_get(root, "data"), "waiting_settings")) > 0)
		outcome = RELOAD_NEEDS_TAKE_OVER;
	json_decref(root);
	if (f != NULL)
		fclose(f);
	return outcome;
}

pid_t
reload_client_find(const char *control_path)
{
	FILE *f = control_dial(control_path, WAIT_S);
	json_t *root = f != NULL ? control_ask(f, status_request) : NULL;
	const pid_t pid = pid_of(json_object_get(root, "data"));

	json_decref(root);
	if (f != NULL)
		fclose(f);
	return pid;
}

void
reload_client_report(const char *control_path, const char *why)
{
	FILE *f = control_dial(control_path, WAIT_S);
	char line[256], byte;
	const int len = snprintf(line, sizeof(line), HANDOVER_FAILED "%.200s\n", why);

	if (f == NULL)
		return;
	if (send(fileno(f), line, (size_t)len, MSG_NOSIGNAL) == len)
		(void)!read(fileno(f), &byte, 1); /* its end, when that is noted */
	fclose(f);
}
