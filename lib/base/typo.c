/* "Did you mean"; see typo.h. */
#include "base/typo.h"

#include <string.h>

#include "base/minmax.h"

/* Characters to insert, remove, replace, or swap with the next one, to turn a into b; both within TYPO_WORD_MAX. */
static unsigned
distance(const char *a, const char *b)
{
	unsigned rows[3][TYPO_WORD_MAX + 1], *before = rows[0], *last = rows[1], *row = rows[2];
	size_t a_len = strlen(a), b_len = strlen(b);

	for (unsigned j = 0; j <= b_len; j++)
		last[j] = j;
	for (unsigned i = 1; i <= a_len; i++) {
		row[0] = i;
		for (unsigned j = 1; j <= b_len; j++) {
			row[j] = min_u32(min_u32(last[j], row[j - 1]) + 1, last[j - 1] + (a[i - 1] != b[j - 1]));
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				row[j] = min_u32(row[j], before[j - 2] + 1);
		}
		unsigned *free_row = before;
		before = last;
		last = row;
		row = free_row;
	}
	return last[b_len];
}

struct typo
typo_of(const char *word)
{
	size_t len = strlen(word);

	/* A third of the characters may be wrong; one in a word of up to three letters. */
	return (struct typo){ .word = word, .distance = 1 + (len < 4 ? 1 : (unsigned)len / 3) };
}

void
typo_compare(struct typo *t, const char *known)
{
	if (strlen(t->word) > TYPO_WORD_MAX || strlen(known) > TYPO_WORD_MAX)
		return;
	unsigned d = distance(t->word, known);
	if (d < t->distance) {
		t->distance = d;
		t->nearest = known;
	}
}
