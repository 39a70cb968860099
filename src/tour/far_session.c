/* SPDX-License-Identifier: BSD-2-Clause */
#include "tour/far_session.h"

#include <netinet/in.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "tour/clock.h"
#include "tour/content.h"
#include "tour/record.h"

#define IDLE_NS UINT64_C(60000000000) /* a near end lets hear of itself six times as often */

/* Gives the near end more time: it was heard. */
static void alive(struct session *s)
{
	s->deadline_ns = tour_now_ns() + IDLE_NS;
}

/* ---- opening ---- */

void far_session_refusal(enum hello_status status, uint32_t caps, const char *device, struct hello_offer *offer)
{
	*offer = (struct hello_offer){.status = status, .caps = caps, .size_max = TOUR_MAX_BYTES};
	snprintf(offer->device, sizeof(offer->device), "%s", device ? device : "none");
}

static uint32_t random32(void)
{
	uint32_t value = 0;

	while (getrandom(&value, sizeof(value), 0) != (ssize_t)sizeof(value))
		;
	return value;
}

static bool is_send(enum tour_op op)
{
	return op == TOUR_SEND || op == TOUR_SEND_IMM || op == TOUR_SEND_INV;
}

static int make_memory(struct session *s)
{
	const struct hello_request *r = &s->request;
	unsigned rights = endpoint_rights(r->op, r->qp, r->verify);
	/* SENDs bring their own place: the receives. Only a memory window needs something to be bound to. */
	uint32_t size = is_send(r->op) ? 0 : r->size;
	int err = region_create(&s->window, s->endpoint.pd, size, rights, &s->failure);

	if (!err)
		err = region_create(&s->answers, s->endpoint.pd, ENDPOINT_SLOTS * ENDPOINT_SLOT_BYTES,
				    IBV_ACCESS_LOCAL_WRITE, &s->failure);
	if (!err && r->op == TOUR_READ)
		content_fill(s->window.bytes, r->size, r->seed, 0);
	if (err || r->op != TOUR_SEND_INV)
		return err;
	s->mw = ibv_alloc_mw(s->endpoint.pd, IBV_MW_TYPE_2);
	return s->mw ? 0 : fail_call(&s->failure, "ibv_alloc_mw", errno);
}

/* Bare verbs: takes the QP through its states towards the near end's. */
static int connect_bare(struct session *s, struct hello_offer *offer)
{
	struct endpoint_peer peer = {
		.lid = s->request.lid,
		.qpn = s->request.qpn,
		.psn = s->request.psn,
		.mtu = s->request.mtu && s->request.mtu < s->port.mtu ? (enum ibv_mtu)s->request.mtu : s->port.mtu,
	};
	struct tour_network network;

	memcpy(peer.gid.raw, s->request.gid, sizeof(peer.gid.raw));
	peer.qkey = offer->qkey = s->endpoint.own_qkey = random32() & 0x7fffffff; /* without the bit of IBTA 10.2.5 */
	offer->lid = s->port.lid;
	offer->psn = random32() & 0xffffff;
	offer->mtu = (uint8_t)s->port.mtu;
	memcpy(offer->gid, s->port.gid.raw, sizeof(offer->gid));
	offer->gid_type = (uint8_t)s->port.gid_type;
	network = device_network(&s->port.gid);
	offer->prefix = network.prefix;
	offer->network_mtu = network.mtu;
	return endpoint_connect(&s->endpoint, &s->port, &peer, offer->psn, &s->failure);
}

static int create(struct session *s, struct ibv_context *verbs, struct hello_offer *offer)
{
	struct endpoint_wish wish = {.op = s->request.op, .type = s->request.qp};
	int err;

	if (is_send(s->request.op))
		wish.slot_bytes = s->request.size;
	err = endpoint_create(&s->endpoint, verbs, s->id, &wish, &s->failure);
	if (!err)
		err = make_memory(s);
	if (!err)
		err = s->id ? endpoint_post_slots(&s->endpoint, &s->failure) : connect_bare(s, offer);
	return err;
}

/* What a datagram may carry: one packet. */
static uint32_t datagram_max(const struct session *s, struct ibv_context *verbs)
{
	struct ibv_port_attr attr;
	uint8_t num = s->id ? s->id->port_num : s->port.num;

	return ibv_query_port(verbs, num, &attr) ? 256 : device_mtu_bytes(attr.active_mtu);
}

void far_session_open(struct session *s, struct ibv_context *verbs, uint32_t caps, bool embedded,
		      struct hello_offer *offer)
{
	const struct hello_request *r = &s->request;
	const char *device = ibv_get_device_name(verbs->device);

	far_session_refusal(HELLO_OK, caps, device, offer);
	if (r->qp == TOUR_UD)
		offer->size_max = datagram_max(s, verbs);
	if (tour_refuse(r->op, r->qp, s->way, r->caps, caps).reason)
		offer->status = HELLO_REFUSED;
	else if (r->size > offer->size_max)
		offer->status = HELLO_TOO_LONG;
	else if (create(s, verbs, offer))
		offer->status = HELLO_FAILED;
	if (offer->status)
		return;
	offer->host = device_host();
	offer->embedded = embedded;
	offer->addr = (uintptr_t)s->window.bytes;
	offer->rkey = s->window.mr->rkey;
	offer->qpn = s->endpoint.qp->qp_num;
	s->times[FAR_REGISTERED] = s->window.registered_ns;
	s->mark = record_mark();
	alive(s);
}

