/*
 * Intrusive doubly linked list. An element carries a struct list_node; a node
 * that is in no list points at itself, so removing it twice is harmless.
 */
#ifndef SMCRD_BASE_LIST_H
#define SMCRD_BASE_LIST_H

#include <stdbool.h>
#include <stddef.h>

struct list_node {
	struct list_node *prev;
	struct list_node *next;
};

#define CONTAINER_OF(ptr, type, member) ((type *)(void *)((char *)(ptr)-offsetof(type, member)))

static inline void
list_init(struct list_node *n)
{
	n->prev = n->next = n;
}

/* Also true for a node that is in no list. */
static inline bool
list_empty(const struct list_node *head)
{
	return head->next == head;
}

static inline void
list_remove(struct list_node *n)
{
	n->prev->next = n->next;
	n->next->prev = n->prev;
	list_init(n);
}

static inline void
list_insert_before(struct list_node *at, struct list_node *n)
{
	n->prev = at->prev;
	n->next = at;
	at->prev->next = n;
	at->prev = n;
}

static inline void
list_push(struct list_node *head, struct list_node *n)
{
	list_insert_before(head, n);
}

static inline void
list_push_front(struct list_node *head, struct list_node *n)
{
	list_insert_before(head->next, n);
}

/* First node, or NULL when the list is empty. */
static inline struct list_node *
list_first(const struct list_node *head)
{
	return list_empty(head) ? NULL : head->next;
}

/* Takes the first node out; NULL when the list is empty. */
static inline struct list_node *
list_pop(struct list_node *head)
{
	struct list_node *n = list_first(head);

	if (n != NULL)
		list_remove(n);
	return n;
}

/* All nodes of `from` in their order into the empty list `to`. */
static inline void
list_move_all(struct list_node *to, struct list_node *from)
{
	list_init(to);
	if (list_empty(from))
		return;
	*to = *from;
	to->next->prev = to->prev->next = to;
	list_init(from);
}

/* The body may remove the current element, no other one. */
#define LIST_FOREACH(n, head) \
	for (struct list_node *n = (head)->next, *n##_next = n->next; n != (head); n = n##_next, n##_next = n->next)

#endif
