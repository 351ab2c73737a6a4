/* Which iWARP connections are allowed; see mpa_policy.h. */
#include "daemon/worker/mpa_policy.h"

#include <string.h>

#include "base/addr.h"
#include "daemon/net/net.h"
#include "daemon/service/service.h"

bool
mpa_may_dial(void *arg, const struct rnic_gid *to, const struct smcr_identity *middle)
{
	const struct session_pool *pool = arg;
	const struct config *cfg = pool->cfg;
	struct sockaddr_storage ss;

	if (memcmp(to->b, middle->addr, sizeof(middle->addr)) == 0)
		return true;
	addr_from_v6(to->b, 0, &ss);
	if (cfg->mpa_peers_cnt > 0)
		return net_allowed(cfg->mpa_peers, cfg->mpa_peers_cnt, &ss);
	return devices_near(pool->devices, to);
}

bool
mpa_may_connect(void *arg, const struct rnic_gid *from)
{
	const struct session_pool *pool = arg;
	const struct config *cfg = pool->cfg;
	struct sockaddr_storage ss;

	addr_from_v6(from->b, 0, &ss);
	if (cfg->mpa_clients_cnt > 0)
		return net_allowed(cfg->mpa_clients, cfg->mpa_clients_cnt, &ss) ||
		    smcr_has_peer(pool->env->eng, from->b);
	LIST_EACH(struct service, svc, &pool->services, node) {
		const struct config_service *c = &svc->settings->cfg;

		if (c->kind == CONFIG_EGRESS && net_allowed(c->allow, c->allow_cnt, &ss))
			return true;
	}
	return devices_near(pool->devices, from);
}
