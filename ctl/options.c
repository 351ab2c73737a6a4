/* The command line of smcrctl; see options.h. */
#include "ctl/options.h"

#include <config.h>
#include <errno.h>
#include <getopt.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/addr.h"

#define DEFAULT_SOCKET RUNSTATEDIR "/smcrd/control"
#define WATCH_DEFAULT_MS 2000
#define WATCH_MIN_MS 100
#define WATCH_MAX_MS 86400000
#define CHECK_DEFAULT_MS 10000
#define CHECK_MAX_MS 60000

enum {
	OPT_SERVICE = 256,
	OPT_SMCR,
	OPT_TCP,
	OPT_SETUP,
	OPT_GROUP,
	OPT_TOKEN,
	OPT_CLC,
	OPT_LLC,
	OPT_CDC,
	OPT_TIMEOUT,
};

static const struct option longs[] = {
	{ "socket", required_argument, NULL, 's' },
	{ "json", no_argument, NULL, 'j' },
	{ "detail", no_argument, NULL, 'd' },
	{ "watch", optional_argument, NULL, 'w' },
	{ "help", no_argument, NULL, 'h' },
	{ "version", no_argument, NULL, 'V' },
	{ "service", required_argument, NULL, OPT_SERVICE },
	{ "smcr", no_argument, NULL, OPT_SMCR },
	{ "tcp", no_argument, NULL, OPT_TCP },
	{ "setup", no_argument, NULL, OPT_SETUP },
	{ "group", required_argument, NULL, OPT_GROUP },
	{ "token", required_argument, NULL, OPT_TOKEN },
	{ "clc", no_argument, NULL, OPT_CLC },
	{ "llc", no_argument, NULL, OPT_LLC },
	{ "cdc", no_argument, NULL, OPT_CDC },
	{ "timeout", required_argument, NULL, OPT_TIMEOUT },
	{ 0 },
};

/* What a command takes besides the options of all. */
enum {
	TAKES_CONN_FILTER = 1 << 0, /* --service, --smcr, --tcp, --setup */
	TAKES_GROUP = 1 << 1,
	TAKES_TRACE_FILTER = 1 << 2, /* --token, --clc, --llc, --cdc */
	TAKES_PEER = 1 << 3,         /* HOST:PORT and --timeout */
	NO_WATCH = 1 << 4,
	MAY_NAME_GROUP = 1 << 5, /* [GROUP] */
	NAMES_LINK = 1 << 6,     /* GROUP NUMBER */
};

static const struct {
	const char *name; /* in a request; on the command line a hyphen is the end of a word */
	unsigned flags;
} commands[] = {
	{ "status", 0 },
	{ "devices", 0 },
	{ "groups", 0 },
	{ "links", TAKES_GROUP },
	{ "connections", TAKES_CONN_FILTER | TAKES_GROUP },
	{ "rmbs", TAKES_GROUP },
	{ "stats", 0 },
	{ "reload", NO_WATCH },
	{ "drain", 0 },
	{ "check", TAKES_PEER },
	{ "trace", TAKES_GROUP | TAKES_TRACE_FILTER | NO_WATCH },
	{ "rebalance", MAY_NAME_GROUP | NO_WATCH },
	{ "link-delete", NAMES_LINK | NO_WATCH },
};

static const char help[] =
    "Usage: smcrctl [OPTION]... COMMAND [ARGUMENT]\n"
    "Look at and steer smcrd, the gateway between TCP and RDMA.\n"
    "\n"
    "Commands:\n"
    "  status           version, connections, memory, services\n"
    "  connections      every proxied connection: SMC-R or TCP, and why\n"
    "  groups           link groups\n"
    "  links            links of the groups\n"
    "  rmbs             remote memory buffers\n"
    "  devices          RDMA devices\n"
    "  stats            all counters, most frequent reasons against SMC-R\n"
    "  check HOST:PORT  is SMC-R possible to that peer, and if not, why\n"
    "  trace            CLC, LLC and CDC messages as they come and go\n"
    "  rebalance [GROUP]        spread connections evenly over the links\n"
    "  link delete GROUP LINK   take a link out of its group\n"
    "  reload           read the configuration again\n"
    "  drain            take no new connections, end when the last one has\n"
    "\n"
    "Options:\n"
    "  -j, --json              print the daemon's JSON instead of text\n"
    "  -d, --detail            more columns\n"
    "  -w, --watch[=SECONDS]   again and again, every 2 seconds if not said\n"
    "  -s, --socket PATH       control socket of the daemon\n"
    "                          (" DEFAULT_SOCKET
    ")\n"
    "  -h, --help              this text\n"
    "  -V, --version           the version\n"
    "\n"
    "connections:    --service NAME, --smcr, --tcp, --setup: only those\n"
    "connections, links, rmbs, trace:  --group ID: only of this link group\n"
    "trace:          --clc, --llc, --cdc: only these kinds\n"
    "                --token TOKEN: only of this connection (connections -d)\n"
    "check:          --timeout SECONDS (10)\n"
    "\n"
    "Exit status: 0 if well; 1 if the answer is no (check: not possible; reload:\n"
    "refused; link\n"
    "delete, rebalance: not there); 2 in case of an error. More in smcrctl(8).\n";

