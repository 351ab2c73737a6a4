/* Connections by source; see source_count.h. Open addressing, linear probing, at most half full. */
#include "daemon/account/source_count.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/addr.h"

#define CAP_MIN 16

static void
source_of(const union net_addr *a, uint8_t addr[16])
{
	struct sockaddr_storage ss;

	if (a->sa.sa_family == AF_UNIX) {
		/* A multicast address never equals that of a TCP client from before a reload. */
		memset(addr, 0, 16);
		addr[0] = 0xff;
		memcpy(addr + 12, &a->un.uid, sizeof(a->un.uid));
		return;
	}
	net_addr_get(a, &ss);
	addr_to_v6(&ss, addr);
	unsigned len = addr_source_bits(addr) / 8;
	memset(addr + len, 0, 16 - len);
}

static uint64_t
mix(uint64_t x)
{
	x ^= x >> 32;
	x *= 0x9e3779b97f4a7c15;
	x ^= x >> 29;
	x *= 0xbf58476d1ce4e5b9;
	return x ^ x >> 32;
}

static uint32_t
home(const struct source_count *s, const uint8_t addr[16])
{
	uint64_t half[2];

	memcpy(half, addr, sizeof(half));
	return (uint32_t)mix(mix(half[0] ^ s->seed) ^ half[1]) & (s->cap - 1);
}

/* The source's entry, or the free one for it. */
static struct source *
place(const struct source_count *s, const uint8_t addr[16])
{
	uint32_t i = home(s, addr);

	while (s->tab[i].cnt != 0 && memcmp(s->tab[i].addr, addr, 16) != 0)
		i = (i + 1) & (s->cap - 1);
	return &s->tab[i];
}

void
source_count_fini(struct source_count *s)
{
	free(s->tab);
}

static bool
grow(struct source_count *s)
{
	struct source_count next = { .cap = s->cap != 0 ? s->cap * 2 : CAP_MIN, .used = s->used, .seed = s->seed };

	next.tab = calloc(next.cap, sizeof(*next.tab));
	if (next.tab == NULL)
		return false;
	for (uint32_t i = 0; i < s->cap; i++)
		if (s->tab[i].cnt != 0)
			*place(&next, s->tab[i].addr) = s->tab[i];
	free(s->tab);
	*s = next;
	return true;
}

uint32_t
source_count_add(struct source_count *s, const union net_addr *a)
{
	uint8_t addr[16];

	if (s->used * 2 >= s->cap && !grow(s))
		return 0;
	source_of(a, addr);
	struct source *p = place(s, addr);
	if (p->cnt == 0) {
		memcpy(p->addr, addr, sizeof(p->addr));
		s->used++;
	}
	return ++p->cnt;
}

void
source_count_remove(struct source_count *s, const union net_addr *a)
{
	const uint32_t mask = s->cap - 1;
	uint8_t addr[16];

	source_of(a, addr);
	assert(s->cap > 0);
	struct source *p = place(s, addr);
	assert(p->cnt > 0);
	if (--p->cnt > 0)
		return;
	s->used--;
	/* Entries after the freed place move up: a search stops at a free place. */
	uint32_t gap = (uint32_t)(p - s->tab);
	for (uint32_t i = (gap + 1) & mask; s->tab[i].cnt != 0; i = (i + 1) & mask) {
		if (((i - home(s, s->tab[i].addr)) & mask) < ((i - gap) & mask))
			continue;
		s->tab[gap] = s->tab[i];
		s->tab[i].cnt = 0;
		gap = i;
	}
}

uint32_t
source_count_of(const struct source_count *s, const union net_addr *a)
{
	uint8_t addr[16];

	if (s->cap == 0)
		return 0;
	source_of(a, addr);
	return place(s, addr)->cnt;
}
