/* SPDX-License-Identifier: BSD-2-Clause */
/* The device's thread. turns.h decides when it drives, naps and sleeps. */
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "device/device_state.h"

#define YIELDS   16     /* at most, for those who wait for the lock: they may be on another processor by then */
#define SLICE_NS 100000 /* the least that the kernel grants */

static uint64_t next_deadline(const struct roci_device *dev)
{
	uint64_t engine = dev->more ? 0 : roci_engine_deadline(dev->engine), cm = roci_cm_host_deadline(dev);

	return engine < cm ? engine : cm;
}

/* Linux before 5.11, valgrind and some sandboxes do not know epoll_pwait2(). timeout: NULL: for ever. */
static int wait_events(int epoll_fd, struct epoll_event *events, int max, const struct timespec *timeout)
{
	struct pollfd ready = {.fd = epoll_fd, .events = POLLIN};
	int n = epoll_pwait2(epoll_fd, events, max, timeout, NULL);

	if (n >= 0 || (errno != ENOSYS && errno != EPERM))
		return n;
	return ppoll(&ready, 1, timeout, NULL) < 0 ? -1 : epoll_wait(epoll_fd, events, max, 0);
}

static uint64_t last_call(const struct roci_device *dev)
{
	return atomic_load_explicit(&dev->last_call, memory_order_relaxed);
}

static struct timespec to_timespec(uint64_t ns)
{
	return (struct timespec){.tv_sec = (time_t)(ns / 1000000000), .tv_nsec = (long)(ns % 1000000000)};
}

static void sleep_until(struct roci_device *dev, uint64_t now, uint64_t until)
{
	struct timespec timeout = to_timespec(until > now ? until - now : 0);
	struct epoll_event events[16];
	int n;

	pthread_mutex_unlock(&dev->lock);
	n = wait_events(dev->epoll_fd, events, 16, until == ROCI_NEVER ? NULL : &timeout);
	pthread_mutex_lock(&dev->lock);
	dev->stats.thread_wakeups++;
	for (int i = 0; i < n; i++) {
		uint64_t value, what = events[i].data.u64;

		if (what == EVENT_WAKE)
			(void)!read(dev->wake_fd, &value, sizeof(value));
		else if (what == EVENT_DOOR)
			dev->door_turn = 0;
		else
			roci_udp_ready(dev->udp, what);
	}
	roci_turns_awoke(&dev->turns, roci_now(), last_call(dev));
}

/* Deaf to sockets and wake-ups. Deadlines are the program's meanwhile, and ours at the end of the nap. */
static void nap_until(struct roci_device *dev, uint64_t until)
{
	struct timespec ts = to_timespec(until);

	pthread_mutex_unlock(&dev->lock);
	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL);
	pthread_mutex_lock(&dev->lock);
	dev->stats.thread_backoffs++;
	roci_turns_awoke(&dev->turns, roci_now(), last_call(dev));
}

/* Lets those have the lock who wait for it: a mutex alone would give it to us again and again. */
static void give_way(struct roci_device *dev)
{
	if (!atomic_load_explicit(&dev->waiting, memory_order_relaxed))
		return;
	pthread_mutex_unlock(&dev->lock);
	for (int i = 0; i < YIELDS && atomic_load_explicit(&dev->waiting, memory_order_relaxed); i++)
		sched_yield();
	pthread_mutex_lock(&dev->lock);
}

/* Asks the scheduler for short slices (sched_setattr(2), Linux 6.12 and later): a thread that runs briefly and often
 * then preempts one that spins, instead of waiting for the end of its slice. ib_write_lat, which spins on memory on
 * both sides, went from 2 ms to 25 us on two processors. Older kernels ignore the request or refuse it: no harm. */
static void ask_for_short_slices(void)
{
	struct {
		uint32_t size, policy;
		uint64_t flags;
		int32_t nice;
		uint32_t priority;
		uint64_t runtime_ns, deadline, period;
	} attr = {.size = sizeof(attr)};

	/* A policy that the user chose stays, and so does the nice value. */
	if (syscall(SYS_sched_getattr, 0, &attr, sizeof(attr), 0) || attr.policy != SCHED_OTHER)
		return;
	attr.runtime_ns = SLICE_NS;
	syscall(SYS_sched_setattr, 0, &attr, 0);
}

static void drive(struct roci_device *dev, uint64_t now)
{
	unsigned moved = roci_drive(dev, now);

	roci_turns_drove(&dev->turns, now, moved);
	if (!moved)
		return;
	dev->stats.thread_turns++;
	give_way(dev);
}

static void stand_in(struct roci_device *dev, uint64_t now)
{
	bool more = roci_drive_polling(dev, now) || dev->more;

	roci_turns_stood_in(&dev->turns, more);
	if (more)
		give_way(dev);
}

static void *thread_main(void *arg)
{
	struct roci_device *dev = arg;

	prctl(PR_SET_TIMERSLACK, 1);
	ask_for_short_slices();
	pthread_mutex_lock(&dev->lock);
	while (!dev->stop) {
		uint64_t now = roci_now();
		struct roci_turn turn = roci_turns_next(&dev->turns, now, last_call(dev), next_deadline(dev));

		switch (turn.what) {
		case ROCI_TURN_DRIVE: drive(dev, now); break;
		case ROCI_TURN_STAND_IN: stand_in(dev, now); break;
		case ROCI_TURN_BUSY_POLL: give_way(dev); break;
		case ROCI_TURN_NAP: nap_until(dev, turn.until); break;
		case ROCI_TURN_SLEEP: sleep_until(dev, now, turn.until); break;
		}
	}
	pthread_mutex_unlock(&dev->lock);
	return NULL;
}

int roci_progress_start(struct roci_device *dev)
{
	struct epoll_event ev = {.events = EPOLLIN, .data.u64 = EVENT_WAKE};
	sigset_t all, before;
	int err;

	dev->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (dev->wake_fd < 0)
		return -errno;
	if (epoll_ctl(dev->epoll_fd, EPOLL_CTL_ADD, dev->wake_fd, &ev)) {
		err = -errno;
		goto err_close_wake;
	}
	/* Signals are the application's. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	err = -pthread_create(&dev->thread, NULL, thread_main, dev);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (err)
		goto err_close_wake;
	pthread_setname_np(dev->thread, "roci0");
	return 0;
err_close_wake:
	close(dev->wake_fd);
	return err;
}

static void wake(struct roci_device *dev)
{
	uint64_t one = 1;

	(void)!write(dev->wake_fd, &one, sizeof(one));
}

void roci_progress_wake(struct roci_device *dev)
{
	if (roci_turns_wake(&dev->turns, next_deadline(dev)))
		wake(dev);
}

void roci_progress_stop(struct roci_device *dev)
{
	pthread_mutex_lock(&dev->lock);
	dev->stop = true;
	wake(dev);
	pthread_mutex_unlock(&dev->lock);
	pthread_join(dev->thread, NULL);
	close(dev->wake_fd);
}
