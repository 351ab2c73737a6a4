# Sockets: tuning, listening, ports, the TCP option of SMC-R.
daemon_libsmcrd_a_SOURCES += \
	daemon/net/listen_socket.c daemon/net/listen_socket.h \
	daemon/net/net.c daemon/net/net.h \
	daemon/net/tcp_option.c daemon/net/tcp_option.h \
	daemon/net/tcp_option_bpf.c daemon/net/tcp_option_bpf.h \
	daemon/net/worker_port.c daemon/net/worker_port.h

check_UNIT += \
	tests/unit/daemon/net/check_tcp_option \
	tests/unit/daemon/net/check_net \
	tests/unit/daemon/net/check_listen_socket \
	tests/unit/daemon/net/check_worker_port
