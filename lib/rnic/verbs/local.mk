# The verbs device. Its tests do not link libibverbs, but one of their own making.
if HAVE_IBVERBS
VRNIC = lib/libvrnic.la $(IBVERBS_LIBS) $(RDMACM_LIBS)
noinst_LTLIBRARIES += lib/libvrnic.la
lib_libvrnic_la_SOURCES = \
	lib/rnic/rnic.h \
	lib/rnic/verbs/verbs.c lib/rnic/verbs/verbs.h lib/rnic/verbs/verbs_int.h \
	lib/rnic/verbs/verbs_async.c \
	lib/rnic/verbs/verbs_cm.c \
	lib/rnic/verbs/verbs_fence.c \
	lib/rnic/verbs/verbs_cq.c \
	lib/rnic/verbs/verbs_iwarp.c lib/rnic/verbs/verbs_iwarp.h \
	lib/rnic/verbs/verbs_iwarp_passive.c \
	lib/rnic/verbs/verbs_list.c \
	lib/rnic/verbs/verbs_qp.c \
	lib/rnic/verbs/verbs_roce.c \
	lib/rnic/verbs/verbs_wr.c
lib_libvrnic_la_CFLAGS = $(AM_CFLAGS) $(IBVERBS_CFLAGS) $(RDMACM_CFLAGS) -pthread
lib_libvrnic_la_LIBADD = lib/librnic.la lib/libbase.la

if HAVE_CHECK
FAKE_IBVERBS = \
	tests/unit/fake_ibverbs.c tests/unit/fake_ibverbs.h \
	tests/unit/fake_rdmacm.c tests/unit/fake_rdmacm.h
VERBS_TEST = $(FAKE_IBVERBS) tests/unit/verbs_ends.h tests/unit/rnic_ends.h tests/unit/unit.h tests/poll_loop.h tests/rnic_stats.h
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
lib_libverbs_none_la_SOURCES = lib/rnic/rnic.h lib/rnic/verbs/verbs.h lib/rnic/verbs/verbs_none.c
