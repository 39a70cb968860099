/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <string.h>

#include "device/device_state.h"
#include "device/say.h"
#include "device/steer.h"
#include "wire/bytes.h"

static pthread_mutex_t the_lock = PTHREAD_MUTEX_INITIALIZER;
static struct roci_device *the_device; /* guarded by the_lock */
static pid_t the_process;              /* that opened it */
static void (*on_fork)(struct roci_device *dev);

/* ---- opening and closing ---- */

/* Guarded by the_lock. A program may try again, for another of its connections: the same reason is said once. */
static struct {
	char what[512];
	int err; /* 0: none since it was open */
} last_failure;

int roci_device_open_failed(const char *what, int err)
{
	const char *hint = err == -ENOMEM && !strchr(what, '(') ? " (see `ulimit -v`)" : "";

	if (last_failure.err != err || strcmp(last_failure.what, what) != 0)
		roci_device_say("roci: cannot open roci0: %s%s: %s\n", what, hint, strerror(-err));
	snprintf(last_failure.what, sizeof(last_failure.what), "%s", what);
	last_failure.err = err;
	return err;
}

static int open_registry(struct roci_device *dev)
{
	int err = roci_registry_open(&dev->registry);

	if (err == -EUSERS)
		return roci_device_open_failed("1023 processes on this host have one already, or somebody keeps their "
					       "names (`grep roci/door /proc/net/unix` counts them)",
					       err);
	if (err == -ENXIO)
		return roci_device_open_failed("/proc/self/ns/net cannot be read; mount /proc", -ENOENT);
	if (err == -EFBIG)
		return roci_device_open_failed("the host registry is a file of some megabytes (see `ulimit -f`)", err);
	if (err)
		return roci_device_open_failed("no directory for the host registry (set ROCI_RUNDIR to one of yours)",
					       err);
	roci_steer_reset(&dev->registry);
	roci_qpn_block_init(&dev->qpns, &dev->registry.slot_key, dev->registry.slot);
	return 0;
}

static int open_stats(struct roci_device *dev)
{
	int err = roci_stats_map_open(&dev->stats_map, dev->registry.dir);

	if (err)
		return roci_device_open_failed("memory for counters", err);
	dev->stats = &dev->stats_map.file->device;
	roci_engine_count_in(dev->engine, &dev->stats_map.file->engine);
	return 0;
}

/* What lives among the other processes of the host, and the thread, which needs it. */
static int open_on_host(struct roci_device *dev)
{
	int err = open_registry(dev);

	if (err)
		return err;
	err = open_stats(dev);
	if (err)
		goto err_close_registry;
	err = roci_cm_host_open(dev);
	if (err) {
		roci_device_open_failed("connection manager", err);
		goto err_close_stats;
	}
	err = roci_links_open(dev);
	if (err)
		goto err_close_cm;
	roci_local_open(&dev->local, &dev->registry, dev->links.door, dev->engine, dev->stats);
	err = roci_progress_start(dev);
	if (!err)
		return 0;
	roci_device_open_failed(err == -ENOMEM ? "a thread (see `ulimit -v` and `ulimit -u`)" : "a thread", err);
	roci_local_close(&dev->local);
	roci_links_close(&dev->links);
err_close_cm:
	roci_cm_host_close(dev);
err_close_stats:
	roci_engine_destroy(dev->engine); /* it counts there */
	dev->engine = NULL;
	roci_stats_map_close(&dev->stats_map);
err_close_registry:
	roci_registry_close(&dev->registry);
	return err;
}

/* A sixteenth of the host's memory for packets that came before an older one. It is taken when they come. */
static uint64_t early_memory(void)
{
	long pages = sysconf(_SC_PHYS_PAGES), bytes = sysconf(_SC_PAGESIZE);

	return pages > 0 && bytes > 0 ? (uint64_t)pages * (uint64_t)bytes / 16 : 0;
}

static struct roci_device *open_device(roci_event_fn *on_event, int *err)
{
	struct roci_device *dev = calloc(1, sizeof(*dev));

