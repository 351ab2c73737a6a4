# CLC, first and later contact, peers.
lib_libsmcr_la_SOURCES += \
	lib/smcr/rendezvous/rendezvous.c lib/smcr/rendezvous/rendezvous.h \
	lib/smcr/rendezvous/rdv_clc.c \
	lib/smcr/rendezvous/rdv_client.c \
	lib/smcr/rendezvous/rdv_end.c \
	lib/smcr/rendezvous/rdv_group.c \
	lib/smcr/rendezvous/rdv_server.c \
	lib/smcr/rendezvous/peer.c lib/smcr/rendezvous/peer.h

if HAVE_CHECK
check_UNIT += \
	tests/unit/check_rendezvous
tests_unit_check_rendezvous_SOURCES = tests/unit/check_rendezvous.c $(DUO_SOURCES)
tests_unit_check_rendezvous_CFLAGS = $(UNIT_CFLAGS)
tests_unit_check_rendezvous_LDADD = $(DUO_LIBS)
endif
