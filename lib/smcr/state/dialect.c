/* Deviations for a foreign peer; see dialect.h. */
#include "smcr/state/dialect.h"

void
dialect_no_extension(struct dialect *d)
{
	d->foreign = true;
	d->confirm_repeats_link = true;
	d->closing_moves_unasked = true;
	d->rkeys_asked_once = true;
	d->deletes_when_complete = true;
	d->delete_rkey_is_final = true;
	d->wrap_0_is_next = true;
	d->one_rendezvous = true;
	d->reset_unseen = true;
	d->cursor_said_once = true;
}

void
dialect_choose(struct dialect *d, const struct clc_smcrd_ext *ext, uint8_t features)
{
	uint8_t common = ext->present ? ext->features & features : 0;

	*d = (struct dialect){
		.starts_over = (common & CLC_FEATURE_START_OVER) != 0,
		.says_operator = (common & CLC_FEATURE_OPERATOR) != 0,
		.rst_after_c = (common & CLC_FEATURE_RST_AFTER_C) != 0,
	};
	if (!ext->present)
		dialect_no_extension(d);
}
