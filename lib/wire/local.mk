noinst_LTLIBRARIES += lib/libwire.la
lib_libwire_la_CFLAGS = $(AM_CFLAGS) -Wconversion
lib_libwire_la_LIBADD = lib/libbase.la $(ISAL_LIBS)
lib_libwire_la_SOURCES = \
	lib/wire/clc.c lib/wire/clc.h \
	lib/wire/clc_diag.c lib/wire/clc_diag.h \
	lib/wire/codec.h \
	lib/wire/llc.c lib/wire/llc.h \
	lib/wire/cdc.c lib/wire/cdc.h \
	lib/wire/tcpopt.c lib/wire/tcpopt.h \
	lib/wire/describe.c lib/wire/describe.h \
	lib/wire/mpa.c lib/wire/mpa.h \
	lib/wire/ddp.c lib/wire/ddp.h \
	lib/wire/rdmap.c lib/wire/rdmap.h

if HAVE_CHECK
check_UNIT += \
	tests/unit/check_clc \
	tests/unit/check_llc \
	tests/unit/check_cdc \
	tests/unit/check_tcpopt \
	tests/unit/check_describe \
	tests/unit/check_mpa \
	tests/unit/check_ddp \
	tests/unit/check_rdmap
EXTRA_DIST += tests/unit/vectors/smc.txt tests/unit/vectors/iwarp.txt
tests_unit_check_clc_SOURCES = tests/unit/check_clc.c tests/unit/unit.h tests/unit/hex.h tests/unit/vectors.h
tests_unit_check_clc_CFLAGS = $(UNIT_CFLAGS)
tests_unit_check_clc_LDADD = lib/libwire.la $(UNIT_LIBS)
tests_unit_check_llc_SOURCES = tests/unit/check_llc.c tests/unit/unit.h tests/unit/hex.h tests/unit/vectors.h
tests_unit_check_llc_CFLAGS = $(UNIT_CFLAGS)
tests_unit_check_llc_LDADD = lib/libwire.la $(UNIT_LIBS)
tests_unit_check_cdc_SOURCES = tests/unit/check_cdc.c tests/unit/unit.h tests/unit/hex.h tests/unit/vectors.h
tests_unit_check_cdc_CFLAGS = $(UNIT_CFLAGS)
tests_unit_check_cdc_LDADD = lib/libwire.la $(UNIT_LIBS)
tests_unit_check_tcpopt_SOURCES = tests/unit/check_tcpopt.c tests/unit/unit.h tests/unit/hex.h tests/unit/vectors.h
tests_unit_check_tcpopt_CFLAGS = $(UNIT_CFLAGS)
tests_unit_check_tcpopt_LDADD = lib/libwire.la $(UNIT_LIBS)
tests_unit_check_describe_SOURCES = tests/unit/check_describe.c tests/unit/unit.h tests/unit/hex.h tests/unit/vectors.h
tests_unit_check_describe_CFLAGS = $(UNIT_CFLAGS)
tests_unit_check_describe_LDADD = lib/libwire.la $(UNIT_LIBS)
tests_unit_check_mpa_SOURCES = tests/unit/check_mpa.c tests/unit/unit.h tests/unit/hex.h tests/unit/vectors.h
tests_unit_check_mpa_CFLAGS = $(UNIT_CFLAGS)
tests_unit_check_mpa_LDADD = lib/libwire.la $(UNIT_LIBS)
tests_unit_check_ddp_SOURCES = tests/unit/check_ddp.c tests/unit/unit.h tests/unit/hex.h tests/unit/vectors.h
tests_unit_check_ddp_CFLAGS = $(UNIT_CFLAGS)
tests_unit_check_ddp_LDADD = lib/libwire.la $(UNIT_LIBS)
tests_unit_check_rdmap_SOURCES = tests/unit/check_rdmap.c tests/unit/unit.h tests/unit/hex.h tests/unit/vectors.h
tests_unit_check_rdmap_CFLAGS = $(UNIT_CFLAGS)
tests_unit_check_rdmap_LDADD = lib/libwire.la $(UNIT_LIBS)
endif