	if (!dev) {
		*err = roci_device_open_failed("memory", -ENOMEM);
		return NULL;
	}
	roci_lock_init(&dev->lock);
	pthread_mutex_init(&dev->gids_lock, NULL);
	dev->on_event = on_event;
	dev->awaited_fd = -1;
	roci_list_init(&dev->contexts);
	*err = roci_addresses_open(dev);
	if (*err) {
		roci_device_open_failed("the host's addresses", *err);
		goto err_free;
	}
	dev->engine = roci_engine_create();
	if (!dev->engine) {
		*err = roci_device_open_failed("engine", -ENOMEM);
		goto err_close_addresses;
	}
	roci_engine_early_memory(dev->engine, early_memory());
	roci_engine_receive_room(dev->engine, roci_udp_receive_room());
	for (unsigned i = 0; i < sizeof(dev->nat_key); i += 4)
		roci_put_be32(dev->nat_key.bytes + i, roci_random32());
	roci_engine_nat_key(dev->engine, &dev->nat_key);
	*err = roci_progress_open(&dev->progress);
	if (*err) {
		roci_device_open_failed("epoll", *err);
		goto err_destroy_engine;
	}
	roci_addresses_watch(dev);
	*err = open_on_host(dev);
	if (!*err)
		return dev;
	roci_progress_close(&dev->progress);
err_destroy_engine:
	if (dev->engine)
		roci_engine_destroy(dev->engine);
err_close_addresses:
	roci_addresses_close(dev);
err_free:
	pthread_mutex_destroy(&dev->gids_lock);
	roci_lock_destroy(&dev->lock);
	free(dev);
	return NULL;
}

static void print_stats(const struct roci_device *dev)
{
	const char *wish = getenv("ROCI_STATS");

	if (!wish || !*wish)
		return;
	if (!dev->local.own)
		fprintf(stderr, "roci: no local path: %s\n", dev->local.why);
	else if (dev->local.refused)
		fprintf(stderr, "roci: no local path to some processes: %s\n", dev->local.refused);
	roci_device_stats_print(stderr, dev->stats, roci_engine_stats(dev->engine));
}

static void close_device(struct roci_device *dev)
{
	roci_device_lock(dev); /* sends what was deferred */
	roci_device_unlock(dev);
	roci_progress_stop(dev);
	roci_lock_take(&dev->lock);
	roci_receive_rest(dev, roci_now());
	roci_lock_release(&dev->lock);
	print_stats(dev);
	roci_cm_host_disconnect_all(dev, roci_now());
	roci_links_close(&dev->links);
	roci_pieces_destroy(&dev->receive.pieces);
	roci_cm_host_close(dev);
	roci_progress_close(&dev->progress);
	roci_engine_destroy(dev->engine);
	roci_local_close(&dev->local); /* its QPs published there */
	roci_registry_close(&dev->registry);
	roci_stats_map_close(&dev->stats_map);
	roci_addresses_close(dev);
	pthread_mutex_destroy(&dev->gids_lock);
	roci_lock_destroy(&dev->lock);
	free(dev);
}

/* ---- the device of the process ---- */

/* The child gets a copy of memory as it is at this moment: nobody may be in the middle of something then. A program of
 * one thread does not know that there is a second one, whose locks, those of channels and events too, nobody would
 * release in the child. */
static void before_fork(void)
{
	pthread_mutex_lock(&the_lock);
	if (the_device)
		roci_lock_take(&the_device->lock);
}

static void after_fork_in_parent(void)
{
	if (the_device)
		roci_lock_release(&the_device->lock);
	pthread_mutex_unlock(&the_lock);
}

/* A forked child has no thread, and no right to its parent's sockets, slot and connections. It closes its descriptors
 * of them, tells no peer anything, and opens a device of its own when it wants one. The memory stays: the program may
 * have pointers to it. */
static void after_fork_in_child(void)
{
	struct roci_device *dev = the_device;

	pthread_mutex_init(&the_lock, NULL);
	the_device = NULL;
	if (!dev)
		return;
	roci_lock_reset(&dev->lock);
	pthread_mutex_init(&dev->gids_lock, NULL);
	dev->dead = true;
	roci_local_glance_allow(&dev->receive.glance, 0);
	roci_addresses_close(dev);
	roci_links_close_in_child(&dev->links);
	roci_local_close_in_child(&dev->local);
	roci_cm_host_close_in_child(dev);
	roci_stats_map_leave(&dev->stats_map);
	roci_progress_close(&dev->progress);
	roci_registry_close(&dev->registry);
	if (on_fork)
		on_fork(dev);
}

