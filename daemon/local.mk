# All of the daemon but main(), so that tests link the real code; its rooms add what is theirs.
noinst_LTLIBRARIES += daemon/libsmcrd.la
daemon_libsmcrd_la_SOURCES = \
	daemon/smcrd.c daemon/smcrd.h daemon/smcrd_parts.h \
	daemon/smcrd_open.c \
	daemon/smcrd_apply.c \
	daemon/smcrd_end.c \
	daemon/census.c daemon/census.h \
	daemon/reloading.c daemon/reloading.h \
	daemon/options.c daemon/options.h \
	daemon/advice.c daemon/advice.h \
	daemon/notify.c daemon/notify.h \
	daemon/open_files.c daemon/open_files.h \
	daemon/log_text.c daemon/log_text.h \
	daemon/log_lines.c daemon/log_lines.h \
	daemon/log_choice.c daemon/log_choice.h \
	daemon/loop.c daemon/loop.h daemon/spin.c daemon/spin.h daemon/env.h \
	daemon/early.c daemon/early.h \
	daemon/takeover.c daemon/takeover.h \
	daemon/upgrade.c daemon/upgrade.h \
	daemon/background.c daemon/background.h \
	daemon/net.c daemon/net.h \
	daemon/ports.c daemon/ports.h \
	daemon/lsock.c daemon/lsock.h \
	daemon/smcopt.c daemon/smcopt.h \
	daemon/smcopt_prog.c daemon/smcopt_prog.h
daemon_libsmcrd_la_CFLAGS = $(AM_CFLAGS) $(SECCOMP_CFLAGS) $(LIBEVENT_CFLAGS) $(EVHTTP_CFLAGS) $(JANSSON_CFLAGS) $(LIBCONFIG_CFLAGS) $(LIBSYSTEMD_CFLAGS) \
	$(CARES_CFLAGS)
daemon_libsmcrd_la_LIBADD = daemon/libcontrol.la $(EVHTTP_LIBS) $(LIBEVENT_LIBS) $(LIBCONFIG_LIBS) $(LIBSYSTEMD_LIBS) \
	$(SECCOMP_LIBS) $(CARES_LIBS)

include daemon/config/local.mk
include daemon/confine/local.mk
include daemon/device/local.mk
include daemon/session/local.mk
include daemon/worker/local.mk
include daemon/control/local.mk
include daemon/names/local.mk
include daemon/metrics/local.mk

sbin_PROGRAMS += smcrd
smcrd_SOURCES = daemon/main.c
smcrd_LDADD = daemon/libsmcrd.la lib/libsmcr.la lib/libsiw.la $(VRNIC) lib/libiwarp.la lib/libwire.la lib/libbase.la

check_UNIT += \
	tests/unit/check_smcrd \
	tests/unit/check_reloading \
	tests/unit/check_notify \
	tests/unit/check_census \
	tests/unit/check_advice \
	tests/unit/check_early \
	tests/unit/check_smcopt \
	tests/unit/check_loop \
	tests/unit/check_spin \
	tests/unit/check_net \
	tests/unit/check_lsock \
	tests/unit/check_handover \
	tests/unit/check_mailbox \
	tests/unit/check_ports \
	tests/unit/check_log_text \
	tests/unit/check_log_lines \
	tests/unit/check_log_choice \
	tests/unit/check_open_files
tests_unit_check_smcrd_SOURCES = tests/unit/check_smcrd.c $(FAKE_VERBS)
tests_unit_check_census_SOURCES = tests/unit/check_census.c $(FAKE_WORKERS)
