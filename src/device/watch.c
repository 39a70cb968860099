/* SPDX-License-Identifier: BSD-2-Clause */
#include "device/watch.h"

#include <stdio.h>
#include <unistd.h>

#include "device/capture.h"
#include "device/capture_pipe.h"
#include "device/seal.h"

static void end(struct roci_device *dev)
{
	struct roci_links *links = &dev->links;

	roci_local_watch(&dev->local, NULL);
	roci_seal_wrap(links->seal, roci_capture_unwrap(links->watch));
	links->watch = NULL;
}

/* Failures concern only him who asked: his pipe is gone, and so is he. */
static void begin(struct roci_device *dev, uint32_t watcher)
{
	struct roci_links *links = &dev->links;
	char path[ROCI_WATCH_PATH];
	struct roci_link *watch;

	roci_watch_path(path, dev->registry.dir, getpid(), watcher);
	if (roci_pipe_is(path) && !roci_capture_open(roci_seal_inner(links->seal), path, &watch)) {
		links->watch = watch;
		roci_seal_wrap(links->seal, watch);
		roci_local_watch(&dev->local, watch);
	}
	unlink(path); /* he has it open */
}

void roci_watch_change(struct roci_device *dev)
{
	uint32_t watcher = atomic_exchange(&dev->stats_map.file->watcher, 0);

	if (dev->links.watch && (watcher || !roci_capture_is_read(dev->links.watch)))
		end(dev);
	if (watcher)
		begin(dev, watcher);
}
