/* SPDX-License-Identifier: BSD-2-Clause */
#include "engine/engine.h"

#include <stdlib.h>
#include <string.h>

#include "engine/cnp.h"
#include "engine/cq.h"
#include "engine/mcast.h"
#include "engine/mr.h"
#include "engine/qp.h"
#include "engine/requester.h"
#include "engine/responder.h"
#include "engine/service.h"
#include "wire/bytes.h"
#include "wire/gid.h"

#define TX_QUANTUM      32        /* packets of one QP before the next one's turn */
#define CNP_INTERVAL_NS 50000     /* between two congestion notifications of a QP */
#define ECN_MASK        3         /* of a traffic class; both bits: the packet met congestion (RFC 3168) */
#define CNP_LATEST_NS   100000000 /* a notification is about packets that were sent at most so long ago */

struct roci_engine *roci_engine_create(void)
{
	struct roci_engine *e = calloc(1, sizeof(*e));

	if (!e)
		return NULL;
	roci_list_init(&e->windows);
	roci_list_init(&e->all_qps);
	roci_list_init(&e->cqs);
	roci_list_init(&e->srqs);
	roci_list_init(&e->paths);
	roci_list_init(&e->mcast_groups);
	roci_list_init(&e->ready);
	roci_list_init(&e->sent);
	roci_list_init(&e->events);
	e->stats = &e->own_stats;
	return e;
}

void roci_engine_destroy(struct roci_engine *e)
{
	while (!roci_list_empty(&e->all_qps))
		roci_qp_destroy(roci_container_of(e->all_qps.next, struct roci_qp, all));
	while (!roci_list_empty(&e->srqs))
		roci_srq_destroy(roci_container_of(e->srqs.next, struct roci_srq, all));
	while (!roci_list_empty(&e->cqs))
		roci_cq_destroy(roci_container_of(e->cqs.next, struct roci_cq, all));
	roci_mcast_free(e);
	roci_regions_free(e);
	roci_idmap_free(&e->qps);
	roci_timers_free(&e->timers);
	roci_reorder_store_fini(&e->reorder);
	free(e);
}

const struct roci_engine_stats *roci_engine_stats(const struct roci_engine *e)
{
	return e->stats;
}

void roci_engine_count_in(struct roci_engine *e, struct roci_engine_stats *to)
{
	if (to == e->stats)
		return;
	*to = *e->stats;
	e->stats = to;
}

/* ---- receive ---- */

/* IBTA 9.6.1: the checks that each packet for a QP must pass. */
static bool accepts(struct roci_engine *e, const struct roci_qp *qp, const struct roci_rx *rx)
{
	uint8_t transport = rx->pkt.opcode & ROCI_TRANSPORT_MASK;

	if (qp->state < ROCI_QPS_RTR) {
		e->stats->rx_wrong_state++;
		return false;
	}
	if (transport != qp->service->transport && !(transport == ROCI_TRANSPORT_CNP && qp->path) &&
	    !(transport == ROCI_TRANSPORT_OWN &&
	      (qp->type == ROCI_QPT_RC || rx->pkt.op->kind == ROCI_KIND_CHALLENGE)) &&
	    !(qp->type == ROCI_QPT_UC && rx->pkt.opcode == ROCI_OP_ACKNOWLEDGE)) {
		e->stats->rx_wrong_type++;
		return false;
	}
	if (rx->local != qp->attr.av.local) {
		e->stats->rx_wrong_source++;
		return false;
	}
	if (qp->type != ROCI_QPT_UD && !rx->local &&
	    (memcmp(rx->sgid, qp->attr.av.dgid, 16) || memcmp(rx->dgid, qp->attr.av.sgid, 16))) {
		e->stats->rx_wrong_source++;
		return false;
	}
	return true;
}

/* The network or the link's socket buffer is congested: the sender gets a CNP (IBTA A17.9.3). */
static void notice_congestion(struct roci_qp *qp, const struct roci_rx *rx)
{
	uint64_t now = qp->e->now;
	bool marked = (rx->traffic_class & ECN_MASK) == ECN_MASK || rx->congested;

	if (!marked || qp->type == ROCI_QPT_UD || now - qp->resp.cnp_at < CNP_INTERVAL_NS)
		return;
	qp->resp.cnp_at = now;
	if (rx->pkt.op->kind == ROCI_KIND_READ_RESPONSE && qp->req.far_read) {
		roci_path_marked(qp->req.far_read->path, now); /* this side asks too fast */
		return;
	}
	qp->resp.cnp_due = true;
	qp->resp.cnp = rx->pkt.op->response ? (struct roci_cnp){ROCI_CNP_RESPONSE, rx->pkt.psn, qp->attr.sq_psn}
					    : (struct roci_cnp){ROCI_CNP_REQUEST, rx->pkt.psn, qp->attr.rq_psn};
	roci_qp_make_ready(qp);
}

