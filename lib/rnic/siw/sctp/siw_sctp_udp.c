/* Soft iWARP, DDP over SCTP: packets in UDP; see siw_sctp_udp.h. */
#include "rnic/siw/sctp/siw_sctp_udp.h"

#include <errno.h>
#include <netinet/in.h>
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
#define PACKET_ROOM 65536
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
/* Packets that belong to no association: each may cost an answer, and the library remembers set-ups for a minute. */
#define STRANGERS_AT_ONCE 256
#define STRANGER_EVERY_NS 1000000
/* A quarter of that is for addresses that share a place in a small table: one that takes all it gets leaves others theirs. */
#define SOURCES 64
#define OF_SOURCE 4

struct siw_udp_peer {
	struct siw_udp_peer *next;
	struct siw_udp *udp;
	uint64_t opaque;
	struct sockaddr_storage at;
	unsigned refs;
	size_t too_long; /* shortest packet that the path did not take in one piece, since it was looked at; 0: none */
	uint32_t path_mtu; /* as siw_udp_peer_path_mtu() */
};

struct siw_udp {
	struct siw_dev *dev;
	siw_udp_packet packet;
	void *ctx;
	int fd;
	uint64_t key;     /* of opaque values */
	uint32_t headers; /* of a packet, SCTP's included */
	uint32_t path_mtu;
	bool narrower;            /* for one of the peers at least */
	int64_t strangers_due_ns; /* so many may come, see STRANGERS_AT_ONCE */
	int64_t source_due_ns[SOURCES];
	uint8_t *in; /* PACKET_ROOM */
};

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
	usrsctp_deregister_address((void *)(uintptr_t)p->opaque);
	while (*at != p)
		at = &(*at)->next;
	*at = p->next;
	free(p);
}

void *
siw_udp_peer_opaque(const struct siw_udp_peer *p)
{
	return (void *)(uintptr_t)p->opaque;
}

struct rnic_gid
siw_udp_peer_gid(const struct siw_udp_peer *p)
{
	struct rnic_gid gid;

	addr_to_v6(&p->at, gid.b);
	return gid;
}

/* -- the path's MTU -- */

/* Packets that are longer than the path takes: may they go in fragments? */
static void
set_fragments(const struct siw_udp *u, int fd, bool may)
{
	int v4 = may ? IP_PMTUDISC_DONT : IP_PMTUDISC_DO, v6 = may ? IPV6_PMTUDISC_DONT : IPV6_PMTUDISC_DO;

	if (u->dev->cfg.addr.ss_family == AF_INET)
		(void)setsockopt(fd, IPPROTO_IP, IP_MTU_DISCOVER, &v4, sizeof(v4));
	else
		(void)setsockopt(fd, IPPROTO_IPV6, IPV6_MTU_DISCOVER, &v6, sizeof(v6));
}

/* As the kernel knows it, of IP; 0: it does not. */
static uint32_t
ask_mtu(const struct siw_udp *u, const struct siw_udp_peer *p)
{
	bool is_v4 = u->dev->cfg.addr.ss_family == AF_INET;
	struct sockaddr_storage own = u->dev->cfg.addr;
	socklen_t len = sizeof(int);
	int fd = socket(own.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0), mtu = 0;

	if (fd < 0)
		return 0;
	addr_set_port(&own, 0);
	if (bind(fd, (const struct sockaddr *)&own, addr_len(&own)) < 0 ||
	    connect(fd, (const struct sockaddr *)&p->at, addr_len(&p->at)) < 0 ||
	    getsockopt(fd, is_v4 ? IPPROTO_IP : IPPROTO_IPV6, is_v4 ? IP_MTU : IPV6_MTU, &mtu, &len) < 0)
		mtu = 0;
	close(fd);
	return (uint32_t)max_i64(mtu, 0);
}

bool
siw_udp_narrower(struct siw_udp *u)
{
	bool narrower = u->narrower;

	u->narrower = false;
	return narrower;
}

uint32_t
siw_udp_peer_path_mtu(struct siw_udp_peer *p)
{
	const struct siw_udp *u = p->udp;
	uint32_t below, mtu;

	if (p->too_long == 0)
		return p->path_mtu;
	below = (uint32_t)p->too_long - SCTP_HEADER_LEN;
	mtu = ask_mtu(u, p);
	mtu = mtu > u->headers ? mtu - u->headers : 0;
	p->too_long = 0;
	p->path_mtu = max_u32(mtu > 0 && mtu < below ? mtu : SHORTER(below), PATH_MTU_MIN);
	return p->path_mtu;
}

/* -- packets -- */

int
siw_udp_output(void *opaque, void *packet, size_t len, uint8_t tos, uint8_t set_df)
{
	struct siw_udp_peer *p = peer_find((uintptr_t)opaque);
	const struct sockaddr_storage *to = p != NULL ? &p->at : &world.from;
	struct siw_udp *u = p != NULL ? p->udp : world.udp;

	(void)tos;
	(void)set_df;
	/* A stranger is answered at once or not at all. */
	if (u == NULL || len < SCTP_HEADER_LEN || (p == NULL && world.opaque != (uintptr_t)opaque))
		return 0;
	mpa_crc_put((uint8_t *)packet + CRC_AT, mpa_crc_value(mpa_crc_update(MPA_CRC_INIT, packet, len)));
	/* What does not go is lost, as on the way: the library finds out. A packet that has become too long has a number already, so it
	 * cannot be cut any more. */
	if (sendto(u->fd, packet, len, MSG_DONTWAIT | MSG_NOSIGNAL, (const struct sockaddr *)to, addr_len(to)) < 0 &&
	    errno == EMSGSIZE && p != NULL) {
		p->too_long = p->too_long == 0 ? len : min_size(p->too_long, len);
		u->narrower = true;
		set_fragments(u, u->fd, true);
		(void)sendto(
		    u->fd, packet, len, MSG_DONTWAIT | MSG_NOSIGNAL, (const struct sockaddr *)to, addr_len(to));
		set_fragments(u, u->fd, false);
	}
	return 0;
}

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

