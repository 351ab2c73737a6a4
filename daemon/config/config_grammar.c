/* The grammar of the configuration file: see config_grammar.h. */
#include "daemon/config/config_grammar.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "daemon/config/config_char.h"
#include "daemon/config/config_int.h"

#define SHOW_MAX 40
#define SHOW_SIZE 64 /* the longest name of a character */

/* The token as written, printable and short; a character that a reader could not see by its name. */
static const char *
show(const char *text, size_t len, char buf[SHOW_SIZE])
{
	size_t n = 0;

	if (len > 0 && !isprint((unsigned char)*text))
		return config_char_name(text, buf, SHOW_SIZE);
	for (; n < len && n < SHOW_MAX; n++)
		buf[n] = (char)(isprint((unsigned char)text[n]) ? text[n] : '?');
	buf[n] = '\0';
	return buf;
}

static char
innermost(const struct grammar *g)
{
	return g->depth > 0 ? g->open[g->depth - 1].mark : '\0';
}

static bool
in_list(const struct grammar *g)
{
	return innermost(g) == '(' || innermost(g) == '[';
}

static const char *
bracket_words(char mark)
{
	return mark == '{' ? "group" : mark == '(' ? "list" : "array";
}

static char
closing(char mark)
{
	return mark == '{' ? '}' : mark == '(' ? ')' : ']';
}

/* Says once what would have been right. what: "'=' was expected"; where is of the innermost bracket. */
static void
wrong(struct grammar *g, const char *what, const char *text, size_t len, unsigned place)
{
	char buf[SHOW_SIZE], where[64] = "";

	g->lost = true;
	if (config_char_is_quote(text)) {
		config_error(g->b, place, "%.*s (%s) is no quote here: strings stand in plain double quotes, \"...\"",
		    (int)len, text, show(text, len, buf));
		return;
	}
	if (g->depth > 0)
		snprintf(where, sizeof(where), " (in the %s that begins with '%c' in line %u)",
		    bracket_words(innermost(g)), innermost(g), g->open[g->depth - 1].place & 0xffff);
	config_error(g->b, place, "%s, not %s%s", what, len > 0 ? show(text, len, buf) : "the end of the file", where);
}

static void
open_bracket(struct grammar *g, char mark, unsigned place)
{
	if (g->depth == GRAMMAR_DEPTH_MAX) {
		config_error(g->b, place, "nested deeper than %d", GRAMMAR_DEPTH_MAX);
		g->lost = true;
		return;
	}
	if (innermost(g) == '[') {
		config_error(g->b, place, "%s stands in a list, ( ... ), not in [ ... ] (which begins in line %u)",
		    mark == '{'       ? "a group"
		        : mark == '(' ? "a list"
		                      : "an array",
		    g->open[g->depth - 1].place & 0xffff);
		g->lost = true;
		return;
	}
	g->open[g->depth].mark = mark;
	g->open[g->depth].name_cnt = g->name_cnt;
	g->open[g->depth++].place = place;
	g->at = mark == '{' ? GRAMMAR_AT_NAME : GRAMMAR_AT_VALUE;
	g->comma = 0;
}

static void
close_bracket(struct grammar *g, char mark)
{
	if (g->at == GRAMMAR_AT_VALUE && g->comma != 0) {
		config_error(g->b, g->comma, "the last ',' of the %s is one too many: nothing follows it before '%c'",
		    bracket_words(innermost(g)), mark);
		g->lost = true;
		return;
	}
	g->depth--;
	g->name_cnt = g->open[g->depth].name_cnt;
	g->at = GRAMMAR_BEHIND_VALUE;
	g->joins = false;
}

/* Is it one of those that are lists at top level? */
static bool
is_list_name(const char *text, size_t len)
{
	for (const struct config_section *sec = config_sections; sec->name != NULL; sec++)
		if (sec->list_max > 0 && strlen(sec->name) == len && memcmp(sec->name, text, len) == 0)
			return true;
	return false;
}