/* Whether the CNP names the first packet of its direction, and one of the last that were sent before `end`. */
static bool is_proof(const struct roci_cnp *cnp, uint32_t first_psn, uint32_t end, uint32_t outstanding)
{
	uint32_t ago = (uint32_t)roci_psn_diff(end, cnp->psn);

	return cnp->first_psn == first_psn && ago - 1 < ROCI_CNP_WINDOW + outstanding;
}

/* Whether the peer or the network can have sent the CNP, see cnp.h. */
static bool cnp_counts(struct roci_qp *qp, const struct roci_rx *rx)
{
	struct roci_cnp cnp = roci_cnp_parse(rx->pkt.payload);
	uint32_t outstanding = qp->path->far ? roci_send_window_packets(&qp->req.window) : 0;

	/* Those of a network come from any port. */
	if (cnp.kind == ROCI_CNP_STANDARD)
		return qp->attr.av.traffic_class & ECN_MASK;
	if (!roci_peer_port_is(&qp->peer, rx->src_port))
		return false;
	return (cnp.kind == ROCI_CNP_REQUEST && is_proof(&cnp, qp->attr.sq_psn, qp->req.window.max, outstanding)) ||
	       (cnp.kind == ROCI_CNP_RESPONSE && is_proof(&cnp, qp->attr.rq_psn, qp->resp.epsn, 0));
}

/* It counts only for a QP whose own packets can have met the congestion: the window that it cuts is that of all QPs to
 * the peer. */
static void rx_cnp(struct roci_qp *qp, const struct roci_rx *rx)
{
	uint64_t now = qp->e->now;

	qp->e->stats->cnp_received++;
	if (!cnp_counts(qp, rx))
		qp->e->stats->cnp_refused++;
	else if (qp->load_at && now - qp->load_at <= CNP_LATEST_NS)
		roci_path_marked(qp->path, now);
}

/* Its secret proves where a RANGES packet comes from, whatever its PSN and port. */
static void rx_ranges(struct roci_qp *qp, const struct roci_rx *rx)
{
	uint64_t secret = rx->pkt.payload_len >= ROCI_RANGES_HEAD ? roci_ranges_secret(rx->pkt.payload) : 0;

	if (!qp->secret || secret != qp->secret) {
		qp->e->stats->rx_wrong_source++;
		return;
	}
	if (!roci_peer_port_is(&qp->peer, rx->src_port) &&
	    roci_peer_port_change(&qp->peer, qp->e->now, rx->src_port, ROCI_PROOF_PEER))
		roci_qp_address(qp);
	roci_keepalive_rx(qp);
	notice_congestion(qp, rx);
	roci_selective_rx(qp, rx);
}

/* A packet from another UDP port than the peer's. True where the peer sent it all the same. */
static bool from_other_port(struct roci_qp *qp, const struct roci_rx *rx)
{
	enum roci_proof proof = qp->service->proof(qp, &rx->pkt);

	if (roci_peer_port_change(&qp->peer, qp->e->now, rx->src_port, proof)) {
		roci_qp_address(qp);
		return true;
	}
	if (proof == ROCI_PROOF_NEEDLESS)
		qp->service->rx(qp, rx);
	else
		qp->e->stats->rx_wrong_port++;
	return false;
}

static void dispatch(struct roci_qp *qp, const struct roci_rx *rx)
{
	if (rx->pkt.op->kind == ROCI_KIND_CNP) {
		rx_cnp(qp, rx);
		return;
	}
	if (rx->pkt.op->kind == ROCI_KIND_RANGES) {
		rx_ranges(qp, rx);
		return;
	}
	if (rx->pkt.op->kind == ROCI_KIND_CHALLENGE) {
		roci_nat_rx_challenge(qp, rx);
		return;
	}
	if (rx->pkt.op->kind == ROCI_KIND_HELLO || rx->pkt.op->kind == ROCI_KIND_MTU_PROBE ||
	    rx->pkt.op->kind == ROCI_KIND_PIECE)
		return; /* roci_engine_rx_hello(); of QP 1; the driver joins pieces */
	if (rx->pkt.op->kind == ROCI_KIND_OFFER) {
		if (roci_peer_port_is(&qp->peer, rx->src_port) || !qp->peer.shown)
			roci_responder_offered(qp, rx);
		return;
	}
	if (qp->service->proof && !roci_peer_port_is(&qp->peer, rx->src_port) && !from_other_port(qp, rx))
		return;
	roci_keepalive_rx(qp);
	notice_congestion(qp, rx);
	qp->service->rx(qp, rx);
}

