/* Random traffic both ways between two hosts, in both readings of cursors, with whatever room and completions the
 * device has; every byte and every urgent byte has to arrive, and the connections have to close in order. */
#include <stdio.h>
#include <string.h>

#include "host.h"
#include "unit.h"
#include "tests/seeded_rng.h"

#define SEEDS 12 /* TRAFFIC_SEEDS in the environment says otherwise */
#define STEPS 2000

static struct rng r;

static void
random_room(struct host *h)
{
	h->dev.room = (struct rnic_credits){
		.wrs = rng_below(&r, 4) == 0 ? rng_below(&r, 6) : 255,
		.sends = rng_below(&r, 4) == 0 ? rng_below(&r, 6) : 255,
		.bytes = rng_below(&r, 3) == 0 ? rng_below(&r, 3000) : 1 << 20,
	};
	link_schedule(h->link);
}

struct tally {
	unsigned urgent_in, urgent_out;
	uint64_t in, out;
};

static void
do_write(struct smcr_conn *conn, struct tally *t)
{
	bool urgent = rng_below(&r, 40) == 0;
	uint32_t len = rng_below(&r, 3) == 0 ? rng_below(&r, 40000) : rng_below(&r, 300);
	size_t n = host_write(conn, len, urgent);

	t->in += n;
	if (urgent && n > 0)
		t->urgent_in++;
}

static void
do_read(struct smcr_conn *conn, struct tally *t)
{
	t->out += host_read(conn, rng_below(&r, 2) == 0 ? rng_below(&r, 100) : 100000, &t->urgent_out);
}

static void
one_step(struct tally *ab, struct tally *ba)
{
	switch (rng_below(&r, 10)) {
	case 0:
		do_write(ca, ab);
		break;
	case 1:
		do_write(cb, ba);
		break;
	case 2:
		do_read(cb, ab);
		break;
	case 3:
		do_read(ca, ba);
		break;
	case 4:
		random_room(&a);
		break;
	case 5:
		random_room(&b);
		break;
	case 6:
		host_complete(&a);
		break;
	case 7:
		host_complete(&b);
		break;
	case 8:
		for (uint32_t n = rng_below(&r, 8); n > 0; n--)
			host_carry_one(&a, &b);
		break;
	default:
		for (uint32_t n = rng_below(&r, 8); n > 0; n--)
			host_carry_one(&b, &a);
		break;
	}
	host_forget_posted(&a);
	host_forget_posted(&b);
}

/* Everything that is under way arrives; readers read to the end. */
static void
settle(struct tally *ab, struct tally *ba)
{
	for (int i = 0; i < 2000; i++) {
		a.dev.room = b.dev.room = (struct rnic_credits){ 255, 255, 1 << 20 };
		link_schedule(a.link);
		link_schedule(b.link);
		hosts_carry(&a, &b);
		host_complete(&a);
		host_complete(&b);
		ab->out += host_read(cb, 1 << 20, &ab->urgent_out);
		ba->out += host_read(ca, 1 << 20, &ba->urgent_out);
		host_forget_posted(&a);
		host_forget_posted(&b);
		if (ab->out == ab->in && ba->out == ba->in && a.carried == a.dev.cnt && b.carried == b.dev.cnt)
			return;
	}
	ck_abort_msg("%llu of %llu and %llu of %llu bytes arrived", (unsigned long long)ab->out,
	    (unsigned long long)ab->in, (unsigned long long)ba->out, (unsigned long long)ba->in);
}

static int
seeds(void)
{
	const char *env = getenv("TRAFFIC_SEEDS");

	return env != NULL ? atoi(env) : SEEDS;
}

START_LOOP_TEST(random_traffic, 0, seeds())
{
	static const uint32_t sizes[] = { 10000, 16384, 65536, 131072 };
	struct tally ab = { 0 }, ba = { 0 };

	rng_init_seeded(&r, (uint64_t)_i + 1);
	host_init(&a, _i % 2 == 1);
	host_init(&b, _i % 2 == 1);
	a.eng.cfg.sndbuf_size = 16384u << rng_below(&r, 3);
	b.eng.cfg.sndbuf_size = 5000;
	hosts_pair(&a, &b, sizes[rng_below(&r, 4)], &ca, &cb);
	a.lgr.dialect.starts_over = b.lgr.dialect.starts_over = _i / 2 % 2 == 1;
	for (int i = 0; i < STEPS; i++)
		one_step(&ab, &ba);
	settle(&ab, &ba);
	ck_assert_uint_eq(ab.urgent_in, ab.urgent_out);
	ck_assert_uint_eq(ba.urgent_in, ba.urgent_out);
	ck_assert_uint_eq(a.lgr.sndbuf_lent + b.lgr.sndbuf_lent, 0);
	smcr_shutdown_wr(ca);
	settle(&ab, &ba);
	smcr_close(cb);
	settle(&ab, &ba);
	smcr_close(ca);
	settle(&ab, &ba);
	settle(&ab, &ba);
	ck_assert_int_eq(smcr_closed(ca, NULL), SMCR_OK);
	ck_assert_int_eq(ca->state, CONN_CLOSED);
	ck_assert_int_eq(smcr_closed(cb, NULL), SMCR_OK);
	ck_assert_int_eq(cb->state, CONN_CLOSED);
	ck_assert_uint_eq(a.eng.ctr.bad_cdc + b.eng.ctr.bad_cdc, 0);
	ck_assert_uint_eq(a.eng.ctr.elems_quarantined + b.eng.ctr.elems_quarantined, 0);
	host_fini(&a);
	host_fini(&b);
}

/* A peer that says anything: nothing breaks, and other connections never notice. */
START_LOOP_TEST(random_messages, 0, seeds())
{
	struct smcr_conn *other, *oc;
	unsigned urgent = 0;

	rng_init_seeded(&r, (uint64_t)_i + 1000);
	host_init(&a, _i % 2 == 1);
	host_init(&b, _i % 2 == 1);
	hosts_pair(&a, &b, 16384, &ca, &cb);
	hosts_pair(&a, &b, 16384, &other, &oc);
	for (int i = 0; i < 300; i++) {
		struct cdc_msg m = {
			.seq = (uint16_t)rng_below(&r, 400),
			.token = rng_below(&r, 10) == 0 ? (uint32_t)rng_u64(&r) : ca->id,
			.prod = { (uint16_t)rng_below(&r, 3), rng_below(&r, 16500) },
			.cons = { (uint16_t)rng_below(&r, 2), rng_below(&r, 3) == 0 ? rng_below(&r, 16500) : 4 },
			.prod_flags = (uint8_t)(rng_u64(&r) & CDC_PROD_FLAGS & ~CDC_FAILOVER),
			.conn_flags = (uint8_t)(rng_below(&r, 50) == 0 ? rng_u64(&r) & CDC_CONN_FLAGS : 0),
		};
		struct iovec iov[2];
		bool urg;

		host_rx(&a, ca, &m);
		size_t n = smcr_rx_data(ca, iov, &urg);
		ck_assert_uint_le(n, 16384);
		smcr_rx_consume(ca, rng_below(&r, 2) == 0 ? n : 0);
		if (rng_below(&r, 5) == 0)
			host_write(ca, rng_below(&r, 5000), false);
		host_flush(&a);
		host_complete(&a);
	}
	a.carried = a.dev.cnt;
	host_write(oc, 1000, false);
	hosts_carry(&a, &b);
	ck_assert_uint_eq(host_read(other, 2000, &urgent), 1000);
	host_fini(&a);
	host_fini(&b);
}
