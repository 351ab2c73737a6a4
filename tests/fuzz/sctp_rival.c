/* See sctp_rival.h. */
#include "sctp_rival.h"

#include <stdlib.h>
#include <string.h>

#include "datagrams.h"
#include "fuzz.h"
#include "wire/mpa.h"

enum chunk_type {
	DATA,
	INIT,
	INIT_ACK,
	SACK,
	HEARTBEAT,
	HEARTBEAT_ACK,
	ABORT,
	SHUTDOWN,
	SHUTDOWN_ACK,
	COOKIE_ECHO = 10,
	COOKIE_ACK,
	SHUTDOWN_COMPLETE = 14,
};

#define HEADER_LEN 12
#define CRC_AT 8
#define CHUNK_LEN 4
#define DATA_LEN 12 /* behind the chunk's header */
#define INIT_LEN 16
#define PARAM_COOKIE 7
#define PARAM_ADAPTATION 0xc006
#define PARTS_MAX 65536
#define PACKET_MAX (HEADER_LEN + 2 * (CHUNK_LEN + DATA_LEN) + SCTP_DDP_SSN_LEN + DDP_RIVAL_SEGMENT_MAX + 8)
#define WINDOW (256 * 1024)
#define SMALL_WINDOW 1500
#define FAR 0x7ff0

/* Flags of DATA. */
enum {
	LAST = 1,
	FIRST = 2,
	UNORDERED = 4,
};

static const struct twist_field control_fields[] = { { 0, 2 }, { 2, 2 }, { 4, 2 }, { 6, 2 }, { 4, 4 }, { 8, 4 },
	{ 8, 1 }, { 12, 1 }, { 10, 2 }, { 14, 2 }, { 12, 4 }, { 16, 4 }, { 20, 8 }, { 24, 8 }, { 28, 4 }, { 32, 4 },
	{ 0, 0 } };

/* -- packets -- */

static uint8_t packet[PACKET_MAX]; /* that is being built */
static size_t packet_len;

static void
packet_begin(const struct sctp_rival *r, uint32_t tag)
{
	be16_put(packet, r->port);
	be16_put(packet + 2, r->peer_sctp);
	be32_put(packet + 4, tag);
	memset(packet + CRC_AT, 0, MPA_CRC_LEN);
	packet_len = HEADER_LEN;
}

/* The place of its body. */
static uint8_t *
packet_chunk(uint8_t type, uint8_t flags, size_t body_len)
{
	uint8_t *at = packet + packet_len;

	FUZZ_CHECK(packet_len + CHUNK_LEN + body_len + 3 <= sizeof(packet));
	at[0] = type;
	at[1] = flags;
	be16_put(at + 2, (uint16_t)(CHUNK_LEN + body_len));
	memset(at + CHUNK_LEN + body_len, 0, 3);
	packet_len += CHUNK_LEN + (body_len + 3) / 4 * 4;
	return at + CHUNK_LEN;
}

static void
packet_go(struct sctp_rival *r, unsigned how, uint32_t crc_off)
{
	mpa_crc_put(packet + CRC_AT, mpa_crc_value(mpa_crc_update(MPA_CRC_INIT, packet, packet_len)) + crc_off);
	if ((how & MESSAGE_LATE) != 0 && r->late == NULL) {
		r->late = aligned_alloc(8, (packet_len + 7) / 8 * 8);
		FUZZ_CHECK(r->late != NULL);
		memcpy(r->late, packet, packet_len);
		r->late_len = packet_len;
		return;
	}
	datagrams_send(r->port, r->peer, packet, packet_len);
	if ((how & MESSAGE_TWICE) != 0)
		datagrams_send(r->port, r->peer, packet, packet_len);
	if (r->late == NULL)
		return;
	datagrams_send(r->port, r->peer, r->late, r->late_len);
	free(r->late);
	r->late = NULL;
}

void
sctp_rival_chunk(
    struct sctp_rival *r, uint8_t type, uint8_t flags, const void *body, size_t len, uint32_t tag_off, uint32_t crc_off)
{
	uint8_t *at;

