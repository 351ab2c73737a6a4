# Deterministic runs of whole engines in virtual time; see run.c for how to use it by hand.
check_PROGRAMS += tests/scenario/run

check_SANITIZED += tests/scenario/check_seeds.sh tests/scenario/check_scripts.sh tests/scenario/check_hostile.sh
check_ONCE += tests/scenario/check_mutations.sh tests/scenario/check_mutate.py
EXTRA_DIST += tests/scenario/check_seeds.sh tests/scenario/soak tests/scenario/seeds.txt \
	tests/scenario/check_hostile.sh tests/scenario/hostile-seeds.txt \
	tests/scenario/check_scripts.sh tests/scenario/scripts \
	tests/scenario/mutate tests/scenario/mutations.txt tests/scenario/check_mutations.sh tests/scenario/check_mutate.py
tests_scenario_run_SOURCES = \
	tests/scenario/run.c \
	tests/scenario/scenario.c tests/scenario/scenario.h \
	tests/scenario/check.c tests/scenario/check.h \
	tests/scenario/fault.c tests/scenario/fault.h \
	tests/scenario/watch.c tests/scenario/watch.h \
	tests/scenario/trace.c tests/scenario/trace.h tests/scenario/trace_int.h \
	tests/scenario/trace_clc.c \
	tests/scenario/trace_cdc.c \
	tests/scenario/trace_llc.c tests/scenario/trace_open.c \
	tests/scenario/host.c tests/scenario/host.h \
	tests/scenario/session.c tests/scenario/session.h \
	tests/scenario/flow.c tests/scenario/flow.h \
	tests/scenario/bounds.c tests/scenario/bounds.h \
	tests/scenario/hostile.c tests/scenario/hostile.h \
	tests/scenario/liar.c tests/scenario/liar.h \
	tests/scenario/lie.c tests/scenario/lie.h \
	tests/scenario/lie_layout.c tests/scenario/lie_layout.h \
	tests/scenario/liar_v2.c tests/scenario/liar_v2.h \
	tests/scenario/dice.h \
	tests/scenario/plan.c tests/scenario/plan.h \
	tests/scenario/plan_hostile.c \
	tests/scenario/script.c tests/scenario/script.h \
	tests/scenario/script_run.c tests/scenario/script_run.h \
	tests/scenario/stcp.c tests/scenario/stcp.h \
	tests/scenario/world.c tests/scenario/world.h
tests_scenario_run_LDFLAGS = $(AM_LDFLAGS) $(OOM_WRAP)
tests_scenario_run_LDADD = tests/libwrap.a $(REST_LIBS)
