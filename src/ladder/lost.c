/* SPDX-License-Identifier: BSD-2-Clause */
/* What was lost. */
#include <string.h>

#include "ladder/store.h"

#define BATCH    64     /* packets that are sent at once: ROCI_TX_BATCH */
#define BATCH_NS 200000 /* what passes at most until they are captured */

/* ---- packets by conversation, end, PSN ---- */

/* Open addressing; each place has the first packet of a key. Packets of one key follow each other in `next`. */
struct psn_index {
	int *places, *next, *last;
	size_t mask;
};

static size_t hash(int conversation, int end, uint32_t psn)
{
	uint64_t z =
		((uint64_t)(unsigned)conversation << 32 | (uint64_t)(unsigned)end << 24 | psn) * 0x9e3779b97f4a7c15u;

	return (size_t)(z ^ z >> 29);
}

static bool has_key(const struct ladder_packet *p, int conversation, int end, uint32_t psn)
{
	return p->conversation == conversation && p->end == end && p->psn == psn;
}

static size_t place_of(const struct ladder *l, const struct psn_index *x, int conversation, int end, uint32_t psn)
{
	size_t at = hash(conversation, end, psn) & x->mask;

	while (x->places[at] >= 0 && !has_key(&l->packets[x->places[at]], conversation, end, psn))
		at = (at + 1) & x->mask;
	return at;
}

static bool is_request_or_response(const struct ladder_packet *p)
{
	return !(p->flags & (LADDER_ACK | LADDER_CM));
}

static void index_packets(struct ladder *l, struct psn_index *x)
{
	memset(x->places, 0xff, (x->mask + 1) * sizeof(*x->places));
	for (size_t i = 0; i < l->packet_count; i++) {
		const struct ladder_packet *p = &l->packets[i];
		size_t at;

		x->next[i] = -1;
		if (!is_request_or_response(p))
			continue;
		at = place_of(l, x, p->conversation, p->end, p->psn);
		if (x->places[at] < 0)
			x->places[at] = (int)i;
		else
			x->next[x->last[at]] = (int)i;
		x->last[at] = (int)i;
	}
}

/* ---- losses ---- */

/* A packet that left, did not arrive, and was sent again, where the receiving process captured its packets. */
static void find_lost_between(struct ladder *l, const struct psn_index *x)
{
	for (size_t i = 0; i < l->packet_count; i++) {
		struct ladder_packet *p = &l->packets[i];
		const struct ladder_conversation *c = &l->conversations[p->conversation];

		if (p->arrived_ns != LADDER_NEVER || !is_request_or_response(p) || !c->pids[0] || !c->pids[1])
			continue;
		for (int k = x->next[i]; k >= 0; k = x->next[k])
			if (l->packets[k].arrived_ns != LADDER_NEVER)
				p->flags |= LADDER_LOST_BETWEEN;
	}
}

/* The record's conversation, and the end that sent the packet. */
static bool find_way(const struct ladder *l, const struct roci_record *r, int *conversation, int *end)
{
	const uint8_t *src = r->flags ? r->local_gid : r->remote_gid, *dst = r->flags ? r->remote_gid : r->local_gid;

	for (size_t i = 0; i < l->conversation_count; i++) {
		const struct capture_conversation *c = &l->conversations[i].about;

		for (int to = 0; c->number && to < 2; to++) {
			if (!c->ends[to].qpn_known || c->ends[to].qpn != r->qpn || memcmp(c->ends[to].gid, dst, 16) ||
			    memcmp(c->ends[!to].gid, src, 16))
				continue;
			if (r->qpn == 1 && l->conversations[i].pids[r->flags ? !to : to] != r->pid)
				continue; /* of several processes */
			*conversation = (int)i;
			*end = !to;
			return true;
		}
	}
	return false;
}

static bool is_lost_after(const struct ladder_packet *p, const struct roci_record *r, int conversation, int end)
{
	uint64_t there = p->arrived_ns == LADDER_NEVER ? p->sent_ns : p->arrived_ns;

	return has_key(p, conversation, end, r->imm) && p->opcode == r->opcode && there <= r->time_ns &&
	       !(p->flags & LADDER_LOST_BEFORE);
}

static void mark_lost_after(struct ladder *l, const struct psn_index *x, const struct roci_record *r, int conversation,
			    int end)
{
	int newest = -1;

	for (int i = x->places[place_of(l, x, conversation, end, r->imm)]; i >= 0; i = x->next[i])
		if (is_lost_after(&l->packets[i], r, conversation, end))
			newest = i;
	for (int i = (int)l->packet_count; newest < 0 && i-- > 0;) /* acknowledgements are not in the index */
		if (is_lost_after(&l->packets[i], r, conversation, end))
			newest = i;
	if (newest >= 0)
		l->packets[newest].flags |= LADDER_LOST_AFTER;
}

static int flow_of_way(struct ladder *l, const struct roci_record *r, int conversation, int end)
{
	struct roci_flow addresses = {.dst_port = ROCI_UDP_PORT};

	for (size_t i = 0; i < l->flow_count; i++)
		if (l->flows[i].conversation == conversation && l->flows[i].end == end)
			return (int)i;
	memcpy(addresses.src, r->local_gid, 16);
	memcpy(addresses.dst, r->remote_gid, 16);
	if (!LADDER_GROW(l, flows, flow))
		return 0;
	l->flows[l->flow_count] =
		(struct ladder_flow){.conversation = conversation, .end = end, .addresses = addresses};
	return (int)l->flow_count++;
}