/* A program that ends without closing the device leaves it as it is, because other threads may be in it. But its peers
 * get what was deferred, and a disconnect; and the host's other processes need not find out that it is gone. The lock
 * is held for a moment at most, unless a signal handler ended the program while its thread held it. */
static __attribute__((destructor)) void at_exit(void)
{
	struct roci_device *dev = the_device;

	if (!dev || !roci_lock_take_soon(&dev->lock))
		return;
	roci_receive_rest(dev, roci_now());
	roci_drive_deferred(dev, roci_now());
	roci_cm_host_disconnect_all(dev, roci_now());
	roci_links_leave_host(dev);
	roci_local_unlink(&dev->local);
	print_stats(dev);
	roci_stats_map_unlink(&dev->stats_map);
	roci_lock_release(&dev->lock);
}

/* No more than that, since the thread may be in a signal handler: nothing is printed, and memory is only allocated
 * where a QP or path sends for the first time. A child of vfork() calls this in its parent's memory. */
void roci_device_send_last(void)
{
	struct roci_device *dev = the_device;

	if (!dev || the_process != getpid() || !roci_lock_take_soon(&dev->lock))
		return;
	roci_drive_deferred(dev, roci_now());
	roci_cm_host_send(dev, roci_now());
	roci_lock_release(&dev->lock);
}

int roci_device_get(roci_event_fn *on_event, struct roci_device **out)
{
	static bool fork_handled;
	int cancel_state, err = 0;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state); /* or the_lock would stay locked */
	pthread_mutex_lock(&the_lock);
	if (!fork_handled)
		fork_handled = !pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
	if (!the_device) {
		the_device = open_device(on_event, &err);
		the_process = getpid();
	}
	if (the_device) {
		last_failure.err = 0;
		the_device->users++;
		*out = the_device;
	}
	pthread_mutex_unlock(&the_lock);
	pthread_setcancelstate(cancel_state, NULL);
	return err;
}

