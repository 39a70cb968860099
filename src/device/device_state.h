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
#include "device/seal.h"
#include "device/side_door.h"
#include "device/stats.h"
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
	bool napping;         /* the thread looks again within a millisecond, whatever happens */
	bool owes;            /* something may be ready that an earlier turn or call left for the next */
	int cancel_state;     /* of the thread that holds the lock: nobody is cancelled while it does (rping cancels
				 threads) */
	bool more;            /* there is more to send than one turn took */
	unsigned idle_polls;  /* in a row that brought nothing */
	unsigned calls;       /* since the last poll */
	unsigned own_sends;   /* calls that sent for themselves, since the thread was last told to look */
	uint64_t wake_at;     /* when the sleeping thread will wake by itself; 0: it needs no telling */
	unsigned door_turn;   /* turns until the door is looked at */
	unsigned door_busy;   /* turns for which it is looked at each time */
	uint64_t repaired_at; /* the steering */

	struct roci_tx_batch batch;
	struct roci_copies copies;
	struct roci_frame frames[ROCI_LINK_SEND_BATCH];
	struct roci_rx rx;
	struct roci_datagram datagrams[ROCI_LINK_RECV_BATCH];
};

/* drive.c. The lock is held. */

/* One turn: receive, timers, send, tell events. Returns the number of packets that moved. */
unsigned roci_drive(struct roci_device *dev, uint64_t now);
/* One turn for an application that polls. After a packet or two it leaves the sending (of their acknowledgement) to the
 * next call, whichever it is: the application sees its completion earlier, and its answer goes in the same message.
 * Returns the number of packets received. */
unsigned roci_drive_polling(struct roci_device *dev, uint64_t now);
/* After a call that changed something: sends what is ready, tells events. While an application polls, only the first
 * call after a poll sends at once, for latency, and those that follow it are sent together. */
void roci_drive_call(struct roci_device *dev, uint64_t now);

/* Sends what an earlier turn or call left. */
void roci_drive_owed(struct roci_device *dev, uint64_t now);

/* progress.c */

int roci_progress_start(struct roci_device *dev);
/* Stops the thread and waits for its end. The lock is not held. */
void roci_progress_stop(struct roci_device *dev);
/* Wakes the thread if it sleeps beyond the engine's deadline. The lock is held. */
void roci_progress_tell(struct roci_device *dev);
/* Wakes the sleeping thread, so that it sees who calls, and leaves the driving to the application. */
void roci_progress_look(struct roci_device *dev);

#endif
