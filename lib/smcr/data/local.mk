# What the rooms share, and the data path: a library of its own so that its tests can put something else in the control path's place.
noinst_LTLIBRARIES += lib/libsmcr_data.la
lib_libsmcr_data_la_SOURCES = \
	lib/smcr/state/engine.h \
	lib/smcr/state/lgr.c lib/smcr/state/lgr.h \
	lib/smcr/state/link.c lib/smcr/state/link.h \
	lib/smcr/state/llc_flow.c lib/smcr/state/llc_flow.h \
	lib/smcr/state/log.c lib/smcr/state/log.h \
	lib/smcr/state/marks.c lib/smcr/state/marks.h \
	lib/smcr/data/cursor.c lib/smcr/data/cursor.h \
	lib/smcr/data/rmb.c lib/smcr/data/rmb.h \
	lib/smcr/data/quarantine.c lib/smcr/data/quarantine.h \
	lib/smcr/data/sndbuf.c lib/smcr/data/sndbuf.h \
	lib/smcr/data/link_tx.c lib/smcr/data/link_tx.h \
	lib/smcr/data/conn.c lib/smcr/data/conn.h \
	lib/smcr/data/failover.c lib/smcr/data/failover.h \
	lib/smcr/data/tx.c lib/smcr/data/tx.h \
	lib/smcr/data/rx.c lib/smcr/data/rx.h \
	lib/smcr/data/close.c lib/smcr/data/close.h

if HAVE_CHECK
HOST_SOURCES = tests/unit/host.c tests/unit/host.h tests/unit/fake_rnic.c tests/unit/fake_rnic.h tests/unit/unit.h
HOST_LIBS = lib/libsmcr.la lib/libwire.la lib/libbase.la $(UNIT_LIBS)
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
tests_unit_check_conn_SOURCES = tests/unit/check_conn.c $(HOST_SOURCES)
tests_unit_check_conn_CFLAGS = $(UNIT_CFLAGS)
tests_unit_check_conn_LDADD = $(HOST_LIBS)
tests_unit_check_scenarios_SOURCES = tests/unit/check_scenarios.c $(HOST_SOURCES)
tests_unit_check_scenarios_CFLAGS = $(UNIT_CFLAGS)
tests_unit_check_scenarios_LDADD = $(HOST_LIBS)
tests_unit_check_traffic_SOURCES = tests/unit/check_traffic.c $(HOST_SOURCES)
tests_unit_check_traffic_CFLAGS = $(UNIT_CFLAGS)
tests_unit_check_traffic_LDADD = $(HOST_LIBS)
tests_unit_check_close_SOURCES = tests/unit/check_close.c $(HOST_SOURCES)
tests_unit_check_close_CFLAGS = $(UNIT_CFLAGS)
tests_unit_check_close_LDADD = $(HOST_LIBS)

DUO_SOURCES = tests/unit/duo.c tests/unit/duo.h tests/unit/unit.h
DUO_LIBS = lib/libsmcr.la tests/libsim.la lib/libwire.la lib/libbase.la $(UNIT_LIBS)
check_UNIT += \
	tests/unit/check_failover \
	tests/unit/check_quarantine
tests_unit_check_failover_SOURCES = tests/unit/check_failover.c $(DUO_SOURCES)
tests_unit_check_failover_CFLAGS = $(UNIT_CFLAGS)
tests_unit_check_failover_LDADD = $(DUO_LIBS)
tests_unit_check_quarantine_SOURCES = tests/unit/check_quarantine.c $(DUO_SOURCES)
tests_unit_check_quarantine_CFLAGS = $(UNIT_CFLAGS)
tests_unit_check_quarantine_LDADD = $(DUO_LIBS)
endif
