/* CLC messages: the SMC-R rendezvous on the TCP connection (RFC 7609 A.2). Version 1, and version 2 as in Linux and
 * IBM's "Shared Memory Communications Version 2". Bytes <-> host structs; pure. */
#pragma once

#include "base/span.h"
#include "wire/clc_tlvs.h"

#define CLC_HDR_LEN 8
#define CLC_MAX_LEN 2048     /* limit for received messages; Linux sends a few hundred bytes at most */
#define CLC_MAX_SENT_LEN 524 /* limit of clc_encode(): a Proposal with all parts */
#define CLC_PEER_ID_LEN 8
#define CLC_GID_LEN 16
#define CLC_MAC_LEN 6
#define CLC_GROWTH_LEN 40        /* Linux always sends this length, and accepts no more */
#define CLC_MAX_IPV6 8           /* RFC 7609 A.2.2 */
#define CLC_MAX_SIZE_CODE_SENT 8 /* 4 MiB, to an smcrd; RFC 7609 A.2.3 allows 5 (512 KiB); Linux may send up to 15 */
/* Version 2 */
#define CLC_FIELD_LEN 32 /* of the two fields of text */
#define CLC_EID_LEN CLC_FIELD_LEN
#define CLC_HOST_LEN CLC_FIELD_LEN
#define CLC_MAX_EIDS 8
#define CLC_MAX_GIDS 8
#define CLC_RELEASE 1 /* 2.1: limits of connections and links are negotiated */
#define CLC_MIN_MAX_CONNS 16
#define CLC_MAX_MAX_LINKS 2

enum clc_type {
	CLC_PROPOSAL = 1,
	CLC_ACCEPT = 2,
	CLC_CONFIRM = 3,
	CLC_DECLINE = 4,
};

/* The offer of a version 2 Proposal for each version (Linux; reserved in RFC 7609). */
enum clc_path {
	CLC_PATH_R = 0,
	CLC_PATH_D = 1,
	CLC_PATH_NONE = 2,
	CLC_PATH_BOTH = 3,
};

#define CLC_TRANSPORT_ROCE 0x01
#define CLC_TRANSPORT_IWARP 0x02
#define CLC_TRANSPORT_IWARP_SCTP 0x04     /* older smcrds ignore these two */
#define CLC_TRANSPORT_IWARP_SCTP_UDP 0x08 /* in UDP (RFC 6951) */
#define CLC_TRANSPORT_IWARP_TLS 0x10      /* iWARP on TCP in TLS, in a rendezvous that is in TLS (doc/secure.md) */
#define CLC_TRANSPORT_PREWARM 0x80        /* Proposal: sets up the link group only, without an application connection */
#define CLC_TRANSPORT_IWARP_ANY (CLC_TRANSPORT_IWARP | CLC_TRANSPORT_IWARP_SCTP | CLC_TRANSPORT_IWARP_SCTP_UDP)
#define CLC_TRANSPORT_KNOWN \
	(CLC_TRANSPORT_ROCE | CLC_TRANSPORT_IWARP_ANY | CLC_TRANSPORT_IWARP_TLS | CLC_TRANSPORT_PREWARM)
