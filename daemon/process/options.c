/* The command line of smcrd: see process/options.h. */
#include "daemon/process/options.h"

#include <config.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "daemon/config/config_keys.h"

enum {
	OPT_TAKE_OVER = 256,
	OPT_BACKGROUND,
	OPT_RELOAD,
	OPT_UNIT,
};

static const struct option long_options[] = {
	{ "help", no_argument, NULL, 'h' },
	{ "instance", required_argument, NULL, 'i' },
	{ "take-over", optional_argument, NULL, OPT_TAKE_OVER },
	{ "background", no_argument, NULL, OPT_BACKGROUND },
	{ "reload", no_argument, NULL, OPT_RELOAD },
	{ "unit", no_argument, NULL, OPT_UNIT },
	{ "version", no_argument, NULL, 'V' },
	{ NULL, 0, NULL, 0 },
};

static void
options_print_help(FILE *out)
{
	fputs(
	    "usage: smcrd [-i NAME] [-f FILE] [-t | -T | --reload] [-d LEVEL] [--take-over[=SOCKET]] [--unit]\n"
	    "             [--background]\n"
	    "Gateway between TCP and RDMA (SMC-R, RFC 7609).\n\n"
	    "  -f FILE     configuration file (" SYSCONFDIR
	    "/smcrd/smcrd.conf)\n"
	    "  -i, --instance NAME\n"
	    "              another daemon on this host: its file is NAME.conf, its control socket\n"
	    "              " RUNSTATEDIR
	    "/smcrd-NAME/control, where the file has none\n"
	    "  -t          check the configuration and exit\n"
	    "  -T          check it, print it with every default written out, and exit\n"
	    "  -d LEVEL    log level: error, warning, notice, info or debug\n"
	    "  --reload    have the running daemon read its configuration again, or take over from it if that\n"
	    "              needs it, and exit: 0 when the configuration is in force, 1 or 78 when not\n"
	    "  --take-over[=SOCKET]\n"
	    "              take the listening sockets of the running daemon over, which drains then;\n"
	    "              SOCKET is its control socket, when it is another one than the configuration's\n"
	    "  --unit      as the systemd unit: take over, with a parent process that is the unit's main process\n"
	    "  --background\n"
	    "              return when the daemon is ready, or has failed\n"
	    "  -V, --version\n"
	    "              print the version and exit\n"
	    "  -h, --help  print this and exit\n\n"
	    "Signals: HUP reloads, TERM or INT drains and ends, a second one ends at once.\n",
	    out);
}

static int
find_level(const char *text)
{
	const struct config_key *key = config_key_find(CONFIG_AT_TOP, "log_level");

	for (const struct config_word *w = key->words; w->text != NULL; w++)
		if (strcmp(w->text, text) == 0)
			return (int)w->value;
	fprintf(stderr, "smcrd: unknown log level %s\n", text);
	return -1;
}

static bool
take_text(int option, const char *text, struct options *o)
{
	if (option == 'd')
		return (o->log_level = find_level(text)) >= 0;
	if (option == 'f') {
		o->path = text;
		return true;
	}
	o->instance = text;
	if (!instance_name_ok(text))
		fprintf(stderr, "smcrd: no name of an instance: %s\n", text);
	return instance_name_ok(text);
}

static void
take_usual_file(struct options *o)
{
	if (o->path != NULL)
		return;
	o->path = OPTIONS_USUAL_FILE;
	if (o->instance == NULL)
		return;
	(void)snprintf(o->instance_path, sizeof(o->instance_path), "%s/%s.conf", SYSCONFDIR "/smcrd", o->instance);
	o->path = o->instance_path;
}

bool
options_is_usual(const struct options *o)
{
	return o->instance != NULL || strcmp(o->path, OPTIONS_USUAL_FILE) == 0;
}

enum options_action
smcrd_options_parse(int argc, char **argv, struct options *out)
{
	enum options_action action = OPTIONS_RUN;
	struct options o = { .log_level = -1 };
	int c;

	optind = 0; /* glibc: start again, for tests that call twice */
	while ((c = getopt_long(argc, argv, "i:f:tTd:Vh", long_options, NULL)) != -1) {
		switch (c) {
		case 'i':
		case 'f':
		case 'd':
			if (!take_text(c, optarg, &o))
				return OPTIONS_BAD;
			break;
		case 't':
		case 'T':
			if (action != OPTIONS_RUN && action != (c == 't' ? OPTIONS_TEST : OPTIONS_PRINT)) {
				fputs("smcrd: -t and -T exclude each other: -T checks as well.\n", stderr);
				return OPTIONS_BAD;
			}
			action = c == 't' ? OPTIONS_TEST : OPTIONS_PRINT;
			break;
		case OPT_RELOAD:
			action = OPTIONS_RELOAD;
			break;
		case OPT_TAKE_OVER:
			o.take_over = true;
			o.take_over_from = optarg;
			break;
		case OPT_UNIT:
			o.unit = true;
			break;
		case OPT_BACKGROUND:
			o.background = true;
			break;
		case 'h':
			options_print_help(stdout);
			return OPTIONS_DONE;
		case 'V':
			puts("smcrd " PACKAGE_VERSION);
			return OPTIONS_DONE;
		default:
			fputs("Try smcrd --help.\n", stderr);
			return OPTIONS_BAD;
		}
	}
	if (optind < argc) {
		fprintf(stderr, "smcrd: unexpected argument %s\nTry smcrd --help.\n", argv[optind]);
		return OPTIONS_BAD;
	}
	if (action != OPTIONS_RUN && (o.take_over || o.background)) {
		fputs("smcrd: --take-over and --background are for starting it, not for -t and -T.\n", stderr);
		return OPTIONS_BAD;
	}
	o.take_over = o.take_over || o.unit;
	*out = o;
	take_usual_file(out);
	return action;
}
