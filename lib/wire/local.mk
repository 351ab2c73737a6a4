noinst_LIBRARIES += lib/libwire.a
lib_libwire_a_CFLAGS = $(AM_CFLAGS) -Wconversion
lib_libwire_a_SOURCES = \
	lib/wire/clc.c lib/wire/clc_tlvs.c lib/wire/clc_tlvs.h lib/wire/clc_text.c lib/wire/clc.h \
	lib/wire/codec.h \
	lib/wire/llc.c lib/wire/llc.h \
	lib/wire/cdc.c lib/wire/cdc.h \
	lib/wire/open.c lib/wire/open.h \
	lib/wire/tcpopt.c lib/wire/tcpopt.h \
	lib/wire/describe.c lib/wire/describe.h \
	lib/wire/enhanced.c lib/wire/enhanced.h \
	lib/wire/mpa.c lib/wire/mpa.h \
	lib/wire/sctp_ddp.c lib/wire/sctp_ddp.h \
	lib/wire/ddp.c lib/wire/ddp.h \
	lib/wire/rdmap.c lib/wire/rdmap.h

check_UNIT += \
	tests/unit/lib/wire/check_deviations \
	tests/unit/lib/wire/check_clc \
	tests/unit/lib/wire/check_clc_tlvs \
	tests/unit/lib/wire/check_clc_v2 \
	tests/unit/lib/wire/check_llc \
	tests/unit/lib/wire/check_llc_v2 \
	tests/unit/lib/wire/check_cdc \
	tests/unit/lib/wire/check_open \
	tests/unit/lib/wire/check_tcpopt \
	tests/unit/lib/wire/check_describe \
	tests/unit/lib/wire/check_enhanced \
	tests/unit/lib/wire/check_mpa \
	tests/unit/lib/wire/check_sctp_ddp \
	tests/unit/lib/wire/check_ddp \
	tests/unit/lib/wire/check_rdmap
EXTRA_DIST += tests/unit/vectors/smc.txt tests/unit/vectors/smc2.txt tests/unit/vectors/iwarp.txt
