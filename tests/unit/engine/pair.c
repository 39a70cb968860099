/* SPDX-License-Identifier: BSD-2-Clause */
#include "pair.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "engine/qp.h"
#include "wire/nat.h"

static const uint8_t gid[2][16] = {
	{[10] = 0xff, [11] = 0xff, [12] = 10, [15] = 1},
	{[10] = 0xff, [11] = 0xff, [12] = 10, [15] = 2},
};

struct pair_options pair_defaults(void)
{
	uint32_t all = ROCI_ACCESS_LOCAL_WRITE | ROCI_ACCESS_REMOTE_WRITE | ROCI_ACCESS_REMOTE_READ |
		       ROCI_ACCESS_REMOTE_ATOMIC;

	return (struct pair_options){.type = ROCI_QPT_RC,
				     .timeout = 14,
				     .retry_cnt = 7,
				     .rnr_retry = 7,
				     .min_rnr_timer = 12,
				     .max_rd_atomic = 4,
				     .access = all,
				     .mr_access = all | ROCI_ACCESS_MW_BIND,
				     .psn = 0xfffffe,
				     .sig_all = true};
}

static struct roci_av address(int s, bool ipv6)
{
	struct roci_av av = {
		.mtu = 4096, .src_port = (uint16_t)(0xc001 + s), .mad_port = ROCI_UDP_PORT, .hop_limit = 64};

	memcpy(av.sgid, gid[s], 16);
	memcpy(av.dgid, gid[1 - s], 16);
	if (ipv6)
		av.sgid[0] = av.dgid[0] = 0xfd;
	return av;
}

static void create_srq(struct pair_side *x, uint32_t pd)
{
	struct roci_mr_attr mr = {.pd = pd,
				  .key = 0x5432100,
				  .base = x->memory,
				  .iova = (uintptr_t)x->memory,
				  .len = PAIR_MEMORY,
				  .access = ROCI_ACCESS_LOCAL_WRITE};
	struct roci_mr *unused;

	assert_int_equal(roci_srq_create(x->e, pd, 64, 4, NULL, &x->srq), 0);
	assert_int_equal(roci_mr_create(x->e, &mr, &unused), 0);
	x->recv_key = mr.key;
}

static void create_side(struct pair *p, int s, const struct pair_options *o)
{
	struct pair_side *x = &p->side[s];
	struct roci_mr_attr mr = {.pd = 1,
				  .key = 0x1234500u + (uint32_t)s,
				  .base = x->memory,
				  .iova = (uintptr_t)x->memory,
				  .len = PAIR_MEMORY,
				  .access = o->mr_access};
	struct roci_qp_init init = {.qpn = 100 + (uint32_t)s,
				    .secret = o->secret ? o->secret + (unsigned)s : 0,
				    .type = o->type,
				    .pd = 1,
				    .sq_sig_all = o->sig_all,
				    .cap = {64, 64, 4, 4, 64}};

	x->e = roci_engine_create();
	assert_non_null(x->e);
	assert_int_equal(roci_cq_create(x->e, 256, NULL, &x->cq), 0);
	assert_int_equal(roci_mr_create(x->e, &mr, &x->mr), 0);
	x->key = x->recv_key = mr.key;
	if (s == 1 && o->srq_pd)
		create_srq(x, o->srq_pd);
	init.srq = x->srq;
	init.send_cq = init.recv_cq = x->cq;
	assert_int_equal(roci_qp_create(x->e, &init, &x->qp), 0);
}

static void cross_nat(struct pair *p, int s, const struct pair_place *nat)
{
	const struct roci_nat_key key = {{2, 1}};
	struct roci_nat_terms terms = {.token = PAIR_TOKEN,
				       .cookie = roci_nat_cookie(&key, p->now, nat->gid, nat->port),
				       .port = s ? nat->port : 0};
	struct roci_av hidden = address(0, false);

	if (s) {
		memcpy(terms.src, hidden.sgid, 16);
		memcpy(terms.dst, hidden.dgid, 16);
	}
	roci_engine_nat_key(p->side[s].e, &key);
	assert_int_equal(roci_qp_cross_nat(p->side[s].qp, &terms), 0);
}

