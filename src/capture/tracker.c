/* SPDX-License-Identifier: BSD-2-Clause */
#include "capture/tracker.h"

#include <stdlib.h>
#include <string.h>

#include "capture/message.h"
#include "capture/tracker_internal.h"
#include "wire/bytes.h"
#include "wire/rnr_timer.h"

#define BIT(hdr) (1u << ROCI_HDR_##hdr)

struct capture_tracker *capture_tracker_create(void)
{
	struct capture_tracker *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->talks = capture_talks_create();
	if (t->talks)
		return t;
	free(t);
	return NULL;
}

void capture_tracker_destroy(struct capture_tracker *t)
{
	if (t)
		capture_talks_destroy(t->talks);
	free(t);
}

const struct capture_totals *capture_tracker_totals(const struct capture_tracker *t)
{
	return &t->totals;
}

void capture_tracker_on_given_up(struct capture_tracker *t, capture_conversation_fn *fn, void *context)
{
	t->given_up = fn;
	t->given_up_context = context;
}

void capture_tracker_each(const struct capture_tracker *t, capture_conversation_fn *fn, void *context)
{
	capture_talks_each(t->talks, fn, context);
}

/* ---- the view of a packet ---- */

/* A packet in one of its views, with what the tracker keeps of its sender and of the other end. */
struct sight {
	struct capture_event *e;
	struct capture_talk *talk;
	struct capture_half *from, *to;
	struct capture_end *counts;
	enum capture_view view;
	uint64_t now_ns;
	uint32_t icrc;
	bool seen; /* this PSN was seen before in this view */
};

static struct capture_sent *sent_of(struct capture_half *half, uint32_t psn)
{
	return &half->sent[psn % CAPTURE_SENT_RING];
}

static bool was_sent(const struct capture_sent *sent, uint32_t psn)
{
	return sent->used && sent->psn == psn;
}

/* Remembers a packet that leaves, or finds when one that arrives has left. Returns whether that was sent again. */
static bool match_twin(struct sight *s)
{
	const struct roci_packet *pkt = &s->e->packet;
	struct capture_twin *twin = &s->from->twins[(pkt->psn * 2 + pkt->op->response) % CAPTURE_TWIN_RING];

	if (s->view == CAPTURE_LEAVING) {
		*twin = (struct capture_twin){.number = s->e->record->number,
					      .time_ns = s->now_ns,
					      .icrc = s->icrc,
					      .psn = pkt->psn,
					      .again = s->e->flags & CAPTURE_SENT_AGAIN};
		return false;
	}
	if (!twin->number || twin->icrc != s->icrc || twin->psn != pkt->psn)
		return false;
	s->e->sent_number = twin->number;
	s->e->sent_ns = twin->time_ns;
	return twin->again;
}

/* ---- requests ---- */

/* Whether a NAK asked for it. */
static bool asked_again(const struct sight *s)
{
	const struct capture_nak *nak = &s->from->nak;

	return nak->any && capture_psn_diff(s->e->packet.psn, nak->psn) >= 0 && nak->time_ns <= s->now_ns;
}

/* Why it is sent again. */
static void give_reason(struct sight *s, const struct capture_sent *before)
{
	const struct capture_nak *nak = &s->from->nak;
	bool known = was_sent(before, s->e->packet.psn);

	if (nak->psn == s->e->packet.psn)
		s->from->nak.followed = true;
	if (asked_again(s) && (!known || nak->time_ns >= before->time_ns)) {
		s->e->flags |= nak->rnr ? CAPTURE_AFTER_RNR : CAPTURE_AFTER_NAK;
		s->e->waited_ns = s->now_ns - nak->time_ns;
		s->e->rnr_ns = nak->rnr_ns;
	} else if (known && s->now_ns > before->time_ns) {
		s->e->flags |= CAPTURE_AFTER_SILENCE;
		s->e->waited_ns = s->now_ns - before->time_ns;
	}
}