void roci_engine_rx(struct roci_engine *e, uint64_t now, const struct roci_rx *rx)
{
	struct roci_qp *qp;

	roci_engine_clock(e, now);
	e->stats->rx_packets++;
	if (!roci_pkey_matches(rx->pkt.pkey)) {
		e->stats->rx_bad_pkey++;
		return;
	}
	if (rx->pkt.dest_qpn == ROCI_QPN_MULTICAST) {
		roci_mcast_rx(e, rx);
		return;
	}
	qp = roci_idmap_find(&e->qps, rx->pkt.dest_qpn);
	if (!qp) {
		e->stats->rx_no_qp++;
		if ((rx->pkt.opcode & ROCI_TRANSPORT_MASK) == ROCI_TRANSPORT_UD)
			ROCI_WHY_TELL_PACED(&e->why, e->now,
					    "a datagram of QP 0x%x is dropped: there is no QP 0x%x here",
					    rx->pkt.src_qpn, rx->pkt.dest_qpn);
		return;
	}
	if (!accepts(e, qp, rx))
		return;
	dispatch(qp, rx);
}

static void fetch(const void *from, const void *end)
{
	for (const char *p = from; p < (const char *)end; p += ROCI_CACHE_LINE)
		__builtin_prefetch(p, 1);
}

/* With thousands of QPs each packet meets one that no cache has. */
void roci_engine_expect(const struct roci_engine *e, const uint8_t *bth)
{
	const struct roci_qp *qp = roci_idmap_find(&e->qps, roci_get_be24(bth + 5));

	if (!qp)
		return;
	fetch(qp, &qp->alive.timer);
	fetch(&qp->sq, &qp->req);
	fetch(&qp->req.far, &qp->req.selective.board.una);
	if (bth[0] == ROCI_OP_ACKNOWLEDGE) {
		fetch(&qp->timer, &qp->sq);
		fetch(&qp->req, &qp->req.outstanding.end);
		fetch(&qp->resp, &qp->resp.ranges);
	} else {
		fetch(&qp->resp, &qp->resp.early.ring);
	}
}

bool roci_engine_rx_hello(struct roci_engine *e, uint64_t now, const struct roci_rx *rx)
{
	struct roci_qp *qp;

	roci_engine_clock(e, now);
	e->stats->rx_packets++;
	if (!roci_pkey_matches(rx->pkt.pkey)) {
		e->stats->rx_bad_pkey++;
		return false;
	}
	qp = roci_idmap_find(&e->qps, rx->pkt.dest_qpn);
	if (qp && !rx->local)
		return roci_nat_rx_hello(qp, rx);
	e->stats->rx_no_qp++;
	return false;
}

/* ---- peers on the same host ---- */

void roci_engine_fetch_by(struct roci_engine *e, const struct roci_local_calls *calls, void *driver)
{
	e->local = calls;
	e->driver = driver;
}

bool roci_engine_uses_local(const struct roci_engine *e, uint16_t local)
{
	for (const struct roci_list *l = e->all_qps.next; l != &e->all_qps; l = l->next)
		if (roci_container_of(l, struct roci_qp, all)->attr.av.local == local)
			return true;
	return false;
}

const struct roci_av *roci_engine_peer_of(const struct roci_engine *e, uint32_t qpn)
{
	const struct roci_qp *qp = roci_idmap_find(&e->qps, qpn);

	return qp && qp->state >= ROCI_QPS_RTR ? &qp->attr.av : NULL;
}

void roci_engine_early_memory(struct roci_engine *e, uint64_t bytes)
{
	e->reorder.room = (uint32_t)(bytes / ROCI_REORDER_UNIT);
}

void roci_engine_receive_room(struct roci_engine *e, uint64_t bytes)
{
	e->receive_room = bytes;
}

/* ---- addresses ---- */

uint32_t roci_engine_sgids(const struct roci_engine *e)
{
	uint32_t used = 0;

	for (const struct roci_list *l = e->all_qps.next; l != &e->all_qps; l = l->next) {
		const struct roci_qp *qp = roci_container_of(l, struct roci_qp, all);

		if (!roci_gid_is_any(qp->attr.av.dgid))
			used |= 1u << qp->attr.av.sgid_index;
	}
	return used;
}

/* ---- send ---- */

