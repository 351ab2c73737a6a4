/* The known key that an unknown one was probably meant to be: see config_int.h. */
#include <string.h>

#include "daemon/config/config_int.h"

#define KEY_MAX 32 /* longer than every key */

static unsigned
least(unsigned a, unsigned b)
{
	return a < b ? a : b;
}

/* Characters to insert, remove, replace, or exchange with the next one, to make b of a; both are at most KEY_MAX long. */
static unsigned
distance(const char *a, const char *b)
{
	unsigned rows[3][KEY_MAX + 1], *before = rows[0], *last = rows[1], *row = rows[2];
	size_t a_len = strlen(a), b_len = strlen(b);

	for (unsigned j = 0; j <= b_len; j++)
		last[j] = j;
	for (unsigned i = 1; i <= a_len; i++) {
		row[0] = i;
		for (unsigned j = 1; j <= b_len; j++) {
			row[j] = least(least(last[j], row[j - 1]) + 1, last[j - 1] + (a[i - 1] != b[j - 1]));
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				row[j] = least(row[j], before[j - 2] + 1);
		}
		unsigned *free_row = before;
		before = last;
		last = row;
		row = free_row;
	}
	return last[b_len];
}

const char *
config_nearest(unsigned places, const char *name)
{
	size_t len = strlen(name);
	const char *nearest = NULL;
	unsigned best;

	if (len > KEY_MAX)
		return NULL;
	/* A third of it may be wrong; of three letters and fewer, one. */
	best = 1 + (len < 4 ? 1 : (unsigned)len / 3);
	for (const struct config_key *k = config_keys; k->name != NULL; k++) {
		unsigned d = (k->where & places) != 0 ? distance(name, k->name) : best;

		if (d < best) {
			best = d;
			nearest = k->name;
		}
	}
	for (const struct config_section *s = config_sections + 1; s->name != NULL; s++) {
		bool here = (places & CONFIG_AT_TOP) != 0 || ((places & CONFIG_AT_INCLUDED) != 0 && s->list_max > 0);
		unsigned d = here ? distance(name, s->name) : best;

		if (d < best) {
			best = d;
			nearest = s->name;
		}
	}
	return nearest;
}
