/* Decline diagnosis codes in words; see clc_diag.h. */
#include "wire/clc_diag.h"

#include <stddef.h>

#define ROW(name, number, words) { number, words },

static const struct {
	uint32_t diag;
	const char *words;
} diags[] = { CLC_DIAGS(ROW) };

const char *
clc_diag_str(uint32_t diag)
{
	for (size_t i = 0; i < sizeof(diags) / sizeof(diags[0]); i++)
		if (diags[i].diag == diag)
			return diags[i].words;
	return "unknown code";
}
