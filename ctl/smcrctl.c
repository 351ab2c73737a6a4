/* smcrctl: shows and steers a running smcrd by its control socket. Asks it and prints, once or again and again. */
#include <jansson.h>
#include <locale.h>
#include <netdb.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "base/addr.h"
#include "ctl/ask.h"
#include "ctl/capture.h"
#include "ctl/delta.h"
#include "ctl/doctor.h"
#include "ctl/options.h"
#include "ctl/routes.h"
#include "ctl/show.h"
#include "ctl/template.h"
#include "ctl/text.h"
#include "ctl/top.h"

#define DELTA_MS 2000 /* between two samples without --watch */
#define TOP_ROWS 20   /* connections, without a screen */

enum {
	EXIT_WELL = 0,
	EXIT_NO = 1,      /* the daemon answered, and the answer is no */
	EXIT_TROUBLE = 2, /* usage, no daemon, no permission, broken answer */
};

/* A line of the daemon as an object, or NULL (said). */
static json_t *
parse_line(const char *line)
{
	json_error_t jerr;
	json_t *root = json_loads(line, JSON_REJECT_DUPLICATES, &jerr);

	if (json_is_object(root))
		return root;
	fprintf(stderr, "smcrctl: cannot understand the answer: %s\n", root == NULL ? jerr.text : "no object");
	json_decref(root);
	return NULL;
}

/* The daemon's error in words; its exit status. */
static int
tell_error(const json_t *error)
{
	const char *text = json_string_value(json_object_get(error, "text"));
	bool refused = template_holds(error, "code=reload-failed");
	/* What was asked for is well, and cannot be had now. */
	bool no = template_holds(
	    error, "code=not-found,code=last-link,code=complete,code=no-device,code=not-draining,code=stopping");

	if (refused)
		fputs("smcrctl: the new configuration was refused, the old one stays in force:\n", stderr);
	else
		fputs("smcrctl: smcrd says: ", stderr);
	print_clean(stderr, text != NULL ? text : "nothing", true);
	if (text == NULL || text[0] == '\0' || text[strlen(text) - 1] != '\n')
		fputc('\n', stderr);
	return refused || no ? EXIT_NO : EXIT_TROUBLE;
}

/* Were only some of a list's items asked for, or meant, and there are none? */
static bool
nothing_matches(const struct options *o, const json_t *data)
{
	if (o->command == CONTROL_CLOSE)
		return get_int(data, "closed") == 0;
	const json_t *list = json_object_get(data, control_commands[o->command].name);

	return (o->service != NULL || o->mode != NULL || o->group != 0) && json_is_array(list) &&
	    json_array_size(list) == 0;
}

/* Prints an answer one way or the other: exit status. */
static int
print_answer(const struct options *o, const char *line, const json_t *root)
{
	const json_t *error = json_object_get(root, "error"), *data = json_object_get(root, "data");

	if (o->json)
		puts(line);
	if (json_is_object(error))
		return tell_error(error);
	if (!json_is_object(data)) {
		fprintf(stderr, "smcrctl: cannot understand the answer: no data\n");
		return EXIT_TROUBLE;
	}
	if (!o->json)
		show_answer(stdout, o->command, data, o->detail);
	if (nothing_matches(o, data)) {
		fprintf(stderr, "smcrctl: nothing matches: there are no such %s\n",
		    o->command == CONTROL_CLOSE ? "connections" : control_commands[o->command].name);
		return EXIT_NO;
	}
	if (o->command == CONTROL_RETRY && !template_holds(data, "peers,links,prewarms,targets,devices,names")) {
		fprintf(stderr, "smcrctl: nothing to retry: nothing %s\n",
		    o->peer != NULL ? "with this peer waits for another try"
		                    : "waits for another try, and neither device nor name is missing");
		return EXIT_NO;
	}
	if (o->command == CONTROL_CHECK && !get_bool(data, "possible"))
		return EXIT_NO;
	return EXIT_WELL;
}

