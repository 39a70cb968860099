/* SPDX-License-Identifier: BSD-2-Clause */
#include "device/progress.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "device/delay.h"
#include "device/device_state.h"

#define SLICE_NS      100000      /* the least that the kernel grants */
#define BUSY_PAUSE_NS 50000       /* while the program has the lock all the time */
#define LEAVE_MOST_NS 1000000000u /* its turns to the program */

uint64_t roci_progress_deadline(const struct roci_device *dev)
{
	const uint64_t deadlines[] = {roci_engine_deadline(dev->engine),
				      roci_cm_host_deadline(dev),
				      roci_udp_deadline(dev->links.udp),
				      roci_turns_deadline(&dev->turns),
				      roci_door_queue_deadline(dev->links.door_queue),
				      dev->links.delay ? roci_delay_deadline(dev->links.delay) : ROCI_NEVER};
	uint64_t first = dev->transmit.more ? 0 : ROCI_NEVER;

	for (unsigned i = 0; i < sizeof(deadlines) / sizeof(deadlines[0]); i++)
		first = deadlines[i] < first ? deadlines[i] : first;
	return first;
}

/* Linux before 5.11, valgrind and some sandboxes have no epoll_pwait2(). timeout: NULL for ever. */
static int wait_events(int epoll_fd, struct epoll_event *events, int max, const struct timespec *timeout)
{
	struct pollfd ready = {.fd = epoll_fd, .events = POLLIN};
	int n = epoll_pwait2(epoll_fd, events, max, timeout, NULL);

	if (n >= 0 || (errno != ENOSYS && errno != EPERM))
		return n;
	return ppoll(&ready, 1, timeout, NULL) < 0 ? -1 : epoll_wait(epoll_fd, events, max, 0);
}

uint64_t roci_progress_last_call(const struct roci_device *dev)
{
	return atomic_load_explicit(&dev->last_call, memory_order_relaxed);
}

struct timespec roci_to_timespec(uint64_t ns)
{
	return (struct timespec){.tv_sec = (time_t)(ns / 1000000000), .tv_nsec = (long)(ns % 1000000000)};
}

static void take_events(struct roci_device *dev, const struct epoll_event *events, int n)
{
	for (int i = 0; i < n; i++) {
		uint64_t value, what = events[i].data.u64;

		if (what == ROCI_PROGRESS_WAKE)
			(void)!read(dev->progress.wake_fd, &value, sizeof(value));
		else if (what == ROCI_PROGRESS_DOOR)
			roci_receive_door_ready(&dev->receive);
		else if (what == ROCI_PROGRESS_ADDRESSES)
			roci_addresses_ready(&dev->addresses);
		else
			roci_udp_ready(dev->links.udp, what, events[i].events & EPOLLERR);
	}
}

void roci_progress_look(struct roci_device *dev)
{
	static const struct timespec at_once;
	struct epoll_event events[16];

	take_events(dev, events, wait_events(dev->progress.epoll_fd, events, 16, &at_once));
}

static void pause_for(uint64_t ns)
{
	struct timespec ts = roci_to_timespec(ns);

	clock_nanosleep(CLOCK_MONOTONIC, 0, &ts, NULL);
}

/* The thread wants the lock, which it has released. Where the program has it, its call or poll takes the thread's turn,
 * too, and the thread comes back `pause` nanoseconds later. Only the thread itself follows addresses, and ends, so it
 * does not leave all turns to others. */
static void take_lock_again(struct roci_device *dev, uint64_t pause)
{
	uint64_t end = roci_now() + LEAVE_MOST_NS;

	while (!roci_lock_try_or_ask(&dev->lock)) {
		pause_for(BUSY_PAUSE_NS);
		if (roci_lock_is_asked(&dev->lock))
			continue;
		if (roci_now() > end) {
			roci_lock_take(&dev->lock);
			return;
		}
		pause_for(pause);
	}
}

static void sleep_until(struct roci_device *dev, uint64_t now, uint64_t until)
{
	struct timespec timeout = roci_to_timespec(until > now ? until - now : 0);
	struct epoll_event events[16];
	int n;

	if (!roci_local_sleeps(&dev->local)) {
		timeout = roci_to_timespec(0);
		until = now;
	}
	roci_lock_release(&dev->lock);
	n = wait_events(dev->progress.epoll_fd, events, 16, until == ROCI_NEVER ? NULL : &timeout);
	take_lock_again(dev, 0);
	dev->stats->thread_wakeups++;
	if (!dev->turns.has_waiter) { /* or they are the waiter's, who sleeps on the same descriptors */
		roci_local_awake(&dev->local);
		take_events(dev, events, n);
	}
	roci_turns_awoke(&dev->turns, roci_now(), roci_progress_last_call(dev));
}

/* A thread of the program waits for an event and drives meanwhile. */
static void stand_by(struct roci_device *dev, uint64_t until)
{
	uint64_t count;

	if (until != ROCI_NEVER)
		roci_progress_alarm(dev, until);
	roci_lock_release(&dev->lock);
	(void)!read(dev->progress.alarm_fd, &count, sizeof(count));
	roci_lock_take(&dev->lock);
	dev->stats->thread_wakeups++;
	roci_turns_alarmed(&dev->turns);
}

void roci_progress_alarm(struct roci_device *dev, uint64_t at)
{
	struct itimerspec alarm = {.it_value = roci_to_timespec(at)};

	timerfd_settime(dev->progress.alarm_fd, TFD_TIMER_ABSTIME, &alarm, NULL);
}