/* Faults are drawn before the batch of packets is captured, so a packet that is lost there has an older time than those
 * that stood before it. It goes behind them, as it would have gone. */
static void place_lost_before(const struct ladder *l, const struct psn_index *x, struct ladder_packet *p)
{
	for (uint32_t back = 1; back <= BATCH; back++) {
		size_t at = place_of(l, x, p->conversation, p->end, (p->psn - back) & ROCI_PSN_MASK);

		for (int i = x->places[at]; i >= 0; i = x->next[i]) {
			const struct ladder_packet *before = &l->packets[i];

			if (before->sent_ns < p->sent_ns || before->sent_ns - p->sent_ns > BATCH_NS)
				continue;
			p->sent_ns = before->sent_ns;
			p->order = before->order;
			return;
		}
	}
}

/* It is in no capture, so the picture gets a packet of its own. The message is that of the next copy. */
static void add_lost_before(struct ladder *l, const struct psn_index *x, const struct roci_record *r, int conversation,
			    int end)
{
	const struct roci_opcode_info *op = roci_opcode_info(r->opcode);
	size_t at = place_of(l, x, conversation, end, r->imm);
	struct ladder_packet p = {.sent_ns = r->time_ns,
				  .arrived_ns = LADDER_NEVER,
				  .message = -1,
				  .conversation = conversation,
				  .end = end,
				  .flags = LADDER_LOST_BEFORE,
				  .psn = r->imm,
				  .qpn = r->qpn,
				  .length = (uint32_t)r->length,
				  .from_pid = r->pid,
				  .opcode = r->opcode};

	if (op && op->kind == ROCI_KIND_ACK)
		p.flags |= LADDER_ACK;
	else if (r->qpn == 1)
		p.flags |= LADDER_CM;
	else if (x->places[at] >= 0)
		p.message = l->packets[x->places[at]].message;
	for (int i = x->places[at]; i >= 0; i = x->next[i]) /* the tracker has not seen the first one */
		if (l->packets[i].sent_ns > r->time_ns)
			l->packets[i].flags |= LADDER_AGAIN;
	place_lost_before(l, x, &p);
	p.bytes = op && r->length > (uint64_t)op->header_bytes + ROCI_ICRC_BYTES
			  ? (uint32_t)r->length - op->header_bytes - ROCI_ICRC_BYTES
			  : 0;
	p.flow = flow_of_way(l, r, conversation, end);
	p.from = l->conversations[conversation].lines[end];
	p.to = l->conversations[conversation].lines[!end];
	p.meaning = ladder_print(l, "%s, PSN %u", op ? op->name : "a packet", r->imm); /* the flag says the rest */
	if (LADDER_GROW(l, packets, packet))
		l->packets[l->packet_count++] = p;
}

/* A fault after the capture took every copy before this one: for its receiver it is the first. */
static void clear_duplicates(struct ladder *l, const struct psn_index *x)
{
	for (size_t at = 0; at <= x->mask; at++) {
		bool lost = false, came = false;

		for (int i = x->places[at]; i >= 0; i = x->next[i]) {
			struct ladder_packet *p = &l->packets[i];

			if (lost && !came)
				p->flags &= ~(unsigned)LADDER_DUPLICATE;
			lost = lost || p->flags & LADDER_LOST_AFTER;
			came = came || !(p->flags & LADDER_LOST);
		}
	}
}

static int by_time(const void *a, const void *b)
{
	const struct ladder_packet *x = a, *y = b;

	if (x->sent_ns != y->sent_ns)
		return x->sent_ns < y->sent_ns ? -1 : 1;
	if (x->order != y->order)
		return x->order < y->order ? -1 : 1;
	return x->flags & LADDER_LOST_BEFORE && y->flags & LADDER_LOST_BEFORE ? (int)x->psn - (int)y->psn
	       : x->flags & LADDER_LOST_BEFORE                                ? 1
	       : y->flags & LADDER_LOST_BEFORE                                ? -1
									      : 0;
}

static void find_lost(struct ladder *l, const struct psn_index *x)
{
	int conversation, end;

	find_lost_between(l, x);
	for (size_t i = 0; i < l->lost_count; i++) {
		const struct roci_record *r = &l->lost[i];

		if (!find_way(l, r, &conversation, &end))
			continue;
		if (r->flags)
			add_lost_before(l, x, r, conversation, end);
		else
			mark_lost_after(l, x, r, conversation, end);
	}
	clear_duplicates(l, x);
}

void ladder_find_lost(struct ladder *l)
{
	struct psn_index x = {.mask = 1024};
	while (x.mask < 2 * l->packet_count)
		x.mask *= 2;
	x.places = calloc(x.mask, sizeof(*x.places));
	x.last = calloc(x.mask, sizeof(*x.last));
	x.next = calloc(l->packet_count + 1, sizeof(*x.next));
	x.mask--;
	if (!x.places || !x.last || !x.next) {
		l->out_of_memory = true;
	} else {
		index_packets(l, &x);
		find_lost(l, &x);
	}
	free(x.places);
	free(x.last);
	free(x.next);
	/* Several processes wrote the capture, each in batches: the order of the file is not that of time. */
	if (l->packet_count)
		qsort(l->packets, l->packet_count, sizeof(*l->packets), by_time);
}