/* SMC 2.1 has a vendor OUI where a Proposal has this extension. "smr" is no valid OUI: both low bits of 's' are set. */
#define CLC_SMCRD_EXT_VERSION 1
/* Features, used if both ends have them. */
#define CLC_FEATURE_START_OVER 0x01  /* supports CDC_STARTED_OVER */
#define CLC_FEATURE_OPERATOR 0x02    /* supports CDC_OPERATOR */
#define CLC_FEATURE_RST_AFTER_C 0x04 /* does not treat a RST of the TCP connection after its own C as an abort */
#define CLC_FEATURE_OPEN 0x08        /* opens connections over a link (open.h) */
#define CLC_FEATURES (CLC_FEATURE_START_OVER | CLC_FEATURE_OPERATOR | CLC_FEATURE_RST_AFTER_C | CLC_FEATURE_OPEN)
/* Proposal of a prewarmed link group: requested by an operator, so it is tried although the client is held off. */
#define CLC_FEATURE_CHECK 0x80
/* Likewise, and requests a measurement on the connection. Accept: the measurement is served. */
#define CLC_FEATURE_MEASURE 0x40
/* Likewise, without CLC_FEATURE_CHECK as well: asks for the server behind the gateway. The Accept has the answer. */
#define CLC_FEATURE_SERVER 0x10
/* Proposal: has TLVs. Accept: the server is connected in the name of the program's client. See also clc_decline. */
#define CLC_FEATURE_TLVS 0x20
#define CLC_FEATURE_CLIENT CLC_FEATURE_TLVS
#define CLC_FEATURES_KNOWN \
	(CLC_FEATURES | CLC_FEATURE_CHECK | CLC_FEATURE_MEASURE | CLC_FEATURE_SERVER | CLC_FEATURE_TLVS)

/* The answer to CLC_FEATURE_SERVER, X(constant, number, words). Unknown numbers are as DOWN. */
#define CLC_SERVERS(X)                                 \
	X(UNSAID, 0, "")                               \
	X(UP, 1, "works")                              \
	X(REFUSED, 2, "refuses connections")           \
	X(SILENT, 3, "does not answer")                \
	X(NO_NAME, 4, "has a name without an address") \
	X(DOWN, 5, "does not work")
#define CLC_SERVER_CONSTANT(name, number, words) CLC_SERVER_##name = (number),

enum clc_server { CLC_SERVERS(CLC_SERVER_CONSTANT) };

#define CLC_USES_DEST 0x01 /* the server is the destination in the Proposal */

/* The extension between smcrd peers. In a Proposal it lies in the growth area, which other implementations skip. In
 * Accept and Confirm it follows the PSN, and is sent only if the peer's Proposal had one. 28 bytes: "smrd", length 28,
 * version, transports, features, MPA port, receive depth, token, hops or server, uses, 2 x 0, origin or ticket. */
struct clc_smcrd_ext {
	bool present;        /* otherwise the fields below are invalid */
	uint8_t version;     /* from 1; higher versions append fields only */
	uint8_t transports;  /* CLC_TRANSPORT_ bits: offered; in Accept and Confirm, that of the link */
	uint8_t features;    /* CLC_FEATURE_ bits */
	uint16_t mpa_port;   /* for MPA connections or SCTP associations, in UDP as well; 0: none */
	uint16_t recv_depth; /* receives posted per link */
	uint64_t token;      /* of the link group, sent in the MPA private data; secret, never log it */
	/* Proposal, else 0: number of gateway services the connection passed, as far as known, and a hash of the
	 * client's address and port (daemon/leg/circle.h). */
	union {
		uint8_t hops;
		uint8_t server; /* Accept: enum clc_server or another number; 0 unless the Proposal asked */
	};
	uint8_t uses; /* Accept, else 0: CLC_USES_ bits. Older smcrds send 0 */
	union {
		uint32_t origin;
		uint32_t ticket; /* Accept: of the service, for connections that open over a link (open.h); 0: none */
	};
};

/* An enterprise id, padded with blanks; see clc_eid_parse(). Two ends of version 2 have one in common. */
struct clc_eid {
	uint8_t b[CLC_EID_LEN];
};

/* Follows the rules of `smcr ueid add`; see clc_eid_parse(). */
bool clc_eid_is_valid(const struct clc_eid *eid);
/* 0, or -EINVAL unless text is 1..32 capital letters, digits, '.' and '-'. It must begin with a letter or digit, and
 * must not have ".." (rules of `smcr ueid add`). *out is untouched on failure. */
