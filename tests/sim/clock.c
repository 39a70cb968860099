/* SPDX-License-Identifier: BSD-2-Clause */
/* The virtual clock: a binary heap of events, ties in the order in which they were scheduled. */
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
		sim->heap = sim_own_memory(sim->heap, sim->heap_cap * sizeof(*sim->heap));
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
	else
		ev = sim_own_memory(NULL, sizeof(*ev));
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
	else
		packet = sim_own_memory(NULL, sizeof(*packet));
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

/* ---- clocks that do not run evenly: `sim --clocks` ---- */

#define MOST_STEPS 8
#define STEPS_NS   (20 * MS) /* when the last of them is */
#define MOST_BACK  (5 * MS)
#define MOST_STAND (20 * MS)

void sim_clocks_start(struct sim *sim)
{
	unsigned steps = sim->clocks ? (unsigned)rng_range(&sim->clocks_rng, 1, MOST_STEPS) : 0;

	while (steps--)
		sim_schedule(sim, sim->now + rng_below(&sim->clocks_rng, STEPS_NS), SIM_EV_CLOCK,
			     &sim->hosts[rng_below(&sim->clocks_rng, sim->num_hosts)]);
}

/* The host's clock is later, at once. What waits for a time may end too early. */
void sim_clock_goes(struct sim *sim, struct sim_host *host)
{
	for (unsigned i = 0; i < sim->num_qps; i++)
		sim->qps[i].lost += sim->qps[i].host == host || sim->qps[i].peer->host == host;
	sim_host_touch(host);
}

/* The clock leaps ahead by 1 us to 17 s (a process that was stopped, a guest that was moved), is set back, or stands.
 */
void sim_clock_step(struct sim *sim, struct sim_host *host)
{
	struct rng *r = &sim->clocks_rng;
	uint64_t before = sim_host_now(host);

	if (before > host->clock_newest)
		host->clock_newest = before;
	host->clock_stands_until = 0;
	switch (rng_below(r, 4)) {
	case 0:
		host->clock_stands_at = before;
		host->clock_stands_until = sim->now + rng_below(r, MOST_STAND);
		sim_schedule(sim, host->clock_stands_until, SIM_EV_CLOCK_GOES, host);
		break;
	case 1: host->clock_ahead_ns -= (int64_t)rng_below(r, MOST_BACK); break;
	default: host->clock_ahead_ns += (int64_t)(US << rng_below(r, 25)); break;
	}
	sim_trace(sim, "the clock of host %u is %lld us ahead", host->id, (long long)(host->clock_ahead_ns / 1000));
	sim_clock_goes(sim, host);
}

uint64_t sim_host_now(const struct sim_host *host)
{
	const struct sim *sim = host->sim;

	return sim->now < host->clock_stands_until ? host->clock_stands_at : sim->now + (uint64_t)host->clock_ahead_ns;
}

bool sim_host_is_back(const struct sim_host *host)
{
	return sim_host_now(host) < host->clock_newest;
}

uint64_t sim_host_when(const struct sim_host *host, uint64_t at)
{
	uint64_t when = at - (uint64_t)host->clock_ahead_ns, earliest = host->sim->now;

	if (earliest < host->clock_stands_until)
		earliest = host->clock_stands_until;
	return when < earliest || at <= sim_host_now(host) ? earliest : when;
}
