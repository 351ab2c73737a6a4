/* Ports of RDMA cards; see device_cards.h. */
#include "daemon/device/device_cards.h"

#include <arpa/inet.h>
#include <stdlib.h>

void
device_cards_init(struct device_cards *c)
{
	*c = (struct device_cards){ 0 };
}

void
device_cards_fini(struct device_cards *c)
{
	free(c->ports);
	device_cards_init(c);
}

void
device_cards_list(struct device_cards *c, int64_t now_ns)
{
	struct verbs_port *ports = NULL;
	const char *why = "";
	unsigned cnt = 0;
	int rc = verbs_list(&ports, &cnt, &why);

	device_cards_fini(c);
	*c = (struct device_cards){ .rc = rc, .why = why, .at_ns = now_ns, .listed = true };
	if (rc != 0)
		return;
	c->ports = ports;
	c->cnt = cnt;
}

void
device_cards_forget(struct device_cards *c)
{
	device_cards_fini(c);
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
