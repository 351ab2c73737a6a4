# Devices: each its own library; the sim device is for tests only.
check_LTLIBRARIES += lib/libsim.la
lib_libsim_la_SOURCES = \
	lib/rnic/rnic.h \
	lib/rnic/sim.c lib/rnic/sim.h lib/rnic/sim_int.h \
	lib/rnic/sim_fabric.c

if HAVE_CHECK
check_UNIT += \
	tests/unit/check_sim
tests_unit_check_sim_SOURCES = tests/unit/check_sim.c tests/unit/unit.h
tests_unit_check_sim_CFLAGS = $(UNIT_CFLAGS)
tests_unit_check_sim_LDADD = lib/libsim.la lib/libbase.la $(UNIT_LIBS)
endif
