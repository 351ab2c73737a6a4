# Soft iWARP.
noinst_LTLIBRARIES += lib/libsiw.la
lib_libsiw_la_SOURCES = \
	lib/rnic/rnic.h \
	lib/rnic/siw/siw.c lib/rnic/siw/siw.h lib/rnic/siw/siw_int.h lib/rnic/siw/siw_llp.h \
	lib/rnic/siw/siw_cm.c \
	lib/rnic/siw/siw_pend.c \
	lib/rnic/siw/siw_qp.c \
	lib/rnic/siw/siw_rx.c \
	lib/rnic/siw/siw_tx.c \
	lib/rnic/siw/tcp/siw_tcp.c lib/rnic/siw/tcp/siw_tcp.h \
	lib/rnic/siw/tcp/siw_tcp_active.c \
	lib/rnic/siw/tcp/siw_tcp_linger.c \
	lib/rnic/siw/tcp/siw_tcp_passive.c \
	lib/rnic/siw/tcp/siw_tcp_path.c \
	lib/rnic/siw/tcp/siw_tcp_rx.c \
	lib/rnic/siw/tcp/siw_tcp_tx.c
lib_libsiw_la_LIBADD = lib/librnic.la lib/libiwarp.la

check_UNIT += \
	tests/unit/check_siw \
	tests/unit/check_siw_link \
	tests/unit/check_siw_memory \
	tests/unit/check_mpa_pdata \
	tests/unit/check_siw_peer \
	tests/unit/check_siw_raw \
	tests/unit/check_siw_route \
	tests/unit/check_siw_time
tests_unit_check_siw_memory_LDFLAGS = $(AM_LDFLAGS) $(OOM_WRAP) $(SOCKETS_WRAP)
