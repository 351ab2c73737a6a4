# The life of the process: what is opened, applied, drained.
daemon_libsmcrd_a_SOURCES += \
	daemon/process/background.c daemon/process/background.h \
	daemon/process/control_ask.c daemon/process/control_ask.h \
	daemon/process/fd_limit.c daemon/process/fd_limit.h \
	daemon/process/load_summary.c daemon/process/load_summary.h \
	daemon/process/log_choice.c daemon/process/log_choice.h \
	daemon/process/options.c daemon/process/options.h \
	daemon/process/preflight_listen.c \
	daemon/process/preflight.c daemon/process/preflight.h \
	daemon/process/keeper.c daemon/process/keeper.h \
	daemon/process/reload_client.c daemon/process/reload_client.h \
	daemon/process/reload_job.c daemon/process/reload_job.h \
	daemon/process/running.c daemon/process/running.h \
	daemon/process/smcrd_requests.c \
	daemon/process/smcrd_open.c \
	daemon/process/smcrd_parts.h \
	daemon/process/tls_watch.c daemon/process/tls_watch.h

check_UNIT += \
	tests/unit/daemon/process/check_reload_job \
	tests/unit/daemon/process/check_load_summary \
	tests/unit/daemon/process/check_preflight \
	tests/unit/daemon/process/check_preflight_listen \
	tests/unit/daemon/process/check_log_choice \
	tests/unit/daemon/process/check_fd_limit
tests_unit_daemon_process_check_load_summary_SOURCES = tests/unit/daemon/process/check_load_summary.c $(FAKE_WORKERS)
