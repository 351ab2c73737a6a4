/* What an unknown word was probably meant to be. Asked with each known word in turn, by whoever has a table of them. */
#pragma once

#define TYPO_WORD_MAX 32 /* longer ones are like nothing */

struct typo {
	const char *word;    /* what was typed; it has to outlive this */
	const char *nearest; /* of those compared; NULL: none is near */
	unsigned distance;   /* what another one has to be nearer than */
};

struct typo typo_of(const char *word);
void typo_compare(struct typo *, const char *known);
