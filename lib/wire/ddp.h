/* DDP segment headers (RFC 5041 4). Pure; used by lib/iwarp. */
#pragma once

#include "base/span.h"

#define DDP_VERSION 1
#define DDP_TAGGED_LEN 14
#define DDP_UNTAGGED_LEN 18
#define DDP_HDR_MAX DDP_UNTAGGED_LEN

struct ddp_hdr {
	bool tagged;
	bool last;
	uint8_t version;  /* as received; DDP_VERSION is sent */
	uint8_t ulp_ctrl; /* RsvdULP byte 0: the RDMAP control byte */
	/* tagged */
	uint32_t stag;
	uint64_t to;
	/* untagged */
	uint32_t ulp_word; /* RsvdULP bytes 1..4: Invalidate STag */
	uint32_t qn;
	uint32_t msn;
	uint32_t mo;
};

/* > 0: header length; 0: need more. Does not check the version: its error code depends on other fields. */
int ddp_decode(struct span in, struct ddp_hdr *out);
/* Writes the header and returns its length. */
size_t ddp_encode(const struct ddp_hdr *, uint8_t out[DDP_HDR_MAX]);
