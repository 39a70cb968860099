/* SPDX-License-Identifier: BSD-2-Clause */
#include "tour/hello.h"

#include <errno.h>
#include <string.h>

#include "mover/cursor.h"
#include "tour/device.h"

#define REQUEST_MAGIC 0x524f5431u /* "ROT1" */
#define OFFER_MAGIC   0x524f5432u
#define ANSWER_MAGIC  0x524f5433u
/* A sequence number that no operation has: content begins with its own. */
#define CONTROL_MAGIC UINT64_C(0xffffffff524f5434)

enum { FLAG_VERIFY = 1, FLAG_STEPS = 2, FLAG_EMBEDDED = 4, FLAG_RECORDED = 8 };

void hello_put_request(uint8_t bytes[HELLO_REQUEST_BYTES], const struct hello_request *r)
{
	struct cursor_out out = cursor_out(bytes, HELLO_REQUEST_BYTES);

	memset(bytes, 0, HELLO_REQUEST_BYTES);
	put_u32(&out, REQUEST_MAGIC);
	put_u8(&out, HELLO_VERSION);
	put_u8(&out, (uint8_t)r->op);
	put_u8(&out, (uint8_t)((unsigned)r->qp << 4 | (r->verify ? FLAG_VERIFY : 0) | (r->steps ? FLAG_STEPS : 0)));
	put_u8(&out, r->mtu);
	put_u32(&out, r->size);
	put_u32(&out, r->seed);
	put_u32(&out, r->caps);
	put_u32(&out, r->host);
	put_u32(&out, r->qpn);
	put_u32(&out, r->psn);
	put_u16(&out, r->lid);
	put_bytes(&out, r->gid, sizeof(r->gid));
}

bool hello_is_incomplete(const void *bytes, size_t len)
{
	static const uint8_t begin[] = {'R', 'O', 'T', '1', HELLO_VERSION};

	return len < HELLO_REQUEST_BYTES && !memcmp(bytes, begin, len < sizeof(begin) ? len : sizeof(begin));
}

enum hello_status hello_get_request(const void *bytes, size_t len, struct hello_request *r)
{
	struct cursor_in in = cursor_in(bytes, len);
	const uint8_t *gid;
	unsigned op, flags, qp;

	*r = (struct hello_request){0};
	if (get_u32(&in) != REQUEST_MAGIC)
		return HELLO_BAD_REQUEST;
	if (get_u8(&in) != HELLO_VERSION)
		return in.bad ? HELLO_BAD_REQUEST : HELLO_BAD_VERSION;
	op = get_u8(&in);
	flags = get_u8(&in);
	qp = flags >> 4;
	r->mtu = get_u8(&in);
	r->size = get_u32(&in);
	r->seed = get_u32(&in);
	r->caps = get_u32(&in);
	r->host = get_u32(&in);
	r->qpn = get_u32(&in);
	r->psn = get_u32(&in);
	r->lid = get_u16(&in);
	gid = get_bytes(&in, sizeof(r->gid));
	if (in.bad || op >= TOUR_OPS || qp >= TOUR_QPS || r->size > TOUR_MAX_BYTES || r->mtu > 5 ||
	    (r->qpn | r->psn) >> 24)
		return HELLO_BAD_REQUEST;
	r->op = (enum tour_op)op;
	r->qp = (enum tour_qp)qp;
	if (tour_op_atomic(r->op) && r->size != TOUR_ATOMIC_BYTES)
		return HELLO_BAD_REQUEST;
	r->verify = flags & FLAG_VERIFY;
	r->steps = flags & FLAG_STEPS;
	memcpy(r->gid, gid, sizeof(r->gid));
	return HELLO_OK;
}

void hello_put_offer(uint8_t bytes[HELLO_OFFER_BYTES], const struct hello_offer *o)
{
	struct cursor_out out = cursor_out(bytes, HELLO_OFFER_BYTES);

	memset(bytes, 0, HELLO_OFFER_BYTES);
	put_u32(&out, OFFER_MAGIC);
	put_u8(&out, HELLO_VERSION);
	put_u8(&out, (uint8_t)o->status);
	put_u8(&out, o->embedded ? FLAG_EMBEDDED : 0);
	put_u8(&out, o->mtu);
	put_u32(&out, o->caps);
	put_u32(&out, o->size_max);
	put_u32(&out, o->host);
	put_u64(&out, o->addr);
	put_u32(&out, o->rkey);
	put_bytes(&out, o->device, sizeof(o->device) - 1);
	put_u8(&out, 0);
	put_u32(&out, o->qpn);
	put_u32(&out, o->psn);
	put_u32(&out, o->qkey);
	put_u16(&out, o->lid);
	put_bytes(&out, o->gid, sizeof(o->gid));
	put_u8(&out, (uint8_t)(o->network_mtu << 4 | o->gid_type));
	put_u8(&out, o->prefix);
}

/* A name that a terminal can show. */
static bool printable(const char *name, size_t room)
{
	size_t len = strnlen(name, room);

	for (size_t i = 0; i < len; i++) {
		if (name[i] <= ' ' || name[i] > '~')
			return false;
	}
	return len && len < room;
}

