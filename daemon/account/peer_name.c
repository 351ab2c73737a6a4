/* Configured names of peers; see peer_name.h. */
#include "daemon/account/peer_name.h"

#include "daemon/state/service_state.h"
#include "daemon/target/targets.h"

const char *
peer_name_of(const struct service *svc, const struct sockaddr_storage *there)
{
	const struct settings *st = svc->settings;
	unsigned nr = 0;

	if (st->cfg.to_cnt != 1 && !targets_find(st->targets, there, &nr))
		return "";
	return config_target_is_literal(&st->cfg.to[nr]) ? "" : st->cfg.to[nr].host;
}

const struct service *
peer_name_find(const struct session_pool *pool, const struct sockaddr_storage *there, unsigned *cnt)
{
	const struct service *found = NULL;

	*cnt = 0;
	LIST_EACH(const struct service, svc, &pool->services, node) {
		const struct settings *st = svc->settings;
		unsigned nr;

		if (st->cfg.kind != CONFIG_INGRESS || !targets_find(st->targets, there, &nr))
			continue;
		++*cnt;
		if (found == NULL || peer_name_of(found, there)[0] == '\0')
			found = svc;
	}
	return found;
}
