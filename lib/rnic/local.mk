# Devices: each its own library; the sim device is for tests only.
check_LTLIBRARIES += lib/libsim.la
lib_libsim_la_SOURCES = \
	lib/rnic/rnic.h \
	lib/rnic/sim.c lib/rnic/sim.h lib/rnic/sim_int.h \
	lib/rnic/sim_fabric.c lib/rnic/sim_forge.c

if HAVE_CHECK
check_UNIT += \
	tests/unit/check_sim
tests_unit_check_sim_SOURCES = tests/unit/check_sim.c tests/unit/unit.h
tests_unit_check_sim_CFLAGS = $(UNIT_CFLAGS)
tests_unit_check_sim_LDADD = lib/libsim.la lib/libbase.la $(UNIT_LIBS)
endif

# What devices share.
noinst_LTLIBRARIES += lib/librnic.la
lib_librnic_la_SOURCES = \
	lib/rnic/route.c lib/rnic/route.h \
	lib/rnic/siw_pdata.c lib/rnic/siw_pdata.h \
	lib/rnic/wr.c lib/rnic/wr.h

# The verbs device. Its tests do not link libibverbs, but one of their own making.
if HAVE_IBVERBS
VRNIC = lib/libvrnic.la $(IBVERBS_LIBS) $(RDMACM_LIBS)
noinst_LTLIBRARIES += lib/libvrnic.la
lib_libvrnic_la_SOURCES = \
	lib/rnic/rnic.h \
	lib/rnic/verbs.c lib/rnic/verbs.h lib/rnic/verbs_int.h \
	lib/rnic/verbs_async.c \
	lib/rnic/verbs_cm.c \
	lib/rnic/verbs_confirm.c \
	lib/rnic/verbs_cq.c \
	lib/rnic/verbs_iwarp.c lib/rnic/verbs_iwarp.h \
	lib/rnic/verbs_iwarp_passive.c \
	lib/rnic/verbs_list.c \
	lib/rnic/verbs_qp.c \
	lib/rnic/verbs_roce.c \
	lib/rnic/verbs_wr.c
lib_libvrnic_la_CFLAGS = $(AM_CFLAGS) $(IBVERBS_CFLAGS) $(RDMACM_CFLAGS) -pthread
lib_libvrnic_la_LIBADD = lib/librnic.la lib/libbase.la

if HAVE_CHECK
FAKE_IBVERBS = \
	tests/unit/fake_ibverbs.c tests/unit/fake_ibverbs.h \
	tests/unit/fake_rdmacm.c tests/unit/fake_rdmacm.h
VERBS_TEST = $(FAKE_IBVERBS) tests/unit/verbs_ends.h tests/unit/rnic_ends.h tests/unit/unit.h tests/poll_loop.h
VERBS_TEST_CFLAGS = $(UNIT_CFLAGS) $(IBVERBS_CFLAGS) $(RDMACM_CFLAGS) -pthread
check_UNIT += \
	tests/unit/check_verbs \
	tests/unit/check_verbs_end \
	tests/unit/check_verbs_errors \
	tests/unit/check_verbs_events \
	tests/unit/check_verbs_iwarp \
	tests/unit/check_verbs_list \
	tests/unit/check_verbs_memory
tests_unit_check_verbs_SOURCES = tests/unit/check_verbs.c $(VERBS_TEST)
tests_unit_check_verbs_CFLAGS = $(VERBS_TEST_CFLAGS)
tests_unit_check_verbs_LDADD = lib/libvrnic.la $(UNIT_LIBS)
tests_unit_check_verbs_events_SOURCES = tests/unit/check_verbs_events.c $(VERBS_TEST)
tests_unit_check_verbs_events_CFLAGS = $(VERBS_TEST_CFLAGS)
tests_unit_check_verbs_events_LDADD = lib/libvrnic.la $(UNIT_LIBS)
tests_unit_check_verbs_end_SOURCES = tests/unit/check_verbs_end.c $(VERBS_TEST)
tests_unit_check_verbs_end_CFLAGS = $(VERBS_TEST_CFLAGS)
tests_unit_check_verbs_end_LDADD = lib/libvrnic.la $(UNIT_LIBS)
tests_unit_check_verbs_iwarp_SOURCES = tests/unit/check_verbs_iwarp.c $(VERBS_TEST)
tests_unit_check_verbs_iwarp_CFLAGS = $(VERBS_TEST_CFLAGS)
tests_unit_check_verbs_iwarp_LDADD = lib/libvrnic.la $(UNIT_LIBS)
tests_unit_check_verbs_memory_SOURCES = tests/unit/check_verbs_memory.c $(SWEEP) $(VERBS_TEST)
tests_unit_check_verbs_memory_CFLAGS = $(VERBS_TEST_CFLAGS)
tests_unit_check_verbs_memory_LDFLAGS = $(AM_LDFLAGS) $(OOM_WRAP)
tests_unit_check_verbs_memory_LDADD = lib/libvrnic.la $(UNIT_LIBS)
tests_unit_check_verbs_list_SOURCES = tests/unit/check_verbs_list.c $(VERBS_TEST)
tests_unit_check_verbs_list_CFLAGS = $(VERBS_TEST_CFLAGS)
tests_unit_check_verbs_list_LDADD = lib/libvrnic.la $(UNIT_LIBS)
tests_unit_check_verbs_errors_SOURCES = tests/unit/check_verbs_errors.c $(VERBS_TEST)
tests_unit_check_verbs_errors_CFLAGS = $(VERBS_TEST_CFLAGS)
tests_unit_check_verbs_errors_LDADD = lib/libvrnic.la $(UNIT_LIBS)
endif
else
VRNIC = lib/libverbs_none.la
endif
noinst_LTLIBRARIES += lib/libverbs_none.la
lib_libverbs_none_la_SOURCES = lib/rnic/rnic.h lib/rnic/verbs.h lib/rnic/verbs_none.c

