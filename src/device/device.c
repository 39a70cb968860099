/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#include "device/capture.h"
#include "device/device_state.h"
#include "device/fault.h"
#include "device/seal.h"
#include "device/steer.h"

static pthread_mutex_t the_lock = PTHREAD_MUTEX_INITIALIZER;
static struct roci_device *the_device; /* guarded by the_lock */

static void take_lock(struct roci_device *dev)
{
	if (!pthread_mutex_trylock(&dev->lock))
		return;
	atomic_fetch_add_explicit(&dev->waiting, 1, memory_order_relaxed);
	pthread_mutex_lock(&dev->lock);
	atomic_fetch_sub_explicit(&dev->waiting, 1, memory_order_relaxed);
}

/* The child gets a copy of memory as it is at this moment: nobody may be in the middle of something then. A program of
 * one thread does not know that there is a second one, which would take its locks, those of channels and events too, to
 * the grave. */
static void before_fork(void)
{
	pthread_mutex_lock(&the_lock);
	if (the_device)
		take_lock(the_device);
}

static void after_fork_in_parent(void)
{
	if (the_device)
		pthread_mutex_unlock(&the_device->lock);
	pthread_mutex_unlock(&the_lock);
}

/* A forked child has neither the thread nor a right to the sockets, the slot, the lock: it lets go of them, without the
 * goodbyes that would be its parent's, and starts afresh when it opens a device. */
static void after_fork_in_child(void)
{
	struct roci_device *dev = the_device;

	pthread_mutex_init(&the_lock, NULL);
	the_device = NULL;
	if (!dev)
		return;
	pthread_mutex_init(&dev->lock, NULL);
	dev->dead = true;
	roci_udp_forget(dev->udp);
	if (dev->capture)
		roci_capture_forget(dev->capture);
	close(roci_side_door_fd(dev->door));
	close(dev->epoll_fd);
	close(dev->wake_fd);
	roci_registry_close(&dev->registry);
}

static int fail(const char *what, int err)
{
	fprintf(stderr, "roci: cannot open roci0: %s: %s\n", what, strerror(-err));
	return err;
}

/* Wraps the link: seals, and captures and loses packets as the environment says. */
static int wrap_link(struct roci_device *dev)
{
	const char *capture = getenv("ROCI_CAPTURE"), *fault = getenv("ROCI_FAULT");
	struct roci_fault_plan plan;
	int err;

	if (capture && *capture) {
		err = roci_capture_open(dev->link, capture, &dev->capture);
		if (err)
			return fail("ROCI_CAPTURE", err);
		dev->link = dev->capture;
	}
	err = roci_seal_open(dev->link, &dev->link);
	if (err)
		return fail("memory", err);
	if (fault && *fault) {
		err = roci_fault_parse(fault, &plan);
		if (!err)
			err = roci_fault_open(dev->link, &plan, &dev->link);
		if (err)
			return fail("ROCI_FAULT", err);
	}
	return 0;
}

static int open_links(struct roci_device *dev)
{
	struct epoll_event ev = {.events = EPOLLIN, .data.u64 = EVENT_DOOR};
	struct roci_udp_config config = {.gids = dev->gids, .gid_count = dev->gid_count, .registry = &dev->registry};
	int err = roci_side_door_open(&dev->registry, &dev->door);

	if (err)
		return fail("side door", err);
	if (epoll_ctl(dev->epoll_fd, EPOLL_CTL_ADD, roci_side_door_fd(dev->door), &ev)) {
		err = fail("epoll", -errno);
		goto err_close_door;
	}
	config.door = dev->door;
	config.stats = &dev->stats;
	config.epoll_fd = dev->epoll_fd;
	err = roci_udp_open(&config, &dev->udp);
	if (err) {
		fail("sockets", err);
		goto err_close_door;
	}
	dev->link = roci_udp_link(dev->udp);
	err = wrap_link(dev);
	if (!err)
		return 0;
	roci_link_close(dev->link);
err_close_door:
	roci_side_door_close(dev->door);
	return err;
}

