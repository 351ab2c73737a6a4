# Sockets and notifications that outlive a process.
daemon_libsmcrd_a_SOURCES += \
	daemon/handover/inherited.c daemon/handover/inherited.h \
	daemon/handover/notify.c daemon/handover/notify.h \
	daemon/handover/predecessors.c daemon/handover/predecessors.h \
	daemon/handover/takeover.c daemon/handover/takeover.h

check_UNIT += \
	tests/unit/daemon/handover/check_notify \
	tests/unit/daemon/handover/check_predecessors \
	tests/unit/daemon/handover/check_inherited
