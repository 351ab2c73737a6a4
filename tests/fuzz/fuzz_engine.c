/*
 * The engine behind its public interface: a program of steps (steps.h) says what a rival peer (rival.h) and the users
 * of the engine do, what breaks, and how time passes. A second, honest peer has a connection through the same engine
 * and must not notice (witness.h). The engine may not crash, hang, leak, breach the device contract, or keep what was
 * given back to it.
 */
#include <string.h>

#include "arena.h"
#include "fuzz.h"
#include "rival.h"
#include "steps.h"
#include "tests/scenario/oom.h"
#include "tests/unit/smcr_help.h"
#include "witness.h"

/* Longer than any limit of a connection (arena.c's configuration), one after the other. */
#define REST_MS 8000
/* These opcodes are do_opens; with one more in ops, all programs of the corpus would be others. */
#define OPENS_FROM 0xf8

struct run {
	struct arena arena;
	struct steps steps;
	struct witness witness;
	struct rival *rival;
};

static const int64_t accept_pauses_ns[] = { 0, 5000, 50000, 1 * ARENA_MS, 10 * ARENA_MS, 60 * ARENA_MS, 160 * ARENA_MS,
	310 * ARENA_MS, 520 * ARENA_MS, 700 * ARENA_MS, 1100 * ARENA_MS, 2100 * ARENA_MS, 3200 * ARENA_MS,
	5300 * ARENA_MS, 16000 * ARENA_MS };

static struct rival_mid *
mid_of(struct run *r, const struct step *s)
{
	return &r->rival->mid[s->who % RIVAL_MIDS];
}

/* -- CLC -- */

static void
do_open(struct run *r, const struct step *s)
{
	rival_open(mid_of(r, s), s->a % 2 == 0 ? SMCR_SERVER : SMCR_CLIENT, s->b, s->a >> 1 & 1, (s->a & 4) != 0);
}

static void
do_clc_next(struct run *r, const struct step *s)
{
	struct rival_mid *m = mid_of(r, s);

	if (m->conn != NULL)
		rival_clc_next(m, s->a % 2 == 1, (s->a & 2) != 0 ? s->b : 0);
}

static void
do_clc_type(struct run *r, const struct step *s)
{
	struct rival_mid *m = mid_of(r, s);
	enum clc_type type = (enum clc_type)(CLC_PROPOSAL + s->a % 4);

	if (m->conn != NULL && (type != CLC_CONFIRM || m->link != NULL))
		rival_clc(m, type, s->b % 2 == 1, (s->b & 2) != 0 ? s->c : 0);
}

/* A header of any type and length, and bytes behind it. */
static void
do_clc_header(struct run *r, const struct step *s)
{
	static const uint16_t lens[] = { 0, 7, 8, 9, 27, 28, 44, 45, 52, 68, 92, 96, 200, 2047, 2048, 2049, 65535 };
	static const uint16_t sends[] = { 1, 4, 5, 7, 8, 9, 28, 44, 45, 68, 200, 1000, 2047, 2048 };
	static const uint8_t eye[] = { 0xe2, 0xd4, 0xc3, 0xd9 };
	uint16_t len = lens[s->b % (sizeof(lens) / sizeof(lens[0]))];
	size_t send = sends[s->c % (sizeof(sends) / sizeof(sends[0]))];
	uint8_t buf[2048];

	memset(buf, s->a, sizeof(buf));
	memcpy(buf, eye, sizeof(eye));
	buf[4] = (uint8_t)(s->a % 6);
	buf[5] = (uint8_t)(len >> 8);
	buf[6] = (uint8_t)len;
	buf[7] = (uint8_t)(0x10 | (s->a >> 4 & 0x0f));
	if (len >= 12 && len <= sizeof(buf) && (s->c & 0x80) == 0)
		memcpy(buf + len - 4, eye, sizeof(eye));
	rival_clc_bytes(mid_of(r, s), buf, send);
}

static void
do_clc_raw(struct run *r, const struct step *s)
{
	const uint8_t *p;
	size_t len = steps_raw(&r->steps, 1 + s->a % 16, &p);

	rival_clc_bytes(mid_of(r, s), p, len);
}

static void
do_clc_hold(struct run *r, const struct step *s)
{
	mid_of(r, s)->hold = s->a % 2 == 1;
}

static void
do_tcp(struct run *r, const struct step *s)
{
	struct rival_mid *m = mid_of(r, s);

	if (m->conn != NULL && !m->closed && !(m->fallen && smcr_clc_want(m->conn) == 0))
		smcr_tcp_event(m->conn, s->a % 2 == 0 ? SMCR_TCP_FIN : SMCR_TCP_RST);
}

