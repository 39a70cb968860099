/* SPDX-License-Identifier: BSD-2-Clause */
/* What mover.h declares beside sending and receiving: names and mover_stop(); and the lock around the event callback.
 */
#include "mover/mover.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "mover/stop.h"
#include "mover/events.h"

#define NAME(table, index) ((size_t)(index) < sizeof(table) / sizeof(*(table)) ? (table)[index] : NULL)

const char *mover_mode_name(enum mover_mode mode)
{
	static const char *const names[] = {"write", "read", "send"};
	return NAME(names, mode);
}

const char *mover_status_name(enum mover_status status)
{
	static const char *const names[] = {
		"ok",       "failed",    "usage",    "no_device", "no_connect", "no_trust",    "protocol",
		"local_io", "remote_io", "mismatch", "lost",      "partly",     "interrupted",
	};
	return NAME(names, status);
}

const char *mover_outcome_name(enum mover_outcome outcome)
{
	static const char *const names[] = {"stored", "unchanged", "would", "refused"};
	return NAME(names, outcome);
}

const char *mover_event_name(enum mover_event_type type)
{
	static const char *const names[] = {
		"listening",  "connected", "step",         "offered", "progress",
		"entry_done", "warning",   "reconnecting", "ended",
	};
	return NAME(names, type);
}

/* Stopping: an eventfd that every loop polls and nobody reads. */

static atomic_int stop_fd = -1;
static atomic_bool stopped;

int mover_stop_fd(void)
{
	int fd = atomic_load(&stop_fd), expected = -1;
	if (fd >= 0)
		return fd;
	fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (fd >= 0 && !atomic_compare_exchange_strong(&stop_fd, &expected, fd)) {
		close(fd);
		fd = expected;
	}
	if (fd >= 0 && atomic_load(&stopped))
		eventfd_write(fd, 1);
	return fd;
}

bool mover_sends_stdin(const char *const *paths, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (!strcmp(paths[i], "-"))
			return true;
	return false;
}

bool mover_stopped(void)
{
	return atomic_load_explicit(&stopped, memory_order_relaxed);
}

void mover_stop(void)
{
	int before = errno, fd;
	atomic_store(&stopped, true);
	fd = atomic_load(&stop_fd);
	if (fd >= 0) {
		uint64_t one = 1;
		ssize_t written = write(fd, &one, sizeof(one)); /* can only fail if it is readable already */
		(void)written;
	}
	errno = before;
}

/* Events */

void events_init(struct events *events, mover_event_fn *callback, void *context)
{
	pthread_mutex_init(&events->lock, NULL);
	events->callback = callback;
	events->context = context;
}

void events_destroy(struct events *events)
{
	pthread_mutex_destroy(&events->lock);
}

void events_emit(struct events *events, const struct mover_event *event)
{
	if (!events->callback)
		return;
	pthread_mutex_lock(&events->lock);
	events->callback(events->context, event);
	pthread_mutex_unlock(&events->lock);
}
