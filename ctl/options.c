/* The command line of smcrctl; see process/options.h. */
#include "ctl/options.h"

#include <config.h>
#include <errno.h>
#include <getopt.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/addr.h"
#include "base/typo.h"
#include "control/commands.h"

#define DEFAULT_SOCKET RUNSTATEDIR "/smcrd/control"
#define WATCH_DEFAULT_MS 2000
#define WATCH_MIN_MS 100
#define WATCH_MAX_MS 86400000

/* An option that becomes a field of the request; above all letters. */
#define FIELD_SHIFT 8
#define FIELD(name) (CONTROL_F_##name << FIELD_SHIFT)

#define MODE_OPTION(mode, word) { word, no_argument, NULL, FIELD(MODE) },
#define KIND_OPTION(kind, word) { word, no_argument, NULL, FIELD(KINDS) },

/* clang-format off */
static const struct option longs[] = {
	{ "socket", required_argument, NULL, 's' },
	{ "json", no_argument, NULL, 'j' },
	{ "detail", no_argument, NULL, 'd' },
	{ "watch", optional_argument, NULL, 'w' },
	{ "help", no_argument, NULL, 'h' },
	{ "version", no_argument, NULL, 'V' },
	{ "service", required_argument, NULL, FIELD(SERVICE) },
	{ "group", required_argument, NULL, FIELD(GROUP) },
	{ "token", required_argument, NULL, FIELD(TOKEN) },
	{ "worker", required_argument, NULL, FIELD(WORKER) },
	{ "peer", required_argument, NULL, FIELD(PEER) },
	{ "delta", no_argument, NULL, 'D' },
	{ "timeout", required_argument, NULL, FIELD(TIMEOUT_MS) },
	{ "bulk", optional_argument, NULL, FIELD(BULK_BYTES) },
	{ "kind", required_argument, NULL, FIELD(KIND) },
	{ "follow", no_argument, NULL, FIELD(FOLLOW) },
	CONTROL_MODE_WORDS(MODE_OPTION)
	CONTROL_KIND_WORDS(KIND_OPTION)
	{ 0 },
};
/* clang-format on */

static const char help_commands[] =
    "Usage: smcrctl [OPTION]... COMMAND [ARGUMENT]\n"
    "Monitor and control smcrd, the gateway between TCP and RDMA.\n"
    "\n"
    "Commands:\n";
static const char help_options[] =
    "\n"
    "Options:\n"
    "  -j, --json              print the daemon's JSON instead of text\n"
    "  -d, --detail            more columns\n"
    "  -w, --watch[=SECONDS]   repeat, every 2 seconds by default\n"
    "  -s, --socket PATH       control socket of the daemon\n"
    "                          (" DEFAULT_SOCKET
    ")\n"
    "  -h, --help              print this and exit\n"
    "  -V, --version           print the version and exit\n"
    "\n"
    "connections:    --service NAME, --smcr, --tcp, --setup: only these\n"
    "close:          --service NAME, --peer ADDRESS[:PORT]: all of these\n"
    "top:            --service NAME: only this service\n"
    "stats:          --delta: changes until the next sample, and their rate\n"
    "connections, links, rmbs, trace:  --group ID: only of this link group\n"
    "most commands:  --worker N: only of this worker\n"
    "trace:          --clc, --llc, --cdc: only these kinds\n"
    "                --token TOKEN: only of this connection (connections -d)\n"
    "events:         -f, --follow: continue with new ones\n"
    "                --kind KIND, --service NAME, --group ID: only these\n"
    "check, doctor:  --timeout SECONDS per address (10)\n"
    "check:          --bulk[=SIZE]: measure both paths, SIZE (32M) per direction\n"
    "\n"
    "Exit status: 0: success; 1: negative answer (check: not possible; reload:\n"
    "refused; retry: nothing to retry; other orders: no such object, or not\n"
    "possible now; --service, --group, --token, --peer, --kind, --smcr, --tcp,\n"
    "--setup: no match); 2: error. doctor: 0: no warnings, 1: warnings,\n"
    "2: problems.\n"
    "See smcrctl(8).\n";

