/* SPDX-License-Identifier: BSD-2-Clause */
#include "engine/ud.h"

#include <string.h>

#include "engine/qp.h"
#include "engine/service.h"
#include "engine/sgl.h"
#include "engine/why.h"
#include "wire/gid.h"
#include "wire/ip.h"

#define SL_IPV4 2 /* RoCE drivers report this in wc.sl for an IPv4 datagram; UCX reads it */

/* The first 40 bytes of a UD receive (IBTA A17.4.5.2): the IPv6 header, or 20 bytes of zero and the IPv4 header. */
static void make_grh(uint8_t grh[ROCI_GRH_BYTES], const struct roci_rx *rx)
{
	const struct roci_ip ip = {
		.src = rx->sgid,
		.dst = rx->dgid,
		.traffic_class = rx->traffic_class,
		.hop_limit = rx->hop_limit,
		.udp_len = (uint16_t)(ROCI_UDP_BYTES + rx->pkt.op->header_bytes + rx->pkt.payload_len +
				      roci_pad_bytes(rx->pkt.payload_len) + ROCI_ICRC_BYTES),
	};
	bool ipv4 = roci_gid_is_ipv4(rx->dgid);
	uint8_t *at = ipv4 ? grh + ROCI_GRH_BYTES - ROCI_IPV4_BYTES : grh;

	memset(grh, 0, ROCI_GRH_BYTES);
	roci_ip_build(&ip, at);
	if (ipv4)
		roci_ipv4_put_checksum(at);
}

static bool place(struct roci_qp *qp, const struct roci_rx *rx)
{
	struct roci_sgl sgl = {qp->resp.rwqe->sges, qp->resp.rwqe->num_sge};
	uint32_t pd = roci_qp_receive_pd(qp);
	uint8_t grh[ROCI_GRH_BYTES];

	make_grh(grh, rx);
	return !roci_sgl_scatter(qp->e, pd, &sgl, 0, grh, ROCI_GRH_BYTES, false) &&
	       !roci_sgl_scatter(qp->e, pd, &sgl, ROCI_GRH_BYTES, rx->pkt.payload, rx->pkt.payload_len, true);
}

/* After a note, which says why. */
static void tell_dropped(struct roci_qp *qp, const struct roci_rx *rx)
{
	ROCI_WHY_TELL_PACED(&qp->why, qp->e->now, "QP 0x%x drops a datagram of QP 0x%x%s", qp->qpn, rx->pkt.src_qpn,
			    rx->pkt.dest_qpn == ROCI_QPN_MULTICAST ? " to a multicast group" : "");
}

void roci_ud_rx(struct roci_qp *qp, const struct roci_rx *rx)
{
	const struct roci_packet *p = &rx->pkt;
	struct roci_cqe cqe = {.opcode = ROCI_WC_RECV,
			       .src_qpn = p->src_qpn,
			       .flags = ROCI_WC_GRH,
			       .byte_len = ROCI_GRH_BYTES + p->payload_len};
	struct roci_sgl sgl;

	if (!roci_qp_receives(qp)) {
		qp->e->stats->rx_wrong_state++;
		return;
	}
	if (p->qkey != qp->attr.qkey) { /* IBTA 9.6.1.4.2.3 */
		qp->e->stats->rx_bad_qkey++;
		ROCI_WHY("its Q_Key is 0x%x, and this QP's 0x%x", p->qkey, qp->attr.qkey);
		tell_dropped(qp, rx);
		return;
	}
	if (!roci_qp_take_receive(qp)) {
		qp->e->stats->rx_no_wqe++;
		ROCI_WHY("no receive is posted%s", qp->srq ? " to the SRQ" : "");
		tell_dropped(qp, rx);
		return;
	}
	sgl = (struct roci_sgl){qp->resp.rwqe->sges, qp->resp.rwqe->num_sge};
	/* A datagram that does not fit is dropped, and the receive waits for the next one (IBTA 9.9.3.1 class D). */
	if (roci_sgl_len(&sgl) < cqe.byte_len) {
		qp->e->stats->rx_no_wqe++;
		ROCI_WHY("it needs %u bytes with the %u of its GRH, and the receive (wr_id 0x%llx) has room for %llu",
			 cqe.byte_len, ROCI_GRH_BYTES, (unsigned long long)qp->resp.rwqe->wr_id,
			 (unsigned long long)roci_sgl_len(&sgl));
		tell_dropped(qp, rx);
		return;
	}
	if (roci_gid_is_ipv4(rx->dgid))
		cqe.sl = SL_IPV4;
	if (p->op->headers & 1u << ROCI_HDR_IMMDT) {
		cqe.flags |= ROCI_WC_WITH_IMM;
		cqe.imm = p->imm;
	}
	if (!place(qp, rx)) {
		ROCI_WHY_TELL("QP 0x%x: a receive completes with %s", qp->qpn,
			      roci_wc_status_name(ROCI_WC_LOC_PROT_ERR));
		cqe.status = ROCI_WC_LOC_PROT_ERR;
		roci_qp_complete_receive(qp, &cqe, false);
		roci_qp_error(qp, -1);
		return;
	}
	roci_qp_complete_receive(qp, &cqe, p->solicited);
}

/* ---- the service: nothing is acknowledged, and nothing paces a sender ---- */

static bool may_send(struct roci_qp *qp, uint64_t bytes)
{
	return true;
}

static bool wants_ack(const struct roci_qp *qp, const struct roci_swqe *w, uint64_t bytes)
{
	return false;
}

static void sent(struct roci_qp *qp, const struct roci_swqe *w, uint32_t packets, bool ack)
{
	roci_send_window_sent(&qp->req.window, packets, 0);
	roci_send_window_forget(&qp->req.window);
}

static void no_timer(struct roci_qp *qp)
{
}

const struct roci_service roci_service_ud = {
	.transport = ROCI_TRANSPORT_UD,
	.is_datagram = true,
	.rx = roci_ud_rx,
	.may_send = may_send,
	.wants_ack = wants_ack,
	.sent = sent,
	.start_timer = no_timer,
	.silence = no_timer,
	.failed = roci_qp_send_queue_error,
};
