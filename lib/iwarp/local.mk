noinst_LTLIBRARIES += lib/libiwarp.la
lib_libiwarp_la_SOURCES = \
	lib/iwarp/negotiate.c lib/iwarp/negotiate.h \
	lib/iwarp/fpdu.c lib/iwarp/fpdu.h \
	lib/iwarp/txq.c lib/iwarp/txq.h \
	lib/iwarp/stag.c lib/iwarp/stag.h \
	lib/iwarp/stream.c lib/iwarp/stream.h
lib_libiwarp_la_LIBADD = lib/libwire.la

if HAVE_CHECK
check_UNIT += \
	tests/unit/check_negotiate \
	tests/unit/check_fpdu \
	tests/unit/check_txq \
	tests/unit/check_stag \
	tests/unit/check_stream
tests_unit_check_negotiate_SOURCES = tests/unit/check_negotiate.c tests/unit/unit.h tests/unit/hex.h tests/unit/vectors.h
tests_unit_check_negotiate_CFLAGS = $(UNIT_CFLAGS)
tests_unit_check_negotiate_LDADD = lib/libiwarp.la $(UNIT_LIBS)
tests_unit_check_fpdu_SOURCES = tests/unit/check_fpdu.c tests/unit/unit.h tests/unit/hex.h tests/unit/vectors.h
tests_unit_check_fpdu_CFLAGS = $(UNIT_CFLAGS)
tests_unit_check_fpdu_LDADD = lib/libiwarp.la $(UNIT_LIBS)
tests_unit_check_txq_SOURCES = tests/unit/check_txq.c tests/unit/unit.h tests/unit/hex.h tests/unit/vectors.h
tests_unit_check_txq_CFLAGS = $(UNIT_CFLAGS)
tests_unit_check_txq_LDADD = lib/libiwarp.la $(UNIT_LIBS)
tests_unit_check_stag_SOURCES = tests/unit/check_stag.c tests/unit/unit.h tests/unit/hex.h tests/unit/vectors.h
tests_unit_check_stag_CFLAGS = $(UNIT_CFLAGS)
tests_unit_check_stag_LDADD = lib/libiwarp.la $(UNIT_LIBS)
tests_unit_check_stream_SOURCES = tests/unit/check_stream.c tests/unit/unit.h tests/unit/hex.h tests/unit/vectors.h
tests_unit_check_stream_CFLAGS = $(UNIT_CFLAGS)
tests_unit_check_stream_LDADD = lib/libiwarp.la $(UNIT_LIBS)
endif
