/* VLAN ids of interfaces; see vlan.h. */
#include "base/vlan.h"

#include <linux/if_vlan.h>
#include <linux/sockios.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

uint16_t
vlan_of(const char *ifname)
{
	struct vlan_ioctl_args args = { .cmd = GET_VLAN_VID_CMD };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	uint16_t vlan = 0;

	(void)snprintf(args.device1, sizeof(args.device1), "%s", ifname);
	if (fd >= 0 && ioctl(fd, SIOCGIFVLAN, &args) == 0)
		vlan = (uint16_t)(args.u.VID & 0xfff);
	if (fd >= 0)
		close(fd);
	return vlan;
}
