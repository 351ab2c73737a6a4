# The control socket and what it reports; a library of its own, so that its tests can bring a worker of their own.
noinst_LTLIBRARIES += daemon/libcontrol.la
daemon_libcontrol_la_SOURCES = \
	daemon/confine/confine_words.c \
	daemon/control/outbuf.c daemon/control/outbuf.h \
	daemon/control/json_writer.c daemon/control/json_writer.h \
	daemon/control/control_request.c daemon/control/control_request.h \
	daemon/control/report.c daemon/control/report.h \
	daemon/control/report_devices.c \
	daemon/control/report_lists.c \
	daemon/control/report_status.c \
	daemon/control/stat_table.c daemon/control/stat_table.h \
	daemon/control/control_listen.c daemon/control/control_listen.h \
	daemon/control/control_client.c daemon/control/control_parts.h \
	daemon/control/control_command.c \
	daemon/control/control_trace.c \
	daemon/control/control_place.c \
	daemon/control/control.c daemon/control/control.h
daemon_libcontrol_la_CFLAGS = $(AM_CFLAGS) $(JANSSON_CFLAGS)
daemon_libcontrol_la_LIBADD = $(JANSSON_LIBS)

if HAVE_CHECK
check_UNIT += \
	tests/unit/check_json_writer \
	tests/unit/check_control_request \
	tests/unit/check_report \
	tests/unit/check_control
tests_unit_check_json_writer_SOURCES = tests/unit/check_json_writer.c tests/unit/unit.h
tests_unit_check_json_writer_CFLAGS = $(UNIT_CFLAGS) $(JANSSON_CFLAGS)
tests_unit_check_json_writer_LDADD = daemon/libcontrol.la $(UNIT_LIBS)
tests_unit_check_control_request_SOURCES = tests/unit/check_control_request.c tests/unit/unit.h
tests_unit_check_control_request_CFLAGS = $(UNIT_CFLAGS)
tests_unit_check_control_request_LDADD = daemon/libcontrol.la lib/libbase.la $(UNIT_LIBS)
tests_unit_check_report_SOURCES = tests/unit/check_report.c tests/unit/unit.h tests/unit/golden.h \
	tests/unit/fake_worker.c tests/unit/fake_worker.h
tests_unit_check_report_CFLAGS = $(UNIT_CFLAGS) $(JANSSON_CFLAGS)
tests_unit_check_report_LDADD = daemon/libcontrol.la lib/libwire.la lib/libbase.la $(UNIT_LIBS)
tests_unit_check_control_SOURCES = tests/unit/check_control.c tests/unit/unit.h \
	tests/unit/fake_worker.c tests/unit/fake_worker.h tests/unit/fake_loop.c tests/unit/fake_loop.h
tests_unit_check_control_CFLAGS = $(UNIT_CFLAGS) $(JANSSON_CFLAGS)
tests_unit_check_control_LDADD = daemon/libcontrol.la lib/libwire.la lib/libbase.la $(UNIT_LIBS)
endif
EXTRA_DIST += tests/unit/golden
