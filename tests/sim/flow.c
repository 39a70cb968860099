/* SPDX-License-Identifier: BSD-2-Clause */
#include "flow.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WRS 8192 /* 512 MiB: more than any line holds */

static void must(int err, const char *what)
{
	if (!err)
		return;
	fprintf(stderr, "%s: %s\n", what, strerror(-err));
	exit(2);
}

static struct roci_av address(const struct flow *f, unsigned s)
{
	struct roci_av av = {
		.sgid = {[10] = 0xff, [11] = 0xff, [12] = 10, [14] = (uint8_t)f->number, [15] = (uint8_t)(1 + s)},
		.dgid = {[10] = 0xff, [11] = 0xff, [12] = 10, [14] = (uint8_t)f->number, [15] = (uint8_t)(2 - s)},
		.mtu = 4096,
		.max_datagram = f->spec.max_datagram,
		.src_port = (uint16_t)(50001 + s),
		.mad_port = ROCI_UDP_PORT,
		.hop_limit = 64,
		.traffic_class = f->spec.traffic_class};

	return av;
}

static bool is_uc(const struct flow *f)
{
	return f->spec.mode == FLOW_UC;
}

static void create_side(struct flow *f, unsigned s)
{
	struct flow_side *x = &f->side[s];
	struct roci_mr_attr mr = {.pd = 1,
				  .key = 0x1234500 + s,
				  .len = FLOW_MESSAGE,
				  .access =
					  ROCI_ACCESS_LOCAL_WRITE | ROCI_ACCESS_REMOTE_WRITE | ROCI_ACCESS_REMOTE_READ};
	struct roci_qp_init init = {.qpn = 100 + s,
				    .secret = f->spec.standard ? 0 : 0x1234567890abcdef + s,
				    .type = is_uc(f) ? ROCI_QPT_UC : ROCI_QPT_RC,
				    .pd = 1,
				    .sq_sig_all = true,
				    .cap = {WRS, WRS, 1, 1, 0}};

	x->flow = f;
	x->index = s;
	x->wake_at = x->disk_at = ROCI_NEVER;
	x->engine = roci_engine_create();
	x->memory = calloc(1, FLOW_MESSAGE);
	if (x->engine)
		roci_engine_early_memory(x->engine, FLOW_EARLY);
	if (!x->engine || !x->memory)
		must(-ENOMEM, "flow");
	mr.base = x->memory;
	mr.iova = (uintptr_t)x->memory;
	x->key = mr.key;
	must(roci_cq_create(x->engine, 2 * WRS, NULL, &x->cq), "roci_cq_create");
	must(roci_mr_create(x->engine, &mr, &x->mr), "roci_mr_create");
	init.send_cq = init.recv_cq = x->cq;
	must(roci_qp_create(x->engine, &init, &x->qp), "roci_qp_create");
}

static void connect_side(struct flow *f, unsigned s, uint64_t now)
{
	struct roci_qp *qp = f->side[s].qp;
	struct roci_qp_attr a = {.state = ROCI_QPS_INIT,
				 .port_num = 1,
				 .access = ROCI_ACCESS_LOCAL_WRITE | ROCI_ACCESS_REMOTE_WRITE | ROCI_ACCESS_REMOTE_READ,
				 .path_mtu = f->spec.mtu,
				 .dest_qpn = 101 - s,
				 .rq_psn = 0xfff000,
				 .sq_psn = 0xfff000,
				 .timeout = f->spec.timeout,
				 .retry_cnt = 7,
				 .rnr_retry = 7,
				 .min_rnr_timer = 12,
				 .max_rd_atomic = 16,
				 .max_dest_rd_atomic = 16};

	unsigned rtr = is_uc(f) ? 0 : ROCI_QP_MAX_DEST_RD_ATOMIC | ROCI_QP_MIN_RNR_TIMER;
	unsigned rts =
		is_uc(f) ? 0 : ROCI_QP_TIMEOUT | ROCI_QP_RETRY_CNT | ROCI_QP_RNR_RETRY | ROCI_QP_MAX_QP_RD_ATOMIC;

	a.av = address(f, s);
	must(roci_qp_modify(qp, now, &a, ROCI_QP_STATE | ROCI_QP_PKEY_INDEX | ROCI_QP_PORT | ROCI_QP_ACCESS_FLAGS),
	     "INIT");
	a.state = ROCI_QPS_RTR;
	must(roci_qp_modify(qp, now, &a,
			    ROCI_QP_STATE | ROCI_QP_AV | ROCI_QP_PATH_MTU | ROCI_QP_DEST_QPN | ROCI_QP_RQ_PSN | rtr),
	     "RTR");
	a.state = ROCI_QPS_RTS;
	must(roci_qp_modify(qp, now, &a, ROCI_QP_STATE | ROCI_QP_SQ_PSN | rts), "RTS");
}

