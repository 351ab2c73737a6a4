/*
 * SCTP packets of libusrsctp in UDP (RFC 6951): one UDP socket a device, whose port is the SCTP port, too. The library
 * knows a peer as an opaque value, which is made of its address and port here: a keyed hash, so that a packet of a
 * stranger needs no state. Peers of associations are remembered, and counted.
 */
#pragma once

#include "rnic/siw/siw_int.h"

struct siw_udp;
struct siw_udp_peer;

/* A packet whose CRC is right, from an address that may come; `opaque` says who sent it. */
typedef void (*siw_udp_packet)(struct siw_udp *, void *opaque, const void *packet, size_t len);

/* Opens on the first free port of the device's range, and sets dev->port. 0 or a negative errno with *err. */
int siw_udp_open(
    struct siw_dev *, siw_udp_packet, rnic_io_cb readable, void *ctx, struct siw_udp **out, const char **err);
/* NULL is nothing. No peers are left. */
void siw_udp_close(struct siw_udp *);
void *siw_udp_ctx(const struct siw_udp *);
/* Bytes of an IP packet that the library does not count as the path's MTU: the headers of IP, UDP and SCTP. */
uint32_t siw_udp_headers(const struct siw_dev *);
/* Largest SCTP packet without its header, as the library counts a path's MTU. */
uint32_t siw_udp_path_mtu(const struct siw_udp *);

/* What the library has sent goes, unless it went before: to be called behind its calls, before anything else is waited for. True: a
 * packet to a peer has found its path narrower, since this was called last. */
bool siw_udp_flush(struct siw_udp *);

/* Reads a bounded number of packets; with more to read dev->unfinished is set. What they are answered by waits for siw_udp_flush(). */
void siw_udp_read(struct siw_udp *);
/* The library's output callback. Packets of peers that take several together may wait for siw_udp_flush(). */
int siw_udp_output(void *opaque, void *packet, size_t len, uint8_t tos, uint8_t set_df);

/* A reference to a peer, for an association: 0 or a negative errno. */
int siw_udp_peer_get(struct siw_udp *, const struct rnic_gid *, uint16_t port, struct siw_udp_peer **out);
/* The same for the one whose packet is being looked at; NULL when it is another, or memory is out. */
struct siw_udp_peer *siw_udp_peer_of(struct siw_udp *, void *opaque);
void siw_udp_peer_put(struct siw_udp_peer *);
void *siw_udp_peer_opaque(const struct siw_udp_peer *);
/*
 * From now on it gets packets together: it has said that it takes them so. Linux does not: where the kernel's SCTP is handed such
 * packets (by a neighbour on the same host, as no wire carries them) it cuts them apart and breaks its own memory (6.1).
 */
void siw_udp_peer_gather(struct siw_udp_peer *);
/* As siw_udp_path_mtu(), but less when the way to this peer is narrower. */
uint32_t siw_udp_peer_path_mtu(struct siw_udp_peer *);
struct unknown_peer siw_udp_peer_address(const struct siw_udp_peer *);
