# The worker: engine, devices, services and sessions put together.
daemon_libsmcrd_la_SOURCES += \
	daemon/worker/worker.c daemon/worker/worker.h daemon/worker/worker_priv.h \
	daemon/worker/worker_info.c \
	daemon/worker/listener.c daemon/worker/listener.h \
	daemon/worker/reload.c daemon/worker/reload.h \
	daemon/worker/mpa_peers.c daemon/worker/mpa_peers.h \
	daemon/worker/mpa_clients.c daemon/worker/mpa_clients.h

check_UNIT += \
	tests/unit/check_worker \
	tests/unit/check_daemon_memory
tests_unit_check_worker_SOURCES = tests/unit/check_worker.c $(FAKE_ENGINE) $(FAKE_VERBS)
tests_unit_check_daemon_memory_LDFLAGS = $(AM_LDFLAGS) $(OOM_WRAP)
