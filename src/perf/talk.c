/* SPDX-License-Identifier: BSD-2-Clause */
#include "perf/talk.h"

#include <errno.h>
#include <string.h>

#include "mover/cursor.h"

#define HELLO_MARK  0x524f5031u /* "ROP1" */
#define OFFER_MARK  0x524f5032u
#define QP_MARK     0x524f5033u
#define ORDER_MARK  0x524f5034u
#define STOP_MARK   0x524f5035u
#define REPORT_MARK 0x524f5036u

enum { FLAG_BIDIR = 1, FLAG_EVENTS = 2, FLAG_EMBEDDED = 4 };

const char *const perf_phase_names[] = {"bandwidth", "latency", "tcp-bandwidth", "tcp-latency", NULL};

/* Whether there is a measurement of it. */
static bool has(enum tour_op op)
{
	return perf_receives(op) || perf_fetches(op) || op == TOUR_WRITE;
}

bool talk_is_hello(const void *bytes, size_t len)
{
	return len >= 3 && !memcmp(bytes, "ROP1", len < 4 ? len : 4); /* the tour's begin with "RO", too */
}

static void put_text(struct cursor_out *out, const char *text, size_t room)
{
	uint8_t *at = cursor_take(out, room);

	if (at)
		memcpy(at, text, strnlen(text, room - 1));
}

/* Takes a text that a terminal can show: 0 or -EPROTO. */
static int get_text(struct cursor_in *in, char *text, size_t room)
{
	const uint8_t *at = get_bytes(in, room);

	if (!at || at[room - 1])
		return -EPROTO;
	memcpy(text, at, room);
	for (const char *c = text; *c; c++) {
		if (*c < ' ' || *c > '~')
			return -EPROTO;
	}
	return 0;
}

/* ---- hello and offer ---- */

void talk_put_hello(uint8_t bytes[TALK_HELLO_BYTES], const struct talk_hello *h)
{
	struct cursor_out out = cursor_out(bytes, TALK_HELLO_BYTES);

	memset(bytes, 0, TALK_HELLO_BYTES);
	put_u32(&out, HELLO_MARK);
	put_u8(&out, TALK_VERSION);
	put_u8(&out, (uint8_t)h->plan.op);
	put_u8(&out, (h->plan.bidir ? FLAG_BIDIR : 0) | (h->plan.events ? FLAG_EVENTS : 0));
	put_u8(&out, h->mtu);
	put_u16(&out, (uint16_t)h->plan.qps);
	put_u16(&out, (uint16_t)h->plan.cqs);
	put_u32(&out, h->plan.depth);
	put_u32(&out, h->plan.size_max);
	put_u32(&out, h->caps);
	put_u32(&out, h->host);
	put_u16(&out, h->lid);
	put_u8(&out, h->rd_atomic);
	put_u8(&out, 0);
	put_bytes(&out, h->gid, sizeof(h->gid));
}

/* Whether a plan is one that an end may be asked for: it bounds what a stranger makes us allocate. */
static bool good_plan(const struct perf_plan *p)
{
	return has(p->op) && p->qps >= 1 && p->qps <= PERF_MAX_QPS && p->cqs >= 1 && p->cqs <= p->qps &&
	       p->depth >= 1 && p->depth <= PERF_MAX_DEPTH && p->qps * p->depth <= PERF_MAX_REQUESTS &&
	       p->size_max >= 1 && p->size_max <= PERF_MAX_BYTES &&
	       (!tour_op_atomic(p->op) || p->size_max == TOUR_ATOMIC_BYTES) && perf_memory(p) <= PERF_MAX_MEMORY;
}

