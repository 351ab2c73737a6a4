/* User-defined enterprise ids (UEIDs) of SMC version 2 as values of settings; see config_value.h. */
#include <string.h>

#include "daemon/config/config.h"
#include "daemon/config/config_value.h"

int
value_set_eids(const struct config_key *key, void *at, const struct config_value *v, char why[CONFIG_WHY_MAX])
{
	struct clc_eid eids[CLC_MAX_EIDS];
	uint8_t cnt = (uint8_t)v->item_cnt;
	char buf[VALUE_SHOW_MAX];
	int rc = 0;

	if (v->item_cnt > CLC_MAX_EIDS)
		return value_bad(why, "has more than %d entries", CLC_MAX_EIDS);
	for (unsigned i = 0; i < cnt; i++) {
		const struct config_value item = { .kind = CONFIG_V_TEXT, .text = v->items[i] };

		if (clc_eid_parse(v->items[i], &eids[i]) != 0) {
			memset(&eids[i], 0, sizeof(eids[i]));
			rc = value_also_bad(why,
			    "has %s, which is no UEID: 1 to %d of A-Z, 0-9, '.' and '-', a letter or digit first, no two dots together",
			    value_show(&item, buf), CLC_EID_LEN);
			continue;
		}
		for (unsigned k = 0; k < i; k++)
			if (memcmp(&eids[k], &eids[i], sizeof(eids[i])) == 0)
				rc = value_also_bad(why, "has %s twice", value_show(&item, buf));
	}
	if (rc != 0)
		return rc;
	memset(at, 0, key->len);
	memcpy(at, &cnt, sizeof(cnt));
	memcpy((uint8_t *)at + sizeof(cnt), eids, cnt * sizeof(eids[0]));
	return 0;
}

void
value_print_eids(const struct config_key *key, const void *at, FILE *out)
{
	const uint8_t *cnt = at;
	char text[CLC_EID_LEN + 1];
	struct clc_eid eid;

	(void)key;
	fputs("[ ", out);
	for (unsigned i = 0; i < *cnt; i++) {
		memcpy(&eid, cnt + 1 + i * sizeof(eid), sizeof(eid));
		clc_eid_str(&eid, text);
		fprintf(out, "%s\"%s\"", i == 0 ? "" : ", ", text);
	}
	fputs(*cnt == 0 ? "]" : " ]", out);
}
