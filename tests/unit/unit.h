/*
 * What every unit test shares: one suite per program, reported as TAP. START_TEST needs no END_TEST, which is empty in the
 * versions of check that configure takes.
 */
#pragma once

#include <stdlib.h>

#include "checks.h"

/* unit_add(tc, a_test, another, ...): tests that run once. tcase_add_loop_test() is for those that run for each of a range. */
#define unit_add(tc, ...) unit_add_all(tc, (const TTest *[]){ __VA_ARGS__, NULL })

static inline void
unit_add_all(TCase *tc, const TTest **tests)
{
	for (; *tests != NULL; tests++)
		tcase_add_test(tc, *tests);
}

/* UNIT_MAIN("name", case_function, ...): each case_function(TCase *) adds its tests to a test case of its own. */
typedef void (*unit_case)(TCase *);

static inline int
unit_run(const char *name, const unit_case *cases, size_t n)
{
	Suite *suite = suite_create(name);
	SRunner *sr;

	for (size_t i = 0; i < n; i++) {
		TCase *tc = tcase_create(name);

		tcase_set_timeout(tc, 300); /* sanitizers on a loaded machine */
		cases[i](tc);
		suite_add_tcase(suite, tc);
	}
	sr = srunner_create(suite);
	srunner_set_tap(sr, "-");
	srunner_run_all(sr, CK_SILENT);
	srunner_free(sr);
	return EXIT_SUCCESS; /* the TAP driver counts failures */
}

#define UNIT_MAIN(name, ...)                                                    \
	int main(void)                                                          \
	{                                                                       \
		const unit_case cases[] = { __VA_ARGS__ };                      \
		return unit_run(name, cases, sizeof(cases) / sizeof(cases[0])); \
	}
