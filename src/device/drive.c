/* SPDX-License-Identifier: BSD-2-Clause */
#include "device/drive.h"

#include "device/device_state.h"
#include "device/watch.h"

#define LATE_RECEIVES 16 /* that are tried before a timer expires: a full socket buffer */

/* Silence is believed only of an empty socket: a process that had to wait for a processor finds timers that are due,
 * and the acknowledgements that they wait for. */
static unsigned receive(struct roci_device *dev, uint64_t now, bool *by_sockets)
{
	unsigned received = 0, more, tries = 0;

	do {
		*by_sockets = *by_sockets || roci_engine_deadline(dev->engine) <= now;
		more = *by_sockets ? roci_receive(dev, now) : roci_receive_by_rings(dev, now);
		received += more;
	} while (more && ++tries < LATE_RECEIVES && roci_engine_deadline(dev->engine) <= now);
	if (roci_engine_deadline(dev->engine) <= now)
		roci_engine_timers(dev->engine, now);
	if (*by_sockets && roci_udp_deadline(dev->links.udp) <= now)
		roci_udp_timers(dev->links.udp, now);
	return received;
}

static unsigned receive_all(struct roci_device *dev, uint64_t now)
{
	bool by_sockets = true;

	return receive(dev, now, &by_sockets);
}

bool roci_drive_events(struct roci_device *dev)
{
	struct roci_event event;
	bool any = false;

	for (; roci_engine_next_event(dev->engine, &event); any = true) {
		if (event.kind == ROCI_EV_ASYNC && event.type == ROCI_EVENT_QP_FATAL)
			roci_cm_host_qp_failed(dev);
		dev->on_event(&event);
	}
	return any;
}

/* Reports events, and drives connections. */
static void report(struct roci_device *dev, uint64_t now)
{
	roci_drive_events(dev);
	roci_cm_host_drive(dev, now);
}

/* What waits to be sent is not left to polls that do not have the lock: they do not see it. */
static void stop_peeks(struct roci_device *dev)
{
	if (dev->turns.deferred || dev->transmit.more)
		roci_local_glance_allow(&dev->receive.glance, 0);
}

unsigned roci_drive(struct roci_device *dev, uint64_t now)
{
	unsigned moved = receive_all(dev, now);

	if (roci_turns_send_after_turn(&dev->turns, now, moved, roci_progress_last_call(dev)))
		moved += roci_transmit(dev, now);
	report(dev, now);
	stop_peeks(dev);
	return moved;
}

unsigned roci_drive_wait(struct roci_device *dev, uint64_t now, roci_ready_fn *ready, void *arg)
{
	unsigned received = receive_all(dev, now), sent;

	report(dev, now);
	if (ready(arg) && !roci_turns_send_before_event(&dev->turns, received)) {
		stop_peeks(dev);
		return received;
	}
	sent = roci_transmit(dev, now);
	report(dev, now);
	stop_peeks(dev);
	return received + sent;
}

/* Nothing has come by a ring, and nothing waits to be sent. */
static bool is_quiet(const struct roci_device *dev)
{
	return !dev->turns.deferred && !dev->transmit.more && !roci_local_waits(&dev->local);
}

bool roci_drive_peek(struct roci_device *dev)
{
	return roci_local_glance_peeks(&dev->receive.glance) && roci_local_seems_quiet(&dev->local);
}

/* Connections are driven with the sockets: nothing of theirs comes by rings, but a QP that fails. */
unsigned roci_drive_poll(struct roci_device *dev, uint64_t now)
{
	bool by_sockets = !roci_local_glance_skips(&dev->receive.glance, now);
	unsigned received;

	if (!by_sockets && is_quiet(dev) && roci_engine_deadline(dev->engine) > now)
		return 0;
	roci_drive_deferred(dev, now);
	received = receive(dev, now, &by_sockets);
	if (roci_turns_send_after_poll(&dev->turns, received))
		roci_transmit(dev, now);
	if (roci_drive_events(dev) || by_sockets)
		roci_cm_host_drive(dev, now);
	stop_peeks(dev);
	return received;
}

void roci_drive_call(struct roci_device *dev, uint64_t now)
{
	if (roci_turns_send_after_call(&dev->turns))
		roci_transmit(dev, now);
	report(dev, now);
	stop_peeks(dev);
}

void roci_drive_post(struct roci_device *dev, uint64_t now)
{
	if (roci_turns_send_after_post(&dev->turns, now, dev->more_to_poll)) {
		roci_transmit(dev, now);
		if (dev->transmit.by_links) /* to send may take longer than what the program does between two posts */
			roci_turns_posted(&dev->turns, roci_now());
	}
	if (roci_drive_events(dev))
		roci_cm_host_drive(dev, now);
	stop_peeks(dev);
}

bool roci_drive_post_is_brief(const struct roci_device *dev)
{
	return !dev->transmit.more && !dev->links.watch && !roci_watch_is_asked(dev) &&
	       !roci_engine_has_tx(dev->engine) && !roci_engine_has_event(dev->engine);
}

/* A WRITE or READ that its initiator executed leaves nothing: it is no call of a stream that the thread should see. */
void roci_drive_post_briefly(struct roci_device *dev, uint64_t now)
{
	if ((dev->local.unpublished || dev->turns.deferred) && roci_turns_send_after_call(&dev->turns)) {
		roci_local_flush(&dev->local);
		roci_turns_sent(&dev->turns, now);
	}
	stop_peeks(dev);
}

void roci_drive_deferred(struct roci_device *dev, uint64_t now)
{
	if (dev->turns.deferred)
		roci_transmit(dev, now);
}