noinst_LTLIBRARIES += lib/libsiw.la
lib_libsiw_la_SOURCES = \
	lib/rnic/rnic.h \
	lib/rnic/siw.c lib/rnic/siw.h lib/rnic/siw_int.h \
	lib/rnic/siw_active.c \
	lib/rnic/siw_cm.c \
	lib/rnic/siw_linger.c \
	lib/rnic/siw_passive.c \
	lib/rnic/siw_qp.c \
	lib/rnic/siw_rest.c \
	lib/rnic/siw_rx.c \
	lib/rnic/siw_tx.c \
	lib/rnic/siw_wr.c
lib_libsiw_la_LIBADD = lib/librnic.la lib/libiwarp.la

if HAVE_CHECK
check_UNIT += \
	tests/unit/check_siw \
	tests/unit/check_siw_link \
	tests/unit/check_siw_memory \
	tests/unit/check_siw_pdata \
	tests/unit/check_siw_peer \
	tests/unit/check_siw_raw \
	tests/unit/check_siw_route \
	tests/unit/check_siw_time
tests_unit_check_siw_SOURCES = tests/unit/check_siw.c tests/unit/siw_ends.h tests/unit/rnic_ends.h tests/unit/unit.h tests/poll_loop.h
tests_unit_check_siw_CFLAGS = $(UNIT_CFLAGS)
tests_unit_check_siw_LDADD = lib/libsiw.la $(UNIT_LIBS)
tests_unit_check_siw_link_SOURCES = tests/unit/check_siw_link.c tests/unit/siw_ends.h tests/unit/rnic_ends.h tests/unit/unit.h tests/poll_loop.h
tests_unit_check_siw_link_CFLAGS = $(UNIT_CFLAGS)
tests_unit_check_siw_link_LDADD = lib/libsiw.la $(UNIT_LIBS)
tests_unit_check_siw_memory_SOURCES = tests/unit/check_siw_memory.c tests/unit/unit.h $(SWEEP) \
	tests/fuzz/sockets.c tests/fuzz/sockets.h tests/fuzz/fuzz.h
tests_unit_check_siw_memory_CFLAGS = $(UNIT_CFLAGS)
tests_unit_check_siw_memory_LDFLAGS = $(AM_LDFLAGS) $(OOM_WRAP) $(SOCKETS_WRAP)
tests_unit_check_siw_memory_LDADD = lib/libsiw.la $(UNIT_LIBS)
tests_unit_check_siw_pdata_SOURCES = tests/unit/check_siw_pdata.c tests/unit/unit.h tests/unit/hex.h
tests_unit_check_siw_pdata_CFLAGS = $(UNIT_CFLAGS)
tests_unit_check_siw_pdata_LDADD = lib/libsiw.la $(UNIT_LIBS)
tests_unit_check_siw_peer_SOURCES = tests/unit/check_siw_peer.c tests/unit/own_netns.h tests/unit/siw_raw_peer.h tests/unit/siw_ends.h tests/unit/rnic_ends.h tests/unit/unit.h tests/poll_loop.h
tests_unit_check_siw_peer_CFLAGS = $(UNIT_CFLAGS)
tests_unit_check_siw_peer_LDADD = lib/libsiw.la $(UNIT_LIBS)
tests_unit_check_siw_raw_SOURCES = tests/unit/check_siw_raw.c tests/unit/siw_raw_peer.h tests/unit/siw_ends.h tests/unit/rnic_ends.h tests/unit/unit.h tests/poll_loop.h
tests_unit_check_siw_raw_CFLAGS = $(UNIT_CFLAGS)
tests_unit_check_siw_raw_LDADD = lib/libsiw.la $(UNIT_LIBS)
tests_unit_check_siw_route_SOURCES = tests/unit/check_siw_route.c tests/unit/own_netns.h tests/unit/siw_ends.h tests/unit/rnic_ends.h tests/unit/unit.h tests/poll_loop.h
tests_unit_check_siw_route_CFLAGS = $(UNIT_CFLAGS)
tests_unit_check_siw_route_LDADD = lib/libsiw.la $(UNIT_LIBS)
tests_unit_check_siw_time_SOURCES = tests/unit/check_siw_time.c tests/unit/siw_ends.h tests/unit/rnic_ends.h tests/unit/unit.h tests/poll_loop.h
tests_unit_check_siw_time_CFLAGS = $(UNIT_CFLAGS)
tests_unit_check_siw_time_LDADD = lib/libsiw.la $(UNIT_LIBS)
endif
