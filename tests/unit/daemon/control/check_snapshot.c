/* Rows that are kept: in order, whole, with their texts, bounded. */
#include "daemon/control/snapshot.h"

#include <stdlib.h>
#include <string.h>

#include "unit.h"

static struct snapshot seen;

static void
setup(void)
{
	seen = (struct snapshot){ .bytes_max = 1 << 24 };
}

static void
teardown(void)
{
	snapshot_fini(&seen);
}

UNIT_FIXTURE(setup, teardown);

START_TEST(rows_stay_in_order_by_kind)
{
	uint32_t expected = 0;

	for (uint32_t i = 0; i < 1000; i++) {
		snapshot_add(&seen, REPORT_WORKER, &(struct report_worker){ .worker = i });
		snapshot_add(&seen, REPORT_GROUP, &(struct report_group){ .worker = 7 });
	}
	ck_assert(!seen.failed);
	SNAPSHOT_EACH(row, &seen, REPORT_WORKER)
		ck_assert_uint_eq(((const struct report_worker *)row)->worker, expected++);
	ck_assert_uint_eq(expected, 1000);
	ck_assert_uint_eq(((const struct report_group *)snapshot_first(&seen, REPORT_GROUP))->worker, 7);
	ck_assert_ptr_null(snapshot_first(&seen, REPORT_LINK));
}

/* Texts, also of rows in a row's array, and members of its struct; the originals are gone by then. */
START_TEST(what_a_row_points_to_is_kept)
{
	char name[] = "web", reason[] = "a reason", os[] = "peer";
	struct report_reset counts[2] = { { reason, 11 }, { NULL, 22 } };
	struct report_figures row = { .name = name, .resets = { counts, 2 } };
	struct report_group group = { .g = { .state = os } };

	snapshot_add(&seen, REPORT_FIGURES, &row);
	snapshot_add(&seen, REPORT_GROUP, &group);
	memset(name, 'x', 3);
	memset(reason, 'x', 8);
	memset(os, 'x', 4);
	memset(counts, 0, sizeof(counts));
	const struct report_figures *kept = snapshot_first(&seen, REPORT_FIGURES);
	const struct report_reset *c = kept->resets.at;
	ck_assert_str_eq(kept->name, "web");
	ck_assert_uint_eq(kept->resets.cnt, 2);
	ck_assert_str_eq(c[0].text, "a reason");
	ck_assert_uint_eq(c[0].cnt, 11);
	ck_assert_ptr_null(c[1].text);
	ck_assert_uint_eq(c[1].cnt, 22);
	ck_assert_uint_eq(kept->peer.cnt, 0);
	ck_assert_str_eq(((const struct report_group *)snapshot_first(&seen, REPORT_GROUP))->g.state, "peer");
}

/* Beyond the limit all is given up; what there is can still be walked. */
START_TEST(rows_are_bounded)
{
	unsigned cnt = 0;

	seen.bytes_max = 256 * 1024;
	for (unsigned i = 0; i < 100000 && !seen.failed; i++)
		snapshot_add(&seen, REPORT_WORKER, &(struct report_worker){ .worker = i });
	ck_assert(seen.failed);
	ck_assert_uint_le(seen.bytes, 256 * 1024);
	SNAPSHOT_EACH(row, &seen, REPORT_WORKER)
		ck_assert_uint_eq(((const struct report_worker *)row)->worker, cnt++);
	ck_assert_uint_gt(cnt, 100);
	snapshot_add(&seen, REPORT_WORKER, &(struct report_worker){ .worker = 0 });
	SNAPSHOT_EACH(row, &seen, REPORT_WORKER)
		cnt--;
	ck_assert_uint_eq(cnt, 0);
}

/* A text may be longer than a block. */
START_TEST(a_long_text_is_kept)
{
	char *text = malloc(1 << 20);

	memset(text, 'a', 1 << 20);
	text[(1 << 20) - 1] = '\0';
	snapshot_add(&seen, REPORT_STATUS, &(struct report_status){ .src.version = text });
	ck_assert(!seen.failed);
	ck_assert_str_eq(((const struct report_status *)snapshot_first(&seen, REPORT_STATUS))->src.version, text);
	free(text);
}
