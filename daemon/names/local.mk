# Look-ups of target names, timed by the lifetime of their answers.
daemon_libsmcrd_a_SOURCES += \
	daemon/names/names.c daemon/names/names.h \
	daemon/names/dns_ttl.c daemon/names/dns_ttl.h \
	daemon/names/resolver.h
if HAVE_CARES
daemon_libsmcrd_a_SOURCES += daemon/names/resolver.c
else
daemon_libsmcrd_a_SOURCES += daemon/names/resolver_none.c
endif
EXTRA_DIST += daemon/names/resolver.c daemon/names/resolver_none.c

check_UNIT += tests/unit/daemon/names/check_dns_ttl
