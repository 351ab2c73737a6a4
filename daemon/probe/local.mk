# Connections of the daemon's own: checks, measurements.
daemon_libsmcrd_a_SOURCES += \
	daemon/probe/check_result.c daemon/probe/check_result.h \
	daemon/probe/measure.c daemon/probe/measure.h \
	daemon/probe/probe.c daemon/probe/probe.h \
	daemon/probe/prober.c daemon/probe/prober.h

check_UNIT += \
	tests/unit/daemon/probe/check_measure \
	tests/unit/daemon/probe/check_check_result
