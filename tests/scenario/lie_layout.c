/* Fields of messages, by the offsets of RFC 7609 A.2 to A.4 and, for version 2, of IBM's "Shared Memory Communications Version 2"
 * with what Linux has in the bytes that are reserved there. */
#include "tests/scenario/lie_layout.h"

#include "base/span.h"
#include "wire/cdc.h"
#include "wire/clc.h"
#include "wire/llc.h"
#include "wire/open.h"

#define PROPOSAL_V2_AT 50 /* the offset of the extension of version 2 in a Proposal, from byte 52 on */
#define PROPOSAL_IP_AT 38 /* that of the IP area, from byte 40 on */

#define CLC_HEAD                                               \
	{ 4, 1, LK_CODE, "type" }, { 5, 2, LK_LEN, "length" }, \
	{                                                      \
		7, 1, LK_FLAGS, "version and flags"            \
	}
#define LLC_HEAD                                               \
	{ 0, 1, LK_CODE, "type" }, { 1, 1, LK_LEN, "length" }, \
	{                                                      \
		3, 1, LK_FLAGS, "flags"                        \
	}
#define CLC_ACCEPT_FIELDS                                                                                           \
	CLC_HEAD, { 8, 8, LK_PEER_ID, "peer id" }, { 16, 16, LK_GID, "GID" }, { 32, 6, LK_MAC, "MAC" },             \
	    { 38, 3, LK_QPN, "QPN" }, { 41, 4, LK_RKEY, "rkey" }, { 45, 1, LK_INDEX, "element" },                   \
	    { 46, 4, LK_TOKEN, "alert token" }, { 50, 1, LK_CODE, "size and MTU" }, { 52, 8, LK_VADDR, "address" }, \
	    { 61, 3, LK_PSN, "PSN" }, { 64, 5, LK_OTHER, "extension" }, { 69, 2, LK_CODE, "version, transports" },  \
	    { 72, 2, LK_PORT, "MPA port" }, { 74, 2, LK_COUNT, "receive depth" }, { 76, 8, LK_SECRET, "token" },    \
	{                                                                                                           \
		88, 4, LK_TICKET, "ticket"                                                                          \
	}