static void judge_place(struct sight *s, enum capture_place place, uint32_t missing)
{
	struct capture_event *e = s->e;

	s->seen = place == CAPTURE_SEEN;
	if (place == CAPTURE_AHEAD) {
		e->flags |= CAPTURE_OUT_OF_ORDER;
		e->missing = missing;
		e->expected_psn = (e->packet.psn - missing) & ROCI_PSN_MASK;
	} else if (place == CAPTURE_SEEN) {
		e->flags |= s->view == CAPTURE_ARRIVING ? CAPTURE_DUPLICATE : CAPTURE_SENT_AGAIN;
	} else if (place == CAPTURE_BEHIND) {
		e->flags |= asked_again(s) ? CAPTURE_SENT_AGAIN : CAPTURE_LATE;
	}
}

/* Bytes of payload that a packet of a message has; 0: not known. A message that went by the local path of roci0 is one
 * packet. */
static uint32_t mtu_of(const struct sight *s)
{
	return s->e->record->made_up ? UINT32_MAX : s->talk->mtu;
}

/* How many PSNs a request takes: a READ as many as its response has packets. */
static uint32_t psns_of(const struct sight *s, uint32_t *slack)
{
	const struct roci_packet *pkt = &s->e->packet;
	uint32_t packets;

	*slack = 0;
	if (pkt->op->kind != ROCI_KIND_READ_REQUEST)
		return 1;
	packets = capture_message_packets(pkt->dma_len, mtu_of(s));
	if (packets)
		return packets;
	*slack = capture_message_packets(pkt->dma_len, 256) - 1;
	return 1;
}

static void remember_sent(struct sight *s)
{
	struct capture_sent *sent = sent_of(s->from, s->e->packet.psn);
	bool before = was_sent(sent, s->e->packet.psn);

	if (s->view == CAPTURE_ARRIVING)
		return;
	*sent = (struct capture_sent){.time_ns = s->now_ns,
				      .psn = s->e->packet.psn,
				      .used = true,
				      .again = before || s->e->flags & (CAPTURE_SENT_AGAIN | CAPTURE_PROBE)};
}

#define OLD (CAPTURE_SENT_AGAIN | CAPTURE_DUPLICATE | CAPTURE_LATE)

static void take_request(struct sight *s, uint64_t *next_message)
{
	struct roci_packet *pkt = &s->e->packet;
	struct capture_psn_set *set = &s->from->requests[s->view];
	enum capture_place place;
	uint32_t missing, slack, count;
	bool ordered = s->talk->about.transport != ROCI_TRANSPORT_UD;

	if (!s->from->requests[0].begun && !s->from->requests[1].begun)
		s->from->first_psn = pkt->psn;
	if (pkt->op->first && !pkt->op->last)
		s->talk->mtu = pkt->payload_len;
	if (ordered) {
		count = psns_of(s, &slack);
		place = capture_psn_take(set, pkt->psn, count, &missing);
		judge_place(s, place, missing);
		if (slack && !(s->e->flags & OLD))
			set->slack = slack;
		if (s->e->flags & OLD && capture_message_is_probe(s->from, pkt)) {
			s->e->flags = (s->e->flags & ~OLD) | CAPTURE_PROBE;
			s->seen = true;
		} else {
			if (s->e->flags & CAPTURE_SENT_AGAIN && s->view == CAPTURE_LEAVING)
				give_reason(s, sent_of(s->from, pkt->psn));
			capture_message_request(s->from, pkt, mtu_of(s), next_message, &s->e->message);
		}
	} else {
		s->e->message = (struct capture_message){.id = ++*next_message,
							 .bytes = pkt->payload_len,
							 .packet = 1,
							 .packets = 1,
							 .kind = ROCI_KIND_SEND};
	}
	remember_sent(s);
}

/* ---- answers ---- */

static void take_round_trip(struct sight *s)
{
	const struct capture_sent *sent = sent_of(s->to, s->e->packet.psn);
	bool at_requester = s->e->record->direction != CAPTURE_OUTBOUND;

	if (!at_requester || !was_sent(sent, s->e->packet.psn) || sent->again || s->now_ns < sent->time_ns)
		return;
	s->e->round_trip_ns = s->now_ns - sent->time_ns;
	capture_percentiles_add(&s->talk->about.round_trips[s->to - s->talk->half], s->e->round_trip_ns);
}

