#include "base/list.h"

#include <stdlib.h>

#include "base/minmax.h"
#include "unit.h"

/* The node is not the first member, and the struct is aligned more than a node. */
struct item {
	max_align_t before;
	struct list_node node;
};

static struct list_node head;

static void
fill(struct item *items, unsigned cnt)
{
	list_init(&head);
	for (unsigned i = 0; i < cnt; i++)
		list_push(&head, &items[i].node);
}

START_TEST(a_walk_sees_each_element_in_order)
{
	struct item items[3];
	unsigned cnt = 0;

	fill(items, 3);
	LIST_EACH(const struct item, it, &head, node)
		ck_assert_ptr_eq(it, &items[cnt++]);
	ck_assert_uint_eq(cnt, 3);
	list_init(&head);
	LIST_EACH(struct item, it, &head, node)
		ck_abort_msg("an empty list has %p", (void *)it);
}

START_TEST(the_current_element_may_be_freed)
{
	unsigned cnt = 0;

	list_init(&head);
	for (unsigned i = 0; i < 4; i++) {
		struct item *it = malloc(sizeof(*it));

		list_push(&head, &it->node);
	}
	LIST_EACH(struct item, it, &head, node) {
		list_remove(&it->node);
		free(it);
		if (++cnt == 3)
			break;
	}
	ck_assert_ptr_nonnull(LIST_FIRST(struct item, &head, node));
	free(LIST_POP(struct item, &head, node));
	ck_assert(list_empty(&head));
}

START_TEST(first_next_and_pop_know_the_end)
{
	struct item items[2], *none = NULL;

	fill(items, 2);
	ck_assert_ptr_eq(LIST_FIRST(struct item, &head, node), &items[0]);
	ck_assert_ptr_eq(LIST_NEXT(struct item, &items[0], &head, node), &items[1]);
	ck_assert_ptr_null(LIST_NEXT(struct item, &items[1], &head, node));
	ck_assert_ptr_null(LIST_NEXT(struct item, none, &head, node));
	ck_assert_ptr_eq(LIST_POP(struct item, &head, node), &items[0]);
	ck_assert_ptr_eq(LIST_POP(struct item, &head, node), &items[1]);
	ck_assert_ptr_null(LIST_POP(struct item, &head, node));
	ck_assert_ptr_null(LIST_FIRST(struct item, &head, node));
}

START_TEST(smaller_and_larger_keep_their_type)
{
	ck_assert_uint_eq(min_u8(3, 255), 3);
	ck_assert_uint_eq(max_u16(3, 65535), 65535);
	ck_assert_uint_eq(min_u32(UINT32_MAX, UINT32_MAX - 1), UINT32_MAX - 1);
	ck_assert_uint_eq(max_u64(UINT64_MAX, 1), UINT64_MAX);
	ck_assert_int_eq(min_i64(-1, 1), -1);
	ck_assert_int_eq(max_i64(INT64_MIN, -1), -1);
	ck_assert_uint_eq(min_size(7, 7), 7);
}
