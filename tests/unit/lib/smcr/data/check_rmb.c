/* RMBs and their elements; what is known of the peer's. */
#include <errno.h>
#include <string.h>

#include "host.h"
#include "unit.h"

#define ELEM 16384u

static struct host h;

static void
setup(void)
{
	host_init(&h, false);
}

static void
teardown(void)
{
	host_fini(&h);
}

UNIT_FIXTURE(setup, teardown);

static uint8_t
elem_get(uint32_t size, struct rmb **from)
{
	struct rmb *rmb = rmb_find_place(&h.lgr, &(struct smcr_open){ .elem_size = size });

	if (rmb == NULL)
		return 0;
	*from = rmb;
	return rmb_elem_get_from(rmb);
}

START_TEST(indexes_start_at_1_and_all_of_255_are_used_once)
{
	struct rmb *rmb = rmb_new(&h.lgr, ELEM, 255), *from = NULL;
	bool seen[256] = { false };

	ck_assert_ptr_nonnull(rmb);
	ck_assert_uint_eq(elem_get(ELEM, &from), 0); /* not confirmed yet */
	rmb->state = RMB_CONFIRMED;
	for (int i = 0; i < 255; i++) {
		uint8_t idx = elem_get(ELEM, &from);

		ck_assert_uint_ge(idx, 1);
		ck_assert(!seen[idx]);
		ck_assert_ptr_eq(rmb->units[idx - 1].mem, rmb->buf + (size_t)(idx - 1) * ELEM);
		seen[idx] = true;
	}
	ck_assert_ptr_eq(from, rmb);
	ck_assert_uint_eq(elem_get(ELEM, &from), 0);
	ck_assert_uint_eq(rmb_elem_get_from(rmb), 0);
	ck_assert_uint_eq(elem_get(2 * ELEM, &from), 0);
	rmb_elem_put(rmb, 200);
	ck_assert_uint_eq(elem_get(ELEM, &from), 200);
	ck_assert_uint_eq(h.eng.ctr.elems_reused, 1);
	h.eng.now_ns = 7;
	for (int i = 1; i <= 255; i++)
		rmb_elem_put(rmb, (uint8_t)i);
	ck_assert_uint_eq(rmb->used, 0);
	ck_assert_int_eq(rmb->idle_since_ns, 7);
}

START_TEST(only_what_was_written_is_zeroed_but_all_of_that)
{
	struct rmb *rmb = rmb_new(&h.lgr, ELEM, 2);
	uint8_t idx = rmb_elem_get_from(rmb), *p = rmb->units[idx - 1].mem;

	memset(p, 0xaa, ELEM);
	rmb_elem_dirty(rmb, idx, 100);
	rmb_elem_dirty(rmb, idx, 50);
	rmb_elem_put(rmb, idx);
	ck_assert_uint_eq(rmb_elem_get_from(rmb), idx);
	for (uint32_t i = 0; i < ELEM; i++)
		ck_assert_uint_eq(p[i], i < 100 ? 0 : 0xaa);
	ck_assert_uint_eq(rmb->units[idx - 1].dirty, 0);
}

/* Registered as one region: the address says which it is. */
START_TEST(rmbs_of_the_peer_may_share_an_rkey)
{
	struct remote_rmb *one = remote_rmb_add(&h.lgr, h.link, 100, 0x1000);
	struct remote_rmb *two = remote_rmb_add(&h.lgr, h.link, 100, 0x2000);

	ck_assert_ptr_ne(one, two);
	ck_assert_ptr_eq(remote_rmb_find(&h.lgr, h.link, 100, &(uint64_t){ 0x1000 }), one);
	ck_assert_ptr_eq(remote_rmb_find(&h.lgr, h.link, 100, &(uint64_t){ 0x2000 }), two);
	ck_assert_ptr_null(remote_rmb_find(&h.lgr, h.link, 100, &(uint64_t){ 0x3000 }));
	ck_assert_ptr_eq(remote_rmb_add(&h.lgr, h.link, 100, 0x2000), two);
}

