/* SPDX-License-Identifier: BSD-2-Clause */
#include "engine/keepalive.h"

#include "engine/qp.h"

#define PROBES_MAX        5 /* without an answer */
#define PROBE_INTERVAL_NS UINT64_C(1000000000)

static void arm(struct roci_qp *qp, uint64_t at)
{
	roci_timer_set(&qp->e->timers, &qp->alive.timer, at);
}

static void expire(struct roci_timer *timer)
{
	struct roci_qp *qp = roci_container_of(timer, struct roci_qp, alive.timer);
	struct roci_keepalive *k = &qp->alive;
	uint64_t now = qp->e->now;

	if (!k->interval)
		return;
	if (!roci_qp_is_connected(qp)) { /* not yet, or not any more */
		arm(qp, now + k->interval);
		return;
	}
	if (now - k->rx_at < k->interval) {
		arm(qp, k->rx_at + k->interval);
		return;
	}
	if (roci_send_window_packets(&qp->req.window)) { /* the acknowledgement timer runs, and detects the same */
		arm(qp, now + k->interval);
		return;
	}
	if (k->probes++ == PROBES_MAX) {
		roci_qp_error(qp, ROCI_EVENT_QP_FATAL);
		k->lost = true;
		qp->e->stats->peers_lost++;
		return;
	}
	if (k->probes > 1)
		roci_qp_peer_silent(qp, false);
	roci_probe_send(qp, 1);
	arm(qp, now + PROBE_INTERVAL_NS);
}

void roci_keepalive_init(struct roci_qp *qp)
{
	roci_timer_init(&qp->alive.timer);
	qp->alive.timer.expire = expire;
}

void roci_keepalive_rx(struct roci_qp *qp)
{
	qp->alive.rx_at = qp->e->now;
	qp->alive.probes = 0;
}

bool roci_engine_peer_lost(const struct roci_engine *e, uint32_t qpn)
{
	const struct roci_qp *qp = roci_idmap_find(&e->qps, qpn);

	return qp && qp->alive.lost;
}

void roci_qp_keepalive(struct roci_qp *qp, uint64_t now, uint64_t interval_ns)
{
	roci_engine_clock(qp->e, now);
	qp->alive.lost = false;
	qp->alive.interval = interval_ns;
	roci_keepalive_rx(qp);
	arm(qp, interval_ns ? now + interval_ns : ROCI_TIMER_OFF);
}