/* Seconds with decimals, as milliseconds: 0 or -EINVAL. */
static int
parse_seconds(const char *text, int64_t min_ms, int64_t max_ms, int64_t *out)
{
	char *end;

	errno = 0;
	double v = strtod(text, &end) * 1000;
	if (end == text || *end != '\0' || errno != 0 || !(v >= (double)min_ms && v <= (double)max_ms))
		return -EINVAL;
	*out = (int64_t)v;
	return 0;
}

/* Bytes, with K or M: 0 or -EINVAL. */
static int
parse_size(const char *text, uint32_t max, uint32_t *out)
{
	char *end;

	if (text[0] < '0' || text[0] > '9')
		return -EINVAL;
	errno = 0;
	unsigned long long v = strtoull(text, &end, 10);
	unsigned shift = *end == 'K' ? 10 : *end == 'M' ? 20 : 0;
	if (end[shift != 0] != '\0' || errno != 0 || v == 0 || v > max >> shift)
		return -EINVAL;
	*out = (uint32_t)(v << shift);
	return 0;
}

/* A positive number, 0x for hexadecimal: 0 or -EINVAL. */
static int
parse_u32(const char *text, uint32_t *out)
{
	char *end;

	if (text[0] < '0' || text[0] > '9')
		return -EINVAL;
	errno = 0;
	unsigned long long v = strtoull(text, &end, 0);
	if (*end != '\0' || errno != 0 || v == 0 || v > UINT32_MAX)
		return -EINVAL;
	*out = (uint32_t)v;
	return 0;
}

static void
print_help(FILE *out)
{
	fputs(help_commands, out);
	for (unsigned i = 0; i < CONTROL_COMMAND_CNT; i++) {
		const struct control_command_row *cmd = &control_commands[i];
		char usage[32];
		int len = snprintf(usage, sizeof(usage), "%s%s%s", cmd->name, cmd->args != NULL ? " " : "",
		    cmd->args != NULL ? cmd->args : "");

		for (size_t k = 0; k < strlen(cmd->name); k++)
			usage[k] = usage[k] == '-' ? ' ' : usage[k] == '_' ? '-' : usage[k];
		fprintf(out, "  %-*s  %s\n", len > 15 ? 23 : 15, usage, cmd->summary);
	}
	fputs(help_options, out);
}

static int
refuse(FILE *err, const char *text, const char *more)
{
	fprintf(err, "smcrctl: %s%s\n", text, more);
	return -EINVAL;
}

/* given: NULL when it is missing. */
static int
refuse_number(FILE *err, const char *of, const char *given)
{
	fprintf(err, "smcrctl: the number of %s is needed%s%s\n", of, given != NULL ? ", not " : "",
	    given != NULL ? given : "");
	return -EINVAL;
}

/* Of somebody who is there: with port, or without for any. */
static int
take_address(const char *text, struct options *o, FILE *err)
{
	struct sockaddr_storage ss;

	if (addr_parse_port(text, &ss) != 0 && addr_parse(text, &ss) != 0)
		return refuse(err, "not an address, with port or without: ", text);
	o->peer = text;
	return 0;
}

