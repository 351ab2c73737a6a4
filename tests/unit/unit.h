/* What every unit test shares: main(), and tests that are known by being written. They run in the order of the file and
 * are reported as TAP. */
#pragma once

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "checks.h"

/* A test, or the begin of a case: then there is no test. */
struct unit_entry {
	const TTest *test;
	int signal, from, to;
	void (*prepare)(TCase *);
	int line;
	struct unit_entry *next;
};

static struct unit_entry *unit_entries;

/* By line, as the order of constructors is the compiler's. */
static inline void
unit_register(struct unit_entry *e)
{
	struct unit_entry **at = &unit_entries;

	while (*at != NULL && (*at)->line < e->line)
		at = &(*at)->next;
	e->next = *at;
	*at = e;
}

#define UNIT_ENTRY(name, ...)                                             \
	static void __attribute__((constructor)) name(void)               \
	{                                                                 \
		static struct unit_entry e;                               \
		e = (struct unit_entry){ .line = __LINE__, __VA_ARGS__ }; \
		unit_register(&e);                                        \
	}

/* START_LOOP_TEST(name, from, to) { ... }: runs for each _i of the range; with _SIGNAL each has to end by that signal. */
#define START_LOOP_TEST_SIGNAL(name, sig, from_i, to_i)                                                           \
	static void name##_fn(int);                                                                               \
	static const TTest name##_test = { #name, name##_fn, __FILE__, __LINE__ };                                \
	UNIT_ENTRY(name##_entry, .test = &name##_test, .signal = (sig), .from = (int)(from_i), .to = (int)(to_i)) \
	static void name##_fn(int _i CK_ATTRIBUTE_UNUSED)
#define START_LOOP_TEST(name, from, to) START_LOOP_TEST_SIGNAL(name, 0, from, to)
#undef START_TEST
#define START_TEST(name) START_LOOP_TEST(name, 0, 1)

/* UNIT_CASE(statement): the tests below are a case of their own, which the statement prepares; it is `tc` there. */
#define UNIT_JOIN_(a, b) a##b
#define UNIT_JOIN(a, b) UNIT_JOIN_(a, b)
#define UNIT_CASE(...)                                                                        \
	static void UNIT_JOIN(prepare_, __LINE__)(TCase * tc CK_ATTRIBUTE_UNUSED)             \
	{                                                                                     \
		__VA_ARGS__;                                                                  \
	}                                                                                     \
	UNIT_ENTRY(UNIT_JOIN(unit_case_, __LINE__), .prepare = UNIT_JOIN(prepare_, __LINE__)) \
	struct unit_entry
#define UNIT_FIXTURE(setup, teardown) UNIT_CASE(tcase_add_checked_fixture(tc, setup, teardown))

/* UNIT_NEEDS(what): const char *what(void) says what is missing on this machine, so that no test of the file runs; NULL: nothing. */
static const char *(*unit_missing)(void)__attribute__((unused));
#define UNIT_NEEDS(what)                                           \
	static void __attribute__((constructor)) unit_needs_(void) \
	{                                                          \
		unit_missing = (what);                             \
	}                                                          \
	struct unit_entry

/* Runs the tests that have argv[1] in their name, or all. */
int
main(int argc, char **argv)
{
	if (unit_missing != NULL && unit_missing() != NULL) {
		printf("1..0 # SKIP %s\n", unit_missing());
		return EXIT_SUCCESS;
	}
	Suite *suite = suite_create("unit");
	SRunner *sr = srunner_create(suite);
	TCase *tc = NULL;

	for (struct unit_entry *e = unit_entries; e != NULL; e = e->next) {
		if (tc == NULL || e->prepare != NULL) {
			tc = tcase_create("unit");
			tcase_set_timeout(tc, 300); /* sanitizers on a loaded machine */
			suite_add_tcase(suite, tc);
		}
		if (e->prepare != NULL)
			e->prepare(tc);
		else if (argc < 2 || strstr(e->test->name, argv[1]) != NULL)
			tcase_add_loop_test_raise_signal(tc, e->test, e->signal, e->from, e->to);
	}
	srunner_set_tap(sr, "-");
	srunner_run_all(sr, CK_SILENT);
	srunner_free(sr);
	return EXIT_SUCCESS; /* the TAP driver counts failures */
}
