# RNIC devices on the loop, and their interfaces.
daemon_libsmcrd_a_SOURCES += \
	daemon/device/devices.c daemon/device/devices.h \
	daemon/device/device.c daemon/device/device.h \
	daemon/device/device_plan.c daemon/device/device_plan.h \
	daemon/device/device_watch.c daemon/device/device_watch.h \
	daemon/device/device_preview.c daemon/device/device_preview.h \
	daemon/device/memlock.c daemon/device/memlock.h \
	daemon/device/netifs.c daemon/device/netifs.h \
	daemon/device/netwatch.c daemon/device/netwatch.h

check_UNIT += \
	tests/unit/daemon/device/check_netifs \
	tests/unit/daemon/device/check_netwatch \
	tests/unit/daemon/device/check_device_plan \
	tests/unit/daemon/device/check_devices \
	tests/unit/daemon/device/check_device_preview \
	tests/unit/daemon/device/check_memlock
tests_unit_daemon_device_check_device_plan_SOURCES = tests/unit/daemon/device/check_device_plan.c $(FAKE_VERBS)
tests_unit_daemon_device_check_devices_SOURCES = tests/unit/daemon/device/check_devices.c $(FAKE_VERBS)
tests_unit_daemon_device_check_device_preview_SOURCES = tests/unit/daemon/device/check_device_preview.c $(FAKE_VERBS)
