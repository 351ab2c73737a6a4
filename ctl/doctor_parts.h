/* What doctor_rules.c shares with doctor_checks.c. */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "ctl/doctor.h"

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

/* Of an area without any finding that is worse than ok, end_area() says what is well. */
struct doctor {
	json_t *findings;
	const char *area;
	enum doctor_level worst, verdict; /* of this area, of all so far */
};

void doctor_begin_area(struct doctor *, const char *area);
/* advice: what to do, "" of what is well. An object may have "rises", which is itself with what its counters have risen by
 * since the earlier look: what is not said of that has ended. */
void doctor_find(struct doctor *, const json_t *o, enum doctor_level, const char *template, const char *advice);
/* The template says what is well. */
void doctor_end_area(struct doctor *, const json_t *o, const char *template);
/* Of facts of doctor.h. */
void doctor_look_at_checks(struct doctor *, const json_t *facts);
/* Has a check that went well this service, a name, among those of its address? */
bool doctor_check_works_for(const json_t *checks, const json_t *service);