static const struct layout layouts[] = {
	{ LIE_CLC, CLC_PROPOSAL, 92, "Proposal",
	    { CLC_HEAD, { 8, 8, LK_PEER_ID, "peer id" }, { 16, 16, LK_GID, "GID" }, { 32, 6, LK_MAC, "MAC" },
	        { 38, 2, LK_LEN, "offset" }, { 52, 5, LK_OTHER, "extension" }, { 57, 1, LK_CODE, "version" },
	        { 58, 1, LK_FLAGS, "transports" }, { 60, 2, LK_PORT, "MPA port" }, { 62, 2, LK_COUNT, "receive depth" },
	        { 64, 8, LK_SECRET, "token" }, { 80, 4, LK_OTHER, "subnet" }, { 84, 1, LK_CODE, "prefix" },
	        { 87, 1, LK_COUNT, "prefixes" } } },
	{ LIE_CLC, CLC_ACCEPT, 96, "Accept", { CLC_ACCEPT_FIELDS } },
	{ LIE_CLC, CLC_CONFIRM, 96, "Confirm", { CLC_ACCEPT_FIELDS } },
	{ LIE_CLC, CLC_DECLINE, 28, "Decline",
	    { CLC_HEAD, { 8, 8, LK_PEER_ID, "peer id" }, { 16, 4, LK_CODE, "diagnosis" } } },
	{ LIE_LINK, LLC_CONFIRM_LINK, LLC_LEN, "CONFIRM LINK",
	    { LLC_HEAD, { 4, 6, LK_MAC, "MAC" }, { 10, 16, LK_GID, "GID" }, { 26, 3, LK_QPN, "QPN" },
	        { 29, 1, LK_LINK, "link" }, { 30, 4, LK_OTHER, "user id" }, { 34, 1, LK_COUNT, "most links" } } },
	{ LIE_LINK, LLC_ADD_LINK, LLC_LEN, "ADD LINK",
	    { LLC_HEAD, { 2, 1, LK_CODE, "reason" }, { 4, 6, LK_MAC, "MAC" }, { 12, 16, LK_GID, "GID" },
	        { 28, 3, LK_QPN, "QPN" }, { 31, 1, LK_LINK, "link" }, { 32, 1, LK_CODE, "MTU" },
	        { 33, 3, LK_PSN, "PSN" }, { 36, 2, LK_PORT, "MPA port" } } },
	{ LIE_LINK, LLC_ADD_LINK_CONT, LLC_LEN, "ADD LINK CONTINUATION",
	    { LLC_HEAD, { 4, 1, LK_LINK, "link" }, { 5, 1, LK_COUNT, "count" }, { 8, 4, LK_RKEY, "old rkey" },
	        { 12, 4, LK_RKEY, "new rkey" }, { 16, 8, LK_VADDR, "address" }, { 24, 4, LK_RKEY, "2nd old rkey" },
	        { 28, 4, LK_RKEY, "2nd new rkey" }, { 32, 8, LK_VADDR, "2nd address" } } },
	{ LIE_LINK, LLC_DELETE_LINK, LLC_LEN, "DELETE LINK",
	    { LLC_HEAD, { 4, 1, LK_LINK, "link" }, { 5, 4, LK_CODE, "reason" } } },
	{ LIE_LINK, LLC_CONFIRM_RKEY, LLC_LEN, "CONFIRM RKEY",
	    { LLC_HEAD, { 4, 1, LK_COUNT, "count" }, { 5, 4, LK_RKEY, "rkey" }, { 9, 8, LK_VADDR, "address" },
	        { 17, 1, LK_LINK, "link" }, { 18, 4, LK_RKEY, "its rkey" }, { 22, 8, LK_VADDR, "its address" },
	        { 30, 1, LK_LINK, "2nd link" }, { 31, 4, LK_RKEY, "2nd rkey" }, { 35, 8, LK_VADDR, "2nd address" } } },
	{ LIE_LINK, LLC_CONFIRM_RKEY_CONT, LLC_LEN, "CONFIRM RKEY CONTINUATION",
	    { LLC_HEAD, { 4, 1, LK_COUNT, "count" }, { 5, 1, LK_LINK, "link" }, { 6, 4, LK_RKEY, "rkey" },
	        { 10, 8, LK_VADDR, "address" }, { 18, 1, LK_LINK, "2nd link" }, { 19, 4, LK_RKEY, "2nd rkey" },
	        { 23, 8, LK_VADDR, "2nd address" } } },
	{ LIE_LINK, LLC_DELETE_RKEY, LLC_LEN, "DELETE RKEY",
	    { LLC_HEAD, { 4, 1, LK_COUNT, "count" }, { 5, 1, LK_FLAGS, "mask" }, { 8, 4, LK_RKEY, "rkey" },
	        { 12, 4, LK_RKEY, "2nd rkey" }, { 36, 4, LK_RKEY, "8th rkey" } } },
	{ LIE_LINK, LLC_TEST_LINK, LLC_LEN, "TEST LINK", { LLC_HEAD, { 4, 16, LK_OTHER, "data" } } },
	{ LIE_LINK, OPEN_GRANT, OPEN_LEN, "GRANT",
	    { LLC_HEAD, { 2, 1, LK_COUNT, "count" }, { 4, 4, LK_GRANTED, "alert token" }, { 8, 4, LK_RKEY, "rkey" },
	        { 12, 8, LK_VADDR, "address" }, { 20, 1, LK_INDEX, "element" }, { 21, 1, LK_CODE, "size" },
	        { 22, 4, LK_GRANTED, "2nd alert token" }, { 26, 4, LK_RKEY, "2nd rkey" },
	        { 30, 8, LK_VADDR, "2nd address" }, { 38, 1, LK_INDEX, "2nd element" },
	        { 39, 1, LK_CODE, "2nd size" } } },
	{ LIE_LINK, OPEN_CONN, OPEN_LEN, "OPEN",
	    { LLC_HEAD, { 2, 1, LK_COUNT, "left" }, { 4, 4, LK_GRANTED, "granted token" },
	        { 8, 4, LK_TICKET, "ticket" }, { 12, 4, LK_TOKEN, "alert token" }, { 16, 4, LK_RKEY, "rkey" },
	        { 20, 8, LK_VADDR, "address" }, { 28, 1, LK_INDEX, "element" }, { 29, 1, LK_CODE, "size" },
	        { 30, 1, LK_COUNT, "hops" }, { 32, 4, LK_OTHER, "origin" } } },
	{ LIE_LINK, CDC_TYPE, CDC_LEN, "CDC",
	    { { 0, 1, LK_CODE, "type" }, { 1, 1, LK_LEN, "length" }, { 2, 2, LK_SEQ, "sequence" },
	        { 4, 4, LK_TOKEN, "alert token" }, { 10, 2, LK_COUNT, "producer wrap" },
	        { 12, 4, LK_CURSOR, "producer" }, { 18, 2, LK_COUNT, "consumer wrap" },
	        { 20, 4, LK_CURSOR, "consumer" }, { 24, 1, LK_FLAGS, "producer flags" },
	        { 25, 1, LK_FLAGS, "connection flags" } } },
};

