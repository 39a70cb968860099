/* SPDX-License-Identifier: BSD-2-Clause */
#include "device/transmit.h"

#include "device/device_state.h"

/* Of one call. Bounded, so that those who wait for the lock get it, whatever a peer asks for. */
#define BATCHES_MAX 32

static void to_frames(const struct roci_tx_batch *batch, struct roci_frame *frames)
{
	for (unsigned i = 0; i < batch->count; i++) {
		const struct roci_tx_packet *p = &batch->packets[i];

		frames[i] = roci_frame(p->av, p->header, p->header_len, batch->spans + p->first_span, p->span_count);
		frames[i].copy_payload = p->copy_payload;
		frames[i].soft_roce = p->soft_roce;
	}
}

unsigned roci_transmit(struct roci_device *dev, uint64_t now)
{
	struct roci_transmit *t = &dev->transmit;
	unsigned sent = 0, n = 0;

	for (int i = 0; i < BATCHES_MAX && (n = roci_engine_tx(dev->engine, now, &t->batch)); i++) {
		to_frames(&t->batch, t->frames);
		roci_link_send(dev->links.top, t->frames, n);
		roci_engine_tx_done(dev->engine, now);
		sent += n;
	}
	roci_turns_sent(&dev->turns);
	t->more = n != 0;
	return sent;
}
