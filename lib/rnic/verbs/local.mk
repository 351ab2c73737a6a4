# The verbs device. Its tests do not link libibverbs, but one of their own making.
if HAVE_IBVERBS
VRNIC = lib/libvrnic.a $(IBVERBS_LIBS) $(RDMACM_LIBS)
noinst_LIBRARIES += lib/libvrnic.a
lib_libvrnic_a_SOURCES = \
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
lib_libvrnic_a_CFLAGS = $(AM_CFLAGS) $(IBVERBS_CFLAGS) $(RDMACM_CFLAGS) -pthread

NO_IBVERBS = lib/libvrnic.a lib/librnic.a lib/libbase.a tests/libwrap.a $(CHECK_LIBS)
check_UNIT += \
	tests/unit/lib/rnic/verbs/check_verbs \
	tests/unit/lib/rnic/verbs/check_verbs_end \
	tests/unit/lib/rnic/verbs/check_verbs_errors \
	tests/unit/lib/rnic/verbs/check_verbs_events \
	tests/unit/lib/rnic/verbs/check_verbs_iwarp \
	tests/unit/lib/rnic/verbs/check_verbs_list \
	tests/unit/lib/rnic/verbs/check_verbs_memory
tests_unit_lib_rnic_verbs_check_verbs_SOURCES = tests/unit/lib/rnic/verbs/check_verbs.c $(FAKE_IBVERBS)
tests_unit_lib_rnic_verbs_check_verbs_LDADD = $(NO_IBVERBS)
tests_unit_lib_rnic_verbs_check_verbs_end_SOURCES = tests/unit/lib/rnic/verbs/check_verbs_end.c $(FAKE_IBVERBS)
tests_unit_lib_rnic_verbs_check_verbs_end_LDADD = $(NO_IBVERBS)
tests_unit_lib_rnic_verbs_check_verbs_errors_SOURCES = tests/unit/lib/rnic/verbs/check_verbs_errors.c $(FAKE_IBVERBS)
tests_unit_lib_rnic_verbs_check_verbs_errors_LDADD = $(NO_IBVERBS)
tests_unit_lib_rnic_verbs_check_verbs_events_SOURCES = tests/unit/lib/rnic/verbs/check_verbs_events.c $(FAKE_IBVERBS)
tests_unit_lib_rnic_verbs_check_verbs_events_LDADD = $(NO_IBVERBS)
tests_unit_lib_rnic_verbs_check_verbs_iwarp_SOURCES = tests/unit/lib/rnic/verbs/check_verbs_iwarp.c $(FAKE_IBVERBS)
tests_unit_lib_rnic_verbs_check_verbs_iwarp_LDADD = $(NO_IBVERBS)
tests_unit_lib_rnic_verbs_check_verbs_list_SOURCES = tests/unit/lib/rnic/verbs/check_verbs_list.c $(FAKE_IBVERBS)
tests_unit_lib_rnic_verbs_check_verbs_list_LDADD = $(NO_IBVERBS)
tests_unit_lib_rnic_verbs_check_verbs_memory_SOURCES = tests/unit/lib/rnic/verbs/check_verbs_memory.c $(FAKE_IBVERBS)
tests_unit_lib_rnic_verbs_check_verbs_memory_LDADD = $(NO_IBVERBS)
tests_unit_lib_rnic_verbs_check_verbs_memory_LDFLAGS = $(AM_LDFLAGS) $(OOM_WRAP)
else
VRNIC = lib/libverbs_none.a
endif
noinst_LIBRARIES += lib/libverbs_none.a
lib_libverbs_none_a_SOURCES = lib/rnic/rnic.h lib/rnic/verbs/verbs.h lib/rnic/verbs/verbs_none.c