/* ---- answering ---- */

static uint32_t peer_qpn(const struct session *s)
{
	struct ibv_qp_attr attr;
	struct ibv_qp_init_attr init;

	if (s->request.qp == TOUR_UD)
		return s->endpoint.peer_qpn;
	return ibv_query_qp(s->endpoint.qp, &attr, IBV_QP_DEST_QPN, &init) ? 0 : attr.dest_qp_num;
}

/* SENDs an answer from the slot's place. Its completion gives the slot back. */
static void answer(struct session *s, unsigned slot, struct answer *a)
{
	uint8_t bytes[HELLO_ANSWER_BYTES];

	a->times[FAR_ANSWERED] = tour_wall_ns();
	hello_put_answer(bytes, a);
	if (endpoint_send(&s->endpoint, &s->answers, slot, WR_ANSWER, bytes, sizeof(bytes), &s->failure))
		s->ended = s->failure.text;
}

static void give_back(struct session *s, unsigned slot)
{
	if (!s->ended && endpoint_post_slot(&s->endpoint, slot, &s->failure))
		s->ended = s->failure.text;
}

/* Binds the memory window to the memory, with a fresh rkey for the next SEND with invalidate. */
static void prepare(struct session *s, unsigned slot, uint32_t seq)
{
	struct ibv_send_wr wr = {.wr_id = wr_id(WR_BIND, slot),
				 .opcode = IBV_WR_BIND_MW,
				 .send_flags = IBV_SEND_SIGNALED},
			   *bad;
	int err;

	s->binding = (struct answer){.to = CONTROL_PREPARE, .seq = seq};
	s->binding_slot = slot;
	if (s->is_binding || !s->mw) {
		s->ended = "it asked for a second memory window at once";
		return;
	}
	if (s->bound_rkey) { /* the last one was not invalidated: the near end gave up, or does not verify */
		s->binding.inv_rkey = s->bound_rkey;
		answer(s, slot, &s->binding);
		return;
	}
	wr.bind_mw.mw = s->mw;
	wr.bind_mw.rkey = ibv_inc_rkey(s->mw->rkey);
	wr.bind_mw.bind_info = (struct ibv_mw_bind_info){.mr = s->window.mr,
							 .addr = (uintptr_t)s->window.bytes,
							 .length = s->window.len,
							 .mw_access_flags = IBV_ACCESS_REMOTE_WRITE};
	s->binding.inv_rkey = wr.bind_mw.rkey;
	err = ibv_post_send(s->endpoint.qp, &wr, &bad);
	if (err) {
		fail_call(&s->failure, "ibv_post_send (IBV_WR_BIND_MW)", err);
		s->ended = s->failure.text;
		return;
	}
	s->is_binding = true;
}

static void bound(struct session *s)
{
	s->is_binding = false;
	s->bound_rkey = s->mw->rkey = s->binding.inv_rkey;
	answer(s, s->binding_slot, &s->binding);
}

static enum verdict judge(const struct session *s, const uint8_t *bytes, uint32_t seq, struct answer *a)
{
	if (!s->request.verify)
		return VERDICT_GOOD;
	a->wrong_at = content_check(bytes, s->request.size, s->request.seed, seq);
	return a->wrong_at == s->request.size ? VERDICT_GOOD : VERDICT_WRONG_CONTENT;
}

/* A message that is no control: the operation itself. */
static void operation(struct session *s, unsigned slot, const struct ibv_wc *wc, const uint8_t *message, uint32_t len)
{
	const struct hello_request *r = &s->request;
	struct answer a = {.seq = content_seq(message, len, (uint32_t)s->messages + 1), .len = len};
	const uint8_t *bytes = message;

	if (r->op == TOUR_WRITE_IMM) {
		bytes = s->window.bytes;
		a.len = wc->byte_len;
	}
	if (r->op == TOUR_WRITE_IMM || r->op == TOUR_SEND_IMM)
		a.seq = ntohl(wc->imm_data);
	if (a.len != r->size)
		a.verdict = VERDICT_WRONG_LENGTH;
	else
		a.verdict = judge(s, bytes, a.seq, &a);
	if ((r->op == TOUR_WRITE_IMM || r->op == TOUR_SEND_IMM) && !(wc->wc_flags & IBV_WC_WITH_IMM))
		a.verdict = VERDICT_WRONG_IMM;
	if (r->op == TOUR_SEND_INV) {
		/* Soft-RoCE does not set IBV_WC_WITH_INV, but the kernel's own flag for it, which is another bit. */
		if (wc->invalidated_rkey != s->bound_rkey)
			a.verdict = VERDICT_WRONG_INVALIDATE;
		s->bound_rkey = 0;
	}
	s->times[FAR_RECEIVE_POSTED] = s->endpoint.posted_ns[slot];
	s->times[FAR_WOKEN] = s->woken_ns;
	s->times[FAR_POLLED] = tour_wall_ns();
	s->messages++;
	answer(s, slot, &a);
}

