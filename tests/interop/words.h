/*
 * What the programs here that are driven by lines of text have in common:
 * objects by name, and words in and out.
 */
#pragma once

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAMES_MAX 256

struct named {
	char name[32];
	void *obj; /* NULL: free */
};

__attribute__((format(printf, 1, 2))) static inline void
say(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	putchar('\n');
	fflush(stdout);
}

/* What a command returns when it has said its answer itself. */
enum { ANSWERED = 1 };

static inline void
answer(int rc)
{
	if (rc < 0)
		say("error %s", strerror(-rc));
	else if (rc != ANSWERED)
		say("ok");
}

/* The first word of a line, NULL when there is none, and up to max others in arg[max + 1], NULL behind them. */
static inline char *
split(char *line, char **arg, unsigned max)
{
	static const char white[] = " \t\r\n";
	char *save = NULL, *word = strtok_r(line, white, &save);

	memset(arg, 0, (max + 1) * sizeof(*arg));
	for (unsigned i = 0; word != NULL && i < max && (arg[i] = strtok_r(NULL, white, &save)) != NULL; i++)
		;
	return word;
}

static inline uint64_t
num(const char *s)
{
	return s == NULL ? 0 : strtoull(s, NULL, 0);
}

static inline int
nibble(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static inline size_t
unhex(const char *s, uint8_t *out, size_t cap)
{
	size_t n = 0;

	for (; n < cap && nibble(s[0]) >= 0 && nibble(s[1]) >= 0; s += 2)
		out[n++] = (uint8_t)(nibble(s[0]) << 4 | nibble(s[1]));
	return n;
}

static inline void *
find(struct named *t, const char *name)
{
	for (unsigned i = 0; name != NULL && i < NAMES_MAX; i++)
		if (t[i].obj != NULL && strcmp(t[i].name, name) == 0)
			return t[i].obj;
	return NULL;
}

static inline const char *
name_of(const struct named *t, const void *obj)
{
	for (unsigned i = 0; i < NAMES_MAX; i++)
		if (t[i].obj == obj)
			return t[i].name;
	return "?";
}

static inline bool
add(struct named *t, const char *name, void *obj)
{
	for (unsigned i = 0; i < NAMES_MAX; i++) {
		if (t[i].obj != NULL)
			continue;
		snprintf(t[i].name, sizeof(t[i].name), "%s", name);
		t[i].obj = obj;
		return true;
	}
	return false;
}

static inline void
forget(struct named *t, const void *obj)
{
	for (unsigned i = 0; i < NAMES_MAX; i++)
		if (t[i].obj == obj)
			t[i].obj = NULL;
}
