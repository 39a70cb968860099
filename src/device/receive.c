/* SPDX-License-Identifier: BSD-2-Clause */
#include "device/receive.h"

#include <string.h>

#include "device/delay.h"
#include "device/device_state.h"
#include "device/watch.h"
#include "device/gsi.h"
#include "device/nat.h"
#include "device/port_names.h"

/* The side door is checked once in so many receives, because that is a system call; the thread knows from epoll. After
 * something came, it is checked at so many receives in a row. */
#define DOOR_EVERY 64
#define DOOR_NS    300000 /* or after so long: beside busy rings there are few of them */
#define DOOR_BUSY  1024
#define AHEAD      3 /* packets: so much earlier a QP is fetched into the cache */
#define REST_TURNS                                                                                                     \
	64 /* receives before the device leaves: what a full socket buffer holds; a flood does not hold it up */
#define REPAIR_NS 1000000000 /* between repairs of the steering, which cost a few system calls */
#define LOOK_NS   10000000   /* between looks whether it needs one */

static void take(struct roci_device *dev, uint64_t now, const struct roci_datagram *d);

/* A PIECE. Only those of a QP's peer take room. */
static void join(struct roci_device *dev, uint64_t now, const struct roci_datagram *d, const struct roci_packet *pkt)
{
	const struct roci_av *peer = roci_engine_peer_of(dev->engine, pkt->dest_qpn);
	const struct roci_flow *from = &d->from->flow;
	struct roci_datagram whole = {.from = d->from};

	if (!peer || memcmp(peer->dgid, from->src, 16) || memcmp(peer->sgid, from->dst, 16)) {
		dev->stats->pieces_refused++;
		return;
	}
	whole.len = roci_pieces_join(&dev->receive.pieces, from, pkt, &whole.bytes);
	if (whole.len)
		take(dev, now, &whole);
}

static void take(struct roci_device *dev, uint64_t now, const struct roci_datagram *d)
{
	struct roci_rx *rx = &dev->receive.rx;
	enum roci_parse_result result = roci_packet_parse(&rx->pkt, d->bytes, d->len);
	enum roci_nat_arrival arrival = ROCI_NAT_NONE;
	struct roci_hello claim;

	if (result == ROCI_PARSE_OK) {
		arrival = roci_nat_judge(dev, d, &rx->pkt, &claim);
		result = arrival == ROCI_NAT_DAMAGED ? ROCI_PARSE_BAD_ICRC : ROCI_PARSE_OK;
	}
	if (result != ROCI_PARSE_OK) {
		dev->stats->unparsed[result]++;
		if (arrival == ROCI_NAT_DAMAGED)
			roci_nat_damaged(dev, now, d, &rx->pkt);
		return;
	}
	if (rx->pkt.dest_qpn == ROCI_QPN_GSI) {
		roci_gsi_rx(dev, now, d, &rx->pkt, arrival == ROCI_NAT_CLAIMED ? &claim : NULL);
		return;
	}
	if (rx->pkt.op->kind == ROCI_KIND_PIECE) {
		join(dev, now, d, &rx->pkt);
		return;
	}
	memcpy(rx->sgid, d->from->flow.src, 16);
	memcpy(rx->dgid, d->from->flow.dst, 16);
	rx->src_port = d->from->flow.src_port;
	rx->traffic_class = d->from->traffic_class;
	rx->hop_limit = d->from->hop_limit;
	rx->congested = d->from->congested;
	if (arrival == ROCI_NAT_CLAIMED)
		roci_nat_hello(dev, now, rx);
	else
		roci_engine_rx(dev->engine, now, rx);
}

/* How many datagrams follow each other in memory, as the kernel joined them, and are for the owner of `slot`. */
static unsigned bundle_length(const struct roci_slot_key *key, const struct roci_datagram *d, unsigned count,
			      unsigned slot)
{
	unsigned n = 1;

	while (n < count && d[n].from == d->from && d[n].bytes == d[n - 1].bytes + d[n - 1].len &&
	       d[n - 1].len == d->len && d[n].len <= d->len && d[n].len >= ROCI_MIN_PACKET_BYTES &&
	       roci_slot_of(key, roci_dest_qpn(d[n].bytes)) == slot)
		n++;
	return n;
}

/* Whether the kernel should have given the packets to the process of `slot`. What is for a process of another registry
 * cannot be steered. To look in the registry is a system call. */
static bool repair_is_due(struct roci_device *dev, uint64_t now, unsigned slot)
{
	struct roci_receive *r = &dev->receive;

	if (now - r->repaired_at <= REPAIR_NS || now - r->looked_at <= LOOK_NS)
		return false;
	r->looked_at = now;
	if (!roci_registry_alive(&dev->registry, slot))
		return false;
	r->repaired_at = now;
	return true;
}

