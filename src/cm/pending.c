/* SPDX-License-Identifier: BSD-2-Clause */
#include "cm/pending.h"

#include <stdlib.h>
#include <string.h>

#include "cm/conn_state.h"
#include "cm/listener.h"
#include "cm/manager.h"
#include "cm/sidr_rx.h"

static struct roci_pending_request *at(const struct roci_pending *pending, unsigned i)
{
	return &pending->ring[(pending->first + i) % ROCI_CM_MAX_PENDING];
}

static struct roci_cm_source source_of(const struct roci_pending_request *request)
{
	return (struct roci_cm_source){request->sgid, request->dgid, request->ifindex,
				       request->nat.port ? &request->nat : NULL};
}

/* A place in the middle stays in use until all older requests have left. */
static void leave(struct roci_pending *pending, struct roci_pending_request *request)
{
	request->waiting = false;
	pending->waiting--;
	while (pending->count && !at(pending, 0)->waiting) {
		pending->first = (pending->first + 1) % ROCI_CM_MAX_PENDING;
		pending->count--;
	}
}

static struct roci_pending_request *find(const struct roci_pending *pending, const struct roci_cm_source *from,
					 uint16_t attribute, uint32_t local_id)
{
	for (unsigned i = 0; i < pending->count; i++) {
		struct roci_pending_request *request = at(pending, i);

		if (request->waiting && request->msg.attribute == attribute && request->msg.local_id == local_id &&
		    !memcmp(request->sgid, from->sgid, 16))
			return request;
	}
	return NULL;
}

void roci_pending_fini(struct roci_pending *pending)
{
	free(pending->ring);
}

bool roci_pending_add(struct roci_cm *cm, uint64_t now, const struct roci_cm_source *from,
		      const struct roci_cm_msg *req)
{
	struct roci_pending *pending = &cm->pending;
	struct roci_pending_request *request;

	if (find(pending, from, req->attribute, req->local_id)) {
		cm->stats.rx_duplicate++;
		return true;
	}
	if (!pending->ring)
		pending->ring = calloc(ROCI_CM_MAX_PENDING, sizeof(*pending->ring));
	if (!pending->ring || pending->count == ROCI_CM_MAX_PENDING)
		return false;
	request = at(pending, pending->count++);
	*request = (struct roci_pending_request){
		.waiting = true, .until = now + cm->config.pending_ns, .ifindex = from->ifindex, .msg = *req};
	memcpy(request->sgid, from->sgid, 16);
	memcpy(request->dgid, from->dgid, 16);
	if (from->nat)
		request->nat = *from->nat;
	pending->waiting++;
	cm->stats.pending++;
	return true;
}

bool roci_pending_withdraw(struct roci_cm *cm, const struct roci_cm_source *from, const struct roci_cm_msg *rej)
{
	struct roci_pending_request *request = find(&cm->pending, from, ROCI_CM_ATTR_REQ, rej->local_id);

	if (!request || request->msg.tid != rej->tid)
		return false;
	leave(&cm->pending, request);
	return true;
}

/* ---- how a request leaves ---- */

static void reject(struct roci_cm *cm, struct roci_pending_request *request)
{
	struct roci_cm_source from = source_of(request);

	if (request->msg.attribute == ROCI_CM_ATTR_REQ)
		roci_conn_reject_req(cm, &from, &request->msg, ROCI_REJ_INVALID_SERVICE_ID);
	else
		roci_sidr_reject_req(cm, &from, &request->msg, ROCI_SIDR_UNSUPPORTED);
	leave(&cm->pending, request);
}

/* As if it had just arrived. */
static void receive(struct roci_cm *cm, uint64_t now, struct roci_pending_request *request)
{
	struct roci_cm_source from = source_of(request);

	if (request->msg.attribute == ROCI_CM_ATTR_REQ)
		roci_conn_rx_req(cm, now, &from, &request->msg);
	else
		roci_sidr_rx_req(cm, now, &from, &request->msg);
	leave(&cm->pending, request);
}

void roci_pending_reject_all(struct roci_cm *cm)
{
	while (cm->pending.count)
		reject(cm, at(&cm->pending, 0));
}

void roci_cm_forward_pending(struct roci_cm *cm, roci_cm_forward_fn *forward, void *context)
{
	struct roci_pending *pending = &cm->pending;
	unsigned end = pending->first + pending->count;

	/* `first` moves when the oldest leave, so these are places in the ring. */
	for (unsigned place = pending->first; place != end; place++) {
		struct roci_pending_request *request = &pending->ring[place % ROCI_CM_MAX_PENDING];
		struct roci_cm_tx tx = {.ifindex = request->ifindex, .hop_limit = 64, .nat = request->nat};

		if (!request->waiting)
			continue;
		memcpy(tx.sgid, request->sgid, 16);
		memcpy(tx.dgid, request->dgid, 16);
		roci_cm_msg_build(&request->msg, tx.mad);
		if (forward(context, &tx))
			leave(pending, request);
	}
}

unsigned roci_cm_pending_count(const struct roci_cm *cm)
{
	return cm->pending.waiting;
}

/* ---- time ---- */

static void receive_those_with_listener(struct roci_cm *cm, uint64_t now)
{
	struct roci_pending *pending = &cm->pending;
	unsigned end = pending->first + pending->count;

	for (unsigned place = pending->first; place != end; place++) {
		struct roci_pending_request *request = &pending->ring[place % ROCI_CM_MAX_PENDING];
		struct roci_cm_source from = source_of(request);
		struct roci_cm_ip ip;
		bool has_ip;

		if (request->waiting && roci_listener_for_request(cm, &from, &request->msg, &ip, &has_ip))
			receive(cm, now, request);
	}
}

void roci_pending_timers(struct roci_cm *cm, uint64_t now)
{
	struct roci_pending *pending = &cm->pending;

	if (pending->listener_added) {
		pending->listener_added = false;
		receive_those_with_listener(cm, now);
	}
	while (pending->count && at(pending, 0)->until <= now)
		reject(cm, at(pending, 0));
}

uint64_t roci_pending_deadline(const struct roci_cm *cm)
{
	const struct roci_pending *pending = &cm->pending;

	if (!pending->count)
		return ROCI_CM_NEVER;
	return pending->listener_added ? 0 : at(pending, 0)->until;
}
