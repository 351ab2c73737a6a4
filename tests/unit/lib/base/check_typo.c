#include "base/typo.h"

#include <string.h>

#include "unit.h"

/* Of these two, what the word is taken for. */
static const struct {
	const char *word, *known[2], *nearest;
} words[] = {
	{ "staus", { "stats", "status" }, "stats" },
	{ "sattus", { "stats", "status" }, "status" }, /* two that changed places are one mistake */
	{ "status", { "stats", "status" }, "status" },
	{ "linsk", { "rmbs", "links" }, "links" },
	{ "tpo", { "top", "stats" }, "top" },
	{ "xyz", { "top", "stats" }, NULL },
	{ "", { "top", "stats" }, NULL },
	{ "abcdefghijklmnopqrstuvwxyzabcdef", { "x", "abcdefghijklmnopqrstuvwxyzabcdeX" },
	    "abcdefghijklmnopqrstuvwxyzabcdeX" },
	/* Too long for the comparison: the word, the known one. */
	{ "abcdefghijklmnopqrstuvwxyzabcdefg", { "x", "abcdefghijklmnopqrstuvwxyzabcdef" }, NULL },
	{ "abcdefghijklmnopqrstuvwxyzabcdef", { "x", "abcdefghijklmnopqrstuvwxyzabcdefg" }, NULL },
};

START_LOOP_TEST(a_word_is_taken_for_the_nearest, 0, sizeof(words) / sizeof(words[0]))
{
	struct typo t = typo_of(words[_i].word);

	for (unsigned i = 0; i < 2; i++)
		typo_compare(&t, words[_i].known[i]);
	ck_assert_pstr_eq(t.nearest, words[_i].nearest);
}
