/* SPDX-License-Identifier: BSD-2-Clause */
#include "tour/waiter.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "tour/clock.h"
#include "tour/stop.h"

#define POLLS_PER_CLOCK 64u
#define NAP_NS          50000000u /* how long a sleeper may take to notice tour_stop() */

/* ---- the thread: the classic CQ poller ---- */

static void hand_over(struct waiter *w, const struct ibv_wc *wc)
{
	pthread_mutex_lock(&w->lock);
	if (w->count < WAITER_PLACES) {
		unsigned place = (w->head + w->count++) % WAITER_PLACES;
		w->ring[place].wc = *wc;
		w->ring[place].woken_ns = w->thread_woken_ns;
	}
	pthread_cond_signal(&w->arrived);
	pthread_mutex_unlock(&w->lock);
}

/* Arm first, then poll: a completion that comes between the two makes an event, and one that came before is found. */
static int take_completions(struct waiter *w)
{
	struct endpoint *e = w->endpoint;
	struct ibv_wc wc;
	int n, err = ibv_req_notify_cq(e->cq, 0);

	if (err)
		return -err;
	while ((n = ibv_poll_cq(e->cq, 1, &wc)) > 0)
		hand_over(w, &wc);
	return n;
}

static int take_event(struct waiter *w)
{
	struct ibv_cq *cq;
	void *context;

	if (ibv_get_cq_event(w->endpoint->channel, &cq, &context))
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	w->endpoint->cq_events++;
	w->thread_woken_ns = tour_wall_ns();
	return take_completions(w);
}

static void *poller(void *arg)
{
	struct waiter *w = arg;
	struct pollfd fds[] = {{.fd = w->endpoint->channel->fd, .events = POLLIN}, {.fd = w->end_fd, .events = POLLIN}};
	int err = 0;

	while (!err && !fds[1].revents) {
		if (poll(fds, 2, -1) < 0 && errno != EINTR)
			err = -errno;
		else if (fds[0].revents)
			err = take_event(w);
	}
	pthread_mutex_lock(&w->lock);
	w->ended = true;
	w->err = err;
	pthread_cond_signal(&w->arrived);
	pthread_mutex_unlock(&w->lock);
	return NULL;
}

/* ---- the near end's thread ---- */

int waiter_start(struct waiter *w, struct endpoint *e, enum tour_wait how, struct failure *f)
{
	pthread_condattr_t attr;
	int err;

	memset(w, 0, sizeof(*w));
	w->endpoint = e;
	w->how = how;
	w->end_fd = -1;
	if (how == TOUR_POLL)
		return 0;
	w->end_fd = eventfd(0, EFD_CLOEXEC);
	if (w->end_fd < 0)
		return fail_call(f, "eventfd", errno);
	pthread_mutex_init(&w->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&w->arrived, &attr);
	pthread_condattr_destroy(&attr);
	err = pthread_create(&w->thread, NULL, poller, w);
	w->started = !err;
	return err ? fail_call(f, "pthread_create", err) : 0;
}

void waiter_stop(struct waiter *w)
{
	uint64_t one = 1;

	if (w->started && write(w->end_fd, &one, sizeof(one)) == sizeof(one)) {
		pthread_join(w->thread, NULL);
		pthread_cond_destroy(&w->arrived);
		pthread_mutex_destroy(&w->lock);
	}
	if (w->endpoint && w->how == TOUR_EVENT && w->end_fd >= 0)
		close(w->end_fd);
	w->endpoint = NULL;
	w->started = false;
}

static int poll_until(struct waiter *w, struct ibv_wc *wc, uint64_t deadline_ns)
{
	for (unsigned i = 1;; i++) {
		int n = ibv_poll_cq(w->endpoint->cq, 1, wc);
		if (n)
			return n < 0 ? -EIO : 1;
		if (i % POLLS_PER_CLOCK == 0 && (tour_stopped() || tour_now_ns() > deadline_ns))
			return 0;
	}
}

static int sleep_until(struct waiter *w, struct ibv_wc *wc, uint64_t deadline_ns)
{
	int got = 0;

	pthread_mutex_lock(&w->lock);
	for (;;) {
		uint64_t now = tour_now_ns(), end = now + NAP_NS < deadline_ns ? now + NAP_NS : deadline_ns;
		struct timespec until = {(time_t)(end / 1000000000u), (long)(end % 1000000000u)};
		if (w->count || w->ended || tour_stopped() || now >= deadline_ns)
			break;
		pthread_cond_timedwait(&w->arrived, &w->lock, &until);
	}
	if (w->count) {
		*wc = w->ring[w->head].wc;
		w->woken_ns = w->ring[w->head].woken_ns;
		w->head = (w->head + 1) % WAITER_PLACES;
		w->count--;
		got = 1;
	} else if (w->ended) {
		got = w->err ? w->err : -ECANCELED;
	}
	pthread_mutex_unlock(&w->lock);
	return got;
}

int waiter_next(struct waiter *w, struct ibv_wc *wc, uint64_t deadline_ns)
{
	return w->how == TOUR_POLL ? poll_until(w, wc, deadline_ns) : sleep_until(w, wc, deadline_ns);
}
