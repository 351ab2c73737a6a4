noinst_LIBRARIES += lib/libiwarp.a
lib_libiwarp_a_SOURCES = \
	lib/iwarp/ddp_session.c lib/iwarp/ddp_session.h \
	lib/iwarp/depths.c lib/iwarp/depths.h \
	lib/iwarp/negotiate.c lib/iwarp/negotiate.h \
	lib/iwarp/fpdu.c lib/iwarp/fpdu.h \
	lib/iwarp/txq.c lib/iwarp/txq.h \
	lib/iwarp/segq.c lib/iwarp/segq.h lib/iwarp/copyring.h \
	lib/iwarp/stag.c lib/iwarp/stag.h \
	lib/iwarp/stream.c lib/iwarp/stream.h \
	lib/iwarp/ssn.c lib/iwarp/ssn.h

check_UNIT += \
	tests/unit/lib/iwarp/check_ddp_session \
	tests/unit/lib/iwarp/check_depths \
	tests/unit/lib/iwarp/check_negotiate \
	tests/unit/lib/iwarp/check_fpdu \
	tests/unit/lib/iwarp/check_txq \
	tests/unit/lib/iwarp/check_segq \
	tests/unit/lib/iwarp/check_stag \
	tests/unit/lib/iwarp/check_stream \
	tests/unit/lib/iwarp/check_ssn
tests_unit_lib_iwarp_check_segq_LDFLAGS = $(AM_LDFLAGS) $(OOM_WRAP)
tests_unit_lib_iwarp_check_ssn_LDFLAGS = $(AM_LDFLAGS) $(OOM_WRAP)
