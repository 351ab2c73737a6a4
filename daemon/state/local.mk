# The objects that the rooms of sessions and services share.
daemon_libsmcrd_a_SOURCES += \
	daemon/state/bufpool.c daemon/state/bufpool.h \
	daemon/state/pool_state.h \
	daemon/state/service_state.h \
	daemon/state/session_state.c daemon/state/session_state.h \
	daemon/state/session_table.c daemon/state/session_table.h \
	daemon/state/settings.c

check_UNIT += \
	tests/unit/daemon/state/check_session_table \
	tests/unit/daemon/state/check_session_table_real \
	tests/unit/daemon/state/check_session_state
tests_unit_daemon_state_check_session_table_SOURCES = tests/unit/daemon/state/check_session_table.c $(FAKE_ENGINE) $(FAKE_VERBS)
tests_unit_daemon_state_check_session_state_SOURCES = tests/unit/daemon/state/check_session_state.c $(FAKE_ENGINE) $(FAKE_VERBS)
# check_session_table with the real engine and device.
tests_unit_daemon_state_check_session_table_real_SOURCES = tests/unit/daemon/state/check_session_table.c
tests_unit_daemon_state_check_session_table_real_CPPFLAGS = $(AM_CPPFLAGS) -DGATEWAY_REAL
