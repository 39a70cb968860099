/* SPDX-License-Identifier: BSD-2-Clause */
#include "line.h"

#define SECOND UINT64_C(1000000000)

static uint64_t wire_ns(const struct line *l, uint64_t bytes)
{
	return bytes * 8 * SECOND / l->spec.rate_bps;
}

void line_init(struct line *l, const struct line_spec *spec, uint64_t seed, uint64_t now)
{
	*l = (struct line){.spec = *spec, .began = now, .tokens = spec->police_bytes, .tokens_at = now};
	rng_init(&l->rng, seed, 9);
	if (!l->spec.queue_bytes)
		l->spec.queue_bytes = spec->rate_bps / 8 * 2 * spec->delay_ns / SECOND;
}

static bool polices(struct line *l, uint64_t now, uint32_t bytes)
{
	uint64_t fresh = (now - l->tokens_at) * (l->spec.police_bps / 8) / SECOND;

	if (!l->spec.police_bps)
		return false;
	if (fresh) {
		l->tokens_at = now;
		l->tokens = l->tokens + fresh < l->spec.police_bytes ? l->tokens + fresh : l->spec.police_bytes;
	}
	if (l->tokens < bytes)
		return true;
	l->tokens -= bytes;
	return false;
}

static bool is_out(const struct line *l, uint64_t now)
{
	uint64_t into = now - l->began;

	return l->spec.outage_ns && into >= l->spec.outage_at_ns && into < l->spec.outage_at_ns + l->spec.outage_ns;
}

static bool swallows(const struct line *l, uint64_t now, uint32_t bytes)
{
	return l->spec.mtu && bytes > l->spec.mtu && now - l->began >= l->spec.mtu_at_ns;
}

static bool hit(struct line *l, uint32_t ppm)
{
	return ppm && rng_below(&l->rng, 1000000) < ppm;
}

/* Behind the wire. */
static uint64_t arrival(struct line *l)
{
	uint64_t at = l->next_free + l->spec.delay_ns;

	if (l->spec.jitter_ns)
		at += rng_below(&l->rng, l->spec.jitter_ns);
	if (hit(l, l->spec.late_ppm))
		return at + l->spec.late_ns;
	if (at < l->last_arrival)
		at = l->last_arrival;
	l->last_arrival = at;
	return at;
}

uint64_t line_send(struct line *l, uint64_t now, uint32_t bytes, unsigned flow, bool *ce)
{
	uint64_t wait = l->next_free > now ? l->next_free - now : 0, backlog = wait * (l->spec.rate_bps / 8) / SECOND;
	bool counts = now >= l->count_from;

	l->packets += counts;
	if (is_out(l, now) || swallows(l, now, bytes) || polices(l, now, bytes) ||
	    backlog + bytes > l->spec.queue_bytes) {
		l->dropped += counts;
		return 0;
	}
	*ce = *ce && l->spec.mark_bytes && backlog > l->spec.mark_bytes;
	l->marked += counts && *ce;
	l->next_free = now + wait + wire_ns(l, bytes);
	if (counts) {
		l->queued_ns += wait;
		l->queued_max_ns = wait > l->queued_max_ns ? wait : l->queued_max_ns;
	}
	if (hit(l, l->spec.loss_ppm)) {
		l->lost += counts;
		return 0;
	}
	if (counts)
		l->bytes[flow] += bytes;
	return arrival(l);
}