int clc_eid_parse(const char *text, struct clc_eid *out) __attribute__((warn_unused_result));
/* An EID or host name as one word: without its padding of blanks or zeroes, with '?' for other characters. */
void clc_field_str(const uint8_t field[CLC_FIELD_LEN], char text[CLC_FIELD_LEN + 1]);
/* The matching element of `eids`, or NULL. */
const struct clc_eid *clc_eid_find(const struct clc_eid *eids, size_t cnt, const struct clc_eid *wanted);
/* The first of ours that is in theirs, as Linux selects it; NULL: none in common. */
const struct clc_eid *clc_eid_common(
    const struct clc_eid *ours, size_t our_cnt, const struct clc_eid *theirs, size_t their_cnt);

enum clc_os {
	CLC_OS_ZOS = 1,
	CLC_OS_LINUX = 2,
	CLC_OS_AIX = 3,
};

const char *clc_os_str(unsigned os);

/* Version 2: the extension of a Proposal. */
struct clc_v2_offer {
	bool present; /* otherwise the fields below are invalid */
	uint8_t eid_cnt;
	struct clc_eid eids[CLC_MAX_EIDS]; /* user-defined; the decoder drops invalid ones */
	uint8_t release;                   /* 0..15; CLC_RELEASE is the highest known */
	uint8_t gid[CLC_GID_LEN];          /* of the client's RoCEv2 port; IPv4 as ::ffff:a.b.c.d */
	/* Release 1, else 0; a peer may send any number. */
	uint8_t max_conns; /* per link group, at least CLC_MIN_MAX_CONNS */
	uint8_t max_links; /* 1..CLC_MAX_MAX_LINKS */
	uint16_t features;
};

/* Version 2: the first-contact extension of Accept and Confirm. */
struct clc_first_contact {
	bool present; /* otherwise the fields below are invalid */
	bool direct;  /* the sender reaches the peer without a gateway, or requires that */
	uint8_t os;   /* enum clc_os or another number below 16 */
	uint8_t release;
	uint8_t host[CLC_HOST_LEN]; /* padded with blanks */
	uint8_t max_conns;          /* these three as in the offer; a Confirm repeats the Accept's */
	uint8_t max_links;
	uint16_t features;
	uint8_t gid_cnt; /* Confirm: the client's other RoCEv2 ports, for ADD LINK */
	uint8_t gids[CLC_MAX_GIDS][CLC_GID_LEN];
};

struct clc_prefix6 {
	uint8_t addr[16];
	uint8_t len;
};

struct clc_proposal {
	enum clc_path typev1; /* version 1 messages: CLC_PATH_R and CLC_PATH_NONE */
	enum clc_path typev2;
	uint8_t peer_id[CLC_PEER_ID_LEN];
	uint8_t gid[CLC_GID_LEN];
	uint8_t mac[CLC_MAC_LEN];
	uint16_t growth_len; /* as on the wire; growth[] keeps at most the first 40 bytes */
	uint8_t growth[CLC_GROWTH_LEN];
	uint32_t ipv4_subnet; /* host order; Linux sends address AND mask */
	uint8_t ipv4_len;     /* prefix length, 0 for IPv6 */
	uint8_t ipv6_cnt;
	struct clc_prefix6 ipv6[CLC_MAX_IPV6];
	struct clc_smcrd_ext ext;
	struct clc_tlvs tlvs; /* with ext, without v2 */
	/* If present, typev1 may be CLC_PATH_NONE: Linux then sends peer_id, gid and mac as zeroes, and no IP area.
	 * CLC_PATH_BOTH in typev1 or typev2 includes SMC-R. */
	struct clc_v2_offer v2;
};

/* Accept and Confirm. */
struct clc_accept {
	bool first_contact; /* only Linux sets it in a Confirm: do not rely on it there */
	uint8_t peer_id[CLC_PEER_ID_LEN];
	uint8_t gid[CLC_GID_LEN];
	uint8_t mac[CLC_MAC_LEN];
	uint32_t qpn; /* 24 bits */
	uint32_t rkey;
	uint8_t rmbe_idx;     /* from 1 */
	uint32_t alert_token; /* the sender's; our CDC messages carry it */
	uint8_t size_code;    /* RMB element, clc_size_bytes() */
	uint8_t mtu_code;     /* clc_mtu_bytes() */
	uint64_t vaddr;       /* of the RMB, not of the element */
	uint32_t psn;         /* 24 bits, the sender's first PSN */
	struct clc_smcrd_ext ext;
	/* version 2 only */
	struct clc_eid eid;             /* the negotiated one */
	struct clc_first_contact first; /* if first_contact */
};

