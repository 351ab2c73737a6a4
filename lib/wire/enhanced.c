/* The block of enhanced connection set-up; see enhanced.h. */
#include "wire/enhanced.h"

#include <errno.h>

#include "base/span.h"

#define DEPTH_MASK 0x3fffu
#define HIGH_BIT 0x8000u
#define LOW_BIT 0x4000u

struct enhanced
enhanced_decode(const uint8_t in[ENHANCED_LEN])
{
	uint16_t ird = be16_get(in), ord = be16_get(in + 2);
	struct enhanced e = { .ird = ird & DEPTH_MASK, .ord = ord & DEPTH_MASK };

	if (ird & HIGH_BIT)
		e.model = ENHANCED_P2P | (ird & LOW_BIT ? RTR_SEND : 0u) | (ord & HIGH_BIT ? RTR_WRITE : 0u) |
		    (ord & LOW_BIT ? RTR_READ : 0u);
	return e;
}

int
enhanced_encode(const struct enhanced *e, uint8_t out[ENHANCED_LEN])
{
	unsigned m = e->model;

	if (e->ird > DEPTH_MASK || e->ord > DEPTH_MASK || m & ~(unsigned)(ENHANCED_P2P | RTR_ANY) ||
	    (m != 0 && !(m & ENHANCED_P2P)))
		return -EINVAL;
	be16_put(out, (uint16_t)(e->ird | (m & ENHANCED_P2P ? HIGH_BIT : 0) | (m & RTR_SEND ? LOW_BIT : 0)));
	be16_put(out + 2, (uint16_t)(e->ord | (m & RTR_WRITE ? HIGH_BIT : 0) | (m & RTR_READ ? LOW_BIT : 0)));
	return ENHANCED_LEN;
}