int hello_get_offer(const void *bytes, size_t len, struct hello_offer *o)
{
	struct cursor_in in = cursor_in(bytes, len);
	const uint8_t *device, *gid;
	unsigned status, types;

	*o = (struct hello_offer){0};
	if (get_u32(&in) != OFFER_MAGIC)
		return -EPROTO;
	if (get_u8(&in) != HELLO_VERSION)
		return in.bad ? -EPROTO : -EPROTONOSUPPORT;
	status = get_u8(&in);
	o->embedded = get_u8(&in) & FLAG_EMBEDDED;
	o->mtu = get_u8(&in);
	o->caps = get_u32(&in);
	o->size_max = get_u32(&in);
	o->host = get_u32(&in);
	o->addr = get_u64(&in);
	o->rkey = get_u32(&in);
	device = get_bytes(&in, sizeof(o->device));
	o->qpn = get_u32(&in);
	o->psn = get_u32(&in);
	o->qkey = get_u32(&in);
	o->lid = get_u16(&in);
	gid = get_bytes(&in, sizeof(o->gid));
	types = get_u8(&in);
	o->prefix = get_u8(&in);
	o->gid_type = types & 0xf;
	o->network_mtu = (uint8_t)(types >> 4);
	if (in.bad || status >= HELLO_STATUSES || o->mtu > 5 || (o->qpn | o->psn) >> 24)
		return -EPROTO;
	if (o->gid_type >= TOUR_GID_TYPES || o->network_mtu > 5 || o->prefix > 128)
		return -EPROTO;
	memcpy(o->device, device, sizeof(o->device));
	memcpy(o->gid, gid, sizeof(o->gid));
	o->status = (enum hello_status)status;
	return printable(o->device, sizeof(o->device)) ? 0 : -EPROTO;
}

void hello_put_control(uint8_t bytes[HELLO_CONTROL_BYTES], const struct control *c)
{
	struct cursor_out out = cursor_out(bytes, HELLO_CONTROL_BYTES);

	put_u64(&out, CONTROL_MAGIC);
	put_u32(&out, c->seed);
	put_u32(&out, (uint32_t)c->kind);
	put_u32(&out, c->seq);
}

bool hello_get_control(const void *bytes, size_t len, uint32_t seed, struct control *c)
{
	struct cursor_in in = cursor_in(bytes, len);
	bool magic = get_u64(&in) == CONTROL_MAGIC;
	uint32_t kind;

	c->seed = get_u32(&in);
	kind = get_u32(&in);
	c->kind = (enum control_kind)kind;
	c->seq = get_u32(&in);
	return len == HELLO_CONTROL_BYTES && !in.bad && magic && c->seed == seed && kind < CONTROL_KINDS;
}

void hello_put_answer(uint8_t bytes[HELLO_ANSWER_BYTES], const struct answer *a)
{
	struct cursor_out out = cursor_out(bytes, HELLO_ANSWER_BYTES);

	memset(bytes, 0, HELLO_ANSWER_BYTES);
	put_u32(&out, ANSWER_MAGIC);
	put_u8(&out, (uint8_t)a->to);
	put_u8(&out, (uint8_t)a->verdict);
	put_u8(&out, a->recorded ? FLAG_RECORDED : 0);
	put_u8(&out, 0);
	put_u32(&out, a->seq);
	put_u32(&out, a->len);
	put_u32(&out, a->inv_rkey);
	put_u32(&out, a->wrong_at);
	for (unsigned i = 0; i < FAR_TIMES; i++)
		put_u64(&out, a->times[i]);
}

int hello_get_answer(const void *bytes, size_t len, struct answer *a)
{
	struct cursor_in in = cursor_in(bytes, len);
	unsigned to, verdict;

	*a = (struct answer){0};
	if (get_u32(&in) != ANSWER_MAGIC)
		return -EPROTO;
	to = get_u8(&in);
	verdict = get_u8(&in);
	a->recorded = get_u8(&in) & FLAG_RECORDED;
	get_u8(&in);
	a->seq = get_u32(&in);
	a->len = get_u32(&in);
	a->inv_rkey = get_u32(&in);
	a->wrong_at = get_u32(&in);
	for (unsigned i = 0; i < FAR_TIMES; i++)
		a->times[i] = get_u64(&in);
	if (in.bad || to >= CONTROL_KINDS || verdict >= VERDICTS)
		return -EPROTO;
	a->to = (enum control_kind)to;
	a->verdict = (enum verdict)verdict;
	return 0;
}

const char *hello_status_str(enum hello_status status)
{
	static const char *const texts[HELLO_STATUSES] = {
		[HELLO_OK] = "agrees",
		[HELLO_BAD_VERSION] = "has another version of `roci serve`; use the same Rocinante on both machines",
		[HELLO_BAD_REQUEST] = "did not understand the request",
		[HELLO_BUSY] = "serves as many clients as it takes at once; try again later",
		[HELLO_REFUSED] = "cannot do this operation with its device",
		[HELLO_TOO_LONG] = "cannot take an operation of this size",
		[HELLO_FAILED] = "could not set up its side; its own output says why",
	};
	return (unsigned)status < HELLO_STATUSES ? texts[status] : "answered with an unknown status";
}

const char *hello_verdict_str(enum verdict verdict)
{
	static const char *const texts[VERDICTS] = {
		[VERDICT_GOOD] = "good",
		[VERDICT_WRONG_CONTENT] = "other bytes have arrived than were sent",
		[VERDICT_WRONG_LENGTH] = "another number of bytes has arrived than was sent",
		[VERDICT_WRONG_IMM] = "other immediate data have arrived than were sent",
		[VERDICT_WRONG_INVALIDATE] = "the rkey was not invalidated",
		[VERDICT_FAILED] = "a verbs call failed at the far end; its own output says why",
	};
	return (unsigned)verdict < VERDICTS ? texts[verdict] : "unknown";
}
