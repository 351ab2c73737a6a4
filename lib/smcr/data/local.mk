# The data path, a library of its own so that its tests can put something else in the control path's place.
noinst_LTLIBRARIES += lib/libsmcr_data.la
lib_libsmcr_data_la_SOURCES = \
	lib/smcr/data/cursor.c lib/smcr/data/cursor.h \
	lib/smcr/data/rmb.c lib/smcr/data/rmb.h \
	lib/smcr/data/quarantine.c lib/smcr/data/quarantine.h \
	lib/smcr/data/sndbuf.c \
	lib/smcr/data/link_tx.c \
	lib/smcr/data/conn.c lib/smcr/data/conn.h \
	lib/smcr/data/failover.c lib/smcr/data/failover.h \
	lib/smcr/data/tx.c \
	lib/smcr/data/rx.c \
	lib/smcr/data/close.c lib/smcr/data/close.h

check_UNIT += \
	tests/unit/check_cursor \
	tests/unit/check_rmb \
	tests/unit/check_link_tx \
	tests/unit/check_tx \
	tests/unit/check_rx \
	tests/unit/check_conn \
	tests/unit/check_scenarios \
	tests/unit/check_traffic \
	tests/unit/check_close \
	tests/unit/check_failover \
	tests/unit/check_quarantine
tests_unit_check_rmb_SOURCES = tests/unit/check_rmb.c $(FAKE_CONTROL_PATH)
tests_unit_check_link_tx_SOURCES = tests/unit/check_link_tx.c $(FAKE_CONTROL_PATH)
tests_unit_check_tx_SOURCES = tests/unit/check_tx.c $(FAKE_CONTROL_PATH)
tests_unit_check_rx_SOURCES = tests/unit/check_rx.c $(FAKE_CONTROL_PATH)
tests_unit_check_conn_SOURCES = tests/unit/check_conn.c $(FAKE_CONTROL_PATH)
tests_unit_check_scenarios_SOURCES = tests/unit/check_scenarios.c $(FAKE_CONTROL_PATH)
tests_unit_check_traffic_SOURCES = tests/unit/check_traffic.c $(FAKE_CONTROL_PATH)
tests_unit_check_close_SOURCES = tests/unit/check_close.c $(FAKE_CONTROL_PATH)