static void connect_side(struct pair *p, int s, const struct pair_options *o)
{
	struct roci_qp_attr a = {.state = ROCI_QPS_INIT,
				 .port_num = 1,
				 .access = o->access,
				 .qkey = 17,
				 .path_mtu = o->path_mtu ? o->path_mtu : 1,
				 .dest_qpn = 101 - (uint32_t)s,
				 .rq_psn = o->psn,
				 .sq_psn = o->psn,
				 .timeout = (uint8_t)o->timeout,
				 .retry_cnt = (uint8_t)o->retry_cnt,
				 .rnr_retry = (uint8_t)o->rnr_retry,
				 .min_rnr_timer = (uint8_t)o->min_rnr_timer,
				 .max_rd_atomic = (uint8_t)o->max_rd_atomic,
				 .max_dest_rd_atomic = (uint8_t)o->max_rd_atomic};
	unsigned conn = o->type == ROCI_QPT_UD ? 0 : ROCI_QP_AV | ROCI_QP_PATH_MTU | ROCI_QP_DEST_QPN | ROCI_QP_RQ_PSN;
	unsigned rtr = o->type == ROCI_QPT_RC ? ROCI_QP_MAX_DEST_RD_ATOMIC | ROCI_QP_MIN_RNR_TIMER : 0;
	unsigned rts = o->type == ROCI_QPT_RC
			       ? ROCI_QP_TIMEOUT | ROCI_QP_RETRY_CNT | ROCI_QP_RNR_RETRY | ROCI_QP_MAX_QP_RD_ATOMIC
			       : 0;
	struct roci_qp *qp = p->side[s].qp;

	a.av = address(s, o->ipv6);
	a.av.traffic_class = o->traffic_class;
	a.av.local = o->local;
	if (s == 1 && o->nat.port)
		memcpy(a.av.dgid, o->nat.gid, 16);
	assert_int_equal(roci_qp_modify(qp, p->now, &a,
					ROCI_QP_STATE | ROCI_QP_PKEY_INDEX | ROCI_QP_PORT |
						(o->type == ROCI_QPT_UD ? ROCI_QP_QKEY : ROCI_QP_ACCESS_FLAGS)),
			 0);
	a.state = ROCI_QPS_RTR;
	if (o->nat.port)
		cross_nat(p, s, &o->nat);
	assert_int_equal(roci_qp_modify(qp, p->now, &a, ROCI_QP_STATE | conn | rtr), 0);
	a.state = ROCI_QPS_RTS;
	assert_int_equal(roci_qp_modify(qp, p->now, &a, ROCI_QP_STATE | ROCI_QP_SQ_PSN | rts), 0);
}

struct roci_far {
	const struct roci_span *spans;
	unsigned count;
};

/* Takes the payload from where the sender has it. */
static int fetch(void *driver, const struct roci_far *far, const struct roci_span *to, unsigned count, bool last)
{
	const struct pair_side *side = driver;
	const struct pair *p = side->pair;
	const char *from = far->spans[0].base;

	if (p->unmapped)
		return -EFAULT;
	if (p->gone)
		return -1;
	assert_int_equal(far->count, 1);
	for (unsigned i = 0; i < count; i++) {
		memcpy(to[i].base, from, to[i].len);
		from += to[i].len;
	}
	assert_ptr_equal(from, (const char *)far->spans[0].base + far->spans[0].len);
	return 0;
}

static void take_back(void *driver, uint16_t local, uint32_t dest_qpn)
{
	struct pair_side *side = driver;
	struct roci_cqe cqe;

	assert_int_equal(local, 1);
	if (!side->taken_back++ && side->watched)
		side->completed_before = roci_cq_poll(side->cq, &cqe, 1);
}

static void close_window(void *driver, const void *base, uint64_t len)
{
	struct pair_side *side = driver;

	side->windows_closed++;
	side->closed = (struct roci_span){(void *)(uintptr_t)base, len};
}

static bool may_read(void *driver, const struct roci_span *spans, unsigned count)
{
	const struct pair_side *side = driver;

	return !side->pair->unreadable;
}

static const struct roci_local_calls calls = {fetch, may_read, take_back, close_window};

struct pair *pair_create(const struct pair_options *o)
{
	struct pair *p = aligned_alloc(64, sizeof(*p));

