# The simulated device and its fabric: the referee of tests, no product.
check_LTLIBRARIES += tests/libsim.la
tests_libsim_la_SOURCES = \
	lib/rnic/rnic.h \
	tests/sim/sim.c tests/sim/sim.h tests/sim/sim_int.h \
	tests/sim/sim_fabric.c tests/sim/sim_forge.c

if HAVE_CHECK
check_UNIT += \
	tests/unit/check_sim
tests_unit_check_sim_SOURCES = tests/unit/check_sim.c tests/unit/unit.h
tests_unit_check_sim_CFLAGS = $(UNIT_CFLAGS)
tests_unit_check_sim_LDADD = tests/libsim.la lib/libbase.la $(UNIT_LIBS)
endif