static void take_syndrome(struct sight *s)
{
	struct capture_event *e = s->e;
	struct capture_nak *nak = &s->to->nak;
	unsigned type = e->packet.syndrome & ROCI_AETH_TYPE_MASK;

	if (type == ROCI_AETH_ACK) {
		e->acknowledged = capture_message_acknowledge(s->to, e->packet.psn, s->view);
		if (e->acknowledged || e->packet.op->kind != ROCI_KIND_ACK)
			take_round_trip(s);
		return;
	}
	e->flags |= type == ROCI_AETH_RNR_NAK ? CAPTURE_RNR : CAPTURE_NAK;
	if (type != ROCI_AETH_RNR_NAK && (e->packet.syndrome & ROCI_AETH_VALUE_MASK) != ROCI_NAK_PSN_SEQUENCE)
		return; /* it refuses the request, and asks for nothing */
	/* Soft-RoCE's RNR NAK is followed by a NAK for the packets behind. It is the first that counts. */
	if (type != ROCI_AETH_RNR_NAK && nak->any && nak->rnr && !nak->followed && nak->psn == e->packet.psn)
		return;
	*nak = (struct capture_nak){
		.any = true, .rnr = type == ROCI_AETH_RNR_NAK, .psn = e->packet.psn, .time_ns = s->now_ns};
	if (nak->rnr)
		nak->rnr_ns = e->rnr_ns = roci_rnr_timer_ns(e->packet.syndrome);
}

/* Only the packets of one response follow each other: between two of them other requests may have taken PSNs. */
static void judge_response(struct sight *s)
{
	const struct roci_packet *pkt = &s->e->packet;
	struct capture_psn_set *set = &s->from->responses[s->view];
	uint32_t missing;
	enum capture_place place;

	if (pkt->op->first && set->begun && capture_psn_diff(pkt->psn, set->next) > 0)
		set->slack = (uint32_t)capture_psn_diff(pkt->psn, set->next);
	place = capture_psn_take(set, pkt->psn, 1, &missing);
	judge_place(s, place, missing);
	if (pkt->op->first && !pkt->op->last)
		s->talk->mtu = pkt->payload_len;
}

/* How many PSNs a READ takes is known with the first packet of its response, where no other packet told the MTU. */
static void take_read_length(struct capture_half *requester, const struct capture_tracked *m)
{
	uint32_t missing;

	for (unsigned view = 0; view < CAPTURE_VIEWS; view++) {
		struct capture_psn_set *set = &requester->requests[view];

		if (set->slack && m->packets > 1 && set->next == ((m->first + 1) & ROCI_PSN_MASK))
			capture_psn_take(set, set->next, m->packets - 1, &missing);
	}
}

static void take_response(struct sight *s)
{
	const struct capture_tracked *m;
	const struct roci_packet *pkt = &s->e->packet;

	if (pkt->op->kind == ROCI_KIND_READ_RESPONSE || pkt->op->kind == ROCI_KIND_ATOMIC_ACK)
		judge_response(s);
	m = capture_message_response(s->to, pkt, mtu_of(s), &s->e->message);
	if (m)
		take_read_length(s->to, m);
	if (pkt->op->headers & BIT(AETH))
		take_syndrome(s);
}

/* ---- counts ---- */

static void count(struct sight *s)
{
	const struct roci_packet *pkt = &s->e->packet;
	struct capture_end *c = s->counts;
	unsigned flags = s->e->flags;
	bool fresh = !s->seen && !(flags & CAPTURE_BAD_ICRC);

	c->packets++;
	if (fresh)
		c->bytes += roci_kind_is_notice(pkt->op->kind) ? 0 : pkt->payload_len;
	if (fresh && !pkt->op->response && pkt->op->last && !roci_kind_is_notice(pkt->op->kind))
		c->messages++;
	c->sent_again += flags & CAPTURE_SENT_AGAIN ? 1 : 0;
	c->duplicates += flags & CAPTURE_DUPLICATE ? 1 : 0;
	c->out_of_order += flags & CAPTURE_OUT_OF_ORDER ? 1 : 0;
	c->late += flags & CAPTURE_LATE ? 1 : 0;
	c->naks += flags & CAPTURE_NAK ? 1 : 0;
	c->rnrs += flags & CAPTURE_RNR ? 1 : 0;
	c->bad_icrcs += flags & CAPTURE_BAD_ICRC ? 1 : 0;
	c->acks += pkt->op->kind == ROCI_KIND_ACK && !(flags & (CAPTURE_NAK | CAPTURE_RNR)) ? 1 : 0;
	c->cnps += pkt->op->kind == ROCI_KIND_CNP ? 1 : 0;
}

