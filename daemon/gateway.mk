# Sockets, sessions and the worker; part of daemon/libsmcrd.la.
daemon_libsmcrd_la_SOURCES += \
	daemon/net.c daemon/net.h \
	daemon/leg.c daemon/leg.h \
	daemon/dial.c daemon/dial.h \
	daemon/subnet.c daemon/subnet.h \
	daemon/proxy.c daemon/proxy.h \
	daemon/log_text.c daemon/log_text.h \
	daemon/bufpool.c daemon/bufpool.h \
	daemon/legs.c daemon/legs.h \
	daemon/middle.c daemon/middle.h \
	daemon/session.c daemon/session.h \
	daemon/session_setup.c \
	daemon/session_pump.c \
	daemon/fallback.c \
	daemon/service.c daemon/service.h \
	daemon/sources.c daemon/sources.h \
	daemon/outage.c daemon/outage.h \
	daemon/mpa_peers.c daemon/mpa_peers.h \
	daemon/listener.c daemon/listener.h \
	daemon/probe.c daemon/probe.h \
	daemon/prewarm.c daemon/prewarm.h \
	daemon/check.c \
	daemon/devices.c daemon/devices.h daemon/devices_priv.h daemon/devices_info.c \
	daemon/device_plan.c daemon/device_plan.h daemon/device_plan_text.c \
	daemon/device_cards.c daemon/device_cards.h \
	daemon/device_log.c \
	daemon/device_watch.c daemon/device_watch.h \
	daemon/device_preview.c daemon/device_preview.h \
	daemon/memlock.c daemon/memlock.h \
	daemon/mpa_clients.c daemon/mpa_clients.h \
	daemon/netifs.c daemon/netifs.h \
	daemon/netwatch.c daemon/netwatch.h \
	daemon/reload.c daemon/reload.h \
	daemon/worker.c daemon/worker.h daemon/worker_priv.h \
	daemon/worker_info.c

if HAVE_CHECK
# The daemon with a stand-in for engine and device.
GATEWAY_TEST_SOURCES = tests/unit/gateway.h tests/unit/fake_smcr.c tests/unit/fake_smcr.h tests/unit/fake_verbs.c \
	tests/unit/fake_verbs.h tests/unit/unit.h
GATEWAY_TEST_LIBS = daemon/libsmcrd.la lib/libwire.la lib/libbase.la $(UNIT_LIBS)
check_UNIT += \
	tests/unit/check_leg \
	tests/unit/check_proxy \
	tests/unit/check_log_text \
	tests/unit/check_legs \
	tests/unit/check_legs_real \
	tests/unit/check_sources \
	tests/unit/check_outage \
	tests/unit/check_netifs \
	tests/unit/check_netwatch \
	tests/unit/check_device_plan \
	tests/unit/check_devices \
	tests/unit/check_device_preview \
	tests/unit/check_memlock \
	tests/unit/check_daemon_memory \
	tests/unit/check_session \
	tests/unit/check_worker
tests_unit_check_outage_SOURCES = tests/unit/check_outage.c tests/unit/unit.h
tests_unit_check_outage_CFLAGS = $(UNIT_CFLAGS)
tests_unit_check_outage_LDADD = daemon/libsmcrd.la lib/libbase.la $(UNIT_LIBS)
tests_unit_check_sources_SOURCES = tests/unit/check_sources.c tests/unit/unit.h
tests_unit_check_sources_CFLAGS = $(UNIT_CFLAGS)
tests_unit_check_sources_LDADD = daemon/libsmcrd.la lib/libbase.la $(UNIT_LIBS)
tests_unit_check_netifs_SOURCES = tests/unit/check_netifs.c tests/unit/unit.h
tests_unit_check_netifs_CFLAGS = $(UNIT_CFLAGS)
tests_unit_check_netifs_LDADD = daemon/libsmcrd.la lib/libbase.la $(UNIT_LIBS)
tests_unit_check_netwatch_SOURCES = tests/unit/check_netwatch.c tests/unit/own_netns.h tests/unit/unit.h
tests_unit_check_netwatch_CFLAGS = $(UNIT_CFLAGS)
tests_unit_check_netwatch_LDADD = daemon/libsmcrd.la lib/libbase.la $(UNIT_LIBS)
tests_unit_check_device_plan_SOURCES = tests/unit/check_device_plan.c tests/unit/fake_verbs.c tests/unit/fake_verbs.h \
	tests/unit/unit.h