/* Forwards packets that the kernel gave us, but which are for another process. Returns how many of d[]. */
static unsigned forward(struct roci_device *dev, uint64_t now, const struct roci_datagram *d, unsigned count,
			unsigned slot)
{
	unsigned n = bundle_length(&dev->registry.slot_key, d, count, slot);
	struct iovec iov[2] = {{0}, {d->bytes, (size_t)(d[n - 1].bytes - d->bytes) + d[n - 1].len}};

	if (roci_door_queue_send(dev->links.door_queue, slot, d->from, d->len, iov, 2))
		dev->stats->forward_dropped += n;
	else
		dev->stats->forwarded += n;
	if (repair_is_due(dev, now, slot))
		roci_udp_repair(dev->links.udp);
	return n;
}

static bool refused(struct roci_device *dev, uint64_t now, const struct roci_arrival *from)
{
	return from->forwarded && !roci_door_trusts(&dev->receive.trust, now, &dev->gids, from->uid, from->flow.dst);
}

/* Of packet `i`, where it is for another QP than the one before. */
static void expect(const struct roci_device *dev, const struct roci_datagram *d, unsigned i)
{
	if (d[i].len >= ROCI_MIN_PACKET_BYTES && d[i - 1].len >= ROCI_MIN_PACKET_BYTES &&
	    roci_dest_qpn(d[i].bytes) != roci_dest_qpn(d[i - 1].bytes))
		roci_engine_expect(dev->engine, d[i].bytes);
}

static void take_all(struct roci_device *dev, uint64_t now, unsigned count)
{
	for (unsigned i = 0; i < count;) {
		const struct roci_datagram *d = &dev->receive.datagrams[i];
		uint32_t qpn = d->len < ROCI_MIN_PACKET_BYTES ? ROCI_QPN_MULTICAST : roci_dest_qpn(d->bytes);
		unsigned slot = roci_slot_of(&dev->registry.slot_key, qpn);

		if (i + AHEAD < count)
			expect(dev, dev->receive.datagrams, i + AHEAD);
		if (refused(dev, now, d->from)) {
			dev->stats->door_refused++;
			i++;
		} else if (qpn == ROCI_QPN_MULTICAST || qpn == ROCI_QPN_GSI || slot == dev->registry.slot) {
			take(dev, now, d);
			i++;
		} else if (slot == 0 || d->from->forwarded) {
			dev->stats->not_ours++;
			i++;
		} else {
			i += forward(dev, now, d, count - i, slot);
		}
	}
}

/* Delays what nobody has delayed before. Returns how many packets are left to take at once. */
static unsigned delay_some(struct roci_device *dev, uint64_t now, unsigned count)
{
	struct roci_datagram *d = dev->receive.datagrams;
	unsigned left = 0;

	for (unsigned i = 0; i < count; i++) {
		if (d[i].from->delayed)
			d[left++] = d[i];
		else
			roci_delay_hold(dev->links.delay, now, &d[i], 1);
	}
	return left;
}

static unsigned take_at_door(struct roci_device *dev, uint64_t now, int fd)
{
	unsigned n = roci_side_door_recv(dev->links.door, fd, dev->receive.datagrams, &dev->stats->door_malformed);

	take_all(dev, now, dev->links.delay ? delay_some(dev, now, n) : n);
	return n;
}

/* `others`: packets that came by sockets before. */
static unsigned by_rings(struct roci_device *dev, uint64_t now, unsigned others)
{
	unsigned count = roci_local_receive(&dev->local, now);

	roci_local_glance_saw(&dev->receive.glance, now, count, others);
	return count;
}

unsigned roci_receive(struct roci_device *dev, uint64_t now)
{
	struct roci_receive *r = &dev->receive;
	unsigned count, by_door = 0;
	int offers;

	roci_watch_look(dev);
	roci_door_queue_retry(dev->links.door_queue);
	count = roci_link_recv(dev->links.top, r->datagrams);
	take_all(dev, now, count);
	if (r->door_busy || now - r->door_at >= DOOR_NS || !r->door_check_in--) {
		r->door_at = now;
		by_door = take_at_door(dev, now, roci_side_door_fd(dev->links.door));
		offers = roci_port_names_ready(roci_cm_host_port_names(dev));
		if (offers >= 0)
			by_door += take_at_door(dev, now, offers);
		dev->stats->door_received += by_door;
		r->door_check_in = DOOR_EVERY;
		r->door_busy = by_door ? DOOR_BUSY : r->door_busy ? r->door_busy - 1 : 0;
		if (roci_local_wakeup_came(&dev->local))
			roci_progress_wake_now(dev);
	}
	return count + by_door + by_rings(dev, now, count + by_door);
}

unsigned roci_receive_by_rings(struct roci_device *dev, uint64_t now)
{
	return by_rings(dev, now, 0);
}

void roci_receive_rest(struct roci_device *dev, uint64_t now)
{
	for (unsigned i = 0; i < REST_TURNS && roci_receive(dev, now); i++)
		;
}

void roci_receive_door_ready(struct roci_receive *r)
{
	r->door_check_in = 0;
}
