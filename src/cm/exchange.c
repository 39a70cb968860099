/* SPDX-License-Identifier: BSD-2-Clause */
#include "cm/exchange.h"

#include <assert.h>
#include <string.h>

#include "cm/manager.h"

int roci_exchange_init(struct roci_exchange *x, struct roci_cm *cm, const struct roci_exchange_ops *ops,
		       struct roci_cm_path *path)
{
	int err = roci_timers_reserve(&cm->timers, (int)cm->exchange_count + 1);

	if (err)
		return err;
	x->cm = cm;
	x->ops = ops;
	x->path = path;
	roci_list_init(&x->sending);
	roci_list_init(&x->reporting);
	roci_list_init(&x->natted);
	roci_list_init(&x->backlog.node);
	roci_timer_init(&x->timer);
	roci_list_append(&cm->exchanges, &x->all);
	cm->exchange_count++;
	return 0;
}

void roci_exchange_fini(struct roci_exchange *x)
{
	if (x->backlog.pacing)
		roci_backlog_stop_pacing(x->backlog.pacing);
	roci_exchange_stop_timer(x);
	roci_list_remove(&x->sending);
	roci_list_remove(&x->reporting);
	roci_list_remove(&x->natted);
	roci_list_remove(&x->backlog.node);
	roci_list_remove(&x->all);
	x->cm->exchange_count--;
}

void roci_exchange_come_from(struct roci_exchange *x, const struct roci_cm_source *from, uint64_t token)
{
	memcpy(x->local_gid, from->dgid, 16);
	memcpy(x->remote_gid, from->sgid, 16);
	x->ifindex = from->ifindex;
	if (from->nat) {
		x->nat = *from->nat;
		roci_list_append(&x->cm->natted, &x->natted);
	}
	x->nat.token = token;
}

/* ---- messages ---- */

void roci_exchange_send(struct roci_exchange *x, const struct roci_cm_msg *msg)
{
	roci_cm_msg_build(msg, x->mad);
	x->sent = msg->attribute;
	roci_exchange_resend(x);
}

void roci_exchange_resend(struct roci_exchange *x)
{
	assert(x->sent);
	if (roci_list_empty(&x->sending))
		roci_list_append(&x->cm->sending, &x->sending);
}

void roci_exchange_start_retries(struct roci_exchange *x, uint64_t now, uint64_t max_interval_ns, unsigned retries)
{
	uint64_t first = x->cm->config.first_retry_ns;

	x->asked_at = now;
	x->retry.max_interval_ns = max_interval_ns;
	x->retry.interval_ns = first < max_interval_ns ? first : max_interval_ns;
	x->retry.left = retries;
	roci_exchange_set_timer(x, now + x->retry.interval_ns);
}

bool roci_exchange_retransmit(struct roci_exchange *x, uint64_t now)
{
	if (!x->retry.left) {
		x->cm->stats.timeouts++;
		return false;
	}
	x->retry.left--;
	x->cm->stats.retransmits++;
	roci_exchange_resend(x);
	x->retry.interval_ns *= 2;
	if (x->retry.interval_ns > x->retry.max_interval_ns)
		x->retry.interval_ns = x->retry.max_interval_ns;
	roci_exchange_set_timer(x, now + x->retry.interval_ns);
	return true;
}

void roci_exchange_postpone(struct roci_exchange *x, uint64_t now, uint64_t wait_ns)
{
	x->retry.interval_ns = x->retry.max_interval_ns;
	roci_exchange_set_timer(x, now + wait_ns);
}

void roci_exchange_stop_timer(struct roci_exchange *x)
{
	roci_exchange_set_timer(x, ROCI_TIMER_OFF);
}

void roci_exchange_set_timer(struct roci_exchange *x, uint64_t at)
{
	roci_timer_set(&x->cm->timers, &x->timer, at);
}

/* ---- events ---- */

struct roci_cm_event *roci_exchange_prepare_event(struct roci_exchange *x, enum roci_cm_event_kind kind,
						  const struct roci_cm_msg *msg)
{
	struct roci_cm_event *ev = &x->event;

	*ev = (struct roci_cm_event){.kind = kind, .path = x->path, .conn = x->conn, .sidr = x->sidr};
	if (msg) {
		memcpy(x->private, msg->private, sizeof(x->private));
		memcpy(x->info, msg->info, sizeof(x->info));
		ev->private = (struct roci_cm_bytes){x->private, roci_cm_private_room(msg->attribute)};
		ev->ari = (struct roci_cm_bytes){x->info, msg->info_len};
	}
	return ev;
}

void roci_exchange_report(struct roci_exchange *x)
{
	if (x->orphan)
		return;
	assert(roci_list_empty(&x->reporting)); /* the driver has emptied next_event() */
	roci_list_append(&x->cm->events, &x->reporting);
}

void roci_exchange_report_event(struct roci_exchange *x, enum roci_cm_event_kind kind, const struct roci_cm_msg *msg)
{
	roci_exchange_prepare_event(x, kind, msg);
	roci_exchange_report(x);
}

void roci_exchange_report_error(struct roci_exchange *x, enum roci_cm_event_kind kind, int err)
{
	roci_exchange_prepare_event(x, kind, NULL)->status = err;
	roci_exchange_report(x);
}

void roci_exchange_cancel_event(struct roci_exchange *x)
{
	roci_list_remove(&x->reporting);
}

bool roci_cm_copy(void *to, unsigned room, struct roci_cm_bytes from)
{
	if (from.len > room)
		return false;
	if (from.len)
		memcpy(to, from.data, from.len);
	return true;
}