	packet_begin(r, r->tag + tag_off);
	at = packet_chunk(type, flags, len);
	if (len > 0)
		memcpy(at, body, len);
	packet_go(r, 0, crc_off);
}

static void
answer(struct sctp_rival *r, uint8_t type, const void *body, size_t len)
{
	sctp_rival_chunk(r, type, 0, body, len, 0, 0);
}

/* -- set-up -- */

void
sctp_rival_meet(struct sctp_rival *r, const struct siw_arena *a, unsigned link, uint16_t port, unsigned setup)
{
	sctp_rival_forget(r);
	r->port = port;
	r->setup = setup;
	r->profile = a->cfg.sctp_profile;
	r->ssn = sctp_ddp_values[r->profile].first_ssn;
	r->own_tag = 0x01020304;
	r->tsn = 0xfffffff0; /* and soon around */
	r->state = SCTP_RIVAL_LISTENS;
	ddp_rival_meet(&r->ddp, a, link);
}

void
sctp_rival_forget(struct sctp_rival *r)
{
	free(r->late);
	free(r->parts);
	memset(r, 0, sizeof(*r));
}

static size_t
param(uint8_t *at, uint16_t type, const void *value, size_t len)
{
	size_t padded = (len + 3) / 4 * 4;

	be16_put(at, type);
	be16_put(at + 2, (uint16_t)(4 + len));
	memset(at + 4, 0, padded);
	memcpy(at + 4, value, len);
	return 4 + padded;
}

/* INIT, or INIT ACK with a cookie. */
static void
say_init(struct sctp_rival *r, uint8_t type)
{
	static const char cookie[] = "a cookie";
	uint8_t body[INIT_LEN + 64], value[4];
	size_t n = INIT_LEN;
	uint16_t streams = (r->setup & SETUP_STREAMS) != 0 ? 10 : 1;

	be32_put(body, r->own_tag);
	be32_put(body + 4, (r->setup & SETUP_SMALL_WINDOW) != 0 ? SMALL_WINDOW : WINDOW);
	be16_put(body + 8, streams);
	be16_put(body + 10, streams);
	be32_put(body + 12, r->tsn);
	be32_put(value, sctp_ddp_values[r->profile].adaptation + ((r->setup & SETUP_OTHER_INDICATION) != 0));
	if ((r->setup & SETUP_NO_INDICATION) == 0)
		n += param(body + n, PARAM_ADAPTATION, value, sizeof(value));
	if (type == INIT_ACK)
		n += param(body + n, PARAM_COOKIE, cookie, sizeof(cookie));
	packet_begin(r, type == INIT ? 0 : r->tag);
	memcpy(packet_chunk(type, 0, n), body, n);
	packet_go(r, 0, 0);
}

void
sctp_rival_dial(struct sctp_rival *r, uint16_t to)
{
	r->active = true;
	r->peer = r->peer_sctp = to;
	r->state = SCTP_RIVAL_STARTS;
	r->own_tag++; /* what still comes for an association of before is not for this one */
	say_init(r, INIT);
}

static void
hear_init(struct sctp_rival *r, struct span body)
{
	r->tag = be32_get(body.ptr);
	r->first = be32_get(body.ptr + 12);
	r->heard = 0;
	r->messages = 0;
	r->parts_len = 0;
	r->said_last = false;
}

static void
init_in(struct sctp_rival *r, struct span body)
{
	FUZZ_CHECK(body.len >= INIT_LEN);
	hear_init(r, body);
	if ((r->setup & SETUP_ABORTS) != 0) {
		answer(r, ABORT, NULL, 0);
		return;
	}
	r->state = SCTP_RIVAL_STARTS;
	say_init(r, INIT_ACK);
}