	assert_non_null(p);
	memset(p, 0, sizeof(*p));
	p->type = o->type;
	p->now = 1000000;
	p->local = o->local;
	p->nat = o->nat;
	for (int s = 0; s < 2; s++) {
		create_side(p, s, o);
		p->side[s].pair = p;
		roci_engine_fetch_by(p->side[s].e, &calls, &p->side[s]);
	}
	for (int s = 0; s < 2; s++)
		connect_side(p, s, o);
	return p;
}

void pair_free(struct pair *p)
{
	roci_engine_destroy(p->side[0].e);
	roci_engine_destroy(p->side[1].e);
	free(p);
}

static bool same_flow(const struct roci_flow *a, const struct roci_flow *b)
{
	return !memcmp(a->src, b->src, 16) && !memcmp(a->dst, b->dst, 16) && a->src_port == b->src_port &&
	       a->dst_port == b->dst_port;
}

/* What the NAT does to a packet, and the receiver with its ICRC. False: it is lost. */
static bool through_nat(struct pair *p, int from, const struct roci_av *av, struct roci_rx *rx)
{
	struct roci_av hidden = address(0, false);
	struct roci_flow out, in;

	roci_nat_flow(&out, hidden.sgid, hidden.dgid);
	roci_nat_flow(&in, hidden.dgid, hidden.sgid);
	assert_int_equal(av->src_port, ROCI_UDP_PORT);
	if (from == 1) {
		if (memcmp(av->dgid, p->nat.gid, 16) || av->nat->port != p->nat.port)
			return false;
		assert_true(same_flow(&av->nat->flow, &in));
		memcpy(rx->dgid, hidden.sgid, 16);
		return true;
	}
	assert_null(av->nat);
	assert_true(same_flow(roci_engine_nat_flow(p->side[1].e, 101), &out));
	memcpy(rx->sgid, p->nat.gid, 16);
	rx->src_port = p->nat.port;
	return true;
}

/* As a link does: the packet becomes bytes, which the other side parses. */
static void deliver(struct pair *p, int from, const struct roci_tx_batch *b, const struct roci_tx_packet *tx)
{
	uint8_t bytes[ROCI_MAX_HEADER_BYTES + 4096 + 8];
	size_t len = tx->header_len;
	struct roci_rx rx = {.src_port = p->port[from] ? p->port[from] : tx->av->src_port,
			     .hop_limit = 64,
			     .congested = p->congested};

	memset(bytes, 0, sizeof(bytes));
	memcpy(bytes, tx->header, len);
	for (unsigned i = 0; i < tx->span_count; i++) {
		const struct roci_span *s = &b->spans[tx->first_span + i];

		memcpy(bytes + len, s->base, s->len);
		len += s->len;
	}
	assert_int_equal(len, tx->header_len + tx->payload_len);
	len += roci_pad_bytes(tx->payload_len) + ROCI_ICRC_BYTES;
	assert_int_equal(roci_packet_parse(&rx.pkt, bytes, len), ROCI_PARSE_OK);
	memcpy(rx.sgid, tx->av->sgid, 16);
	memcpy(rx.dgid, tx->av->dgid, 16);
	p->sent[from]++;
	p->copied[from] += tx->copy_payload;
	p->tx = tx;
	if (p->filter && !p->filter(p, from, &rx.pkt)) {
		p->dropped++;
		return;
	}
	if (p->nat.port && !through_nat(p, from, tx->av, &rx))
		p->nat_lost++;
	else if (rx.pkt.op->kind == ROCI_KIND_HELLO)
		roci_engine_rx_hello(p->side[1 - from].e, p->now, &rx);
	else
		roci_engine_rx(p->side[1 - from].e, p->now, &rx);
}

/* As the local link does: payload stays where it is. */
static void deliver_local(struct pair *p, int from, const struct roci_tx_batch *b, const struct roci_tx_packet *tx)
{
	struct roci_far far = {b->spans + tx->first_span, tx->span_count};
	struct roci_rx rx = {.local = 1};

	assert_int_equal(roci_packet_parse_headers(&rx.pkt, tx->header, tx->header_len, tx->payload_len),
			 ROCI_PARSE_OK);
	if (tx->payload_len)
		rx.pkt.far = &far;
	p->sent[from]++;
	p->tx = tx;
	if (p->filter && !p->filter(p, from, &rx.pkt)) {
		p->dropped++;
		return;
	}
	roci_engine_rx(p->side[1 - from].e, p->now, &rx);
}

