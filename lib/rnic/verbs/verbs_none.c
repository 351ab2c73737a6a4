/* Replaces the verbs device in an smcrd built without libibverbs: no cards, and the reason. */
#include <errno.h>

#include "rnic/verbs/verbs.h"

/* Nothing here looks at its parameters. */
#pragma GCC diagnostic ignored "-Wunused-parameter"

static const char reason[] = "this smcrd was built without libibverbs";

int
verbs_list(struct verbs_port **ports, unsigned *cnt, const char **why)
{
	*why = reason;
	return -ENOSYS;
}

const struct verbs_gid *
verbs_choose_gid(
    const struct verbs_port *port, enum rnic_gid_type type, const struct sockaddr_storage *addr, unsigned ifindex)
{
	return NULL;
}

void
verbs_config_init(struct verbs_config *cfg)
{
	*cfg = (struct verbs_config){ 0 };
}

int
verbs_open(const struct verbs_config *cfg, const struct rnic_loop *loop, struct rng *rng, struct rnic_dev **dev,
    const char **why)
{
	*why = reason;
	return -ENOSYS;
}

bool
verbs_gid_present(const struct rnic_dev *dev)
{
	return false;
}

const struct verbs_port *
verbs_port_of(const struct rnic_dev *dev)
{
	return NULL;
}

bool
verbs_card_listed(const char *dev)
{
	return true;
}