struct clc_decline {
	bool out_of_sync; /* delete the link group, RFC 7609 A.2.5 */
	uint8_t peer_id[CLC_PEER_ID_LEN];
	uint32_t diag; /* enum clc_diag, or a code of another implementation */
	uint8_t os;    /* version 2 only: 1 z/OS, 2 Linux, 3 AIX */
	/* By an smcrd: as CLC_FEATURE_CLIENT and CLC_USES_DEST of an Accept; the sender closes, in place of a fallback. */
	bool client_used, dest_used, dest_refused;
};

/* Diagnosis codes of the Decline, X(name, number, words). RFC 7609 A.2.5 leaves them to the implementation; these are
 * Linux's, so that both ends of a mixed pair show the same. Exceptions: SERVER_LATE, as only a gateway has a server
 * behind it; NO_OPTION, which is never sent. SYNC requires the out-of-sync flag. Linux never sends PEER_DECLINED; smcrd
 * answers a Decline of smcrd with it. */
/* clang-format off */
#define CLC_DIAGS(X) \
	X(NO_MEMORY, 0x01010000, "out of memory or another resource") \
	X(TIMEOUT_CONFIRM_LINK, 0x02010000, "no answer to CONFIRM LINK in time") \
	X(TIMEOUT_ADD_LINK, 0x02020000, "no answer to ADD LINK in time") \
	X(SERVER_LATE, 0x02f00000, "the server behind the gateway was not connected in time for SMC-R") \
	X(CONFIG, 0x03000000, "configuration error") \
	X(PEER_NO_SMC, 0x03010000, "peer does not support SMC") \
	X(IPSEC, 0x03020000, "IPsec in use on the path") \
	X(NO_DEVICE, 0x03030000, "no RDMA device") \
	X(NO_SMCD_DEVICE, 0x03030001, "no SMC-D device") \
	X(NO_SMCR_DEVICE, 0x03030002, "no SMC-R device") \
	X(NO_ISMV2, 0x03030003, "hardware without ISM version 2") \
	X(NO_V2_EXT, 0x03030004, "peer sent no SMC version 2 extension") \
	X(NO_SMCDV2_EXT, 0x03030005, "peer sent no SMC-D version 2 extension") \
	X(NO_SEID, 0x03030006, "peer sent no system EID") \
	X(NO_SMCDV2_DEVICE, 0x03030007, "no SMC-D version 2 device") \
	X(NO_UEID, 0x03030008, "no user-defined EID in common") \
	X(RELEASE, 0x03030009, "SMC release negotiation failed") \
	X(MAX_CONNS, 0x0303000a, "negotiation of the connections per link group failed") \
	X(MAX_LINKS, 0x0303000b, "negotiation of the links per link group failed") \
	X(MODE_MISMATCH, 0x03040000, "SMC modes do not match (SMC-R against SMC-D)") \
	X(RMBE_EYECATCHER, 0x03050000, "peer requires eye catchers in the RMB elements") \
	X(SOCKOPT, 0x03060000, "unsupported socket option (for example TCP fast open)") \
	X(PREFIX_MISMATCH, 0x03070000, "the two ends are not in the same IP subnet") \
	X(VLAN_GET, 0x03080000, "VLAN of the connection not found") \
	X(VLAN_ISM, 0x03090000, "VLAN not registered with the ISM device") \
	X(NO_ACTIVE_LINK, 0x030a0000, "no active link in the link group") \
	X(NO_SERVER_LINK, 0x030b0000, "the server's link is unknown to the client") \
	X(VERSION_MISMATCH, 0x030c0000, "SMC version mismatch") \
	X(MAX_DMB, 0x030d0000, "limit of SMC-D buffers reached") \
	X(NO_ROUTE, 0x030e0000, "no route to the peer's RDMA address") \
	X(INDIRECT, 0x030f0000, "path through a gateway not allowed") \
	X(NO_OPTION, 0x03f10000, "this host could not use the SMC-R TCP option") \
	X(SYNC, 0x04000000, "the two ends disagree about the link group") \
	X(PEER_DECLINED, 0x05000000, "peer declined") \
	X(INTERNAL, 0x09990000, "internal error") \
	X(RTOKEN, 0x09990001, "peer's RMB key could not be stored") \
	X(READY_LINK, 0x09990002, "queue pair could not be made ready") \
	X(REG_BUFFER, 0x09990003, "memory registration failed")
