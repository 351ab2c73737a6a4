# The worker: combines engine, devices, services and sessions.
daemon_libsmcrd_a_SOURCES += \
	daemon/worker/worker.c daemon/worker/worker.h daemon/worker/worker_int.h \
	daemon/worker/worker_info.c \
	daemon/worker/workers.c daemon/worker/workers.h \
	daemon/worker/reload.c \
	daemon/worker/mpa_policy.c daemon/worker/mpa_policy.h

check_UNIT += \
	tests/unit/daemon/worker/check_worker \
	tests/unit/daemon/worker/check_workers \
	tests/unit/daemon/worker/check_daemon_memory
# With the real engine and device.
tests_unit_daemon_worker_check_workers_CPPFLAGS = $(AM_CPPFLAGS) -DGATEWAY_REAL
tests_unit_daemon_worker_check_worker_SOURCES = tests/unit/daemon/worker/check_worker.c $(FAKE_ENGINE) $(FAKE_VERBS)
tests_unit_daemon_worker_check_daemon_memory_SOURCES = tests/unit/daemon/worker/check_daemon_memory.c $(FAKE_WORKERS)
tests_unit_daemon_worker_check_daemon_memory_LDFLAGS = $(AM_LDFLAGS) $(OOM_WRAP)
