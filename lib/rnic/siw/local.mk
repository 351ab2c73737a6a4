# Soft iWARP.
noinst_LIBRARIES += lib/libsiw.a
lib_libsiw_a_SOURCES = \
	lib/rnic/rnic.h \
	lib/rnic/siw/siw.c lib/rnic/siw/siw.h lib/rnic/siw/siw_int.h lib/rnic/siw/siw_llp.h \
	lib/rnic/siw/siw_cm.c \
	lib/rnic/siw/siw_linger.c \
	lib/rnic/siw/siw_qp.c \
	lib/rnic/siw/siw_stream.c \
	lib/rnic/siw/sctp/siw_sctp.c lib/rnic/siw/sctp/siw_sctp.h \
	lib/rnic/siw/sctp/siw_sctp_api.h \
	lib/rnic/siw/sctp/siw_sctp_kernel.c \
	lib/rnic/siw/sctp/siw_sctp_session.c \
	lib/rnic/siw/tcp/siw_tcp.c lib/rnic/siw/tcp/siw_tcp.h \
	lib/rnic/siw/tcp/siw_tcp_cm.c \
	lib/rnic/siw/tcp/siw_tcp_linger.c \
	lib/rnic/siw/tcp/siw_tcp_rx.c \
	lib/rnic/siw/tcp/siw_wire.c
# SCTP's stack, where there is one.
if HAVE_USRSCTP
lib_libsiw_a_SOURCES += \
	lib/rnic/siw/sctp/siw_sctp_clock.c \
	lib/rnic/siw/sctp/siw_sctp_udp.c lib/rnic/siw/sctp/siw_sctp_udp.h \
	lib/rnic/siw/sctp/siw_sctp_udp_tx.c lib/rnic/siw/sctp/siw_sctp_udp_tx.h \
	lib/rnic/siw/sctp/siw_sctp_user.c
else
lib_libsiw_a_SOURCES += lib/rnic/siw/sctp/siw_sctp_none.c
endif
lib_libsiw_a_CFLAGS = $(AM_CFLAGS) $(USRSCTP_CFLAGS)
SIW = lib/libsiw.a $(TLS_LIBS) $(USRSCTP_LIBS)

check_UNIT += \
	tests/unit/lib/rnic/siw/check_siw \
	tests/unit/lib/rnic/siw/check_siw_link \
	tests/unit/lib/rnic/siw/check_siw_linger \
	tests/unit/lib/rnic/siw/check_siw_memory \
	tests/unit/lib/rnic/siw/check_mpa_pdata \
	tests/unit/lib/rnic/siw/check_siw_peer \
	tests/unit/lib/rnic/siw/check_siw_raw \
	tests/unit/lib/rnic/siw/check_siw_route \
	tests/unit/lib/rnic/siw/check_siw_sctp_kernel \
	tests/unit/lib/rnic/siw/check_siw_sctp_none \
	tests/unit/lib/rnic/siw/check_siw_time
if HAVE_OPENSSL
check_UNIT += tests/unit/lib/rnic/siw/check_siw_tls tests/unit/lib/rnic/siw/check_siw_tls_path
endif
if HAVE_USRSCTP
check_UNIT += \
	tests/unit/lib/rnic/siw/check_siw_lossy \
	tests/unit/lib/rnic/siw/check_siw_sctp \
	tests/unit/lib/rnic/siw/check_siw_sctp_udp_tx
tests_unit_lib_rnic_siw_check_siw_lossy_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=sendmsg
tests_unit_lib_rnic_siw_check_siw_sctp_udp_tx_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=sendmsg -Wl,--wrap=setsockopt
else
EXTRA_DIST += tests/unit/lib/rnic/siw/check_siw_lossy.c tests/unit/lib/rnic/siw/check_siw_sctp.c tests/unit/lib/rnic/siw/check_siw_sctp_udp_tx.c
endif
# Another build than this one, without libusrsctp.
tests_unit_lib_rnic_siw_check_siw_sctp_none_SOURCES = tests/unit/lib/rnic/siw/check_siw_sctp_none.c lib/rnic/siw/sctp/siw_sctp_none.c
tests_unit_lib_rnic_siw_check_siw_memory_LDFLAGS = $(AM_LDFLAGS) $(OOM_WRAP) $(SOCKETS_WRAP)
