/* SPDX-License-Identifier: BSD-2-Clause */
#include "cm/cm.h"

#include <stdlib.h>
#include <string.h>

#include "cm/conn_state.h"
#include "cm/listener.h"
#include "cm/manager.h"
#include "cm/sidr_rx.h"
#include "wire/bytes.h"

#define DEFAULT_RESPONSE_TIMEOUT 20
#define DEFAULT_MRA_TIMEOUT      22
#define DEFAULT_RETRIES          15
#define DEFAULT_DREQ_RETRIES     5
#define DEFAULT_FIRST_RETRY_NS   500000000u
#define DEFAULT_BACKLOG_WAIT_NS  2000000000u
#define DEFAULT_PACE_NS          1000000000u
#define DEFAULT_PENDING_NS       400000000u
#define DEFAULT_MAX_WAITING      16384

static void set_defaults(struct roci_cm_config *c)
{
	c->response_timeout = c->response_timeout ? c->response_timeout & 0x1f : DEFAULT_RESPONSE_TIMEOUT;
	c->mra_timeout = c->mra_timeout ? c->mra_timeout & 0x1f : DEFAULT_MRA_TIMEOUT;
	c->max_retries = c->max_retries ? c->max_retries & 0xf : DEFAULT_RETRIES;
	c->dreq_retries = c->dreq_retries ? c->dreq_retries : DEFAULT_DREQ_RETRIES;
	c->first_retry_ns = c->first_retry_ns ? c->first_retry_ns : DEFAULT_FIRST_RETRY_NS;
	c->backlog_wait_ns = c->backlog_wait_ns ? c->backlog_wait_ns : DEFAULT_BACKLOG_WAIT_NS;
	c->pace_ns = c->pace_ns ? c->pace_ns : DEFAULT_PACE_NS;
	c->pending_ns = c->pending_ns ? c->pending_ns : DEFAULT_PENDING_NS;
	c->max_waiting = c->max_waiting ? c->max_waiting : DEFAULT_MAX_WAITING;
}

struct roci_cm *roci_cm_create(const struct roci_cm_config *config)
{
	struct roci_cm *cm = calloc(1, sizeof(*cm));
	uint64_t salt;

	if (!cm)
		return NULL;
	cm->config = *config;
	set_defaults(&cm->config);
	roci_list_init(&cm->exchanges);
	roci_list_init(&cm->listeners);
	roci_list_init(&cm->sending);
	roci_list_init(&cm->events);
	roci_list_init(&cm->natted);
	salt = roci_cm_new_tid(cm);
	if (roci_peer_table_init(&cm->remote_ids, salt) || roci_peer_table_init(&cm->remote_qpns, salt) ||
	    roci_peer_table_init(&cm->remote_sidr_ids, salt)) {
		roci_cm_destroy(cm);
		return NULL;
	}
	return cm;
}

void roci_cm_destroy(struct roci_cm *cm)
{
	while (!roci_list_empty(&cm->exchanges)) {
		struct roci_exchange *x = roci_container_of(cm->exchanges.next, struct roci_exchange, all);

		x->ops->free(x);
	}
	while (!roci_list_empty(&cm->listeners)) {
		struct roci_listener *listener = roci_container_of(cm->listeners.next, struct roci_listener, all);

		roci_list_remove(&listener->all);
		free(listener);
	}
	roci_peer_table_free(&cm->remote_ids);
	roci_peer_table_free(&cm->remote_qpns);
	roci_peer_table_free(&cm->remote_sidr_ids);
	roci_pending_fini(&cm->pending);
	roci_idmap_free(&cm->ids);
	roci_timers_free(&cm->timers);
	free(cm);
}

void roci_cm_disconnect_all(struct roci_cm *cm, uint64_t now)
{
	cm->disconnected = true;
	roci_pending_reject_all(cm);
	for (struct roci_list *l = cm->exchanges.next, *next; l != &cm->exchanges; l = next) {
		struct roci_exchange *x = roci_container_of(l, struct roci_exchange, all);

		next = l->next;
		if (!x->orphan)
			x->ops->destroy(x, now);
	}
}