/* The option longs[place] (or a short one) into *o: 0, or -EINVAL with a line on err. */
static int
take_option(int opt, int place, struct options *o, FILE *err)
{
	const char *wrong = NULL;
	int64_t ms;

	switch (opt) {
	case 's':
		o->socket = optarg;
		break;
	case 'j':
		o->json = true;
		break;
	case 'd':
		o->detail = true;
		break;
	case 'D':
		o->delta = true;
		break;
	case 'w':
		o->watch_ms = WATCH_DEFAULT_MS;
		if (optarg != NULL && parse_seconds(optarg, WATCH_MIN_MS, WATCH_MAX_MS, &o->watch_ms) != 0)
			wrong = "--watch takes seconds, 0.1 to 86400: --watch=";
		break;
	case FIELD(SERVICE):
		o->service = optarg;
		break;
	case FIELD(MODE):
		if (o->mode != NULL)
			return refuse(err, "only one of --smcr, --tcp and --setup can be given", "");
		o->mode = longs[place].name;
		break;
	case FIELD(GROUP):
		if (parse_u32(optarg, &o->group) != 0)
			wrong = "--group takes the number of a link group: ";
		break;
	case FIELD(TOKEN):
		if (parse_u32(optarg, &o->token) != 0)
			wrong = "--token takes a token as 'connections --detail' shows it: ";
		break;
	case FIELD(WORKER):
		if (parse_u32(optarg, &o->worker) != 0)
			wrong = "--worker takes the number of a worker: ";
		break;
	case FIELD(PEER):
		return take_address(optarg, o, err);
	case FIELD(KINDS):
		o->kinds |= 1u << place;
		break;
	case FIELD(KIND):
		o->kind = optarg;
		break;
	case 'f':
	case FIELD(FOLLOW):
		o->follow = true;
		break;
	case FIELD(TIMEOUT_MS):
		if (parse_seconds(optarg, 1, CONTROL_CHECK_MAX_MS, &ms) != 0)
			wrong = "--timeout takes seconds, up to 60: ";
		else
			o->timeout_ms = (uint32_t)ms;
		break;
	case FIELD(BULK_BYTES):
		o->bulk_bytes = CONTROL_BULK_BYTES;
		if (optarg != NULL && parse_size(optarg, CONTROL_BULK_MAX, &o->bulk_bytes) != 0)
			wrong = "--bulk takes bytes, as 64K or 16M, up to 256M: --bulk=";
		break;
	default: /* getopt has said what is wrong */
		return -EINVAL;
	}
	return wrong != NULL ? refuse(err, wrong, optarg) : 0;
}

static int
take_peer(const char *text, struct options *o, FILE *err)
{
	if (text == NULL)
		return refuse(err, "check needs HOST:PORT", "");
	if (addr_split(text, o->host, sizeof(o->host), &o->port) != 0)
		return refuse(err, "not of the form HOST:PORT or [IPv6]:PORT: ", text);
	size_t len = strlen(o->host);
	if (o->host[0] == '[' && o->host[len - 1] == ']') {
		memmove(o->host, o->host + 1, len - 2);
		o->host[len - 2] = '\0';
	}
	return 0;
}

/* A character of a command's name as it is typed. */
static char
typed(char c)
{
	return c == '_' ? '-' : c;
}

/* "link-delete" is two words on the command line. How many words name[] is in args; 0 = it is not. */
static unsigned
match_command(char **args, const char *name)
{
	unsigned n = 0;

	while (args[n] != NULL) {
		size_t len = strcspn(name, "-");

		if (strlen(args[n]) != len)
			return 0;
		for (size_t i = 0; i < len; i++)
			if (args[n][i] != typed(name[i]))
				return 0;
		n++;
		name += len;
		if (*name++ == '\0')
			return n;
	}
	return 0;
}

/* The first of a command's words. */
static bool
is_beginning(const char *word)
{
	size_t len = strlen(word);

	for (unsigned i = 0; i < CONTROL_COMMAND_CNT; i++)
		if (strncmp(control_commands[i].name, word, len) == 0 && control_commands[i].name[len] == '-')
			return true;
	return false;
}

static int
take_id(const char *text, struct options *o, FILE *err)
{
	char *end;

	errno = 0;
	o->id = strtoull(text, &end, 10);
	if (text[0] < '0' || text[0] > '9' || *end != '\0' || errno != 0 || o->id == 0 || o->id > INT64_MAX)
		return refuse(err, "the ID of a connection is needed, as 'connections' shows it: ", text);
	return 0;
}

static int
take_level(const char *text, struct options *o, FILE *err)
{
#define OR_LEVEL(level, word) word,
	static const char *const words[] = { CONTROL_LEVEL_WORDS(OR_LEVEL) CONTROL_LEVEL_DEFAULT };

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (strcmp(words[i], text) == 0)
			o->level = words[i];
	return o->level != NULL
	    ? 0
	    : refuse(err, "a level is one of error, warning, notice, info, debug and " CONTROL_LEVEL_DEFAULT ", not ",
	          text);
}

