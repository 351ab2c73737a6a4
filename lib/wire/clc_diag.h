/*
 * Diagnosis codes of the CLC Decline message. RFC 7609 A.2.5 leaves them to
 * each implementation; these are Linux's numbers, so that both ends of a mixed
 * pair read the same thing. Used by whoever sends, logs or shows a fallback.
 */
#ifndef SMCRD_WIRE_CLC_DIAG_H
#define SMCRD_WIRE_CLC_DIAG_H

#include <stdint.h>

enum clc_diag {
	CLC_DIAG_NO_MEMORY = 0x01010000,
	CLC_DIAG_TIMEOUT_CONFIRM_LINK = 0x02010000,
	CLC_DIAG_TIMEOUT_ADD_LINK = 0x02020000,
	CLC_DIAG_SERVER_LATE = 0x02f00000, /* not Linux's: only a gateway has a server behind it */
	CLC_DIAG_CONFIG = 0x03000000,
	CLC_DIAG_PEER_NO_SMC = 0x03010000,
	CLC_DIAG_IPSEC = 0x03020000,
	CLC_DIAG_NO_DEVICE = 0x03030000,
	CLC_DIAG_NO_SMCD_DEVICE = 0x03030001,
	CLC_DIAG_NO_SMCR_DEVICE = 0x03030002,
	CLC_DIAG_NO_ISMV2 = 0x03030003,
	CLC_DIAG_NO_V2_EXT = 0x03030004,
	CLC_DIAG_NO_SMCDV2_EXT = 0x03030005,
	CLC_DIAG_NO_SEID = 0x03030006,
	CLC_DIAG_NO_SMCDV2_DEVICE = 0x03030007,
	CLC_DIAG_NO_UEID = 0x03030008,
	CLC_DIAG_RELEASE = 0x03030009,
	CLC_DIAG_MAX_CONNS = 0x0303000a,
	CLC_DIAG_MAX_LINKS = 0x0303000b,
	CLC_DIAG_MODE_MISMATCH = 0x03040000,
	CLC_DIAG_RMBE_EYECATCHER = 0x03050000,
	CLC_DIAG_SOCKOPT = 0x03060000,
	CLC_DIAG_PREFIX_MISMATCH = 0x03070000,
	CLC_DIAG_VLAN_GET = 0x03080000,
	CLC_DIAG_VLAN_ISM = 0x03090000,
	CLC_DIAG_NO_ACTIVE_LINK = 0x030a0000,
	CLC_DIAG_NO_SERVER_LINK = 0x030b0000,
	CLC_DIAG_VERSION_MISMATCH = 0x030c0000,
	CLC_DIAG_MAX_DMB = 0x030d0000,
	CLC_DIAG_NO_ROUTE = 0x030e0000,
	CLC_DIAG_INDIRECT = 0x030f0000,
	CLC_DIAG_SYNC = 0x04000000,          /* goes with the out-of-sync flag */
	CLC_DIAG_PEER_DECLINED = 0x05000000, /* Linux: a local reason, never sent; two smcrd: the answer to a Decline */
	CLC_DIAG_INTERNAL = 0x09990000,
	CLC_DIAG_RTOKEN = 0x09990001,
	CLC_DIAG_READY_LINK = 0x09990002,
	CLC_DIAG_REG_BUFFER = 0x09990003,
};

/* The code in plain words, for a log line or a table; "unknown code" for one
 * that is not listed (a foreign implementation has its own: print the number
 * too). Says nothing about which side declined: the caller knows. */
const char *clc_diag_str(uint32_t diag);

#endif
