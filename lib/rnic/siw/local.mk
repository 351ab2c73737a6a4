# Soft iWARP.
noinst_LTLIBRARIES += lib/libsiw.la
lib_libsiw_la_SOURCES = \
	lib/rnic/rnic.h \
	lib/rnic/siw/siw.c lib/rnic/siw/siw.h lib/rnic/siw/siw_int.h \
	lib/rnic/siw/siw_cm.c \
	lib/rnic/siw/siw_linger.c \
	lib/rnic/siw/siw_passive.c \
	lib/rnic/siw/siw_qp.c \
	lib/rnic/siw/siw_rx.c \
	lib/rnic/siw/siw_tx.c \
	lib/rnic/siw/siw_wr.c
lib_libsiw_la_LIBADD = lib/librnic.la lib/libiwarp.la

if HAVE_CHECK
SIW_TEST = tests/unit/siw_ends.h tests/unit/rnic_ends.h tests/unit/unit.h tests/poll_loop.h tests/rnic_stats.h
check_UNIT += \
	tests/unit/check_siw \
	tests/unit/check_siw_link \
	tests/unit/check_siw_memory \
	tests/unit/check_mpa_pdata \
	tests/unit/check_siw_peer \
	tests/unit/check_siw_raw \
	tests/unit/check_siw_route \
	tests/unit/check_siw_time
tests_unit_check_siw_SOURCES = tests/unit/check_siw.c $(SIW_TEST)
tests_unit_check_siw_CFLAGS = $(UNIT_CFLAGS)
tests_unit_check_siw_LDADD = lib/libsiw.la $(UNIT_LIBS)
tests_unit_check_siw_link_SOURCES = tests/unit/check_siw_link.c $(SIW_TEST)
tests_unit_check_siw_link_CFLAGS = $(UNIT_CFLAGS)
tests_unit_check_siw_link_LDADD = lib/libsiw.la $(UNIT_LIBS)
tests_unit_check_siw_memory_SOURCES = tests/unit/check_siw_memory.c tests/rnic_stats.h tests/unit/unit.h $(SWEEP) \
	tests/fuzz/sockets.c tests/fuzz/sockets.h tests/fuzz/fuzz.h
tests_unit_check_siw_memory_CFLAGS = $(UNIT_CFLAGS)
tests_unit_check_siw_memory_LDFLAGS = $(AM_LDFLAGS) $(OOM_WRAP) $(SOCKETS_WRAP)
tests_unit_check_siw_memory_LDADD = lib/libsiw.la $(UNIT_LIBS)
tests_unit_check_mpa_pdata_SOURCES = tests/unit/check_mpa_pdata.c tests/unit/unit.h tests/unit/hex.h
tests_unit_check_mpa_pdata_CFLAGS = $(UNIT_CFLAGS)
tests_unit_check_mpa_pdata_LDADD = lib/libsiw.la $(UNIT_LIBS)
tests_unit_check_siw_peer_SOURCES = tests/unit/check_siw_peer.c tests/unit/own_netns.h tests/unit/siw_raw_peer.h $(SIW_TEST)
tests_unit_check_siw_peer_CFLAGS = $(UNIT_CFLAGS)
tests_unit_check_siw_peer_LDADD = lib/libsiw.la $(UNIT_LIBS)
tests_unit_check_siw_raw_SOURCES = tests/unit/check_siw_raw.c tests/unit/siw_raw_peer.h $(SIW_TEST)
tests_unit_check_siw_raw_CFLAGS = $(UNIT_CFLAGS)
tests_unit_check_siw_raw_LDADD = lib/libsiw.la $(UNIT_LIBS)
tests_unit_check_siw_route_SOURCES = tests/unit/check_siw_route.c tests/unit/own_netns.h $(SIW_TEST)
tests_unit_check_siw_route_CFLAGS = $(UNIT_CFLAGS)
tests_unit_check_siw_route_LDADD = lib/libsiw.la $(UNIT_LIBS)
tests_unit_check_siw_time_SOURCES = tests/unit/check_siw_time.c $(SIW_TEST)
tests_unit_check_siw_time_CFLAGS = $(UNIT_CFLAGS)
tests_unit_check_siw_time_LDADD = lib/libsiw.la $(UNIT_LIBS)
endif
