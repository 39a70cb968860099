/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The local path (docs/ARCHITECTURE.md): the packets of RC QPs go by rings, as between processes of one host. Between
 * each two hosts there is a ring in either direction. Payload that is long stays in its sender's memory, until the
 * receiver copies it or the sender has taken it back.
 */
#include <stdlib.h>

#include "sim.h"

#include "device/local/ring.h"

struct ring {
	struct roci_local_ring *memory;
	struct roci_local_writer writer;
	struct roci_local_reader reader;
	struct sim_host *from, *to;
	bool scheduled; /* a look of the reader */
};

/* [from][to] */
static struct ring rings[SIM_MAX_HOSTS][SIM_MAX_HOSTS];

/* The payload of a received packet in its sender's memory. */
struct roci_far {
	const struct roci_local_packet *packet;
};

static struct sim_qp *receiver_of(struct sim *sim, const uint8_t *header)
{
	return sim_find_qp(sim, (uint32_t)header[5] << 16 | header[6] << 8 | header[7]);
}

static int fetch(void *driver, const struct roci_far *far, const struct roci_span *to, unsigned count, bool last)
{
	struct sim *sim = ((struct sim_host *)driver)->sim;
	struct roci_span from[ROCI_MAX_SGE];
	const uint8_t *next;
	size_t left;
	unsigned at = 0;

	sim_check(sim, roci_local_packet_spans(far->packet, from), "the spans do not add up to the payload");
	if (roci_local_packet_is_revoked(far->packet)) {
		sim_count_loss(sim, receiver_of(sim, far->packet->header));
		return -1;
	}
	next = from[0].base;
	left = from[0].len;
	for (unsigned i = 0; i < count; i++) {
		uint8_t *dest = to[i].base;

		for (size_t n = 0; n < to[i].len; n++) {
			while (!left) {
				sim_check(sim, ++at < far->packet->span_count, "more is fetched than was sent");
				next = from[at].base;
				left = from[at].len;
			}
			*dest++ = *next++;
			left--;
		}
	}
	return 0;
}

static void take_back(void *driver, uint16_t local, uint32_t dest_qpn)
{
	const struct sim_host *host = driver;

	roci_local_ring_revoke(&rings[host->id][local - 1].writer, 0, 0, dest_qpn);
}

static void close_window(void *driver, const void *base, uint64_t len)
{
	const struct sim_host *host = driver;

	for (unsigned i = 0; i < host->sim->num_hosts; i++)
		roci_local_ring_revoke_responses(&rings[host->id][i].writer, (uintptr_t)base, len);
}

static bool may_read(void *driver, const struct roci_span *spans, unsigned count)
{
	return true;
}

static const struct roci_local_calls calls = {fetch, may_read, take_back, close_window};

void sim_rings_setup(struct sim *sim)
{
	for (unsigned i = 0; i < sim->num_hosts; i++) {
		roci_engine_fetch_by(sim->hosts[i].engine, &calls, &sim->hosts[i]);
		for (unsigned j = 0; j < sim->num_hosts; j++) {
			struct ring *r = &rings[i][j];

			if (!r->memory)
				r->memory = sim_own_pages(sizeof(*r->memory));
			memset(r->memory, 0, sizeof(*r->memory));
			r->writer = (struct roci_local_writer){.ring = r->memory};
			r->reader = (struct roci_local_reader){.ring = r->memory};
			r->from = &sim->hosts[i];
			r->to = &sim->hosts[j];
			r->scheduled = false;
		}
	}
}

void sim_rings_revoke(struct sim_host *host, const void *base, uint64_t len)
{
	for (unsigned i = 0; host->sim->rings && i < host->sim->num_hosts; i++)
		roci_local_ring_revoke(&rings[host->id][i].writer, (uintptr_t)base, len, 0);
}

static void schedule(struct sim *sim, struct ring *r)
{
	if (r->scheduled)
		return;
	r->scheduled = true;
	sim_schedule(sim, sim->now + rng_below(&sim->netrng, 2 * sim->net.delay_ns), SIM_EV_RING, r);
}

/* The packet as the monitor sees it, with its payload in one piece. */
static void show(struct sim *sim, struct sim_host *from, const struct roci_tx_packet *tx, const struct roci_span *spans)
{
	static uint8_t payload[SIM_ARENA_BYTES];
	struct roci_packet pkt;
	uint32_t at = 0;

	sim_check(sim, roci_packet_parse_headers(&pkt, tx->header, tx->header_len, tx->payload_len) == ROCI_PARSE_OK,
		  "the engine sent what cannot be parsed");
	for (unsigned i = 0; i < tx->span_count; at += spans[i++].len)
		memcpy(payload + at, spans[i].base, spans[i].len);
	sim_check(sim, at == tx->payload_len, "the spans do not add up to the payload");
	pkt.payload = payload;
	sim->stats.packets++;
	sim_monitor_sent(sim, from, &pkt);
}

void sim_ring_send(struct sim *sim, struct sim_host *from, const struct roci_tx_packet *tx,
		   const struct roci_span *spans)
{
	struct ring *r = &rings[from->id][tx->av->local - 1];
	bool long_payload = tx->payload_len > ROCI_LOCAL_INLINE;

	show(sim, from, tx, spans + tx->first_span);
	sim_check(sim,
		  roci_local_ring_put(&r->writer, tx->header, tx->header_len, spans + tx->first_span, tx->span_count,
				      tx->payload_len, long_payload),
		  "the ring has no room for what the window allows");
	/* A writer publishes when it likes. */
	if (rng_once_in(&sim->netrng, 2))
		roci_local_ring_publish(&r->writer);
	schedule(sim, r);
}

static void take(struct sim *sim, struct ring *r, const struct roci_local_packet *packet)
{
	struct roci_far far = {packet};
	struct roci_rx rx;

	memset(&rx, 0, sizeof(rx));
	sim_check(sim,
		  roci_packet_parse_headers(&rx.pkt, packet->header, packet->header_len, packet->payload_len) ==
			  ROCI_PARSE_OK,
		  "a packet of the ring does not parse");
	if (packet->span_count)
		rx.pkt.far = &far;
	else
		rx.pkt.payload = roci_local_packet_payload(packet);
	rx.local = (uint16_t)(r->from->id + 1);
	sim_monitor_delivered(sim, r->to, &rx.pkt);
	if (packet->span_count || !roci_engine_rx_promptly(r->to->engine, sim_host_now(r->to), rx.local, packet->header,
							   packet->header_len, rx.pkt.payload, packet->payload_len))
		roci_engine_rx(r->to->engine, sim_host_now(r->to), &rx);
	if (sim->watch)
		sim_model_watch(sim, r->to);
}

/* The reader looks: it takes some, or all. */
void sim_ring_look(struct sim *sim, void *ring)
{
	struct ring *r = ring;
	struct roci_local_packet packet;
	unsigned most = rng_once_in(&sim->netrng, 2) ? UINT32_MAX : rng_range(&sim->netrng, 1, 8);
	int got = 0;

	r->scheduled = false;
	roci_local_ring_publish(&r->writer);
	while (most-- && (got = roci_local_ring_get(&r->reader, &packet)) > 0) {
		take(sim, r, &packet);
		roci_local_ring_next(&r->reader, &packet);
	}
	sim_check(sim, got >= 0, "the ring is no ring");
	roci_local_ring_release(&r->reader);
	if (roci_local_ring_waits(&r->reader))
		schedule(sim, r);
	sim_host_touch(r->to);
}