tests_unit_check_device_plan_CFLAGS = $(UNIT_CFLAGS)
tests_unit_check_device_plan_LDADD = daemon/libsmcrd.la lib/libbase.la $(UNIT_LIBS)
tests_unit_check_devices_SOURCES = tests/unit/check_devices.c tests/unit/fake_verbs.c tests/unit/fake_verbs.h \
	tests/unit/unit.h
tests_unit_check_devices_CFLAGS = $(UNIT_CFLAGS)
tests_unit_check_devices_LDADD = daemon/libsmcrd.la lib/libbase.la $(UNIT_LIBS)
tests_unit_check_device_preview_SOURCES = tests/unit/check_device_preview.c tests/unit/fake_verbs.c \
	tests/unit/fake_verbs.h tests/unit/unit.h
tests_unit_check_device_preview_CFLAGS = $(UNIT_CFLAGS)
tests_unit_check_device_preview_LDADD = daemon/libsmcrd.la lib/libbase.la $(UNIT_LIBS)
tests_unit_check_memlock_SOURCES = tests/unit/check_memlock.c tests/unit/unit.h
tests_unit_check_memlock_CFLAGS = $(UNIT_CFLAGS)
tests_unit_check_memlock_LDADD = daemon/libsmcrd.la lib/libbase.la $(UNIT_LIBS)
tests_unit_check_worker_SOURCES = tests/unit/check_worker.c $(GATEWAY_TEST_SOURCES)
tests_unit_check_worker_CFLAGS = $(UNIT_CFLAGS)
tests_unit_check_worker_LDADD = $(GATEWAY_TEST_LIBS)
tests_unit_check_session_SOURCES = tests/unit/check_session.c $(GATEWAY_TEST_SOURCES)
tests_unit_check_session_CFLAGS = $(UNIT_CFLAGS)
tests_unit_check_session_LDADD = $(GATEWAY_TEST_LIBS)
tests_unit_check_leg_SOURCES = tests/unit/check_leg.c tests/unit/tcp_pair.h tests/unit/unit.h
tests_unit_check_leg_CFLAGS = $(UNIT_CFLAGS)
tests_unit_check_leg_LDADD = daemon/libsmcrd.la lib/libbase.la $(UNIT_LIBS)
tests_unit_check_proxy_SOURCES = tests/unit/check_proxy.c tests/unit/unit.h
tests_unit_check_proxy_CFLAGS = $(UNIT_CFLAGS)
tests_unit_check_proxy_LDADD = daemon/libsmcrd.la lib/libbase.la $(UNIT_LIBS)
tests_unit_check_log_text_SOURCES = tests/unit/check_log_text.c tests/unit/unit.h
tests_unit_check_log_text_CFLAGS = $(UNIT_CFLAGS)
tests_unit_check_log_text_LDADD = daemon/libsmcrd.la lib/libwire.la lib/libbase.la $(UNIT_LIBS)
tests_unit_check_legs_SOURCES = tests/unit/check_legs.c $(GATEWAY_TEST_SOURCES)
tests_unit_check_legs_CFLAGS = $(UNIT_CFLAGS)
tests_unit_check_legs_LDADD = $(GATEWAY_TEST_LIBS)
tests_unit_check_daemon_memory_SOURCES = tests/unit/check_daemon_memory.c tests/unit/gateway.h tests/unit/unit.h $(SWEEP)
tests_unit_check_daemon_memory_CFLAGS = $(UNIT_CFLAGS)
tests_unit_check_daemon_memory_LDFLAGS = $(AM_LDFLAGS) $(OOM_WRAP)
tests_unit_check_daemon_memory_LDADD = daemon/libsmcrd.la lib/libsmcr.la lib/libsiw.la $(VRNIC) lib/libiwarp.la \
	lib/libwire.la lib/libbase.la $(UNIT_LIBS)
# The same with the real engine and device.
tests_unit_check_legs_real_SOURCES = tests/unit/check_legs.c tests/unit/gateway.h tests/unit/unit.h
tests_unit_check_legs_real_CFLAGS = $(UNIT_CFLAGS) -DGATEWAY_REAL
tests_unit_check_legs_real_LDADD = daemon/libsmcrd.la lib/libsmcr.la lib/libsiw.la $(VRNIC) lib/libiwarp.la \
	lib/libwire.la lib/libbase.la $(UNIT_LIBS)
endif
