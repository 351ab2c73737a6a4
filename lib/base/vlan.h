/* Which VLAN a network interface is. */
#pragma once

#include <stdint.h>

/* The VLAN id of an interface; 0 when it is in no VLAN, or is not there. */
uint16_t vlan_of(const char *ifname);