int talk_get_hello(const uint8_t bytes[TALK_HELLO_BYTES], struct talk_hello *h)
{
	struct cursor_in in = cursor_in(bytes, TALK_HELLO_BYTES);
	const uint8_t *gid;
	unsigned op, flags;

	*h = (struct talk_hello){0};
	if (get_u32(&in) != HELLO_MARK)
		return -EPROTO;
	if (get_u8(&in) != TALK_VERSION)
		return -EPROTONOSUPPORT;
	op = get_u8(&in);
	flags = get_u8(&in);
	h->mtu = get_u8(&in);
	h->plan.qps = get_u16(&in);
	h->plan.cqs = get_u16(&in);
	h->plan.depth = get_u32(&in);
	h->plan.size_max = get_u32(&in);
	h->caps = get_u32(&in);
	h->host = get_u32(&in);
	h->lid = get_u16(&in);
	h->rd_atomic = get_u8(&in);
	get_u8(&in);
	gid = get_bytes(&in, sizeof(h->gid));
	if (in.bad || op >= TOUR_OPS || h->mtu < 1 || h->mtu > 5)
		return -EPROTO;
	memcpy(h->gid, gid, sizeof(h->gid));
	h->plan.op = (enum tour_op)op;
	h->plan.bidir = flags & FLAG_BIDIR;
	h->plan.events = flags & FLAG_EVENTS;
	return good_plan(&h->plan) ? 0 : -EPROTO;
}

void talk_put_offer(uint8_t bytes[TALK_OFFER_BYTES], const struct talk_offer *o)
{
	struct cursor_out out = cursor_out(bytes, TALK_OFFER_BYTES);

	memset(bytes, 0, TALK_OFFER_BYTES);
	put_u32(&out, OFFER_MARK);
	put_u8(&out, TALK_VERSION);
	put_u8(&out, o->embedded ? FLAG_EMBEDDED : 0);
	put_u8(&out, o->mtu);
	put_u8(&out, o->rd_atomic);
	put_u32(&out, o->caps);
	put_u32(&out, o->host);
	put_u16(&out, o->lid);
	put_u16(&out, 0);
	put_bytes(&out, o->gid, sizeof(o->gid));
	put_text(&out, o->device, sizeof(o->device));
	put_text(&out, o->text, sizeof(o->text));
}

int talk_get_offer(const uint8_t bytes[TALK_OFFER_BYTES], struct talk_offer *o)
{
	struct cursor_in in = cursor_in(bytes, TALK_OFFER_BYTES);
	const uint8_t *gid;

	*o = (struct talk_offer){0};
	if (get_u32(&in) != OFFER_MARK)
		return -EPROTO;
	if (get_u8(&in) != TALK_VERSION)
		return -EPROTONOSUPPORT;
	o->embedded = get_u8(&in) & FLAG_EMBEDDED;
	o->mtu = get_u8(&in);
	o->rd_atomic = get_u8(&in);
	o->caps = get_u32(&in);
	o->host = get_u32(&in);
	o->lid = get_u16(&in);
	get_u16(&in);
	gid = get_bytes(&in, sizeof(o->gid));
	if (get_text(&in, o->device, sizeof(o->device)) || get_text(&in, o->text, sizeof(o->text)) || !gid)
		return -EPROTO;
	memcpy(o->gid, gid, sizeof(o->gid));
	return *o->text || (o->mtu >= 1 && o->mtu <= 5) ? 0 : -EPROTO;
}

void talk_put_qp(uint8_t bytes[TALK_QP_BYTES], const struct talk_qp *q)
{
	struct cursor_out out = cursor_out(bytes, TALK_QP_BYTES);

	put_u32(&out, QP_MARK);
	put_u32(&out, q->qpn);
	put_u32(&out, q->psn);
	put_u64(&out, q->addr);
	put_u32(&out, q->rkey);
}

int talk_get_qp(const uint8_t bytes[TALK_QP_BYTES], struct talk_qp *q)
{
	struct cursor_in in = cursor_in(bytes, TALK_QP_BYTES);
	uint32_t mark = get_u32(&in);

	q->qpn = get_u32(&in);
	q->psn = get_u32(&in);
	q->addr = get_u64(&in);
	q->rkey = get_u32(&in);
	return mark == QP_MARK && !((q->qpn | q->psn) >> 24) ? 0 : -EPROTO;
}

/* ---- phases ---- */

