/* Far ends of an ingress without targets; see far_end.h. */
#include "daemon/account/far_end.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/addr.h"
#include "base/hash.h"
#include "base/str.h"

void
far_ends_init(struct far_ends *all)
{
	*all = (struct far_ends){ .cnt = 0 };
	list_init(&all->used);
	(void)pthread_mutex_init(&all->lock, NULL);
}

static struct far_end **
far_end_place(struct far_ends *all, const struct sockaddr_storage *at)
{
	uint8_t bytes[18];

	addr_to_v6(at, bytes);
	bytes[16] = (uint8_t)(addr_port(at) >> 8);
	bytes[17] = (uint8_t)addr_port(at);
	return &all->place[hash_mix(HASH_START, bytes, sizeof(bytes)) % FAR_END_PLACES];
}

static void
far_end_drop(struct far_ends *all, struct far_end *f)
{
	struct far_end **p = far_end_place(all, &f->at);

	while (*p != f)
		p = &(*p)->next;
	*p = f->next;
	list_remove(&f->node);
	all->cnt--;
	outage_fini(&f->outage);
	free(f);
}

static void
drop_unused(struct far_ends *all, unsigned most)
{
	struct list_node *n = all->used.next, *next;

	for (; n != &all->used && most > 0; n = next) {
		struct far_end *f = CONTAINER_OF(n, struct far_end, node);

		next = n->next;
		if (f->refs > 0)
			continue;
		far_end_drop(all, f);
		most--;
	}
}

void
far_ends_fini(struct far_ends *all)
{
	drop_unused(all, UINT32_MAX);
	assert(all->cnt == 0);
	(void)pthread_mutex_destroy(&all->lock);
}

static struct far_end *
far_end_add(struct far_ends *all, const struct sockaddr_storage *at, struct far_end **place)
{
	if (all->cnt == FAR_ENDS_MAX)
		drop_unused(all, 1);
	struct far_end *f = all->cnt < FAR_ENDS_MAX ? malloc(sizeof(*f)) : NULL;
	if (f == NULL)
		return NULL;
	*f = (struct far_end){ .at = *at, .next = *place };
	outage_init(&f->outage);
	list_init(&f->node);
	*place = f;
	all->cnt++;
	return f;
}

struct far_end *
far_end_get(struct far_ends *all, const struct sockaddr_storage *at)
{
	(void)pthread_mutex_lock(&all->lock);
	struct far_end **place = far_end_place(all, at), *f = *place;
	while (f != NULL && !addr_same_place(&f->at, at))
		f = f->next;
	if (f == NULL)
		f = far_end_add(all, at, place);
	if (f != NULL) {
		f->refs++;
		list_remove(&f->node);
		list_push(&all->used, &f->node);
	}
	(void)pthread_mutex_unlock(&all->lock);
	return f;
}

void
far_end_put(struct far_ends *all, struct far_end *f)
{
	(void)pthread_mutex_lock(&all->lock);
	assert(f->refs > 0);
	f->refs--;
	(void)pthread_mutex_unlock(&all->lock);
}

void
far_ends_forget(struct far_ends *all)
{
	(void)pthread_mutex_lock(&all->lock);
	drop_unused(all, UINT32_MAX);
	LIST_EACH(struct far_end, f, &all->used, node)
		outage_forget(&f->outage);
	(void)pthread_mutex_unlock(&all->lock);
}

unsigned
far_ends_look(struct far_ends *all, const struct service *svc, struct outage_info *out)
{
	char at[ADDR_STR_MAX];
	unsigned cnt = 0;

	(void)pthread_mutex_lock(&all->lock);
	LIST_EACH(struct far_end, f, &all->used, node) {
		struct outage_info one;

		outage_look(svc, &f->outage, &one);
		if (one.text[0] == '\0')
			continue;
		*out = one;
		(void)snprintf(out->text, sizeof(out->text), "%s: ", addr_format_port(&f->at, at, sizeof(at)));
		str_append(out->text, sizeof(out->text), "%s", one.text);
		cnt++;
	}
	if (cnt > 1)
		str_append(out->text, sizeof(out->text), "; and %u more peers", cnt - 1);
	(void)pthread_mutex_unlock(&all->lock);
	return cnt;
}
