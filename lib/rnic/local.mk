# What devices share.
noinst_LIBRARIES += lib/librnic.a
lib_librnic_a_SOURCES = \
	lib/rnic/rnic.h lib/rnic/unit.h \
	lib/rnic/events.c lib/rnic/events.h \
	lib/rnic/fence.c lib/rnic/fence.h \
	lib/rnic/iface.c lib/rnic/iface.h \
	lib/rnic/mpa_pdata.c lib/rnic/mpa_pdata.h \
	lib/rnic/sendq.c lib/rnic/sendq.h \
	lib/rnic/unknown_peers.c lib/rnic/unknown_peers.h \
	lib/rnic/wr.c lib/rnic/wr.h

check_UNIT += tests/unit/lib/rnic/check_fence tests/unit/lib/rnic/check_unknown_peers

# Devices: each its own library.
include lib/rnic/verbs/local.mk
include lib/rnic/siw/local.mk
