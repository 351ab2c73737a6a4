/*
 * The soft iWARP device: RDMAP and DDP (RFC 5040, 5041) with enhanced connection
 * set-up (RFC 6581), on MPA (RFC 5044) and TCP or over SCTP (RFC 5043), in user
 * space. Needs no kernel module, no card and no privilege. Implements rnic.h.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "base/rng.h"
#include "rnic/rnic.h"

enum {
	SIW_RTR_SEND = 1 << 0,
	SIW_RTR_WRITE = 1 << 1,
	SIW_RTR_READ = 1 << 2,
};

/* What is below DDP. */
enum siw_transport {
	SIW_TCP,  /* MPA on TCP (RFC 5044, RFC 6581) */
	SIW_SCTP, /* SCTP (RFC 5043) */
};

/* Who runs SCTP. */
enum siw_sctp_stack_kind {
	SIW_STACK_AUTO,   /* the kernel where it has SCTP, otherwise libusrsctp */
	SIW_STACK_KERNEL, /* as protocol 132, or in UDP, see sctp_udp */
	SIW_STACK_USER,   /* libusrsctp, in UDP (RFC 6951) */
};

#define SIW_MORE_ADDRS_MAX 3

struct siw_addrs {
	unsigned cnt;
	struct sockaddr_storage at[SIW_MORE_ADDRS_MAX];
};

enum siw_sctp_profile {
	SIW_RFC5043,
	SIW_DRAFT00, /* draft-ietf-rddp-sctp-00 */
};

/* A listening socket on TCP that another process had before. */
struct siw_spare {
	int fd;
	bool used; /* by a device, which has a descriptor of its own */
};

struct siw_config {
	char name[RNIC_NAME_MAX];     /* e.g. "siw0" */
	struct sockaddr_storage addr; /* the address of this device; its port is ignored */
	uint16_t port_min;            /* to be connected to: the first free one of the range; 0 = any */
	uint16_t port_max;
	/* SCTP in UDP, on this port of UDP and of SCTP; 0: libusrsctp takes one of the range, the kernel does without UDP. The
	 * kernel has one UDP port for all, sysctl net.sctp.udp_port, which has to be this one. */
	uint16_t sctp_udp;
	bool crc;     /* ask for CRC (on unless both ends say off) */
	bool markers; /* ask for markers in what we receive */
	unsigned rtr; /* SIW_RTR_*: kinds offered and accepted */
	enum siw_transport transport;
	enum siw_sctp_profile sctp_profile;
	enum siw_sctp_stack_kind sctp_stack;
	uint8_t mpa_rev;     /* of our Requests: 2 (RFC 6581); 1 for a peer that knows no more */
	uint16_t ird;        /* inbound Read depth offered, >= 1 */
	uint16_t ord;        /* outbound Read depth wanted, >= 1 */
	uint32_t fpdu_max;   /* largest ULPDU with a software peer; 0 = MULPDU from the MSS */
	uint32_t connect_ms; /* connection and negotiation, active and passive */
	uint32_t answer_ms;  /* fence unanswered this long: RNIC_EV_SILENT */
	uint32_t fence_ms;   /* a fence follows a signaled request after this, at the latest */
	uint32_t max_qp;
	struct siw_addrs more_addrs; /* SCTP of the kernel: further addresses of the device, of the same family */
	/* May this address connect to us? NULL: every address may. Asked at accept, before anything is kept. */
	bool (*may_connect)(void *ctx, const struct rnic_gid *from);
	void *may_connect_ctx;
	/* Over TCP: one of these at the device's address and in the range goes before a free port. Looked at by siw_open alone. */
	struct siw_spare *spares;
	unsigned spare_cnt;
};

/* An address may have a device over TCP and one over SCTP of each stack. */
static inline bool
siw_same_llp(const struct siw_config *a, const struct siw_config *b)
{
	return a->transport == b->transport && a->sctp_stack == b->sctp_stack;
}

/* Defaults for everything but the address. */
void siw_config_init(struct siw_config *);

/*
 * Opens the device: listens for connections on its address. Random keys
 * come from rng (kept, not owned), readiness from loop (copied).
 * 0, or a negative errno with *err a static text that names the setting at fault.
 */
int siw_open(
    const struct siw_config *, const struct rnic_loop *loop, struct rng *rng, struct rnic_dev **dev, const char **err);

/* The socket on which peers connect to it over TCP, still the device's; -1 when there is none. */
int siw_listening(const struct rnic_dev *);
/* Nobody connects any more: another process accepts on its port. Links that are there stay. */
void siw_stop_listening(struct rnic_dev *);

/* What the interface of the device's address does: gives RNIC_EV_PORT_DOWN or RNIC_EV_PORT_UP when it changes. The
 * device itself cannot know; its links break when the caller of poll_event takes them down. Starts as up. */
void siw_set_port_state(struct rnic_dev *, enum rnic_port_state);

/* Counters, as rnic_ops.stats has them. */
struct siw_stats {
	uint64_t fpdus_sent, fpdus_received, bytes_sent, bytes_received;
	uint64_t reads_sent, reads_served;
	uint64_t mpa_refused_token;   /* stranger, used token, token for another link */
	uint64_t mpa_refused_parked;  /* came early and was not claimed in time, or no place */
	uint64_t mpa_refused_address; /* may not connect, see siw_config.may_connect */
	uint64_t mpa_bad;             /* malformed or too slow request */
	uint64_t terminates_sent, terminates_received;
	uint64_t crc_errors;
	uint64_t recv_stalls;       /* reading stopped: no receive posted */
	uint64_t accept_pauses;     /* out of descriptors: accepting stopped for a while */
	uint64_t linger_refused;    /* closed with something left to say: too many such sockets, or too much of it */
	uint64_t strangers_limited; /* SCTP: packets of no association, more than are looked at */
	uint64_t sctp_retransmits;  /* libusrsctp: messages sent again, by all devices of the process */
	uint64_t no_memory;         /* connections closed, or Terminates not sent, for want of memory */
};
