/* Far ends by name; see far_name.h. */
#include "daemon/session/far_name.h"

#include "base/addr.h"
#include "daemon/session/service.h"
#include "daemon/session/targets.h"

/* Which of the service's targets leads there; to_cnt: none. */
static unsigned
target_to(const struct service *svc, const struct sockaddr_storage *there)
{
	const struct settings *st = svc->settings;
	struct endpoint e;

	for (unsigned i = 0; targets_address(st->targets, i, &e); i++)
		if (e.target < st->cfg.to_cnt && addr_matches(there, &e.addr))
			return e.target;
	return st->cfg.to_cnt;
}

const char *
far_name_of(const struct service *svc, const struct sockaddr_storage *there)
{
	const struct config_service *cfg = &svc->settings->cfg;
	unsigned nr = cfg->to_cnt == 1 ? 0 : target_to(svc, there);

	return nr == cfg->to_cnt || config_target_is_literal(&cfg->to[nr]) ? "" : cfg->to[nr].host;
}

const struct service *
far_name_find(const struct session_pool *pool, const struct sockaddr_storage *there, unsigned *cnt)
{
	const struct service *found = NULL;

	*cnt = 0;
	LIST_EACH(const struct service, svc, &pool->services, node) {
		const struct config_service *cfg = &svc->settings->cfg;

		if (cfg->kind != CONFIG_INGRESS || target_to(svc, there) == cfg->to_cnt)
			continue;
		++*cnt;
		if (found == NULL || far_name_of(found, there)[0] == '\0')
			found = svc;
	}
	return found;
}