#define LLC_V2(type) (0x20 | (type))
#define LLC_V2_HEAD                                            \
	{ 0, 1, LK_CODE, "type" }, { 1, 2, LK_LEN, "length" }, \
	{                                                      \
		3, 1, LK_FLAGS, "flags"                        \
	}
/* Accept and Confirm with the first-contact extension. */
#define CLC_ACCEPT_V2_FIELDS                                                                                        \
	CLC_HEAD, { 8, 8, LK_PEER_ID, "peer id" }, { 16, 16, LK_GID, "GID" }, { 32, 6, LK_MAC, "MAC" },             \
	    { 38, 3, LK_QPN, "QPN" }, { 41, 4, LK_RKEY, "rkey" }, { 45, 1, LK_INDEX, "element" },                   \
	    { 46, 4, LK_TOKEN, "alert token" }, { 50, 1, LK_CODE, "size and MTU" }, { 52, 8, LK_VADDR, "address" }, \
	    { 61, 3, LK_PSN, "PSN" }, { 64, 32, LK_EID, "EID" }, { 104, 1, LK_FLAGS, "direct" },                    \
	    { 105, 1, LK_CODE, "system and release" }, { 108, 32, LK_OTHER, "host" }, { 140, 1, LK_COUNT, "most" }, \
	{                                                                                                           \
		141, 1, LK_COUNT, "most links"                                                                      \
	}