/* The arguments of a command. */
static int
take_named(const struct control_command_row *cmd, char ***args, struct options *o, FILE *err)
{
	char **next = *args;
	int rc = 0;

	if ((cmd->named & CONTROL_F_SERVICE) != 0) {
		if (*next == NULL)
			return refuse(err, "the name of a service is needed", "");
		o->service = *next++;
	}
	if ((cmd->named & CONTROL_F_PEER) != 0 && (cmd->needs & CONTROL_F_PEER) != 0)
		rc = take_peer(*next != NULL ? *next++ : NULL, o, err);
	else if ((cmd->named & CONTROL_F_PEER) != 0 && *next != NULL)
		rc = take_address(*next++, o, err);
	if (rc == 0 && (cmd->named & CONTROL_F_ID) != 0 && *next != NULL)
		rc = take_id(*next++, o, err);
	if (rc == 0 && (cmd->named & CONTROL_F_LEVEL) != 0 && *next != NULL)
		rc = take_level(*next++, o, err);
	if ((cmd->named & CONTROL_F_GROUP) != 0 && (*next != NULL || (cmd->needs & CONTROL_F_GROUP) != 0)) {
		if (*next == NULL || parse_u32(*next, &o->group) != 0)
			return refuse_number(err, "a link group", *next);
		next++;
	}
	if ((cmd->named & CONTROL_F_LINK) != 0) {
		if (*next == NULL || parse_u32(*next, &o->link) != 0 || o->link > UINT8_MAX)
			return refuse_number(err, "a link in its group", *next);
		next++;
	}
	*args = next;
	return rc;
}

/* What an unknown command was probably meant to be: a typing error, or the seconds of --watch that stand apart from it. */
static int
refuse_command(const char *word, const struct options *o, FILE *err)
{
	char names[CONTROL_COMMAND_CNT][TYPO_WORD_MAX + 1];
	struct typo typo = typo_of(word);
	int64_t ms;

	if (o->watch_ms != 0 && parse_seconds(word, WATCH_MIN_MS, WATCH_MAX_MS, &ms) == 0) {
		fprintf(err, "smcrctl: unknown command: %s (seconds stand right behind -w: -w%s, or --watch=%s)\n",
		    word, word, word);
		return -EINVAL;
	}
	for (unsigned i = 0; i < CONTROL_COMMAND_CNT; i++) {
		const char *name = control_commands[i].name;
		size_t len = strcspn(name, "-");

		for (size_t k = 0; k < len; k++)
			names[i][k] = typed(name[k]);
		names[i][len] = '\0';
		typo_compare(&typo, names[i]);
	}
	fprintf(err, "smcrctl: unknown command: %s%s%s%s\n", word, typo.nearest != NULL ? "; did you mean " : "",
	    typo.nearest != NULL ? typo.nearest : "", typo.nearest != NULL ? "?" : "");
	return -EINVAL;
}

/* The first of the options that were given for these fields of the request. */
static const char *
option_of(unsigned fields, const struct options *o)
{
	unsigned i = 0;

	for (; longs[i].name != NULL; i++) {
		unsigned field = (unsigned)longs[i].val >> FIELD_SHIFT & fields;

		if (field == CONTROL_F_MODE        ? strcmp(longs[i].name, o->mode) == 0
		        : field == CONTROL_F_KINDS ? (o->kinds & 1u << i) != 0
		                                   : field != 0)
			break;
	}
	return longs[i].name;
}

