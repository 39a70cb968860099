/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Events for the driver. Each object that can raise events has a source. A source with pending events is in the
 * engine's list, so nothing is allocated and no event is lost.
 */
#ifndef ROCI_ENGINE_EVENT_H
#define ROCI_ENGINE_EVENT_H

#include "engine/engine.h"
#include "engine/list.h"

struct roci_event_source {
	struct roci_list pending; /* in e->events */
	uint32_t async;           /* bit per enum roci_async_type */
	uint32_t completions;     /* completion events that are pending */
	void *user;
};

static inline void roci_event_source_init(struct roci_event_source *s, void *user)
{
	roci_list_init(&s->pending);
	s->async = 0;
	s->completions = 0;
	s->user = user;
}

/* The object is destroyed: its pending events are dropped. */
static inline void roci_event_source_fini(struct roci_event_source *s)
{
	roci_list_remove(&s->pending);
}

void roci_event_async(struct roci_engine *e, struct roci_event_source *s, enum roci_async_type type);
void roci_event_completion(struct roci_engine *e, struct roci_event_source *s);

#endif