uint32_t roci_cm_alloc_id(struct roci_cm *cm, struct roci_exchange *x)
{
	const struct roci_cm_config *c = &cm->config;

	while (cm->ids.count <= c->id_mask / 2) {
		uint32_t id = (c->id_base & ~c->id_mask) | (c->random(c->context) & c->id_mask);

		if (!id || roci_idmap_find(&cm->ids, id))
			continue;
		return roci_idmap_insert(&cm->ids, id, x) ? 0 : id;
	}
	return 0;
}

uint64_t roci_cm_new_tid(struct roci_cm *cm)
{
	uint64_t high = cm->config.random(cm->config.context);

	return high << 32 | cm->config.random(cm->config.context);
}

/* ---- receive ---- */

void roci_cm_rx_nat(struct roci_cm *cm, uint64_t now, const uint8_t mad[ROCI_CM_MAD_BYTES], const uint8_t sgid[16],
		    const uint8_t dgid[16], uint32_t ifindex, const struct roci_nat_terms *nat)
{
	const struct roci_cm_source from = {sgid, dgid, ifindex, nat};
	struct roci_cm_msg msg;

	cm->stats.rx_mads++;
	switch (roci_cm_msg_parse(&msg, mad)) {
	case ROCI_CM_PARSE_OK: break;
	case ROCI_CM_PARSE_UNSUPPORTED: cm->stats.rx_unsupported++; return;
	default: cm->stats.rx_malformed++; return;
	}
	switch (msg.attribute) {
	case ROCI_CM_ATTR_REQ: roci_conn_rx_req(cm, now, &from, &msg); break;
	case ROCI_CM_ATTR_SIDR_REQ: roci_sidr_rx_req(cm, now, &from, &msg); break;
	case ROCI_CM_ATTR_SIDR_REP: roci_sidr_rx_rep(cm, &from, &msg); break;
	default: roci_conn_rx(cm, now, &from, &msg);
	}
}

void roci_cm_rx(struct roci_cm *cm, uint64_t now, const uint8_t mad[ROCI_CM_MAD_BYTES], const uint8_t sgid[16],
		const uint8_t dgid[16], uint32_t ifindex)
{
	roci_cm_rx_nat(cm, now, mad, sgid, dgid, ifindex, NULL);
}

/* ---- path MTU ---- */

void roci_cm_mtu_probed(struct roci_cm *cm, uint64_t tid, uint8_t mtu)
{
	struct roci_cm_probed *p = &cm->probed[tid % ROCI_CM_PROBED];

	if (p->tid != tid)
		*p = (struct roci_cm_probed){.tid = tid};
	if (mtu > p->mtu)
		p->mtu = mtu;
}

uint8_t roci_cm_probed_mtu(const struct roci_cm *cm, uint64_t tid)
{
	const struct roci_cm_probed *p = &cm->probed[tid % ROCI_CM_PROBED];

	return p->tid == tid ? p->mtu : 0;
}

/* ---- unreachable ---- */

#define LEAST_QUOTED 28 /* MAD header and local ID */
#define LOCAL_ID_AT  24
#define REFUSALS     2

void roci_cm_unreachable(struct roci_cm *cm, uint64_t now, const uint8_t *mad, size_t len, const uint8_t dgid[16],
			 int err)
{
	struct roci_exchange *x;

	if (len < LEAST_QUOTED)
		return;
	x = roci_idmap_find(&cm->ids, roci_get_be32(mad + LOCAL_ID_AT));
	if (!x || !x->sent || memcmp(x->remote_gid, dgid, 16) ||
	    memcmp(x->mad, mad, len < ROCI_CM_MAD_BYTES ? len : ROCI_CM_MAD_BYTES))
		return;
	if (++x->refusals == REFUSALS)
		x->ops->unreachable(x, now, err);
}

