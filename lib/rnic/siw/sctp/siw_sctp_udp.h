/* SCTP packets of libusrsctp in UDP (RFC 6951): one UDP socket a device, whose port is the SCTP port, too. The
 * library knows a peer as an opaque value, which is made of its address and port here: a keyed hash, so that a
 * packet of a stranger needs no state. Peers of associations are remembered, and counted. */
#pragma once

#include "rnic/siw/sctp/siw_sctp_udp_tx.h"
#include "rnic/siw/siw_int.h"

struct siw_udp;

/* A packet whose CRC is right, from an address that may come; `opaque` is its sender. */
typedef void (*siw_udp_packet)(struct siw_udp *, void *opaque, const void *packet, size_t len);

#define SIW_UDP_SOURCES 64

struct siw_udp {
	struct siw_dev *dev;
	siw_udp_packet packet;
	int fd; /* -1: none */
	struct siw_udp_tx tx;
	uint64_t key;      /* of opaque values */
	uint32_t headers;  /* of a packet: IP, UDP and SCTP, which the library does not count as the path's MTU */
	uint32_t path_mtu; /* largest SCTP packet without its header */
	int64_t unknown_peers_due_ns, source_due_ns[SIW_UDP_SOURCES]; /* limits of peers without association */
	uint8_t in[65536];
};

struct siw_udp_peer {
	struct siw_udp_peer *next;
	struct siw_udp *udp;
	uint64_t opaque;
	struct sockaddr_storage at;
	unsigned refs;
	/* Set by the user: gets packets together, as it takes them so. Linux does not: where the kernel's SCTP gets
	 * such packets (from a neighbour on the same host, as no wire carries them) it cuts them apart and breaks its
	 * own memory (6.1). */
	bool takes_together;
	size_t too_long;   /* shortest packet that the path did not take in one piece since the last check; 0: none */
	uint32_t path_mtu; /* as siw_udp_peer_path_mtu() */
};

/* Opens on the first free port of the device's range, and sets dev->port; readable() gets the device. *u is zeroed
 * before; siw_udp_close() follows in either case. 0 or a negative errno with *err. */
int siw_udp_open(struct siw_udp *u, struct siw_dev *, siw_udp_packet, rnic_io_cb readable, const char **err);
/* No peers are left. */
void siw_udp_close(struct siw_udp *);

/* Sends what the library has queued; called after its calls, before the next wait. True: since the last call a packet
 * has found its path narrower. */
bool siw_udp_flush(struct siw_udp *);

/* Reads a bounded number of packets; sets dev->unfinished if more are left. Answers wait for siw_udp_flush(). */
void siw_udp_read(struct siw_udp *);
/* The library's output callback. Packets of peers that take several together may wait for siw_udp_flush(). */
int siw_udp_output(void *opaque, void *packet, size_t len, uint8_t tos, uint8_t set_df);

/* A reference to a peer, for an association: 0 or a negative errno. */
int siw_udp_peer_get(struct siw_udp *, const struct rnic_gid *, uint16_t port, struct siw_udp_peer **out);
/* The same for the one whose packet is being looked at; NULL when it is another, or memory is out. */
struct siw_udp_peer *siw_udp_peer_of(struct siw_udp *, void *opaque);
void siw_udp_peer_put(struct siw_udp_peer *);
/* As udp->path_mtu, but less when the path to this peer is narrower. */
uint32_t siw_udp_peer_path_mtu(struct siw_udp_peer *);
