/* The command line of smcrctl; see ctl/options.h. */
#include "ctl/options.h"

#include <config.h>
#include <errno.h>
#include <getopt.h>
#include <jansson.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/addr.h"
#include "base/typo.h"
#include "control/commands.h"
#include "control/instance.h"

#define LONG_FIRST 256 /* what getopt has for long options: behind all letters */
#define TYPED_MAX 32   /* a name of a command */
#define WATCH_DEFAULT_MS 2000
#define WATCH_MIN_MS 100
#define WATCH_MAX_MS 86400000

#define NOT_ADDRESS "not an address, with port or without: "

#define AT(member) offsetof(struct options, member)
/* clang-format off */
#define MODE_OPTION(name, word) \
	{ word, 0, no_argument, CONTROL_F_MODE, MODE, 0, "only one of --smcr, --tcp and --setup can be given" },
#define KIND_OPTION(name, word) { word, 0, no_argument, CONTROL_F_KINDS, KINDS, 0, NULL },

static const struct option_row {
	const char *name;
	char letter;
	int has_arg;
	unsigned field; /* of the request */
	enum { HELP, FLAG, TEXT, INSTANCE, NUMBER, WATCH, MODE, KINDS, ADDRESS, TIMEOUT, BULK } type;
	size_t at;         /* where its value is in struct options */
	const char *wrong; /* what is said of a value that is not right */
} rows[] = {
	{ "socket", 's', required_argument, 0, TEXT, AT(socket), NULL },
	{ "instance", 'i', required_argument, 0, INSTANCE, AT(instance), "no name of an instance: " },
	{ "pid", 'p', required_argument, 0, NUMBER, AT(pid), "--pid takes the number of a process, as 'status' shows it: " },
	{ "json", 'j', no_argument, 0, FLAG, AT(json), NULL },
	{ "detail", 'd', no_argument, 0, FLAG, AT(detail), NULL },
	{ "watch", 'w', optional_argument, 0, WATCH, AT(watch_ms), "--watch takes seconds, 0.1 to 86400: --watch=" },
	{ "help", 'h', no_argument, 0, HELP, 0, NULL },
	{ "version", 'V', no_argument, 0, HELP, 0, NULL },
	{ "service", 0, required_argument, CONTROL_F_SERVICE, TEXT, AT(service), NULL },
	{ "group", 0, required_argument, CONTROL_F_GROUP, NUMBER, AT(group), "--group takes the number of a link group: " },
	{ "token", 0, required_argument, CONTROL_F_TOKEN, NUMBER, AT(token), "--token takes a token as 'connections --detail' shows it: " },
	{ "worker", 0, required_argument, CONTROL_F_WORKER, NUMBER, AT(worker), "--worker takes the number of a worker: " },
	{ "peer", 0, required_argument, CONTROL_F_PEER, ADDRESS, AT(peer), NOT_ADDRESS },
	{ "delta", 0, no_argument, 0, FLAG, AT(delta), NULL },
	{ "history", 0, no_argument, 0, FLAG, AT(history), NULL },
	{ "timeout", 0, required_argument, CONTROL_F_TIMEOUT_MS, TIMEOUT, AT(timeout_ms), "--timeout takes seconds, up to 60: " },
	{ "bulk", 0, optional_argument, CONTROL_F_BULK_BYTES, BULK, AT(bulk_bytes), "--bulk takes bytes, as 64K or 16M, up to 256M: --bulk=" },
	{ "kind", 0, required_argument, CONTROL_F_KIND, TEXT, AT(kind), NULL },
	{ "follow", 'f', no_argument, CONTROL_F_FOLLOW, FLAG, AT(follow), NULL },
	{ "problems", 0, no_argument, 0, FLAG, AT(problems), NULL },
	{ "cgroup", 0, required_argument, 0, TEXT, AT(cgroup), NULL },
	{ "uid", 0, required_argument, 0, TEXT, AT(uid), NULL },
	{ "interface", 0, required_argument, 0, TEXT, AT(interface), NULL },
	{ "strict", 0, no_argument, 0, FLAG, AT(strict), NULL },
	{ "then-exit", 0, no_argument, CONTROL_F_THEN_EXIT, FLAG, AT(then_exit), NULL },
	CONTROL_MODE_WORDS(MODE_OPTION)
	CONTROL_KIND_WORDS(KIND_OPTION)
};
/* clang-format on */

