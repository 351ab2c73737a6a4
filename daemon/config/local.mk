# The configuration: read, checked, printed, compared.
daemon_libsmcrd_la_SOURCES += \
	daemon/config/config.c daemon/config/config.h daemon/config/config_int.h \
	daemon/config/config_keys.c daemon/config/config_keys.h \
	daemon/config/config_value.c daemon/config/config_value.h daemon/config/config_value_int.h \
	daemon/config/config_value_net.c \
	daemon/config/config_report.c daemon/config/config_report.h \
	daemon/config/config_scan.c \
	daemon/config/config_check.c \
	daemon/config/config_devices.c \
	daemon/config/config_print.c \
	daemon/config/config_plan.c daemon/config/config_plan.h \
	daemon/config/loader.c daemon/config/loader.h

if HAVE_CHECK
check_UNIT += \
	tests/unit/check_config \
	tests/unit/check_config_plan \
	tests/unit/check_config_doc
tests_unit_check_config_SOURCES = tests/unit/check_config.c tests/unit/unit.h
tests_unit_check_config_CFLAGS = $(UNIT_CFLAGS)
tests_unit_check_config_LDADD = daemon/libsmcrd.la lib/libsmcr.la lib/libsiw.la $(VRNIC) lib/libbase.la $(UNIT_LIBS)
tests_unit_check_config_plan_SOURCES = tests/unit/check_config_plan.c tests/unit/unit.h
tests_unit_check_config_plan_CFLAGS = $(UNIT_CFLAGS)
tests_unit_check_config_plan_LDADD = daemon/libsmcrd.la lib/libbase.la $(UNIT_LIBS)
tests_unit_check_config_doc_SOURCES = tests/unit/check_config_doc.c tests/unit/unit.h
tests_unit_check_config_doc_CFLAGS = $(UNIT_CFLAGS)
tests_unit_check_config_doc_LDADD = daemon/libsmcrd.la lib/libbase.la $(UNIT_LIBS)
endif