static void
init_ack_in(struct sctp_rival *r, struct span body)
{
	size_t at = INIT_LEN;

	FUZZ_CHECK(body.len >= INIT_LEN);
	hear_init(r, body);
	while (at + 4 <= body.len && be16_get(body.ptr + at) != PARAM_COOKIE)
		at += (be16_get(body.ptr + at + 2) + 3u) / 4 * 4;
	FUZZ_CHECK(at + 4 <= body.len);
	r->cookie_len = be16_get(body.ptr + at + 2) - 4u;
	FUZZ_CHECK(r->cookie_len <= sizeof(r->cookie) && at + 4 + r->cookie_len <= body.len);
	memcpy(r->cookie, body.ptr + at + 4, r->cookie_len);
	if ((r->setup & SETUP_ABORTS) != 0)
		answer(r, ABORT, NULL, 0);
	else if ((r->setup & SETUP_STOPS) == 0)
		answer(r, COOKIE_ECHO, r->cookie, r->cookie_len);
	if ((r->setup & (SETUP_TWICE | SETUP_STOPS)) == SETUP_TWICE)
		answer(r, COOKIE_ECHO, r->cookie, r->cookie_len);
}

/* -- what the device sends -- */

static void
control_in(struct sctp_rival *r, struct span body)
{
	struct sctp_ddp_control c;

	FUZZ_CHECK(sctp_ddp_control_decode(body, r->profile, &c) == 0);
	r->said_last = c.function == SCTP_DDP_TERMINATE || c.function == SCTP_DDP_REJECT ||
	    c.function == SCTP_DDP_ENHANCED_REJECT;
	if (c.function != SCTP_DDP_TERMINATE)
		(void)mpa_pdata_decode(c.pd, &r->pdata);
}

static void
message_in(struct sctp_rival *r, uint32_t ppid, struct span message)
{
	const struct sctp_ddp_values *v = &sctp_ddp_values[r->profile];
	struct span in;
	uint16_t ssn;

	FUZZ_CHECK(ppid == v->ppid_segment || ppid == v->ppid_control);
	FUZZ_CHECK(sctp_ddp_ssn_decode(message, &ssn, &in) > 0);
	FUZZ_CHECK(ssn == (uint16_t)(v->first_ssn + r->messages));
	FUZZ_CHECK(!r->said_last);
	r->messages++;
	if (ppid == v->ppid_control)
		control_in(r, in);
	else
		ddp_rival_hear(&r->ddp, in);
}

/* Each in one chunk, on stream 0, unordered, numbered as sent, and nothing behind the last word. What the library holds when the
 * path becomes narrower, it sends in several chunks. */
static void
data_in(struct sctp_rival *r, uint8_t flags, struct span body)
{
	struct span data = { body.ptr + DATA_LEN, body.len - DATA_LEN };
	uint32_t ppid;

	FUZZ_CHECK(body.len > DATA_LEN);
	if (be32_get(body.ptr) != r->first + r->heard)
		return;
	r->heard++;
	ppid = be32_get(body.ptr + 8);
	FUZZ_CHECK((flags & UNORDERED) != 0 && be16_get(body.ptr + 4) == 0);
	FUZZ_CHECK((flags & (FIRST | LAST)) == (FIRST | LAST) || datagrams_path_is_narrow());
	FUZZ_CHECK(((flags & FIRST) != 0) == (r->parts_len == 0));
	if ((flags & (FIRST | LAST)) == (FIRST | LAST)) {
		message_in(r, ppid, data);
		return;
	}
	FUZZ_CHECK(data.len <= PARTS_MAX - r->parts_len);
	if (r->parts == NULL)
		r->parts = aligned_alloc(8, PARTS_MAX); /* not by malloc, which may fail for the device */
	FUZZ_CHECK(r->parts != NULL);
	memcpy(r->parts + r->parts_len, data.ptr, data.len);
	r->parts_len += data.len;
	if ((flags & LAST) == 0)
		return;
	message_in(r, ppid, (struct span){ r->parts, r->parts_len });
	r->parts_len = 0;
}

static void
acknowledge(struct sctp_rival *r)
{
	uint8_t body[12];

	be32_put(body, r->first + r->heard - 1);
	be32_put(body + 4, (r->setup & SETUP_SMALL_WINDOW) != 0 ? SMALL_WINDOW : WINDOW);
	be32_put(body + 8, 0);
	answer(r, SACK, body, sizeof(body));
}

