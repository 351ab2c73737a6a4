# All of the daemon but main(), so that tests link the real code.
noinst_LTLIBRARIES += daemon/libsmcrd.la
daemon_libsmcrd_la_SOURCES = \
	daemon/loop.c daemon/loop.h
daemon_libsmcrd_la_CFLAGS = $(AM_CFLAGS) $(LIBEVENT_CFLAGS)
daemon_libsmcrd_la_LIBADD = $(LIBEVENT_LIBS)

if HAVE_CHECK
check_UNIT += \
	tests/unit/check_loop
tests_unit_check_loop_SOURCES = tests/unit/check_loop.c tests/unit/unit.h
tests_unit_check_loop_CFLAGS = $(UNIT_CFLAGS)
tests_unit_check_loop_LDADD = daemon/libsmcrd.la lib/libbase.la $(UNIT_LIBS)
endif
