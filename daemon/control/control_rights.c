/* The right to give orders, by the user and the groups that the kernel recorded when the client connected; the file mode of the socket is
 * only the right to connect. */
#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "daemon/control/control_parts.h"

#define GROUPS_FEW 64

/* The effective group, or one of the supplementary ones. */
static bool
client_has_group(int fd, gid_t gid)
{
	gid_t few[GROUPS_FEW], *groups = few;
	socklen_t len = sizeof(few);
	struct ucred cred;
	socklen_t cred_len = sizeof(cred);
	bool found = false;

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &cred_len) != 0)
		return false;
	if (cred.gid == gid)
		return true;
	int rc = getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, groups, &len);
	/* The kernel has written the length that it needs. */
	if (rc != 0 && errno == ERANGE && (groups = malloc(len)) != NULL)
		rc = getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, groups, &len);
	for (size_t i = 0; rc == 0 && i < len / sizeof(*groups); i++)
		found = found || groups[i] == gid;
	if (groups != few)
		free(groups);
	return found;
}

bool
control_may_order(const struct control_client *c)
{
	const struct config_admins *admins = &c->ctl->admins;

	return c->trusted || admins->orders == CONFIG_ORDERS_ALL ||
	    (admins->orders == CONFIG_ORDERS_GROUP && client_has_group(c->io.fd, admins->gid));
}