/* -- LLC, CDC, RDMA -- */

static void
do_twist(struct run *r, const struct step *s)
{
	twist_add(&r->rival->twists, (struct twist){ s->a, s->b, s->c });
}

static void
do_answer(struct run *r, const struct step *s)
{
	struct rival_link *l = rival_nth_link(r->rival, s->who), *over = l;

	if (l == NULL)
		return;
	if (s->b % 4 == 1)
		over = rival_nth_link(r->rival, s->c);
	else
		over = rival_working(l);
	(void)rival_llc_answer(l, over, s->a);
}

static const enum llc_type llc_types[] = { LLC_CONFIRM_LINK, LLC_ADD_LINK, LLC_ADD_LINK_CONT, LLC_DELETE_LINK,
	LLC_CONFIRM_RKEY, LLC_TEST_LINK, LLC_CONFIRM_RKEY_CONT, LLC_DELETE_RKEY };
/* Version 2 has no CONTINUATIONs, but requests for links; and lists, of so many: 0 stands for what is right. */
static const enum llc_type llc_types_v2[] = { LLC_CONFIRM_LINK, LLC_ADD_LINK, LLC_REQUEST_ADD_LINK, LLC_DELETE_LINK,
	LLC_CONFIRM_RKEY, LLC_TEST_LINK, LLC_REQUEST_ADD_LINK, LLC_DELETE_RKEY };
static const uint8_t list_cnts[] = { 0, 0, 1, 2, 3, 7, 8, 9, 30, 59, 60, 124, 125, 253, 254, 255 };

static void
do_llc(struct run *r, const struct step *s)
{
	struct rival_link *l = rival_nth_link(r->rival, s->who);

	if (l == NULL)
		return;
	bool v2 = rival_llc_version(r->rival) == LLC_VERSION_2;
	rival_llc(l, (v2 ? llc_types_v2 : llc_types)[s->a % 8], (s->a & 8) != 0, s->b, list_cnts[s->c % 16]);
}

static void
do_llc_start(struct run *r, const struct step *s)
{
	struct rival_link *l = rival_nth_link(r->rival, s->who);

	if (l != NULL)
		rival_llc_start(l);
}

static void
do_llc_raw(struct run *r, const struct step *s)
{
	static const uint16_t longer[] = { 65, 256, 2056, 4152, LLC_MAX_LEN - 1, LLC_MAX_LEN, RIVAL_LONGEST };
	struct rival_link *l = rival_nth_link(r->rival, s->who);
	bool v2 = rival_llc_version(r->rival) == LLC_VERSION_2;
	uint8_t buf[RIVAL_LONGEST] = { 0 };
	size_t len = s->a % 2 == 0 ? LLC_LEN : s->c % (RIVAL_INLINE + 1u);
	const uint8_t *p;
	size_t n = steps_raw(&r->steps, 9, &p);

	if (l == NULL)
		return;
	if (v2 && (s->a & 2) != 0)
		len = longer[s->c % (sizeof(longer) / sizeof(longer[0]))];
	if (n > 0)
		memcpy(buf, p, n);
	if (s->b % 2 == 0) {
		buf[1] = (uint8_t)(v2 ? len >> 8 : LLC_LEN);
		buf[2] = v2 ? (uint8_t)len : buf[2];
	}
	if (v2 && (s->b & 2) == 0)
		buf[0] = 0x20 | (buf[0] & 0x0f);
	rival_send(l, buf, len);
}

static void
do_llc_again(struct run *r, const struct step *s)
{
	struct rival_link *l = rival_nth_link(r->rival, s->who);

	for (unsigned n = s->a % 64; l != NULL; n--) {
		rival_send(l, r->rival->last_llc, r->rival->last_llc_len);
		if (n == 0)
			return;
	}
}

static void
do_forget(struct run *r, const struct step *s)
{
	struct rival_link *l = rival_nth_link(r->rival, s->who);

	if (l != NULL)
		l->todo_cnt = 0;
}

static struct rival_link *link_of_mid(struct run *, struct rival_mid *, const struct step *);

/* Connections that open over a link, from either side. */
static void
do_opens(struct run *r, const struct step *s)
{
	struct rival_mid *m = mid_of(r, s);
	struct rival_link *l = link_of_mid(r, m, s);
	unsigned many = (s->a & 0x80) != 0 ? s->c % 64 : 0;

	if (l == NULL)
		l = rival_nth_link(r->rival, s->who);
	if (s->a % 4 == 0)
		rival_open_over_link(m, s->b, s->c);
	for (unsigned i = 0; s->a % 4 == 1 && l != NULL && i <= many; i++)
		rival_grant(m, l, 1 + (s->b & 1));
	for (unsigned i = 0; s->a % 4 >= 2 && l != NULL && i <= many; i++)
		rival_say_open(m, l, s->b + i, s->c % 4);
}

