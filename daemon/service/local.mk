# Services: listening, accepting, the sessions of a worker.
daemon_libsmcrd_a_SOURCES += \
	daemon/service/accept_balance.c daemon/service/accept_balance.h \
	daemon/service/arrival.c daemon/service/arrival.h \
	daemon/service/listener.c \
	daemon/service/service.c daemon/service/service.h \
	daemon/service/session_pool.c daemon/service/session_pool.h

check_UNIT += \
	tests/unit/daemon/service/check_accept_balance
