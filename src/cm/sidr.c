/* SPDX-License-Identifier: BSD-2-Clause */
#include "cm/sidr.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cm/listener.h"
#include "cm/manager.h"
#include "cm/sidr_rx.h"

/* Within this time a peer with the standard's timers resends its SIDR_REQ (response timeout 20, packet life 18). */
#define REMEMBER_NS 7000000000u

struct roci_sidr {
	struct roci_exchange x;
	bool active;
	bool done;       /* answered or given up */
	bool remembered; /* passive: done, and still answers duplicates */
	uint32_t request_id;
	uint64_t service_id, tid;
	struct roci_cm_path path;
	struct roci_peer_node remote_id_node; /* passive: in cm->remote_sidr_ids */
};

/* ---- create, free ---- */

static const struct roci_exchange_ops sidr_ops;

static struct roci_sidr *create(struct roci_cm *cm, void *user)
{
	struct roci_sidr *sidr = calloc(1, sizeof(*sidr));

	if (!sidr || roci_exchange_init(&sidr->x, cm, &sidr_ops, &sidr->path)) {
		free(sidr);
		cm->stats.no_memory++;
		return NULL;
	}
	sidr->x.sidr = sidr;
	sidr->x.user = user;
	return sidr;
}

/* The peer's id no longer leads to this exchange. */
static void forget_peer(struct roci_sidr *sidr)
{
	struct roci_cm *cm = sidr->x.cm;

	roci_peer_remove(&cm->remote_sidr_ids, &sidr->remote_id_node);
	cm->remembered_count -= sidr->remembered;
	sidr->remembered = false;
}

static void free_sidr(struct roci_exchange *x)
{
	struct roci_sidr *sidr = x->sidr;

	forget_peer(sidr);
	if (sidr->active && sidr->request_id)
		roci_idmap_remove(&x->cm->ids, sidr->request_id);
	roci_exchange_fini(x);
	free(sidr);
}

/* ---- the active side ---- */

static void send_request(struct roci_sidr *sidr, const struct roci_cm_resolve *params)
{
	struct roci_cm_msg msg = {
		.attribute = ROCI_CM_ATTR_SIDR_REQ,
		.tid = sidr->tid,
		.local_id = sidr->request_id,
		.pkey = params->path.pkey,
		.service_id = params->service_id,
	};

	roci_cm_copy(msg.private, ROCI_CM_SIDR_REQ_PRIVATE, params->private);
	roci_exchange_send(&sidr->x, &msg);
}

int roci_sidr_resolve(struct roci_cm *cm, uint64_t now, const struct roci_cm_resolve *params, struct roci_sidr **out)
{
	uint64_t interval = params->interval_ns;
	struct roci_sidr *sidr;

	if (params->private.len > ROCI_CM_SIDR_REQ_PRIVATE || params->path.packet_life > 31)
		return -EINVAL;
	sidr = create(cm, params->user);
	if (!sidr)
		return -ENOMEM;
	sidr->active = true;
	sidr->path = params->path;
	sidr->service_id = params->service_id;
	memcpy(sidr->x.local_gid, params->path.sgid, 16);
	memcpy(sidr->x.remote_gid, params->path.dgid, 16);
	sidr->x.ifindex = params->path.ifindex;
	sidr->tid = sidr->x.nat.token = roci_cm_new_tid(cm);
	sidr->request_id = roci_cm_alloc_id(cm, &sidr->x);
	if (!sidr->request_id) {
		free_sidr(&sidr->x);
		return -ENOMEM;
	}
	if (!interval)
		interval = 2 * roci_cm_time_ns(params->path.packet_life) + roci_cm_time_ns(cm->config.response_timeout);
	send_request(sidr, params);
	roci_exchange_start_retries(&sidr->x, now, interval,
				    params->max_retries ? params->max_retries : cm->config.max_retries);
	*out = sidr;
	return 0;
}

