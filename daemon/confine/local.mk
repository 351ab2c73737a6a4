# What the process gives up; confine_words.c is among the reports (daemon/control/local.mk).
daemon_libsmcrd_la_SOURCES += \
	daemon/confine/confine.c daemon/confine/confine.h daemon/confine/confine_parts.h \
	daemon/confine/confine_caps.c \
	daemon/confine/confine_files.c
if HAVE_SECCOMP
daemon_libsmcrd_la_SOURCES += daemon/confine/confine_seccomp.c daemon/confine/confine_table.c
else
daemon_libsmcrd_la_SOURCES += daemon/confine/confine_seccomp_none.c
endif

if HAVE_CHECK
check_UNIT += \
	tests/unit/check_confine \
	tests/unit/check_confine_modes
tests_unit_check_confine_SOURCES = tests/unit/check_confine.c tests/unit/confine_child.h tests/unit/unit.h
tests_unit_check_confine_CFLAGS = $(UNIT_CFLAGS)
tests_unit_check_confine_LDADD = daemon/libsmcrd.la lib/libbase.la $(UNIT_LIBS)
tests_unit_check_confine_modes_SOURCES = tests/unit/check_confine_modes.c tests/unit/confine_child.h tests/unit/unit.h
tests_unit_check_confine_modes_CFLAGS = $(UNIT_CFLAGS)
tests_unit_check_confine_modes_LDADD = daemon/libsmcrd.la lib/libbase.la $(UNIT_LIBS)
endif