/* True: DATA, to be acknowledged. */
static bool
chunk_in(struct sctp_rival *r, uint8_t type, uint8_t flags, struct span body)
{
	switch (type) {
	case DATA:
		data_in(r, flags, body);
		return true;
	case INIT:
		init_in(r, body);
		return false;
	case INIT_ACK:
		init_ack_in(r, body);
		return false;
	case COOKIE_ECHO:
		if ((r->setup & SETUP_STOPS) != 0)
			return false;
		r->state = SCTP_RIVAL_UP;
		answer(r, COOKIE_ACK, NULL, 0);
		return false;
	case COOKIE_ACK:
		r->state = SCTP_RIVAL_UP;
		return false;
	case HEARTBEAT:
		answer(r, HEARTBEAT_ACK, body.ptr, body.len);
		return false;
	case SHUTDOWN:
		answer(r, SHUTDOWN_ACK, NULL, 0);
		return false;
	case SHUTDOWN_ACK:
		answer(r, SHUTDOWN_COMPLETE, NULL, 0);
		r->state = SCTP_RIVAL_OVER;
		return false;
	case ABORT:
	case SHUTDOWN_COMPLETE:
		r->state = SCTP_RIVAL_OVER;
		return false;
	default:
		return false;
	}
}

void
sctp_rival_packet_in(struct sctp_rival *r, uint16_t from, const uint8_t *p, size_t len)
{
	size_t at = HEADER_LEN;
	bool data = false;

	FUZZ_CHECK(len >= HEADER_LEN + CHUNK_LEN && be16_get(p + 2) == r->port);
	if (r->state == SCTP_RIVAL_NONE || r->deaf)
		return;
	if (p[at] == INIT) {
		r->peer = from;
		r->peer_sctp = be16_get(p);
	} else if (be32_get(p + 4) != r->own_tag) {
		return; /* of an association of before */
	}
	while (at + CHUNK_LEN <= len) {
		size_t n = be16_get(p + at + 2);

		FUZZ_CHECK(n >= CHUNK_LEN && at + n <= len);
		data = chunk_in(r, p[at], p[at + 1], (struct span){ p + at + CHUNK_LEN, n - CHUNK_LEN }) || data;
		at += (n + 3) / 4 * 4;
	}
	if (data)
		acknowledge(r);
}

/* -- messages -- */

static uint16_t
number(struct sctp_rival *r, enum sctp_rival_number which)
{
	uint16_t n;

	switch (which) {
	case NUMBER_BEHIND_GAP:
		if (r->gap_cnt < SCTP_RIVAL_GAPS)
			r->gap[r->gap_cnt++] = r->ssn++;
		break;
	case NUMBER_OLDEST_GAP:
		if (r->gap_cnt == 0)
			break;
		n = r->gap[0];
		r->gap_cnt--;
		memmove(&r->gap[0], &r->gap[1], r->gap_cnt * sizeof(r->gap[0]));
		return n;
	case NUMBER_NEWEST_GAP:
		if (r->gap_cnt == 0)
			break;
		return r->gap[--r->gap_cnt];
	case NUMBER_AGAIN:
		return (uint16_t)(r->ssn - 1);
	case NUMBER_FAR:
		return (uint16_t)(r->ssn + FAR);
	case NUMBER_NEXT:
	case NUMBER_CNT:
		break;
	}
	return r->ssn++;
}

static void
data_chunk(struct sctp_rival *r, uint32_t ppid, unsigned how, uint8_t part, const uint8_t *bytes, size_t len)
{
	uint8_t *at = packet_chunk(DATA, part | ((how & MESSAGE_ORDERED) != 0 ? 0 : UNORDERED), DATA_LEN + len);

	be32_put(at, r->tsn++);
	be16_put(at + 4, (how & MESSAGE_OTHER_STREAM) != 0);
	be16_put(at + 6, 0);
	be32_put(at + 8, ppid);
	memcpy(at + DATA_LEN, bytes, len);
}