#define ROW_CNT (sizeof(rows) / sizeof(rows[0]))

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
    "                          (" OPTIONS_DEFAULT_SOCKET
    ")\n"
    "  -i, --instance NAME     daemon of this name (smcrd@NAME)\n"
    "  -p, --pid PID           a process that was taken over: its control socket\n"
    "  -h, --help              print this and exit\n"
    "  -V, --version           print the version and exit\n"
    "\n"
    "connections:    --service NAME, --smcr, --tcp, --setup: only these\n"
    "close:          --service NAME, --peer ADDRESS[:PORT]: all of these\n"
    "top, history:   --service NAME: only this service\n"
    "top:            --history: the last ten minutes, as history does\n"
    "stats:          --delta: changes until the next sample, and their rate\n"
    "connections, links, rmbs, trace:  --group ID: only of this link group\n"
    "most commands:  --worker N: only of this worker\n"
    "trace:          --clc, --llc, --cdc: only these kinds\n"
    "                --token TOKEN: only of this connection (connections -d)\n"
    "events:         -f, --follow: continue with new ones\n"
    "                --kind KIND, --service NAME, --group ID: only these\n"
    "check, doctor:  --timeout SECONDS per address (10)\n"
    "doctor:         --problems: only warnings and problems\n"
    "capture:        --cgroup PATH (smcrd.slice/smcrd-programs.slice), --uid USER,\n"
    "                --interface NAME: whose connections\n"
    "                --strict: none of them by another way\n"
    "drain:          --then-exit: end after the last connection;\n"
    "                --timeout SECONDS: and then at the latest (drain_timeout)\n"
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

/* A number at the start of text, above 0, in decimal or with base 0 also hexadecimal: 0 or -EINVAL. */
static int
parse_positive(const char *text, int base, uint64_t max, char **end, uint64_t *out)
{
	if (text[0] < '0' || text[0] > '9')
		return -EINVAL;
	errno = 0;
	*out = strtoull(text, end, base);
	return errno != 0 || *out == 0 || *out > max ? -EINVAL : 0;
}

/* Bytes, with K or M: 0 or -EINVAL. */
static int
parse_size(const char *text, uint32_t max, uint32_t *out)
{
	char *end;
	uint64_t v;

	if (parse_positive(text, 10, max, &end, &v) != 0)
		return -EINVAL;
	unsigned shift = *end == 'K' ? 10 : *end == 'M' ? 20 : 0;
	if (end[shift != 0] != '\0' || v > max >> shift)
		return -EINVAL;
	*out = (uint32_t)(v << shift);
	return 0;
}

/* 0x for hexadecimal: 0 or -EINVAL. */
static int
parse_u32(const char *text, uint32_t max, uint32_t *out)
{
	char *end;
	uint64_t v;

	if (text == NULL || parse_positive(text, 0, max, &end, &v) != 0 || *end != '\0')
		return -EINVAL;
	*out = (uint32_t)v;
	return 0;
}

/* Of somebody who is there, with port, or without for any: 0 or -EINVAL. */
static int
parse_address(const char *text, const char **out)
{
	struct sockaddr_storage ss;

	*out = text;
	return addr_parse_port(text, &ss) != 0 && addr_parse(text, &ss) != 0 ? -EINVAL : 0;
}

/* The name of a command as it is typed: a hyphen is the end of a word, and '_' is a hyphen. */
static char *
typed(char buf[TYPED_MAX], const char *name)
{
	(void)snprintf(buf, TYPED_MAX, "%s", name);
	for (char *p = buf; *p != '\0'; p++)
		*p = *p == '-' ? ' ' : *p == '_' ? '-' : *p;
	return buf;
}

static void
print_help(FILE *out)
{
	char name[TYPED_MAX], usage[2 * TYPED_MAX];

	fputs(help_commands, out);
	for (unsigned i = 0; i < CONTROL_COMMAND_CNT; i++) {
		const struct control_command_row *cmd = &control_commands[i];
		int len = snprintf(usage, sizeof(usage), "%s%s%s", typed(name, cmd->name), cmd->args != NULL ? " " : "",
		    cmd->args != NULL ? cmd->args : "");

		fprintf(out, "  %-*s  %s\n", len > 15 ? 23 : 15, usage, cmd->summary);
	}
	fputs(help_options, out);
}

static int
options_refuse(FILE *err, const char *text, const char *more)
{
	fprintf(err, "smcrctl: %s%s\n", text, more);
	return -EINVAL;
}