static int open_registry(struct roci_device *dev)
{
	int err = roci_registry_open(&dev->registry);

	if (err == -ENOSPC)
		return fail("1023 of your processes on this host have one already", err);
	if (err)
		return fail("no directory for the host registry ($ROCI_RUNDIR, /dev/shm/roci-UID or "
			    "/tmp/roci-UID, yours and of mode 0700)",
			    err);
	roci_steer_reset(&dev->registry);
	roci_qpn_block_init(&dev->qpns, dev->registry.slot);
	return 0;
}

static void init_lock(struct roci_device *dev)
{
	pthread_mutexattr_t attr;

	pthread_mutexattr_init(&attr);
	pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_ADAPTIVE_NP);
	pthread_mutex_init(&dev->lock, &attr);
	pthread_mutexattr_destroy(&attr);
}

/* dev is zeroed. */
static int open_device(struct roci_device *dev)
{
	int err;

	init_lock(dev);
	dev->gid_count = roci_gid_table(dev->gids, ROCI_MAX_GIDS);
	if (dev->gid_count < 0)
		return fail("the host's addresses", dev->gid_count);
	dev->engine = roci_engine_create();
	if (!dev->engine)
		return fail("engine", -ENOMEM);
	dev->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (dev->epoll_fd < 0) {
		err = fail("epoll", -errno);
		goto err_destroy_engine;
	}
	err = open_registry(dev);
	if (err)
		goto err_close_epoll;
	err = roci_cm_host_open(dev);
	if (err) {
		fail("connection manager", err);
		goto err_close_registry;
	}
	err = open_links(dev);
	if (err)
		goto err_close_cm;
	err = roci_progress_start(dev);
	if (!err)
		return 0;
	fail("thread", err);
	roci_link_close(dev->link);
	roci_side_door_close(dev->door);
err_close_cm:
	roci_cm_host_close(dev);
err_close_registry:
	roci_registry_close(&dev->registry);
err_close_epoll:
	close(dev->epoll_fd);
err_destroy_engine:
	roci_engine_destroy(dev->engine);
	return err;
}

static void print_stats(const struct roci_device *dev)
{
	const char *wish = getenv("ROCI_STATS");

	if (wish && *wish)
		roci_device_stats_print(stderr, &dev->stats, roci_engine_stats(dev->engine));
}

static void close_device(struct roci_device *dev)
{
	roci_device_lock(dev); /* sends what was deferred */
	roci_device_unlock(dev);
	roci_progress_stop(dev);
	print_stats(dev);
	roci_cm_host_disconnect_all(dev, roci_now());
	roci_link_close(dev->link);
	roci_side_door_close(dev->door);
	roci_cm_host_close(dev);
	roci_registry_close(&dev->registry);
	close(dev->epoll_fd);
	roci_engine_destroy(dev->engine);
	pthread_mutex_destroy(&dev->lock);
	free(dev);
}

/* The lock is held for a moment at most, unless a signal's handler ended the program in the midst of it. (By the wall's
 * clock: the thread sanitizer of GCC 12 does not know pthread_mutex_clocklock().) */
static bool take_lock_soon(struct roci_device *dev)
{
	struct timespec until;
	int err;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec++;
	atomic_fetch_add_explicit(&dev->waiting, 1, memory_order_relaxed);
	err = pthread_mutex_timedlock(&dev->lock, &until);
	atomic_fetch_sub_explicit(&dev->waiting, 1, memory_order_relaxed);
	return !err;
}

/* A program that ends without closing the device leaves it as it is: other threads may be in it. But its peers get what
 * they are owed, and the host does not have to find out that it is gone. */
static __attribute__((destructor)) void at_exit(void)
{
	struct roci_device *dev = the_device;

	if (!dev || !take_lock_soon(dev))
		return;
	roci_drive_deferred(dev, roci_now());
	roci_cm_host_disconnect_all(dev, roci_now());
	roci_udp_depart(dev->udp);
	roci_side_door_unlink(dev->door);
	print_stats(dev);
	pthread_mutex_unlock(&dev->lock);
}

