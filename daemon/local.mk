# All of the daemon but main(), so that tests link the real code.
noinst_LTLIBRARIES += daemon/libsmcrd.la
daemon_libsmcrd_la_SOURCES = \
	daemon/config.c daemon/config.h daemon/config_int.h \
	daemon/config_keys.c daemon/config_keys.h \
	daemon/config_value.c daemon/config_value.h daemon/config_value_int.h \
	daemon/config_value_net.c \
	daemon/config_value_out.c \
	daemon/config_scan.c \
	daemon/config_check.c \
	daemon/config_devices.c \
	daemon/config_print.c \
	daemon/config_plan.c daemon/config_plan.h \
	daemon/smcrd.c daemon/smcrd.h \
	daemon/options.c daemon/options.h \
	daemon/loader.c daemon/loader.h \
	daemon/notify.c daemon/notify.h \
	daemon/fdlimit.c daemon/fdlimit.h \
	daemon/early.c daemon/early.h \
	daemon/confine.c daemon/confine.h daemon/confine_parts.h \
	daemon/confine_caps.c \
	daemon/confine_files.c \
	daemon/loop.c daemon/loop.h
if HAVE_SECCOMP
daemon_libsmcrd_la_SOURCES += daemon/confine_seccomp.c daemon/confine_table.c daemon/confine_table.h
else
daemon_libsmcrd_la_SOURCES += daemon/confine_seccomp_none.c
endif
daemon_libsmcrd_la_CFLAGS = $(AM_CFLAGS) $(SECCOMP_CFLAGS) $(LIBEVENT_CFLAGS) $(LIBCONFIG_CFLAGS) $(LIBSYSTEMD_CFLAGS)
daemon_libsmcrd_la_LIBADD = daemon/libcontrol.la $(LIBEVENT_LIBS) $(LIBCONFIG_LIBS) $(LIBSYSTEMD_LIBS) \
	$(SECCOMP_LIBS)

include daemon/gateway.mk

sbin_PROGRAMS += smcrd
smcrd_SOURCES = daemon/main.c
smcrd_LDADD = daemon/libsmcrd.la lib/libsmcr.la lib/libsiw.la $(VRNIC) lib/libiwarp.la lib/libwire.la lib/libbase.la

if HAVE_CHECK
check_UNIT += \
	tests/unit/check_config \
	tests/unit/check_config_plan \
	tests/unit/check_config_doc \
	tests/unit/check_confine \
	tests/unit/check_confine_modes \
	tests/unit/check_smcrd \
	tests/unit/check_loop
tests_unit_check_config_SOURCES = tests/unit/check_config.c tests/unit/unit.h
tests_unit_check_config_CFLAGS = $(UNIT_CFLAGS)
tests_unit_check_config_LDADD = daemon/libsmcrd.la lib/libsmcr.la lib/libsiw.la $(VRNIC) lib/libbase.la $(UNIT_LIBS)
tests_unit_check_config_plan_SOURCES = tests/unit/check_config_plan.c tests/unit/unit.h
tests_unit_check_config_plan_CFLAGS = $(UNIT_CFLAGS)
tests_unit_check_config_plan_LDADD = daemon/libsmcrd.la lib/libbase.la $(UNIT_LIBS)
tests_unit_check_config_doc_SOURCES = tests/unit/check_config_doc.c tests/unit/unit.h
tests_unit_check_config_doc_CFLAGS = $(UNIT_CFLAGS)
tests_unit_check_config_doc_LDADD = daemon/libsmcrd.la lib/libbase.la $(UNIT_LIBS)
tests_unit_check_confine_modes_SOURCES = tests/unit/check_confine_modes.c tests/unit/confine_child.h tests/unit/unit.h
tests_unit_check_confine_modes_CFLAGS = $(UNIT_CFLAGS)
tests_unit_check_confine_modes_LDADD = daemon/libsmcrd.la lib/libbase.la $(UNIT_LIBS)
tests_unit_check_confine_SOURCES = tests/unit/check_confine.c tests/unit/confine_child.h tests/unit/unit.h
tests_unit_check_confine_CFLAGS = $(UNIT_CFLAGS)
tests_unit_check_confine_LDADD = daemon/libsmcrd.la lib/libbase.la $(UNIT_LIBS)
tests_unit_check_smcrd_SOURCES = tests/unit/check_smcrd.c tests/unit/fake_verbs.c tests/unit/fake_verbs.h tests/unit/unit.h
tests_unit_check_smcrd_CFLAGS = $(UNIT_CFLAGS)
tests_unit_check_smcrd_LDADD = daemon/libsmcrd.la lib/libbase.la $(UNIT_LIBS)
tests_unit_check_loop_SOURCES = tests/unit/check_loop.c tests/unit/tcp_pair.h tests/unit/unit.h
tests_unit_check_loop_CFLAGS = $(UNIT_CFLAGS)
tests_unit_check_loop_LDADD = daemon/libsmcrd.la lib/libbase.la $(UNIT_LIBS)
endif

# The control socket and what it reports; a library of its own, so that its tests can bring a worker of their own.
noinst_LTLIBRARIES += daemon/libcontrol.la
daemon_libcontrol_la_SOURCES = \
	daemon/confine_words.c \
	daemon/outbuf.c daemon/outbuf.h \
	daemon/json_writer.c daemon/json_writer.h \
	daemon/control_request.c daemon/control_request.h \
	daemon/report.c daemon/report.h daemon/report_parts.h \
	daemon/report_devices.c \
	daemon/report_lists.c \
	daemon/report_status.c \
	daemon/stat_table.c daemon/stat_table.h \
	daemon/control_listen.c daemon/control_listen.h \
	daemon/control_client.c daemon/control_parts.h \
	daemon/control_command.c \
	daemon/control_trace.c \
	daemon/control_place.c \
	daemon/control.c daemon/control.h
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
EXTRA_DIST += tests/unit/golden doc/port-mapper.md
