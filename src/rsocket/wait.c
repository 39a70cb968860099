/* SPDX-License-Identifier: BSD-2-Clause */
/* Waiting for progress: on the descriptors of the event channel and of the CQ. */
#include <errno.h>

#include "device/device.h"
#include "device/sys.h"
#include "rsocket/rsocket.h"
#include "verbs/event_fd.h"

#define UNWOKEN_MS 100 /* a thread that no other one can wake looks so often whether it is done */

void rs_wait_take_cq_events(struct rs *rs)
{
	struct ibv_cq *cq;
	void *context;
	unsigned count = 0;
	if (rs->sleeping || !rs->id || !rs->id->recv_cq_channel)
		return;
	while (!ibv_get_cq_event(rs->id->recv_cq_channel, &cq, &context))
		count++;
	if (count)
		ibv_ack_cq_events(rs->id->recv_cq, count);
}

void rs_wait_arm(struct rs *rs)
{
	rs->polls = 0; /* check the event channel next time: a sleep on both descriptors may follow */
	if (rs->id && rs->id->recv_cq)
		ibv_req_notify_cq(rs->id->recv_cq, 0);
}

int rs_sleep(struct pollfd *fds, unsigned count, int timeout_ms)
{
	if (roci_sys_wait(fds, count, timeout_ms) >= 0 || (errno == EINTR && !vb_event_fd_interrupted()))
		return 0;
	return -errno;
}

static void awake(struct rs *rs)
{
	rs->sleeping = false;
	pthread_cond_broadcast(&rs->progressed);
}

/* The threads that wait may be cancelled: another one sleeps in the place of the one that did. */
static void cancelled_asleep(void *arg)
{
	struct rs *rs = arg;
	pthread_mutex_lock(&rs->lock);
	awake(rs);
	pthread_mutex_unlock(&rs->lock);
}

static void cancelled_waiting(void *arg)
{
	pthread_mutex_unlock(&((struct rs *)arg)->lock);
}

/* Without a descriptor for it, the thread that sleeps wakes up by itself. */
void rs_wake(struct rs *rs)
{
	if (rs->sleeping && rs->wake_fd >= 0)
		vb_event_fd_signal(rs->wake_fd);
	pthread_cond_broadcast(&rs->progressed);
}

/* Sleeps on the descriptors, with the lock released. Returns also early. */
static int sleep_on_descriptors(struct rs *rs, uint64_t deadline)
{
	if (rs->wake_fd < 0)
		rs->wake_fd = vb_event_fd_create();
	struct pollfd fds[3] = {{.fd = rs->channel->fd, .events = POLLIN},
				{.fd = -1, .events = POLLIN},
				{.fd = rs->wake_fd, .events = POLLIN}};
	uint64_t now = roci_now(), left = deadline > now ? deadline - now : 0;
	if (rs->id && rs->id->recv_cq_channel)
		fds[1].fd = rs->id->recv_cq_channel->fd;
	if (!left)
		return -ETIMEDOUT;
	int timeout_ms = deadline == RS_NEVER ? -1 : (int)((left + 999999) / 1000000);
	if (rs->wake_fd < 0 && (timeout_ms < 0 || timeout_ms > UNWOKEN_MS))
		timeout_ms = UNWOKEN_MS;
	rs->sleeping = true;
	pthread_mutex_unlock(&rs->lock);
	int err;
	pthread_cleanup_push(cancelled_asleep, rs);
	err = rs_sleep(fds, 3, timeout_ms);
	pthread_cleanup_pop(0);
	pthread_mutex_lock(&rs->lock);
	awake(rs);
	if (fds[2].revents & POLLIN)
		vb_event_fd_clear(rs->wake_fd);
	rs_wait_take_cq_events(rs);
	return err;
}

/* Waits for the thread that sleeps. Returns also early. */
static int wait_for_sleeper(struct rs *rs, uint64_t deadline)
{
	struct timespec until = {(time_t)(deadline / 1000000000), (long)(deadline % 1000000000)};
	int err;

	pthread_cleanup_push(cancelled_waiting, rs);
	err = deadline == RS_NEVER ? pthread_cond_wait(&rs->progressed, &rs->lock)
				   : pthread_cond_timedwait(&rs->progressed, &rs->lock, &until);
	pthread_cleanup_pop(0);
	return -err;
}

/* One waiting thread sleeps on the descriptors; the others wait for what it finds. */
int rs_wait_until(struct rs *rs, uint64_t deadline, bool (*done)(const struct rs *rs))
{
	for (;;) {
		rs_stream_progress(rs);
		if (done(rs))
			return 0;
		if (!deadline)
			return -EAGAIN;
		if (rs->sleeping) {
			int err = wait_for_sleeper(rs, deadline);
			if (err)
				return err;
			continue;
		}
		rs_wait_arm(rs);
		rs_stream_progress(rs);
		int err = done(rs) ? 0 : sleep_on_descriptors(rs, deadline);
		if (err)
			return err;
	}
}

int rs_wait(struct rs *rs, bool nonblock, bool (*done)(const struct rs *rs))
{
	return rs_wait_until(rs, nonblock ? 0 : RS_NEVER, done);
}
