/* SPDX-License-Identifier: BSD-2-Clause */
#include "engine/path.h"

#include <stdlib.h>
#include <string.h>

#include "engine/internal.h"

#define CWND_FIRST       (128u << 10)
#define CWND_MIN         (16u << 10)
#define CWND_MAX         (2u << 20)
#define QUEUE_TARGET_NS  1500000u /* queueing delay that counts as congestion */
#define BASE_RTT_LIFE_NS 10000000000u
#define RTT_UNKNOWN_NS   1000000u    /* stands for the round trip before one was measured */
#define RATE_FIRST       1000000000u /* bytes per second */
#define RATE_MIN         10000000u
#define RATE_MAX         1500000000u
#define RATE_RECOVERY_NS 1000000u
#define PACE_IDLE_NS     100000000u /* after which the bucket is full, whatever the rate */
#define PACE_BURST       (256u << 10)

struct roci_path *roci_path_get(struct roci_engine *e, const uint8_t sgid[16], const uint8_t dgid[16])
{
	struct roci_path *p;

	for (struct roci_list *l = e->paths.next; l != &e->paths; l = l->next) {
		p = roci_container_of(l, struct roci_path, all);
		if (!memcmp(p->sgid, sgid, 16) && !memcmp(p->dgid, dgid, 16)) {
			p->users++;
			return p;
		}
	}
	p = calloc(1, sizeof(*p));
	if (!p)
		return NULL;
	memcpy(p->sgid, sgid, 16);
	memcpy(p->dgid, dgid, 16);
	p->users = 1;
	p->cwnd = CWND_FIRST;
	p->ssthresh = CWND_MAX;
	p->rate = RATE_FIRST;
	p->tokens = PACE_BURST;
	roci_list_init(&p->blocked);
	roci_list_append(&e->paths, &p->all);
	return p;
}

struct roci_path *roci_path_get_local(struct roci_engine *e, uint16_t local)
{
	static const uint8_t nowhere[16]; /* no path of the wire leads to this address */
	uint8_t to[16] = {(uint8_t)(local >> 8), (uint8_t)local};
	struct roci_path *p = roci_path_get(e, nowhere, to);

	if (p) {
		p->fixed = true;
		p->cwnd = ROCI_PATH_LOCAL_WINDOW;
	}
	return p;
}

void roci_path_put(struct roci_path *p)
{
	if (--p->users)
		return;
	roci_list_remove(&p->all);
	free(p);
}

void roci_path_acked(struct roci_path *p, uint64_t now, uint64_t bytes)
{
	bool limited = 2 * (p->flight + bytes) >= p->cwnd;

	if (!limited || p->fixed)
		return;
	if (p->cwnd < p->ssthresh)
		p->cwnd += bytes;
	else
		p->cwnd += 4096 * bytes / p->cwnd;
	if (p->cwnd > CWND_MAX)
		p->cwnd = CWND_MAX;
}

void roci_path_rtt(struct roci_path *p, uint64_t now, uint64_t rtt_ns)
{
	p->srtt = p->srtt ? (7 * p->srtt + rtt_ns) / 8 : rtt_ns;
	if (!p->base_rtt || rtt_ns < p->base_rtt || now - p->base_rtt_at > BASE_RTT_LIFE_NS) {
		p->base_rtt = rtt_ns;
		p->base_rtt_at = now;
	}
	if (!p->fixed && p->srtt > 2 * p->base_rtt + QUEUE_TARGET_NS && now - p->cut_at > p->srtt) {
		p->cut_at = now;
		p->cwnd -= p->cwnd / 8;
		if (p->cwnd < CWND_MIN)
			p->cwnd = CWND_MIN;
		p->ssthresh = p->cwnd;
	}
}

void roci_path_congested(struct roci_path *p, uint64_t now)
{
	if (p->fixed || (p->cut_at && now - p->cut_at <= (p->srtt ? p->srtt : RTT_UNKNOWN_NS)))
		return;
	p->cut_at = now;
	p->cwnd = p->cwnd / 2 < CWND_MIN ? CWND_MIN : p->cwnd / 2;
	p->ssthresh = p->cwnd;
	p->rate = p->rate / 2 < RATE_MIN ? RATE_MIN : p->rate / 2;
	p->rate_at = now;
}

/* The rate grows by a sixteenth for each interval without a cut. */
static void recover_rate(struct roci_path *p, uint64_t now)
{
	if (now - p->rate_at < RATE_RECOVERY_NS)
		return;
	p->rate_at = now;
	p->rate += p->rate / 16;
	if (p->rate > RATE_MAX)
		p->rate = RATE_MAX;
}

/* A bucket of PACE_BURST bytes that fills at `rate`. */
uint64_t roci_path_pace(struct roci_path *p, uint64_t now, uint64_t bytes)
{
	uint64_t passed = now - p->tokens_at;

	recover_rate(p, now);
	p->tokens_at = now;
	if (passed > PACE_IDLE_NS)
		p->tokens = PACE_BURST;
	else
		p->tokens += passed * p->rate / 1000000000u;
	if (p->tokens > PACE_BURST)
		p->tokens = PACE_BURST;
	if (p->tokens < bytes)
		return now + 1 + (bytes - p->tokens) * 1000000000u / p->rate;
	p->tokens -= bytes;
	return 0;
}