void roci_device_on_fork(void (*in_child)(struct roci_device *dev))
{
	on_fork = in_child;
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

/* ---- calls ---- */

struct roci_list *roci_device_contexts(struct roci_device *dev)
{
	return &dev->contexts;
}

/* Nothing that posts reaches a cancellation point, but captures, which are written. */
struct roci_engine *roci_device_lock_post(struct roci_device *dev)
{
	roci_lock_take_briefly(&dev->lock);
	if (dev->links.capture || dev->links.watch)
		roci_lock_hold_off(&dev->lock);
	dev->posted_at = 0;
	return dev->engine;
}

struct roci_engine *roci_device_lock(struct roci_device *dev)
{
	roci_lock_take(&dev->lock);
	dev->posted_at = 0;
	if (dev->turns.deferred && !dev->dead)
		roci_drive_deferred(dev, roci_now());
	return dev->engine;
}

static void note_call(struct roci_device *dev, uint64_t now)
{
	atomic_store_explicit(&dev->last_call, now, memory_order_relaxed);
}

static void unlock_after(struct roci_device *dev, uint64_t now, void (*drive)(struct roci_device *, uint64_t))
{
	if (!dev->dead) {
		dev->transmit.by_links = false;
		drive(dev, now);
		/* A program that calls without a pause leaves hardly any time in which the thread could have it. */
		if (roci_lock_was_asked(&dev->lock)) {
			roci_lock_hold_off(&dev->lock);
			roci_drive_poll(dev, roci_now());
		}
		roci_progress_wake(dev);
		note_call(dev, dev->transmit.by_links ? roci_now() : now); /* that may have taken long */
	}
	roci_lock_release(&dev->lock);
}

void roci_device_unlock(struct roci_device *dev)
{
	unlock_after(dev, roci_now(), roci_drive_call);
}

static void drive_post(struct roci_device *dev, uint64_t now)
{
	if (roci_drive_post_is_brief(dev)) {
		roci_drive_post_briefly(dev, now);
	} else {
		roci_lock_hold_off(&dev->lock);
		roci_drive_post(dev, now);
	}
}

void roci_device_unlock_post(struct roci_device *dev, bool more)
{
	dev->more_to_poll = more;
	unlock_after(dev, dev->posted_at ? dev->posted_at : roci_now(), drive_post);
}

void roci_device_unlock_quiet(struct roci_device *dev)
{
	if (!dev->dead && roci_engine_has_event(dev->engine)) {
		roci_lock_hold_off(&dev->lock);
		roci_drive_events(dev);
		roci_cm_host_drive(dev, roci_now());
	}
	roci_lock_release(&dev->lock);
}

/* Returns the number of packets received. */
static unsigned drive_poll(struct roci_device *dev)
{
	uint64_t now = roci_now(); /* after the lock was had: not older than what others drove with */
	unsigned received;

	note_call(dev, now);
	roci_lock_was_asked(&dev->lock); /* this is such a turn */
	received = roci_drive_poll(dev, now);
	roci_progress_wake(dev);
	return received;
}

/* True: the caller shall yield the processor. */
static bool poll_turn(struct roci_device *dev)
{
	unsigned peeked = roci_local_glance_peeked(&dev->receive.glance);

	dev->stats->poll_turns += 1 + peeked;
	return roci_turns_polled(&dev->turns, peeked, drive_poll(dev));
}

void roci_device_poll(struct roci_device *dev)
{
	bool yield;

	if (roci_drive_peek(dev))
		return;
	if (!roci_lock_try(&dev->lock)) {
		note_call(dev, roci_now());
		return;
	}
	yield = !dev->dead && poll_turn(dev);
	roci_lock_release(&dev->lock);
	if (yield)
		sched_yield();
}

/* ---- addresses and numbers ---- */

void roci_device_gids(struct roci_device *dev, struct roci_gids *out)
{
	pthread_mutex_lock(&dev->gids_lock);
	*out = dev->gids;
	pthread_mutex_unlock(&dev->gids_lock);
}

bool roci_device_gid(struct roci_device *dev, unsigned index, struct roci_gid_entry *out)
{
	if (index >= ROCI_MAX_GIDS)
		return false;
	pthread_mutex_lock(&dev->gids_lock);
	*out = dev->gids.entries[index];
	pthread_mutex_unlock(&dev->gids_lock);
	return roci_gid_is_present(out);
}

int roci_device_find_gid(struct roci_device *dev, const uint8_t gid[16], uint32_t ifindex)
{
	int index;

	pthread_mutex_lock(&dev->gids_lock);
	index = roci_gids_find(&dev->gids, gid, ifindex);
	pthread_mutex_unlock(&dev->gids_lock);
	return index;
}

int roci_device_host_gids(struct roci_gids *out)
{
	bool open;
	int count;

	pthread_mutex_lock(&the_lock);
	open = the_device;
	if (open)
		roci_device_gids(the_device, out);
	pthread_mutex_unlock(&the_lock);
	if (open)
		return 0;
	*out = (struct roci_gids){0};
	count = roci_gid_table(out->entries, ROCI_MAX_GIDS);
	out->count = count > 0 ? count : 0;
	return count < 0 ? count : 0;
}

void roci_device_hold_gid(struct roci_device *dev, unsigned index)
{
	atomic_fetch_add_explicit(&dev->gid_holds[index], 1, memory_order_relaxed);
}

void roci_device_release_gid(struct roci_device *dev, unsigned index)
{
	atomic_fetch_sub_explicit(&dev->gid_holds[index], 1, memory_order_relaxed);
}

int roci_device_listen(struct roci_device *dev, int sgid_index)
{
	if (dev->dead)
		return -ENODEV;
	return sgid_index < 0 ? roci_udp_listen_everywhere(dev->links.udp)
			      : roci_udp_listen(dev->links.udp, sgid_index);
}

int roci_device_join(struct roci_device *dev, const uint8_t gid[16])
{
	return dev->dead ? -ENODEV : roci_udp_join(dev->links.udp, gid);
}

int roci_device_leave(struct roci_device *dev, const uint8_t gid[16])
{
	return dev->dead ? -ENODEV : roci_udp_leave(dev->links.udp, gid);
}

int roci_device_alloc_qpn(struct roci_device *dev, uint32_t *qpn)
{
	return roci_qpn_alloc(&dev->qpns, qpn);
}

void roci_device_free_qpn(struct roci_device *dev, uint32_t qpn)
{
	roci_qpn_free(&dev->qpns, qpn);
}