static const struct layout layouts_v2[] = {
	{ LIE_CLC, CLC_PROPOSAL, 156, "Proposal v2",
	    { CLC_HEAD, { 8, 8, LK_PEER_ID, "peer id" }, { 16, 16, LK_GID, "GID" }, { 32, 6, LK_MAC, "MAC" },
	        { 38, 2, LK_LEN, "offset" }, { PROPOSAL_V2_AT, 2, LK_LEN, "offset of v2" },
	        { IP_AREA | 0, 4, LK_OTHER, "subnet" }, { IP_AREA | 4, 1, LK_CODE, "prefix" },
	        { IP_AREA | 7, 1, LK_COUNT, "prefixes" }, { V2_EXT | 0, 1, LK_COUNT, "EIDs" },
	        { V2_EXT | 1, 1, LK_COUNT, "ISM GIDs" }, { V2_EXT | 3, 1, LK_CODE, "release" },
	        { V2_EXT | 6, 2, LK_LEN, "offset of SMC-D" }, { V2_EXT | 8, 16, LK_GID, "RoCE GID" },
	        { V2_EXT | 24, 1, LK_COUNT, "most" }, { V2_EXT | 25, 1, LK_COUNT, "most links" },
	        { V2_EXT | 26, 2, LK_OTHER, "features" }, { V2_EXT | 40, 32, LK_EID, "EID" } } },
	{ LIE_CLC, CLC_ACCEPT, 160, "Accept v2", { CLC_ACCEPT_V2_FIELDS } },
	{ LIE_CLC, CLC_CONFIRM, 196, "Confirm v2",
	    { CLC_ACCEPT_V2_FIELDS, { 156, 1, LK_COUNT, "GIDs" }, { 160, 16, LK_GID, "2nd GID" } } },
	{ LIE_CLC, CLC_DECLINE, 44, "Decline v2",
	    { CLC_HEAD, { 8, 8, LK_PEER_ID, "peer id" }, { 16, 4, LK_CODE, "diagnosis" }, { 20, 1, LK_CODE, "system" },
	        { 24, 16, LK_OTHER, "further diagnoses" } } },
	{ LIE_LINK, LLC_V2(LLC_CONFIRM_LINK), LLC_LEN, "CONFIRM LINK v2",
	    { LLC_V2_HEAD, { 4, 6, LK_MAC, "MAC" }, { 10, 16, LK_GID, "GID" }, { 26, 3, LK_QPN, "QPN" },
	        { 29, 1, LK_LINK, "link" }, { 30, 4, LK_OTHER, "user id" }, { 34, 1, LK_COUNT, "most links" },
	        { 35, 1, LK_COUNT, "most connections" } } },
	{ LIE_LINK, LLC_V2(LLC_ADD_LINK), 88, "ADD LINK v2",
	    { LLC_V2_HEAD, { 4, 6, LK_MAC, "MAC" }, { 12, 16, LK_GID, "GID" }, { 28, 3, LK_QPN, "QPN" },
	        { 31, 1, LK_LINK, "link" }, { 32, 1, LK_CODE, "MTU" }, { 33, 3, LK_PSN, "PSN" },
	        { 44, 1, LK_FLAGS, "direct" }, { 46, 16, LK_GID, "client GID" }, { 70, 2, LK_COUNT, "count" },
	        { 72, 4, LK_RKEY, "old rkey" }, { 76, 4, LK_RKEY, "new rkey" }, { 80, 8, LK_VADDR, "address" },
	        { 88, 4, LK_RKEY, "2nd old rkey" }, { 92, 4, LK_RKEY, "2nd new rkey" },
	        { 96, 8, LK_VADDR, "2nd address" } } },
	{ LIE_LINK, LLC_V2(LLC_DELETE_LINK), LLC_LEN, "DELETE LINK v2",
	    { LLC_V2_HEAD, { 4, 1, LK_LINK, "link" }, { 5, 4, LK_CODE, "reason" } } },
	{ LIE_LINK, LLC_V2(LLC_REQUEST_ADD_LINK), 60, "REQUEST ADD LINK",
	    { LLC_V2_HEAD, { 24, 1, LK_COUNT, "GIDs" }, { 28, 16, LK_GID, "GID" }, { 44, 16, LK_GID, "2nd GID" } } },
	{ LIE_LINK, LLC_V2(LLC_CONFIRM_RKEY), LLC_LEN, "CONFIRM RKEY v2",
	    { LLC_V2_HEAD, { 4, 1, LK_COUNT, "count" }, { 5, 4, LK_RKEY, "rkey" }, { 9, 8, LK_VADDR, "address" },
	        { 17, 1, LK_LINK, "link" }, { 18, 4, LK_RKEY, "its rkey" }, { 22, 8, LK_VADDR, "its address" },
	        { 30, 1, LK_LINK, "2nd link" }, { 31, 4, LK_RKEY, "2nd rkey" }, { 35, 8, LK_VADDR, "2nd address" } } },
	{ LIE_LINK, LLC_V2(LLC_DELETE_RKEY), LLC_LEN, "DELETE RKEY v2",
	    { LLC_V2_HEAD, { 4, 1, LK_COUNT, "count" }, { 5, 1, LK_COUNT, "unknown" }, { 8, 4, LK_RKEY, "rkey" },
	        { 12, 4, LK_RKEY, "2nd rkey" }, { 40, 4, LK_RKEY, "9th rkey" } } },
	{ LIE_LINK, LLC_V2(LLC_TEST_LINK), LLC_LEN, "TEST LINK v2", { LLC_V2_HEAD, { 4, 16, LK_OTHER, "data" } } },
};