/* Into its place in *o: 0 or -EINVAL. */
static int
take_value(const struct option_row *row, struct options *o)
{
	void *at = (char *)o + row->at;

	switch (row->type) {
	case FLAG:
		*(bool *)at = true;
		break;
	case TEXT:
		*(const char **)at = optarg;
		break;
	case INSTANCE:
		*(const char **)at = optarg;
		return instance_name_ok(optarg) ? 0 : -EINVAL;
	case NUMBER:
		return parse_u32(optarg, UINT32_MAX, at);
	case ADDRESS:
		return parse_address(optarg, at);
	case WATCH:
		*(int64_t *)at = WATCH_DEFAULT_MS;
		return optarg != NULL ? parse_seconds(optarg, WATCH_MIN_MS, WATCH_MAX_MS, at) : 0;
	case TIMEOUT:
		return parse_seconds(optarg, 1, CONTROL_CHECK_MAX_MS, at);
	case BULK:
		*(uint32_t *)at = CONTROL_BULK_BYTES;
		return optarg != NULL ? parse_size(optarg, CONTROL_BULK_MAX, at) : 0;
	case MODE:
		if (o->mode != NULL)
			return -EINVAL;
		o->mode = row->name;
		break;
	case KINDS:
		o->kinds |= 1u << (row - rows);
		break;
	case HELP: /* options_parse has it */
		break;
	}
	return 0;
}

/* -- arguments of commands -- */

static int
take_host(const char *text, struct options *o, FILE *err)
{
	if (text == NULL)
		return options_refuse(err, "check needs HOST:PORT", "");
	if (addr_split(text, o->host, sizeof(o->host), &o->port) != 0)
		return options_refuse(err, "not of the form HOST:PORT or [IPv6]:PORT: ", text);
	size_t len = strlen(o->host);
	if (o->host[0] == '[' && o->host[len - 1] == ']') {
		memmove(o->host, o->host + 1, len - 2);
		o->host[len - 2] = '\0';
	}
	return 0;
}

/* "link-delete" is two words on the command line. How many words name[] is in args; 0 = it is not. */
static unsigned
match_command(char **args, const char *name)
{
	char buf[TYPED_MAX], *rest, *word = strtok_r(typed(buf, name), " ", &rest);
	unsigned n = 0;

	for (; word != NULL && args[n] != NULL && strcmp(args[n], word) == 0; n++)
		word = strtok_r(NULL, " ", &rest);
	return word == NULL ? n : 0;
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
options_take_level(const char *text, struct options *o, FILE *err)
{
#define OR_LEVEL(level, word) word,
	static const char *const words[] = { CONTROL_LEVEL_WORDS(OR_LEVEL) CONTROL_LEVEL_DEFAULT };

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (strcmp(words[i], text) == 0)
			o->level = words[i];
	if (o->level != NULL)
		return 0;
	return options_refuse(
	    err, "a level is one of error, warning, notice, info, debug and " CONTROL_LEVEL_DEFAULT ", not ", text);
}

static int
options_take_number(const char *text, const char *of, uint32_t max, uint32_t *out, FILE *err)
{
	if (parse_u32(text, max, out) == 0)
		return 0;
	fprintf(err, "smcrctl: the number of %s is needed%s%s\n", of, text != NULL ? ", not " : "",
	    text != NULL ? text : "");
	return -EINVAL;
}

/* An argument of a command; text is NULL when a required one is missing. */
static int
take_argument(unsigned field, bool needed, const char *text, struct options *o, FILE *err)
{
	char *end;

	switch (field) {
	case CONTROL_F_SERVICE:
		o->service = text;
		return text != NULL ? 0 : options_refuse(err, "the name of a service is needed", "");
	case CONTROL_F_PEER:
		if (needed)
			return take_host(text, o, err);
		return parse_address(text, &o->peer) != 0 ? options_refuse(err, NOT_ADDRESS, text) : 0;
	case CONTROL_F_ID:
		if (parse_positive(text, 10, INT64_MAX, &end, &o->id) == 0 && *end == '\0')
			return 0;
		return options_refuse(err, "the ID of a connection is needed, as 'connections' shows it: ", text);
	case CONTROL_F_LEVEL:
		return options_take_level(text, o, err);
	case CONTROL_F_GROUP:
		return options_take_number(text, "a link group", UINT32_MAX, &o->group, err);
	default:
		return options_take_number(text, "a link in its group", UINT8_MAX, &o->link, err);
	}
}

/* The arguments of a command, in their order. */
static int
take_named(const struct control_command_row *cmd, char ***next, struct options *o, FILE *err)
{
	static const unsigned fields[] = { CONTROL_F_SERVICE, CONTROL_F_PEER, CONTROL_F_ID, CONTROL_F_LEVEL,
		CONTROL_F_GROUP, CONTROL_F_LINK };
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < sizeof(fields) / sizeof(fields[0]); i++) {
		bool needed = (cmd->needs & fields[i]) != 0;

		if (((cmd->needs | cmd->may_name) & fields[i]) == 0 || (**next == NULL && !needed))
			continue;
		rc = take_argument(fields[i], needed, **next, o, err);
		*next += **next != NULL;
	}
	return rc;
}

