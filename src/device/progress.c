/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Who drives (D4). The thread sleeps on the sockets, and drives whenever something arrives or a deadline comes: that
 * serves one-sided targets and programs that sleep or spin on memory. An application that polls drives inline, and a
 * thread that woke for each packet would only be in its way; so while polls keep coming, the thread looks after them at
 * intervals that grow, and takes over when they have stopped.
 *
 * An application that posts in a stream counts as one that polls, and if the thread sleeps it is woken to see that: who
 * naps is known to look again soon, so that posts need not be sent one by one (ib_send_bw of 64 bytes: 0.2 to 1.3
 * million messages a second).
 *
 * But only polls receive and run timers. After a nap in which nobody polled, the thread does that, until nothing more
 * comes, for as long as it napped at most: a program may wait in a loop of posts that find the queue full, or register
 * memory for a second.
 *
 * Calls are judged after the thread has slept, when the application had the processor if it wanted it. When they are
 * found to have stopped, the thread stays on the sockets for a while: a program that polls a little and then spins on
 * memory (ib_write_lat) must not wait for the thread to look again.
 */
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

#define FRESH_NS      10000 /* calls this young go on */
#define LOOK_FIRST_NS 50000 /* first and longest interval of looking after polls */
#define LOOK_LAST_NS  1000000
#define STAY_NS       2000000 /* on the sockets, after polls stopped */
#define STREAK_NS     500000  /* of driving, after which the thread gives polls a chance to show */
#define RECENT_NS     5000000
#define YIELDS        16
#define SLICE_NS      100000 /* the least that the kernel grants */
#define LINGER_NS     20000  /* awake, after packets moved */
#define WORTH_MAX     16
#define TRY_EVERY     32 /* sleeps, where lingering did not pay */

struct progress {
	struct roci_device *dev;
	uint64_t stay_until;
	uint64_t streak_start; /* 0: the last thing it did was to sleep */
	uint64_t look_ns;      /* 0: not looking after polls */
	bool slept;
	uint64_t age;      /* of the last call, when the thread awoke */
	uint64_t moved_at; /* when packets last moved */
	bool lingered;     /* since then */
	unsigned worth;    /* whether lingering paid lately, 0..WORTH_MAX */
	unsigned sleeps;
};

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

static uint64_t call_age(const struct roci_device *dev, uint64_t now)
{
	uint64_t last = atomic_load_explicit(&dev->last_call, memory_order_relaxed);

	return now > last ? now - last : 0;
}

static void awake(struct progress *p)
{
	p->slept = true;
	p->age = call_age(p->dev, roci_now());
	p->streak_start = 0;
}

static void sleep_until(struct progress *p, uint64_t now, uint64_t deadline)
{
	struct roci_device *dev = p->dev;
	struct epoll_event events[16];
	struct timespec ts, *timeout = NULL;
	int n;

	if (deadline != ROCI_NEVER) {
		uint64_t ns = deadline > now ? deadline - now : 0;

		ts = (struct timespec){.tv_sec = (time_t)(ns / 1000000000), .tv_nsec = (long)(ns % 1000000000)};
		timeout = &ts;
	}
	dev->wake_at = deadline;
	pthread_mutex_unlock(&dev->lock);
	n = wait_events(dev->epoll_fd, events, 16, timeout);
	pthread_mutex_lock(&dev->lock);
	dev->wake_at = 0;
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
	awake(p);
}

/* Deaf to sockets and wake-ups. Deadlines are the application's meanwhile, and ours at the end of the nap. */
static void nap(struct progress *p, uint64_t ns)
{
	struct roci_device *dev = p->dev;
	struct timespec ts = {.tv_nsec = (long)ns};

	dev->napping = true;
	pthread_mutex_unlock(&dev->lock);
	clock_nanosleep(CLOCK_MONOTONIC, 0, &ts, NULL);
	pthread_mutex_lock(&dev->lock);
	dev->napping = false;
	dev->stats.thread_backoffs++;
	awake(p);
}

/* Whether to leave the driving to the application for p->look_ns. */
static bool application_drives(struct progress *p, uint64_t now)
{
	uint64_t age = p->slept ? p->age : call_age(p->dev, now);
	bool drives = false;

	if (p->slept && age > FRESH_NS)
		p->stay_until = now + STAY_NS;
	p->slept = false;
	if (now >= p->stay_until)
		drives = age <= FRESH_NS || (p->streak_start && now - p->streak_start > STREAK_NS && age < RECENT_NS);
	if (!drives)
		p->look_ns = 0;
	else if (!p->look_ns)
		p->look_ns = LOOK_FIRST_NS;
	else if (p->look_ns < LOOK_LAST_NS)
		p->look_ns = p->look_ns * 2 < LOOK_LAST_NS ? p->look_ns * 2 : LOOK_LAST_NS;
	return drives;
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

/* To fall asleep and be woken costs both this host and, on a virtual machine above all, whoever sends to it, more than
 * to look again a few times. So the thread stays awake for a moment after packets moved, if more mostly come within it.
 * It does not yield: where an application spins on the same processor, that would cost a whole slice; but there nothing
 * comes while the thread stays awake, so that it soon stops trying. */
static bool linger(struct progress *p, uint64_t now)
{
	struct roci_device *dev = p->dev;

	if (now - p->moved_at > LINGER_NS) {
		if (p->lingered && p->worth)
			p->worth--;
		p->lingered = false;
		return false;
	}
	if (!p->worth && !p->lingered && ++p->sleeps % TRY_EVERY)
		return false;
	p->lingered = true;
	give_way(dev);
	return true;
}

static void note_moved(struct progress *p, uint64_t now)
{
	p->dev->stats.thread_turns++;
	if (!p->streak_start)
		p->streak_start = now;
	if (p->lingered && p->worth < WORTH_MAX)
		p->worth++;
	p->lingered = false;
	p->moved_at = now;
}

/* Leaves the driving to the application for a while. Where it called, but did not poll, polls in its place then. */
static void leave_it(struct progress *p)
{
	struct roci_device *dev = p->dev;
	uint64_t polls = dev->stats.poll_turns, ns = p->look_ns, start, now;

	nap(p, ns);
	for (now = start = roci_now(); !dev->stop && dev->stats.poll_turns == polls && now - start <= ns;
	     now = roci_now()) {
		if (!roci_drive_polling(dev, now) && !dev->more)
			break;
		give_way(dev);
	}
}

static void *thread_main(void *arg)
{
	struct progress p = {.dev = arg};
	struct roci_device *dev = arg;

	prctl(PR_SET_TIMERSLACK, 1);
	ask_for_short_slices();
	pthread_mutex_lock(&dev->lock);
	while (!dev->stop) {
		uint64_t now = roci_now();

		if (application_drives(&p, now)) {
			leave_it(&p);
		} else if (roci_drive(dev, now)) {
			note_moved(&p, now);
			give_way(dev);
		} else if (!linger(&p, now)) {
			sleep_until(&p, now, next_deadline(dev));
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

void roci_progress_tell(struct roci_device *dev)
{
	if (next_deadline(dev) >= dev->wake_at)
		return;
	dev->wake_at = 0; /* once is enough */
	wake(dev);
}

void roci_progress_look(struct roci_device *dev)
{
	if (dev->wake_at)
		wake(dev);
	dev->wake_at = 0;
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