START_TEST(quarantine_lasts)
{
	struct rmb *rmb = rmb_new(&h.lgr, ELEM, 1);
	uint8_t idx = rmb_elem_get_from(rmb);

	quarantine_elem(rmb, idx, 1, NULL, 0);
	ck_assert_uint_eq(rmb_elem_get_from(rmb), 0);
	ck_assert_uint_eq(rmb->used, 1);
	ck_assert_uint_eq(rmb->quarantined, 1);
	ck_assert_uint_eq(h.eng.ctr.elems_quarantined, 1);
}

/* Two elements: of token 7, which wrote into element 3 of the peer's RMB, and of token 8, which never knew one. */
static struct rmb *
with_quarantined(struct remote_rmb **rr)
{
	struct rmb *rmb = rmb_new(&h.lgr, ELEM, 2);

	*rr = remote_rmb_add(&h.lgr, h.link, 100, 0x1000);
	ck_assert_uint_eq(rmb_elem_get_from(rmb), 1);
	ck_assert_uint_eq(rmb_elem_get_from(rmb), 2);
	quarantine_elem(rmb, 1, 7, *rr, 3);
	quarantine_elem(rmb, 2, 8, NULL, 0);
	ck_assert_uint_eq(h.lgr.quarantined, 2);
	return rmb;
}

static bool
late_cdc(uint32_t token, uint8_t prod_flags, uint8_t conn_flags)
{
	struct cdc_msg m = { .token = token, .prod_flags = prod_flags, .conn_flags = conn_flags };
	uint64_t unknown = h.eng.ctr.cdc_unknown;
	uint8_t buf[CDC_LEN];

	ck_assert_int_eq(cdc_encode(&m, buf, sizeof(buf)), CDC_LEN);
	ck_assert(conn_rx_cdc(h.link, buf, sizeof(buf), true));
	return h.eng.ctr.cdc_unknown == unknown;
}

START_TEST(a_late_c_or_a_ends_quarantine)
{
	struct remote_rmb *rr;
	struct rmb *rmb = with_quarantined(&rr);

	ck_assert(!late_cdc(7, 0, CDC_SENDING_DONE));
	ck_assert(!late_cdc(9, 0, CDC_CLOSED));
	ck_assert(!late_cdc(7, CDC_FAILOVER, CDC_CLOSED)); /* its flags mean nothing */
	ck_assert_uint_eq(rmb->quarantined, 2);
	ck_assert(late_cdc(7, 0, CDC_SENDING_DONE | CDC_CLOSED));
	ck_assert_uint_eq(rmb->quarantined, 1);
	ck_assert_uint_eq(h.lgr.quarantined, 1);
	ck_assert(!late_cdc(7, 0, CDC_CLOSED));
	ck_assert_uint_eq(rmb_elem_get_from(rmb), 1);
	ck_assert(late_cdc(8, 0, CDC_ABORT));
	ck_assert_uint_eq(rmb_elem_get_from(rmb), 2);
	ck_assert_uint_eq(h.lgr.quarantined, 0);
	ck_assert_uint_eq(h.eng.ctr.elems_let_go, 2);
}

/* The end of its use came by another way than the peer's writes: the element is free when the links have shown that none is under way. */
static void
freed_after_proof(struct rmb *rmb, uint8_t idx)
{
	ck_assert_uint_eq(h.eng.ctr.elems_let_go, 1);
	ck_assert_uint_eq(h.lgr.quarantined, 1);
	ck_assert_int_eq(rmb->elem[idx - 1].state, RMB_ELEM_COOLING);
	ck_assert(rmb_elem_denied(rmb, idx, h.link));
	ck_assert(h.link->ack_wanted);
	rmb_cool_down(&h.lgr);
	ck_assert_int_eq(rmb->elem[idx - 1].state, RMB_ELEM_COOLING);
	rmb_allow_all(&h.lgr, h.link);
	rmb_cool_down(&h.lgr);
	ck_assert_uint_eq(rmb_elem_get_from(rmb), idx);
}

