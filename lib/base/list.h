/* Intrusive doubly linked list: an element embeds a struct list_node. An unlinked node points at itself, so removing it
 * twice is harmless. */
#pragma once

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

/* Also true for an unlinked node. */
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

/* Appends at the tail. */
static inline void
list_push(struct list_node *head, struct list_node *n)
{
	n->prev = head->prev;
	n->next = head;
	head->prev->next = n;
	head->prev = n;
}

static inline void
list_push_front(struct list_node *head, struct list_node *n)
{
	list_push(head->next, n);
}

/* First node, or NULL if the list is empty. */
static inline struct list_node *
list_first(const struct list_node *head)
{
	return list_empty(head) ? NULL : head->next;
}

/* Removes and returns the first node; NULL if the list is empty. */
static inline struct list_node *
list_pop(struct list_node *head)
{
	struct list_node *n = list_first(head);

	if (n != NULL)
		list_remove(n);
	return n;
}

/* Moves all nodes of `from`, in order, to the empty list `to`. */
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

/* Nodes of a list in order. The body may remove the current node only. */
#define LIST_FOREACH(n, head) \
	for (struct list_node *n = (head)->next, *n##_next = n->next; n != (head); n = n##_next, n##_next = n->next)

/* The struct whose node is at `off`; NULL for a NULL node. */
static inline void *
list_object(struct list_node *n, size_t off)
{
	return n != NULL ? (char *)n - off : NULL;
}

/* The node after n, or NULL at the end. */
static inline struct list_node *
list_next(const struct list_node *head, const struct list_node *n)
{
	return n->next != head ? n->next : NULL;
}

/* The first element as its type, left in the list or removed; NULL if the list is empty. */
#define LIST_FIRST(type, head, member) ((type *)list_object(list_first(head), offsetof(type, member)))
#define LIST_POP(type, head, member) ((type *)list_object(list_pop(head), offsetof(type, member)))

/* The element after obj, which may be NULL; NULL at the end. */
#define LIST_NEXT(type, obj, head, member) \
	((type *)((obj) != NULL ? list_object(list_next(head, &(obj)->member), offsetof(type, member)) : NULL))

/* The first element for which cond, an expression of obj, is true; NULL: none. */
#define LIST_FIND(type, obj, head, member, cond)                  \
	({                                                        \
		type *obj = LIST_FIRST(type, head, member);       \
		while (obj != NULL && !(cond))                    \
			obj = LIST_NEXT(type, obj, head, member); \
		obj;                                              \
	})

/* Elements in order, as their type: LIST_EACH(struct rmb, rmb, &lgr->rmbs, node). The body may remove and free the
 * current element only. */
#define LIST_EACH(type, obj, head, member)                                                                 \
	for (type *obj = LIST_FIRST(type, head, member), *obj##_next = LIST_NEXT(type, obj, head, member); \
	     obj != NULL; obj = obj##_next, obj##_next = LIST_NEXT(type, obj, head, member))
