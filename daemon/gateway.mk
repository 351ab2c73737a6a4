# Sockets, sessions and the worker; part of daemon/libsmcrd.la.
daemon_libsmcrd_la_SOURCES += \
	daemon/net.c daemon/net.h \
	daemon/leg.c daemon/leg.h \
	daemon/dial.c daemon/dial.h \
	daemon/subnet.c daemon/subnet.h \
	daemon/proxy.c daemon/proxy.h \
	daemon/bufpool.c daemon/bufpool.h

if HAVE_CHECK
check_UNIT += \
	tests/unit/check_leg \
	tests/unit/check_proxy
tests_unit_check_leg_SOURCES = tests/unit/check_leg.c tests/unit/tcp_pair.h tests/unit/unit.h
tests_unit_check_leg_CFLAGS = $(UNIT_CFLAGS)
tests_unit_check_leg_LDADD = daemon/libsmcrd.la lib/libbase.la $(UNIT_LIBS)
tests_unit_check_proxy_SOURCES = tests/unit/check_proxy.c tests/unit/unit.h
tests_unit_check_proxy_CFLAGS = $(UNIT_CFLAGS)
tests_unit_check_proxy_LDADD = daemon/libsmcrd.la lib/libbase.la $(UNIT_LIBS)
endif
