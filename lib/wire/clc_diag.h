/*
 * Diagnosis codes of the CLC Decline message. RFC 7609 A.2.5 leaves them to
 * each implementation; these are Linux's numbers, so that both ends of a mixed
 * pair read the same thing. Used by everything that sends, logs or shows a fallback.
 */
#pragma once

#include <stdint.h>

/*
 * X(name, number, words). SERVER_LATE is not Linux's: only a gateway has a server behind it. SYNC goes with the
 * out-of-sync flag. PEER_DECLINED is a local reason in Linux, never sent; between two smcrd it answers a Decline.
 */
/* clang-format off */
#define CLC_DIAGS(X) \
	X(NO_MEMORY, 0x01010000, "out of memory or of another resource") \
	X(TIMEOUT_CONFIRM_LINK, 0x02010000, "no answer to CONFIRM LINK in time") \
	X(TIMEOUT_ADD_LINK, 0x02020000, "no answer to ADD LINK in time") \
	X(SERVER_LATE, 0x02f00000, "the server behind the gateway was not connected in time for SMC-R") \
	X(CONFIG, 0x03000000, "configuration error") \
	X(PEER_NO_SMC, 0x03010000, "peer does not speak SMC") \
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
	X(RMBE_EYECATCHER, 0x03050000, "peer wants eye catchers in the RMB elements") \
	X(SOCKOPT, 0x03060000, "unsupported socket option (for example TCP fast open)") \
	X(PREFIX_MISMATCH, 0x03070000, "the two ends are not in the same IP subnet") \
	X(VLAN_GET, 0x03080000, "VLAN of the connection not found") \
	X(VLAN_ISM, 0x03090000, "VLAN not registered with the ISM device") \
	X(NO_ACTIVE_LINK, 0x030a0000, "no active link in the link group") \
	X(NO_SERVER_LINK, 0x030b0000, "the server's link is unknown to the client") \
	X(VERSION_MISMATCH, 0x030c0000, "SMC version mismatch") \
	X(MAX_DMB, 0x030d0000, "limit of SMC-D buffers reached") \
	X(NO_ROUTE, 0x030e0000, "no route to the peer's RDMA address") \
	X(INDIRECT, 0x030f0000, "path by a gateway not allowed") \
	X(SYNC, 0x04000000, "the two ends disagree about the link group") \
	X(PEER_DECLINED, 0x05000000, "peer declined") \
	X(INTERNAL, 0x09990000, "internal error") \
	X(RTOKEN, 0x09990001, "peer's RMB key could not be stored") \
	X(READY_LINK, 0x09990002, "queue pair could not be made ready") \
	X(REG_BUFFER, 0x09990003, "memory registration failed")
/* clang-format on */

#define CLC_DIAG_CONSTANT(name, number, words) CLC_DIAG_##name = (number),

enum clc_diag { CLC_DIAGS(CLC_DIAG_CONSTANT) };

/* The code in plain words, for a log line or a table; "unknown code" for one
 * that is not listed (a foreign implementation has its own: print the number
 * too). Says nothing about which side declined: the caller knows. */
const char *clc_diag_str(uint32_t diag);