static struct rival_link *
link_of_mid(struct run *r, struct rival_mid *m, const struct step *s)
{
	if (s->who >= 0x80)
		return rival_nth_link(r->rival, s->who & 0x7f);
	return m->link != NULL ? rival_working(m->link) : NULL;
}

static void
do_cdc(struct run *r, const struct step *s)
{
	static const uint32_t produce[] = { 0, 1, 10, 44, 1000, 8192, RIVAL_ELEM - 1, RIVAL_ELEM };
	struct rival_mid *m = mid_of(r, s);

	rival_cdc(m, link_of_mid(r, m, s), s->a & CDC_PROD_FLAGS, s->b & CDC_CONN_FLAGS, produce[s->c % 8]);
}

/* Into its own element, or where else it likes. */
static void
do_write(struct run *r, const struct step *s)
{
	struct rival_mid *m = mid_of(r, s);
	struct rival_link *l = link_of_mid(r, m, s);
	uint8_t data[64];

	if (!m->has_theirs || l == NULL)
		return;
	memset(data, s->c, sizeof(data));
	uint64_t at = m->theirs.vaddr + (uint64_t)(m->theirs.rmbe_idx - 1) * SMCR_ELEM_MIN;
	if (s->b >= 0x80)
		at += (uint64_t)(s->b & 0x7f) * 4096 - 16384;
	else
		at += m->produced % SMCR_ELEM_MIN;
	rival_write(l, m->theirs.rkey + (s->a & 0x80 ? 1 : 0), at, data, 1 + s->a % 64);
}

static void
do_connect(struct run *r, const struct step *s)
{
	struct rival_link *l = rival_nth_link(r->rival, s->who);

	if (l != NULL && l->remote.qpn != 0)
		rival_link_connect(l);
}

static void
do_break(struct run *r, const struct step *s)
{
	struct rival_link *l = rival_nth_link(r->rival, s->who);

	if (l == NULL)
		return;
	if (s->a % 5 < 3)
		(void)sim_break_qp(l->qp->dev, l->qp->qpn, (enum sim_cut)(s->a % 5));
	else if (!l->broken)
		l->qp->dev->ops->qp_disconnect(l->qp, s->a % 5 == 3);
	if (s->a % 5 >= 3)
		l->broken = true;
}

static void
do_free_link(struct run *r, const struct step *s)
{
	struct rival_link *l = rival_nth_link(r->rival, s->who);

	if (l != NULL)
		rival_link_free(l);
}

/* The rival's own devices: it is slow, or not there. */
static void
do_rival_dev(struct run *r, const struct step *s)
{
	struct rnic_dev *dev = r->rival->dev[s->who % RIVAL_DEVS];

	switch (s->a % 4) {
	case 0:
		sim_freeze(dev, s->b % 2 == 1);
		break;
	case 1:
		sim_block_connect(dev, s->b % 2 == 1);
		break;
	case 2:
		sim_withhold(dev, s->b % 2 == 1);
		break;
	default:
		sim_port(dev, s->b % 2 == 1 ? RNIC_PORT_DOWN : RNIC_PORT_UP);
		break;
	}
}

/* -- the engine's users -- */

static void
user_send(struct smcr_conn *c, size_t len, bool urgent)
{
	struct iovec iov[2];
	size_t room = smcr_tx_space(c, iov);

	if (len > room)
		len = room;
	for (unsigned i = 0; i < 2; i++)
		if (iov[i].iov_len > 0)
			memset(iov[i].iov_base, 'u', iov[i].iov_len);
	smcr_tx_commit(c, len, urgent && len > 0);
}

static void
user_read(struct smcr_conn *c, size_t len)
{
	struct iovec iov[2];
	bool urgent;
	size_t n = smcr_rx_data(c, iov, &urgent);
	unsigned sum = 0;

	for (unsigned i = 0; i < 2; i++)
		for (size_t k = 0; k < iov[i].iov_len; k++)
			sum += ((const uint8_t *)iov[i].iov_base)[k];
	FUZZ_CHECK(sum < UINT32_MAX && n == iov[0].iov_len + iov[1].iov_len);
	smcr_rx_consume(c, len < n ? len : n);
}

