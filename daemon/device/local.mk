# RNIC devices on the loop, and the interfaces that they are on.
daemon_libsmcrd_la_SOURCES += \
	daemon/device/devices.c daemon/device/devices.h \
	daemon/device/device.c daemon/device/device.h \
	daemon/device/device_plan.c daemon/device/device_plan.h daemon/device/device_plan_text.c \
	daemon/device/device_cards.c daemon/device/device_cards.h \
	daemon/device/device_watch.c daemon/device/device_watch.h \
	daemon/device/device_preview.c daemon/device/device_preview.h \
	daemon/device/memlock.c daemon/device/memlock.h \
	daemon/device/netifs.c daemon/device/netifs.h \
	daemon/device/netwatch.c daemon/device/netwatch.h

if HAVE_CHECK
check_UNIT += \
	tests/unit/check_netifs \
	tests/unit/check_netwatch \
	tests/unit/check_device_plan \
	tests/unit/check_devices \
	tests/unit/check_device_preview \
	tests/unit/check_memlock
tests_unit_check_netifs_SOURCES = tests/unit/check_netifs.c tests/unit/addrs.h tests/unit/unit.h
tests_unit_check_netifs_CFLAGS = $(UNIT_CFLAGS)
tests_unit_check_netifs_LDADD = daemon/libsmcrd.la lib/libbase.la $(UNIT_LIBS)
tests_unit_check_netwatch_SOURCES = tests/unit/check_netwatch.c tests/unit/own_netns.h tests/unit/unit.h
tests_unit_check_netwatch_CFLAGS = $(UNIT_CFLAGS)
tests_unit_check_netwatch_LDADD = daemon/libsmcrd.la lib/libbase.la $(UNIT_LIBS)
tests_unit_check_device_plan_SOURCES = tests/unit/check_device_plan.c tests/unit/fake_verbs.c tests/unit/fake_verbs.h \
	tests/unit/unit.h
tests_unit_check_device_plan_CFLAGS = $(UNIT_CFLAGS)
tests_unit_check_device_plan_LDADD = daemon/libsmcrd.la lib/libbase.la $(UNIT_LIBS)
tests_unit_check_devices_SOURCES = tests/unit/check_devices.c tests/unit/addrs.h tests/unit/captured.h tests/unit/fake_verbs.c tests/unit/fake_verbs.h \
	tests/unit/unit.h
tests_unit_check_devices_CFLAGS = $(UNIT_CFLAGS)
tests_unit_check_devices_LDADD = daemon/libsmcrd.la lib/libbase.la $(UNIT_LIBS)
tests_unit_check_device_preview_SOURCES = tests/unit/check_device_preview.c tests/unit/fake_verbs.c \
	tests/unit/fake_verbs.h tests/unit/unit.h
tests_unit_check_device_preview_CFLAGS = $(UNIT_CFLAGS)
tests_unit_check_device_preview_LDADD = daemon/libsmcrd.la lib/libbase.la $(UNIT_LIBS)
tests_unit_check_memlock_SOURCES = tests/unit/check_memlock.c tests/unit/unit.h
tests_unit_check_memlock_CFLAGS = $(UNIT_CFLAGS)
tests_unit_check_memlock_LDADD = daemon/libsmcrd.la lib/libbase.la $(UNIT_LIBS)
endif
