/* SPDX-License-Identifier: BSD-2-Clause */
#include "capture/conversation.h"

#include <stdlib.h>
#include <string.h>

#include "wire/fnv.h"

#define BUCKETS 2048
#define NONE    UINT32_MAX

struct capture_talks {
	struct capture_talk *talks[CAPTURE_CONVERSATIONS]; /* allocated when first used, and then kept */
	uint32_t buckets[BUCKETS];                         /* talk * 2 + end */
	uint32_t count; /* of talks that are allocated; all are used, but for `free` */
	uint32_t free[CAPTURE_CONVERSATIONS], free_count;
	uint32_t newest, oldest;
	uint32_t numbers; /* given */
	uint64_t given_up;
};

struct capture_talks *capture_talks_create(void)
{
	struct capture_talks *talks = calloc(1, sizeof(*talks));

	if (!talks)
		return NULL;
	memset(talks->buckets, 0xff, sizeof(talks->buckets));
	talks->newest = talks->oldest = NONE;
	return talks;
}

void capture_talks_destroy(struct capture_talks *talks)
{
	if (!talks)
		return;
	for (uint32_t i = 0; i < talks->count; i++)
		free(talks->talks[i]);
	free(talks);
}

/* ---- by age ---- */

static void unlink_age(struct capture_talks *talks, uint32_t at)
{
	struct capture_talk *talk = talks->talks[at];

	if (talk->newer == NONE)
		talks->newest = talk->older;
	else
		talks->talks[talk->newer]->older = talk->older;
	if (talk->older == NONE)
		talks->oldest = talk->newer;
	else
		talks->talks[talk->older]->newer = talk->newer;
}

static void link_newest(struct capture_talks *talks, uint32_t at)
{
	struct capture_talk *talk = talks->talks[at];

	talk->newer = NONE;
	talk->older = talks->newest;
	if (talks->newest == NONE)
		talks->oldest = at;
	else
		talks->talks[talks->newest]->newer = at;
	talks->newest = at;
}

static uint32_t index_of(const struct capture_talks *talks, const struct capture_talk *talk)
{
	uint32_t at = 0;

	while (talks->talks[at] != talk)
		at++;
	return at;
}

void capture_talk_touch(struct capture_talks *talks, struct capture_talk *talk, uint64_t now_ns)
{
	if (!talk->heard)
		talk->about.first_ns = now_ns;
	talk->heard = true;
	talk->about.last_ns = now_ns;
	if (talks->talks[talks->newest] == talk)
		return;
	/* The newer neighbour knows the place. */
	uint32_t at = talk->newer == NONE ? index_of(talks, talk) : talks->talks[talk->newer]->older;

	unlink_age(talks, at);
	link_newest(talks, at);
}

/* ---- by addresses and QPNs ---- */

static uint32_t bucket_of(const uint8_t *src, const uint8_t *dst, uint32_t dest_qpn)
{
	uint32_t hash = roci_fnv(roci_fnv(ROCI_FNV_BEGIN, src, 16), dst, 16);

	hash = roci_fnv(hash, &dest_qpn, sizeof(dest_qpn));
	return (hash ^ hash >> 15) % BUCKETS;
}

static uint32_t bucket_of_end(const struct capture_talk *talk, unsigned end)
{
	const struct capture_end *from = &talk->about.ends[end], *to = &talk->about.ends[!end];

	return bucket_of(from->gid, to->gid, to->qpn);
}

/* Packets of an end are found as soon as the QPN of the other is known. */
static void link_end(struct capture_talks *talks, uint32_t at, unsigned end)
{
	struct capture_talk *talk = talks->talks[at];
	uint32_t *bucket = &talks->buckets[bucket_of_end(talk, end)];

	talk->chain[end] = *bucket;
	*bucket = at * 2 + end;
}

static void unlink_end(struct capture_talks *talks, uint32_t at, unsigned end)
{
	struct capture_talk *talk = talks->talks[at];
	uint32_t *link = &talks->buckets[bucket_of_end(talk, end)];

	while (*link != at * 2 + end)
		link = &talks->talks[*link / 2]->chain[*link % 2];
	*link = talk->chain[end];
}

static bool is_datagram(enum roci_transport transport)
{
	return transport == ROCI_TRANSPORT_UD;
}

