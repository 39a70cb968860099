/* SPDX-License-Identifier: BSD-2-Clause */
/* One turn of the device: datagrams to the engine, the engine's packets to the link. */
#include <string.h>

#include "device/device_state.h"
#include "device/gsi.h"
#include "device/steer.h"

#define DOOR_EVERY   64 /* turns of a polling application; the thread is told by epoll */
#define DOOR_STAYS   1024
#define SEND_BATCHES 32         /* a turn */
#define REPAIR_EVERY 1000000000 /* ns */

static void take(struct roci_device *dev, uint64_t now, const struct roci_datagram *d)
{
	struct roci_rx *rx = &dev->rx;
	enum roci_parse_result result = roci_packet_parse(&rx->pkt, d->bytes, d->len);

	/* A socket does not tell the IPv4 identification (D7): any will do. */
	if (result == ROCI_PARSE_OK && roci_icrc_check(&d->from->flow, d->bytes, d->len) < 0)
		result = ROCI_PARSE_BAD_ICRC;
	if (result != ROCI_PARSE_OK) {
		dev->stats.unparsed[result]++;
		return;
	}
	if (rx->pkt.dest_qpn == ROCI_QPN_GSI) {
		roci_gsi_rx(dev, now, d, &rx->pkt);
		return;
	}
	memcpy(rx->sgid, d->from->flow.src, 16);
	memcpy(rx->dgid, d->from->flow.dst, 16);
	rx->traffic_class = d->from->traffic_class;
	rx->hop_limit = d->from->hop_limit;
	rx->congested = d->from->congested;
	roci_engine_rx(dev->engine, now, rx);
}

/* Datagrams that follow each other in memory as the kernel coalesced them, all for the process that owns `slot`. */
static unsigned bundle_length(const struct roci_datagram *d, unsigned count, unsigned slot)
{
	unsigned n = 1;

	while (n < count && d[n].from == d->from && d[n].bytes == d[n - 1].bytes + d[n - 1].len &&
	       d[n - 1].len == d->len && d[n].len <= d->len && d[n].len >= ROCI_MIN_PACKET_BYTES &&
	       roci_slot_of(roci_dest_qpn(d[n].bytes)) == slot)
		n++;
	return n;
}

/* The kernel gave us packets of another process. Returns how many of d[] are dealt with. */
static unsigned forward(struct roci_device *dev, uint64_t now, const struct roci_datagram *d, unsigned count,
			unsigned slot)
{
	unsigned n = bundle_length(d, count, slot);
	struct iovec iov[2] = {{0}, {d->bytes, (size_t)(d[n - 1].bytes - d->bytes) + d[n - 1].len}};

	if (roci_side_door_send(dev->door, slot, d->from, d->len, iov, 2))
		dev->stats.forward_dropped += n;
	else
		dev->stats.forwarded += n;
	if (now - dev->repaired_at > REPAIR_EVERY) {
		dev->repaired_at = now;
		roci_udp_repair(dev->udp);
	}
	return n;
}

static void take_all(struct roci_device *dev, uint64_t now, unsigned count)
{
	for (unsigned i = 0; i < count;) {
		const struct roci_datagram *d = &dev->datagrams[i];
		uint32_t qpn = d->len < ROCI_MIN_PACKET_BYTES ? ROCI_QPN_MULTICAST : roci_dest_qpn(d->bytes);
		unsigned slot = roci_slot_of(qpn);

		if (qpn == ROCI_QPN_MULTICAST || qpn == ROCI_QPN_GSI || slot == dev->registry.slot) {
			take(dev, now, d);
			i++;
		} else if (slot == 0 || d->from->forwarded) {
			dev->stats.not_ours++;
			i++;
		} else {
			i += forward(dev, now, d, count - i, slot);
		}
	}
}

static unsigned receive(struct roci_device *dev, uint64_t now)
{
	unsigned count = roci_link_recv(dev->link, dev->datagrams), by_door = 0;

	take_all(dev, now, count);
	if (dev->door_busy || !dev->door_turn--) {
		by_door = roci_side_door_recv(dev->door, dev->datagrams, &dev->stats.door_malformed);
		take_all(dev, now, by_door);
		dev->stats.door_received += by_door;
		dev->door_turn = DOOR_EVERY;
		dev->door_busy = by_door ? DOOR_STAYS : dev->door_busy ? dev->door_busy - 1 : 0;
	}
	return count + by_door;
}

static void to_frames(const struct roci_tx_batch *batch, struct roci_frame *frames)
{
	for (unsigned i = 0; i < batch->count; i++) {
		const struct roci_tx_packet *p = &batch->packets[i];

		frames[i] = roci_frame(p->av, p->header, p->header_len, batch->spans + p->first_span, p->span_count);
		frames[i].copy_payload = p->copy_payload;
		frames[i].soft_roce = p->soft_roce;
	}
}

/* Bounded, so that whoever waits for the lock gets it, whatever a peer asks for: the thread comes back for the rest. */
static unsigned send_ready(struct roci_device *dev, uint64_t now)
{
	unsigned sent = 0, n = 0;

	for (int i = 0; i < SEND_BATCHES && (n = roci_engine_tx(dev->engine, now, &dev->batch)); i++) {
		to_frames(&dev->batch, dev->frames);
		roci_link_send(dev->link, dev->frames, n);
		roci_engine_tx_done(dev->engine, now);
		sent += n;
	}
	roci_turns_sent(&dev->turns);
	dev->more = n != 0;
	return sent;
}

static void tell_events(struct roci_device *dev, uint64_t now)
{
	struct roci_event event;

	while (roci_engine_next_event(dev->engine, &event)) {
		if (event.kind == ROCI_EV_ASYNC && event.type == ROCI_EVENT_QP_FATAL)
			roci_cm_host_qp_failed(dev);
		dev->on_event(&event);
	}
	roci_cm_host_drive(dev, now);
}

static unsigned drive_in(struct roci_device *dev, uint64_t now)
{
	unsigned received = receive(dev, now);

	if (roci_engine_deadline(dev->engine) <= now)
		roci_engine_timers(dev->engine, now);
	return received;
}

unsigned roci_drive(struct roci_device *dev, uint64_t now)
{
	unsigned moved = drive_in(dev, now);

	moved += send_ready(dev, now);
	tell_events(dev, now);
	return moved;
}

void roci_drive_deferred(struct roci_device *dev, uint64_t now)
{
	if (dev->turns.deferred)
		send_ready(dev, now);
}

void roci_drive_call(struct roci_device *dev, uint64_t now)
{
	if (roci_turns_send_after_call(&dev->turns))
		send_ready(dev, now);
	tell_events(dev, now);
}

unsigned roci_drive_polling(struct roci_device *dev, uint64_t now)
{
	unsigned received;

	roci_drive_deferred(dev, now);
	received = drive_in(dev, now);
	if (roci_turns_send_after_poll(&dev->turns, received))
		send_ready(dev, now);
	tell_events(dev, now);
	return received;
}
