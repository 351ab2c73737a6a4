# The worker: engine, devices, services and sessions put together.
daemon_libsmcrd_la_SOURCES += \
	daemon/worker/worker.c daemon/worker/worker.h \
	daemon/worker/reload.c daemon/worker/reload.h \
	daemon/worker/mpa_policy.c daemon/worker/mpa_policy.h

if HAVE_CHECK
check_UNIT += \
	tests/unit/check_worker \
	tests/unit/check_daemon_memory
tests_unit_check_worker_SOURCES = tests/unit/check_worker.c tests/unit/addrs.h $(GATEWAY_TEST_SOURCES)
tests_unit_check_worker_CFLAGS = $(UNIT_CFLAGS)
tests_unit_check_worker_LDADD = $(GATEWAY_TEST_LIBS)
tests_unit_check_daemon_memory_SOURCES = tests/unit/check_daemon_memory.c tests/unit/gateway.h tests/unit/unit.h $(SWEEP)
tests_unit_check_daemon_memory_CFLAGS = $(UNIT_CFLAGS)
tests_unit_check_daemon_memory_LDFLAGS = $(AM_LDFLAGS) $(OOM_WRAP)
tests_unit_check_daemon_memory_LDADD = daemon/libsmcrd.la lib/libsmcr.la lib/libsiw.la $(VRNIC) lib/libiwarp.la \
	lib/libwire.la lib/libbase.la $(UNIT_LIBS)
endif
