noinst_LTLIBRARIES += lib/libsmcr.la
lib_libsmcr_la_SOURCES = \
	lib/smcr/smcr.h \
	lib/smcr/engine.c lib/smcr/engine.h \
	lib/smcr/owner.c lib/smcr/owner.h \
	lib/smcr/peer.c lib/smcr/peer.h \
	lib/smcr/room.c lib/smcr/room.h \
	lib/smcr/rendezvous.c lib/smcr/rendezvous.h \
	lib/smcr/rdv_client.c \
	lib/smcr/rdv_server.c \
	lib/smcr/lgr.c lib/smcr/lgr.h \
	lib/smcr/link.c lib/smcr/link.h \
	lib/smcr/llc.c lib/smcr/llc.h lib/smcr/llc_impl.h \
	lib/smcr/llc_link.c \
	lib/smcr/llc_add.c \
	lib/smcr/llc_add_server.c \
	lib/smcr/llc_add_client.c \
	lib/smcr/llc_delete.c \
	lib/smcr/llc_rkey.c \
	lib/smcr/llc_test.c \
	lib/smcr/rebalance.c \
	lib/smcr/info.c
lib_libsmcr_la_LIBADD = lib/libsmcr_data.la

# The data path, apart so that its tests can put something else in the control path's place.
noinst_LTLIBRARIES += lib/libsmcr_data.la
lib_libsmcr_data_la_SOURCES = \
	lib/smcr/cursor.c lib/smcr/cursor.h \
	lib/smcr/rmb.c lib/smcr/rmb.h \
	lib/smcr/quarantine.c lib/smcr/quarantine.h \
	lib/smcr/sndbuf.c \
	lib/smcr/link_tx.c \
	lib/smcr/conn.c lib/smcr/conn.h \
	lib/smcr/failover.c lib/smcr/failover.h \
	lib/smcr/tx.c \
	lib/smcr/rx.c \
	lib/smcr/close.c lib/smcr/close.h

if HAVE_CHECK
HOST_SOURCES = tests/unit/host.c tests/unit/host.h tests/unit/fake_rnic.c tests/unit/fake_rnic.h tests/unit/unit.h
HOST_LIBS = lib/libsmcr_data.la lib/libwire.la lib/libbase.la $(UNIT_LIBS)
check_UNIT += \
	tests/unit/check_cursor \
	tests/unit/check_rmb \
	tests/unit/check_link_tx \
	tests/unit/check_tx \
	tests/unit/check_rx \
	tests/unit/check_conn \
	tests/unit/check_scenarios \
	tests/unit/check_traffic \
	tests/unit/check_close
tests_unit_check_cursor_SOURCES = tests/unit/check_cursor.c tests/unit/unit.h
tests_unit_check_cursor_CFLAGS = $(UNIT_CFLAGS)
tests_unit_check_cursor_LDADD = lib/libsmcr_data.la lib/libbase.la $(UNIT_LIBS)
tests_unit_check_rmb_SOURCES = tests/unit/check_rmb.c $(HOST_SOURCES)
tests_unit_check_rmb_CFLAGS = $(UNIT_CFLAGS)
tests_unit_check_rmb_LDADD = $(HOST_LIBS)
tests_unit_check_link_tx_SOURCES = tests/unit/check_link_tx.c $(HOST_SOURCES)
tests_unit_check_link_tx_CFLAGS = $(UNIT_CFLAGS)
tests_unit_check_link_tx_LDADD = $(HOST_LIBS)
tests_unit_check_tx_SOURCES = tests/unit/check_tx.c $(HOST_SOURCES)
tests_unit_check_tx_CFLAGS = $(UNIT_CFLAGS)
tests_unit_check_tx_LDADD = $(HOST_LIBS)
tests_unit_check_rx_SOURCES = tests/unit/check_rx.c $(HOST_SOURCES)
tests_unit_check_rx_CFLAGS = $(UNIT_CFLAGS)
tests_unit_check_rx_LDADD = $(HOST_LIBS)
tests_unit_check_scenarios_SOURCES = tests/unit/check_scenarios.c $(HOST_SOURCES)
tests_unit_check_scenarios_CFLAGS = $(UNIT_CFLAGS)
tests_unit_check_scenarios_LDADD = $(HOST_LIBS)
tests_unit_check_traffic_SOURCES = tests/unit/check_traffic.c $(HOST_SOURCES)
tests_unit_check_traffic_CFLAGS = $(UNIT_CFLAGS)
tests_unit_check_traffic_LDADD = $(HOST_LIBS)
tests_unit_check_conn_SOURCES = tests/unit/check_conn.c $(HOST_SOURCES)
tests_unit_check_conn_CFLAGS = $(UNIT_CFLAGS)
tests_unit_check_conn_LDADD = $(HOST_LIBS)
tests_unit_check_close_SOURCES = tests/unit/check_close.c $(HOST_SOURCES)
tests_unit_check_close_CFLAGS = $(UNIT_CFLAGS)
tests_unit_check_close_LDADD = $(HOST_LIBS)

DUO_SOURCES = tests/unit/duo.c tests/unit/duo.h tests/unit/unit.h
DUO_LIBS = lib/libsmcr.la lib/libsim.la lib/libwire.la lib/libbase.la $(UNIT_LIBS)
check_UNIT += \
	tests/unit/check_llc_flow \
	tests/unit/check_failover \
	tests/unit/check_owner \
	tests/unit/check_quarantine \
	tests/unit/check_room \
	tests/unit/check_rendezvous
tests_unit_check_failover_SOURCES = tests/unit/check_failover.c $(DUO_SOURCES)
tests_unit_check_failover_CFLAGS = $(UNIT_CFLAGS)
tests_unit_check_failover_LDADD = $(DUO_LIBS)
tests_unit_check_llc_flow_SOURCES = tests/unit/check_llc_flow.c $(DUO_SOURCES)
tests_unit_check_llc_flow_CFLAGS = $(UNIT_CFLAGS)
tests_unit_check_llc_flow_LDADD = $(DUO_LIBS)
tests_unit_check_owner_SOURCES = tests/unit/check_owner.c $(DUO_SOURCES)
tests_unit_check_owner_CFLAGS = $(UNIT_CFLAGS)
tests_unit_check_owner_LDADD = $(DUO_LIBS)
tests_unit_check_quarantine_SOURCES = tests/unit/check_quarantine.c $(DUO_SOURCES)
tests_unit_check_quarantine_CFLAGS = $(UNIT_CFLAGS)
tests_unit_check_quarantine_LDADD = $(DUO_LIBS)
tests_unit_check_room_SOURCES = tests/unit/check_room.c $(DUO_SOURCES)
tests_unit_check_room_CFLAGS = $(UNIT_CFLAGS)
tests_unit_check_room_LDADD = $(DUO_LIBS)
tests_unit_check_rendezvous_SOURCES = tests/unit/check_rendezvous.c $(DUO_SOURCES)
tests_unit_check_rendezvous_CFLAGS = $(UNIT_CFLAGS)
tests_unit_check_rendezvous_LDADD = $(DUO_LIBS)
endif
