# The simulated device and its fabric: the referee of tests, no product.
check_LIBRARIES += tests/libsim.a
tests_libsim_a_SOURCES = \
	lib/rnic/rnic.h \
	tests/sim/sim.c tests/sim/sim.h tests/sim/sim_int.h \
	tests/sim/sim_fabric.c tests/sim/sim_forge.c

check_UNIT += \
	tests/unit/sim/check_sim
