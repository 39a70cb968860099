/* SPDX-License-Identifier: BSD-2-Clause */
#include "device/fault.h"

#include <errno.h>
#include <stdlib.h>

#include "wire/icrc.h"

struct fault {
	struct roci_link link;
	struct roci_link *inner;
	struct roci_device_stats *stats;
	struct roci_trace *trace;             /* NULL: nobody records */
	uint64_t state;                       /* of the generator */
	uint64_t loss, dup, reorder, corrupt; /* thresholds of 2^32 */
	struct roci_frame frames[ROCI_LINK_SEND_BATCH], again[ROCI_LINK_SEND_BATCH];
	struct roci_datagram datagrams[ROCI_LINK_RECV_BATCH];
};

/* Decides whether a fault happens, and counts it. */
static bool hit(struct fault *f, uint64_t threshold, uint64_t *count)
{
	bool yes = threshold && (roci_fault_draw(&f->state) & 0xffffffffu) < threshold;

	*count += yes;
	return yes;
}

/* What happens to a packet that begins with `bth`. The flow is that of the packet. */
static void tell(struct fault *f, enum roci_record_fault what, bool outbound, const struct roci_flow *flow,
		 const uint8_t *bth, uint32_t len)
{
	struct roci_record r = {.kind = ROCI_RECORD_FAULT, .status = what, .flags = outbound, .length = len};

	if (!f->trace || len < ROCI_BTH_BYTES)
		return;
	r.opcode = bth[0];
	r.qpn = roci_dest_qpn(bth);
	r.imm = (uint32_t)bth[9] << 16 | (uint32_t)bth[10] << 8 | bth[11];
	memcpy(r.local_gid, outbound ? flow->src : flow->dst, sizeof(r.local_gid));
	memcpy(r.remote_gid, outbound ? flow->dst : flow->src, sizeof(r.remote_gid));
	f->trace->record(f->trace, &r);
}

static void tell_frame(struct fault *f, enum roci_record_fault what, const struct roci_frame *frame)
{
	struct roci_flow flow;

	roci_av_flow(frame->av, &flow);
	tell(f, what, true, &flow, frame->header, frame->len);
}

static void tell_datagram(struct fault *f, enum roci_record_fault what, const struct roci_datagram *d)
{
	tell(f, what, false, &d->from->flow, d->bytes, d->len);
}

/* Damages the ICRC, because the payload is the program's memory. Damage that makes the ICRC right for another IPv4
 * identification (one in 65,536) is avoided: the receiver would accept the packet. */
static void damage_frame(struct fault *f, struct roci_frame *frame)
{
	do
		frame->icrc_damage = 1u << (roci_fault_draw(&f->state) & 31);
	while (roci_icrc_ipv4_id(frame->icrc_damage, frame->len) >= 0);
}

static void fault_send(struct roci_link *link, struct roci_frame *frames, unsigned count)
{
	struct fault *f = (struct fault *)link;
	struct roci_device_stats *s = f->stats;
	unsigned n = 0, twice = 0;

	for (unsigned i = 0; i < count; i++) {
		if (hit(f, f->loss, &s->fault_send_lost)) {
			tell_frame(f, ROCI_RECORD_LOST, &frames[i]);
			continue;
		}
		f->frames[n++] = frames[i];
		if (n > 1 && hit(f, f->reorder, &s->fault_send_reordered)) {
			struct roci_frame earlier = f->frames[n - 2];

			f->frames[n - 2] = f->frames[n - 1];
			f->frames[n - 1] = earlier;
			tell_frame(f, ROCI_RECORD_REORDERED, &f->frames[n - 2]);
		}
		if (hit(f, f->dup, &s->fault_send_duplicated)) {
			f->again[twice++] = frames[i];
			tell_frame(f, ROCI_RECORD_REPEATED, &frames[i]);
		}
	}
	for (unsigned i = 0; i < n; i++) {
		if (!hit(f, f->corrupt, &s->fault_send_corrupted))
			continue;
		damage_frame(f, &f->frames[i]);
		tell_frame(f, ROCI_RECORD_CORRUPTED, &f->frames[i]);
	}
	roci_link_send(f->inner, f->frames, n);
	roci_link_send(f->inner, f->again, twice);
}

/* Flips a bit anywhere. Where the ICRC would not show that, it is undone. */
static void damage_datagram(struct fault *f, struct roci_datagram *d)
{
	uint64_t r = roci_fault_draw(&f->state);
	uint8_t *byte = d->bytes + r % d->len, flip = (uint8_t)(1u << (r >> 32 & 7));

	*byte ^= flip;
	if (d->len >= ROCI_MIN_PACKET_BYTES && roci_icrc_check(&d->from->flow, d->bytes, d->len) >= 0) {
		*byte ^= flip;
		f->stats->fault_receive_corrupted--;
	}
}

static unsigned fault_recv(struct roci_link *link, struct roci_datagram *out)
{
	struct fault *f = (struct fault *)link;
	struct roci_device_stats *s = f->stats;
	unsigned count = roci_link_recv(f->inner, f->datagrams), n = 0;

	for (unsigned i = 0; i < count && n < ROCI_LINK_RECV_BATCH; i++) {
		if (hit(f, f->loss, &s->fault_receive_lost)) {
			tell_datagram(f, ROCI_RECORD_LOST, &f->datagrams[i]);
			continue;
		}
		if (f->datagrams[i].len && hit(f, f->corrupt, &s->fault_receive_corrupted)) {
			tell_datagram(f, ROCI_RECORD_CORRUPTED, &f->datagrams[i]);
			damage_datagram(f, &f->datagrams[i]);
		}
		out[n++] = f->datagrams[i];
		if (n > 1 && hit(f, f->reorder, &s->fault_receive_reordered)) {
			struct roci_datagram earlier = out[n - 2];

			out[n - 2] = out[n - 1];
			out[n - 1] = earlier;
			tell_datagram(f, ROCI_RECORD_REORDERED, &out[n - 2]);
		}
		if (n < ROCI_LINK_RECV_BATCH && hit(f, f->dup, &s->fault_receive_duplicated)) {
			out[n++] = f->datagrams[i];
			tell_datagram(f, ROCI_RECORD_REPEATED, &f->datagrams[i]);
		}
	}
	return n;
}

static void fault_close(struct roci_link *link)
{
	struct fault *f = (struct fault *)link;

	roci_link_close(f->inner);
	free(f);
}

int roci_fault_open(struct roci_link *inner, const struct roci_fault_plan *plan, struct roci_device_stats *stats,
		    struct roci_trace *trace, struct roci_link **out)
{
	static const struct roci_link_ops ops = {
		.send = fault_send,
		.recv = fault_recv,
		.close = fault_close,
	};
	struct fault *f = calloc(1, sizeof(*f));

	if (!f)
		return -ENOMEM;
	f->link.ops = &ops;
	f->inner = inner;
	f->stats = stats;
	f->trace = trace;
	f->state = plan->seed;
	f->loss = (uint64_t)(plan->loss * 0x1p32);
	f->dup = (uint64_t)(plan->dup * 0x1p32);
	f->reorder = (uint64_t)(plan->reorder * 0x1p32);
	f->corrupt = (uint64_t)(plan->corrupt * 0x1p32);
	*out = &f->link;
	return 0;
}