START_TEST(another_use_of_the_peers_element_ends_quarantine)
{
	struct remote_rmb *rr;
	struct rmb *rmb = with_quarantined(&rr);

	struct remote_rmb *other = remote_rmb_add(&h.lgr, h.link, 101, 0x2000);
	quarantine_release(&h.lgr, rr, 4);
	quarantine_release(&h.lgr, other, 3);
	ck_assert_uint_eq(h.lgr.quarantined, 2);
	quarantine_release(&h.lgr, rr, 3);
	freed_after_proof(rmb, 1);
}

START_TEST(the_end_of_the_peers_rmb_ends_quarantine)
{
	struct remote_rmb *rr;
	struct rmb *rmb = with_quarantined(&rr);

	struct remote_rmb *other = remote_rmb_add(&h.lgr, h.link, 101, 0x2000);
	remote_rmb_free(&h.lgr, other);
	ck_assert_uint_eq(h.lgr.quarantined, 2);
	remote_rmb_free(&h.lgr, rr);
	freed_after_proof(rmb, 1);
}

/* It has ended while the connection lived: Linux deletes its RMBs without asking. There will be no other sign. */
START_TEST(a_connection_without_the_peers_rmb_leaves_nothing_in_quarantine)
{
	struct remote_rmb *rr = remote_rmb_add(&h.lgr, h.link, 100, 0x1000);
	struct rmb *rmb = rmb_new(&h.lgr, ELEM, 2);

	remote_rmb_claim(rr, 3, 77);
	quarantine_elem(rmb, rmb_elem_get_from(rmb), 76, NULL, 0);
	remote_rmb_free(&h.lgr, rr);
	quarantine_elem(rmb, rmb_elem_get_from(rmb), 77, rr, 3);
	remote_rmb_release(rr, 3, 77);
	freed_after_proof(rmb, 2);
}

START_TEST(the_bound_of_quarantine_is_a_number_of_the_group)
{
	struct rmb *rmb[2] = { rmb_new(&h.lgr, ELEM, 2), rmb_new(&h.lgr, ELEM, 1) };

	h.eng.cfg.quarantine_max = 3;
	for (unsigned i = 0; i < 3; i++) {
		ck_assert(!quarantine_is_full(&h.lgr));
		quarantine_elem(rmb[i / 2], rmb_elem_get_from(rmb[i / 2]), i + 1, NULL, 0);
	}
	ck_assert(quarantine_is_full(&h.lgr));
	ck_assert(late_cdc(2, 0, CDC_ABORT));
	ck_assert(!quarantine_is_full(&h.lgr));
	quarantine_elem(rmb[0], rmb_elem_get_from(rmb[0]), 4, NULL, 0);
	ck_assert(quarantine_is_full(&h.lgr));
	rmb_free(rmb[1]); /* as at the end of the group */
	ck_assert_uint_eq(h.lgr.quarantined, 2);
}

