/* Which peers a port reaches, by the kernel's routes. For devices whose peers are known by IP addresses. */
#ifndef SMCRD_RNIC_ROUTE_H
#define SMCRD_RNIC_ROUTE_H

#include <stdbool.h>
#include <sys/socket.h>

/*
 * Leads the route from our address `from` to `to` out of our own interface (0: any), or to this machine? The kernel answers
 * at once, nothing goes out on the network. True when it cannot be asked.
 */
bool route_reaches(const struct sockaddr_storage *from, unsigned if_index, const struct sockaddr_storage *to);

#endif
