/*
 * Whether there is room for one more link group. Each takes a queue pair for as long as it lives, though nothing may run over
 * it, and anybody can ask for one: so a share of a device's queue pairs stays for first contacts of our own and for second
 * links, an address has a number of groups of its own, and groups without connections end early when it gets narrow.
 */
#pragma once

#include <stdint.h>

#include "smcr/smcr.h"

/* Before a group is made: 0, or the diagnosis to decline with (counted). May end groups that are idle. */
uint32_t room_for_group(struct smcr *, enum smcr_role, const struct smcr_identity *, struct rnic_dev *);
