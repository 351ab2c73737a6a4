/* smcrd.conf.5 says of every setting what the table says: the page has each key below its section's heading, followed
 * by a line of facts (type, range, default, whether it needs a take-over) that is made from the table here. A section whose
 * settings all need a take-over says that once. */
#include <stdio.h>
#include <string.h>

#include "daemon/config/config.h"
#include "daemon/config/config_int.h"
#include "daemon/config/config_keys.h"
#include "daemon/config/config_value.h"
#include "unit.h"

#define PAGE_COLUMNS 80

static char *
read_source(const char *name)
{
	const char *top = getenv("top_srcdir");
	char path[512], *text = malloc(1 << 20);

	snprintf(path, sizeof(path), "%s/%s", top != NULL ? top : "..", name);
	FILE *f = fopen(path, "r");
	ck_assert_msg(f != NULL && text != NULL, "%s", path);
	size_t n = fread(text, 1, (1 << 20) - 1, f);
	fclose(f);
	text[n] = '\0';
	return text;
}

static const char *
type_facts(const struct config_key *k, char *buf, size_t cap)
{
	const char *what = "Integer", *sep = "";
	char min[32], max[32];
	size_t n;

	switch (k->type) {
	case CONFIG_T_BOOL:
		return "true or false";
	case CONFIG_T_NAME:
		return "Name";
	case CONFIG_T_IFNAME:
		return "Name of an interface or *";
	case CONFIG_T_CARD:
		return "Name of an RDMA card or *";
	case CONFIG_T_PATTERN:
		return "Pattern of file names";
	case CONFIG_T_PATH:
		return "Absolute path";
	case CONFIG_T_ADDR:
		return "Address";
	case CONFIG_T_ADDRS:
		return "List of addresses";
	case CONFIG_T_LISTEN:
		return "Address and port, or UNIX socket";
	case CONFIG_T_TARGET:
		return "Host and port, UNIX socket, SRV records, or a list of these";
	case CONFIG_T_NETS:
		return "List of addresses and networks";
	case CONFIG_T_USER:
		return "Name or number of a user";
	case CONFIG_T_GROUP:
		return "Name or number of a group";
	case CONFIG_T_USERS:
		return "List of users";
	case CONFIG_T_EIDS:
		return "List of UEIDs";
	case CONFIG_T_PEERS:
		return "List of strings";
	case CONFIG_T_BYTES:
		return "String";
	case CONFIG_T_DESTS:
		return "List of addresses and networks, maybe with ports";
	case CONFIG_T_PEER_ADDR:
		return "Address and port, or *:PORT";
	case CONFIG_T_VIAS:
		return "List of groups of settings";
	case CONFIG_T_INNER:
		return "Group of settings";
	case CONFIG_T_PORTS:
		return "Port or range of ports";
	case CONFIG_T_WORD:
	case CONFIG_T_CHOICE:
	case CONFIG_T_WORDS:
		n = (size_t)snprintf(buf, cap, k->type != CONFIG_T_WORDS ? "One of " : "List of ");
		for (const struct config_word *w = k->words; w->text != NULL; w++, sep = ", ")
			n += (size_t)snprintf(buf + n, cap - n, "%s%s", sep, w->text);
		return buf;
	case CONFIG_T_US_WORD:
		n = 0;
		for (const struct config_word *w = k->words; w->text != NULL; w++, sep = ", ")
			n += (size_t)snprintf(buf + n, cap - n, "%s%s", sep, w->text);
		config_number_format(k, k->min, min, sizeof(min));
		config_number_format(k, k->max, max, sizeof(max));
		snprintf(buf + n, cap - n, ", or a time (%s-%s)", min, max);
		return buf;
	case CONFIG_T_SIZE:
		what = "Size";
		break;
	case CONFIG_T_US:
	case CONFIG_T_MS:
	case CONFIG_T_SECONDS:
		what = "Time";
		break;
	case CONFIG_T_MODE:
		what = "Octal string";
		break;
	case CONFIG_T_UINT:
		break;
	}
	config_number_format(k, k->min, min, sizeof(min));
	config_number_format(k, k->max, max, sizeof(max));
	snprintf(buf, cap, "%s (%s%s-%s)", what,
	    (k->flags & CONFIG_OR_ZERO) != 0    ? "0 or "
	        : (k->flags & CONFIG_AUTO) != 0 ? "auto or "
	                                        : "",
	    min, max);
	return buf;
}

/* Has the section settings, none of which changes by a reload? The page says so once, before the settings. */
static bool
all_need_a_take_over(const struct config_section *sec)
{
	unsigned cnt = 0;

	for (const struct config_key *k = config_keys; k->name != NULL; k++) {
		if ((k->where & sec->place) == 0)
			continue;
		if ((k->flags & CONFIG_RELOAD) != 0)
			return false;
		cnt++;
	}
	return cnt > 0;
}

/* Sections, and behind them the groups in a service. */
static const struct config_section groups[] = { { "probe", "probe.", CONFIG_AT_PROBE, 0 },
	{ "via", "via.", CONFIG_AT_VIA, 0 } };

static const struct config_section *
section_after(const struct config_section *sec)
{
	if (sec == &groups[1])
		return NULL;
	return sec == &groups[0] || sec[1].name != NULL ? sec + 1 : groups;
}

/* As lines of the page. */
static void
wrap(char *text)
{
	char *line = text;

	for (char *p = text, *space = NULL; *p != '\0'; p++) {
		if (*p == '\n') {
			line = p + 1;
			space = NULL;
		} else if (*p == ' ' && p - line <= PAGE_COLUMNS) {
			space = p;
		} else if (p - line == PAGE_COLUMNS && space != NULL) {
			*space = '\n';
			line = space + 1;
			space = NULL;
		}
	}
}