static void
do_user(struct run *r, const struct step *s)
{
	static const enum smcr_reason reasons[] = { SMCR_R_APP_RESET, SMCR_R_REFUSED, SMCR_R_TIMEOUT, SMCR_R_SHUTDOWN };
	static const size_t lens[] = { 0, 1, 100, 5000, 70000 };
	struct rival_mid *m = mid_of(r, s);
	bool open = m->established && !m->closed;

	if (m->conn == NULL)
		return;
	switch (s->a % 8) {
	case 0:
		smcr_admit(m->conn);
		break;
	case 1:
		if (!m->closed && !m->fallen)
			smcr_abort(m->conn, reasons[s->b % 4]);
		break;
	case 2:
		if (open)
			smcr_close(m->conn);
		break;
	case 3:
		if (open)
			smcr_shutdown_wr(m->conn);
		break;
	case 4:
		if (open)
			user_send(m->conn, lens[s->b % 5], (s->c & 1) != 0);
		break;
	case 5:
		if (open)
			user_read(m->conn, lens[s->b % 5]);
		break;
	case 6:
		rival_release(m);
		break;
	default:
		if (open)
			(void)smcr_rx_eof(m->conn);
		break;
	}
}

/* -- the operator and what breaks -- */

static void
reconfigure(struct run *r, unsigned how)
{
	struct smcr_config cfg;
	uint32_t more = 1 + how / 8 % 8;

	/* The peer's count only grows: bounds.c looks at what groups hold once a turn, and holds it to this. */
	if ((how & 4) != 0 && more > r->arena.cfg.conns_per_group)
		r->arena.cfg.conns_per_group = more;
	cfg = r->arena.cfg;
	if ((how & 1) != 0)
		cfg.keepalive_ms = 0;
	if ((how & 2) != 0)
		cfg.links_max = 1 + how / 4 % SMCR_LINKS_MAX;
	smcr_reconfigure(r->arena.eng, &cfg);
}

static void
look_around(const struct smcr *eng)
{
	struct smcr_group_info g;
	struct smcr_link_info l;
	struct smcr_rmb_info b;
	struct smcr_conn_info c;
	uint32_t pos = 0;

	while (smcr_group_next(eng, &pos, &g))
		;
	for (pos = 0; smcr_link_next(eng, &pos, &l);)
		;
	for (pos = 0; smcr_rmb_next(eng, &pos, &b);)
		FUZZ_CHECK(b.remote || b.used <= b.elem_cnt);
	for (pos = 0; smcr_conn_next(eng, &pos, &c);)
		FUZZ_CHECK(c.id != 0 && c.rx_consumed <= c.rx_produced && c.tx_sent <= c.tx_written);
}

static void
on_trace(void *ctx, const struct smcr_trace *t)
{
	unsigned *sum = ctx;

	for (size_t i = 0; i < t->len; i++)
		*sum += t->msg[i];
}

static void
do_operator(struct run *r, const struct step *s)
{
	static unsigned traced;
	struct smcr *eng = r->arena.eng;

	switch (s->a % 7) {
	case 0:
		(void)smcr_rebalance(eng, s->b % 4);
		break;
	case 1:
		(void)smcr_link_delete(eng, s->b, (uint8_t)(s->c % 8));
		break;
	case 2:
		reconfigure(r, s->b);
		break;
	case 3:
		look_around(eng);
		break;
	case 4:
		smcr_set_trace(eng, s->b % 2 == 0 ? on_trace : NULL, &traced);
		break;
	case 5:
		r->arena.deaf = s->b % 2 == 0;
		break;
	default:
		if (s->b == 0x77)
			smcr_drain(eng, true);
		break;
	}
}

static void
do_device(struct run *r, const struct step *s)
{
	unsigned n = s->who % ARENA_DEVS;
	struct rnic_dev *dev = r->arena.dev[n];

	if (s->a % 8 == 7) {
		arena_dev_add(&r->arena, n);
		return;
	}
	if (dev == NULL)
		return;
	r->witness.excused = true; /* its links may be there */
	switch (s->a % 8) {
	case 0:
		sim_port(dev, RNIC_PORT_DOWN);
		break;
	case 1:
		sim_port(dev, RNIC_PORT_UP);
		break;
	case 2:
		sim_gone(dev);
		break;
	case 3:
		arena_dev_remove(&r->arena, n);
		break;
	case 4:
		sim_freeze(dev, s->b % 2 == 1);
		break;
	case 5:
		sim_withhold(dev, s->b % 2 == 1);
		break;
	default:
		sim_block_connect(dev, s->b % 2 == 1);
		break;
	}
}

