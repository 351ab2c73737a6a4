/* The known key that an unknown one was probably meant to be: see config_int.h. */
#include "base/typo.h"
#include "daemon/config/config_int.h"

const char *
config_nearest(unsigned places, const char *name)
{
	struct typo typo = typo_of(name);

	for (const struct config_key *k = config_keys; k->name != NULL; k++)
		if ((k->where & places) != 0)
			typo_compare(&typo, k->name);
	for (const struct config_section *s = config_sections + 1; s->name != NULL; s++)
		if ((places & CONFIG_AT_TOP) != 0 || ((places & CONFIG_AT_INCLUDED) != 0 && s->list_max > 0))
			typo_compare(&typo, s->name);
	return typo.nearest;
}