/* ---- a packet ---- */

static struct capture_talk *find_talk(struct capture_tracker *t, struct capture_event *e, const struct capture_key *key)
{
	struct capture_talk *talk;

	if (e->packet.op->response)
		talk = capture_talk_pair(t->talks, key, e->packet.psn, &e->end, &e->merged);
	else
		talk = capture_talk_find(t->talks, key, &e->end);
	if (talk || roci_kind_is_notice(e->packet.op->kind))
		return talk;
	e->end = 0;
	return capture_talk_add(t->talks, key, e->record->time_ns, t->given_up, t->given_up_context);
}

static void take_packet(struct capture_tracker *t, struct capture_event *e)
{
	const struct capture_key key = {
		.src = e->frame->flow.src,
		.dst = e->frame->flow.dst,
		.dest_qpn = e->packet.dest_qpn,
		.src_qpn = e->packet.src_qpn,
		.transport = e->packet.opcode & ROCI_TRANSPORT_MASK,
	};
	struct capture_talk *talk = find_talk(t, e, &key);
	struct sight s = {.e = e, .talk = talk, .now_ns = e->record->time_ns};
	bool again;

	if (!talk)
		return;
	capture_talk_settle(t->talks, talk, &e->end);
	s.view = e->record->direction == CAPTURE_INBOUND ? CAPTURE_ARRIVING : CAPTURE_LEAVING;
	s.from = &talk->half[e->end];
	s.to = &talk->half[!e->end];
	s.counts = &s.from->counts[s.view];
	if (e->frame->len == e->frame->original_len)
		s.icrc = roci_get_be32(e->frame->bytes + e->frame->len - ROCI_ICRC_BYTES);
	s.from->seen[s.view] = true;
	capture_talk_touch(t->talks, talk, s.now_ns);
	e->conversation = talk->about.number;
	e->src_qpn_known = talk->about.ends[e->end].qpn_known;
	e->src_qpn = talk->about.ends[e->end].qpn;
	if (e->icrc == CAPTURE_ICRC_WRONG) { /* its receiver ignores it */
		e->flags |= CAPTURE_BAD_ICRC;
	} else if (e->packet.op->response) {
		take_response(&s);
	} else if (!roci_kind_is_notice(e->packet.op->kind)) {
		take_request(&s, &t->messages);
	}
	again = match_twin(&s);
	if (again && e->flags & CAPTURE_LATE)
		e->flags ^= CAPTURE_LATE | CAPTURE_SENT_AGAIN;
	count(&s);
}

/* ---- records ---- */

/* enum ibv_qp_type and ibv_qp_state, which the wire does not have */
#define QPT_RC  2
#define QPT_UC  3
#define QPS_RTR 2
#define QPS_RTS 3

/* Whether a QP is connected when such a record is made. */
static bool is_connected(const struct roci_record *r)
{
	if ((r->qp_type != QPT_RC && r->qp_type != QPT_UC) || !r->peer)
		return false;
	switch (r->kind) {
	case ROCI_RECORD_QP_STATE: return r->status == QPS_RTR || r->status == QPS_RTS;
	case ROCI_RECORD_POST_SEND:
	case ROCI_RECORD_SEND_TAKEN:
	case ROCI_RECORD_EXECUTED: return true;
	case ROCI_RECORD_COMPLETION: return !r->status;
	default: return false;
	}
}

