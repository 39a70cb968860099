/* SPDX-License-Identifier: BSD-2-Clause */
#include "device/delay.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "device/device.h"

#define PLACE 64 /* records begin at multiples of it, so there is always room for a header before the end */

/* In the ring. A record never wraps: `bytes` 0 says that the next one is at the ring's beginning. */
struct held {
	uint32_t bytes; /* of the record */
	uint32_t len;   /* of the packet behind it */
	uint64_t due;
	struct roci_arrival from;
};

struct delay {
	struct roci_link link;
	struct roci_link *inner;
	struct roci_device_stats *stats;
	uint64_t delay_ns, jitter_ns;
	uint64_t state;               /* of the generator of jitter */
	uint64_t extra_ns, redraw_at; /* the jitter now, and when it changes */
	uint64_t last_due;
	uint8_t *ring;
	uint64_t written, next,
		freed; /* positions: where the next record goes, is delivered from, may be overwritten */
	struct roci_datagram datagrams[ROCI_LINK_RECV_BATCH];
};

static_assert(sizeof(struct held) <= PLACE, "a header fits before the end of the ring");

static struct held *record_at(const struct delay *d, uint64_t position)
{
	return (struct held *)(d->ring + position % ROCI_DELAY_BYTES);
}

/* The jitter changes once in its own time: drawn for each packet, it would always be the largest of many, because
 * packets keep their order. */
static uint64_t due(struct delay *d, uint64_t now)
{
	uint64_t at;

	if (d->jitter_ns && now >= d->redraw_at) {
		d->extra_ns = roci_fault_draw(&d->state) % (d->jitter_ns + 1);
		d->redraw_at = now + d->jitter_ns;
	}
	at = now + d->delay_ns + d->extra_ns;
	d->last_due = at > d->last_due ? at : d->last_due;
	return d->last_due;
}

static void hold_one(struct delay *d, uint64_t at, const struct roci_datagram *packet)
{
	uint32_t bytes = (uint32_t)(PLACE + packet->len + PLACE - 1) / PLACE * PLACE;
	uint64_t left = ROCI_DELAY_BYTES - d->written % ROCI_DELAY_BYTES, skipped = bytes > left ? left : 0;
	struct held *h;

	if (d->written + skipped + bytes - d->freed > ROCI_DELAY_BYTES) {
		d->stats->fault_receive_lost++;
		return;
	}
	if (skipped)
		record_at(d, d->written)->bytes = 0;
	d->written += skipped;
	h = record_at(d, d->written);
	*h = (struct held){.bytes = bytes, .len = packet->len, .due = at, .from = *packet->from};
	h->from.delayed = true;
	memcpy((uint8_t *)h + PLACE, packet->bytes, packet->len);
	d->written += bytes;
	d->stats->fault_receive_delayed++;
}

void roci_delay_hold(struct roci_link *link, uint64_t now, const struct roci_datagram *datagrams, unsigned count)
{
	struct delay *d = (struct delay *)link;
	uint64_t at = count ? due(d, now) : 0;

	for (unsigned i = 0; i < count; i++)
		hold_one(d, at, &datagrams[i]);
}

/* Where the oldest record is, if there is one. */
static uint64_t oldest_at(const struct delay *d)
{
	return record_at(d, d->next)->bytes ? d->next : d->next + ROCI_DELAY_BYTES - d->next % ROCI_DELAY_BYTES;
}

/* The oldest record, or NULL. */
static struct held *oldest(const struct delay *d)
{
	return d->next == d->written ? NULL : record_at(d, oldest_at(d));
}

static void pass(struct delay *d, const struct held *h)
{
	d->next = oldest_at(d) + h->bytes;
}

static unsigned delay_recv(struct roci_link *link, struct roci_datagram *out)
{
	struct delay *d = (struct delay *)link;
	uint64_t now = roci_now();
	unsigned count = roci_link_recv(d->inner, d->datagrams), n = 0;
	struct held *h;

	d->freed = d->next; /* what the last receive delivered */
	roci_delay_hold(link, now, d->datagrams, count);
	while (n < ROCI_LINK_RECV_BATCH && (h = oldest(d)) && h->due <= now) {
		out[n++] = (struct roci_datagram){.bytes = (uint8_t *)h + PLACE, .from = &h->from, .len = h->len};
		pass(d, h);
	}
	return n;
}

uint64_t roci_delay_deadline(const struct roci_link *link)
{
	const struct held *h = oldest((const struct delay *)link);

	return h ? h->due : ROCI_NEVER;
}

static void delay_send(struct roci_link *link, struct roci_frame *frames, unsigned count)
{
	roci_link_send(((struct delay *)link)->inner, frames, count);
}

static void delay_close(struct roci_link *link)
{
	struct delay *d = (struct delay *)link;

	roci_link_close(d->inner);
	munmap(d->ring, ROCI_DELAY_BYTES);
	free(d);
}

int roci_delay_open(struct roci_link *inner, const struct roci_fault_plan *plan, struct roci_device_stats *stats,
		    struct roci_link **out)
{
	static const struct roci_link_ops ops = {
		.send = delay_send,
		.recv = delay_recv,
		.close = delay_close,
	};
	struct delay *d = calloc(1, sizeof(*d));

	if (!d)
		return -ENOMEM;
	d->ring = mmap(NULL, ROCI_DELAY_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1,
		       0);
	if (d->ring == MAP_FAILED) {
		free(d);
		return -ENOMEM;
	}
	d->link.ops = &ops;
	d->inner = inner;
	d->stats = stats;
	d->delay_ns = plan->delay_ns;
	d->jitter_ns = plan->jitter_ns;
	d->state = plan->seed;
	*out = &d->link;
	return 0;
}
