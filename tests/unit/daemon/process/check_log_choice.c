/* Precedence of file, option and client for the log level. */
#include "daemon/process/log_choice.h"

#include "unit.h"

#define NONE (-1)

static const struct {
	struct log_choice choice;
	enum log_level level;
	struct control_level said;
} choices[] = {
	{ { NONE, LOG_LVL_NOTICE, NONE }, LOG_LVL_NOTICE, { LOG_LVL_NOTICE, LOG_LVL_NOTICE, false } },
	{ { LOG_LVL_ERROR, LOG_LVL_NOTICE, NONE }, LOG_LVL_ERROR, { LOG_LVL_ERROR, LOG_LVL_ERROR, false } },
	{ { NONE, LOG_LVL_NOTICE, LOG_LVL_ERROR }, LOG_LVL_ERROR, { LOG_LVL_ERROR, LOG_LVL_NOTICE, true } },
	{ { LOG_LVL_INFO, LOG_LVL_NOTICE, LOG_LVL_DEBUG }, LOG_LVL_DEBUG, { LOG_LVL_DEBUG, LOG_LVL_INFO, true } },
};

START_LOOP_TEST(a_client_before_the_command_line_before_the_file, 0, sizeof(choices) / sizeof(choices[0]))
{
	struct log_choice c = choices[_i].choice;
	struct control_level said = log_choice_by_client(&c, CONTROL_LEVEL_ASK);

	ck_assert_int_eq(log_choice_level(&c), choices[_i].level);
	ck_assert_int_eq(said.now, choices[_i].said.now);
	ck_assert_int_eq(said.configured, choices[_i].said.configured);
	ck_assert_int_eq(said.set, choices[_i].said.set);
	ck_assert_int_eq(c.client, choices[_i].choice.client);
}

/* The log has it at once. */
static void
is_in_force(enum log_level level)
{
	ck_assert(log_is_on(level));
	ck_assert(!log_is_on(level + 1));
}

START_TEST(what_a_client_sets_stays_until_it_is_taken_back)
{
	struct log_choice c = { .option = NONE, .configured = LOG_LVL_NOTICE, .client = NONE };
	struct control_level said;

	log_set_level(LOG_LVL_ERROR);
	(void)log_choice_by_client(&c, CONTROL_LEVEL_ASK);
	is_in_force(LOG_LVL_ERROR); /* who asks changes nothing */
	ck_assert(!log_choice_configure(&c, LOG_LVL_WARNING));
	is_in_force(LOG_LVL_WARNING);
	said = log_choice_by_client(&c, LOG_LVL_INFO);
	ck_assert_int_eq(said.now, LOG_LVL_INFO);
	ck_assert(said.set);
	is_in_force(LOG_LVL_INFO);
	ck_assert(log_choice_configure(&c, LOG_LVL_ERROR));
	is_in_force(LOG_LVL_INFO);
	said = log_choice_by_client(&c, CONTROL_LEVEL_RESET);
	ck_assert_int_eq(said.now, LOG_LVL_ERROR);
	ck_assert(!said.set);
	is_in_force(LOG_LVL_ERROR);
	/* The lowest level is one, too. */
	said = log_choice_by_client(&c, LOG_LVL_ERROR);
	ck_assert(said.set);
}
