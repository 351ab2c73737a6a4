# Connections: their memory, sending, receiving, closing, failover.
lib_libsmcr_la_SOURCES += \
	lib/smcr/data/rmb.c lib/smcr/data/rmb.h \
	lib/smcr/data/window.c lib/smcr/data/window.h \
	lib/smcr/data/sndbuf.c lib/smcr/data/sndbuf.h \
	lib/smcr/data/link_post.c lib/smcr/data/link_post.h \
	lib/smcr/data/link_tx.c lib/smcr/data/link_tx.h \
	lib/smcr/data/conn.c lib/smcr/data/conn.h \
	lib/smcr/data/failover.c lib/smcr/data/failover.h \
	lib/smcr/data/tx.c \
	lib/smcr/data/rx.c \
	lib/smcr/data/close.c

check_UNIT += \
	tests/unit/check_rmb \
	tests/unit/check_link_tx \
	tests/unit/check_tx \
	tests/unit/check_window \
	tests/unit/check_rx \
	tests/unit/check_start_over \
	tests/unit/check_conn \
	tests/unit/check_scenarios \
	tests/unit/check_traffic \
	tests/unit/check_close \
	tests/unit/check_failover \
	tests/unit/check_quarantine
