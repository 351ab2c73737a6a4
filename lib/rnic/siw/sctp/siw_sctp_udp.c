/* Soft iWARP, DDP over SCTP: packets in UDP; see siw_sctp_udp.h. */
#include "rnic/siw/sctp/siw_sctp_udp.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <usrsctp.h>

#include "base/addr.h"
#include "base/minmax.h"
#include "iwarp/segq.h"
#include "wire/mpa.h"

#define PACKET_MAX 9216 /* that we send: a larger one would not be quicker */
#define READ_BUDGET 128 /* packets a turn */
#define SCTP_HEADER_LEN 12
#define CRC_AT 8
#define IPV4_HEADER_LEN 20
#define IPV6_HEADER_LEN 40
#define UDP_HEADER_LEN 8
#define DATA_HEADER_LEN 16
#define PATH_MTU_MIN \
	(DATA_HEADER_LEN + SEGQ_MESSAGE_MIN) /* as the library counts: with all of a message in one packet */
#define SHORTER(len) ((len) / 4 * 3)         /* where the kernel does not say how long a packet may be */
#define SOCKET_BUFFER (1024 * 1024)
#define BUCKETS 256
/* Packets that belong to no association, and all that make one, also from an address that has one: each may cost an
 * answer, and the library remembers set-ups for a minute. */
#define UNKNOWN_PEERS_AT_ONCE 256
#define UNKNOWN_PEER_EVERY_NS 1000000
/* A quarter of that is for addresses that share a place in source_due_ns: one that takes all it gets leaves others
 * theirs. */
#define OF_SOURCE 4
/* Chunks that make associations. A packet without association is handled by its first chunk (RFC 9260 8.4, 8.5). */
#define CHUNK_INIT 1
#define CHUNK_COOKIE_ECHO 10
/* The answer returns each unknown parameter. 16 IPv6 addresses and the usual parameters of a stack fit. */
#define INIT_PACKET_MAX 512

/* The library's output callback knows a peer, and nothing else. */
static struct {
	struct siw_udp_peer *peers[BUCKETS];
	struct siw_udp *udp; /* whose packet is being looked at, and who sent it */
	uint64_t opaque;
	struct sockaddr_storage from;
} world;

/* -- peers -- */

static uint64_t
hash_of(const struct siw_udp *u, const uint8_t *addr, size_t len, uint16_t port)
{
	uint64_t word[3] = { 0 }, h = u->key;

	memcpy(word, addr, len);
	word[2] = port;
	for (unsigned i = 0; i < 3; i++) {
		h = (h ^ word[i]) * 0x9e3779b97f4a7c15u;
		h ^= h >> 29;
		h *= 0xbf58476d1ce4e5b9u;
		h ^= h >> 32;
	}
	return h;
}

static uint64_t
opaque_of(const struct siw_udp *u, const struct sockaddr_storage *at)
{
	uint8_t v6[16];

	addr_to_v6(at, v6);
	return hash_of(u, v6, sizeof(v6), addr_port(at)) | 1; /* 0 is everybody's */
}

static struct siw_udp_peer *
peer_find(uint64_t opaque)
{
	struct siw_udp_peer *p = world.peers[opaque / 2 % BUCKETS];

	while (p != NULL && p->opaque != opaque)
		p = p->next;
	return p;
}

static struct siw_udp_peer *
peer_ref(struct siw_udp *u, uint64_t opaque, const struct sockaddr_storage *at)
{
	struct siw_udp_peer *p = peer_find(opaque), **bucket = &world.peers[opaque / 2 % BUCKETS];

	if (p == NULL) {
		p = calloc(1, sizeof(*p));
		if (p == NULL)
			return NULL;
		*p = (struct siw_udp_peer){
			.next = *bucket, .udp = u, .opaque = opaque, .at = *at, .path_mtu = u->path_mtu
		};
		*bucket = p;
		usrsctp_register_address((void *)(uintptr_t)opaque);
	}
	p->refs++;
	return p;
}

int
siw_udp_peer_get(struct siw_udp *u, const struct rnic_gid *gid, uint16_t port, struct siw_udp_peer **out)
{
	struct sockaddr_storage at;
	int rc = iface_remote(&u->dev->cfg.addr, gid, port, &at);

	if (rc < 0)
		return rc;
	*out = peer_ref(u, opaque_of(u, &at), &at);
	return *out == NULL ? -ENOMEM : 0;
}

