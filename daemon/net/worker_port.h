/*
 * Which worker of the other daemon gets a connection between two daemons with several workers. Left to the kernel's hash, each
 * worker would have connections with each of the peer's workers, and as many link groups: messages of a turn would be split
 * over all of these. So a worker connects from source ports of a class of its own, and listeners for other daemons deal what
 * comes to them by the class: as many workers at both ends are one link group each. A port's class is its half modulo the
 * number of workers, because the kernel takes even ports one after the other for connections: those of a daemon with one
 * worker, or of a program, are dealt out evenly, too.
 *
 * Nothing depends on it but how well messages gather: without IP_LOCAL_PORT_RANGE (Linux 6.3) the kernel chooses.
 */
#pragma once

#include <stdint.h>
#include <sys/socket.h>

/* The source ports of one worker. */
struct worker_ports {
	uint16_t low, high; /* the system's range */
	unsigned nr, cnt;   /* the class, and how many there are */
	uint32_t next;      /* where to look for the next one */
};

/* cnt 1: the kernel chooses. start: any number; where to begin. */
void worker_ports_init(struct worker_ports *, unsigned nr, unsigned cnt, uint32_t start);
/* connect() from a port of the class, or from another one when none that was tried is free. As connect(2). */
int worker_ports_connect(struct worker_ports *, int fd, const struct sockaddr_storage *to);
/* Of a listening socket that shares its port with those of cnt workers, opened in their order. 0 or -errno: the kernel deals. */
int worker_ports_deal(int fd, unsigned cnt);
