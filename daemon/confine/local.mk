# Rights that the process drops; confine_words.c is built with the reports (daemon/control/local.mk).
daemon_libsmcrd_a_SOURCES += \
	daemon/confine/confine.c daemon/confine/confine.h daemon/confine/confine_parts.c daemon/confine/confine_parts.h \
	daemon/confine/confine_caps.c \
	daemon/confine/confine_files.c
if HAVE_SECCOMP
daemon_libsmcrd_a_SOURCES += daemon/confine/confine_seccomp.c daemon/confine/confine_table.c
else
daemon_libsmcrd_a_SOURCES += daemon/confine/confine_seccomp_none.c
endif

check_UNIT += \
	tests/unit/daemon/confine/check_confine \
	tests/unit/daemon/confine/check_confine_modes