static void post_recv(struct flow_side *s)
{
	struct roci_sge sge = {(uintptr_t)s->memory, FLOW_MESSAGE, s->key};
	struct roci_recv_wr wr = {.sges = &sge, .num_sge = 1};

	must(roci_qp_post_recv(s->qp, &wr), "roci_qp_post_recv");
}

static uint64_t disk_ns(const struct flow_side *s)
{
	return FLOW_MESSAGE * 8 * UINT64_C(1000000000) / s->flow->spec.disk_bps;
}

/* What was written can be received into again. */
static void write_out(struct flow_side *s, uint64_t now)
{
	while (s->disk_at <= now) {
		post_recv(s);
		s->disk_at = --s->full ? s->disk_at + disk_ns(s) : ROCI_NEVER;
	}
}

static void post_sends(struct flow_side *s)
{
	static const enum roci_wr_opcode opcodes[] = {ROCI_WR_RDMA_WRITE, ROCI_WR_SEND, ROCI_WR_RDMA_READ,
						      ROCI_WR_RDMA_WRITE};
	struct flow *f = s->flow;
	struct roci_sge sge = {(uintptr_t)s->memory, FLOW_MESSAGE, s->key};
	struct roci_send_wr wr = {.opcode = opcodes[f->spec.mode],
				  .sges = &sge,
				  .num_sge = 1,
				  .remote_addr = (uintptr_t)f->side[1].memory,
				  .rkey = f->side[1].key};

	while (f->posted - f->done / FLOW_MESSAGE < WRS / 2) {
		must(roci_qp_post_send(s->qp, &wr), "roci_qp_post_send");
		f->posted++;
	}
}

void flow_create(struct flow *f, unsigned number, const struct flow_spec *spec, uint64_t now)
{
	f->number = number;
	f->spec = *spec;
	create_side(f, 0);
	create_side(f, 1);
	connect_side(f, 0, now);
	connect_side(f, 1, now);
	for (unsigned i = 0; i < (spec->disk_bps ? FLOW_DISK_RECVS : WRS) && spec->mode == FLOW_SEND; i++)
		post_recv(&f->side[1]);
	post_sends(&f->side[0]);
}

void flow_destroy(struct flow *f)
{
	for (int s = 0; s < 2; s++) {
		roci_engine_destroy(f->side[s].engine);
		free(f->side[s].memory);
	}
}

static void received(struct flow_side *s, uint64_t now)
{
	if (!s->flow->spec.disk_bps)
		post_recv(s);
	else if (!s->full++)
		s->disk_at = now + disk_ns(s);
}

static void poll(struct flow_side *s, uint64_t now)
{
	struct roci_cqe cqe;

	while (roci_cq_poll(s->cq, &cqe, 1)) {
		if (cqe.status != ROCI_WC_SUCCESS)
			s->flow->failed_at = s->flow->failed_at ? s->flow->failed_at : now;
		else if (s->index)
			received(s, now);
		else
			s->flow->done += FLOW_MESSAGE;
	}
	if (!s->index && !s->flow->failed_at)
		post_sends(s);
}

static void send_batch(struct flow_side *s, const struct roci_tx_batch *batch)
{
	struct flow *f = s->flow;

	if (s->index == (f->spec.mode == FLOW_READ)) {
		f->batches++;
		f->packets += batch->count;
	}
	for (unsigned i = 0; i < batch->count; i++) {
		const struct roci_tx_packet *tx = &batch->packets[i];

		f->send(f, s, tx, batch->spans,
			tx->header_len + tx->payload_len + roci_pad_bytes(tx->payload_len) + ROCI_ICRC_BYTES +
				FLOW_WIRE_BYTES);
	}
}

void flow_pump(struct flow_side *s, uint64_t now)
{
	static struct roci_tx_batch batch;
	bool sent;

	write_out(s, now);
	do {
		poll(s, now);
		sent = false;
		while (roci_engine_tx(s->engine, now, &batch)) {
			send_batch(s, &batch);
			roci_engine_tx_done(s->engine, now);
			sent = true;
		}
	} while (sent);
	poll(s, now);
}

void flow_receive(const struct flow_packet *p, uint64_t now)
{
	struct flow_side *s = p->to;
	struct roci_av av = address(s->flow, 1 - s->index);
	struct roci_rx rx = {.src_port = p->src_port, .hop_limit = 64, .traffic_class = p->ce ? 3 : 0};

	if (roci_packet_parse_headers(&rx.pkt, p->header, p->header_len, p->payload_len) != ROCI_PARSE_OK)
		must(-EPROTO, "roci_packet_parse_headers");
	rx.pkt.payload = p->payload;
	memcpy(rx.sgid, av.sgid, 16);
	memcpy(rx.dgid, av.dgid, 16);
	roci_engine_rx(s->engine, now, &rx);
}
