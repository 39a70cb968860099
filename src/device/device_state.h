/* SPDX-License-Identifier: BSD-2-Clause */
/* The device from inside, for src/device only. */
#ifndef ROCI_DEVICE_STATE_H
#define ROCI_DEVICE_STATE_H

#include <pthread.h>
#include <stdatomic.h>

/* IWYU pragma: begin_exports */
#include "device/addresses.h"
#include "device/cm_host.h"
#include "device/device.h"
#include "device/drive.h"
#include "device/link.h"
#include "device/links.h"
#include "device/local/local.h"
#include "device/lock.h"
#include "device/path_mtu.h"
#include "device/progress.h"
#include "device/qpn.h"
#include "device/receive.h"
#include "device/registry.h"
#include "device/door_queue.h"
#include "device/stats.h"
#include "device/stats_file.h"
#include "device/transmit.h"
#include "device/turns.h"
#include "device/udp.h"
#include "engine/why.h"
/* IWYU pragma: end_exports */

struct roci_device {
	/* Life: device.c. */
	unsigned users; /* guarded by the_lock of device.c */
	bool dead;      /* inherited by a forked child: it does nothing any more */

	struct roci_lock lock;      /* guards what follows */
	uint64_t posted_at;         /* the time, as far as a thread that posts has read it; else 0 */
	bool more_to_poll;          /* likewise: it has completions to poll */
	_Atomic uint64_t last_call; /* when the program last called or polled; not guarded */
	roci_event_fn *on_event;
	struct roci_list contexts; /* of src/verbs, for the events of the port */

	struct roci_engine *engine;      /* QPs, CQs, memory */
	struct roci_cm_host *cm_host;    /* connections, QP1 */
	uint64_t nat_look_at;            /* when to look for an address again; ROCI_CM_NEVER: none is missing */
	struct roci_nat_key nat_key;     /* that cookies are made with */
	struct roci_why_pace nat_why;    /* of lines about packets that a NAT may have changed */
	struct roci_path_mtus path_mtus; /* what is known of the paths to other hosts */

	struct roci_gids gids;                     /* this host's addresses; written under gids_lock, too */
	pthread_mutex_t gids_lock;                 /* for readers without the device's lock */
	struct roci_addresses addresses;           /* how the table follows the host */
	_Atomic uint32_t gid_holds[ROCI_MAX_GIDS]; /* address handles of each index; not guarded */

	struct roci_registry registry; /* this process among those of the host */
	struct roci_qpn_block qpns;    /* the QP numbers of this process */

	struct roci_local local;       /* peers on this host */
	struct roci_links links;       /* sockets, capture, faults, side door */
	struct roci_transmit transmit; /* packets on their way out */
	struct roci_receive receive;   /* packets on their way in */

	struct roci_turns turns;       /* who drives */
	int awaited_fd;                /* of the event for which the thread that drives right now waits; -1 */
	struct roci_progress progress; /* the thread */

	struct roci_stats_map stats_map; /* for people; nothing is decided by them */
	struct roci_device_stats *stats; /* there */
};

/* The address that the host sends to `dgid` from. 0, or a negative errno: there is no route. */
int roci_device_source_of(struct roci_device *dev, const uint8_t dgid[16], uint8_t sgid[16]);

/* Prints why the device cannot be opened, unless that is what it printed last. Returns err. */
int roci_device_open_failed(const char *what, int err);

#endif
