# Connections: their memory, sending, receiving, closing, failover.
lib_libsmcr_a_SOURCES += \
	lib/smcr/data/rmb.c lib/smcr/data/rmb.h \
	lib/smcr/data/window.c lib/smcr/data/window.h \
	lib/smcr/data/sndbuf.c lib/smcr/data/sndbuf.h \
	lib/smcr/data/link_post.c lib/smcr/data/link_post.h \
	lib/smcr/data/link_tx.c lib/smcr/data/link_tx.h \
	lib/smcr/data/conn.c lib/smcr/data/conn.h \
	lib/smcr/data/failover.c lib/smcr/data/failover.h \
	lib/smcr/data/grant.c lib/smcr/data/grant.h \
	lib/smcr/data/tx.c \
	lib/smcr/data/rx.c \
	lib/smcr/data/close.c

check_UNIT += \
	tests/unit/lib/smcr/data/check_rmb \
	tests/unit/lib/smcr/data/check_link_tx \
	tests/unit/lib/smcr/data/check_tx \
	tests/unit/lib/smcr/data/check_window \
	tests/unit/lib/smcr/data/check_rx \
	tests/unit/lib/smcr/data/check_start_over \
	tests/unit/lib/smcr/data/check_conn \
	tests/unit/lib/smcr/data/check_scenarios \
	tests/unit/lib/smcr/data/check_traffic \
	tests/unit/lib/smcr/data/check_close \
	tests/unit/lib/smcr/data/check_failover \
	tests/unit/lib/smcr/data/check_quarantine
