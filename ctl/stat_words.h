/* What the daemon's counters mean: the heading they stand under and the words beside the number. */
#ifndef SMCRD_CTL_STAT_WORDS_H
#define SMCRD_CTL_STAT_WORDS_H

struct stat_words {
	const char *key; /* in the JSON answer to "stats" */
	const char *heading;
	const char *words;
};

unsigned stat_words_cnt(void);
/* In the order to be shown; those of one heading stand together. */
const struct stat_words *stat_words_at(unsigned i);

#endif
