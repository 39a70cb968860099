/* SPDX-License-Identifier: BSD-2-Clause */
#include "engine/flight.h"

#define ACK_EVERY 8 /* packets between requested acknowledgements; a power of two */

void roci_flight_count(struct roci_qp *qp)
{
	uint64_t flight = roci_send_window_bytes(&qp->req.window);

	qp->path->flight += flight - qp->req.flight;
	qp->req.flight = flight;
}

/* In the order in which they began to wait. */
static void wake_blocked(struct roci_path *path)
{
	while (!roci_list_empty(&path->blocked)) {
		struct roci_qp *qp = roci_container_of(path->blocked.next, struct roci_qp, blocked);

		roci_list_remove(&qp->blocked);
		roci_qp_make_ready(qp);
	}
}

void roci_flight_release(struct roci_qp *qp)
{
	if (!qp->path)
		return;
	roci_flight_count(qp);
	wake_blocked(qp->path);
}

void roci_flight_forget(struct roci_qp *qp)
{
	roci_send_window_forget(&qp->req.window);
	roci_flight_release(qp);
}

bool roci_flight_fits(struct roci_qp *qp, uint64_t bytes)
{
	if (!qp->req.flight || roci_path_fits(qp->path, bytes))
		return true;
	if (roci_list_empty(&qp->blocked))
		roci_list_append(&qp->path->blocked, &qp->blocked);
	return false;
}

bool roci_flight_wants_ack(const struct roci_qp *qp, uint64_t bytes)
{
	return (qp->req.window.next & (ACK_EVERY - 1)) == 0 ||
	       !roci_path_fits(qp->path, bytes + ACK_EVERY * (uint64_t)qp->mtu);
}