void roci_sidr_rx_rep(struct roci_cm *cm, const struct roci_cm_source *from, const struct roci_cm_msg *rep)
{
	struct roci_exchange *x = roci_idmap_find(&cm->ids, rep->local_id);
	struct roci_cm_event *ev;
	struct roci_sidr *sidr;

	if (!x || !x->sidr) {
		cm->stats.rx_unexpected++;
		return;
	}
	sidr = x->sidr;
	if (memcmp(from->sgid, x->remote_gid, 16)) {
		cm->stats.rx_wrong_source++;
		return;
	}
	if (rep->tid != sidr->tid) { /* forged: only the peer and the path know the TID of our request */
		cm->stats.rx_unexpected++;
		return;
	}
	if (sidr->done) {
		cm->stats.rx_duplicate++;
		return;
	}
	sidr->done = true;
	roci_exchange_stop_timer(x);
	ev = roci_exchange_prepare_event(x, ROCI_CM_SIDR_REP_RECEIVED, rep);
	ev->sidr_status = rep->outcome;
	ev->sidr_qpn = rep->qpn;
	ev->sidr_qkey = rep->qkey;
	roci_exchange_report(x);
}

/* ---- the passive side ---- */

static void build_rep(struct roci_cm_msg *rep, uint64_t tid, uint32_t request_id, uint64_t service_id,
		      enum roci_cm_sidr_status status)
{
	*rep = (struct roci_cm_msg){
		.attribute = ROCI_CM_ATTR_SIDR_REP,
		.tid = tid,
		.local_id = request_id,
		.service_id = service_id,
		.outcome = status,
	};
}

/* What was sent last answers duplicates for a while. */
static void remember_answer(struct roci_sidr *sidr, uint64_t now)
{
	struct roci_cm *cm = sidr->x.cm;

	sidr->done = true;
	if (cm->remembered_count >= ROCI_CM_MAX_REMEMBERED) {
		roci_exchange_stop_timer(&sidr->x);
		forget_peer(sidr);
		return;
	}
	sidr->remembered = true;
	cm->remembered_count++;
	roci_exchange_set_timer(&sidr->x, now + REMEMBER_NS);
}

static void reject(struct roci_sidr *sidr, uint64_t now, enum roci_cm_sidr_status status)
{
	struct roci_cm_msg rep;

	build_rep(&rep, sidr->tid, sidr->request_id, sidr->service_id, status);
	roci_exchange_send(&sidr->x, &rep);
	remember_answer(sidr, now);
}

void roci_sidr_reject_req(struct roci_cm *cm, const struct roci_cm_source *from, const struct roci_cm_msg *req,
			  enum roci_cm_sidr_status status)
{
	struct roci_cm_msg rep;

	build_rep(&rep, req->tid, req->local_id, req->service_id, status);
	roci_cm_reply(cm, from, &rep);
}

static struct roci_sidr *create_passive(struct roci_cm *cm, const struct roci_cm_source *from,
					const struct roci_cm_msg *req)
{
	struct roci_sidr *sidr = create(cm, NULL);

	if (!sidr)
		return NULL;
	sidr->request_id = req->local_id;
	sidr->service_id = req->service_id;
	sidr->tid = req->tid;
	sidr->path.pkey = req->pkey;
	sidr->path.ifindex = from->ifindex;
	memcpy(sidr->path.sgid, from->dgid, 16);
	memcpy(sidr->path.dgid, from->sgid, 16);
	roci_exchange_come_from(&sidr->x, from, req->tid);
	roci_peer_insert(&cm->remote_sidr_ids, &sidr->remote_id_node, sidr->x.remote_gid, req->local_id);
	return sidr;
}

/* True: the SIDR_REQ is one that we know, and got the answer again if there is one. */
static bool is_duplicate(struct roci_cm *cm, const struct roci_cm_source *from, const struct roci_cm_msg *req)
{
	struct roci_peer_node *node = roci_peer_find(&cm->remote_sidr_ids, from->sgid, req->local_id);
	struct roci_sidr *sidr;

	if (!node)
		return false;
	sidr = roci_container_of(node, struct roci_sidr, remote_id_node);
	if (sidr->tid != req->tid && from->nat)
		return false;                      /* of another host behind the same NAT */
	if (sidr->tid != req->tid && sidr->done) { /* the peer uses its id again */
		roci_peer_remove(&cm->remote_sidr_ids, &sidr->remote_id_node);
		return false;
	}
	cm->stats.rx_duplicate++;
	if (sidr->done && sidr->x.sent)
		roci_exchange_resend(&sidr->x);
	return true;
}

static void report_req(struct roci_exchange *x)
{
	roci_exchange_stop_timer(x);
	roci_exchange_report(x);
}

