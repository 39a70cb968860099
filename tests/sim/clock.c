/* SPDX-License-Identifier: BSD-2-Clause */
/* The virtual clock: a binary heap of events, ties in the order in which they were scheduled. */
#include <stdlib.h>

#include "sim.h"

static bool before(const struct sim_event *a, const struct sim_event *b)
{
	return a->at != b->at ? a->at < b->at : a->seq < b->seq;
}

static void heap_push(struct sim *sim, struct sim_event *ev)
{
	unsigned i;

	if (sim->heap_len == sim->heap_cap) {
		sim->heap_cap = sim->heap_cap ? 2 * sim->heap_cap : 256;
		sim->heap = realloc(sim->heap, sim->heap_cap * sizeof(*sim->heap));
		if (!sim->heap)
			abort();
	}
	for (i = sim->heap_len++; i && before(ev, sim->heap[(i - 1) / 2]); i = (i - 1) / 2)
		sim->heap[i] = sim->heap[(i - 1) / 2];
	sim->heap[i] = ev;
}

static struct sim_event *heap_pop(struct sim *sim)
{
	struct sim_event *top = sim->heap[0], *last = sim->heap[--sim->heap_len];
	unsigned i = 0, child;

	while ((child = 2 * i + 1) < sim->heap_len) {
		if (child + 1 < sim->heap_len && before(sim->heap[child + 1], sim->heap[child]))
			child++;
		if (!before(sim->heap[child], last))
			break;
		sim->heap[i] = sim->heap[child];
		i = child;
	}
	sim->heap[i] = last;
	return top;
}

static struct sim_event *event_new(struct sim *sim, uint64_t at, enum sim_event_kind kind, void *obj)
{
	struct sim_event *ev = sim->free_events;

	if (ev)
		sim->free_events = ev->next_free;
	else if (!(ev = malloc(sizeof(*ev))))
		abort();
	*ev = (struct sim_event){.at = at < sim->now ? sim->now : at, .seq = sim->seq++, .kind = kind, .obj = obj};
	return ev;
}

void sim_schedule(struct sim *sim, uint64_t at, enum sim_event_kind kind, void *obj)
{
	heap_push(sim, event_new(sim, at, kind, obj));
}

void sim_schedule_timer(struct sim *sim, uint64_t at, struct sim_host *host)
{
	struct sim_event *ev = event_new(sim, at, SIM_EV_TIMER, host);

	ev->from = ++host->timer_generation;
	heap_push(sim, ev);
}

void sim_schedule_packet(struct sim *sim, uint64_t at, struct sim_host *to, unsigned from, struct sim_packet *packet)
{
	struct sim_event *ev = event_new(sim, at, SIM_EV_PACKET, to);

	ev->packet = packet;
	ev->from = from;
	heap_push(sim, ev);
}

struct sim_event *sim_next_event(struct sim *sim)
{
	struct sim_event *ev;

	if (!sim->heap_len)
		return NULL;
	ev = heap_pop(sim);
	sim->now = ev->at;
	return ev;
}

void sim_event_free(struct sim *sim, struct sim_event *ev)
{
	if (ev->packet)
		sim_packet_free(sim, ev->packet);
	ev->next_free = sim->free_events;
	sim->free_events = ev;
}

struct sim_packet *sim_packet_alloc(struct sim *sim)
{
	struct sim_packet *packet = sim->free_packets;

	if (packet)
		sim->free_packets = packet->next_free;
	else if (!(packet = malloc(sizeof(*packet))))
		abort();
	packet->damaged = packet->stray = false;
	return packet;
}

void sim_packet_free(struct sim *sim, struct sim_packet *packet)
{
	packet->next_free = sim->free_packets;
	sim->free_packets = packet;
}

/* The clock does not start at 0: times are of a clock that has run for long. */
void sim_clock_reset(struct sim *sim)
{
	while (sim->heap_len)
		sim_event_free(sim, heap_pop(sim));
	sim->seq = 0;
	sim->now = 1000000 * MS;
}