static bool matches(const struct capture_talk *talk, unsigned end, const struct capture_key *key)
{
	const struct capture_end *from = &talk->about.ends[end], *to = &talk->about.ends[!end];

	if (to->qpn != key->dest_qpn || memcmp(from->gid, key->src, 16) || memcmp(to->gid, key->dst, 16))
		return false;
	if (key->transport == ROCI_TRANSPORT_CNP || key->transport == ROCI_TRANSPORT_OWN)
		return !is_datagram(talk->about.transport);
	if (is_datagram(key->transport) != is_datagram(talk->about.transport))
		return false;
	return !is_datagram(key->transport) || from->qpn == key->src_qpn;
}

struct capture_talk *capture_talk_find(struct capture_talks *talks, const struct capture_key *key, unsigned *end)
{
	uint32_t at = talks->buckets[bucket_of(key->src, key->dst, key->dest_qpn)];

	while (at != NONE) {
		struct capture_talk *talk = talks->talks[at / 2];

		if (matches(talk, at % 2, key)) {
			/* A QP that talks to itself has two equal ends. */
			*end = matches(talk, 0, key) ? 0 : at % 2;
			return talk;
		}
		at = talk->chain[at % 2];
	}
	return NULL;
}

/* ---- what is known of one ---- */

static void fill_end(struct capture_end *end, const struct capture_half *half)
{
	const struct capture_end *leaving = &half->counts[CAPTURE_LEAVING], *arriving = &half->counts[CAPTURE_ARRIVING];
	struct capture_end sum = *(half->seen[CAPTURE_LEAVING] ? leaving : arriving);

	if (half->seen[CAPTURE_ARRIVING]) {
		sum.duplicates = arriving->duplicates;
		sum.out_of_order = arriving->out_of_order;
		sum.late = arriving->late;
		sum.bad_icrcs = arriving->bad_icrcs;
	}
	memcpy(sum.gid, end->gid, sizeof(sum.gid));
	sum.qpn = end->qpn;
	sum.qpn_known = end->qpn_known;
	*end = sum;
}

static const struct capture_conversation *describe(struct capture_talk *talk)
{
	for (unsigned end = 0; end < 2; end++)
		fill_end(&talk->about.ends[end], &talk->half[end]);
	return &talk->about;
}

/* ---- coming and going ---- */

static void forget(struct capture_talks *talks, uint32_t at)
{
	struct capture_talk *talk = talks->talks[at];

	unlink_end(talks, at, 0);
	if (talk->about.ends[0].qpn_known)
		unlink_end(talks, at, 1);
	unlink_age(talks, at);
	talk->used = false;
	talks->free[talks->free_count++] = at;
}

static uint32_t take_place(struct capture_talks *talks, capture_conversation_fn *given_up, void *context)
{
	if (!talks->free_count && talks->count < CAPTURE_CONVERSATIONS) {
		talks->talks[talks->count] = calloc(1, sizeof(*talks->talks[0]));
		return talks->talks[talks->count] ? talks->count++ : NONE;
	}
	if (!talks->free_count) {
		struct capture_talk *oldest = talks->talks[talks->oldest];

		talks->given_up++;
		if (given_up && oldest->heard)
			given_up(context, describe(oldest));
		forget(talks, talks->oldest);
	}
	uint32_t at = talks->free[--talks->free_count];

	memset(talks->talks[at], 0, sizeof(*talks->talks[at]));
	return at;
}

struct capture_talk *capture_talk_add(struct capture_talks *talks, const struct capture_key *key, uint64_t now_ns,
				      capture_conversation_fn *given_up, void *context)
{
	uint32_t at = take_place(talks, given_up, context);
	struct capture_talk *talk;

	if (at == NONE)
		return NULL;
	talk = talks->talks[at];
	talk->used = true;
	talk->about.number = ++talks->numbers;
	talk->about.transport = key->transport;
	talk->about.first_ns = talk->about.last_ns = now_ns;
	memcpy(talk->about.ends[0].gid, key->src, 16);
	memcpy(talk->about.ends[1].gid, key->dst, 16);
	talk->about.ends[1].qpn = key->dest_qpn;
	talk->about.ends[1].qpn_known = true;
	link_end(talks, at, 0);
	if (is_datagram(key->transport)) {
		talk->about.ends[0].qpn = key->src_qpn;
		talk->about.ends[0].qpn_known = true;
		link_end(talks, at, 1);
	}
	link_newest(talks, at);
	return talk;
}

/* ---- who answers whom ---- */

