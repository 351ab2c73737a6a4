# The configuration: read, checked, printed, compared.
daemon_libsmcrd_a_SOURCES += \
	daemon/config/config.c daemon/config/config.h daemon/config/config_int.h \
	daemon/config/config_keys.c daemon/config/config_keys.h \
	daemon/config/config_value.c daemon/config/config_value.h \
	daemon/config/config_value_net.c \
	daemon/config/config_via.c \
	daemon/config/config_value_inner.c \
	daemon/config/config_value_list.c \
	daemon/config/config_built.c \
	daemon/config/config_target.c \
	daemon/config/config_lookup.c \
	daemon/config/config_special.c \
	daemon/config/config_scan.c \
	daemon/config/config_msgs.c \
	daemon/config/config_files.c \
	daemon/config/config_range.c \
	daemon/config/config_print.c \
	daemon/config/config_check.c \
	daemon/config/config_devices.c \
	daemon/config/config_tls.c \
	daemon/config/config_plan.c \
	daemon/config/loader.c daemon/config/loader.h

check_UNIT += \
	tests/unit/daemon/config/check_config \
	tests/unit/daemon/config/check_config_built \
	tests/unit/daemon/config/check_config_files \
	tests/unit/daemon/config/check_config_special \
	tests/unit/daemon/config/check_config_plan \
	tests/unit/daemon/config/check_config_via \
	tests/unit/daemon/config/check_config_allow \
	tests/unit/daemon/config/check_config_doc
# A build without c-ares.
tests_unit_daemon_config_check_config_built_SOURCES = tests/unit/daemon/config/check_config_built.c daemon/names/resolver_none.c
