/* SPDX-License-Identifier: BSD-2-Clause */
#include "device/door_queue.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "device/device.h"

#define BUNDLES      32
#define BUNDLES_EACH (BUNDLES / 2) /* of one recipient */
#define RETRY_NS     200000
#define PATIENCE_NS  1000000000
#define FINISH_NS    10000000

struct bundle {
	unsigned slot;
	uint64_t since;
	struct roci_arrival from;
	uint32_t segment, len;
	uint8_t bytes[ROCI_SIDE_DOOR_BYTES];
};

struct roci_door_queue {
	struct roci_side_door *door;
	uint64_t *lost;
	uint64_t tried_at;
	unsigned count;                  /* of bundles that wait */
	struct bundle *waiting[BUNDLES]; /* the oldest first; behind `count` those that are free */
	struct bundle *bundles;          /* all of them, owned; NULL: nothing has waited yet */
};

int roci_door_queue_open(struct roci_side_door *door, uint64_t *lost, struct roci_door_queue **out)
{
	struct roci_door_queue *q = calloc(1, sizeof(*q));

	if (!q)
		return -ENOMEM;
	q->door = door;
	q->lost = lost;
	*out = q;
	return 0;
}

void roci_door_queue_close(struct roci_door_queue *q)
{
	free(q->bundles);
	free(q);
}

/* The newest bundle for `slot`; NULL: none. *count: how many there are. */
static struct bundle *newest(const struct roci_door_queue *q, unsigned slot, unsigned *count)
{
	struct bundle *found = NULL;

	*count = 0;
	for (unsigned i = 0; i < q->count; i++) {
		if (q->waiting[i]->slot != slot)
			continue;
		found = q->waiting[i];
		++*count;
	}
	return found;
}

static bool same_way(const struct roci_arrival *a, const struct roci_arrival *b)
{
	return !memcmp(a->flow.src, b->flow.src, 16) && !memcmp(a->flow.dst, b->flow.dst, 16) &&
	       a->flow.src_port == b->flow.src_port && a->traffic_class == b->traffic_class &&
	       a->hop_limit == b->hop_limit && a->delayed == b->delayed;
}

/* Only the last packet of a message may be shorter than the others. */
static bool may_join(const struct bundle *b, const struct roci_arrival *from, uint32_t segment, size_t len)
{
	return b->segment == segment && b->len % segment == 0 && len <= sizeof(b->bytes) - b->len &&
	       (b->len + len) / segment < ROCI_SIDE_DOOR_PACKETS && same_way(&b->from, from);
}

/* Few processes have anything that waits. */
static bool has_bundles(struct roci_door_queue *q)
{
	if (q->bundles)
		return true;
	q->bundles = malloc(BUNDLES * sizeof(*q->bundles));
	for (unsigned i = 0; q->bundles && i < BUNDLES; i++)
		q->waiting[i] = &q->bundles[i];
	return q->bundles;
}

static bool keep(struct roci_door_queue *q, unsigned slot, const struct roci_arrival *from, uint32_t segment,
		 const struct iovec *iov, unsigned iov_count)
{
	unsigned count;
	struct bundle *b = newest(q, slot, &count);
	size_t len = 0;

	for (unsigned i = 1; i < iov_count; i++)
		len += iov[i].iov_len;
	if (!b || !may_join(b, from, segment, len)) {
		if (!has_bundles(q) || q->count == BUNDLES || count == BUNDLES_EACH)
			return false;
		b = q->waiting[q->count++];
		b->slot = slot;
		b->since = roci_now();
		b->from = *from;
		b->segment = segment;
		b->len = 0;
	}
	for (unsigned i = 1; i < iov_count; i++) {
		memcpy(b->bytes + b->len, iov[i].iov_base, iov[i].iov_len);
		b->len += (uint32_t)iov[i].iov_len;
	}
	return true;
}

/* Whether an older bundle for that slot stays. */
static bool is_behind(const struct roci_door_queue *q, unsigned stay, unsigned slot)
{
	for (unsigned i = 0; i < stay; i++)
		if (q->waiting[i]->slot == slot)
			return true;
	return false;
}

/* True: it was sent, or is lost. */
static bool is_done(struct roci_door_queue *q, struct bundle *b)
{
	struct iovec iov[2] = {{0}, {b->bytes, b->len}};
	int err = roci_side_door_send(q->door, b->slot, &b->from, b->segment, iov, 2);

	if (!err)
		return true;
	if (err == -EAGAIN && q->tried_at - b->since < PATIENCE_NS)
		return false;
	*q->lost += (b->len + b->segment - 1) / b->segment;
	return true;
}

void roci_door_queue_retry(struct roci_door_queue *q)
{
	unsigned stay = 0;

	if (!q->count)
		return;
	q->tried_at = roci_now();
	for (unsigned i = 0; i < q->count; i++) {
		struct bundle *b = q->waiting[i];

		if (!is_behind(q, stay, b->slot) && is_done(q, b))
			continue;
		q->waiting[i] = q->waiting[stay];
		q->waiting[stay++] = b;
	}
	q->count = stay;
}

int roci_door_queue_send(struct roci_door_queue *q, unsigned slot, const struct roci_arrival *from, uint32_t segment,
			 struct iovec *iov, unsigned iov_count)
{
	int err = -EAGAIN;

	roci_door_queue_retry(q);
	if (!is_behind(q, q->count, slot))
		err = roci_side_door_send(q->door, slot, from, segment, iov, iov_count);
	return err == -EAGAIN && keep(q, slot, from, segment, iov, iov_count) ? 0 : err;
}

uint64_t roci_door_queue_deadline(const struct roci_door_queue *q)
{
	return q->count ? q->tried_at + RETRY_NS : UINT64_MAX;
}

void roci_door_queue_finish(struct roci_door_queue *q)
{
	const struct timespec pause = {.tv_nsec = RETRY_NS};
	uint64_t end = roci_now() + FINISH_NS;

	roci_door_queue_retry(q);
	while (q->count && roci_now() < end) {
		nanosleep(&pause, NULL);
		roci_door_queue_retry(q);
	}
}