/* ---- send ---- */

static void set_route(struct roci_cm_tx *out, const uint8_t from[16], const uint8_t to[16], uint32_t ifindex)
{
	memcpy(out->sgid, from, 16);
	memcpy(out->dgid, to, 16);
	out->ifindex = ifindex;
	out->hop_limit = 64;
	out->traffic_class = 0;
	out->flow_label = 0;
	out->sl = 0;
	out->nat = (struct roci_nat_terms){0};
}

void roci_cm_reply(struct roci_cm *cm, const struct roci_cm_source *from, const struct roci_cm_msg *msg)
{
	struct roci_cm_tx *tx;

	if (cm->reply_count == ROCI_CM_MAX_REPLIES) {
		cm->stats.replies_dropped++;
		return;
	}
	tx = &cm->replies[(cm->reply_first + cm->reply_count++) % ROCI_CM_MAX_REPLIES];
	set_route(tx, from->dgid, from->sgid, from->ifindex);
	if (from->nat)
		tx->nat = *from->nat;
	roci_cm_msg_build(msg, tx->mad);
}

bool roci_cm_has_tx(const struct roci_cm *cm)
{
	return cm->reply_count || !roci_list_empty(&cm->sending);
}

bool roci_cm_tx(struct roci_cm *cm, uint64_t now, struct roci_cm_tx *out)
{
	struct roci_exchange *x;

	if (cm->reply_count) {
		*out = cm->replies[cm->reply_first];
		cm->reply_first = (cm->reply_first + 1) % ROCI_CM_MAX_REPLIES;
		cm->reply_count--;
	} else if (!roci_list_empty(&cm->sending)) {
		x = roci_container_of(cm->sending.next, struct roci_exchange, sending);
		roci_list_remove(&x->sending);
		set_route(out, x->local_gid, x->remote_gid, x->ifindex);
		out->traffic_class = x->path->traffic_class;
		out->hop_limit = x->path->hop_limit ? x->path->hop_limit : 64;
		out->flow_label = x->path->flow_label;
		out->sl = x->path->sl;
		out->nat = x->nat;
		memcpy(out->mad, x->mad, sizeof(out->mad));
		roci_cm_free_if_done(x);
	} else {
		return false;
	}
	cm->stats.tx_mads++;
	return true;
}

void roci_cm_free_if_done(struct roci_exchange *x)
{
	if (x->cm->disconnected)
		return;
	if (x->orphan && x->timer.at == ROCI_TIMER_OFF && roci_list_empty(&x->sending))
		x->ops->free(x);
}

/* ---- time ---- */

void roci_cm_timers(struct roci_cm *cm, uint64_t now)
{
	struct roci_timer *timer;

	roci_pending_timers(cm, now);
	while ((timer = roci_timers_expired(&cm->timers, now))) {
		struct roci_exchange *x = roci_container_of(timer, struct roci_exchange, timer);

		x->ops->timeout(x, now);
		roci_cm_free_if_done(x);
	}
}

uint64_t roci_cm_deadline(const struct roci_cm *cm)
{
	uint64_t timers = roci_timers_next(&cm->timers), pending = roci_pending_deadline(cm);

	return timers < pending ? timers : pending;
}

/* ---- events ---- */

bool roci_cm_has_event(const struct roci_cm *cm)
{
	return !roci_list_empty(&cm->events);
}

bool roci_cm_next_event(struct roci_cm *cm, struct roci_cm_event *ev)
{
	struct roci_exchange *x;

	if (roci_list_empty(&cm->events))
		return false;
	x = roci_container_of(cm->events.next, struct roci_exchange, reporting);
	roci_list_remove(&x->reporting);
	*ev = x->event;
	/* The object of a request has no user of its own yet. */
	ev->user = ev->listener ? ev->listener->params.user : x->user;
	return true;
}
