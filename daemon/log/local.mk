# Log lines: wording and levels.
daemon_libsmcrd_a_SOURCES += \
	daemon/log/log_lines.c daemon/log/log_lines.h \
	daemon/log/log_text.c daemon/log/log_text.h

check_UNIT += \
	tests/unit/daemon/log/check_log_text \
	tests/unit/daemon/log/check_log_lines