void roci_sidr_rx_req(struct roci_cm *cm, uint64_t now, const struct roci_cm_source *from,
		      const struct roci_cm_msg *req)
{
	enum roci_backlog_verdict verdict;
	struct roci_listener *listener;
	struct roci_cm_event *ev;
	struct roci_sidr *sidr;
	struct roci_cm_ip ip;
	bool has_ip;

	if (is_duplicate(cm, from, req))
		return;
	listener = roci_listener_for_request(cm, from, req, &ip, &has_ip);
	if (!listener) {
		if (!roci_pending_add(cm, now, from, req))
			roci_sidr_reject_req(cm, from, req, ROCI_SIDR_UNSUPPORTED);
		return;
	}
	verdict = roci_backlog_admit(listener, now);
	if (verdict == ROCI_BACKLOG_FULL) {
		roci_sidr_reject_req(cm, from, req, ROCI_SIDR_REJECT);
		return;
	}
	sidr = create_passive(cm, from, req);
	if (!sidr)
		return; /* the peer will resend its SIDR_REQ */
	ev = roci_exchange_prepare_event(&sidr->x, ROCI_CM_SIDR_REQ_RECEIVED, req);
	ev->listener = listener;
	ev->service_id = req->service_id;
	ev->has_ip = has_ip;
	ev->ip = ip;
	roci_backlog_enter(listener, &sidr->x, verdict, now);
}

int roci_sidr_answer(struct roci_sidr *sidr, uint64_t now, const struct roci_cm_sidr_answer *answer)
{
	struct roci_cm_msg rep;

	build_rep(&rep, sidr->tid, sidr->request_id, sidr->service_id, answer->status);
	rep.qpn = answer->qpn;
	rep.qkey = answer->qkey;
	rep.info_len = (uint8_t)answer->info.len;
	if (sidr->active || sidr->done || answer->qpn >= 1u << 24 ||
	    !roci_cm_copy(rep.private, ROCI_CM_SIDR_REP_PRIVATE, answer->private) ||
	    !roci_cm_copy(rep.info, ROCI_CM_SIDR_REP_INFO, answer->info))
		return -EINVAL;
	roci_exchange_send(&sidr->x, &rep);
	remember_answer(sidr, now);
	sidr->x.cm->answered_requests++;
	roci_backlog_answered(&sidr->x, now);
	return 0;
}

/* ---- both sides ---- */

static void timeout(struct roci_exchange *x, uint64_t now)
{
	struct roci_sidr *sidr = x->sidr;

	if (x->backlog.waiting) {
		if (!roci_backlog_timeout(x, now))
			return;
		x->orphan = true; /* the consumer never heard of it */
		reject(sidr, now, ROCI_SIDR_REJECT);
		roci_backlog_answered(x, now);
	} else if (!sidr->active) {
		forget_peer(sidr);
	} else if (!roci_exchange_retransmit(x, now)) {
		sidr->done = true;
		roci_exchange_report_error(x, ROCI_CM_SIDR_ERROR, -ETIMEDOUT);
	}
}

static void unreachable(struct roci_exchange *x, uint64_t now, int err)
{
	if (!x->sidr->active || x->sidr->done)
		return;
	x->sidr->done = true;
	roci_exchange_stop_timer(x);
	roci_exchange_report_error(x, ROCI_CM_SIDR_ERROR, err);
}

static void destroy(struct roci_exchange *x, uint64_t now)
{
	roci_sidr_destroy(x->sidr, now);
}

static const struct roci_exchange_ops sidr_ops = {
	.free = free_sidr,
	.destroy = destroy,
	.timeout = timeout,
	.unreachable = unreachable,
	.report_req = report_req,
};

void roci_sidr_destroy(struct roci_sidr *sidr, uint64_t now)
{
	if (sidr->x.orphan)
		return; /* since roci_cm_disconnect_all() */
	roci_exchange_cancel_event(&sidr->x);
	sidr->x.orphan = true;
	if (sidr->active)
		roci_exchange_stop_timer(&sidr->x);
	else if (!sidr->done)
		reject(sidr, now, ROCI_SIDR_REJECT);
	roci_backlog_answered(&sidr->x, now);
	roci_cm_free_if_done(&sidr->x);
}

void roci_sidr_set_user(struct roci_sidr *sidr, void *user)
{
	sidr->x.user = user;
}

void roci_sidr_fetched(struct roci_sidr *sidr, uint64_t now, bool in_turn)
{
	roci_backlog_fetches(&sidr->x, in_turn);
	roci_backlog_fetched(&sidr->x, now);
}
