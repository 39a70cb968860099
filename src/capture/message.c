/* SPDX-License-Identifier: BSD-2-Clause */
#include "capture/message.h"

uint32_t capture_message_packets(uint64_t bytes, uint32_t mtu)
{
	if (!bytes)
		return 1;
	return mtu ? (uint32_t)((bytes + mtu - 1) / mtu) : 0;
}

/* The newest message that begins at `psn` or before it, and reaches so far. */
static struct capture_tracked *find(struct capture_half *half, uint32_t psn)
{
	struct capture_tracked *found = NULL;

	for (unsigned i = 0; i < CAPTURE_MESSAGE_RING; i++) {
		struct capture_tracked *m = &half->messages[i];
		int32_t at = capture_psn_diff(psn, m->first);

		if (!m->id || at < 0 || (m->packets && (uint32_t)at >= m->packets))
			continue;
		if (!found || capture_psn_diff(m->first, found->first) > 0)
			found = m;
	}
	return found;
}

static struct capture_tracked *begin(struct capture_half *half, const struct roci_packet *pkt, uint64_t *next_id)
{
	struct capture_tracked *m = &half->messages[half->message_count++ % CAPTURE_MESSAGE_RING];

	*m = (struct capture_tracked){.id = ++*next_id, .first = pkt->psn, .kind = pkt->op->kind};
	return m;
}

static void describe(const struct capture_tracked *m, const struct roci_packet *pkt, struct capture_message *out)
{
	uint32_t packet = (uint32_t)capture_psn_diff(pkt->psn, m->first) + 1;

	*out = (struct capture_message){
		.id = m->id,
		.bytes = m->bytes,
		.packet = packet,
		.packets = packet <= m->packets ? m->packets : 0,
		.kind = m->kind,
	};
}

/* What the packet tells of its message. */
static void learn(struct capture_tracked *m, const struct roci_packet *pkt, uint32_t mtu)
{
	uint32_t before = (uint32_t)capture_psn_diff(pkt->psn, m->first);

	if (pkt->op->first && !pkt->op->last)
		m->mtu = pkt->payload_len;
	switch (pkt->op->kind) {
	case ROCI_KIND_SEND:
	case ROCI_KIND_WRITE:
		if (pkt->op->headers & 1u << ROCI_HDR_RETH && m->first == pkt->psn) {
			m->bytes = pkt->dma_len;
			m->packets = capture_message_packets(m->bytes, m->mtu);
		}
		if (!pkt->op->last)
			break;
		m->packets = before + 1;
		m->bytes = (uint64_t)before * m->mtu + pkt->payload_len;
		break;
	case ROCI_KIND_READ_REQUEST:
		if (m->first != pkt->psn) /* the rest of it is asked for again */
			break;
		m->bytes = pkt->dma_len;
		m->packets = capture_message_packets(m->bytes, mtu);
		break;
	case ROCI_KIND_FLUSH:
		m->bytes = pkt->dma_len;
		m->packets = 1;
		break;
	default: m->bytes = 8; m->packets = 1;
	}
}

bool capture_message_is_probe(struct capture_half *half, const struct roci_packet *pkt)
{
	const struct capture_tracked *m = find(half, pkt->psn);

	if (pkt->opcode != ROCI_OP_WRITE_ONLY || pkt->dma_len || pkt->va || pkt->rkey)
		return false;
	return !m || m->kind != ROCI_KIND_WRITE || m->first != pkt->psn || m->packets != 1 || m->bytes;
}

struct capture_tracked *capture_message_request(struct capture_half *half, const struct roci_packet *pkt, uint32_t mtu,
						uint64_t *next_id, struct capture_message *out)
{
	struct capture_tracked *m = find(half, pkt->psn);
	bool same = m && m->kind == pkt->op->kind && (m->first == pkt->psn || pkt->op->kind == ROCI_KIND_READ_REQUEST);

	if (pkt->op->first && !(same && (m->packets || m->first == pkt->psn)))
		m = begin(half, pkt, next_id);
	if (!m || m->kind != pkt->op->kind)
		return NULL;
	learn(m, pkt, mtu);
	describe(m, pkt, out);
	return m;
}

struct capture_tracked *capture_message_response(struct capture_half *half, const struct roci_packet *pkt, uint32_t mtu,
						 struct capture_message *out)
{
	struct capture_tracked *m = find(half, pkt->psn);

	if (!m)
		return NULL;
	if (m->kind == ROCI_KIND_READ_REQUEST && pkt->op->kind == ROCI_KIND_READ_RESPONSE && !m->packets)
		m->packets =
			capture_message_packets(m->bytes, pkt->op->last && pkt->op->first ? pkt->payload_len : mtu);
	describe(m, pkt, out);
	return m;
}

uint32_t capture_message_acknowledge(struct capture_half *half, uint32_t psn, enum capture_view view)
{
	uint32_t count = 0;

	for (unsigned i = 0; i < CAPTURE_MESSAGE_RING; i++) {
		struct capture_tracked *m = &half->messages[i];

		if (!m->id || !m->packets || m->acknowledged[view] ||
		    capture_psn_diff(psn, m->first + m->packets - 1) < 0)
			continue;
		m->acknowledged[view] = true;
		count++;
	}
	return count;
}
