/* The way out of SCTP packets in UDP: packets of one length to one peer are gathered and handed to the kernel
 * together, which cuts them apart as late as it can (UDP_SEGMENT), for another network namespace or virtual machine
 * of the same host only where they are received; and how long a packet may be. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

struct siw_udp_tx {
	int fd;       /* the socket, not owned */
	bool no_gso;  /* the kernel cannot do it */
	bool narrow;  /* a packet was too long for its path, since this was set to false */
	uint8_t *out; /* packets that wait, one behind the other */
	size_t len;
	size_t each;    /* the length of all but the last, which may be shorter */
	bool is_closed; /* the last one is shorter */
	unsigned cnt;
	const struct sockaddr_storage *to;
	size_t *too_long;
};

/* fd: a UDP socket of that family, which sends nothing in fragments from now on. 0 or -ENOMEM. */
int siw_udp_tx_init(struct siw_udp_tx *, int fd, int family);
/* What waits is lost. All zero is nothing. */
void siw_udp_tx_fini(struct siw_udp_tx *);
/* Sends a packet. What does not go is lost, as on the way. One that is too long for the path goes in fragments, and
 * *too_long becomes its length, unless there is a shorter one; NULL: it does not go. */
void siw_udp_tx_put(
    struct siw_udp_tx *, const struct sockaddr_storage *to, size_t *too_long, const void *packet, size_t len);
/* The same with siw_udp_tx_flush(), or before; the packet is copied, `to` and too_long are good until then. */
void siw_udp_tx_gather(
    struct siw_udp_tx *, const struct sockaddr_storage *to, size_t *too_long, const void *packet, size_t len);
void siw_udp_tx_flush(struct siw_udp_tx *);

/* The MTU of the path between these, of IP, as the kernel knows it; 0: it does not. */
uint32_t siw_udp_path_mtu_of(const struct sockaddr_storage *from, const struct sockaddr_storage *to);