/* One that belongs to no association: they are limited in number. */
static bool
stranger_may_come(struct siw_udp *u, const struct rnic_gid *from)
{
	uint64_t source = hash_of(u, from->b, addr_source_bits(from->b) / 8, 0) % SOURCES;
	int64_t now = u->dev->dev.now_ns;

	return takes_turn(&u->source_due_ns[source], now, STRANGERS_AT_ONCE / OF_SOURCE,
	           (int64_t)OF_SOURCE * STRANGER_EVERY_NS) &&
	    takes_turn(&u->strangers_due_ns, now, STRANGERS_AT_ONCE, STRANGER_EVERY_NS);
}

static void
packet_in(struct siw_udp *u, const struct sockaddr_storage *from, size_t len)
{
	uint64_t opaque = opaque_of(u, from);
	struct rnic_gid gid;

	if (len < SCTP_HEADER_LEN || !crc_is_right(u->in, len)) {
		u->dev->stats.crc_errors++;
		return;
	}
	if (peer_find(opaque) == NULL) {
		addr_to_v6(from, gid.b);
		if (!siw_may_come(u->dev, &gid))
			return;
		if (!stranger_may_come(u, &gid)) {
			u->dev->stats.strangers_limited++;
			return;
		}
	}
	world.udp = u;
	world.opaque = opaque;
	world.from = *from;
	u->packet(u, (void *)(uintptr_t)opaque, u->in, len);
	world.udp = NULL;
	world.opaque = 0;
}

void
siw_udp_read(struct siw_udp *u)
{
	for (unsigned i = 0; i < READ_BUDGET; i++) {
		struct sockaddr_storage from = { 0 };
		socklen_t from_len = sizeof(from);
		ssize_t n = recvfrom(u->fd, u->in, PACKET_ROOM, MSG_DONTWAIT, (struct sockaddr *)&from, &from_len);

		if (n < 0 && errno == EAGAIN)
			return;
		if (n > 0)
			packet_in(u, &from, (size_t)n);
	}
	u->dev->unfinished = true;
}

/* -- the socket -- */

/* A socket on this port, or a negative errno. */
static int
socket_on(const struct siw_config *cfg, uint16_t port)
{
	struct sockaddr_storage ss = cfg->addr;
	const int buffer = SOCKET_BUFFER;
	int fd = socket(ss.ss_family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), err;

	if (fd < 0)
		return -errno;
	(void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &buffer, sizeof(buffer));
	(void)setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &buffer, sizeof(buffer));
	addr_set_port(&ss, port);
	if (bind(fd, (const struct sockaddr *)&ss, addr_len(&ss)) == 0)
		return fd;
	err = errno;
	close(fd);
	return -err;
}

uint32_t
siw_udp_headers(const struct siw_dev *dev)
{
	uint32_t ip = dev->cfg.addr.ss_family == AF_INET ? IPV4_HEADER_LEN : IPV6_HEADER_LEN;

	return ip + UDP_HEADER_LEN + SCTP_HEADER_LEN;
}

uint32_t
siw_udp_path_mtu(const struct siw_udp *u)
{
	return u->path_mtu;
}

void *
siw_udp_ctx(const struct siw_udp *u)
{
	return u->ctx;
}

int
siw_udp_open(
    struct siw_dev *dev, siw_udp_packet packet, rnic_io_cb readable, void *ctx, struct siw_udp **out, const char **err)
{
	uint32_t headers = siw_udp_headers(dev), mtu = min_u32(dev->iface.mtu, PACKET_MAX);
	struct siw_udp *u;

	if (mtu < headers + PATH_MTU_MIN) {
		*err = "SCTP: the MTU of the interface is too small";
		return -EMSGSIZE;
	}
	*err = "memory";
	u = calloc(1, sizeof(*u));
	if (u == NULL || (u->in = malloc(PACKET_ROOM)) == NULL) {
		free(u);
		return -ENOMEM;
	}
	u->dev = dev;
	u->packet = packet;
	u->ctx = ctx;
	u->key = rng_u64(dev->rng);
	u->headers = headers;
	u->path_mtu = mtu - headers;
	u->fd = siw_open_port(dev, socket_on, readable, ctx, err);
	if (u->fd < 0) {
		int rc = u->fd;

		siw_udp_close(u);
		return rc;
	}
	set_fragments(u, u->fd, false);
	*out = u;
	return 0;
}

void
siw_udp_close(struct siw_udp *u)
{
	if (u == NULL)
		return;
	if (u->fd >= 0) {
		u->dev->loop.unwatch(u->dev->loop.ctx, u->fd);
		close(u->fd);
	}
	free(u->in);
	free(u);
}