static void tell(struct session *s, unsigned slot)
{
	struct answer a = {.to = CONTROL_TELL, .recorded = record_on()};

	memcpy(a.times, s->times, sizeof(a.times));
	if (a.recorded) {
		struct record_operation record;
		record_find(s->mark, false, s->request.op, s->endpoint.qp->qp_num, peer_qpn(s), &record);
		a.times[FAR_PACKET_IN] = record.request_ns;
		a.times[FAR_RESPONSE_OUT] = record.response_ns;
		a.times[FAR_TAKEN] = record.taken_ns;
		a.times[FAR_CQE] = record.cqe_ns;
		if (a.times[FAR_WOKEN] < record.request_ns) /* it was awake already, and polled */
			a.times[FAR_WOKEN] = 0;
		s->mark = record_mark();
	}
	answer(s, slot, &a);
}

static void control(struct session *s, unsigned slot, const struct control *c)
{
	struct answer a = {.to = c->kind, .seq = c->seq};

	switch (c->kind) {
	case CONTROL_PREPARE: prepare(s, slot, c->seq); break;
	case CONTROL_CHECK:
		if (is_send(s->request.op)) { /* there is no such memory */
			s->ended = "it asked for a check of memory that it has not";
			break;
		}
		a.len = s->request.size;
		a.verdict = judge(s, s->window.bytes, c->seq, &a);
		answer(s, slot, &a);
		break;
	case CONTROL_TELL: tell(s, slot); break;
	case CONTROL_BYE: s->ended = ""; break;
	default: give_back(s, slot);
	}
}

/* UD by rdma_cm does not tell who will send, so the first datagram does. Those of others are not answered. */
static bool from_peer(struct session *s, unsigned slot, struct ibv_wc *wc)
{
	struct endpoint *e = &s->endpoint;
	struct ibv_grh *grh = (struct ibv_grh *)(e->slots.bytes + slot * (e->slot_bytes + ENDPOINT_GRH_BYTES));

	if (e->type != TOUR_UD)
		return true;
	if (!e->ah) {
		e->ah = ibv_create_ah_from_wc(e->pd, wc, grh, s->id ? s->id->port_num : s->port.num);
		e->peer_qpn = wc->src_qp;
		e->peer_qkey = e->own_qkey;
	}
	return e->ah && wc->src_qp == e->peer_qpn;
}

static void received(struct session *s, struct ibv_wc *wc)
{
	unsigned slot = (uint32_t)wc->wr_id % s->endpoint.slot_count;
	const uint8_t *message = endpoint_message(&s->endpoint, slot);
	uint32_t len = endpoint_message_len(&s->endpoint, wc);
	struct control c;

	if (!from_peer(s, slot, wc)) {
		give_back(s, slot);
		return;
	}
	alive(s);
	if (wc->opcode == IBV_WC_RECV && hello_get_control(message, len, s->request.seed, &c))
		control(s, slot, &c);
	else
		operation(s, slot, wc, message, wc->opcode == IBV_WC_RECV ? len : 0);
}

static void completed(struct session *s, struct ibv_wc *wc)
{
	if (wc->status == IBV_WC_WR_FLUSH_ERR) { /* a consequence: of an error before, or of the near end's leaving */
		s->ended = "";
	} else if (wc->status != IBV_WC_SUCCESS) {
		fail_wc(&s->failure, wr_kind(wc->wr_id) == WR_RECEIVE ? "a receive" : "the answer", wc->status);
		s->ended = s->failure.text;
	} else if (wr_kind(wc->wr_id) == WR_RECEIVE) {
		received(s, wc);
	} else if (wr_kind(wc->wr_id) == WR_BIND) {
		bound(s);
	} else {
		give_back(s, (uint32_t)wc->wr_id % s->endpoint.slot_count);
	}
}

void far_session_completions(struct session *s)
{
	struct ibv_cq *cq;
	struct ibv_wc wc;
	void *context;

	while (!ibv_get_cq_event(s->endpoint.channel, &cq, &context)) {
		s->endpoint.cq_events++;
		s->woken_ns = tour_wall_ns();
	}
	ibv_req_notify_cq(s->endpoint.cq, 0);
	while (!s->ended && ibv_poll_cq(s->endpoint.cq, 1, &wc) > 0)
		completed(s, &wc);
}

void far_session_close(struct session *s)
{
	if (s->id && s->id->qp && s->state == SESSION_UP && s->request.qp != TOUR_UD)
		rdma_disconnect(s->id);
	if (s->mw)
		ibv_dealloc_mw(s->mw);
	region_destroy(&s->answers);
	region_destroy(&s->window);
	endpoint_destroy(&s->endpoint);
	if (s->id)
		rdma_destroy_id(s->id);
	else if (s->port.verbs)
		ibv_close_device(s->port.verbs);
	if (s->fd >= 0)
		close(s->fd);
	*s = (struct session){.fd = -1};
}
