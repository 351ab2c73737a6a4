/* Which VLAN a network interface is. */
#ifndef SMCRD_BASE_VLAN_H
#define SMCRD_BASE_VLAN_H

#include <stdint.h>

/* Its VLAN id; 0 when the interface is none of a VLAN's, or is not there. */
uint16_t vlan_of(const char *ifname);

#endif
