# TLS between gateways; a build without OpenSSL has the calls only.
noinst_LIBRARIES += lib/libtls.a
lib_libtls_a_SOURCES = lib/tls/tls.h lib/tls/tls_names.c
lib_libtls_a_CFLAGS = $(AM_CFLAGS) $(OPENSSL_CFLAGS)
TLS_LIBS = lib/libtls.a $(OPENSSL_LIBS)
if HAVE_OPENSSL
lib_libtls_a_SOURCES += \
	lib/tls/tls_assoc.c \
	lib/tls/tls_blame.c \
	lib/tls/tls_ctx.c lib/tls/tls_int.h \
	lib/tls/tls_io.c \
	lib/tls/tls_link.c \
	lib/tls/tls_proof.c \
	lib/tls/tls_psk.c \
	lib/tls/tls_who.c
else
lib_libtls_a_SOURCES += lib/tls/tls_none.c
endif

check_UNIT += tests/unit/lib/tls/check_tls_names
if HAVE_OPENSSL
check_UNIT += tests/unit/lib/tls/check_tls_assoc tests/unit/lib/tls/check_tls_io tests/unit/lib/tls/check_tls_link tests/unit/lib/tls/check_tls_who
endif