/* clang-format on */

#define CLC_DIAG_CONSTANT(name, number, words) CLC_DIAG_##name = (number),

enum clc_diag { CLC_DIAGS(CLC_DIAG_CONSTANT) };

struct clc_msg {
	enum clc_type type;
	uint8_t version; /* of the header: 1 or 2 in Accept and Confirm; 1 or more in others */

	union {
		struct clc_proposal proposal;
		struct clc_accept accept; /* also of CLC_CONFIRM */
		struct clc_decline decline;
	};
};

/* Length of the message at the start of `in`: > 0 (the message may be incomplete), 0 if the header is incomplete,
 * -EBADMSG as soon as it cannot be a CLC message. Read no more of the TCP stream: application data may follow. */
int clc_peek_len(struct span in) __attribute__((warn_unused_result));

/* > 0: bytes used, *out is filled. 0: need more. -EBADMSG: malformed, end the TCP connection. -EPROTO: well formed, but
 * with a value that only a newer peer sends: decline with clc_bad_value_diag() (C.6). *out is untouched unless > 0.
 * The caller checks two fields. A reserved mtu_code is -EPROTO only if the message itself says first contact, as others
 * ignore it (A.2.3): on a first contact's Confirm check clc_mtu_bytes() != 0. Size codes up to 15, and all releases and
 * limits of version 2, are passed on. A Proposal that offers neither version 1 nor v2.present is -EPROTO. */
int clc_decode(struct span in, struct clc_msg *out) __attribute__((warn_unused_result));

/* The diagnosis of the Decline after -EPROTO from clc_decode(). */
uint32_t clc_bad_value_diag(struct span in);

/* Bytes written; -EINVAL for a value out of range, -ENOSPC if cap is too small; buf is untouched on failure. Versions 1
 * and 2. A Proposal with ext.present always has the 40-byte growth area, tlvs behind it, and ignores growth[]. Otherwise it is
 * sent unchanged; with v2.present it has 12 bytes or more, and the extension's offset is filled in. Accept and Confirm
 * of version 2 have no smcrd extension; first.present must equal first_contact. */
int clc_encode(const struct clc_msg *msg, uint8_t *buf, size_t cap) __attribute__((warn_unused_result));

/* RMB element size: code 0..15 <-> 16 KiB << code; -EINVAL and 0 for others. */
int clc_size_code(uint32_t bytes);
uint32_t clc_size_bytes(unsigned code);

/* QP MTU: code 1..5 -> 256..4096; 0 for others. */
uint32_t clc_mtu_bytes(unsigned code);

/* The name of one CLC_TRANSPORT_ bit in reports; NULL for others. */
const char *clc_transport_str(unsigned bit);
#define CLC_TRANSPORTS_STR_MAX 48
/* All names, separated by commas. */
void clc_transports_str(unsigned transports, char text[CLC_TRANSPORTS_STR_MAX]);

/* The words of a code, or "unknown code". Other implementations have codes of their own: log the number as well. */
const char *clc_diag_str(uint32_t diag);
/* The words of an answer to CLC_FEATURE_SERVER; of unknown numbers those of CLC_SERVER_DOWN. */
const char *clc_server_str(unsigned server);
