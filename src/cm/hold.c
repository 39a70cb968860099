/* SPDX-License-Identifier: BSD-2-Clause */
#include "cm/hold.h"

#include <stdlib.h>
#include <string.h>

#include "cm/internal.h"

static struct roci_held *at(const struct roci_hold *hold, unsigned i)
{
	return &hold->ring[(hold->first + i) % ROCI_CM_MAX_HELD];
}

static struct roci_cm_source source_of(const struct roci_held *held)
{
	return (struct roci_cm_source){held->sgid, held->dgid, held->ifindex};
}

/* Those that have left are passed over, and forgotten when they are the oldest. */
static void leave(struct roci_hold *hold, struct roci_held *held)
{
	held->waiting = false;
	hold->waiting--;
	while (hold->count && !at(hold, 0)->waiting) {
		hold->first = (hold->first + 1) % ROCI_CM_MAX_HELD;
		hold->count--;
	}
}

static struct roci_held *find(const struct roci_hold *hold, const struct roci_cm_source *from, uint16_t attribute,
			      uint32_t local_id)
{
	for (unsigned i = 0; i < hold->count; i++) {
		struct roci_held *held = at(hold, i);

		if (held->waiting && held->msg.attribute == attribute && held->msg.local_id == local_id &&
		    !memcmp(held->sgid, from->sgid, 16))
			return held;
	}
	return NULL;
}

void roci_hold_fini(struct roci_hold *hold)
{
	free(hold->ring);
}

bool roci_hold_request(struct roci_cm *cm, uint64_t now, const struct roci_cm_source *from,
		       const struct roci_cm_msg *req)
{
	struct roci_hold *hold = &cm->hold;
	struct roci_held *held;

	if (find(hold, from, req->attribute, req->local_id)) {
		cm->stats.rx_duplicate++;
		return true;
	}
	if (!hold->ring)
		hold->ring = calloc(ROCI_CM_MAX_HELD, sizeof(*hold->ring));
	if (!hold->ring || hold->count == ROCI_CM_MAX_HELD)
		return false;
	held = at(hold, hold->count++);
	*held = (struct roci_held){
		.waiting = true, .until = now + cm->config.hold_ns, .ifindex = from->ifindex, .msg = *req};
	memcpy(held->sgid, from->sgid, 16);
	memcpy(held->dgid, from->dgid, 16);
	hold->waiting++;
	cm->stats.held++;
	return true;
}

bool roci_hold_withdraw(struct roci_cm *cm, const struct roci_cm_source *from, const struct roci_cm_msg *rej)
{
	struct roci_held *held = find(&cm->hold, from, ROCI_CM_ATTR_REQ, rej->local_id);

	if (held)
		leave(&cm->hold, held);
	return held;
}

/* ---- what becomes of it ---- */

static void refuse(struct roci_cm *cm, struct roci_held *held)
{
	struct roci_cm_source from = source_of(held);

	if (held->msg.attribute == ROCI_CM_ATTR_REQ)
		roci_conn_refuse(cm, &from, &held->msg, ROCI_REJ_INVALID_SERVICE_ID);
	else
		roci_sidr_refuse(cm, &from, &held->msg, ROCI_SIDR_UNSUPPORTED);
	leave(&cm->hold, held);
}

static void tell(struct roci_cm *cm, uint64_t now, struct roci_held *held)
{
	struct roci_cm_source from = source_of(held);

	if (held->msg.attribute == ROCI_CM_ATTR_REQ)
		roci_conn_rx_req(cm, now, &from, &held->msg);
	else
		roci_sidr_rx_req(cm, now, &from, &held->msg);
	leave(&cm->hold, held);
}

void roci_hold_refuse(struct roci_cm *cm)
{
	while (cm->hold.count)
		refuse(cm, at(&cm->hold, 0));
}

void roci_cm_pass_held(struct roci_cm *cm, roci_cm_pass_fn *pass, void *context)
{
	struct roci_hold *hold = &cm->hold;
	unsigned end = hold->first + hold->count;

	/* Places, not distances from the first: that moves when the oldest leave. */
	for (unsigned place = hold->first; place != end; place++) {
		struct roci_held *held = &hold->ring[place % ROCI_CM_MAX_HELD];
		struct roci_cm_tx request = {.ifindex = held->ifindex, .hop_limit = 64};

		if (!held->waiting)
			continue;
		memcpy(request.sgid, held->sgid, 16);
		memcpy(request.dgid, held->dgid, 16);
		roci_cm_msg_build(&held->msg, request.mad);
		if (pass(context, &request))
			leave(hold, held);
	}
}

unsigned roci_cm_held_count(const struct roci_cm *cm)
{
	return cm->hold.waiting;
}

/* ---- time ---- */

static void tell_listeners(struct roci_cm *cm, uint64_t now)
{
	struct roci_hold *hold = &cm->hold;
	unsigned end = hold->first + hold->count;

	for (unsigned place = hold->first; place != end; place++) {
		struct roci_held *held = &hold->ring[place % ROCI_CM_MAX_HELD];
		struct roci_cm_source from = source_of(held);
		struct roci_cm_ip ip;
		bool has_ip;

		if (held->waiting && roci_listener_for(cm, &from, &held->msg, &ip, &has_ip))
			tell(cm, now, held);
	}
}

void roci_hold_timers(struct roci_cm *cm, uint64_t now)
{
	struct roci_hold *hold = &cm->hold;

	if (hold->look) {
		hold->look = false;
		tell_listeners(cm, now);
	}
	while (hold->count && at(hold, 0)->until <= now)
		refuse(cm, at(hold, 0));
}

uint64_t roci_hold_deadline(const struct roci_cm *cm)
{
	const struct roci_hold *hold = &cm->hold;

	if (!hold->count)
		return ROCI_CM_NEVER;
	return hold->look ? 0 : at(hold, 0)->until;
}
