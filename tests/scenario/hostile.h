/*
 * A hostile run: hosts 0 and 1 are honest and talk with one another and with
 * host 2, which lies (liar.h). It has four parts: everybody talks; the liar may
 * fall silent; its process ends; the honest hosts come to rest. Judged is what
 * an honest host owes to its users whatever a peer does:
 *
 *	- connections between honest hosts end as their applications end them, on
 *	  RDMA, with every byte, and their engines never find fault with each other
 *	- they are established as soon as they would be without the liar
 *	- a group has connections of one peer: those of the liar share none with
 *	  those of an honest host
 *	- the liar writes into RMBs of its own groups alone, and into no element that
 *	  a connection between honest hosts uses
 *	- what it makes a host hold stays below the bounds (bounds.c) all the time
 *	- when it is gone and time has passed nothing is left of it: no connection,
 *	  group, link, element, queue pair or memory region
 *
 * Its own connections may end in any way, and what arrives on them may be
 * anything.
 */
#pragma once

#include "tests/scenario/liar.h"

/* After each turn of a host. The bounds and levels of protection hold in any run, the rest is looked at in a hostile one. */
void hostile_look(struct host *);
/* Is a protocol error in this group the engine's fault? Not where the peer lies. */
bool hostile_judges(const struct host *, uint32_t group_id);
/* A connection between honest hosts took so long to be established. */
void hostile_check_set_up(const struct host *, const struct flow *, int64_t took_ns);
/* An honest host's connection of this flow is established. */
void hostile_check_level(const struct host *, const struct flow *, const struct smcr_conn *);
/* struct sim_config.placed */
void hostile_placed(
    struct host *hosts, const struct rnic_dev *from, struct rnic_qp *to, const uint8_t *ptr, size_t len);
/* The connection has a liar at one end. */
bool hostile_flow(const struct flow *);