struct siw_udp_peer *
siw_udp_peer_of(struct siw_udp *u, void *opaque)
{
	return world.udp == u && world.opaque == (uintptr_t)opaque ? peer_ref(u, world.opaque, &world.from) : NULL;
}

void
siw_udp_peer_put(struct siw_udp_peer *p)
{
	struct siw_udp_peer **at = &world.peers[p->opaque / 2 % BUCKETS];

	if (--p->refs > 0)
		return;
	siw_udp_tx_flush(&p->udp->tx);
	usrsctp_deregister_address((void *)(uintptr_t)p->opaque);
	while (*at != p)
		at = &(*at)->next;
	*at = p->next;
	free(p);
}

uint32_t
siw_udp_peer_path_mtu(struct siw_udp_peer *p)
{
	const struct siw_udp *u = p->udp;

	if (p->too_long == 0)
		return p->path_mtu;
	uint32_t below = (uint32_t)p->too_long - SCTP_HEADER_LEN;
	uint32_t mtu = siw_udp_path_mtu_of(&u->dev->cfg.addr, &p->at);
	mtu = mtu > u->headers ? mtu - u->headers : 0;
	p->too_long = 0;
	p->path_mtu = max_u32(mtu > 0 && mtu < below ? mtu : SHORTER(below), PATH_MTU_MIN);
	return p->path_mtu;
}

/* -- packets that go -- */

int
siw_udp_output(void *opaque, void *packet, size_t len, uint8_t tos, uint8_t set_df)
{
	struct siw_udp_peer *p = peer_find((uintptr_t)opaque);
	struct siw_udp *u = p != NULL ? p->udp : world.udp;

	(void)tos;
	(void)set_df;
	/* A stranger is answered at once or not at all. */
	if (u == NULL || len < SCTP_HEADER_LEN || (p == NULL && world.opaque != (uintptr_t)opaque))
		return 0;
	mpa_crc_put((uint8_t *)packet + CRC_AT, mpa_crc_value(mpa_crc_update(MPA_CRC_INIT, packet, len)));
	if (p != NULL && p->takes_together)
		siw_udp_tx_gather(&u->tx, &p->at, &p->too_long, packet, len);
	else if (p != NULL)
		siw_udp_tx_put(&u->tx, &p->at, &p->too_long, packet, len);
	else
		siw_udp_tx_put(&u->tx, &world.from, NULL, packet, len);
	return 0;
}

bool
siw_udp_flush(struct siw_udp *u)
{
	siw_udp_tx_flush(&u->tx);
	bool narrower = u->tx.narrow;
	u->tx.narrow = false;
	return narrower;
}

/* -- packets that come -- */

static bool
crc_is_right(uint8_t *packet, size_t len)
{
	uint32_t crc = mpa_crc_get(packet + CRC_AT);

	memset(packet + CRC_AT, 0, MPA_CRC_LEN);
	if (crc != mpa_crc_value(mpa_crc_update(MPA_CRC_INIT, packet, len)))
		return false;
	mpa_crc_put(packet + CRC_AT, crc);
	return true;
}

static bool
takes_turn(int64_t *due_ns, int64_t now, int64_t at_once, int64_t every_ns)
{
	*due_ns = max_i64(*due_ns, now);
	if (*due_ns - now > (at_once - 1) * every_ns)
		return false;
	*due_ns += every_ns;
	return true;
}

/* Of a packet that no association is known for, or that may make one: false if it is dropped. Such packets are
 * limited in number. */
static bool
may_go_on(struct siw_udp *u, const struct sockaddr_storage *from, bool too_long)
{
	const struct unknown_peer who = unknown_peer_of(from);
	uint64_t source = hash_of(u, who.at.b, addr_source_bits(who.at.b) / 8, 0) % SIW_UDP_SOURCES;
	int64_t now = u->dev->dev.now_ns;

	if (!siw_may_come(u->dev, &who))
		return false;
	if (!too_long &&
	    takes_turn(&u->source_due_ns[source], now, UNKNOWN_PEERS_AT_ONCE / OF_SOURCE,
	        (int64_t)OF_SOURCE * UNKNOWN_PEER_EVERY_NS) &&
	    takes_turn(&u->unknown_peers_due_ns, now, UNKNOWN_PEERS_AT_ONCE, UNKNOWN_PEER_EVERY_NS))
		return true;
	siw_refused(u->dev, UNKNOWN_PEER_LIMITED, &who);
	return false;
}

