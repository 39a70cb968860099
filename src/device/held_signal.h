/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A signal that a write of ours may raise in the calling thread (SIGPIPE, SIGXFSZ), and that the program must not get:
 * it ends programs, and knows nothing of our files. It is blocked during the write, and taken away behind it.
 */
#ifndef ROCI_DEVICE_HELD_SIGNAL_H
#define ROCI_DEVICE_HELD_SIGNAL_H

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <time.h>

struct roci_held_signal {
	int signal;
	bool pending; /* the program has one that it has not taken yet */
	sigset_t before;
};

static inline void roci_signal_hold(struct roci_held_signal *h, int signal)
{
	sigset_t one, pending;

	h->signal = signal;
	sigemptyset(&one);
	sigaddset(&one, signal);
	pthread_sigmask(SIG_BLOCK, &one, &h->before);
	h->pending = sigismember(&h->before, signal) && !sigpending(&pending) && sigismember(&pending, signal);
}

/* raised: the write has failed in the way that raises it. */
static inline void roci_signal_release(const struct roci_held_signal *h, bool raised)
{
	sigset_t one;

	sigemptyset(&one);
	sigaddset(&one, h->signal);
	if (raised && !h->pending)
		while (sigtimedwait(&one, NULL, &(struct timespec){0}) < 0 && errno == EINTR)
			;
	pthread_sigmask(SIG_SETMASK, &h->before, NULL);
}

#endif