void talk_put_order(uint8_t bytes[TALK_ORDER_BYTES], const struct perf_order *o)
{
	struct cursor_out out = cursor_out(bytes, TALK_ORDER_BYTES);

	put_u32(&out, ORDER_MARK);
	put_u32(&out, (uint32_t)o->phase);
	put_u32(&out, o->size);
	put_u32(&out, o->time_ms);
	put_u64(&out, o->rate);
}

int talk_get_order(const uint8_t bytes[TALK_ORDER_BYTES], uint32_t size_max, struct perf_order *o)
{
	struct cursor_in in = cursor_in(bytes, TALK_ORDER_BYTES);
	uint32_t mark = get_u32(&in), phase = get_u32(&in);

	o->phase = (enum perf_phase)phase;
	o->size = get_u32(&in);
	o->time_ms = get_u32(&in);
	o->rate = get_u64(&in);
	if (mark != ORDER_MARK || phase >= PERF_PHASES || !o->size || o->size > size_max || !o->time_ms ||
	    o->time_ms > PERF_MAX_TIME_MS)
		return -EPROTO;
	return 0;
}

void talk_put_stop(uint8_t bytes[TALK_STOP_BYTES], uint64_t sent)
{
	struct cursor_out out = cursor_out(bytes, TALK_STOP_BYTES);

	put_u32(&out, STOP_MARK);
	put_u64(&out, sent);
}

int talk_get_stop(const uint8_t bytes[TALK_STOP_BYTES], uint64_t *sent)
{
	struct cursor_in in = cursor_in(bytes, TALK_STOP_BYTES);
	uint32_t mark = get_u32(&in);

	*sent = get_u64(&in);
	return mark == STOP_MARK ? 0 : -EPROTO;
}

/* The numbers of a report in their order. */
#define REPORT_NUMBERS 16u

static void report_numbers(struct talk_report *r, uint64_t *numbers[REPORT_NUMBERS])
{
	struct perf_look *spent = &r->facts.spent;
	uint64_t *const list[REPORT_NUMBERS] = {
		&r->sent,
		&r->received,
		&r->measured,
		&r->measured_ns,
		&spent->wall_ns,
		&spent->cpu_ns,
		&spent->busy_ns,
		&spent->steal_ns,
		&spent->preempted,
		&spent->udp_overflow,
		&spent->tcp_resent,
		&spent->device.retransmissions,
		&spent->device.out_of_order,
		&spent->device.not_ready,
		&spent->device.dropped,
		NULL,
	};

	memcpy(numbers, list, sizeof(list));
}

void talk_put_report(uint8_t bytes[TALK_REPORT_BYTES], const struct talk_report *r)
{
	struct cursor_out out = cursor_out(bytes, TALK_REPORT_BYTES);
	struct talk_report copy = *r;
	uint64_t *numbers[REPORT_NUMBERS];

	report_numbers(&copy, numbers);
	memset(bytes, 0, TALK_REPORT_BYTES);
	put_u32(&out, REPORT_MARK);
	for (unsigned i = 0; numbers[i]; i++)
		put_u64(&out, *numbers[i]);
	put_u32(&out, r->facts.cpus);
	put_u32(&out, r->facts.mtu);
	put_u32(&out, r->facts.clients);
	put_u32(&out, r->facts.powersave);
	put_text(&out, r->text, sizeof(r->text));
}

int talk_get_report(const uint8_t bytes[TALK_REPORT_BYTES], struct talk_report *r)
{
	struct cursor_in in = cursor_in(bytes, TALK_REPORT_BYTES);
	uint64_t *numbers[REPORT_NUMBERS];

	*r = (struct talk_report){0};
	if (get_u32(&in) != REPORT_MARK)
		return -EPROTO;
	report_numbers(r, numbers);
	for (unsigned i = 0; numbers[i]; i++) {
		*numbers[i] = get_u64(&in);
		if (*numbers[i] > INT64_MAX)
			return -EPROTO;
	}
	r->facts.cpus = get_u32(&in);
	r->facts.mtu = get_u32(&in);
	r->facts.clients = get_u32(&in);
	r->facts.powersave = get_u32(&in);
	return get_text(&in, r->text, sizeof(r->text));
}
