# What daemon and smcrctl agree about.
lib_libbase_a_SOURCES += \
	lib/control/commands.c lib/control/commands.h \
	lib/control/counters.h lib/control/files.h \
	lib/control/instance.c lib/control/instance.h

check_UNIT += tests/unit/lib/control/check_commands tests/unit/lib/control/check_instance