static void
do_fail(struct run *r, const struct step *s)
{
	r->witness.excused = true;
	if (s->a >= 0x80)
		oom_arm(1 + s->b % 32, 1 + s->c % 8);
	else
		arena_fail(
		    &r->arena, (s->a & FAIL_ALL) != 0 ? s->a & FAIL_ALL : FAIL_POST_SEND, s->b % 32, 1 + s->c % 8);
}

static void
do_witness(struct run *r, const struct step *s)
{
	witness_send(&r->witness, s->a * 16u);
}

static void
do_time(struct run *r, const struct step *s)
{
	arena_run(&r->arena, accept_pauses_ns[s->a % (sizeof(accept_pauses_ns) / sizeof(accept_pauses_ns[0]))]);
}

/* All behave correctly for a while. */
static void
do_honest(struct run *r, const struct step *s)
{
	for (unsigned round = 0; round <= s->a % 8; round++) {
		bool more = false;

		for (unsigned i = 0; i < RIVAL_LINKS; i++) {
			struct rival_link *l = &r->rival->link[i];

			if (l->used && l->connected && !l->broken)
				more = rival_llc_answer(l, l, s->b) || more;
		}
		arena_run(&r->arena, ARENA_MS / 2);
		if (!more)
			return;
	}
}

static void (*const ops[])(struct run *, const struct step *) = {
	do_open,
	do_clc_next,
	do_honest,
	do_twist,
	do_answer,
	do_llc,
	do_time,
	do_cdc,
	do_user,
	do_llc_start,
	do_clc_type,
	do_clc_header,
	do_break,
	do_write,
	do_device,
	do_fail,
	do_operator,
	do_llc_again,
	do_tcp,
	do_connect,
	do_clc_hold,
	do_clc_raw,
	do_llc_raw,
	do_forget,
	do_free_link,
	do_rival_dev,
	do_witness,
};

/* -- a whole run -- */

static void
begin(struct run *r, const uint8_t header[STEPS_HEADER])
{
	static const unsigned kind[8] = { [2] = ARENA_V2,
		[3] = ARENA_V2,
		[4] = ARENA_SCTP,
		[5] = ARENA_SCTP_UDP,
		[6] = ARENA_MIXED,
		[7] = ARENA_MIXED };
	unsigned rival = header[1] ^ (RIVAL_ADMITS | RIVAL_ANSWERS); /* zero is the easy way */

	if (kind[header[3] % 8] == ARENA_V2)
		rival |= RIVAL_V2 | (header[3] % 8 == 3 ? RIVAL_LITTLE : 0);
	arena_init(&r->arena, header[0] | kind[header[3] % 8]);
	witness_init(&r->witness, &r->arena, header[2] % 2 == 0 ? SMCR_SERVER : SMCR_CLIENT);
	r->rival = rival_new(&r->arena, rival);
}

/* Connections that the users have given back are gone when every limit has passed, and in the end all memory is back. */
static void
end(struct run *r)
{
	struct smcr_conn_info c;
	uint32_t pos = 0, left = 0;

	oom_disarm();
	arena_fail(&r->arena, 0, 0, 0);
	r->arena.deaf = false;
	witness_check(&r->witness);
	for (unsigned i = 0; i < RIVAL_MIDS; i++)
		rival_release(&r->rival->mid[i]);
	arena_run(&r->arena, REST_MS * ARENA_MS);
	while (smcr_conn_next(r->arena.eng, &pos, &c))
		left += c.app != &r->witness.there && strcmp(c.state, "Spare") != 0; /* the group's, until it ends */
	FUZZ_CHECK(left == 0);
	witness_check(&r->witness);
	smcr_release(r->witness.here.conn);
	smcr_release(r->witness.there.conn);
	look_around(r->arena.eng);
	arena_free_engine(&r->arena);
	witness_fini(&r->witness);
	rival_free(r->rival);
	arena_free_fabric(&r->arena);
}

unsigned
fuzz_mutations(void)
{
	return 1000;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	uint8_t header[STEPS_HEADER];
	struct run r;
	struct step s;

	memset(&r, 0, sizeof(r));
	if (!steps_begin(&r.steps, data, len, header))
		return 0;
	begin(&r, header);
	while (steps_next(&r.steps, &s)) {
		if (s.op >= OPENS_FROM)
			do_opens(&r, &s);
		else
			ops[s.op % (sizeof(ops) / sizeof(ops[0]))](&r, &s);
		if (s.op >= OPENS_FROM ||
		    s.op % (sizeof(ops) / sizeof(ops[0])) != 3) /* a twist alone changes nothing */
			arena_run(&r.arena, (s.who & 0x40) != 0 ? 0 : ARENA_MS / 10);
	}
	end(&r);
	return 0;
}