/* A line behind the answer. False: it is the last one. */
static bool
print_line(const struct options *o, const char *line, const json_t *root, unsigned *shown)
{
	bool last = strcmp(get_string(root, "event"), "end") == 0;

	*shown += !last;
	if (o->json && !last)
		puts(line);
	else if (!o->json)
		show_answer(stdout, o->command, root, o->detail);
	return !last;
}

/* All events that are kept are printed. */
static int
events_over(const struct options *o, unsigned shown)
{
	if (shown > 0 || (o->service == NULL && o->group == 0 && o->kind == NULL))
		return EXIT_WELL;
	fprintf(stderr, "smcrctl: nothing matches: there are no such events\n");
	return EXIT_NO;
}

/* The answer; of a trace or events also the lines that follow, until the last one, or until the daemon or the reader of our
 * output ends. */
static int
print_lines(const struct options *o, struct ask *a)
{
	const bool lines_follow = o->command == CONTROL_TRACE || o->command == CONTROL_EVENTS;
	unsigned shown = 0;
	int status = -1; /* not known yet */

	for (bool following = false; status < 0;) {
		const char *line = ask_line(a);
		json_t *root = line != NULL ? parse_line(line) : NULL;
		const json_t *error = json_object_get(root, "error");

		if (root == NULL)
			return EXIT_TROUBLE;
		if (following && !json_is_object(error)) {
			if (!print_line(o, line, root, &shown))
				status = events_over(o, shown);
		} else if (lines_follow && json_is_null(error)) {
			following = true;
			if (o->command == CONTROL_TRACE || o->follow)
				ask_set_timeout(a, 0);
		} else {
			status = print_answer(o, line, root);
		}
		json_decref(root);
		if (status < 0 && fflush(stdout) != 0)
			status = EXIT_TROUBLE;
	}
	return status;
}

/* One request and its answer; peer is for `check`. */
static int
run_request(const struct options *o, const char *peer)
{
	struct ask a;
	int status;

	if (ask_begin(&a, o, peer) != 0)
		return EXIT_TROUBLE;
	status = print_lines(o, &a);
	ask_close(&a);
	return status;
}

/* Every address of the peer in turn, as a client would do, until one is found to be well. */
static int
run_check(const struct options *o)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV | AI_ADDRCONFIG }, *list;
	char port[8], text[ADDR_STR_MAX];
	int rc, status = EXIT_NO;

	snprintf(port, sizeof(port), "%u", (unsigned)o->port);
	rc = getaddrinfo(o->host, port, &hints, &list);
	if (rc != 0) {
		fprintf(stderr, "smcrctl: no address for %s: %s\n", o->host, gai_strerror(rc));
		return EXIT_TROUBLE;
	}
	for (struct addrinfo *ai = list; ai != NULL && status == EXIT_NO; ai = ai->ai_next) {
		struct sockaddr_storage ss = { 0 };

		memcpy(&ss, ai->ai_addr, ai->ai_addrlen);
		status = run_request(o, addr_format_port(&ss, text, sizeof(text)));
	}
	freeaddrinfo(list);
	return status;
}

/* -- what is made of several answers -- */

/* The answer to one command, to be freed; NULL, and the reason is said. */
static json_t *
fetch(const struct options *o, enum control_command command)
{
	const struct options one = {
		.socket = o->socket,
		.command = command,
		.json = o->json,
		.worker = o->worker,
		.service = command == CONTROL_SERVICE ? o->service : NULL,
	};
	struct ask a;

	if (ask_begin(&a, &one, NULL) != 0)
		return NULL;
	const char *line = ask_line(&a);
	json_t *root = line != NULL ? parse_line(line) : NULL;
	const json_t *error = json_object_get(root, "error");
	ask_close(&a);
	if (!json_is_object(error))
		return root;
	(void)tell_error(error);
	json_decref(root);
	return NULL;
}