/* The name of a setting: each group has it once. libconfig would not say which one is twice. */
static void
take_name(struct grammar *g, const char *text, size_t len, unsigned place)
{
	char buf[SHOW_SIZE];
	unsigned i = g->depth > 0 ? g->open[g->depth - 1].name_cnt : 0;

	g->at = GRAMMAR_AT_EQUALS;
	while (i < g->name_cnt && (g->names[i].len != len || memcmp(g->names[i].text, text, len) != 0))
		i++;
	if (i < g->name_cnt)
		config_error(g->b, place,
		    g->depth == 0 && is_list_name(text, len)
		        ? "%s is there already, in line %u: one list has all entries, but for those of included files"
		        : "%s is set already, in line %u",
		    show(text, len, buf), g->names[i].place & 0xffff);
	else if (g->name_cnt < GRAMMAR_NAMES_MAX)
		g->names[g->name_cnt++] = (struct grammar_name){ .text = text, .len = len, .place = place };
}

/* Does the mark close the innermost bracket, at a place where that may end? */
static bool
closes(const struct grammar *g, char mark)
{
	return g->depth > 0 && mark == closing(innermost(g)) && g->at != GRAMMAR_AT_EQUALS &&
	    (g->at != GRAMMAR_AT_VALUE || in_list(g));
}

static void
take_value(struct grammar *g, enum grammar_token token, const char *text, size_t len, unsigned place)
{
	bool word = token == GRAMMAR_NAME &&
	    !((len == 4 && strncasecmp(text, "true", 4) == 0) || (len == 5 && strncasecmp(text, "false", 5) == 0));
	bool quote = token == GRAMMAR_MARK && *text == '\'';

	if (token == GRAMMAR_MARK && strchr("{([", *text) != NULL) {
		open_bracket(g, *text, place);
	} else if (token == GRAMMAR_MARK || word) {
		wrong(g,
		    word || quote ? "a value was expected (strings stand in double quotes)" : "a value was expected",
		    text, len, place);
	} else {
		g->at = GRAMMAR_BEHIND_VALUE;
		g->joins = token == GRAMMAR_STRING;
	}
}

/* Behind a value: the next setting, with or without ';', or the next value of a list. */
static void
take_next(struct grammar *g, enum grammar_token token, const char *text, size_t len, unsigned place)
{
	bool mark = token == GRAMMAR_MARK;
	char what[32];

	if (token == GRAMMAR_STRING && g->joins)
		return;
	if (in_list(g) && mark && *text == ',') {
		g->at = GRAMMAR_AT_VALUE;
		g->comma = place;
	} else if (in_list(g)) {
		snprintf(what, sizeof(what), "',' or '%c' was expected", closing(innermost(g)));
		wrong(g, what, text, len, place);
	} else if (mark && (*text == ';' || *text == ',')) {
		g->at = GRAMMAR_AT_NAME;
	} else if (token == GRAMMAR_NAME) {
		take_name(g, text, len, place);
	} else {
		wrong(g, innermost(g) == '{' ? "';' or '}' was expected" : "';' was expected", text, len, place);
	}
}

void
grammar_take(struct grammar *g, enum grammar_token token, const char *text, size_t len, unsigned place)
{
	bool mark = token == GRAMMAR_MARK;

	if (g->lost)
		return;
	if (mark && closes(g, *text)) {
		close_bracket(g, *text);
		return;
	}
	switch (g->at) {
	case GRAMMAR_AT_NAME:
		if (token == GRAMMAR_NAME)
			take_name(g, text, len, place);
		else
			wrong(g,
			    mark && g->depth > 0 && strchr("})]", *text) != NULL ? "'}' was expected"
			                                                         : "the name of a setting was expected",
			    text, len, place);
		break;
	case GRAMMAR_AT_EQUALS:
		if (mark && (*text == '=' || *text == ':'))
			g->at = GRAMMAR_AT_VALUE;
		else
			wrong(g, "'=' was expected", text, len, place);
		g->comma = 0;
		break;
	case GRAMMAR_AT_VALUE:
		take_value(g, token, text, len, place);
		break;
	case GRAMMAR_BEHIND_VALUE:
		take_next(g, token, text, len, place);
		break;
	}
}

void
grammar_end(struct grammar *g, unsigned place)
{
	if (g->lost)
		return;
	if (g->depth > 0)
		config_error(
		    g->b, g->open[g->depth - 1].place, "'%c' without '%c'", innermost(g), closing(innermost(g)));
	else if (g->at == GRAMMAR_AT_EQUALS)
		wrong(g, "'=' was expected", "", 0, place);
	else if (g->at == GRAMMAR_AT_VALUE)
		wrong(g, "a value was expected", "", 0, place);
}
