# All of the daemon but main(), so that tests link the real code; its rooms add what is theirs.
noinst_LIBRARIES += daemon/libsmcrd.a
daemon_libsmcrd_a_SOURCES = daemon/smcrd.c daemon/smcrd.h
daemon_libsmcrd_a_CFLAGS = $(AM_CFLAGS) $(SECCOMP_CFLAGS) $(LIBEVENT_CFLAGS) $(EVHTTP_CFLAGS) $(JANSSON_CFLAGS) $(LIBCONFIG_CFLAGS) $(LIBSYSTEMD_CFLAGS) \
	$(CARES_CFLAGS)
SMCRD_LIBS = daemon/libsmcrd.a $(TLS_LIBS) $(JANSSON_LIBS) $(EVHTTP_LIBS) $(LIBEVENT_LIBS) $(LIBCONFIG_LIBS) $(LIBSYSTEMD_LIBS) $(SECCOMP_LIBS) $(CARES_LIBS)

include daemon/loop/local.mk
include daemon/config/local.mk
include daemon/confine/local.mk
include daemon/net/local.mk
include daemon/log/local.mk
include daemon/device/local.mk
include daemon/leg/local.mk
include daemon/target/local.mk
include daemon/account/local.mk
include daemon/probe/local.mk
include daemon/state/local.mk
include daemon/session/local.mk
include daemon/service/local.mk
include daemon/names/local.mk
include daemon/worker/local.mk
include daemon/control/local.mk
include daemon/handover/local.mk
include daemon/metrics/local.mk
include daemon/process/local.mk

sbin_PROGRAMS += smcrd
smcrd_SOURCES = daemon/main.c
smcrd_LDADD = $(SMCRD_LIBS) lib/libsmcr.a $(RNIC_LIBS)

check_UNIT += tests/unit/daemon/check_smcrd
tests_unit_daemon_check_smcrd_SOURCES = tests/unit/daemon/check_smcrd.c $(FAKE_VERBS)
