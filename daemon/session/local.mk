# A connection through the daemon: its three legs, its service.
daemon_libsmcrd_la_SOURCES += \
	daemon/session/session_pool.c daemon/session/session_pool.h \
	daemon/session/service.c daemon/session/service.h \
	daemon/session/listener.c \
	daemon/session/sources.c daemon/session/sources.h \
	daemon/session/outage.c daemon/session/outage.h \
	daemon/session/session.c daemon/session/session.h \
	daemon/session/session_setup.c \
	daemon/session/session_pump.c \
	daemon/session/legs.c daemon/session/legs.h \
	daemon/session/leg.c daemon/session/leg.h \
	daemon/session/middle.c daemon/session/middle.h \
	daemon/session/fallback.c \
	daemon/session/bufpool.c daemon/session/bufpool.h \
	daemon/session/proxy.c daemon/session/proxy.h \
	daemon/session/probe.c daemon/session/probe.h \
	daemon/session/prewarm.c

if HAVE_CHECK
# The daemon with a stand-in for engine and device.
GATEWAY_TEST_SOURCES = tests/unit/gateway.h tests/unit/fake_smcr.c tests/unit/fake_smcr.h tests/unit/fake_verbs.c \
	tests/unit/fake_verbs.h tests/unit/unit.h
GATEWAY_TEST_LIBS = daemon/libsmcrd.la lib/libwire.la lib/libbase.la $(UNIT_LIBS)
check_UNIT += \
	tests/unit/check_leg \
	tests/unit/check_proxy \
	tests/unit/check_legs \
	tests/unit/check_legs_real \
	tests/unit/check_sources \
	tests/unit/check_outage \
	tests/unit/check_session
tests_unit_check_leg_SOURCES = tests/unit/check_leg.c tests/unit/tcp_pair.h tests/unit/unit.h
tests_unit_check_leg_CFLAGS = $(UNIT_CFLAGS)
tests_unit_check_leg_LDADD = daemon/libsmcrd.la lib/libbase.la $(UNIT_LIBS)
tests_unit_check_proxy_SOURCES = tests/unit/check_proxy.c tests/unit/unit.h
tests_unit_check_proxy_CFLAGS = $(UNIT_CFLAGS)
tests_unit_check_proxy_LDADD = daemon/libsmcrd.la lib/libbase.la $(UNIT_LIBS)
tests_unit_check_legs_SOURCES = tests/unit/check_legs.c $(GATEWAY_TEST_SOURCES)
tests_unit_check_legs_CFLAGS = $(UNIT_CFLAGS)
tests_unit_check_legs_LDADD = $(GATEWAY_TEST_LIBS)
tests_unit_check_sources_SOURCES = tests/unit/check_sources.c tests/unit/unit.h
tests_unit_check_sources_CFLAGS = $(UNIT_CFLAGS)
tests_unit_check_sources_LDADD = daemon/libsmcrd.la lib/libbase.la $(UNIT_LIBS)
tests_unit_check_outage_SOURCES = tests/unit/check_outage.c tests/unit/captured.h tests/unit/unit.h
tests_unit_check_outage_CFLAGS = $(UNIT_CFLAGS)
tests_unit_check_outage_LDADD = daemon/libsmcrd.la lib/libbase.la $(UNIT_LIBS)
tests_unit_check_session_SOURCES = tests/unit/check_session.c tests/unit/captured.h $(GATEWAY_TEST_SOURCES)
tests_unit_check_session_CFLAGS = $(UNIT_CFLAGS)
tests_unit_check_session_LDADD = $(GATEWAY_TEST_LIBS)
# check_legs with the real engine and device.
tests_unit_check_legs_real_SOURCES = tests/unit/check_legs.c tests/unit/gateway.h tests/unit/unit.h
tests_unit_check_legs_real_CFLAGS = $(UNIT_CFLAGS) -DGATEWAY_REAL
tests_unit_check_legs_real_LDADD = daemon/libsmcrd.la lib/libsmcr.la lib/libsiw.la $(VRNIC) lib/libiwarp.la \
	lib/libwire.la lib/libbase.la $(UNIT_LIBS)
endif
