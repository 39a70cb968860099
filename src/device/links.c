/* SPDX-License-Identifier: BSD-2-Clause */
#include "device/links.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/capture.h"
#include "device/delay.h"
#include "device/device_state.h"
#include "device/fault.h"
#include "device/pieces.h"
#include "device/seal.h"
#include "device/side_door.h"
#include "device/udp.h"

static int open_fault(struct roci_links *links, const char *text, struct roci_device_stats *stats)
{
	struct roci_fault_plan plan;
	char why[160], what[192];
	int err = roci_fault_parse(text, &plan, why, sizeof(why));

	if (err) {
		snprintf(what, sizeof(what), "ROCI_FAULT: %s", why);
		return roci_device_open_failed(what, err);
	}
	if (plan.delay_ns || plan.jitter_ns) {
		err = roci_delay_open(links->top, &plan, stats, &links->delay);
		if (err)
			return roci_device_open_failed("memory", err);
		links->top = links->delay;
	}
	err = roci_fault_open(links->top, &plan, stats, links->capture ? roci_capture_trace(links->capture) : NULL,
			      &links->top);
	return err ? roci_device_open_failed("memory", err) : 0;
}

/* Wraps the udp link. What the environment asks for and cannot have is refused. */
static int wrap(struct roci_links *links, struct roci_engine *engine, struct roci_device_stats *stats)
{
	const char *capture = getenv("ROCI_CAPTURE"), *fault = getenv("ROCI_FAULT"), *path = getenv("ROCI_PATH");
	char what[512];
	int err;

	if (path && *path && strcmp(path, "local") && strcmp(path, "wire")) {
		snprintf(what, sizeof(what), "ROCI_PATH=%s: it is local or wire", path);
		return roci_device_open_failed(what, -EINVAL);
	}
	if (capture && *capture) {
		err = roci_capture_open(links->top, capture, &links->capture);
		if (err) {
			snprintf(what, sizeof(what), "ROCI_CAPTURE=%s%s", capture,
				 err == -EEXIST  ? ", which is no capture of Rocinante and is left as it is"
				 : err == -EFBIG ? " (see `ulimit -f`)"
				 : err == -EBUSY ? ", which another process has locked; it is stopped or hangs"
						 : "");
			return roci_device_open_failed(what, err);
		}
		links->top = links->capture;
		roci_engine_trace(engine, roci_capture_trace(links->capture));
	}
	err = roci_seal_open(links->top, &links->seal);
	if (err)
		return roci_device_open_failed("memory", err);
	links->top = links->seal;
	err = roci_pieces_open(links->top, stats, &links->top);
	if (err)
		return roci_device_open_failed("memory", err);
	return fault && *fault ? open_fault(links, fault, stats) : 0;
}

static int open_udp(struct roci_device *dev)
{
	struct roci_udp_config config = {
		.gids = &dev->gids,
		.registry = &dev->registry,
		.door = dev->links.door_queue,
		.stats = dev->stats,
		.epoll_fd = dev->progress.epoll_fd,
	};
	int err = roci_udp_open(&config, &dev->links.udp);

	if (err)
		return roci_device_open_failed("sockets", err);
	dev->links.top = roci_udp_link(dev->links.udp);
	return 0;
}

int roci_links_open(struct roci_device *dev)
{
	struct roci_links *links = &dev->links;
	int err = roci_side_door_open(&dev->registry, &links->door);

	if (err)
		return roci_device_open_failed("side door", err);
	roci_door_trust_init(&dev->receive.trust);
	err = roci_progress_watch(&dev->progress, roci_side_door_fd(links->door), ROCI_PROGRESS_DOOR);
	if (err) {
		roci_device_open_failed("epoll", err);
		goto err_close_door;
	}
	err = roci_door_queue_open(links->door, &dev->stats->send_dropped, &links->door_queue);
	if (err) {
		roci_device_open_failed("memory", err);
		goto err_close_door;
	}
	err = open_udp(dev);
	if (err)
		goto err_close_queue;
	err = wrap(links, dev->engine, dev->stats);
	if (!err)
		return 0;
	roci_link_close(links->top);
err_close_queue:
	roci_door_queue_close(links->door_queue);
err_close_door:
	roci_side_door_close(links->door);
	return err;
}

void roci_links_close(struct roci_links *links)
{
	roci_door_queue_finish(links->door_queue);
	roci_link_close(links->top);
	roci_door_queue_close(links->door_queue);
	roci_side_door_close(links->door);
}

void roci_links_close_in_child(struct roci_links *links)
{
	roci_udp_close_in_child(links->udp);
	roci_side_door_close_in_child(links->door);
	if (links->capture)
		roci_capture_close_in_child(links->capture);
	if (links->watch)
		roci_capture_close_in_child(links->watch);
}

void roci_links_leave_host(struct roci_device *dev)
{
	struct roci_links *links = &dev->links;

	roci_door_queue_finish(links->door_queue);
	roci_udp_leave_host(links->udp);
	/* One that is shut is readable for ever. */
	roci_progress_unwatch(&dev->progress, roci_side_door_fd(links->door));
	roci_side_door_shut(links->door);
	if (links->capture)
		roci_capture_flush(links->capture);
	if (links->watch)
		roci_capture_flush(links->watch);
}
