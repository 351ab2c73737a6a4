# Link groups, links, LLC.
lib_libsmcr_a_SOURCES += \
	lib/smcr/group/lgr.c lib/smcr/group/lgr.h \
	lib/smcr/group/link.c lib/smcr/group/link.h \
	lib/smcr/group/owner.c lib/smcr/group/owner.h \
	lib/smcr/group/llc.c lib/smcr/group/llc.h lib/smcr/group/llc_impl.h \
	lib/smcr/group/llc_link.c \
	lib/smcr/group/llc_add.c \
	lib/smcr/group/llc_ask.c \
	lib/smcr/group/llc_delete.c \
	lib/smcr/group/llc_rkey.c \
	lib/smcr/group/llc_keepalive.c \
	lib/smcr/group/topology.c lib/smcr/group/topology.h

check_UNIT += \
	tests/unit/lib/smcr/group/check_llc_flow \
	tests/unit/lib/smcr/group/check_llc_flow_v2 \
	tests/unit/lib/smcr/group/check_owner \
	tests/unit/lib/smcr/group/check_room \
	tests/unit/lib/smcr/group/check_topology
