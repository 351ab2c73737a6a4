/* Connections by source; see source_count.h. */
#include "daemon/account/source_count.h"

#include <assert.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "base/addr.h"

struct source {
	uint8_t addr[SOURCE_LEN]; /* first: the key */
	uint32_t cnt;
};

void
source_of(const union net_addr *a, uint8_t addr[SOURCE_LEN])
{
	if (a->sa.sa_family == AF_UNIX) {
		/* A multicast address never equals that of a TCP client from before a reload. */
		memset(addr, 0, 16);
		addr[0] = 0xff;
		memcpy(addr + 12, &a->un.uid, sizeof(a->un.uid));
		return;
	}
	const struct sockaddr_storage ss = net_addr_get(a);
	addr_to_v6(&ss, addr);
	unsigned len = addr_source_bits(addr) / 8;
	memset(addr + len, 0, 16 - len);
}

static int
by_addr(const void *a, const void *b)
{
	return memcmp(a, b, sizeof(((struct source *)0)->addr));
}

/* The source's place in the tree, or NULL. */
static struct source **
place(const struct source_count *s, const union net_addr *a, struct source *key)
{
	*key = (struct source){ .cnt = 0 };
	source_of(a, key->addr);
	return tfind(key, &s->tree, by_addr);
}

void
source_count_fini(struct source_count *s)
{
	tdestroy(s->tree, free);
}

uint32_t
source_count_add(struct source_count *s, const union net_addr *a)
{
	struct source key, *mine, **at = place(s, a, &key);

	if (at == NULL && (mine = malloc(sizeof(*mine))) != NULL) {
		*mine = key;
		at = tsearch(mine, &s->tree, by_addr);
		if (at == NULL)
			free(mine);
	}
	return at != NULL ? ++(*at)->cnt : 0;
}

void
source_count_remove(struct source_count *s, const union net_addr *a)
{
	struct source key, **at = place(s, a, &key);

	assert(at != NULL);
	struct source *mine = *at;
	if (--mine->cnt > 0)
		return;
	(void)tdelete(mine, &s->tree, by_addr);
	free(mine);
}

uint32_t
source_count_of(const struct source_count *s, const union net_addr *a)
{
	struct source key, **at = place(s, a, &key);

	return at != NULL ? (*at)->cnt : 0;
}
