/* The soft iWARP device, in user space: RDMAP and DDP (RFC 5040, 5041) with enhanced connection setup (RFC 6581). Below
 * DDP it uses MPA (RFC 5044) on TCP, or SCTP (RFC 5043). Needs no kernel module, card or privilege. Implements
 * rnic.h. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "base/rng.h"
#include "rnic/rnic.h"
#include "wire/sctp_ddp.h"

enum siw_transport {
	SIW_TCP,  /* MPA on TCP (RFC 5044, RFC 6581) */
	SIW_SCTP, /* SCTP (RFC 5043) */
};

enum siw_sctp_stack_kind {
	SIW_STACK_AUTO,   /* the kernel if it has SCTP, else libusrsctp */
	SIW_STACK_KERNEL, /* protocol 132, or in UDP, see sctp_udp */
	SIW_STACK_USER,   /* libusrsctp, in UDP (RFC 6951) */
};

#define SIW_MORE_ADDRS_MAX 3

struct siw_addrs {
	unsigned cnt;
	struct sockaddr_storage at[SIW_MORE_ADDRS_MAX];
};

/* A listening TCP socket inherited from another process. */
struct siw_spare {
	int fd;
	bool used; /* by a device, which has its own descriptor */
};

struct siw_config {
	char name[RNIC_NAME_MAX];     /* e.g. "siw0" */
	struct sockaddr_storage addr; /* address of the device; the port is ignored */
	uint16_t port_min, port_max;  /* port to listen on: the first free one of the range; 0 = any */
	/* SCTP in UDP: the UDP and SCTP port; 0: libusrsctp takes one of the range, the kernel does not use UDP. The
	 * kernel has one UDP port for all, sysctl net.sctp.udp_port, which must be this one. */
	uint16_t sctp_udp;
	bool crc;     /* request CRC (on unless both ends request off) */
	bool markers; /* request markers in the receive direction */
	unsigned rtr; /* RTR_*: kinds offered and accepted */
	enum siw_transport transport;
	enum sctp_ddp_profile sctp_profile;
	enum siw_sctp_stack_kind sctp_stack;
	uint8_t mpa_rev;     /* of our Requests: 2 (RFC 6581), or 1 for a peer that supports no other */
	uint16_t ird;        /* inbound Read depth offered, >= 1 */
	uint16_t ord;        /* outbound Read depth requested, >= 1 */
	uint32_t fpdu_max;   /* largest ULPDU with a software peer; 0 = MULPDU from the MSS */
	uint32_t connect_ms; /* time limit of connect and negotiation, both sides */
	uint32_t answer_ms;  /* time limit of a fence: RNIC_EV_SILENT */
	uint32_t fence_ms;   /* maximum delay of the fence after a signaled request */
	uint32_t max_qp;
	struct siw_addrs more_addrs; /* kernel SCTP: further addresses of the device, same family */
	/* False refuses peers from this address. NULL: all are accepted. Called at accept, before any state is kept. */
	bool (*may_connect)(void *ctx, const struct rnic_gid *from);
	void *may_connect_ctx;
	/* TCP: a socket at the device's address and in the range is used before a free port. Read by siw_open()
	 * only. */
	struct siw_spare *spares;
	unsigned spare_cnt;
};

/* An address may have a device on TCP and one on SCTP per stack. */
static inline bool
siw_same_llp(const struct siw_config *a, const struct siw_config *b)
{
	return a->transport == b->transport && a->sctp_stack == b->sctp_stack;
}

/* Defaults for all members except the address. */
void siw_config_init(struct siw_config *);

/* Opens the device, which listens on its address. Random keys come from rng (kept, not owned), readiness from loop
 * (copied). 0, or a negative errno with *err a static text that names the faulty setting. */
int siw_open(
    const struct siw_config *, const struct rnic_loop *loop, struct rng *rng, struct rnic_dev **dev, const char **err);

/* The TCP listening socket, owned by the device; -1 if it has none. */
int siw_listening(const struct rnic_dev *);
/* Stops listening: another process accepts on the port. Existing links stay. */
void siw_stop_listening(struct rnic_dev *);

/* State of the device's interface; a change gives RNIC_EV_PORT_DOWN or RNIC_EV_PORT_UP. The device cannot detect it;
 * links break when the caller of poll_event takes them down. Initially up. */
void siw_set_port_state(struct rnic_dev *, enum rnic_port_state);

/* Counters of rnic_ops.stats. */
struct siw_stats {
	uint64_t fpdus_sent, fpdus_received, bytes_sent, bytes_received;
	uint64_t reads_sent, reads_served;
	uint64_t mpa_refused_token;   /* unknown peer, used token, token of another link */
	uint64_t mpa_refused_parked;  /* not claimed in time, or too many parked */
	uint64_t mpa_refused_address; /* refused by siw_config.may_connect */
	uint64_t mpa_bad;             /* malformed or too slow request */
	uint64_t terminates_sent, terminates_received;
	uint64_t crc_errors;
	uint64_t recv_stalls;       /* reading stopped for lack of posted receives */
	uint64_t accept_pauses;     /* accepting stopped for lack of descriptors */
	uint64_t linger_refused;    /* closed with data to send: too many such sockets, or too much data */
	uint64_t strangers_limited; /* SCTP: packets without association above the rate limit */
	uint64_t sctp_retransmits;  /* libusrsctp: retransmissions of all devices of the process */
	uint64_t no_memory;         /* connections closed, or Terminates not sent, for lack of memory */
};
