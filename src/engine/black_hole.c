/* SPDX-License-Identifier: BSD-2-Clause */
#include "engine/black_hole.h"

#include <string.h>

#include "engine/qp.h"
#include "engine/requester.h"
#include "wire/gid.h"
#include "wire/mtu.h"

/* UDP payload of a packet with so many bytes of payload, and never more than `full`, at most. */
static uint32_t datagram_bytes(uint64_t payload, uint32_t full)
{
	return ROCI_MTU_HEADER_BYTES + (uint32_t)(payload < full ? payload : full);
}

/* Of the oldest packet that is not acknowledged; 0: there is none, or it has no payload. */
static uint32_t oldest_bytes(const struct roci_qp *qp)
{
	const struct roci_swqe *w = roci_sq_at(&qp->sq, qp->sq.head);
	uint32_t into, full = roci_swqe_full(qp, w);

	if (qp->sq.head == qp->sq.started || w->done || roci_swqe_needs_response(w))
		return 0;
	into = (uint32_t)roci_psn_diff(qp->req.window.una, w->first_psn);
	return into < w->packets ? datagram_bytes(w->length - (uint64_t)into * full, full) : 0;
}

static bool is_ipv4(const struct roci_qp *qp)
{
	return roci_gid_is_ipv4(qp->attr.av.dgid);
}

static uint32_t carries(const struct roci_qp *qp, uint32_t bytes)
{
	const struct roci_av *av = &qp->attr.av;

	if (roci_qp_is_local(qp))
		return 0;
	/* A packet that goes in fragments or pieces of that size already does not show more. */
	if (av->max_datagram && bytes > av->max_datagram && (is_ipv4(qp) || av->pieces))
		bytes = av->max_datagram;
	return roci_black_hole_carries(bytes, is_ipv4(qp));
}

void roci_black_hole_follow(struct roci_qp *qp)
{
	struct roci_av *av = &qp->attr.av;

	if (!qp->path)
		return;
	if (qp->path->carries && (!av->max_datagram || qp->path->carries < av->max_datagram))
		av->max_datagram = qp->path->carries;
	av->pieces = qp->path->pieces;
}

/* Over IPv6 any peer does, but the kernel makes none where it believes the packet to fit: then the driver says so. */
static bool takes_fragments(const struct roci_qp *qp)
{
	return qp->path->ours || !is_ipv4(qp);
}

static void tell(struct roci_qp *qp, uint32_t bytes)
{
	if (qp->path->suspected)
		return;
	qp->path->suspected = true;
	qp->e->stats->black_holes++;
	ROCI_WHY_TELL(
		"QP 0x%x: packets of %u bytes do not arrive at its peer, and shorter ones do: a router on the way "
		"has a smaller MTU, or many packets are lost. path_mtu %u is too large%s",
		qp->qpn, bytes, qp->mtu,
		takes_fragments(qp) ? "" : "; the peer is no Rocinante, so they do not go in IP fragments");
}

static void path_carries(struct roci_engine *e, struct roci_path *path, uint32_t bytes)
{
	path->carries = bytes;
	for (struct roci_list *l = e->all_qps.next; l != &e->all_qps; l = l->next) {
		struct roci_qp *qp = roci_container_of(l, struct roci_qp, all);

		if (qp->path == path)
			roci_black_hole_follow(qp);
	}
}

void roci_engine_path_carries(struct roci_engine *e, const uint8_t dgid[16], uint32_t bytes)
{
	for (struct roci_list *l = e->paths.next; l != &e->paths; l = l->next) {
		struct roci_path *path = roci_container_of(l, struct roci_path, all);

		if (!path->fixed && !path->inbound && !memcmp(path->dgid, dgid, 16) &&
		    (!path->carries || bytes < path->carries))
			path_carries(e, path, bytes);
	}
}

static void found(struct roci_qp *qp, uint32_t bytes)
{
	tell(qp, bytes);
	qp->path->pieces = qp->path->ours && !is_ipv4(qp);
	if (takes_fragments(qp))
		path_carries(qp->e, qp->path, carries(qp, bytes));
}

bool roci_black_hole_may_be(const struct roci_qp *qp)
{
	uint32_t bytes = oldest_bytes(qp);

	return bytes && carries(qp, bytes);
}

void roci_black_hole_passed(struct roci_qp *qp, const struct roci_swqe *w)
{
	uint32_t bytes = datagram_bytes(w->length, roci_swqe_full(qp, w));

	if (bytes > qp->path->proven)
		qp->path->proven = bytes;
}

/* The packet `psn` of `bytes` is missing once more. */
static void missing(struct roci_qp *qp, struct roci_black_hole *hole, uint32_t psn, uint32_t bytes, unsigned most)
{
	if (roci_black_hole_counts(hole, psn, most))
		found(qp, bytes);
	else if (hole->times >= ROCI_BLACK_HOLE_ASKS && !qp->path->ours)
		roci_selective_ask(qp);
}

void roci_black_hole_request(struct roci_qp *qp)
{
	uint32_t bytes = oldest_bytes(qp);
	unsigned most = bytes > qp->path->proven ? ROCI_BLACK_HOLE_ANSWERS : ROCI_BLACK_HOLE_PROVEN;

	if (roci_black_hole_may_be(qp))
		missing(qp, &qp->req.hole, qp->req.window.una, bytes, most);
}

void roci_black_hole_response(struct roci_qp *qp, uint32_t psn, uint32_t len)
{
	uint32_t bytes = datagram_bytes(len, qp->mtu);

	if (len && carries(qp, bytes))
		missing(qp, &qp->resp.hole, psn, bytes, ROCI_BLACK_HOLE_REQUESTS);
}
