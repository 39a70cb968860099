/* SPDX-License-Identifier: BSD-2-Clause */
#include "device/transmit.h"

#include "device/capture.h"
#include "device/device_state.h"
#include "device/watch.h"

/* Of one call. Bounded, so that those who wait for the lock get it, whatever a peer asks for. */
#define BATCHES_MAX 32

/* Packets to processes of this host go into their rings, the others become frames. Returns the number of frames. */
static unsigned to_frames(struct roci_device *dev, const struct roci_tx_batch *batch, struct roci_frame *frames)
{
	unsigned n = 0;

	for (unsigned i = 0; i < batch->count; i++) {
		const struct roci_tx_packet *p = &batch->packets[i];

		if (p->av->local) {
			roci_local_send(&dev->local, p, batch->spans + p->first_span);
			continue;
		}
		roci_frame_init(&frames[n], p->av, p->header, p->header_len, batch->spans + p->first_span,
				p->span_count);
		frames[n].copy_payload = p->copy_payload;
		frames[n].whole = p->whole;
		frames[n++].soft_roce = p->soft_roce;
	}
	return n;
}

unsigned roci_transmit(struct roci_device *dev, uint64_t now)
{
	struct roci_transmit *t = &dev->transmit;
	unsigned sent = 0, n = 0;

	roci_watch_look(dev);
	for (int i = 0; i < BATCHES_MAX && (n = roci_engine_tx(dev->engine, now, &t->batch)); i++) {
		unsigned frames;

		if (roci_cm_host_holds(dev)) /* what a program made first, its peer gets first */
			roci_cm_host_send(dev, now);
		frames = to_frames(dev, &t->batch, t->frames);
		if (frames) {
			t->by_links = true;
			roci_link_send(dev->links.top, t->frames, frames);
		}
		roci_engine_tx_done(dev->engine, now);
		sent += n;
	}
	roci_local_flush(&dev->local);
	if (dev->links.watch)
		roci_capture_flush(dev->links.watch); /* what was made up for the local path goes by no link */
	roci_turns_sent(&dev->turns, now);
	t->more = n != 0;
	return sent;
}