static void
watch_heading(const struct options *o)
{
	time_t now = time(NULL);
	char text[64] = "";
	struct tm tm;

	if (o->json)
		return;
	if (localtime_r(&now, &tm) != NULL)
		strftime(text, sizeof(text), "%F %T", &tm);
	if (isatty(STDOUT_FILENO))
		fputs("\033[H\033[2J", stdout);
	printf("smcrctl %s, every %.1fs: %s\n", control_commands[o->command].name, (double)o->watch_ms / 1000, text);
}

/* Until the next sample. */
static void
pause_watch(const struct options *o)
{
	(void)poll(NULL, 0, o->watch_ms != 0 ? (int)o->watch_ms : DELTA_MS);
}

/* Of two looks, or with --watch of each and the one before, until the daemon is not there. */
static int
run_delta(const struct options *o)
{
	json_t *before = fetch(o, CONTROL_STATS);

	while (before != NULL) {
		pause_watch(o);
		json_t *after = fetch(o, CONTROL_STATS), *diff = after != NULL ? delta_make(before, after) : NULL;
		if (diff != NULL && o->watch_ms != 0)
			watch_heading(o);
		if (diff != NULL)
			show_made(o->json, CONTROL_STATS, diff, o->detail);
		json_decref(diff);
		json_decref(before);
		before = after;
		if (after != NULL && (o->watch_ms == 0 || fflush(stdout) != 0)) {
			json_decref(after);
			return EXIT_WELL;
		}
	}
	return EXIT_TROUBLE;
}

/* The screen that stdout is; all 0: none. */
static struct winsize
screen(void)
{
	struct winsize size = { 0 };

	if (!isatty(STDOUT_FILENO) || ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0)
		return (struct winsize){ 0 };
	if (size.ws_row == 0)
		size.ws_row = 24;
	if (size.ws_col == 0)
		size.ws_col = 80;
	return size;
}

/* Without a screen the text as it is. */
static int
print_top(const struct options *o, struct top *t, const json_t *status, const json_t *conns)
{
	const json_t *services = json_object_get(status, "data"), *connections = json_object_get(conns, "data");
	const struct winsize size = screen();
	char *text = NULL;
	size_t len;

	/* Later on a reload may take a service away, and bring it back. */
	if (t->time_ms == 0 && !top_knows(services, connections, o->service)) {
		fprintf(stderr, "smcrctl: nothing matches: there is no such service\n");
		return EXIT_NO;
	}
	FILE *f = open_memstream(&text, &len);
	if (f == NULL) {
		fprintf(stderr, "smcrctl: out of memory\n");
		return EXIT_TROUBLE;
	}
	t->rows = size.ws_row != 0 ? size.ws_row : TOP_ROWS;
	top_show(t, f, services, connections, get_int(conns, "time_ms"), o->service);
	fclose(f);
	if (size.ws_row != 0)
		top_paint(stdout, text, size.ws_row, size.ws_col);
	else
		printf("%s\n", text);
	free(text);
	return EXIT_WELL;
}

/* One look. */
static int
show_top(const struct options *o, struct top *t)
{
	json_t *status = fetch(o, CONTROL_STATUS), *conns = status != NULL ? fetch(o, CONTROL_CONNECTIONS) : NULL;
	int rc = conns != NULL ? print_top(o, t, status, conns) : EXIT_TROUBLE;

	json_decref(status);
	json_decref(conns);
	return rc;
}

/* Until the daemon is not there, or nobody reads. */
static int
run_top(const struct options *o)
{
	struct top t = { 0 };
	int status;

	while ((status = show_top(o, &t)) == EXIT_WELL && fflush(stdout) == 0)
		pause_watch(o);
	top_fini(&t);
	return status;
}

static int
run_routes(const struct options *o)
{
	json_t *root = fetch(o, CONTROL_SERVICE);

	if (root == NULL)
		return EXIT_TROUBLE;
	const char *none = routes_print(stdout, json_object_get(root, "data"), routes_place_of);
	json_decref(root);
	if (none == NULL)
		return EXIT_WELL;
	fprintf(stderr, "smcrctl: no routes for this service: %s\n", none);
	return EXIT_NO;
}