int roci_device_get(roci_event_fn *on_event, struct roci_device **out)
{
	static bool fork_handled;
	int cancel_state, err = 0;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state); /* or the_lock would stay locked */
	pthread_mutex_lock(&the_lock);
	if (!the_device) {
		struct roci_device *dev = calloc(1, sizeof(*dev));

		if (!fork_handled)
			fork_handled = !pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
		err = dev ? 0 : fail("memory", -ENOMEM);
		if (!err) {
			dev->on_event = on_event;
			err = open_device(dev);
		}
		if (err)
			free(dev);
		else
			the_device = dev;
	}
	if (!err) {
		the_device->users++;
		*out = the_device;
	}
	pthread_mutex_unlock(&the_lock);
	pthread_setcancelstate(cancel_state, NULL);
	return err;
}

void roci_device_put(struct roci_device *dev)
{
	int cancel_state;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
	pthread_mutex_lock(&the_lock);
	/* A forked child's inherited device stays as it is: pointers to it may be about. */
	if (dev == the_device && !--dev->users) {
		the_device = NULL;
		close_device(dev);
	}
	pthread_mutex_unlock(&the_lock);
	pthread_setcancelstate(cancel_state, NULL);
}

struct roci_engine *roci_device_lock_post(struct roci_device *dev)
{
	int cancel_state;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
	take_lock(dev);
	dev->cancel_state = cancel_state;
	return dev->engine;
}

struct roci_engine *roci_device_lock(struct roci_device *dev)
{
	roci_device_lock_post(dev);
	if (dev->turns.deferred && !dev->dead)
		roci_drive_deferred(dev, roci_now());
	return dev->engine;
}

void roci_device_unlock(struct roci_device *dev)
{
	int cancel_state = dev->cancel_state;

	if (!dev->dead) {
		roci_drive_call(dev, roci_now());
		roci_progress_wake(dev);
		/* Taken again: sending may last longer than a call is fresh. */
		atomic_store_explicit(&dev->last_call, roci_now(), memory_order_relaxed);
	}
	pthread_mutex_unlock(&dev->lock);
	pthread_setcancelstate(cancel_state, NULL);
}

void roci_device_poll(struct roci_device *dev)
{
	bool busy = pthread_mutex_trylock(&dev->lock), yield = false;
	uint64_t now = roci_now(); /* after the lock was had: not older than what others drove with */
	int cancel_state;

	atomic_store_explicit(&dev->last_call, now, memory_order_relaxed);
	if (busy)
		return;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
	if (!dev->dead) {
		yield = roci_turns_polled(&dev->turns, roci_drive_polling(dev, now));
		roci_progress_wake(dev);
		dev->stats.poll_turns++;
	}
	pthread_mutex_unlock(&dev->lock);
	pthread_setcancelstate(cancel_state, NULL);
	/* Whoever has to send what this one waits for may be waiting for its processor. */
	if (yield)
		sched_yield();
}

int roci_device_gids(const struct roci_device *dev, const struct roci_gid_entry **entries)
{
	*entries = dev->gids;
	return dev->gid_count;
}

int roci_device_listen(struct roci_device *dev, int sgid_index)
{
	int err = 0;

	if (dev->dead)
		return -ENODEV;
	if (sgid_index >= 0)
		return roci_udp_listen(dev->udp, sgid_index);
	for (int i = 0; i < dev->gid_count; i++) {
		int one = roci_udp_listen(dev->udp, i);

		err = err ? err : one;
	}
	return err;
}

int roci_device_join(struct roci_device *dev, const uint8_t gid[16])
{
	return dev->dead ? -ENODEV : roci_udp_join(dev->udp, gid);
}

int roci_device_leave(struct roci_device *dev, const uint8_t gid[16])
{
	return dev->dead ? -ENODEV : roci_udp_leave(dev->udp, gid);
}

int roci_device_alloc_qpn(struct roci_device *dev, uint32_t *qpn)
{
	return roci_qpn_alloc(&dev->qpns, qpn);
}

void roci_device_free_qpn(struct roci_device *dev, uint32_t qpn)
{
	roci_qpn_free(&dev->qpns, qpn);
}
