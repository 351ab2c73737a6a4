# The event loop, and the environment of its turns.
daemon_libsmcrd_a_SOURCES += \
	daemon/loop/env.h \
	daemon/loop/job.c daemon/loop/job.h \
	daemon/loop/loop.c daemon/loop/loop.h \
	daemon/loop/spin.c daemon/loop/spin.h

check_UNIT += \
	tests/unit/daemon/loop/check_loop \
	tests/unit/daemon/loop/check_spin \
	tests/unit/daemon/loop/check_mailbox

tests_unit_daemon_loop_check_loop_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=timerfd_settime
