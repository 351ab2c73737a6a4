/* What every unit test shares: one suite per program, reported as TAP. */
#ifndef SMCRD_TESTS_UNIT_H
#define SMCRD_TESTS_UNIT_H

#include <stdlib.h>

#include "checks.h"

/* UNIT_MAIN("name", case_function, ...): each case_function(TCase *) adds its tests to a test case of its own. */
typedef void (*unit_case)(TCase *);

static inline int
unit_run(const char *name, const unit_case *cases, size_t n)
{
	Suite *s = suite_create(name);
	SRunner *sr;

	for (size_t i = 0; i < n; i++) {
		TCase *tc = tcase_create(name);

		tcase_set_timeout(tc, 300); /* sanitizers on a loaded machine */
		cases[i](tc);
		suite_add_tcase(s, tc);
	}
	sr = srunner_create(s);
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

#endif
