# A leg: one socket of a session, connecting, CLC bytes, PROXY headers.
daemon_libsmcrd_a_SOURCES += \
	daemon/leg/acks.c daemon/leg/acks.h \
	daemon/leg/circle.c daemon/leg/circle.h \
	daemon/leg/clc_stream.c daemon/leg/clc_stream.h \
	daemon/leg/leg.c daemon/leg/leg.h \
	daemon/leg/leg_tls.c \
	daemon/leg/peer_mode.c daemon/leg/peer_mode.h \
	daemon/leg/proxy_header.c daemon/leg/proxy_header.h

check_UNIT += \
	tests/unit/daemon/leg/check_leg \
	tests/unit/daemon/leg/check_proxy_header \
	tests/unit/daemon/leg/check_peer_mode
