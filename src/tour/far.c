/* SPDX-License-Identifier: BSD-2-Clause */
/* The far end's loop: one poll() over both listeners and all sessions. */
#include "tour/far.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "tour/clock.h"
#include "tour/far_listen.h"
#include "tour/record.h"
#include "tour/stop.h"

#define HELLO_NS   UINT64_C(5000000000)
#define CONNECT_NS UINT64_C(15000000000)
#define TICK_MS    1000 /* how late a session's end may be noticed */
#define RECORD_MS  100  /* how often a record is looked at, so that it does not grow long */

void far_report(struct far *far, const struct session *s, enum far_event_type type, const char *text)
{
	struct far_event event = {
		.type = type,
		.client = s->number,
		.address = s->address,
		.text = text,
		.request = s->request.seed ? &s->request : NULL,
		.way = s->way,
		.messages = s->messages,
	};

	if (far->options.report)
		far->options.report(far->options.context, &event);
}

struct session *far_new_session(struct far *far, enum tour_way way)
{
	for (unsigned i = 0; i < FAR_CLIENTS; i++) {
		struct session *s = &far->sessions[i];
		if (s->state != SESSION_FREE)
			continue;
		*s = (struct session){.fd = -1, .way = way, .number = ++far->clients};
		s->deadline_ns = tour_now_ns() + (way == TOUR_SOCKET ? HELLO_NS : CONNECT_NS);
		return s;
	}
	return NULL;
}

void far_end_session(struct far *far, struct session *s)
{
	if (s->ended && *s->ended)
		far_report(far, s, FAR_PROBLEM, s->ended);
	if (s->state == SESSION_UP)
		far_report(far, s, FAR_DISCONNECTED, NULL);
	far_session_close(s);
}

/* ---- the loop ---- */

/* Descriptors of the loop; those of sessions follow the fixed ones, two each. */
enum { FD_CM, FD_TCP, FD_STOP, FD_END, FD_SESSIONS, FD_COUNT = FD_SESSIONS + 2 * FAR_CLIENTS };

static void fill(const struct far *far, struct pollfd fds[FD_COUNT])
{
	fds[FD_CM] = (struct pollfd){.fd = far->channel ? far->channel->fd : -1, .events = POLLIN};
	fds[FD_TCP] = (struct pollfd){.fd = far->tcp, .events = POLLIN};
	fds[FD_STOP] = (struct pollfd){.fd = tour_stop_fd(), .events = POLLIN};
	fds[FD_END] = (struct pollfd){.fd = far->end_fd, .events = POLLIN};
	for (unsigned i = 0; i < FAR_CLIENTS; i++) {
		const struct session *s = &far->sessions[i];
		const struct ibv_comp_channel *channel = s->endpoint.channel;
		fds[FD_SESSIONS + 2 * i] = (struct pollfd){.fd = channel ? channel->fd : -1, .events = POLLIN};
		fds[FD_SESSIONS + 2 * i + 1] =
			(struct pollfd){.fd = s->state == SESSION_FREE ? -1 : s->fd, .events = POLLIN};
	}
}

/* poll() takes no more entries than the process may have descriptors (RLIMIT_NOFILE), so it gets only those in use. */
static int poll_used(struct pollfd fds[FD_COUNT], int timeout_ms)
{
	struct pollfd used[FD_COUNT];
	unsigned at[FD_COUNT], count = 0;
	int n;

	for (unsigned i = 0; i < FD_COUNT; i++) {
		if (fds[i].fd < 0)
			continue;
		at[count] = i;
		used[count++] = fds[i];
	}
	n = poll(used, count, timeout_ms);
	for (unsigned i = 0; n > 0 && i < count; i++)
		fds[at[i]].revents = used[i].revents;
	return n;
}

static void serve(struct far *far, struct session *s, const struct pollfd *completions, const struct pollfd *socket)
{
	if (s->state == SESSION_FREE)
		return;
	if (completions->revents && s->endpoint.channel && s->endpoint.channel->fd == completions->fd)
		far_session_completions(s);
	if (!s->ended && socket->revents && s->fd >= 0 && s->fd == socket->fd)
		far_read_socket(far, s);
	if (s->state == SESSION_FREE) /* another service has it now */
		return;
	if (!s->ended && tour_now_ns() > s->deadline_ns)
		s->ended = s->state == SESSION_UP ? "it was silent for a minute" : "it did not finish connecting";
	if (s->ended)
		far_end_session(far, s);
}

void far_run(struct far *far)
{
	struct pollfd fds[FD_COUNT];

	for (;;) {
		fill(far, fds);
		if (poll_used(fds, record_on() ? RECORD_MS : TICK_MS) < 0 && errno != EINTR)
			break;
		if (fds[FD_STOP].revents || fds[FD_END].revents || tour_stopped())
			break;
		for (unsigned i = 0; i < FAR_CLIENTS; i++)
			serve(far, &far->sessions[i], &fds[FD_SESSIONS + 2 * i], &fds[FD_SESSIONS + 2 * i + 1]);
		if (fds[FD_CM].revents)
			far_take_cm_events(far);
		if (fds[FD_TCP].revents)
			far_accept(far);
		record_trim();
	}
	for (unsigned i = 0; i < FAR_CLIENTS; i++) {
		if (far->sessions[i].state != SESSION_FREE)
			far_end_session(far, &far->sessions[i]);
	}
}

void far_end(struct far *far)
{
	uint64_t one = 1;
	ssize_t n = write(far->end_fd, &one, sizeof(one));

	(void)n; /* it is readable already */
}

int far_open(struct far **out, const struct far_options *options, struct failure *f)
{
	struct far *far = calloc(1, sizeof(*far));
	int err;

	*out = NULL;
	if (!far)
		return fail_call(f, "calloc", ENOMEM);
	far->options = *options;
	far->tcp = -1;
	for (unsigned i = 0; i < FAR_CLIENTS; i++)
		far->sessions[i].fd = -1;
	far->end_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	err = far->end_fd < 0 ? fail_call(f, "eventfd", errno) : far_listen(far, f);
	if (err)
		far_close(far);
	else
		*out = far;
	return err;
}

void far_close(struct far *far)
{
	far_stop_listening(far);
	if (far->end_fd >= 0)
		close(far->end_fd);
	free(far);
}

uint16_t far_port(const struct far *far)
{
	return far->port;
}

const char *far_lacks(const struct far *far)
{
	return far->lacks;
}