/* Whether end 0, of which only the QPN is missing, has sent a request with this PSN lately. */
static bool asked(const struct capture_talk *talk, uint32_t psn)
{
	const struct capture_half *half = &talk->half[0];
	const struct capture_psn_set *set =
		&half->requests[half->seen[CAPTURE_LEAVING] ? CAPTURE_LEAVING : CAPTURE_ARRIVING];
	int32_t back = capture_psn_diff(set->next + set->slack, psn);

	return set->begun && back > 0 && back <= CAPTURE_PSN_WINDOW && capture_psn_diff(psn, half->first_psn) >= 0;
}

static bool may_answer(const struct capture_talk *talk, const struct capture_key *key, uint32_t psn)
{
	const struct capture_conversation *about = &talk->about;

	return talk->used && !about->ends[0].qpn_known && about->transport == key->transport &&
	       !memcmp(about->ends[0].gid, key->dst, 16) && !memcmp(about->ends[1].gid, key->src, 16) &&
	       asked(talk, psn);
}

struct capture_talk *capture_talk_pair(struct capture_talks *talks, const struct capture_key *key, uint32_t psn,
				       unsigned *end, uint32_t *merged)
{
	struct capture_talk *own = capture_talk_find(talks, key, end), *found = NULL;
	uint32_t found_at = NONE;

	*merged = 0;
	if (own && own->about.ends[0].qpn_known)
		return own;
	for (uint32_t at = 0; at < talks->count; at++) {
		struct capture_talk *talk = talks->talks[at];

		if (talk == own || !may_answer(talk, key, psn))
			continue;
		if (found)
			return own;
		found = talk;
		found_at = at;
	}
	if (!found)
		return own;
	if (own) {
		*merged = own->about.number;
		found->half[1] = own->half[0];
		found->about.round_trips[1] = own->about.round_trips[0];
		if (!found->mtu)
			found->mtu = own->mtu;
		forget(talks, index_of(talks, own));
	}
	found->about.ends[0].qpn = key->dest_qpn;
	found->about.ends[0].qpn_known = true;
	link_end(talks, found_at, 1);
	*end = 1;
	return found;
}

void capture_talk_settle(struct capture_talks *talks, struct capture_talk *talk, unsigned *end)
{
	if (!talk->tentative)
		return;
	talk->tentative = false;
	if (*end == 1) {
		struct capture_end first = talk->about.ends[0];
		uint32_t at = index_of(talks, talk);

		unlink_end(talks, at, 0);
		unlink_end(talks, at, 1);
		talk->about.ends[0] = talk->about.ends[1];
		talk->about.ends[1] = first;
		link_end(talks, at, 0);
		link_end(talks, at, 1);
		*end = 0;
	}
}

void capture_talk_connect(struct capture_talks *talks, const struct capture_key *key, uint32_t src_qpn, uint32_t mtu,
			  bool tentative, uint64_t now_ns, capture_conversation_fn *given_up, void *context)
{
	struct capture_talk *talk;
	unsigned end;

	talk = capture_talk_find(talks, key, &end);
	if (talk && talk->tentative && !tentative)
		capture_talk_settle(talks, talk, &end);
	if (talk)
		return;
	talk = capture_talk_add(talks, key, now_ns, given_up, context);
	if (!talk)
		return;
	talk->mtu = mtu;
	talk->tentative = tentative;
	talk->about.ends[0].qpn = src_qpn;
	talk->about.ends[0].qpn_known = true;
	link_end(talks, talks->newest, 1);
}

static int by_number(const void *a, const void *b)
{
	const struct capture_talk *const *left = a, *const *right = b;

	return (*left)->about.number < (*right)->about.number ? -1 : (*left)->about.number > (*right)->about.number;
}

void capture_talks_each(struct capture_talks *talks, capture_conversation_fn *fn, void *context)
{
	struct capture_talk *sorted[CAPTURE_CONVERSATIONS];
	uint32_t count = 0;

	for (uint32_t at = 0; at < talks->count; at++)
		if (talks->talks[at]->used && talks->talks[at]->heard)
			sorted[count++] = talks->talks[at];
	qsort(sorted, count, sizeof(sorted[0]), by_number);
	for (uint32_t i = 0; i < count; i++)
		fn(context, describe(sorted[i]));
}

void capture_talks_totals(const struct capture_talks *talks, struct capture_totals *totals)
{
	totals->conversations = talks->numbers;
	totals->given_up = talks->given_up;
}
