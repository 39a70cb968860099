/* SPDX-License-Identifier: BSD-2-Clause */
/* What both ways to connect have in common. */
#include "tour/dial.h"

#include <errno.h>
#include <poll.h>
#include <unistd.h>

#include "tour/clock.h"
#include "tour/stop.h"

int dial_check_offer(const struct dial *d, struct failure *f)
{
	if (d->offer.status == HELLO_TOO_LONG)
		return fail(f, -EMSGSIZE, "%s takes at most %u bytes in one operation of this kind", d->address,
			    d->offer.size_max);
	if (d->offer.status != HELLO_OK)
		return fail(f, -EPROTO, "%s %s", d->address, hello_status_str(d->offer.status));
	return 0;
}

/* Whether the id has an event that ends the connection. Others are acknowledged and passed over. */
static bool disconnected(struct dial *d)
{
	struct rdma_cm_event *event;
	bool lost = false;

	while (!rdma_get_cm_event(d->channel, &event)) {
		lost |= event->event == RDMA_CM_EVENT_DISCONNECTED || event->event == RDMA_CM_EVENT_DEVICE_REMOVAL;
		rdma_ack_cm_event(event);
	}
	return lost;
}

/* The far end sends nothing through the socket after its offer, so all that can come is the end. */
static bool closed(struct dial *d)
{
	char byte;
	ssize_t n = read(d->fd, &byte, 1);

	return n >= 0 || (errno != EAGAIN && errno != EINTR);
}

bool dial_lost(struct dial *d, uint64_t deadline_ns)
{
	for (;;) {
		struct pollfd fds[] = {{.fd = d->channel ? d->channel->fd : d->fd, .events = POLLIN},
				       {.fd = tour_stop_fd(), .events = POLLIN}};
		uint64_t now = tour_now_ns();
		uint64_t ns = deadline_ns > now ? deadline_ns - now : 0;
		struct timespec left = {(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)};
		int n = ppoll(fds, 2, &left, NULL);
		if (n > 0 && fds[0].revents && (d->channel ? disconnected(d) : closed(d)))
			return true;
		if (!n || tour_stopped())
			return false;
	}
}

void dial_disconnect(struct dial *d)
{
	if (d->id && d->id->qp && d->id->qp->qp_type != IBV_QPT_UD)
		rdma_disconnect(d->id);
}

void dial_end(struct dial *d)
{
	bool opened = !d->channel && d->port.verbs;

	if (d->id)
		rdma_destroy_id(d->id);
	if (d->channel)
		rdma_destroy_event_channel(d->channel);
	if (d->fd >= 0)
		close(d->fd);
	if (opened)
		ibv_close_device(d->port.verbs);
	*d = (struct dial){.fd = -1};
}
