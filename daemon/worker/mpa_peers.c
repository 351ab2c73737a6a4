/* Where iWARP connections may lead; see mpa_peers.h. */
#include "daemon/worker/mpa_peers.h"

#include <string.h>

#include "base/addr.h"
#include "daemon/device/devices.h"
#include "daemon/net.h"
#include "daemon/worker/worker_priv.h"

bool
mpa_peers_allow(void *worker, const struct rnic_gid *to, const struct smcr_identity *middle)
{
	struct worker *w = worker;
	struct sockaddr_storage ss;

	if (memcmp(to->b, middle->addr, sizeof(middle->addr)) == 0)
		return true;
	addr_from_v6(to->b, 0, &ss);
	if (w->mpa_peers_cnt > 0)
		return net_allowed(w->mpa_peers, w->mpa_peers_cnt, &ss);
	return devices_near(w, to);
}
