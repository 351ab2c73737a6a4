/* Golden vectors: lines "kind name hex" of a file in tests/unit/vectors. */
#pragma once

#include <stdio.h>

#include "base/span.h"
#include "hex.h"

#define VECTOR_MAX_LEN 256

typedef void (*vector_fn)(const char *name, struct span bytes);

/* Calls fn for every vector of that kind and returns how many there were; 0 also when the file cannot be read. */
static inline unsigned
vectors_each_in(const char *file, const char *kind, vector_fn fn)
{
	const char *top = getenv("top_srcdir");
	char path[512], line[1024], k[16], name[128], hex[VECTOR_MAX_LEN * 2 + 1];
	uint8_t bytes[VECTOR_MAX_LEN];
	unsigned cnt = 0;

	snprintf(path, sizeof(path), "%s/tests/unit/vectors/%s", top != NULL ? top : ".", file);
	FILE *f = fopen(path, "r");
	while (f != NULL && fgets(line, sizeof(line), f) != NULL) {
		if (sscanf(line, "%15s %127s %512s", k, name, hex) != 3 || strcmp(k, kind) != 0)
			continue;
		fn(name, (struct span){ bytes, unhex(hex, bytes, sizeof(bytes)) });
		cnt++;
	}
	if (f != NULL)
		fclose(f);
	return cnt;
}

static inline unsigned
vectors_each(const char *kind, vector_fn fn)
{
	return vectors_each_in("smc.txt", kind, fn);
}
