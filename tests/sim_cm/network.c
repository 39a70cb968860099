/* SPDX-License-Identifier: BSD-2-Clause */
#include "sim_cm.h"

/* ---- scheduled events: a heap of record numbers ---- */

static bool before(unsigned a, unsigned b)
{
	const struct event *x = &sim.events[a], *y = &sim.events[b];

	return x->at < y->at || (x->at == y->at && x->order < y->order);
}

static void swap(unsigned i, unsigned j)
{
	unsigned other = sim.heap[i];

	sim.heap[i] = sim.heap[j];
	sim.heap[j] = other;
}

struct event *sim_schedule(enum event_kind kind, uint64_t at)
{
	unsigned slot, i = sim.event_count;

	if (i == MAX_EVENTS)
		sim_fail("more events than the simulator has room for");
	slot = sim.free_count ? sim.free[--sim.free_count] : i;
	sim.events[slot].kind = kind;
	sim.events[slot].at = at;
	sim.events[slot].order = sim.order++;
	sim.heap[i] = slot;
	sim.event_count++;
	for (; i && before(sim.heap[i], sim.heap[(i - 1) / 2]); i = (i - 1) / 2)
		swap(i, (i - 1) / 2);
	return &sim.events[slot];
}

bool sim_next(struct event *out, uint64_t until)
{
	unsigned slot, i = 0;

	if (!sim.event_count || sim.events[sim.heap[0]].at > until)
		return false;
	slot = sim.heap[0];
	*out = sim.events[slot];
	sim.free[sim.free_count++] = slot;
	sim.heap[0] = sim.heap[--sim.event_count];
	for (;;) {
		unsigned child = 2 * i + 1;

		if (child >= sim.event_count)
			break;
		if (child + 1 < sim.event_count && before(sim.heap[child + 1], sim.heap[child]))
			child++;
		if (!before(sim.heap[child], sim.heap[i]))
			break;
		swap(i, child);
		i = child;
	}
	return true;
}

/* ---- the network ---- */

static void corrupt(uint8_t *mad)
{
	for (unsigned n = 1 + sim_below(8); n--;)
		mad[sim_below(ROCI_CM_MAD_BYTES)] ^= (uint8_t)(1u << sim_below(8));
}

static void put(const struct roci_cm_tx *tx)
{
	struct event *ev = sim_schedule(EV_MAD, sim.now + 5 * US + sim_below((unsigned)(sim.delay_max / US)) * US);

	ev->tx = *tx;
	if (sim.hostile && sim_chance(100))
		corrupt(ev->tx.mad);
}

void net_send(const struct roci_cm_tx *tx)
{
	sim.mads++;
	cover_message(tx);
	if (sim.now >= sim.blackout_from && sim.now < sim.blackout_to)
		return;
	if (!sim_chance(sim.loss))
		put(tx);
	if (sim_chance(sim.duplicate))
		put(tx);
}

void net_settle(unsigned host)
{
	struct roci_cm *cm = sim.hosts[host].cm;
	struct roci_cm_event ev;
	struct roci_cm_tx tx;
	bool again = cm;

	while (again) {
		again = false;
		cover_states(host);
		for (; roci_cm_next_event(cm, &ev); again = true) {
			sim.events_seen++;
			cover_event(ev.kind);
			app_event(host, &ev);
		}
		for (; roci_cm_tx(cm, sim.now, &tx); again = true)
			net_send(&tx);
	}
}
