/* SPDX-License-Identifier: BSD-2-Clause */
/* Inside of the device: shared by device.c, drive.c, progress.c and av.c only. */
#ifndef ROCI_DEVICE_STATE_H
#define ROCI_DEVICE_STATE_H

#include <pthread.h>
#include <stdatomic.h>

#include "device/cm_host.h"
#include "device/device.h"
#include "device/link.h"
#include "device/qpn.h"
#include "device/registry.h"
#include "device/side_door.h"
#include "device/stats.h"
#include "device/turns.h"
#include "device/udp.h"

/* Data of epoll events; sockets of the udp link have small numbers. */
#define EVENT_WAKE UINT64_MAX
#define EVENT_DOOR (UINT64_MAX - 1)

struct roci_device {
	pthread_mutex_t lock;       /* guards everything below but the atomics */
	atomic_uint waiting;        /* threads that want the lock and cannot do without */
	_Atomic uint64_t last_call; /* when the application last called roci_device_poll() or roci_device_unlock() */

	unsigned users;
	bool dead; /* inherited by a forked child: it does nothing any more */
	roci_event_fn *on_event;
	struct roci_engine *engine;
	struct roci_cm_host *cm_host;

	struct roci_gid_entry gids[ROCI_MAX_GIDS];
	int gid_count;
	struct roci_registry registry;
	struct roci_qpn_block qpns;
	struct roci_side_door *door;
	struct roci_udp *udp;
	struct roci_link *capture; /* NULL: none */
	struct roci_link *link;    /* the outermost: udp, or what wraps it */
	struct roci_device_stats stats;

	int epoll_fd, wake_fd;
	pthread_t thread;
	bool stop;
	struct roci_turns turns; /* who drives */
	int cancel_state;        /* of the thread that holds the lock: nobody is cancelled while it does (rping cancels
				    threads) */
	bool more;               /* there is more to send than one turn took */
	unsigned door_turn;      /* turns until the door is looked at */
	unsigned door_busy;      /* turns for which it is looked at each time */
	uint64_t repaired_at;    /* the steering */

	struct roci_tx_batch batch;
	struct roci_frame frames[ROCI_LINK_SEND_BATCH];
	struct roci_rx rx;
	struct roci_datagram datagrams[ROCI_LINK_RECV_BATCH];
};

/* drive.c. The lock is held. */

/* One turn: receive, timers, send, tell events. Returns the number of packets that moved. */
unsigned roci_drive(struct roci_device *dev, uint64_t now);
/* One turn for a program that polls. Sending may be deferred. Returns the number of packets received. */
unsigned roci_drive_polling(struct roci_device *dev, uint64_t now);
/* After a call that changed something: tells events, and sends what is ready or defers that. */
void roci_drive_call(struct roci_device *dev, uint64_t now);
/* Sends what a call deferred. */
void roci_drive_deferred(struct roci_device *dev, uint64_t now);

/* progress.c */

int roci_progress_start(struct roci_device *dev);
/* Stops the thread and waits for its end. The lock is not held. */
void roci_progress_stop(struct roci_device *dev);
/* After a call or poll: wakes the thread where it sleeps and must not. The lock is held. */
void roci_progress_wake(struct roci_device *dev);

#endif
