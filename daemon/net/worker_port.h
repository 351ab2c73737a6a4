/* Assigns connections between two daemons with several workers to workers, so that each pair of workers has one link
 * group and the messages of a turn are not split over all of them, as with the kernel's hash. A worker connects from
 * source ports of its own class, and listeners for other daemons assign connections by the class. The class of a port
 * is its half modulo the number of workers, because the kernel uses even ports in sequence for connections: ports of a
 * daemon with one worker, or of a program, are spread evenly as well. Only the batching of messages depends on it:
 * without IP_LOCAL_PORT_RANGE (Linux 6.3) the kernel chooses. */
#pragma once

#include <stdint.h>
#include <sys/socket.h>

/* The source ports of one worker. */
struct worker_ports {
	uint16_t low, high; /* the system's range */
	unsigned nr, cnt;   /* the class, and the number of classes */
	uint32_t next;      /* where the next search starts */
};

/* cnt 1: the kernel chooses. start: any number, where the search starts. */
void worker_ports_init(struct worker_ports *, unsigned nr, unsigned cnt, uint32_t start);
/* connect(2) from a port of the class, or from another one when no tried port is free. */
int worker_ports_connect(struct worker_ports *, int fd, const struct sockaddr_storage *to);
/* For a listening socket that shares its port with those of cnt workers, opened in order. 0 or -errno. */
int worker_ports_deal(int fd, unsigned cnt);
