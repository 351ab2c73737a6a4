/* How the log speaks of groups, links and fallbacks: each kind of line as a whole. */
#include "daemon/log/log_text.h"

#include "unit.h"

#define ID "8847e2aa0a2bde65"
#define AT .peer = ID, .peer_id = ID, .remote = { [10] = 0xff, [11] = 0xff, [12] = 192, 0, 2, 1 }
#define AT_LINE "peer=192.0.2.1 peer_id=" ID
#define KEY .peer = "192.0.2.1:15432", .is_key = true, .peer_id = ID

static const struct {
	struct smcr_log entry;
	enum log_level level;
	const char *line;
} lines[] = {
	{ { .type = SMCR_LOG_GROUP_UP, .group_id = 1, AT, .text = "server" }, LOG_LVL_NOTICE,
	    "link group up: group=1 " AT_LINE " role=server" },
	{ { .type = SMCR_LOG_GROUP_DOWN, .group_id = 1, AT, .text = "no link left" }, LOG_LVL_NOTICE,
	    "link group down: group=1 " AT_LINE " reason=\"no link left\"" },
	{ { .type = SMCR_LOG_LINK_UP, .group_id = 1, .link = 2, AT, .host = "pg1", .device = "siw0", .text = "iwarp" },
	    LOG_LVL_NOTICE,
	    "link up: group=1 link=2 peer=192.0.2.1 host=pg1 peer_id=" ID " device=siw0 transport=iwarp" },
	{ { .type = SMCR_LOG_LINK_ENDED, .group_id = 1, .link = 2, AT, .text = "group deleted" }, LOG_LVL_NOTICE,
	    "link ended: group=1 link=2 " AT_LINE " reason=\"group deleted\"" },
	{ { .type = SMCR_LOG_LINK_DOWN, .group_id = 1, .link = 2, KEY, .text = "timed out" }, LOG_LVL_WARNING,
	    "link down: group=1 link=2 peer=192.0.2.1:15432 peer_id=" ID " reason=\"timed out\"" },
	{ { .type = SMCR_LOG_LINK_SILENT, .group_id = 1, .link = 2, KEY, .value = 900000, .text = "no answer" },
	    LOG_LVL_WARNING,
	    "link silent: group=1 link=2 peer=192.0.2.1:15432 peer_id=" ID " for_ms=900000 reason=\"no answer\"" },
	{ { .type = SMCR_LOG_LINK_ANSWERS, .group_id = 1, .link = 2, KEY, .value = 12000 }, LOG_LVL_NOTICE,
	    "link answers again: group=1 link=2 peer=192.0.2.1:15432 peer_id=" ID " after_ms=12000" },
	{ { .type = SMCR_LOG_HELD_OFF, .peer = "[2001:db8::1]:80", .is_key = true, .value = 2000, .text = "it failed" },
	    LOG_LVL_WARNING, "peer held off: peer=[2001:db8::1]:80 for_ms=2000 reason=\"it failed\"" },
	{ { .type = SMCR_LOG_HELD_OFF, AT, .value = 2000, .text = "it failed" }, LOG_LVL_WARNING,
	    "peer held off: " AT_LINE " for_ms=2000 reason=\"it failed\"" },
	{ { .type = SMCR_LOG_HOLD_OVER, AT, .value = 7000 }, LOG_LVL_NOTICE,
	    "peer no longer held off: " AT_LINE " after_ms=7000" },
	{ { .type = SMCR_LOG_HELD_LONGER, KEY, .value = 4000, .text = "it failed" }, LOG_LVL_INFO,
	    "peer still held off: peer=192.0.2.1:15432 for_ms=4000 reason=\"it failed\"" },
	{ { .type = SMCR_LOG_SCTP_SHUNNED, AT, .value = 1000, .text = "it failed" }, LOG_LVL_WARNING,
	    "SCTP to the peer held off: " AT_LINE " for_ms=1000 reason=\"it failed\"" },
	{ { .type = SMCR_LOG_REFUSED, .group_id = 3, .link = 1, AT, .text = "not near" }, LOG_LVL_WARNING,
	    "link of the peer refused: group=3 link=1 " AT_LINE " reason=\"not near\"" },
	{ { .type = SMCR_LOG_PROTOCOL, .group_id = 3, .link = 1, AT, .text = "malformed CDC message" }, LOG_LVL_WARNING,
	    "protocol violation by the peer: group=3 link=1 " AT_LINE " reason=\"malformed CDC message\"" },
	{ { .type = SMCR_LOG_DEVICE, .device = "rxe0", .text = "no memory" }, LOG_LVL_WARNING,
	    "device trouble: device=rxe0 reason=\"no memory\"" },
	{ { .type = SMCR_LOG_STATE, .group_id = 1, .link = 2, AT, .text = "link: active -> lost: port down" },
	    LOG_LVL_DEBUG, "state: group=1 link=2 peer=" ID " change=\"link: active -> lost: port down\"" },
	{ { .type = SMCR_LOG_OVERRUN, .value = 12 }, LOG_LVL_WARNING, "engine log lines lost: count=12" },
};