/* Command and arguments; given: the fields of the request that options gave. */
static int
take_command(char **next, unsigned given, struct options *o, FILE *err)
{
	const struct control_command_row *cmd = NULL;

	for (unsigned i = 0; i < CONTROL_COMMAND_CNT && cmd == NULL; i++) {
		unsigned words = match_command(next, control_commands[i].name);

		if (words == 0)
			continue;
		o->command = (enum control_command)i;
		cmd = &control_commands[i];
		next += words;
	}
	if (cmd == NULL && *next == NULL)
		return refuse(err, "no command given", "");
	if (cmd == NULL && is_beginning(*next))
		return refuse(err, "this is only the beginning of a command (see --help): ", *next);
	if (cmd == NULL)
		return refuse_command(*next, o, err);
	unsigned refused = given & ~(cmd->takes & ~cmd->named);
	if (refused != 0) {
		fprintf(err, "smcrctl: %s does not take --%s\n", cmd->name, option_of(refused, o));
		return -EINVAL;
	}
	if (o->watch_ms != 0 && cmd->once)
		return refuse(err, cmd->name, " cannot be watched");
	if (o->delta && o->command != CONTROL_STATS)
		return refuse(err, "--delta is for stats", "");
	if (o->json && o->command == CONTROL_TOP)
		return refuse(err, cmd->name, " is for people: ask for status and connections");
	if (take_named(cmd, &next, o, err) != 0)
		return -EINVAL;
	if (cmd->needs_any != 0 && o->id == 0 && (given & cmd->needs_any) == 0)
		return refuse(err, cmd->name, " needs the ID of a connection, --service or --peer");
	return *next != NULL ? refuse(err, "too many arguments: ", *next) : 0;
}

enum options_result
options_parse(int argc, char **argv, struct options *o, FILE *out, FILE *err)
{
	unsigned given = 0;
	int opt, place = 0, rc = 0;

	*o = (struct options){ .socket = DEFAULT_SOCKET, .timeout_ms = CONTROL_CHECK_MS };
	optind = 0; /* tests call this more than once */
	while (rc == 0 && (opt = getopt_long(argc, argv, "s:jdw::hVf", longs, &place)) != -1) {
		if (opt == 'h') {
			print_help(out);
			return OPTIONS_DONE;
		}
		if (opt == 'V') {
			fprintf(out, "smcrctl %s\n", PACKAGE_VERSION);
			return OPTIONS_DONE;
		}
		given |= opt == 'f' ? CONTROL_F_FOLLOW : (unsigned)opt >> FIELD_SHIFT;
		rc = take_option(opt, place, o, err);
	}
	if (rc == 0 && argv[optind] != NULL && strcmp(argv[optind], "help") == 0) {
		print_help(out);
		return OPTIONS_DONE;
	}
	if (rc == 0)
		rc = take_command(argv + optind, given, o, err);
	if (rc == 0)
		return OPTIONS_RUN;
	fputs("Try 'smcrctl --help'.\n", err);
	return OPTIONS_WRONG;
}

char *
options_request(const struct options *o, const char *peer)
{
	json_t *root = json_object(), *kinds = json_array();

	json_object_set_new(root, "command", json_string(control_commands[o->command].name));
	json_object_set_new(root, "version", json_integer(CONTROL_VERSION));
	/* What is NULL is left out. */
	json_object_set_new(root, "service", json_string_nocheck(o->service));
	json_object_set_new(root, "mode", json_string(o->mode));
	json_object_set_new(root, "group", o->group != 0 ? json_integer(o->group) : NULL);
	json_object_set_new(root, "link", o->link != 0 ? json_integer(o->link) : NULL);
	json_object_set_new(root, "worker", o->worker != 0 ? json_integer(o->worker) : NULL);
	json_object_set_new(root, "token", o->token != 0 ? json_integer(o->token) : NULL);
	json_object_set_new(root, "kind", json_string(o->kind));
	json_object_set_new(root, "follow", o->follow ? json_true() : NULL);
	for (unsigned i = 0; longs[i].name != NULL; i++)
		if (longs[i].val == FIELD(KINDS) && (o->kinds & 1u << i) != 0)
			json_array_append_new(kinds, json_string(longs[i].name));
	if (o->kinds != 0)
		json_object_set(root, "kinds", kinds);
	json_object_set_new(root, "id", o->id != 0 ? json_integer((json_int_t)o->id) : NULL);
	json_object_set_new(root, "peer", json_string(o->peer));
	json_object_set_new(root, "level", json_string(o->level));
	if (peer != NULL) {
		json_object_set_new(root, "peer", json_string(peer));
		json_object_set_new(root, "timeout_ms", json_integer(o->timeout_ms));
		json_object_set_new(root, "bulk_bytes", o->bulk_bytes != 0 ? json_integer(o->bulk_bytes) : NULL);
	}
	char *text = json_dumps(root, JSON_COMPACT);
	json_decref(kinds);
	json_decref(root);
	return text;
}
