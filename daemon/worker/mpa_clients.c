/* Who may open MPA connections; see mpa_clients.h. */
#include "daemon/worker/mpa_clients.h"

#include "base/addr.h"
#include "daemon/device/devices.h"
#include "daemon/net.h"
#include "daemon/session/service.h"
#include "daemon/worker/worker_priv.h"

static bool
may_use_a_service(const struct worker *w, const struct sockaddr_storage *from)
{
	LIST_FOREACH(n, &w->services) {
		const struct config_service *cfg = &CONTAINER_OF(n, struct service, node)->settings->cfg;

		if (cfg->kind == CONFIG_EGRESS && net_allowed(cfg->allow, cfg->allow_cnt, from))
			return true;
	}
	return false;
}

bool
mpa_clients_allow(void *worker, const struct rnic_gid *from)
{
	struct worker *w = worker;
	struct sockaddr_storage ss;

	addr_from_v6(from->b, 0, &ss);
	if (w->mpa_clients_cnt > 0)
		return net_allowed(w->mpa_clients, w->mpa_clients_cnt, &ss) || smcr_has_peer(w->eng, from->b);
	return may_use_a_service(w, &ss) || devices_near(w, from);
}