static void
packet_in(struct siw_udp *u, const struct sockaddr_storage *from, uint8_t *packet, size_t len)
{
	uint8_t chunk = len > SCTP_HEADER_LEN ? packet[SCTP_HEADER_LEN] : 0;
	uint64_t opaque = opaque_of(u, from);

	if (len < SCTP_HEADER_LEN || !crc_is_right(packet, len)) {
		u->dev->stats.crc_errors++;
		return;
	}
	if ((peer_find(opaque) == NULL || chunk == CHUNK_INIT || chunk == CHUNK_COOKIE_ECHO) &&
	    !may_go_on(u, from, chunk == CHUNK_INIT && len > INIT_PACKET_MAX))
		return;
	world.udp = u;
	world.opaque = opaque;
	world.from = *from;
	u->packet(u, (void *)(uintptr_t)opaque, packet, len);
	world.udp = NULL;
	world.opaque = 0;
}

/* The length of each packet but the last, when the kernel has put several of one peer together (UDP_GRO): or `len`. */
static size_t
each_of(struct msghdr *msg, size_t len)
{
	int each = 0;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c != NULL; c = CMSG_NXTHDR(msg, c))
		if (c->cmsg_level == SOL_UDP && c->cmsg_type == UDP_GRO)
			memcpy(&each, CMSG_DATA(c), sizeof(each));
	return each > 0 ? (size_t)each : len;
}

void
siw_udp_read(struct siw_udp *u)
{
	for (unsigned i = 0; i < READ_BUDGET;) {
		union {
			struct cmsghdr align;
			uint8_t bytes[CMSG_SPACE(sizeof(int))];
		} control;
		struct sockaddr_storage from = { 0 };
		struct iovec iov = { .iov_base = u->in, .iov_len = sizeof(u->in) };
		struct msghdr msg = { .msg_name = &from,
			.msg_namelen = sizeof(from),
			.msg_iov = &iov,
			.msg_iovlen = 1,
			.msg_control = &control,
			.msg_controllen = sizeof(control) };
		ssize_t n = recvmsg(u->fd, &msg, MSG_DONTWAIT);
		size_t len = (size_t)max_i64(n, 0), each;

		if (n < 0 && errno == EAGAIN)
			return;
		each = n > 0 ? each_of(&msg, len) : 1;
		for (size_t off = 0; off < len; off += each, i++)
			packet_in(u, &from, u->in + off, min_size(each, len - off));
		i += len == 0; /* an error, or a datagram of nothing */
	}
	u->dev->unfinished = true;
}

/* -- the socket -- */

static int
socket_on(const struct siw_config *cfg, uint16_t port)
{
	struct sockaddr_storage ss = cfg->addr;
	const int buffer = SOCKET_BUFFER, on = 1;
	int fd = socket(ss.ss_family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -errno;
	(void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &buffer, sizeof(buffer));
	(void)setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &buffer, sizeof(buffer));
	(void)setsockopt(fd, SOL_UDP, UDP_GRO, &on, sizeof(on)); /* where the kernel can do it */
	addr_set_port(&ss, port);
	return siw_fd_if(bind(fd, (const struct sockaddr *)&ss, addr_len(&ss)) == 0, fd);
}

int
siw_udp_open(struct siw_udp *u, struct siw_dev *dev, siw_udp_packet packet, rnic_io_cb readable, const char **err)
{
	uint32_t ip = dev->cfg.addr.ss_family == AF_INET ? IPV4_HEADER_LEN : IPV6_HEADER_LEN;
	uint32_t headers = ip + UDP_HEADER_LEN + SCTP_HEADER_LEN, mtu = min_u32(dev->iface.mtu, PACKET_MAX);

	u->fd = -1;
	u->dev = dev;
	u->packet = packet;
	u->key = rng_u64(dev->rng);
	u->headers = headers;
	u->path_mtu = mtu - headers;
	if (mtu < headers + PATH_MTU_MIN) {
		*err = "SCTP: the MTU of the interface is too small";
		return -EMSGSIZE;
	}
	u->fd = siw_open_port(dev, socket_on, readable, dev, err);
	if (u->fd < 0)
		return u->fd;
	*err = "memory";
	return siw_udp_tx_init(&u->tx, u->fd, dev->cfg.addr.ss_family);
}

void
siw_udp_close(struct siw_udp *u)
{
	if (u->fd >= 0) {
		siw_udp_tx_flush(&u->tx);
		u->dev->loop.unwatch(u->dev->loop.ctx, u->fd);
		close(u->fd);
	}
	siw_udp_tx_fini(&u->tx);
}