/* Seconds with decimals, as milliseconds: 0 or -EINVAL. */
static int
parse_seconds(const char *text, int64_t min_ms, int64_t max_ms, int64_t *out)
{
	char *end;
	double v;

	errno = 0;
	v = strtod(text, &end) * 1000;
	if (end == text || *end != '\0' || errno != 0 || !(v >= (double)min_ms && v <= (double)max_ms))
		return -EINVAL;
	*out = (int64_t)v;
	return 0;
}

/* A positive number, 0x for hexadecimal: 0 or -EINVAL. */
static int
parse_u32(const char *text, uint32_t *out)
{
	unsigned long long v;
	char *end;

	if (text[0] < '0' || text[0] > '9')
		return -EINVAL;
	errno = 0;
	v = strtoull(text, &end, 0);
	if (*end != '\0' || errno != 0 || v == 0 || v > UINT32_MAX)
		return -EINVAL;
	*out = (uint32_t)v;
	return 0;
}

/* One option into *o and what it asks of the command into *needs: 0, or -EINVAL (told on err). */
static int
take_option(int opt, struct options *o, unsigned *needs, FILE *err)
{
	int64_t ms;

	switch (opt) {
	case 's':
		o->socket = optarg;
		return 0;
	case 'j':
		o->json = true;
		return 0;
	case 'd':
		o->detail = true;
		return 0;
	case 'w':
		o->watch_ms = WATCH_DEFAULT_MS;
		if (optarg == NULL || parse_seconds(optarg, WATCH_MIN_MS, WATCH_MAX_MS, &o->watch_ms) == 0)
			return 0;
		fprintf(err, "smcrctl: --watch takes seconds, 0.1 to 86400: --watch=%s\n", optarg);
		return -EINVAL;
	case OPT_SERVICE:
		o->service = optarg;
		*needs |= TAKES_CONN_FILTER;
		return 0;
	case OPT_SMCR:
	case OPT_TCP:
	case OPT_SETUP:
		if (o->mode != NULL) {
			fprintf(err, "smcrctl: only one of --smcr, --tcp and --setup can be given\n");
			return -EINVAL;
		}
		o->mode = opt == OPT_SMCR ? "smcr" : opt == OPT_TCP ? "tcp" : "setup";
		*needs |= TAKES_CONN_FILTER;
		return 0;
	case OPT_GROUP:
		*needs |= TAKES_GROUP;
		if (parse_u32(optarg, &o->group) == 0)
			return 0;
		fprintf(err, "smcrctl: --group takes the number of a link group: %s\n", optarg);
		return -EINVAL;
	case OPT_TOKEN:
		*needs |= TAKES_TRACE_FILTER;
		if (parse_u32(optarg, &o->token) == 0)
			return 0;
		fprintf(err, "smcrctl: --token takes a token as 'connections --detail' shows it: %s\n", optarg);
		return -EINVAL;
	case OPT_CLC:
		o->clc = true;
		*needs |= TAKES_TRACE_FILTER;
		return 0;
	case OPT_LLC:
		o->llc = true;
		*needs |= TAKES_TRACE_FILTER;
		return 0;
	case OPT_CDC:
		o->cdc = true;
		*needs |= TAKES_TRACE_FILTER;
		return 0;
	case OPT_TIMEOUT:
		*needs |= TAKES_PEER;
		if (parse_seconds(optarg, 1, CHECK_MAX_MS, &ms) == 0) {
			o->timeout_ms = (uint32_t)ms;
			return 0;
		}
		fprintf(err, "smcrctl: --timeout takes seconds, up to 60: %s\n", optarg);
		return -EINVAL;
	default: /* getopt has said what is wrong */
		return -EINVAL;
	}
}

static int
take_peer(const char *text, struct options *o, FILE *err)
{
	size_t len;

	if (text == NULL) {
		fprintf(err, "smcrctl: check needs HOST:PORT\n");
		return -EINVAL;
	}
	if (addr_split(text, o->host, sizeof(o->host), &o->port) != 0) {
		fprintf(err, "smcrctl: not of the form HOST:PORT or [IPv6]:PORT: %s\n", text);
		return -EINVAL;
	}
	len = strlen(o->host);
	if (o->host[0] == '[' && o->host[len - 1] == ']') {
		memmove(o->host, o->host + 1, len - 2);
		o->host[len - 2] = '\0';
	}
	return 0;
}