/* What an unknown command was probably meant to be: a typing error, or the seconds of --watch that stand apart from it. */
static int
refuse_command(const char *word, const struct options *o, FILE *err)
{
	char names[CONTROL_COMMAND_CNT][TYPED_MAX];
	struct typo typo = typo_of(word);
	int64_t ms;

	if (o->watch_ms != 0 && parse_seconds(word, WATCH_MIN_MS, WATCH_MAX_MS, &ms) == 0) {
		fprintf(err, "smcrctl: unknown command: %s (seconds stand right behind -w: -w%s, or --watch=%s)\n",
		    word, word, word);
		return -EINVAL;
	}
	for (unsigned i = 0; i < CONTROL_COMMAND_CNT; i++) {
		char *end = strchr(typed(names[i], control_commands[i].name), ' ');

		if (end != NULL)
			*end = '\0';
		typo_compare(&typo, names[i]);
	}
	fprintf(err, "smcrctl: unknown command: %s%s%s%s\n", word, typo.nearest != NULL ? "; did you mean " : "",
	    typo.nearest != NULL ? typo.nearest : "", typo.nearest != NULL ? "?" : "");
	return -EINVAL;
}

/* Was it given? */
static bool
is_given(const struct option_row *row, unsigned given, const struct options *o)
{
	if (row->type == MODE)
		return o->mode == row->name;
	return row->type == KINDS ? (o->kinds & 1u << (row - rows)) != 0 : (given & row->field) != 0;
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
		return options_refuse(err, "no command given", "");
	if (cmd == NULL && is_beginning(*next))
		return options_refuse(err, "this is only the beginning of a command (see --help): ", *next);
	if (cmd == NULL)
		return refuse_command(*next, o, err);
	unsigned refused = given & (~cmd->takes | cmd->needs | cmd->may_name);
	for (size_t i = 0; i < ROW_CNT; i++)
		if ((rows[i].field & refused) != 0 && is_given(&rows[i], given, o)) {
			fprintf(err, "smcrctl: %s does not take --%s\n", cmd->name, rows[i].name);
			return -EINVAL;
		}
	if (o->watch_ms != 0 && cmd->once)
		return options_refuse(err, cmd->name, " cannot be watched");
	if (o->delta && o->command != CONTROL_STATS)
		return options_refuse(err, "--delta is for stats", "");
	if (o->problems && o->command != CONTROL_DOCTOR)
		return options_refuse(err, "--problems is for doctor", "");
	if (o->history && o->command != CONTROL_TOP)
		return options_refuse(err, "--history is for top", "");
	if (o->history)
		o->command = CONTROL_HISTORY;
	if ((o->cgroup != NULL || o->uid != NULL || o->interface != NULL || o->strict) && o->command != CONTROL_CAPTURE)
		return options_refuse(err, "--cgroup, --uid, --interface and --strict are for capture", "");
	if ((o->cgroup != NULL) + (o->uid != NULL) + (o->interface != NULL) > 1)
		return options_refuse(err, "only one of --cgroup, --uid and --interface can be given", "");
	if (o->json && o->command == CONTROL_TOP)
		return options_refuse(err, cmd->name, " is for people: ask for status and connections");
	if (o->json && o->command == CONTROL_ROUTES)
		return options_refuse(err, cmd->name, " prints lines for a shell");
	if (o->json && o->command == CONTROL_CAPTURE)
		return options_refuse(err, cmd->name, " prints rules for nft");
	if (take_named(cmd, &next, o, err) != 0)
		return -EINVAL;
	if (cmd->needs_any != 0 && o->id == 0 && (given & cmd->needs_any) == 0)
		return options_refuse(err, cmd->name, " needs the ID of a connection, --service or --peer");
	return *next != NULL ? options_refuse(err, "too many arguments: ", *next) : 0;
}

