# What services count and remember of their connections.
daemon_libsmcrd_a_SOURCES += \
	daemon/account/admission.c daemon/account/admission.h \
	daemon/account/dest_tickets.c daemon/account/dest_tickets.h \
	daemon/account/fallback_period.c daemon/account/fallback_period.h \
	daemon/account/far_end.c daemon/account/far_end.h \
	daemon/account/handshake_rate.c daemon/account/handshake_rate.h \
	daemon/account/history.c daemon/account/history.h \
	daemon/account/outage.c daemon/account/outage.h \
	daemon/account/peer_name.c daemon/account/peer_name.h \
	daemon/account/service_stats.c daemon/account/service_stats.h \
	daemon/account/source_count.c daemon/account/source_count.h

check_UNIT += \
	tests/unit/daemon/account/check_source_count \
	tests/unit/daemon/account/check_admission \
	tests/unit/daemon/account/check_far_end \
	tests/unit/daemon/account/check_dest_tickets \
	tests/unit/daemon/account/check_handshake_rate \
	tests/unit/daemon/account/check_history \
	tests/unit/daemon/account/check_outage \
	tests/unit/daemon/account/check_service_stats \
	tests/unit/daemon/account/check_fallback_period \
	tests/unit/daemon/account/check_peer_name
tests_unit_daemon_account_check_service_stats_SOURCES = tests/unit/daemon/account/check_service_stats.c $(FAKE_ENGINE) $(FAKE_VERBS)
tests_unit_daemon_account_check_history_SOURCES = tests/unit/daemon/account/check_history.c $(FAKE_ENGINE) $(FAKE_VERBS)
