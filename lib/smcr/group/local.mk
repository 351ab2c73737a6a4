# Link groups, links, LLC.
lib_libsmcr_la_SOURCES += \
	lib/smcr/group/lgr.c lib/smcr/group/lgr.h \
	lib/smcr/group/link.c lib/smcr/group/link.h \
	lib/smcr/group/owner.c lib/smcr/group/owner.h \
	lib/smcr/group/room.c lib/smcr/group/room.h \
	lib/smcr/group/llc.c lib/smcr/group/llc.h lib/smcr/group/llc_impl.h \
	lib/smcr/group/llc_link.c \
	lib/smcr/group/llc_add.c \
	lib/smcr/group/llc_add_server.c \
	lib/smcr/group/llc_add_client.c \
	lib/smcr/group/llc_delete.c \
	lib/smcr/group/llc_rkey.c \
	lib/smcr/group/llc_keepalive.c \
	lib/smcr/group/topology.c lib/smcr/group/topology.h \
	lib/smcr/group/rebalance.c

if HAVE_CHECK
check_UNIT += \
	tests/unit/check_llc_flow \
	tests/unit/check_owner \
	tests/unit/check_room
tests_unit_check_llc_flow_SOURCES = tests/unit/check_llc_flow.c $(DUO_SOURCES)
tests_unit_check_llc_flow_CFLAGS = $(UNIT_CFLAGS)
tests_unit_check_llc_flow_LDADD = $(DUO_LIBS)
tests_unit_check_owner_SOURCES = tests/unit/check_owner.c $(DUO_SOURCES)
tests_unit_check_owner_CFLAGS = $(UNIT_CFLAGS)
tests_unit_check_owner_LDADD = $(DUO_LIBS)
tests_unit_check_room_SOURCES = tests/unit/check_room.c $(DUO_SOURCES)
tests_unit_check_room_CFLAGS = $(UNIT_CFLAGS)
tests_unit_check_room_LDADD = $(DUO_LIBS)
endif
