/* The queue of the engine's log lines: what does not fit is counted, and the count is reported at most once a second. */
#include "smcr/state/engine.h"
#include "smcr/state/log.h"

#include "duo.h"
#include "unit.h"

enum { TOO_MANY = 5 };

/* Fills the queue and reads it. Returns the lost lines that it reports. */
static uint64_t
flood(struct smcr *eng)
{
	uint64_t lost = 0;
	struct smcr_log l;

	for (int i = 0; i < SMCR_LOG_MAX + TOO_MANY; i++)
		(void)engine_log_peer(eng, SMCR_LOG_STATE, NULL, "", NULL, 0, "x");
	for (int lines = 0; smcr_next_log(eng, &l); lines++) {
		ck_assert_int_eq(l.type == SMCR_LOG_OVERRUN, lines == SMCR_LOG_MAX);
		lost += l.type == SMCR_LOG_OVERRUN ? l.value : 0;
	}
	return lost;
}

UNIT_CASE(duo_case(tc, 2000));

START_TEST(lost_lines_are_reported_once_a_second)
{
	struct smcr *eng;
	struct smcr_log l;

	duo_begin(NULL);
	eng = d.eng[A];
	while (smcr_next_log(eng, &l))
		;
	ck_assert(!timer_armed(&eng->log_pause));
	ck_assert_uint_eq(flood(eng), TOO_MANY);
	ck_assert_uint_eq(flood(eng), 0);
	/* Nothing else wakes an idle user. */
	ck_assert(timer_armed(&eng->log_pause));
	ck_assert_int_le(smcr_deadline(eng), d.now_ns + 1000 * MS);
	duo_run(990);
	ck_assert_uint_eq(flood(eng), 0);
	duo_run(20);
	ck_assert_uint_eq(flood(eng), 3 * TOO_MANY);
}