/* The QPs of an overrun CQ fail. Done here, where no QP is in the middle of anything. */
static void fail_overrun(struct roci_engine *e)
{
	e->cq_overrun = false;
	for (struct roci_list *l = e->all_qps.next; l != &e->all_qps; l = l->next) {
		struct roci_qp *qp = roci_container_of(l, struct roci_qp, all);

		if (qp->send_cq->overrun || qp->recv_cq->overrun)
			roci_qp_error(qp, ROCI_EVENT_QP_FATAL);
	}
}

/* One QP's turn. True where it has more. */
static bool fill_from(struct roci_qp *qp, struct roci_tx_batch *batch)
{
	unsigned before = batch->count, responses;
	bool more;

	if (qp->nat && roci_nat_fill(qp, batch))
		return true;
	if (roci_probe_fill(qp, batch) || (qp->req.selective.offer_due && roci_selective_offer(qp, batch)))
		return true;
	if (roci_responder_fill(qp, batch, TX_QUANTUM))
		return true;
	responses = batch->count - before;
	if (responses >= TX_QUANTUM)
		return true;
	more = roci_requester_fill(qp, batch, TX_QUANTUM - responses);
	if (batch->count - before != responses)
		qp->load_at = qp->e->now;
	return more;
}

unsigned roci_engine_tx(struct roci_engine *e, uint64_t now, struct roci_tx_batch *batch)
{
	roci_engine_clock(e, now);
	batch->count = batch->span_count = 0;
	while (e->cq_overrun) /* completions of flushed requests may overrun another CQ */
		fail_overrun(e);
	while (!roci_list_empty(&e->ready) && batch->count < ROCI_TX_BATCH &&
	       batch->span_count + ROCI_MAX_SGE <= ROCI_TX_SPANS) {
		struct roci_qp *qp = roci_container_of(e->ready.next, struct roci_qp, ready);
		unsigned before = batch->count;

		roci_list_remove(&qp->ready);
		if (!fill_from(qp, batch))
			continue;
		roci_qp_make_ready(qp);
		if (batch->count == before)
			break; /* its next packet does not fit */
	}
	e->stats->tx_packets += batch->count;
	if (batch->count)
		return batch->count;
	roci_engine_tx_done(e, now); /* local operations complete without a packet */
	return e->cq_overrun ? roci_engine_tx(e, now, batch) : 0;
}

bool roci_engine_has_tx(const struct roci_engine *e)
{
	return !roci_list_empty(&e->ready) || !roci_list_empty(&e->sent) || e->cq_overrun;
}

void roci_engine_tx_done(struct roci_engine *e, uint64_t now)
{
	roci_engine_clock(e, now);
	while (!roci_list_empty(&e->sent)) {
		struct roci_qp *qp = roci_container_of(e->sent.next, struct roci_qp, sent);

		roci_list_remove(&qp->sent);
		roci_requester_retire(qp);
	}
}

/* ---- time ---- */

void roci_engine_timers(struct roci_engine *e, uint64_t now)
{
	struct roci_timer *t;

	roci_engine_clock(e, now);
	while ((t = roci_timers_expired(&e->timers, e->now)))
		t->expire(t);
}

uint64_t roci_engine_deadline(const struct roci_engine *e)
{
	return roci_timers_next(&e->timers);
}

/* ---- events ---- */

static void event_pending(struct roci_engine *e, struct roci_event_source *s)
{
	if (roci_list_empty(&s->pending))
		roci_list_append(&e->events, &s->pending);
}

void roci_event_async(struct roci_engine *e, struct roci_event_source *s, enum roci_async_type type)
{
	s->async |= 1u << type;
	event_pending(e, s);
}

void roci_event_completion(struct roci_engine *e, struct roci_event_source *s)
{
	s->completions++;
	event_pending(e, s);
}

bool roci_engine_has_event(const struct roci_engine *e)
{
	return !roci_list_empty(&e->events);
}

bool roci_engine_next_event(struct roci_engine *e, struct roci_event *ev)
{
	struct roci_event_source *s;

	if (roci_list_empty(&e->events))
		return false;
	s = roci_container_of(e->events.next, struct roci_event_source, pending);
	*ev = (struct roci_event){.kind = ROCI_EV_COMPLETION, .user = s->user};
	if (s->completions) {
		s->completions--;
	} else {
		ev->kind = ROCI_EV_ASYNC;
		ev->type = (enum roci_async_type)__builtin_ctz(s->async);
		s->async &= s->async - 1;
	}
	if (!s->completions && !s->async)
		roci_list_remove(&s->pending);
	return true;
}