/* The next option, NULL when there is none; *rc: it is not known, or lacks its value, which getopt has said. */
static const struct option_row *
next_option(int argc, char **argv, int *rc)
{
	struct option longs[ROW_CNT + 1] = { { 0 } };

	for (size_t i = 0; i < ROW_CNT; i++)
		longs[i] = (struct option){ rows[i].name, rows[i].has_arg, NULL, LONG_FIRST + (int)i };
	int opt = getopt_long(argc, argv, "s:i:p:jdw::hVf", longs, NULL);
	if (opt >= LONG_FIRST)
		return &rows[opt - LONG_FIRST];
	for (size_t i = 0; opt != -1 && i < ROW_CNT; i++)
		if (rows[i].letter == opt)
			return &rows[i];
	*rc = opt != -1 ? -EINVAL : 0;
	return NULL;
}

/* One that is too long is refused by what connects. */
static void
choose_socket(struct options *o)
{
	char path[OPTIONS_SOCKET_MAX];

	if (o->socket == NULL)
		o->socket = instance_control_path(o->instance, o->socket_text, sizeof(o->socket_text));
	if (o->pid == 0)
		return;
	(void)snprintf(path, sizeof(path), "%s.%u", o->socket, (unsigned)o->pid);
	memcpy(o->socket_text, path, sizeof(path));
	o->socket = o->socket_text;
}

enum options_result
options_parse(int argc, char **argv, struct options *o, FILE *out, FILE *err)
{
	const struct option_row *row;
	unsigned given = 0;
	int rc = 0;

	*o = (struct options){ 0 };
	optind = 0; /* tests call this more than once */
	while (rc == 0 && (row = next_option(argc, argv, &rc)) != NULL) {
		if (row->letter == 'V')
			fprintf(out, "smcrctl %s\n", PACKAGE_VERSION);
		else if (row->type == HELP)
			print_help(out);
		if (row->type == HELP)
			return OPTIONS_DONE;
		given |= row->field;
		if (take_value(row, o) != 0)
			rc = options_refuse(err, row->wrong, row->type != MODE ? optarg : "");
	}
	if (rc == 0 && argv[optind] != NULL && strcmp(argv[optind], "help") == 0) {
		print_help(out);
		return OPTIONS_DONE;
	}
	if (rc == 0)
		rc = take_command(argv + optind, given, o, err);
	if (o->timeout_ms == 0 && o->command != CONTROL_DRAIN)
		o->timeout_ms = CONTROL_CHECK_MS;
	if (rc == 0 && o->instance != NULL && o->socket != NULL)
		rc = options_refuse(err, "--socket and --instance exclude each other", "");
	if (rc == 0)
		choose_socket(o);
	if (rc == 0)
		return OPTIONS_RUN;
	fputs("Try 'smcrctl --help'.\n", err);
	return OPTIONS_WRONG;
}

/* NULL for none. */
static json_t *
number(uint64_t n)
{
	return n != 0 ? json_integer((json_int_t)n) : NULL;
}

char *
options_request(const struct options *o, const char *peer)
{
	json_t *kinds = o->kinds != 0 ? json_array() : NULL;

	for (unsigned i = 0; i < ROW_CNT; i++)
		if (rows[i].type == KINDS && (o->kinds & 1u << i) != 0)
			json_array_append_new(kinds, json_string(rows[i].name));
	/* What is NULL is left out. */
	json_t *root = json_pack(
	    "{s:s, s:i, s:o*, s:o*, s:o*, s:o*, s:o*, s:o*, s:o*, s:o*, s:o*, s:o*, s:o*, s:o*, s:o*, s:o*, s:o*}",
	    "command", control_commands[o->command].name, "version", CONTROL_VERSION, "service",
	    json_string_nocheck(o->service), "mode", json_string(o->mode), "group", number(o->group), "link",
	    number(o->link), "worker", number(o->worker), "token", number(o->token), "kind", json_string(o->kind),
	    "follow", o->follow ? json_true() : NULL, "then_exit", o->then_exit ? json_true() : NULL, "kinds", kinds,
	    "id", number(o->id), "peer", json_string(peer != NULL ? peer : o->peer), "level", json_string(o->level),
	    "timeout_ms", number(peer != NULL || o->command == CONTROL_DRAIN ? (uint64_t)o->timeout_ms : 0),
	    "bulk_bytes", number(peer != NULL ? o->bulk_bytes : 0));
	char *text = json_dumps(root, JSON_COMPACT);
	json_decref(root);
	return text;
}
