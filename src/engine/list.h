/* SPDX-License-Identifier: BSD-2-Clause */
/* Doubly linked intrusive list with a head node. A node that is in no list points to itself. */
#ifndef ROCI_ENGINE_LIST_H
#define ROCI_ENGINE_LIST_H

#include <stdbool.h>
#include <stddef.h>

struct roci_list {
	struct roci_list *prev, *next;
};

/* Initializes a list of static storage duration. */
#define ROCI_LIST_INIT(list)                                                                                           \
	{                                                                                                              \
		&(list), &(list)                                                                                       \
	}

#define roci_container_of(ptr, type, member) ((type *)(void *)((char *)(ptr)-offsetof(type, member)))

static inline void roci_list_init(struct roci_list *l)
{
	l->prev = l->next = l;
}

static inline bool roci_list_empty(const struct roci_list *l)
{
	return l->next == l;
}

static inline void roci_list_remove(struct roci_list *n)
{
	n->prev->next = n->next;
	n->next->prev = n->prev;
	roci_list_init(n);
}

static inline void roci_list_append(struct roci_list *head, struct roci_list *n)
{
	n->prev = head->prev;
	n->next = head;
	head->prev->next = n;
	head->prev = n;
}

/* Removes and returns the first node; NULL: the list is empty. */
static inline struct roci_list *roci_list_take_first(struct roci_list *head)
{
	struct roci_list *first = head->next;
	if (first == head)
		return NULL;
	roci_list_remove(first);
	return first;
}

#endif
