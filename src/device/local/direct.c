/* SPDX-License-Identifier: BSD-2-Clause */
#include "device/local/direct.h"

#include <errno.h>
#include <unistd.h>

#include "device/local/table.h"
#include "device/local/copy.h"

/* The thread's number in the kernel. A forked child's thread has another one, and the child another device. */
static uint32_t thread_id(const struct roci_local *l)
{
	static _Thread_local uint64_t of;
	static _Thread_local uint32_t id;

	if (of != l->own->incarnation) {
		of = l->own->incarnation;
		id = (uint32_t)gettid();
	}
	return id;
}

static struct roci_local_pair *pair_at(const struct roci_local *l, const struct roci_local_peer *peer)
{
	return &peer->shared->pairs[l->registry->slot];
}

/* From here to retire_hazard() the peer waits for us where it takes something back. What may be taken back, the guard
 * first, is looked at after this. */
static struct roci_local_memory announce_hazard(const struct roci_local *l, const struct roci_local_peer *peer)
{
	struct roci_local_pair *pair = pair_at(l, peer);

	atomic_store(&pair->hazard, thread_id(l)); /* sequentially consistent: see roci_local_settle() */
	return (struct roci_local_memory){
		.pid = peer->pid, .token = atomic_load(&pair->token), .token_value = pair->token_value};
}

static void retire_hazard(const struct roci_local *l, const struct roci_local_peer *peer)
{
	atomic_store_explicit(&pair_at(l, peer)->hazard, 0, memory_order_release);
}

/* The memory that a copy reaches, and by what it was found. */
struct reached {
	struct roci_local_pair *pair;
	struct roci_local_shared *owner;
	const struct roci_direct *d;
	uint64_t base;
	const struct roci_local_packet *packet;
};

/* Whoever takes the memory back from now on waits for the next piece. Who has done it before sees that this one has
 * ended, and here that is seen. */
static void end_piece(const struct reached *r)
{
	atomic_fetch_add(&r->pair->pieces, 1); /* sequentially consistent: see roci_local_settle() */
}

static bool region_is_revoked(void *arg)
{
	const struct reached *r = arg;

	end_piece(r);
	return roci_local_find_region(r->owner, r->d) != r->base;
}

static bool packet_is_revoked(void *arg)
{
	const struct reached *r = arg;

	end_piece(r);
	return roci_local_packet_is_revoked(r->packet);
}

bool roci_local_direct(struct roci_local *l, struct roci_qp *qp, const struct roci_send_wr *wr)
{
	struct roci_local_memory memory;
	struct roci_local_peer *peer;
	struct roci_span theirs;
	struct roci_direct d;
	struct reached r = {.d = &d};
	int err = -EACCES;

	if (!roci_qp_direct_begin(qp, wr, &d))
		return false;
	peer = roci_local_peer(l, d.local);
	if (!peer || l->watch || atomic_load_explicit(&peer->shared->watched, memory_order_relaxed))
		return false;
	memory = announce_hazard(l, peer);
	memory.is_revoked = region_is_revoked;
	memory.arg = &r;
	r.pair = pair_at(l, peer);
	r.owner = peer->shared;
	r.base = roci_local_find_region(peer->shared, &d);
	theirs = (struct roci_span){(void *)(uintptr_t)r.base, d.len};
	if (theirs.base)
		err = roci_local_copy(&memory, d.read, d.spans, d.span_count, &theirs, 1, true);
	retire_hazard(l, peer);
	if (err)
		return false;
	l->stats->local_direct++;
	roci_qp_direct_done(qp, wr, roci_local_is_first(peer->shared, d.dest_qpn));
	return true;
}

bool roci_local_prompt(struct roci_local *l, uint64_t now, struct roci_qp *qp, const struct roci_send_wr *wr,
		       struct roci_tx_batch *batch)
{
	if (!roci_qp_send_promptly(qp, now, wr, batch))
		return false;
	for (unsigned i = 0; i < batch->count; i++)
		roci_local_send(l, &batch->packets[i], batch->spans + batch->packets[i].first_span);
	return true;
}

int roci_local_fetch(void *driver, const struct roci_far *far, const struct roci_span *to, unsigned count, bool last)
{
	struct roci_local *l = driver;
	struct roci_span from[ROCI_MAX_SGE];
	struct reached r = {.pair = pair_at(l, far->peer), .packet = far->packet};
	struct roci_local_memory memory;
	int err = -EBADMSG;

	if (!roci_local_packet_spans(far->packet, from))
		return err;
	memory = announce_hazard(l, far->peer);
	memory.is_revoked = packet_is_revoked;
	memory.arg = &r;
	if (!roci_local_packet_is_revoked(far->packet))
		err = roci_local_copy(&memory, true, to, count, from, far->packet->span_count, last);
	retire_hazard(l, far->peer);
	if (!err)
		l->stats->local_fetched++;
	return err != -EFAULT ? err : roci_local_is_mapped(to, count, true) ? -EIO : -EFAULT;
}

bool roci_local_may_read(void *driver, const struct roci_span *spans, unsigned count)
{
	return roci_local_is_mapped(spans, count, false);
}