static void
message(struct sctp_rival *r, uint32_t ppid, unsigned how, const uint8_t *bytes, size_t len)
{
	size_t half = (how & MESSAGE_IN_PARTS) != 0 ? len / 2 : 0;

	if (len == 0 || r->state < SCTP_RIVAL_STARTS)
		return;
	ppid += (how & MESSAGE_OTHER_PPID) != 0 ? 2 : 0;
	packet_begin(r, r->tag);
	if (half > 0)
		data_chunk(r, ppid, how, FIRST, bytes, half);
	data_chunk(r, ppid, how, half > 0 ? LAST : FIRST | LAST, bytes + half, len - half);
	packet_go(r, how, 0);
}

void
sctp_rival_raw(struct sctp_rival *r, bool control, unsigned how, const uint8_t *bytes, size_t len)
{
	const struct sctp_ddp_values *v = &sctp_ddp_values[r->profile];

	message(r, control ? v->ppid_control : v->ppid_segment, how, bytes, len);
}

void
sctp_rival_control(
    struct sctp_rival *r, enum sctp_ddp_function function, unsigned opts, const struct sctp_rival_way *way)
{
	const struct mpa_pdata d = { .recv_depth = 16,
		.qpn = (opts & CONTROL_STRANGER) != 0 ? 0x123456
		    : r->active                       ? r->ddp.qpn
		                                      : r->pdata.from_qpn,
		.psn = r->ddp.psn,
		.token = r->ddp.token,
		.from_qpn = r->active ? 77 : r->pdata.qpn,
		.ulpdu_max = 16384 };
	uint16_t depth = (opts & CONTROL_NO_DEPTHS) != 0 ? 0 : (opts & CONTROL_NOT_NEGOTIATED) != 0 ? DEPTH_NONE : 4;
	uint8_t pd[SCTP_DDP_PD_MAX - ENHANCED_LEN] = { 0 }, out[SCTP_DDP_CONTROL_MAX];
	struct sctp_ddp_control c = { .function = function,
		.enh = { .model = (opts & CONTROL_NO_P2P) != 0 ? 0u : ENHANCED_P2P | RTR_ANY,
		    .ird = depth,
		    .ord = depth },
		.pd = { pd, (opts & CONTROL_LONG) != 0 ? sizeof(pd) : MPA_PDATA_LEN } };
	int n;

	mpa_pdata_encode(&d, pd);
	if ((opts & CONTROL_NO_PDATA) != 0 || function == SCTP_DDP_TERMINATE)
		c.pd.len = 0;
	n = sctp_ddp_control_encode(&c, r->profile, number(r, way->number), out, sizeof(out));
	if (n < 0)
		return; /* not of this profile: the number is missing, too */
	twist_apply(way->tw, control_fields, 0, out, (size_t)n, way->gather, way->ctx);
	sctp_rival_raw(r, true, way->how, out, (size_t)n);
}

void
sctp_rival_segment(struct sctp_rival *r, unsigned kind, size_t len, uint32_t mo, const struct sctp_rival_way *way)
{
	static uint8_t out[SCTP_DDP_SSN_LEN + DDP_RIVAL_SEGMENT_MAX];
	bool last = (way->how & MESSAGE_NOT_LAST) == 0;
	size_t n = ddp_rival_say(&r->ddp, kind, last, len, mo, way->tw, way->gather, way->ctx, out + SCTP_DDP_SSN_LEN);

	if (n == 0)
		return;
	be16_put(out, number(r, way->number));
	sctp_rival_raw(r, false, way->how, out, SCTP_DDP_SSN_LEN + n);
}

void
sctp_rival_answer(struct sctp_rival *r, const struct sctp_rival_way *way)
{
	while (r->state == SCTP_RIVAL_UP && r->ddp.read_cnt > 0)
		sctp_rival_segment(r, SEGMENT_ANSWER, 1000, 0, way);
}
