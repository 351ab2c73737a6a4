/* Compares a text with a file kept in tests/unit/golden; UPDATE_GOLDEN=1 writes the file instead. */
#pragma once

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "checks.h"

static inline void
golden_path(char *buf, size_t cap, const char *name)
{
	const char *top = getenv("top_srcdir");

	snprintf(buf, cap, "%s/tests/unit/golden/%s", top != NULL ? top : "..", name);
}

/* The file as a string, to be freed. */
static inline char *
golden_read(const char *name)
{
	char path[1024];
	char *text = calloc(1, 1 << 20);

	golden_path(path, sizeof(path), name);
	FILE *f = fopen(path, "re");
	ck_assert_msg(f != NULL, "cannot open %s", path);
	ck_assert_uint_lt(fread(text, 1, (1 << 20) - 1, f), (1 << 20) - 1);
	fclose(f);
	return text;
}

static inline void
golden_compare(const char *name, const char *text)
{
	char path[1024];
	FILE *f;

	if (getenv("UPDATE_GOLDEN") != NULL) {
		golden_path(path, sizeof(path), name);
		f = fopen(path, "we");
		ck_assert_msg(f != NULL && fputs(text, f) >= 0 && fclose(f) == 0, "cannot write %s", path);
		return;
	}
	char *want = golden_read(name);
	size_t same = 0, line = 0;
	for (; want[same] != '\0' && want[same] == text[same]; same++)
		if (want[same] == '\n')
			line = same + 1;
	ck_assert_msg(want[same] == text[same], "differs from golden/%s in the line\n%.1000s; now it is\n%.1000s", name,
	    want + line, text + line);
	free(want);
}
