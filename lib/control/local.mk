# What daemon and smcrctl agree about.
lib_libbase_la_SOURCES += \
	lib/control/commands.c lib/control/commands.h \
	lib/control/counters.h

if HAVE_CHECK
check_UNIT += tests/unit/check_commands
tests_unit_check_commands_SOURCES = tests/unit/check_commands.c tests/unit/unit.h tests/unit/golden.h
tests_unit_check_commands_CFLAGS = $(UNIT_CFLAGS)
tests_unit_check_commands_LDADD = lib/libbase.la $(UNIT_LIBS)
endif
