# A connection through the daemon.
daemon_libsmcrd_a_SOURCES += \
	daemon/session/session.c daemon/session/session.h \
	daemon/session/session_detect.c \
	daemon/session/session_dial.c \
	daemon/session/session_measure.c \
	daemon/session/session_client.c \
	daemon/session/session_requested.c \
	daemon/session/session_secure.c \
	daemon/session/session_trust.c daemon/session/session_way.c \
	daemon/session/session_path.c \
	daemon/session/session_pump.c \
	daemon/session/session_setup.c

check_UNIT += \
	tests/unit/daemon/session/check_session_detect \
	tests/unit/daemon/session/check_session_open \
	tests/unit/daemon/session/check_session
tests_unit_daemon_session_check_session_SOURCES = tests/unit/daemon/session/check_session.c $(FAKE_ENGINE) $(FAKE_VERBS)
