/* SPDX-License-Identifier: BSD-2-Clause */
#include "rival.h"

#include <math.h>

#define FIRST_WINDOW 10
#define BETA         0.7
#define C            0.4
#define RTO_NS       UINT64_C(1000000000)

void rival_init(struct rival *r, uint64_t now)
{
	*r = (struct rival){.window = FIRST_WINDOW, .threshold = INFINITY, .heard_at = now};
}

bool rival_may_send(const struct rival *r)
{
	return (double)(r->next - r->acked) + 1 <= r->window;
}

static void cut(struct rival *r, uint64_t now)
{
	r->before = r->window < r->before ? r->window * (1 + BETA) / 2 : r->window; /* fast convergence */
	r->window = r->window * BETA < 2 ? 2 : r->window * BETA;
	r->threshold = r->friendly = r->window;
	r->k = cbrt((r->before - r->window) / C);
	r->cut_at = now;
	r->recover = r->next;
}

/* RFC 9438 4.2 to 4.5 */
static void grow(struct rival *r, uint64_t now)
{
	double t, target;

	if (r->window < r->threshold) {
		r->window += 1;
		return;
	}
	t = (double)(now - r->cut_at + r->rtt_ns) / 1e9 - r->k;
	target = C * t * t * t + r->before;
	r->friendly += 3 * (1 - BETA) / (1 + BETA) / r->window;
	if (target > 1.5 * r->window)
		target = 1.5 * r->window;
	if (target < r->friendly)
		target = r->friendly;
	if (target > r->window)
		r->window += (target - r->window) / r->window;
}

void rival_acked(struct rival *r, uint64_t now, uint64_t number, uint64_t sent_at)
{
	uint64_t rtt = now - sent_at;

	r->rtt_ns = r->rtt_ns ? (7 * r->rtt_ns + rtt) / 8 : rtt;
	r->heard_at = now;
	if (number < r->acked)
		return;
	if (number > r->acked && number >= r->recover) /* those between are lost: a line keeps the order */
		cut(r, now);
	else
		grow(r, now);
	r->acked = number + 1;
}

uint64_t rival_deadline(const struct rival *r)
{
	return r->next == r->acked ? UINT64_MAX : r->heard_at + RTO_NS + 2 * r->rtt_ns;
}

void rival_expired(struct rival *r, uint64_t now)
{
	cut(r, now);
	r->window = FIRST_WINDOW;
	r->acked = r->next;
	r->heard_at = now;
}
