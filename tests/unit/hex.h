/* Hex to bytes, for golden vectors in tests. */
#pragma once

#include <ctype.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

/* Bytes written to out; blanks are skipped, anything else that is no hex digit ends it. */
static inline size_t
unhex(const char *hex, uint8_t *out, size_t cap)
{
	size_t len = 0;

	while (len < cap) {
		char pair[3] = { 0 };

		while (*hex == ' ')
			hex++;
		if (!isxdigit((unsigned char)hex[0]) || !isxdigit((unsigned char)hex[1]))
			break;
		pair[0] = *hex++;
		pair[1] = *hex++;
		out[len++] = (uint8_t)strtoul(pair, NULL, 16);
	}
	return len;
}
