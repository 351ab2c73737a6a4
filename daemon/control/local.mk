# The control socket and what it reports.
daemon_libsmcrd_a_SOURCES += \
	daemon/confine/confine_words.c \
	daemon/loop/mailbox.c daemon/loop/mailbox.h \
	daemon/session/end_cause.c daemon/session/end_cause.h \
	daemon/event/event_kinds.c daemon/event/event_kinds.h \
	daemon/event/event_history.c daemon/event/event_history.h \
	daemon/event/accept_pause.c daemon/event/accept_pause.h daemon/event/lasting.h \
	daemon/event/journal.c daemon/event/journal.h \
	daemon/control/outbuf.c daemon/control/outbuf.h \
	daemon/control/json_writer.c daemon/control/json_writer.h \
	daemon/control/control_request.c daemon/control/control_request.h \
	daemon/control/report.c daemon/control/report.h \
	daemon/control/field.c daemon/control/field.h \
	daemon/control/report_fields.c daemon/control/report_rows.h \
	daemon/control/snapshot.c daemon/control/snapshot.h \
	daemon/control/report_status.c \
	daemon/control/report_stats.c \
	daemon/control/report_history.c \
	daemon/control/report_lists.c \
	daemon/control/report_service.c \
	daemon/control/report_parts.c \
	daemon/control/control_client.c daemon/control/control_parts.h \
	daemon/control/control_command.c daemon/control/control_check.c \
	daemon/control/control_answer.c daemon/control/control_place.c daemon/control/control_port.c \
	daemon/control/control_rights.c \
	daemon/control/control_events.c daemon/control/control_trace.c \
	daemon/control/control_handover.c \
	daemon/control/handover_msg.c daemon/control/handover_msg.h \
	daemon/control/control.c daemon/control/control.h

check_UNIT += \
	tests/unit/daemon/event/check_event_kinds \
	tests/unit/daemon/event/check_accept_pause \
	tests/unit/daemon/event/check_event_history \
	tests/unit/daemon/control/check_json_writer \
	tests/unit/daemon/control/check_field \
	tests/unit/daemon/control/check_snapshot \
	tests/unit/daemon/control/check_json_fields \
	tests/unit/daemon/control/check_control_request \
	tests/unit/daemon/control/check_report \
	tests/unit/daemon/control/check_control \
	tests/unit/daemon/control/check_control_handover \
	tests/unit/daemon/control/check_handover_msg
tests_unit_daemon_control_check_report_SOURCES = tests/unit/daemon/control/check_report.c $(FAKE_WORKER) $(FAKE_LOOP)
tests_unit_daemon_control_check_control_SOURCES = tests/unit/daemon/control/check_control.c $(FAKE_WORKER) $(FAKE_LOOP)
tests_unit_daemon_control_check_control_handover_SOURCES = tests/unit/daemon/control/check_control_handover.c $(FAKE_WORKER) $(FAKE_LOOP)
EXTRA_DIST += tests/unit/golden