void pair_carry(struct pair *p, int from, const struct roci_tx_batch *batch)
{
	for (unsigned i = 0; i < batch->count; i++)
		(p->local ? deliver_local : deliver)(p, from, batch, &batch->packets[i]);
}

bool pair_turn(struct pair *p, int from)
{
	static struct roci_tx_batch batch;
	struct roci_engine *e = p->side[from].e;

	if (!roci_engine_tx(e, p->now, &batch))
		return false;
	pair_carry(p, from, &batch);
	roci_engine_tx_done(e, p->now);
	return true;
}

void pair_drain(struct pair *p, int from)
{
	roci_engine_timers(p->side[from].e, p->now);
	while (pair_turn(p, from))
		;
}

void pair_round_trip(struct pair *p)
{
	for (unsigned i = 0; i < 100; i++) {
		pair_drain(p, 0);
		p->now += 100000;
	}
	pair_drain(p, 1);
	p->now += 10000000;
}

void pair_run(struct pair *p)
{
	for (int quiet = 0, s = 0, n = 0; quiet < 2; s = 1 - s, n++) {
		quiet = pair_turn(p, s) ? 0 : quiet + 1;
		assert_true(n < 100000);
	}
}

void pair_run_until(struct pair *p, uint64_t until)
{
	for (int n = 0; n < 100000; n++) {
		uint64_t a, b;

		pair_run(p);
		a = roci_engine_deadline(p->side[0].e);
		b = roci_engine_deadline(p->side[1].e);
		if (b < a)
			a = b;
		if (a > until)
			return;
		p->now = a;
		roci_engine_timers(p->side[0].e, p->now);
		roci_engine_timers(p->side[1].e, p->now);
	}
	fail_msg("no end");
}

int pair_send(struct pair *p, int s, enum roci_wr_opcode op, uint64_t wr_id, uint32_t offset, uint32_t len,
	      uint32_t remote)
{
	struct roci_sge sge = {(uintptr_t)p->side[s].memory + offset, len, p->side[s].key};
	struct roci_av av = address(s, false);
	struct roci_send_wr wr = {.wr_id = wr_id,
				  .opcode = op,
				  .sges = &sge,
				  .num_sge = len ? 1 : 0,
				  .imm = 0x01020304,
				  .remote_addr = (uintptr_t)p->side[1 - s].memory + remote,
				  .rkey = p->side[1 - s].key,
				  .compare_add = 5,
				  .swap = 9,
				  .av = &av,
				  .remote_qpn = 101 - (uint32_t)s,
				  .remote_qkey = 17};

	return roci_qp_post_send(p->side[s].qp, &wr);
}

int pair_recv(struct pair *p, int s, uint64_t wr_id, uint32_t offset, uint32_t len)
{
	struct pair_side *x = &p->side[s];
	struct roci_sge sge = {(uintptr_t)x->memory + offset, len, x->recv_key};
	struct roci_recv_wr wr = {wr_id, &sge, 1};

	return x->srq ? roci_srq_post(x->srq, &wr) : roci_qp_post_recv(x->qp, &wr);
}

void pair_inject(struct pair *p, int to, struct roci_packet pkt)
{
	const struct roci_qp *qp = p->side[to].qp;
	struct roci_rx rx = {.src_port = qp->peer.port, .hop_limit = 64};

	pkt.op = roci_opcode_info(pkt.opcode);
	pkt.pkey = ROCI_PKEY_DEFAULT;
	pkt.dest_qpn = qp->qpn;
	pkt.psn &= ROCI_PSN_MASK;
	rx.pkt = pkt;
	memcpy(rx.sgid, qp->attr.av.dgid, 16);
	memcpy(rx.dgid, qp->attr.av.sgid, 16);
	roci_engine_rx(p->side[to].e, p->now, &rx);
}

void pair_expect(struct pair *p, int s, uint64_t wr_id, enum roci_wc_status status)
{
	struct roci_cqe cqe;

	assert_int_equal(roci_cq_poll(p->side[s].cq, &cqe, 1), 1);
	assert_int_equal(cqe.wr_id, wr_id);
	assert_int_equal(cqe.status, status);
}

void pair_expect_nothing(struct pair *p, int s)
{
	struct roci_cqe cqe;

	assert_int_equal(roci_cq_poll(p->side[s].cq, &cqe, 1), 0);
}