void capture_tracker_record(struct capture_tracker *t, const struct roci_record *r)
{
	const struct capture_key key = {
		.src = r->local_gid,
		.dst = r->remote_gid,
		.dest_qpn = r->peer,
		.src_qpn = r->qpn,
		.transport = r->qp_type == QPT_RC ? ROCI_TRANSPORT_RC : ROCI_TRANSPORT_UC,
	};
	uint32_t mtu = r->kind == ROCI_RECORD_QP_STATE ? (uint32_t)r->length : 0;

	if (is_connected(r))
		capture_talk_connect(t->talks, &key, r->qpn, mtu, true, r->time_ns, t->given_up, t->given_up_context);
}

/* ---- what a frame carries ---- */

static bool parse_roce(struct capture_event *e)
{
	const struct capture_frame *f = e->frame;
	const struct roci_opcode_info *info = f->len >= ROCI_BTH_BYTES ? roci_opcode_info(f->bytes[0]) : NULL;

	if (f->len < f->original_len)
		e->flags |= CAPTURE_CUT;
	/* The parser reads the headers, and of the rest only the length. */
	if (f->len < f->original_len && (f->len < ROCI_BTH_BYTES || (info && f->len < info->header_bytes)))
		e->parse = ROCI_PARSE_TOO_SHORT;
	else
		e->parse = roci_packet_parse(&e->packet, f->bytes, f->original_len);
	e->sort = e->parse == ROCI_PARSE_OK ? CAPTURE_SORT_ROCE : CAPTURE_SORT_NOT_UNDERSTOOD;
	return e->parse == ROCI_PARSE_OK;
}

static void take_roce(struct capture_tracker *t, struct capture_event *e)
{
	t->totals.roce++;
	if (!parse_roce(e)) {
		t->totals.not_understood++;
		e->flags |= CAPTURE_MALFORMED;
		e->icrc = capture_frame_icrc(e->frame);
		return;
	}
	e->icrc = capture_rewritten_icrc(&t->rewritten, e->frame, &e->packet);
	if (e->packet.op->kind == ROCI_KIND_CNP || e->packet.fecn || e->packet.becn)
		e->flags |= CAPTURE_CONGESTED;
	take_packet(t, e);
	if (e->packet.op->headers & BIT(DETH)) {
		e->src_qpn_known = true;
		e->src_qpn = e->packet.src_qpn;
	}
	if (e->packet.dest_qpn == 1 && e->icrc != CAPTURE_ICRC_WRONG && capture_take_cm(t, e)) {
		e->sort = CAPTURE_SORT_CM;
		t->totals.cm++;
	}
}

static void begin(struct capture_event *e, const struct capture_record *record, const struct capture_frame *frame)
{
	memset(e, 0, sizeof(*e));
	e->record = record;
	e->frame = frame;
}

bool capture_tracker_more(struct capture_tracker *t, struct capture_frame *frame, struct capture_event *e)
{
	if (!capture_frame_next(frame))
		return false;
	begin(e, e->record, frame);
	take_roce(t, e);
	return true;
}

void capture_tracker_take(struct capture_tracker *t, const struct capture_record *record, struct capture_frame *frame,
			  struct capture_event *e)
{
	static const enum capture_sort sorts[] = {
		[CAPTURE_OTHER] = CAPTURE_SORT_OTHER,
		[CAPTURE_TCP] = CAPTURE_SORT_OTHER,
		[CAPTURE_FRAGMENT] = CAPTURE_SORT_FRAGMENT,
		[CAPTURE_ICMP] = CAPTURE_SORT_ICMP,
	};

	capture_frame_parse(record, frame);
	capture_frame_divide(frame);
	t->totals.packets++;
	begin(e, record, frame);
	if (frame->protocol == CAPTURE_ROCE_V1 || frame->protocol == CAPTURE_ROCE_V2) {
		take_roce(t, e);
		capture_talks_totals(t->talks, &t->totals);
		return;
	}
	e->sort = sorts[frame->protocol];
	if (frame->protocol == CAPTURE_TCP && capture_is_iwarp(&t->iwarp, frame))
		e->sort = CAPTURE_SORT_IWARP;
	if (frame->protocol == CAPTURE_ICMP && !capture_icmp_is_about_roce(frame))
		e->sort = CAPTURE_SORT_OTHER;
	if (e->sort == CAPTURE_SORT_IWARP)
		t->totals.iwarp++;
	else
		t->totals.other++;
}
