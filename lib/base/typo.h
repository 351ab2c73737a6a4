/* The known word nearest to a mistyped one. The owner of a table of words compares each of them in turn. */
#pragma once

#define TYPO_WORD_MAX 32 /* longer words have no match */

struct typo {
	const char *word;    /* the typed word; must outlive this struct */
	const char *nearest; /* of the words compared; NULL: no word is near */
	unsigned distance;   /* a match must be nearer than this */
};

struct typo typo_of(const char *word);
void typo_compare(struct typo *, const char *known);
