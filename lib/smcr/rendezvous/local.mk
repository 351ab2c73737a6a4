# CLC, first and later contact, peers.
lib_libsmcr_a_SOURCES += \
	lib/smcr/rendezvous/rendezvous.c lib/smcr/rendezvous/rendezvous.h \
	lib/smcr/rendezvous/rdv_client.c \
	lib/smcr/rendezvous/rdv_device.c \
	lib/smcr/rendezvous/rdv_end.c \
	lib/smcr/rendezvous/rdv_group.c \
	lib/smcr/rendezvous/rdv_open.c \
	lib/smcr/rendezvous/rdv_server.c \
	lib/smcr/rendezvous/rdv_step.c \
	lib/smcr/rendezvous/rdv_terms.c \
	lib/smcr/rendezvous/peer.c

check_UNIT += \
	tests/unit/lib/smcr/rendezvous/check_hold_off \
	tests/unit/lib/smcr/rendezvous/check_open \
	tests/unit/lib/smcr/rendezvous/check_open_faults \
	tests/unit/lib/smcr/rendezvous/check_open_lies \
	tests/unit/lib/smcr/rendezvous/check_open_moves \
	tests/unit/lib/smcr/rendezvous/check_client \
	tests/unit/lib/smcr/rendezvous/check_dest \
	tests/unit/lib/smcr/rendezvous/check_rdv_turn \
	tests/unit/lib/smcr/rendezvous/check_rendezvous \
	tests/unit/lib/smcr/rendezvous/check_terms