static int
run_capture(const struct options *o)
{
	const struct capture c = { .cgroup = o->cgroup, .uid = o->uid, .interface = o->interface, .strict = o->strict };
	json_t *root = fetch(o, CONTROL_SERVICE);

	if (root == NULL)
		return EXIT_TROUBLE;
	const int rc = capture_print(stdout, stderr, json_object_get(root, "data"), &c);
	json_decref(root);
	return rc == 0 ? EXIT_WELL : EXIT_NO;
}

static int
run_once(const struct options *o)
{
	if (o->command == CONTROL_ROUTES)
		return run_routes(o);
	if (o->command == CONTROL_CAPTURE)
		return run_capture(o);
	if (o->command == CONTROL_DOCTOR)
		return doctor_run(o);
	return o->command == CONTROL_CHECK ? run_check(o) : run_request(o, NULL);
}

/* True when a daemon is there. Says nothing. */
static bool
daemon_runs(const struct options *o)
{
	struct ask a;

	if (ask_open(&a, o, true) != 0)
		return false;
	ask_close(&a);
	return true;
}

/* How far a drain is; drained: it is complete. It is asked for once: somebody may have taken it back, and does not want another one. */
static int
show_drain(const struct options *o, bool *drained)
{
	json_t *root = fetch(o, CONTROL_STATUS);
	const json_t *data = json_object_get(root, "data");
	bool draining = get_bool(data, "draining");

	if (root == NULL)
		return EXIT_TROUBLE;
	json_object_set_new(root, "command", json_string(control_commands[CONTROL_DRAIN].name));
	json_object_set_new(root, "data",
	    json_pack("{s:O*, s:O*, s:O*}", "draining", json_object_get(data, "draining"), "ends",
	        json_object_get(data, "ends"), "connections", json_object_get(data, "connections")));
	*drained = draining && !o->then_exit &&
	    !template_holds(root, "data.connections.smcr,data.connections.tcp,data.connections.setup");
	if (draining || o->json)
		show_made(o->json, CONTROL_DRAIN, root, o->detail);
	if (!draining)
		fprintf(stderr, "smcrctl: the drain was taken back\n");
	else if (*drained && !o->json)
		puts("drained: no connection is left, and none is accepted until undrain");
	json_decref(root);
	return draining ? EXIT_WELL : EXIT_NO;
}

/* A failure of the first request ends it; later ones are shown, and it goes on, as a daemon may be restarted. */
static int
run_watch(const struct options *o)
{
	bool drain = o->command == CONTROL_DRAIN, drained = false;

	for (bool first = true;; first = false) {
		if (!first && drain && !daemon_runs(o)) {
			if (!o->json)
				puts("drained: smcrd has ended");
			return EXIT_WELL;
		}
		watch_heading(o);
		int status = drain && !first ? show_drain(o, &drained) : run_once(o);
		if (first ? status == EXIT_TROUBLE : drain && status == EXIT_NO)
			return status;
		if (fflush(stdout) != 0)
			return EXIT_TROUBLE;
		if (drained)
			return EXIT_WELL;
		pause_watch(o);
	}
}

int
main(int argc, char **argv)
{
	struct options o;

	setlocale(LC_CTYPE, "");
	enum options_result parsed = options_parse(argc, argv, &o, stdout, stderr);
	if (parsed != OPTIONS_RUN)
		return parsed == OPTIONS_DONE ? EXIT_WELL : EXIT_TROUBLE;
	show_set_width(screen().ws_col);
	int status = o.command == CONTROL_TOP ? run_top(&o)
	    : o.delta                         ? run_delta(&o)
	    : o.watch_ms != 0                 ? run_watch(&o)
	                                      : run_once(&o);
	if (fflush(stdout) != 0) {
		fprintf(stderr, "smcrctl: cannot write the output\n");
		return EXIT_TROUBLE;
	}
	return status;
}
