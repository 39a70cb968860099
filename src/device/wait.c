/* SPDX-License-Identifier: BSD-2-Clause */
/* A thread of the program that waits for an event, and mostly drives meanwhile: turns.h says when. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>

#include "device/device_state.h"

/* A cancelled thread leaves such functions without returning. The address sanitizer would take what it knows of their
 * frames for that of later ones, and see overflows. */
#define LEFT_BY_CANCELLATION __attribute__((no_sanitize_address))

struct wait {
	struct roci_device *dev;
	int fd;
	roci_ready_fn *ready;
	void *arg;
	bool drives; /* it has the thread's part */
	bool woken;  /* by something on the device's descriptors that it did not look at yet */
};

/* The program may make the event's descriptor non-blocking at any time. Returns 0 or a negative errno. */
static int may_sleep(const struct wait *w)
{
	int flags = fcntl(w->fd, F_GETFL);

	if (flags < 0)
		return -errno;
	return flags & O_NONBLOCK ? -EAGAIN : 0;
}

/* Sleeps until the event's descriptor is ready, or one of the device's (with `drives`), or that time. Here the thread
 * may be cancelled. Returns 0 or a negative errno. */
LEFT_BY_CANCELLATION static int sleep_until(struct wait *w, uint64_t now, uint64_t until, bool drives)
{
	struct timespec timeout = roci_to_timespec(until > now ? until - now : 0);
	const struct roci_progress *p = &w->dev->progress;
	struct pollfd fds[] = {{.fd = w->fd, .events = POLLIN},
			       {.fd = p->stop_fd, .events = POLLIN},
			       {.fd = p->epoll_fd, .events = POLLIN}};
	int n, err = may_sleep(w);

	if (err)
		return err;
	if (drives && !roci_local_sleeps(&w->dev->local)) {
		timeout = roci_to_timespec(0);
		until = now;
	}
	roci_lock_release(&w->dev->lock);
	n = ppoll(fds, drives ? 3 : 2, until == ROCI_NEVER ? NULL : &timeout, NULL);
	err = n < 0 ? -errno : fds[0].revents & POLLNVAL ? -EBADF : 0;
	roci_lock_take(&w->dev->lock);
	w->woken = n > 0 && fds[2].revents;
	if (drives)
		roci_local_awake(&w->dev->local);
	return err;
}

static unsigned drive_awaited(struct wait *w, uint64_t now)
{
	unsigned moved;

	w->dev->awaited_fd = w->fd;
	moved = roci_drive_wait(w->dev, now, w->ready, w->arg);
	w->dev->awaited_fd = -1;
	return moved;
}

/* A turn of the thread's kind. What is not a packet of a socket (the side door, an error, a wake-up) is looked at where
 * no packet came: to look is a system call. */
static void drive(struct wait *w, uint64_t now)
{
	struct roci_device *dev = w->dev;
	unsigned moved = drive_awaited(w, now);

	if (!moved && w->woken) {
		w->woken = false;
		roci_progress_look(dev);
		moved = drive_awaited(w, now);
	}
	roci_turns_drove(&dev->turns, now, moved);
	if (moved)
		dev->stats->wait_turns++;
}

LEFT_BY_CANCELLATION static int take_turn(struct wait *w)
{
	struct roci_device *dev = w->dev;
	uint64_t now = roci_addresses_look(dev, roci_now());
	struct roci_turn turn =
		roci_turns_waiter_next(&dev->turns, now, roci_progress_last_call(dev), roci_progress_deadline(dev));
	int err = 0;

	switch (turn.what) {
	case ROCI_TURN_DRIVE: drive(w, now); break;
	case ROCI_TURN_STAND_IN:
		roci_turns_stood_in(&dev->turns, roci_drive_poll(dev, now) || dev->transmit.more);
		break;
	case ROCI_TURN_NAP:
	case ROCI_TURN_SLEEP:
		err = sleep_until(w, now, turn.until, turn.what == ROCI_TURN_SLEEP);
		roci_turns_waiter_awoke(&dev->turns, roci_now(), roci_progress_last_call(dev));
		return err;
	default: break;
	}
	return 0;
}

/* The lock is held, also at return. */
LEFT_BY_CANCELLATION static int wait_and_drive(struct wait *w)
{
	int err = 0;

	while (!err && !w->ready(w->arg) && !w->dev->progress.stop) {
		err = take_turn(w);
		roci_lock_give_way(&w->dev->lock);
	}
	return err;
}

static void end_wait(void *arg)
{
	struct wait *w = arg;
	uint64_t alarm_at;

	roci_lock_take(&w->dev->lock);
	alarm_at = roci_turns_wait_end(&w->dev->turns, roci_now(), w->drives);
	if (alarm_at != UINT64_MAX)
		roci_progress_alarm(w->dev, alarm_at);
	/* The thread may sleep still, and not know what this one has left to be done soon. */
	if (w->drives)
		roci_progress_wake(w->dev);
	/* It goes on sleeping: a process of this host must send it a wake-up again. */
	if (w->drives && w->dev->turns.wake_at && !roci_local_sleeps(&w->dev->local))
		roci_progress_wake_now(w->dev);
	roci_lock_release(&w->dev->lock);
}

bool roci_device_awaits(const struct roci_device *dev, int fd)
{
	return dev->awaited_fd == fd;
}

int roci_device_wait(struct roci_device *dev, int fd, roci_ready_fn *ready, void *arg)
{
	struct wait w = {.dev = dev, .fd = fd, .ready = ready, .arg = arg};
	int err;

	roci_lock_take(&dev->lock);
	if (dev->dead || dev->progress.stop) {
		roci_lock_release(&dev->lock);
		return -ENODEV;
	}
	w.drives = roci_turns_wait_begin(&dev->turns);
	roci_lock_release(&dev->lock);
	pthread_cleanup_push(end_wait, &w);
	roci_lock_take(&dev->lock);
	if (w.drives) {
		atomic_store_explicit(&dev->last_call, 0, memory_order_relaxed); /* its own: it calls no more */
		err = wait_and_drive(&w);
	} else {
		err = sleep_until(&w, 0, ROCI_NEVER, false);
	}
	if (dev->progress.stop)
		err = -ENODEV;
	roci_lock_release(&dev->lock);
	pthread_cleanup_pop(1);
	return err;
}
