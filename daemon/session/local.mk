# A connection through the daemon: its three legs, its service.
daemon_libsmcrd_la_SOURCES += \
	daemon/session/session_pool.c daemon/session/session_pool.h daemon/session/pool_state.h \
	daemon/session/bufpool.c daemon/session/bufpool.h \
	daemon/session/elem_need.h \
	daemon/session/figures.c daemon/session/figures.h \
	daemon/session/settings.c \
	daemon/session/service.c daemon/session/service.h daemon/session/service_state.h \
	daemon/session/listener.c \
	daemon/session/colleagues.c daemon/session/colleagues.h \
	daemon/session/acks.c daemon/session/acks.h \
	daemon/session/sources.c daemon/session/sources.h \
	daemon/session/admission.c daemon/session/admission.h \
	daemon/session/endpoints.c daemon/session/endpoints.h \
	daemon/session/targets.c daemon/session/targets.h \
	daemon/session/retry.c daemon/session/retry.h \
	daemon/session/outage.c daemon/session/outage.h \
	daemon/session/spells.c daemon/session/spells.h \
	daemon/session/circle.c daemon/session/circle.h \
	daemon/session/far_name.c daemon/session/far_name.h \
	daemon/session/session.c daemon/session/session.h \
	daemon/session/session_state.c \
	daemon/session/session_setup.c \
	daemon/session/session_path.c \
	daemon/session/session_dial.c \
	daemon/session/session_meet.c \
	daemon/session/peer_rule.c daemon/session/peer_rule.h \
	daemon/session/session_pump.c \
	daemon/session/session_measure.c \
	daemon/session/measure.c daemon/session/measure.h \
	daemon/session/legs.c daemon/session/legs.h \
	daemon/session/leg.c daemon/session/leg.h \
	daemon/session/middle.c daemon/session/middle.h \
	daemon/session/proxy.c daemon/session/proxy.h \
	daemon/session/probe.c daemon/session/probe.h \
	daemon/session/check_result.c daemon/session/check_result.h

check_UNIT += \
	tests/unit/check_leg \
	tests/unit/check_proxy \
	tests/unit/check_legs \
	tests/unit/check_legs_real \
	tests/unit/check_peer_rule \
	tests/unit/check_meet \
	tests/unit/check_sources \
	tests/unit/check_admission \
	tests/unit/check_colleagues \
	tests/unit/check_measure \
	tests/unit/check_endpoints \
	tests/unit/check_targets \
	tests/unit/check_outage \
	tests/unit/check_check_result \
	tests/unit/check_figures \
	tests/unit/check_spells \
	tests/unit/check_far_name \
	tests/unit/check_session_state \
	tests/unit/check_session
tests_unit_check_legs_SOURCES = tests/unit/check_legs.c $(FAKE_ENGINE) $(FAKE_VERBS)
tests_unit_check_figures_SOURCES = tests/unit/check_figures.c $(FAKE_ENGINE) $(FAKE_VERBS)
tests_unit_check_session_state_SOURCES = tests/unit/check_session_state.c $(FAKE_ENGINE) $(FAKE_VERBS)
tests_unit_check_session_SOURCES = tests/unit/check_session.c $(FAKE_ENGINE) $(FAKE_VERBS)
# check_legs with the real engine and device.
tests_unit_check_legs_real_SOURCES = tests/unit/check_legs.c
tests_unit_check_legs_real_CPPFLAGS = $(AM_CPPFLAGS) -DGATEWAY_REAL
