/* Which VLAN a network interface is. */
#ifndef SMCRD_BASE_VLAN_H
#define SMCRD_BASE_VLAN_H

#include <stdint.h>

/* The VLAN id of an interface; 0 when it is in no VLAN, or is not there. */
uint16_t vlan_of(const char *ifname);

#endif