/* All RMBs of all groups count, to the byte. */
START_TEST(memory_is_bounded)
{
	h.eng.cfg.rmb_bytes_max = 10 * ELEM;
	ck_assert_uint_eq(window_next_cnt(&h.lgr, ELEM), 8);
	struct rmb *first = rmb_new(&h.lgr, ELEM, 8);
	ck_assert_uint_eq(h.eng.rmb_bytes, 8 * ELEM);
	ck_assert_uint_eq(window_next_cnt(&h.lgr, ELEM), 2); /* not 32 */
	ck_assert_uint_eq(window_next_cnt(&h.lgr, 2 * ELEM), 1);
	ck_assert_ptr_null(rmb_new(&h.lgr, ELEM, 3));
	ck_assert_uint_eq(h.eng.ctr.refused_rmb_memory, 1);
	ck_assert_ptr_nonnull(rmb_new(&h.lgr, ELEM, 2));
	ck_assert_uint_eq(window_next_cnt(&h.lgr, ELEM), 1);
	ck_assert_ptr_null(rmb_new(&h.lgr, ELEM, 1));
	ck_assert_uint_eq(h.eng.ctr.refused_rmb_memory, 2);
	rmb_free(first);
	ck_assert_uint_eq(h.eng.rmb_bytes, 2 * ELEM);
	ck_assert_ptr_nonnull(rmb_new(&h.lgr, ELEM, 8));
	h.eng.cfg.rmb_bytes_max = ELEM; /* lowered by a reload: what is there stays */
	ck_assert_uint_eq(window_next_cnt(&h.lgr, ELEM), 1);
	ck_assert_ptr_null(rmb_new(&h.lgr, ELEM, 1));
	ck_assert_uint_eq(h.eng.ctr.refused_memory, 0);
}

START_TEST(the_first_is_small_and_later_ones_grow)
{
	static const uint32_t want[] = { 8, 32, 128, 87, 1, 1 };

	for (size_t i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
		ck_assert_uint_eq(window_next_cnt(&h.lgr, ELEM), want[i]);
		ck_assert_ptr_nonnull(rmb_new(&h.lgr, ELEM, want[i]));
		if (i == 3)
			h.eng.cfg.rmb_elems = 1; /* all 255 connections have their place: what more comes is small */
	}
	h.eng.cfg.rmb_elems = 20;
	ck_assert_uint_eq(window_next_cnt(&h.lgr, 2 * ELEM), 8);
	rmb_new(&h.lgr, 2 * ELEM, 8);
	ck_assert_uint_eq(window_next_cnt(&h.lgr, 2 * ELEM), 20);
	h.eng.cfg.rmb_elems = 3;
	ck_assert_uint_eq(window_next_cnt(&h.lgr, 4 * ELEM), 3);
}

START_TEST(memory_and_regions_that_cannot_be_had)
{
	h.dev.reg_err = -ENOMEM;
	ck_assert_ptr_null(rmb_new(&h.lgr, ELEM, 8));
	ck_assert_uint_eq(h.lgr.rmb_cnt, 0);
	ck_assert_uint_eq(h.eng.ctr.refused_memory, 1);
	h.dev.reg_err = 0;
	h.lgr.rmb_cnt = SMCR_RMBS_PER_GROUP;
	ck_assert_ptr_null(rmb_new(&h.lgr, ELEM, 1));
	h.lgr.rmb_cnt = 0;
}

START_TEST(a_link_is_registered_once)
{
	struct rmb *rmb = rmb_new(&h.lgr, ELEM, 1);
	unsigned before = h.dev.mr_cnt;

	ck_assert_ptr_nonnull(rmb->mr[0]);
	ck_assert_int_eq(rmb_register(rmb, h.link), 0);
	ck_assert_uint_eq(h.dev.mr_cnt, before);
	rmb_deregister_all(&h.lgr, h.link);
	rmb_deregister_all(&h.lgr, h.link);
	ck_assert_uint_eq(h.dev.mr_cnt, before - 1);
}

START_LOOP_TEST(eye_catchers_only_where_the_group_has_them, 0, 2)
{
	teardown();
	host_init(&h, _i == 1);
	struct rmb *rmb = rmb_new(&h.lgr, ELEM, 1);
	uint8_t idx = rmb_elem_get_from(rmb);
	uint8_t *p = rmb->units[idx - 1].mem;
	rmb_elem_mark(rmb, idx);
	if (!h.lgr.eye_catcher) {
		ck_assert_uint_eq(p[0] | p[1] | p[2] | p[3], 0);
		p[0] = 1;
		ck_assert(rmb_elem_intact(rmb, idx));
		return;
	}
	ck_assert_int_eq(memcmp(p, "\xd9\xd4\xc2\xc5", 4), 0);
	ck_assert(rmb_elem_intact(rmb, idx));
	p[3] ^= 1;
	ck_assert(!rmb_elem_intact(rmb, idx));
}

