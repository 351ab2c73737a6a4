# Which address a connection is sent to, and which of them work.
daemon_libsmcrd_a_SOURCES += \
	daemon/target/endpoints.c daemon/target/endpoints.h \
	daemon/target/health.c daemon/target/health.h \
	daemon/target/target_probe.c daemon/target/target_probe.h \
	daemon/target/targets.c daemon/target/targets.h

check_UNIT += \
	tests/unit/daemon/target/check_endpoints \
	tests/unit/daemon/target/check_health \
	tests/unit/daemon/target/check_targets
