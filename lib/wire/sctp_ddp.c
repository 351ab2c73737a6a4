/* DDP over SCTP: profiles and session control messages; see sctp_ddp.h. */
#include "wire/sctp_ddp.h"

#include <errno.h>

const struct sctp_ddp_values sctp_ddp_values[SCTP_DDP_PROFILE_CNT] = {
	[SCTP_DDP_RFC5043] = {
		.adaptation = 1,
		.ppid_segment = 16,
		.ppid_control = 17,
		.first_ssn = 0,
		.function = {
			[SCTP_DDP_INITIATE] = 1,
			[SCTP_DDP_ACCEPT] = 2,
			[SCTP_DDP_REJECT] = 3,
			[SCTP_DDP_TERMINATE] = 4,
			[SCTP_DDP_ENHANCED_INITIATE] = 5,
			[SCTP_DDP_ENHANCED_ACCEPT] = 6,
			[SCTP_DDP_ENHANCED_REJECT] = 7,
		},
	},
	/* 2.1, 2.2; adaptation 1 would be DDP without RDMA */
	[SCTP_DDP_DRAFT00] = {
		.adaptation = 2,
		.ppid_segment = 1,
		.ppid_control = 2,
		.first_ssn = 1,
		.function = {
			[SCTP_DDP_NEGOTIATE] = 1,
			[SCTP_DDP_INITIATE] = 2,
			[SCTP_DDP_ACCEPT] = 3,
			[SCTP_DDP_TERMINATE] = 4,
		},
	},
};

int
sctp_ddp_ssn_decode(struct span message, uint16_t *ssn, struct span *body)
{
	if (message.len < SCTP_DDP_SSN_LEN)
		return -EPROTO;
	*ssn = be16_get(message.ptr);
	*body = (struct span){ .ptr = message.ptr + SCTP_DDP_SSN_LEN, .len = message.len - SCTP_DDP_SSN_LEN };
	return SCTP_DDP_SSN_LEN;
}

/* The function of a code, or SCTP_DDP_FUNCTION_CNT. */
static enum sctp_ddp_function
function_of(enum sctp_ddp_profile profile, uint16_t code)
{
	enum sctp_ddp_function f = 0;

	while (f < SCTP_DDP_FUNCTION_CNT && (code == 0 || sctp_ddp_values[profile].function[f] != code))
		f++;
	return f;
}

static bool
is_block(const uint8_t *p)
{
	return (p[0] & 0x80) != 0 || ((p[0] & 0x40) == 0 && (p[2] & 0xc0) == 0);
}

int
sctp_ddp_control_decode(struct span body, enum sctp_ddp_profile profile, struct sctp_ddp_control *out)
{
	struct rcur r = rcur_make(body.ptr, body.len);
	struct sctp_ddp_control c = { .function = function_of(profile, rcur_be16(&r)) };

	if (r.failed)
		return -EPROTO;
	if (c.function == SCTP_DDP_FUNCTION_CNT)
		return -ENOTSUP;
	if (c.function == SCTP_DDP_TERMINATE) {
		*out = c;
		return 0;
	}
	if (rcur_left(&r) > SCTP_DDP_PD_MAX)
		return -EMSGSIZE;
	c.has_block = sctp_ddp_is_enhanced(c.function);
	if (c.function == SCTP_DDP_ENHANCED_REJECT)
		c.has_block = rcur_left(&r) >= ENHANCED_LEN && is_block(r.p);
	if (c.has_block) {
		const uint8_t *block = rcur_take(&r, ENHANCED_LEN);

		if (block == NULL)
			return -EPROTO;
		c.enh = enhanced_decode(block);
	}
	c.pd = (struct span){ .ptr = r.p, .len = rcur_left(&r) };
	*out = c;
	return 0;
}

int
sctp_ddp_control_encode(
    const struct sctp_ddp_control *c, enum sctp_ddp_profile profile, uint16_t ssn, void *buf, size_t cap)
{
	struct wcur w = wcur_make(buf, cap);
	bool enhanced = sctp_ddp_is_enhanced(c->function);
	size_t pd_len = c->pd.len + (enhanced ? ENHANCED_LEN : 0);
	uint8_t block[ENHANCED_LEN] = { 0 };

	if (c->function >= SCTP_DDP_FUNCTION_CNT || !sctp_ddp_has(profile, c->function) || pd_len > SCTP_DDP_PD_MAX)
		return -EINVAL;
	if (c->function == SCTP_DDP_TERMINATE && pd_len > 0)
		return -EINVAL;
	if (enhanced && enhanced_encode(&c->enh, block) < 0)
		return -EINVAL;
	if (cap < SCTP_DDP_CONTROL_LEN + pd_len)
		return -ENOSPC;
	wcur_be16(&w, ssn);
	wcur_be16(&w, sctp_ddp_values[profile].function[c->function]);
	if (enhanced)
		wcur_bytes(&w, block, sizeof(block));
	wcur_bytes(&w, c->pd.ptr, c->pd.len);
	return (int)(SCTP_DDP_CONTROL_LEN + pd_len);
}