/* -- the peer's -- */

START_TEST(remote_rmbs_are_found_by_their_rtoken)
{
	struct remote_rmb *one = remote_rmb_add(&h.lgr, h.link, 0x10, 0x1000);
	struct remote_rmb *two = remote_rmb_add(&h.lgr, h.link, 0x20, 0x1000);

	ck_assert_ptr_eq(remote_rmb_add(&h.lgr, h.link, 0x10, 0x1000), one);
	ck_assert_ptr_eq(remote_rmb_find(&h.lgr, h.link, 0x20, NULL), two);
	ck_assert_ptr_null(remote_rmb_find(&h.lgr, h.link, 0x30, NULL));
	/* One region may hold several RMBs. */
	ck_assert_ptr_ne(remote_rmb_add(&h.lgr, h.link, 0x10, 0x2000), one);
	/* rkeys count on their link alone. */
	ck_assert_ptr_null(remote_rmb_find(&h.lgr, &(struct link){ .slot = 1 }, 0x10, NULL));
	ck_assert_uint_eq(h.lgr.remote_rmb_cnt, 3);
	remote_rmb_free(&h.lgr, one);
	ck_assert_uint_eq(h.lgr.remote_rmb_cnt, 2);
}

START_TEST(a_group_has_255_remote_rmbs_at_most)
{
	for (uint32_t i = 0; i < 255; i++)
		ck_assert_ptr_nonnull(remote_rmb_add(&h.lgr, h.link, i, 0));
	ck_assert_ptr_null(remote_rmb_add(&h.lgr, h.link, 255, 0));
	ck_assert_ptr_nonnull(remote_rmb_add(&h.lgr, h.link, 254, 0));
}

START_TEST(claimed_elements)
{
	struct remote_rmb *rr = remote_rmb_add(&h.lgr, h.link, 1, 0);

	remote_rmb_claim(rr, 255, 77);
	ck_assert_uint_eq(rr->conn_id[255], 77);
	ck_assert_uint_eq(rr->used, 1);
	/* The peer gave it to another connection (4.4.2): the first one lets go without harm. */
	remote_rmb_claim(rr, 255, 78);
	ck_assert_uint_eq(rr->used, 2);
	remote_rmb_release(rr, 255, 77);
	ck_assert_uint_eq(rr->conn_id[255], 78);
	ck_assert_uint_eq(rr->used, 1);
	remote_rmb_release(rr, 255, 78);
	ck_assert_uint_eq(rr->conn_id[255], 0);
	ck_assert_uint_eq(rr->used, 0);
}

/* Nobody writes into it any more, and its memory is there until the last one that could has let go. */
START_TEST(a_held_remote_rmb_outlives_its_place_in_the_group)
{
	struct remote_rmb *rr = remote_rmb_add(&h.lgr, h.link, 1, 0x1000);

	remote_rmb_claim(rr, 1, 77);
	remote_rmb_claim(rr, 1, 78);
	remote_rmb_free(&h.lgr, rr);
	ck_assert_uint_eq(h.lgr.remote_rmb_cnt, 0);
	ck_assert_ptr_null(remote_rmb_find(&h.lgr, h.link, 1, NULL));
	/* Memory that had been given back would be given out again. */
	void *other = malloc(sizeof(*rr));
	ck_assert_ptr_ne(other, (void *)rr);
	free(other);
	ck_assert(!rr->on[h.link->slot].known);
	remote_rmb_release(rr, 1, 77);
	ck_assert_uint_eq(rr->conn_id[1], 78);
	remote_rmb_release(rr, 1, 78);
}
