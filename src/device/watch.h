/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Somebody wants to see the packets of this process while it runs: `roci dump --pid`. He makes a named pipe in the run
 * directory, which only the same user can enter, and writes his pid into the file of counters (stats_file.h). The
 * device looks there once a turn, and puts a capture link below the seal link. When he is gone, so is the link.
 *
 * One can watch at a time; the next one takes his place. All of this runs under the device's lock.
 */
#ifndef ROCI_DEVICE_WATCH_H
#define ROCI_DEVICE_WATCH_H

#include "device/device_state.h"

/* Begins or ends to watch. */
void roci_watch_change(struct roci_device *dev);

static inline bool roci_watch_is_asked(const struct roci_device *dev)
{
	return atomic_load_explicit(&dev->stats_map.file->watcher, memory_order_relaxed) != 0;
}

static inline void roci_watch_look(struct roci_device *dev)
{
	if (__builtin_expect(roci_watch_is_asked(dev) || dev->links.watch, 0))
		roci_watch_change(dev);
}

#endif