START_LOOP_TEST(each_kind_of_entry_has_what_belongs_to_it, 0, sizeof(lines) / sizeof(lines[0]))
{
	char buf[EVENT_TEXT_MAX];
	struct event e;

	if (log_text_event(&lines[_i].entry, &e))
		ck_assert_int_eq(event_kinds[e.kind].level, lines[_i].level);
	else
		ck_assert_int_eq(log_text_engine(&lines[_i].entry, buf, LOG_TEXT_MAX), lines[_i].level);
	ck_assert_str_eq(log_text_event(&lines[_i].entry, &e) ? event_text(&e, buf) : buf, lines[_i].line);
}

START_TEST(the_longest_line_fits_and_a_short_buffer_holds)
{
	struct smcr_log l = { .type = SMCR_LOG_STATE, .group_id = UINT32_MAX, .link = 255, .value = UINT64_MAX };
	char buf[LOG_TEXT_MAX], small[8];

	memset(l.peer, 'p', sizeof(l.peer) - 1);
	memset(l.text, 't', sizeof(l.text) - 1);
	(void)log_text_engine(&l, buf, sizeof(buf));
	ck_assert_int_eq(buf[strlen(buf) - 1], '"');
	(void)log_text_engine(&l, small, sizeof(small));
	ck_assert_str_eq(small, "state: ");
}

START_TEST(a_fallback_line_has_peer_and_reason_only)
{
	static const struct {
		struct smcr_diag diag;
		const char *text;
	} cases[] = {
		{ { 0 }, "" },
		{ { .local = 0x03030000 }, " local_code=0x03030000 local_reason=\"no RDMA device\"" },
		{ { .peer = 0x03030000 }, " peer_code=0x03030000 peer_reason=\"no RDMA device\"" },
		{ { .peer = 0x04000000, .out_of_sync = true },
		    " peer_code=0x04000000 peer_reason=\"the two ends disagree about the link group\" out_of_sync=yes" },
		{ { .local = 0x030a0000, .held_off = true },
		    " local_code=0x030a0000 local_reason=\"no active link in the link group\" held_off=yes" },
		{ { .local = 0x09990002,
		      .detail = "the peer's MPA port does not answer",
		      .mpa_port = 7471,
		      .rnic = { { [10] = 0xff, [11] = 0xff, [12] = 192, [13] = 0, [14] = 2, [15] = 2 } } },
		    " local_code=0x09990002 local_reason=\"queue pair could not be made ready\""
		    " detail=\"the peer's MPA port does not answer\" mpa_peer=192.0.2.2:7471" },
		{ { .peer = 0x09990002, .detail = "whatever", .mpa_port = 7471 },
		    " peer_code=0x09990002 peer_reason=\"queue pair could not be made ready\"" },
		{ { .peer = 0x09990002, .over = "iwarp-sctp-udp", .sctp_held_off = true },
		    " peer_code=0x09990002 peer_reason=\"queue pair could not be made ready\""
		    " transport=iwarp-sctp-udp sctp_held_off=yes" },
		{ { .peer = 0x03030000, .offered = 0x0f },
		    " peer_code=0x03030000 peer_reason=\"no RDMA device\" offered=roce,iwarp,iwarp-sctp,iwarp-sctp-udp" },
	};

	char buf[LOG_TEXT_MAX];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		ck_assert_str_eq(log_text_diag(&cases[i].diag, buf, sizeof(buf)), cases[i].text);
}
