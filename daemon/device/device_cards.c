/* Ports of RDMA cards; see device_cards.h. */
#include "daemon/device/device_cards.h"

#include <arpa/inet.h>
#include <stdlib.h>

void
device_cards_forget(struct device_cards *c)
{
	free(c->ports);
	*c = (struct device_cards){ 0 };
}

void
device_cards_list(struct device_cards *c, int64_t now_ns)
{
	device_cards_forget(c);
	c->at_ns = now_ns;
	c->listed = true;
	c->why = "";
	c->rc = verbs_list(&c->ports, &c->cnt, &c->why);
}

const char *
device_gid_type_str(enum verbs_gid_type type)
{
	switch (type) {
	case VERBS_GID_IB:
		return "IB";
	case VERBS_GID_ROCE_V1:
		return "RoCE v1";
	case VERBS_GID_ROCE_V2:
		return "RoCE v2";
	}
	return "?";
}

char *
device_gid_format(const struct rnic_gid *gid, char buf[DEVICE_GID_MAX])
{
	if (inet_ntop(AF_INET6, gid->b, buf, DEVICE_GID_MAX) == NULL)
		buf[0] = '\0';
	return buf;
}