/* The text that has to follow the heading of a key. */
static void
facts(const struct config_section *sec, const struct config_key *k, char *buf, size_t cap)
{
	bool marked = (k->flags & CONFIG_RELOAD) == 0 && !all_need_a_take_over(sec);
	const char *def = k->def, *mark = marked ? "Needs a take-over.\n" : "";
	char type[256];

	/* The page shows the usual directory. */
	if (def != NULL && strncmp(def, RUNSTATEDIR "/", sizeof(RUNSTATEDIR)) == 0)
		snprintf(buf, cap, ".It Ic %s\n%s; default /run%s.\n%s", k->name, type_facts(k, type, sizeof(type)),
		    def + strlen(RUNSTATEDIR), mark);
	else if (def != NULL)
		snprintf(
		    buf, cap, ".It Ic %s\n%s; default %s.\n%s", k->name, type_facts(k, type, sizeof(type)), def, mark);
	else
		snprintf(buf, cap, ".It Ic %s\n%s%s.\n%s", k->name, type_facts(k, type, sizeof(type)),
		    (k->flags & CONFIG_REQUIRED) != 0 ? "; required" : "", mark);
	wrap(buf);
}

/* The part of the page about one section: to the next heading. NULL when there is none. */
static char *
section_text(const char *page, const char *heading)
{
	char line[64];

	snprintf(line, sizeof(line), "\n.Ss %s\n", heading);
	const char *from = strstr(page, line);
	if (from == NULL)
		return NULL;
	char *text = strdup(from + 1);
	for (char *p = text; (p = strstr(p, "\n.S")) != NULL; p++)
		if (p[3] == 's' || p[3] == 'h')
			*p = '\0';
	return text;
}

static const char *
heading_of(const struct config_section *sec)
{
	return sec->name[0] == '\0'                                      ? "Top level"
	    : (sec->place & (CONFIG_AT_INGRESS | CONFIG_AT_EGRESS)) != 0 ? "ingress and egress"
	                                                                 : sec->name;
}

START_TEST(every_key_is_documented)
{
	char *page = read_source("man/smcrd.conf.5"), expected[512];
	unsigned missing = 0;

	for (const struct config_section *sec = config_sections; sec != NULL; sec = section_after(sec)) {
		char *text = section_text(page, heading_of(sec));

		ck_assert_msg(text != NULL, "no heading %s", heading_of(sec));
		/* No section with a setting that a reload changes says that all need a take-over. */
		if ((strstr(text, "\nAll settings need a take-over.\n") != NULL) != all_need_a_take_over(sec)) {
			printf("# smcrd.conf.5, %s: whether all settings need a take-over\n", heading_of(sec));
			missing++;
		}
		for (const struct config_key *k = config_keys; k->name != NULL; k++) {
			if ((k->where & sec->place) == 0)
				continue;
			facts(sec, k, expected, sizeof(expected));
			if (strstr(text, expected) == NULL) {
				printf("# smcrd.conf.5, %s, lacks:\n%s", heading_of(sec), expected);
				missing++;
			}
		}
		free(text);
	}
	ck_assert_uint_eq(missing, 0);
	free(page);
}

START_TEST(every_documented_key_exists)
{
	char *page = read_source("man/smcrd.conf.5");

	for (const struct config_section *sec = config_sections; sec != NULL; sec = section_after(sec)) {
		char *text = section_text(page, heading_of(sec)), name[64];

		for (const char *p = text; (p = strstr(p, "\n.It Ic ")) != NULL; p++) {
			bool service = (sec->place & (CONFIG_AT_INGRESS | CONFIG_AT_EGRESS)) != 0;

			ck_assert_int_eq(sscanf(p, "\n.It Ic %63s", name), 1);
			ck_assert_msg(
			    config_key_find(service ? CONFIG_AT_INGRESS | CONFIG_AT_EGRESS : sec->place, name) != NULL,
			    "%s.%s", sec->name, name);
		}
		free(text);
	}
	free(page);
}

/* Of a file that is shipped: parses, and shows every section. */
START_TEST(the_example_is_right)
{
	char *text = read_source("conf/smcrd.conf.example");
	struct config *cfg;

	ck_assert_int_eq(config_parse("smcrd.conf.example", text, strlen(text), CONFIG_NO_LOOKUP, stdout, &cfg), 0);
	ck_assert_uint_ge(cfg->service_cnt, 2);
	for (const struct config_section *sec = config_sections + 1; sec->name != NULL; sec++)
		ck_assert_msg(strstr(text, sec->name) != NULL, "%s", sec->name);
	config_free(cfg);
	free(text);
}

/* Examples of the page, between .Bd -literal and .Ed, where they are whole sections. */
START_TEST(the_examples_of_the_page_are_right)
{
	char *page = read_source("man/smcrd.conf.5");
	unsigned cnt = 0;

	for (char *p = strstr(page, "\n.Sh EXAMPLES\n"); p != NULL && (p = strstr(p, "\n.Bd -literal")) != NULL;) {
		char *from = strchr(p + 1, '\n') + 1, *to = strstr(from, "\n.Ed\n");
		struct config *cfg;

		ck_assert_ptr_nonnull(to);
		to[1] = '\0';
		ck_assert_msg(
		    config_parse("example", from, strlen(from), CONFIG_NO_LOOKUP, stdout, &cfg) == 0, "%s", from);
		config_free(cfg);
		cnt++;
		p = to + 2;
	}
	ck_assert_uint_ge(cnt, 2);
	free(page);
}
