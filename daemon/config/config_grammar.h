/* libconfig's grammar, token by token, for errors that say what was expected and where a bracket was opened: libconfig
 * itself says "syntax error", often in a later line. What passes here may still be refused by libconfig; what it
 * accepts passes. Owner: config_scan, for one text. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct config_build;

#define GRAMMAR_DEPTH_MAX 8
#define GRAMMAR_NAMES_MAX 256 /* that are known at a time; of more libconfig finds out which are twice */

enum grammar_token {
	GRAMMAR_NAME, /* or true, false */
	GRAMMAR_STRING,
	GRAMMAR_NUMBER,
	GRAMMAR_MARK, /* one character that is none of these; beyond ASCII all its bytes, or one of no UTF-8 */
};

struct grammar {
	struct config_build *b;
	/* What comes next, in the innermost bracket, or at top level. */
	enum {
		GRAMMAR_AT_NAME,
		GRAMMAR_AT_EQUALS,
		GRAMMAR_AT_VALUE,
		GRAMMAR_BEHIND_VALUE,
	} at;
	bool lost;      /* an error was said: what follows from it would only confuse */
	bool joins;     /* the value before is a string, which another string continues */
	unsigned comma; /* place of the comma before this value; 0 = the first value of a list */
	unsigned depth; /* brackets that are open */
	struct {
		char mark;
		unsigned place;
		unsigned name_cnt; /* of names outside the bracket */
	} open[GRAMMAR_DEPTH_MAX];

	/* The names of all open groups, top level's first. */
	struct grammar_name {
		const char *text; /* in the text that is read */
		size_t len;
		unsigned place;
	} names[GRAMMAR_NAMES_MAX];

	unsigned name_cnt;
};

/* A token of the text; an error is reported with its place. */
void grammar_take(struct grammar *, enum grammar_token, const char *text, size_t len, unsigned place);
/* The text ends here. */
void grammar_end(struct grammar *, unsigned place);
