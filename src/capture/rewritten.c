/* SPDX-License-Identifier: BSD-2-Clause */
#include "capture/rewritten.h"

#include <string.h>

#include "cm/msg.h"
#include "wire/gid.h"
#include "wire/mtu_probe.h"

/* The addresses that the packet names: of its sender, and of where it goes. */
static bool names(const struct roci_packet *pkt, struct roci_hello *hello)
{
	struct roci_cm_msg msg;

	if (pkt->op->kind == ROCI_KIND_HELLO)
		return roci_hello_parse(pkt->payload, pkt->payload_len, hello);
	if (pkt->op->kind == ROCI_KIND_MTU_PROBE)
		return roci_mtu_probe_parse(pkt->payload, pkt->payload_len, hello);
	if (pkt->dest_qpn != 1 || pkt->payload_len != ROCI_CM_MAD_BYTES ||
	    roci_cm_msg_parse(&msg, pkt->payload) != ROCI_CM_PARSE_OK || msg.attribute != ROCI_CM_ATTR_REQ)
		return false;
	memcpy(hello->src, msg.primary.local_gid, 16);
	memcpy(hello->dst, msg.primary.remote_gid, 16);
	return true;
}

static void learn(struct capture_rewritten *r, const struct roci_flow *seen, const struct roci_flow *meant)
{
	unsigned i = r->next;

	r->flows[i].seen = *seen;
	r->flows[i].meant = *meant;
	r->next = (i + 1) % CAPTURE_REWRITTEN_MAX;
	if (r->count < CAPTURE_REWRITTEN_MAX)
		r->count++;
}

/* Whatever the IPv4 identification is: the capture of a receiver, which does not see it, may have another one. */
static bool fits(const struct capture_frame *f, const struct roci_flow *meant)
{
	return roci_icrc_check(meant, f->bytes, f->len) >= 0;
}

static bool is_between(const struct roci_flow *flow, const uint8_t src[16], const uint8_t dst[16])
{
	return !memcmp(flow->src, src, 16) && !memcmp(flow->dst, dst, 16);
}

/* Several hosts may be behind one NAT. */
static bool is_known(const struct capture_rewritten *r, const struct capture_frame *f)
{
	for (unsigned i = 0; i < r->count; i++) {
		const struct roci_flow *seen = &r->flows[i].seen, *meant = &r->flows[i].meant;
		struct roci_flow back;

		if (is_between(&f->flow, seen->src, seen->dst) && fits(f, meant))
			return true;
		roci_nat_flow(&back, meant->dst, meant->src);
		if (is_between(&f->flow, seen->dst, seen->src) && fits(f, &back))
			return true;
	}
	return false;
}

enum capture_icrc capture_rewritten_icrc(struct capture_rewritten *r, const struct capture_frame *frame,
					 const struct roci_packet *pkt)
{
	enum capture_icrc icrc = capture_frame_icrc(frame);
	struct roci_flow meant;
	struct roci_hello hello;

	if (icrc != CAPTURE_ICRC_WRONG || frame->protocol != CAPTURE_ROCE_V2)
		return icrc;
	if (is_known(r, frame))
		return CAPTURE_ICRC_BEHIND_NAT;
	if (!names(pkt, &hello) || roci_gid_is_ipv4(hello.src) != (frame->version == 4) ||
	    roci_gid_is_ipv4(hello.dst) != (frame->version == 4))
		return icrc;
	roci_nat_flow(&meant, hello.src, hello.dst);
	if (!fits(frame, &meant))
		return icrc;
	learn(r, &frame->flow, &meant);
	return CAPTURE_ICRC_BEHIND_NAT;
}
