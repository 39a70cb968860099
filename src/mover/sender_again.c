/* SPDX-License-Identifier: BSD-2-Clause */
/* What a sender does when its connection has broken: it connects again, proves the ticket again, and offers everything
 * again. The receiver has what had arrived. */
#include <poll.h>
#include <string.h>

#include "mover/clock.h"
#include "mover/sender.h"
#include "mover/stop.h"

#define MS      1000000ull
#define TELL_NS (20000 * MS) /* how long a receiver is looked for that has all, and may not know that we know */

static enum retry_end ending(const struct sender *x)
{
	const struct session *s = &x->s;

	if (s->report.stream) /* nobody can read it, or take it back */
		return RETRY_FINAL;
	switch (s->status) {
	/* one that was never let in has not met its receiver, but perhaps something else that listens there */
	case MOVER_LOST: return x->retry.met || s->control.trusted ? RETRY_BROKEN : RETRY_NO_WAY;
	case MOVER_NO_CONNECT: return x->refused ? RETRY_REFUSED : RETRY_NO_WAY;
	/* without its network, a host may have no device and no address for a while */
	case MOVER_NO_DEVICE:
	case MOVER_FAILED: return x->retry.met && !s->control.trusted ? RETRY_NO_WAY : RETRY_FINAL;
	default: return RETRY_FINAL;
	}
}

static void note_progress(struct sender *x)
{
	struct mover_totals now = session_totals(&x->s);

	if (now.bytes_done > x->arrived.bytes_done || now.entries_done > x->arrived.entries_done)
		retry_progress(&x->retry);
	x->arrived = now;
}

/* The reason is why the connection broke, and then why there was no other. */
static void give_up(struct sender *x, enum retry_end end)
{
	struct session *s = &x->s;
	double seconds = (double)(x->retry.for_ns / MS) / 1000;
	char last[sizeof(s->text)];

	if (!*x->broke || (end != RETRY_NO_WAY && end != RETRY_REFUSED))
		return;
	memcpy(last, s->text, sizeof(last));
	s->status = MOVER_OK;
	if (end == RETRY_REFUSED)
		session_fail(s, MOVER_LOST, "%s; since then the receiver has ended: %s", x->broke, last);
	else
		session_fail(s, MOVER_LOST, "%s; no other connection within %g second%s: %s", x->broke, seconds,
			     seconds == 1 ? "" : "s", last);
}

static void pause_for(uint64_t pause_ns)
{
	struct pollfd stop = {.fd = mover_stop_fd(), .events = POLLIN};

	poll(&stop, 1, (int)((pause_ns + MS - 1) / MS));
}

bool sender_again(struct sender *x)
{
	enum retry_end end = ending(x);
	uint64_t pause_ns;

	note_progress(x);
	if (x->outcome.known && x->retry.for_ns > TELL_NS)
		x->retry.for_ns = TELL_NS;
	if (!retry_again(&x->retry, end, mover_now_ns(), &pause_ns)) {
		give_up(x, end);
		return false;
	}
	if (end == RETRY_BROKEN)
		memcpy(x->broke, x->s.text, sizeof(x->broke));
	session_reconnecting(&x->s, retry_left_ns(&x->retry, mover_now_ns()));
	sender_disconnect(x);
	pause_for(pause_ns);
	sender_begin(x); /* the next call decides about a failure */
	if (!mover_stopped())
		return true;
	x->s.status = MOVER_OK;
	session_fail_stopped(&x->s);
	return false;
}