static const struct list_field lists[] = {
	{ LIE_CLC, CLC_PROPOSAL, V2_EXT | 40, CLC_EID_LEN, V2_EXT | 0, 1, LK_EID },
	{ LIE_CLC, CLC_CONFIRM, 160, CLC_GID_LEN, 156, 1, LK_GID },
	{ LIE_LINK, LLC_V2(LLC_ADD_LINK), 72, LLC_PAIR_LEN, 70, 2, LK_RKEY },
	{ LIE_LINK, LLC_V2(LLC_REQUEST_ADD_LINK), 28, CLC_GID_LEN, 24, 1, LK_GID },
	{ LIE_LINK, LLC_V2(LLC_DELETE_RKEY), 8, LLC_RKEY_LEN, 4, 1, LK_RKEY },
};

#define LAYOUTS (sizeof(layouts) / sizeof(layouts[0]))
#define LAYOUTS_V2 (sizeof(layouts_v2) / sizeof(layouts_v2[0]))

size_t
layouts_all(bool v2, const struct layout **first)
{
	*first = v2 ? layouts_v2 : layouts;
	return v2 ? LAYOUTS_V2 : LAYOUTS;
}

static bool
is_v2(enum lie_proto proto, const uint8_t *msg)
{
	return proto == LIE_CLC ? msg[7] >> 4 == 2 : (msg[0] & 0xf0) == LLC_V2(0);
}

const struct layout *
layout_of(enum lie_proto proto, const uint8_t *msg, size_t len)
{
	const struct layout *all;

	if (len < CLC_HDR_LEN)
		return NULL;
	uint8_t type = proto == LIE_CLC ? msg[4] : msg[0];
	size_t cnt = layouts_all(is_v2(proto, msg), &all);
	for (size_t i = 0; i < cnt; i++)
		if (all[i].proto == proto && all[i].type == type)
			return &all[i];
	return NULL;
}

const struct list_field *
layout_list(enum lie_proto proto, const uint8_t *msg, size_t len)
{
	if (len < CLC_HDR_LEN || !is_v2(proto, msg))
		return NULL;
	for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++)
		if (lists[i].proto == proto && lists[i].type == (proto == LIE_CLC ? msg[4] : msg[0]))
			return &lists[i];
	return NULL;
}

size_t
layout_at(uint16_t off, const uint8_t *msg, size_t len)
{
	size_t from = 0;

	if (len < PROPOSAL_V2_AT + 2)
		return (off & (V2_EXT | IP_AREA)) != 0 ? len : off;
	if ((off & V2_EXT) != 0)
		from = PROPOSAL_V2_AT + 2u + be16_get(msg + PROPOSAL_V2_AT);
	else if ((off & IP_AREA) != 0)
		from = PROPOSAL_IP_AT + 2u + be16_get(msg + PROPOSAL_IP_AT);
	return from + (off & ~(V2_EXT | IP_AREA));
}

unsigned
layout_fields(const struct layout *l, const uint8_t *msg, size_t len)
{
	unsigned n = 0;

	while (n < FIELDS_MAX && l->f[n].len > 0 && layout_at(l->f[n].off, msg, len) + l->f[n].len <= len)
		n++;
	return n;
}