/* Nothing ends a nap early. The program keeps the deadlines meanwhile, and the thread does after it. */
static void nap_until(struct roci_device *dev, uint64_t now, uint64_t until)
{
	struct timespec ts = roci_to_timespec(until);

	roci_lock_release(&dev->lock);
	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL);
	take_lock_again(dev, until > now ? until - now : 0);
	dev->stats->thread_naps++;
	roci_turns_awoke(&dev->turns, roci_now(), roci_progress_last_call(dev));
}

/* Asks the scheduler for short slices (sched_setattr(2), Linux 6.12 and later). A thread that runs briefly and often
 * then preempts one that spins, instead of waiting for the end of its slice: ib_write_lat, which spins on memory on
 * both sides, went from 2 ms to 25 us on two processors. Older kernels ignore or refuse the request. */
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
	dev->stats->thread_turns++;
	roci_lock_give_way(&dev->lock);
}

static void stand_in(struct roci_device *dev, uint64_t now)
{
	bool more = roci_drive_poll(dev, now) || dev->transmit.more;

	roci_turns_stood_in(&dev->turns, more);
	if (more)
		roci_lock_give_way(&dev->lock);
}

static void *thread_main(void *arg)
{
	struct roci_device *dev = arg;

	prctl(PR_SET_TIMERSLACK, 1);
	ask_for_short_slices();
	roci_lock_take(&dev->lock);
	while (!dev->progress.stop) {
		uint64_t now = roci_addresses_look(dev, roci_now());
		struct roci_turn turn =
			roci_turns_next(&dev->turns, now, roci_progress_last_call(dev), roci_progress_deadline(dev));

		switch (turn.what) {
		case ROCI_TURN_DRIVE: drive(dev, now); break;
		case ROCI_TURN_STAND_IN: stand_in(dev, now); break;
		case ROCI_TURN_BUSY_POLL: roci_lock_give_way(&dev->lock); break;
		case ROCI_TURN_NAP: nap_until(dev, now, turn.until); break;
		case ROCI_TURN_SLEEP: sleep_until(dev, now, turn.until); break;
		case ROCI_TURN_STAND_BY: stand_by(dev, turn.until); break;
		}
	}
	roci_lock_release(&dev->lock);
	return NULL;
}

static void close_all(const struct roci_progress *p)
{
	const int fds[] = {p->stop_fd, p->alarm_fd, p->wake_fd, p->epoll_fd};

	for (unsigned i = 0; i < sizeof(fds) / sizeof(fds[0]); i++)
		if (fds[i] >= 0)
			close(fds[i]);
}

int roci_progress_open(struct roci_progress *p)
{
	int err = 0;

	p->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	p->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	p->stop_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	p->alarm_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
	if (p->epoll_fd < 0 || p->wake_fd < 0 || p->stop_fd < 0 || p->alarm_fd < 0)
		err = -errno;
	if (!err)
		err = roci_progress_watch(p, p->wake_fd, ROCI_PROGRESS_WAKE);
	if (err)
		close_all(p);
	return err;
}

void roci_progress_close(struct roci_progress *p)
{
	close_all(p);
}

int roci_progress_watch(struct roci_progress *p, int fd, uint64_t event_data)
{
	struct epoll_event ev = {.events = EPOLLIN, .data.u64 = event_data};

	return epoll_ctl(p->epoll_fd, EPOLL_CTL_ADD, fd, &ev) ? -errno : 0;
}

void roci_progress_unwatch(struct roci_progress *p, int fd)
{
	epoll_ctl(p->epoll_fd, EPOLL_CTL_DEL, fd, NULL);
}

int roci_progress_start(struct roci_device *dev)
{
	sigset_t all, before;
	int err;

	/* Signals are the program's. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	err = -pthread_create(&dev->progress.thread, NULL, thread_main, dev);
	if (err == -EAGAIN) /* pthread_create(3): no room for its stack, or too many threads; no use to try again */
		err = -ENOMEM;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (!err)
		pthread_setname_np(dev->progress.thread, "roci0");
	return err;
}

static void signal_fd(int fd)
{
	uint64_t one = 1;

	(void)!write(fd, &one, sizeof(one));
}

void roci_progress_wake_now(struct roci_device *dev)
{
	signal_fd(dev->progress.wake_fd);
}

void roci_progress_wake(struct roci_device *dev)
{
	uint64_t deadline = dev->turns.wake_at ? roci_progress_deadline(dev) : UINT64_MAX; /* nobody sleeps mostly */

	if (!roci_turns_wake(&dev->turns, deadline))
		return;
	roci_lock_hold_off(&dev->lock); /* after a post it may not be */
	roci_progress_wake_now(dev);
}

/* Those who sleep on the device's descriptors are woken again and again, because one of them takes each wake-up. */
void roci_progress_stop(struct roci_device *dev)
{
	roci_lock_take(&dev->lock);
	dev->progress.stop = true;
	signal_fd(dev->progress.stop_fd);
	roci_progress_alarm(dev, 1);
	do {
		signal_fd(dev->progress.wake_fd);
		roci_lock_release(&dev->lock);
		sched_yield();
		roci_lock_take(&dev->lock);
	} while (dev->turns.waiting);
	signal_fd(dev->progress.wake_fd);
	roci_lock_release(&dev->lock);
	pthread_join(dev->progress.thread, NULL);
}