/* GROUP, and NUMBER when the command names a link; *next moves behind them. */
static int
take_names(char ***next, unsigned flags, struct options *o, FILE *err)
{
	const char *group = **next, *link;

	if (group == NULL && (flags & NAMES_LINK) == 0)
		return 0;
	if (group == NULL || parse_u32(group, &o->group) != 0) {
		fprintf(err, "smcrctl: the number of a link group is needed: %s\n", group != NULL ? group : "");
		return -EINVAL;
	}
	++*next;
	if ((flags & NAMES_LINK) == 0)
		return 0;
	link = **next;
	if (link == NULL || parse_u32(link, &o->link) != 0 || o->link > UINT8_MAX) {
		fprintf(err, "smcrctl: the number of a link in its group is needed: %s\n", link != NULL ? link : "");
		return -EINVAL;
	}
	++*next;
	return 0;
}

/* "link-delete" is two words on the command line. How many words name[] is in args; 0 = it is not. */
static unsigned
match_command(char **args, const char *name)
{
	unsigned n = 0;

	while (args[n] != NULL) {
		size_t len = strcspn(name, "-");

		if (strlen(args[n]) != len || memcmp(args[n], name, len) != 0)
			return 0;
		n++;
		name += len;
		if (*name++ == '\0')
			return n;
	}
	return 0;
}

static int
find_command(char ***args, unsigned *flags, struct options *o, FILE *err)
{
	if (**args == NULL) {
		fprintf(err, "smcrctl: no command given\n");
		return -EINVAL;
	}
	for (unsigned i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		unsigned words = match_command(*args, commands[i].name);

		if (words == 0)
			continue;
		*flags = commands[i].flags;
		o->command = commands[i].name;
		*args += words;
		return 0;
	}
	fprintf(err, "smcrctl: unknown command: %s\n", **args);
	return -EINVAL;
}

static int
take_command(char **next, unsigned needs, struct options *o, FILE *err)
{
	unsigned flags = 0;

	if (find_command(&next, &flags, o, err) != 0)
		return -EINVAL;
	if ((needs & ~flags) != 0) {
		fprintf(err, "smcrctl: %s does not take one of these options\n", o->command);
		return -EINVAL;
	}
	if (o->watch_ms != 0 && (flags & NO_WATCH) != 0) {
		fprintf(err, "smcrctl: %s cannot be watched\n", o->command);
		return -EINVAL;
	}
	if ((flags & TAKES_PEER) != 0) {
		if (take_peer(*next, o, err) != 0)
			return -EINVAL;
		next++;
	}
	if ((flags & (MAY_NAME_GROUP | NAMES_LINK)) != 0 && take_names(&next, flags, o, err) != 0)
		return -EINVAL;
	if (*next != NULL) {
		fprintf(err, "smcrctl: too many arguments: %s\n", *next);
		return -EINVAL;
	}
	return 0;
}

enum options_result
options_parse(int argc, char **argv, struct options *o, FILE *out, FILE *err)
{
	unsigned needs = 0;
	int opt, rc = 0;

	*o = (struct options){ .socket = DEFAULT_SOCKET, .timeout_ms = CHECK_DEFAULT_MS };
	optind = 0; /* tests call this more than once */
	while (rc == 0 && (opt = getopt_long(argc, argv, "s:jdw::hV", longs, NULL)) != -1) {
		if (opt == 'h') {
			fputs(help, out);
			return OPTIONS_DONE;
		}
		if (opt == 'V') {
			fprintf(out, "smcrctl %s\n", PACKAGE_VERSION);
			return OPTIONS_DONE;
		}
		rc = take_option(opt, o, &needs, err);
	}
	if (rc == 0)
		rc = take_command(argv + optind, needs, o, err);
	if (rc == 0)
		return OPTIONS_RUN;
	fputs("Try 'smcrctl --help'.\n", err);
	return OPTIONS_WRONG;
}

static void
add_kinds(json_t *root, const struct options *o)
{
	json_t *kinds = json_array();

	if (o->clc)
		json_array_append_new(kinds, json_string("clc"));
	if (o->llc)
		json_array_append_new(kinds, json_string("llc"));
	if (o->cdc)
		json_array_append_new(kinds, json_string("cdc"));
	json_object_set_new(root, "kinds", kinds);
}

char *
options_request(const struct options *o, const char *peer)
{
	json_t *root = json_object();
	char *text;

	json_object_set_new(root, "command", json_string(o->command));
	json_object_set_new(root, "version", json_integer(1));
	if (o->service != NULL)
		json_object_set_new(root, "service", json_string_nocheck(o->service));
	if (o->mode != NULL)
		json_object_set_new(root, "mode", json_string(o->mode));
	if (o->group != 0)
		json_object_set_new(root, "group", json_integer(o->group));
	if (o->link != 0)
		json_object_set_new(root, "link", json_integer(o->link));
	if (o->token != 0)
		json_object_set_new(root, "token", json_integer(o->token));
	if (o->clc || o->llc || o->cdc)
		add_kinds(root, o);
	if (peer != NULL) {
		json_object_set_new(root, "peer", json_string(peer));
		json_object_set_new(root, "timeout_ms", json_integer(o->timeout_ms));
	}
	text = json_dumps(root, JSON_COMPACT);
	json_decref(root);
	return text;
}
