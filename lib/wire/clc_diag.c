/* Decline diagnosis codes in words; see clc_diag.h. */
#include "wire/clc_diag.h"

#include <stddef.h>

static const struct {
	enum clc_diag diag;
	const char *words;
} diags[] = {
	{ CLC_DIAG_NO_MEMORY, "out of memory or of another resource" },
	{ CLC_DIAG_TIMEOUT_CONFIRM_LINK, "no answer to CONFIRM LINK in time" },
	{ CLC_DIAG_TIMEOUT_ADD_LINK, "no answer to ADD LINK in time" },
	{ CLC_DIAG_SERVER_LATE, "the server behind the gateway was not connected in time for SMC-R" },
	{ CLC_DIAG_CONFIG, "configuration error" },
	{ CLC_DIAG_PEER_NO_SMC, "peer does not speak SMC" },
	{ CLC_DIAG_IPSEC, "IPsec in use on the path" },
	{ CLC_DIAG_NO_DEVICE, "no RDMA device" },
	{ CLC_DIAG_NO_SMCD_DEVICE, "no SMC-D device" },
	{ CLC_DIAG_NO_SMCR_DEVICE, "no SMC-R device" },
	{ CLC_DIAG_NO_ISMV2, "hardware without ISM version 2" },
	{ CLC_DIAG_NO_V2_EXT, "peer sent no SMC version 2 extension" },
	{ CLC_DIAG_NO_SMCDV2_EXT, "peer sent no SMC-D version 2 extension" },
	{ CLC_DIAG_NO_SEID, "peer sent no system EID" },
	{ CLC_DIAG_NO_SMCDV2_DEVICE, "no SMC-D version 2 device" },
	{ CLC_DIAG_NO_UEID, "no user-defined EID in common" },
	{ CLC_DIAG_RELEASE, "SMC release negotiation failed" },
	{ CLC_DIAG_MAX_CONNS, "negotiation of the connections per link group failed" },
	{ CLC_DIAG_MAX_LINKS, "negotiation of the links per link group failed" },
	{ CLC_DIAG_MODE_MISMATCH, "SMC modes do not match (SMC-R against SMC-D)" },
	{ CLC_DIAG_RMBE_EYECATCHER, "peer wants eye catchers in the RMB elements" },
	{ CLC_DIAG_SOCKOPT, "unsupported socket option (for example TCP fast open)" },
	{ CLC_DIAG_PREFIX_MISMATCH, "the two ends are not in the same IP subnet" },
	{ CLC_DIAG_VLAN_GET, "VLAN of the connection not found" },
	{ CLC_DIAG_VLAN_ISM, "VLAN not registered with the ISM device" },
	{ CLC_DIAG_NO_ACTIVE_LINK, "no active link in the link group" },
	{ CLC_DIAG_NO_SERVER_LINK, "the server's link is unknown to the client" },
	{ CLC_DIAG_VERSION_MISMATCH, "SMC version mismatch" },
	{ CLC_DIAG_MAX_DMB, "limit of SMC-D buffers reached" },
	{ CLC_DIAG_NO_ROUTE, "no route to the peer's RDMA address" },
	{ CLC_DIAG_INDIRECT, "path by a gateway not allowed" },
	{ CLC_DIAG_SYNC, "the two ends disagree about the link group" },
	{ CLC_DIAG_PEER_DECLINED, "peer declined" },
	{ CLC_DIAG_INTERNAL, "internal error" },
	{ CLC_DIAG_RTOKEN, "peer's RMB key could not be stored" },
	{ CLC_DIAG_READY_LINK, "queue pair could not be made ready" },
	{ CLC_DIAG_REG_BUFFER, "memory registration failed" },
};

const char *
clc_diag_str(uint32_t diag)
{
	for (size_t i = 0; i < sizeof(diags) / sizeof(diags[0]); i++)
		if ((uint32_t)diags[i].diag == diag)
			return diags[i].words;
	return "unknown code";
}
