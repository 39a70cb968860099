/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An engine with four QPs and a hostile peer, all led by a script of bytes. The peer knows all QPNs, PSNs, keys and
 * addresses, and sends right ICRCs: any opcode, at and around all PSNs that matter, with wrong lengths and addresses. A
 * stranger knows as much, but sends from an address of its own. Meanwhile the program does in any order what programs
 * may do: posts, polls, deregisters memory, changes states, destroys. The engine must access registered memory only. No
 * request may complete twice or out of order, a QP that fails flushes all requests, and the stranger changes nothing.
 *
 * With -DROCI_LIBFUZZER and -fsanitize=fuzzer this is a libFuzzer target. Without them it is a program that draws its
 * scripts at random: fuzz_engine [iterations [seed]].
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/cq.h"
#include "engine/qp.h"
#include "engine_steps.h"
#include "script.h"
#include "seeded.h"
#include "wire/mtu.h"

enum { SLOTS = 4, REGION = 3000, RECEIVES = 16, SENDS = 16 };

#define PD         1
#define QKEY       17
#define MTU        256
#define LONGER     384 /* bytes that the interface of slot 0 has room for (plpmtu.h) */
#define SECRET     UINT64_C(0x1234567890abcdef)
#define FIRST_QPN  0x4000u
#define REGION_KEY 0x1000u
#define WINDOW_KEY 0x2000u

static const uint8_t here[16] = {[10] = 0xff, [11] = 0xff, 10, 0, 0, 1};
static const uint8_t peer[16] = {[10] = 0xff, [11] = 0xff, 10, 0, 0, 2};
static const uint8_t stranger[16] = {[10] = 0xff, [11] = 0xff, 10, 0, 0, 3};

/* A queue's work requests are numbered as they are posted. */
struct numbers {
	uint64_t posted, completed;
};

struct slot {
	struct roci_qp *qp;
	enum roci_qp_type type;
	struct numbers send, recv;
};

static struct {
	uint64_t now;
	struct roci_engine *e;
	struct roci_cq *cq;
	struct roci_srq *srq; /* of slot 1 */
	struct roci_mr *mr[2];
	struct roci_mw *mw;
	uint8_t *memory[2];
	struct slot slots[SLOTS];
} world;

static unsigned long completions[32], naks, longer; /* of all runs, to see that the fuzzer gets far enough */

/* ---- the program's objects ---- */

static void make_region(int i)
{
	static const uint32_t access[2] = {ROCI_ACCESS_LOCAL_WRITE | ROCI_ACCESS_REMOTE_WRITE |
						   ROCI_ACCESS_REMOTE_READ | ROCI_ACCESS_REMOTE_ATOMIC |
						   ROCI_ACCESS_MW_BIND | ROCI_ACCESS_FLUSH_GLOBAL,
					   ROCI_ACCESS_REMOTE_READ};
	struct roci_mr_attr attr = {
		.pd = PD, .key = REGION_KEY + ((uint32_t)i << 8), .len = REGION, .access = access[i]};

	world.memory[i] = calloc(1, REGION); /* an allocation of its own, so that a sanitizer sees an overrun */
	CHECK(world.memory[i]);
	attr.base = world.memory[i];
	attr.iova = (uintptr_t)world.memory[i];
	CHECK(!roci_mr_create(world.e, &attr, &world.mr[i]));
}

static void take_region_away(int i)
{
	if (roci_mr_destroy(world.mr[i]))
		return; /* a window is bound there */
	free(world.memory[i]);
	make_region(i);
}

static void connect(struct slot *s)
{
	bool rc = s->type == ROCI_QPT_RC, ud = s->type == ROCI_QPT_UD;
	struct roci_qp_attr a = {.state = ROCI_QPS_INIT,
				 .port_num = 1,
				 .access = one_in(8) ? 0 : 0xf | ROCI_ACCESS_FLUSH_GLOBAL,
				 .qkey = QKEY,
				 .path_mtu = 1,
				 .dest_qpn = 77,
				 .rq_psn = (uint32_t)ONE_OF(0, 0xfffff0, 1234),
				 .sq_psn = (uint32_t)ONE_OF(0, 0xfffff0, 0x7ffff0),
				 .timeout = (uint8_t)ONE_OF(0, 1, 14),
				 .retry_cnt = (uint8_t)below(8),
				 .rnr_retry = (uint8_t)below(8),
				 .min_rnr_timer = (uint8_t)below(32),
				 .max_rd_atomic = (uint8_t)ONE_OF(0, 1, 4, 16),
				 .max_dest_rd_atomic = (uint8_t)ONE_OF(0, 1, 4, 16),
				 .av = {.mtu = MTU, .src_port = 7, .mad_port = ROCI_UDP_PORT}};

	if (s == world.slots)
		a.av.max_datagram = roci_mtu_datagram_bytes(1) - MTU + LONGER;

	memcpy(a.av.sgid, here, 16);
	memcpy(a.av.dgid, peer, 16);
	CHECK(!roci_qp_modify(s->qp, world.now, &a,
			      ROCI_QP_STATE | ROCI_QP_PKEY_INDEX | ROCI_QP_PORT |
				      (ud ? ROCI_QP_QKEY : ROCI_QP_ACCESS_FLAGS)));
	a.state = ROCI_QPS_RTR;
	CHECK(!roci_qp_modify(s->qp, world.now, &a,
			      ROCI_QP_STATE |
				      (ud ? 0 : ROCI_QP_AV | ROCI_QP_PATH_MTU | ROCI_QP_DEST_QPN | ROCI_QP_RQ_PSN) |
				      (rc ? ROCI_QP_MAX_DEST_RD_ATOMIC | ROCI_QP_MIN_RNR_TIMER : 0)));
	a.state = ROCI_QPS_RTS;
	if (!one_in(8))
		CHECK(!roci_qp_modify(
			s->qp, world.now, &a,
			ROCI_QP_STATE | ROCI_QP_SQ_PSN |
				(rc ? ROCI_QP_TIMEOUT | ROCI_QP_RETRY_CNT | ROCI_QP_RNR_RETRY | ROCI_QP_MAX_QP_RD_ATOMIC
				    : 0)));
}

static void make_qp(struct slot *s)
{
	bool shared = s == &world.slots[1];
	struct roci_qp_init init = {
		.qpn = FIRST_QPN + (uint32_t)(s - world.slots),
		.secret = s == world.slots ? SECRET : 0,
		.type = s->type,
		.pd = PD,
		.send_cq = world.cq,
		.recv_cq = world.cq,
		.srq = shared ? world.srq : NULL,
		.cap = {.max_send_wr = SENDS, .max_recv_wr = RECEIVES, .max_send_sge = 3, .max_recv_sge = 3},
		.sq_sig_all = one_in(2),
		.user = s,
	};

	CHECK(!roci_qp_create(world.e, &init, &s->qp));
	connect(s);
	if (s == world.slots) /* few scripts come so far: a probe is under way */
		roci_plpmtu_sent(&s->qp->req.plpmtu, LONGER);
}

/* Its requests get no completions any more. */
static void forget(struct slot *s)
{
	roci_cq_purge(world.cq, s->qp->qpn);
	s->send.completed = s->send.posted;
	if (!s->qp->srq)
		s->recv.completed = s->recv.posted;
}

/* ---- the program's requests ---- */

static unsigned make_sges(struct roci_sge *sges, unsigned bytes)
{
	unsigned n = 1 + (unsigned)below(3);

	for (unsigned i = 0; i < n; i++) {
		unsigned region = one_in(6), len = i + 1 == n ? bytes : (unsigned)below(bytes + 1);
		size_t at = below(one_in(10) ? REGION + 8 : REGION - len + 1);

		sges[i] = (struct roci_sge){(uintptr_t)world.memory[region] + at, len,
					    one_in(20) ? 0x999 : REGION_KEY + (region << 8)};
		bytes -= len;
	}
	return n;
}

static void post_recv(struct slot *s)
{
	struct roci_sge sges[3];
	struct roci_recv_wr wr = {.wr_id = s->recv.posted + 1, .sges = sges};

	wr.num_sge = make_sges(sges, (unsigned)ONE_OF(0, 8, 40, 100, MTU + 40, 1000));
	if (!(s->qp->srq ? roci_srq_post(world.srq, &wr) : roci_qp_post_recv(s->qp, &wr)))
		s->recv.posted++;
}

static void post_send(struct slot *s)
{
	static const struct roci_av av = {.mtu = MTU};
	enum roci_wr_opcode opcode = (enum roci_wr_opcode)ONE_OF(0, 1, 2, 3, 4, 4, 5, 6, 7, 8, 9, 14, 15);
	bool atomic = opcode == ROCI_WR_ATOMIC_CMP_AND_SWP || opcode == ROCI_WR_ATOMIC_FETCH_AND_ADD ||
		      opcode == ROCI_WR_ATOMIC_WRITE;
	struct roci_sge sges[3];
	struct roci_send_wr wr = {.wr_id = s->send.posted + 1,
				  .opcode = opcode,
				  .flags = (unsigned)below(8),
				  .imm = roci_mw_rkey(world.mw),
				  .sges = sges,
				  .av = &av,
				  .remote_qkey = QKEY};

	wr.num_sge = make_sges(sges, atomic ? 8 : (unsigned)ONE_OF(0, 1, 8, MTU, MTU + 1, 1000, REGION));
	if (opcode == ROCI_WR_FLUSH) {
		wr.num_sge = 0;
		wr.flush.len = below(REGION + 2);
		wr.flush.feth = (uint32_t)ONE_OF(1, 2, 3, 0x11, 0x13);
	}
	if (opcode == ROCI_WR_BIND_MW) {
		wr.num_sge = 0;
		wr.bind.mw = world.mw;
		wr.bind.mr = world.mr[0];
		wr.bind.addr = (uintptr_t)world.memory[0] + below(100);
		wr.bind.len = below(REGION);
		wr.bind.access = ((uint32_t)below(64) & ~1u) | (one_in(2) ? ROCI_ACCESS_FLUSH_GLOBAL : 0);
		wr.bind.rkey = WINDOW_KEY + (uint32_t)below(256);
	}
	if (!roci_qp_post_send(s->qp, &wr))
		s->send.posted++;
}

static void poll(unsigned max)
{
	struct roci_cqe cqe;

	while (max-- && roci_cq_poll(world.cq, &cqe, 1)) {
		struct slot *s = &world.slots[cqe.qpn - FIRST_QPN];
		struct numbers *n = cqe.opcode & ROCI_WC_RECV ? &s->recv : &s->send;

		CHECK(cqe.qpn - FIRST_QPN < SLOTS);
		CHECK(cqe.wr_id > n->completed && cqe.wr_id <= n->posted);
		n->completed = cqe.wr_id;
		completions[cqe.status]++;
	}
}

/* In ERR all requests have completed. Flushed ones have a completion even where they are unsignaled. */
static void check_flushed(struct slot *s)
{
	poll(UINT32_MAX);
	if (roci_cq_overrun(world.cq) || roci_qp_state(s->qp) != ROCI_QPS_ERR)
		return;
	CHECK(s->qp->sq.head == s->qp->sq.tail);
	if (!s->qp->srq)
		CHECK(s->recv.completed == s->recv.posted);
}

static void change(struct slot *s)
{
	struct roci_qp_attr a = {.state = ROCI_QPS_ERR, .en_sqd_async_notify = 1};
	bool error = roci_qp_state(s->qp) == ROCI_QPS_ERR;

	switch (below(error ? 4 : 12)) {
	case 0:
		check_flushed(s);
		forget(s);
		roci_qp_destroy(s->qp);
		make_qp(s);
		break;
	case 1:
	case 2:
		check_flushed(s);
		forget(s);
		a.state = ROCI_QPS_RESET;
		CHECK(!roci_qp_modify(s->qp, world.now, &a, ROCI_QP_STATE));
		connect(s);
		break;
	case 3:
		CHECK(!roci_qp_modify(s->qp, world.now, &a, ROCI_QP_STATE));
		check_flushed(s);
		break;
	case 4:
		a.state = ROCI_QPS_SQD;
		roci_qp_modify(s->qp, world.now, &a, ROCI_QP_STATE | ROCI_QP_EN_SQD_ASYNC_NOTIFY);
		break;
	case 5: roci_qp_keepalive(s->qp, world.now, ONE_OF(0, 1000, 5000000000)); break;
	default: a.state = ROCI_QPS_RTS; roci_qp_modify(s->qp, world.now, &a, ROCI_QP_STATE);
	}
}

static void rearrange(void)
{
	switch (below(5)) {
	case 0: take_region_away((int)below(2)); break;
	case 1: roci_cq_resize(world.cq, (unsigned)ONE_OF(4, 64, 1024)); break;
	case 2: roci_srq_modify(world.srq, (unsigned)ONE_OF(0, 4, 16), (long)ONE_OF(0, 3, 100)); break;
	case 3: roci_cq_arm(world.cq, one_in(2)); break;
	default:
		roci_mw_destroy(world.mw);
		CHECK(!roci_mw_create(world.e, PD, 1 + (int)below(2), WINDOW_KEY, &world.mw));
	}
}

/* ---- the driver ---- */

/* Packets of slot 0 may be longer than the path MTU, when a probe has arrived; the probe itself is, too. */
static bool may_be_longer(const struct roci_tx_packet *tx)
{
	const struct roci_qp *qp = world.slots[0].qp;
	uint8_t opcode = tx->header[0];

	if (tx->av != &qp->attr.av)
		return false;
	if (opcode == ROCI_OPCODE_OFFER)
		return tx->payload_len == ROCI_PLPMTU_PROBE_BYTES(LONGER) && tx->whole;
	return opcode == ROCI_OPCODE_RANGES || (qp->req.plpmtu.proved && tx->payload_len <= LONGER);
}

static void send_out(void)
{
	static struct roci_tx_batch batch;
	uint8_t bytes[ROCI_MAX_MTU];

	while (roci_engine_tx(world.e, world.now, &batch)) {
		for (unsigned i = 0; i < batch.count; i++) {
			const struct roci_tx_packet *tx = &batch.packets[i];
			uint32_t len = 0;

			for (unsigned k = 0; k < tx->span_count; k++) {
				const struct roci_span *span = &batch.spans[tx->first_span + k];

				CHECK(span->len <= sizeof(bytes) - len);
				memcpy(bytes + len, span->base, span->len); /* for a sanitizer to see */
				len += (uint32_t)span->len;
			}
			CHECK(len == tx->payload_len);
			CHECK(len <= MTU || may_be_longer(tx));
			longer += len > MTU && tx->header[0] < ROCI_OPCODE_OFFER;
			naks += tx->header[0] == ROCI_OP_ACKNOWLEDGE && tx->header[12] & ROCI_AETH_NAK;
		}
		roci_engine_tx_done(world.e, world.now);
	}
}

/* ---- the peer ---- */

static uint32_t near_psn(const struct roci_qp *qp)
{
	const struct roci_send_window *w = &qp->req.window;
	uint32_t from = (uint32_t)ONE_OF(qp->resp.epsn, qp->resp.epsn, w->una, w->una, w->next, w->max,
					 below(ROCI_PSN_MASK + 1));

	return one_in(2) ? from : roci_psn_add(from, (uint32_t)below(9) + ROCI_PSN_MASK - 3);
}

static uint8_t pick_opcode(const struct roci_qp *qp, bool response)
{
	static const uint8_t transports[] = {[ROCI_QPT_RC] = ROCI_TRANSPORT_RC,
					     [ROCI_QPT_UC] = ROCI_TRANSPORT_UC,
					     [ROCI_QPT_UD] = ROCI_TRANSPORT_UD};
	const struct roci_opcode_info *info;
	uint8_t opcode;

	if (one_in(40))
		return ROCI_OPCODE_CNP;
	if (qp == world.slots[0].qp && one_in(20))
		return response ? ROCI_OPCODE_RANGES : ROCI_OPCODE_OFFER;
	for (int tries = 0; tries < 200; tries++) {
		opcode = transports[qp->type] | (uint8_t)below(32);
		if (one_in(30))
			opcode = (uint8_t)below(256);
		info = roci_opcode_info(opcode);
		if (info && info->response == response)
			return opcode;
	}
	return transports[qp->type] | ROCI_OP_SEND_ONLY;
}

/* As long as the QP takes it, and sometimes more. */
static uint32_t first_payload(const struct roci_qp *qp)
{
	if (!qp->resp.ranges.longest)
		return MTU;
	return (uint32_t)ONE_OF(MTU, LONGER, qp->resp.ranges.longest);
}

/* What RANGES and OFFER say, more or less. */
static void fill_ours(const struct roci_qp *qp, const struct roci_opcode_info *info, uint8_t *payload)
{
	struct roci_offer offer = {qp->attr.rq_psn, (uint8_t)below(4), SECRET + 1, 0};
	struct roci_ranges ranges = {.flags = (uint8_t)below(4),
				     .secret = SECRET,
				     .room = 100,
				     .reads = (uint16_t)ONE_OF(0, 1024),
				     .longest = (uint16_t)ONE_OF(0, MTU, LONGER, LONGER + 128, below(65536))};

	if (info->kind == ROCI_KIND_OFFER)
		roci_offer_build(&offer, payload);
	else if (info->kind == ROCI_KIND_RANGES)
		roci_ranges_build(&ranges, payload);
}

static uint32_t pick_payload(const struct roci_qp *qp, const struct roci_opcode_info *info)
{
	if (info->kind == ROCI_KIND_CNP)
		return 16;
	if (info->kind == ROCI_KIND_ATOMIC_WRITE)
		return 8;
	if (!info->payload)
		return 0;
	if (info->kind == ROCI_KIND_OFFER)
		return (uint32_t)ONE_OF(ROCI_OFFER_BYTES, ROCI_PLPMTU_PROBE_BYTES(LONGER), below(4097));
	if (info->kind == ROCI_KIND_RANGES)
		return ROCI_RANGES_HEAD;
	if (!info->last && !one_in(10))
		return info->first ? first_payload(qp) : qp->resp.message.mtu ? qp->resp.message.mtu : MTU;
	return (uint32_t)ONE_OF(0, 1, 7, 8, 100, MTU, MTU, MTU + 1, LONGER, 4096,
				qp->resp.message.left < 4096 ? qp->resp.message.left : 4096);
}

/* The packet changes nothing that the program can see. */
static void receive_in_vain(const struct roci_qp *qp, const struct roci_rx *rx)
{
	static uint8_t before[2][REGION];
	enum roci_qp_state state = roci_qp_state(qp);
	uint32_t tail = roci_cq_tail(world.cq);

	memcpy(before[0], world.memory[0], REGION);
	memcpy(before[1], world.memory[1], REGION);
	roci_engine_rx(world.e, world.now, rx);
	CHECK(memcmp(before[0], world.memory[0], REGION) == 0 && memcmp(before[1], world.memory[1], REGION) == 0);
	CHECK(roci_cq_tail(world.cq) == tail && roci_qp_state(qp) == state);
}

static void attack(struct slot *s)
{
	uint8_t bytes[ROCI_MAX_HEADER_BYTES + 4096 + 8] = {0}, *exact;
	struct roci_packet pkt = {
		.opcode = pick_opcode(s->qp, s->type == ROCI_QPT_RC && one_in(2)),
		.solicited = one_in(2),
		.ack_req = one_in(2),
		.pkey = one_in(50) ? 0x1234 : ROCI_PKEY_DEFAULT,
		.dest_qpn = s->qp->qpn,
		.psn = near_psn(s->qp),
		.qkey = one_in(10) ? 0 : QKEY,
		.src_qpn = 5,
		.rkey = (uint32_t)ONE_OF(REGION_KEY, REGION_KEY, REGION_KEY, REGION_KEY + 256, roci_mw_rkey(world.mw),
					 7),
		.dma_len =
			(uint32_t)ONE_OF(0, 1, 8, 8, MTU, MTU + 1, 3 * MTU, REGION, REGION + 1, 0x80000000, UINT32_MAX),
		.syndrome = (uint8_t)ONE_OF(0x1f, 0x1f, 0x1f, 0x20, 0x3f, 0x60, 0x60, 0x61, 0x62, below(256)),
		.inv_rkey = roci_mw_rkey(world.mw),
		.feth = (uint32_t)ONE_OF(1, 1, 0x11, 0x11, below(64), below(UINT32_MAX)),
	};
	const struct roci_opcode_info *info = roci_opcode_info(pkt.opcode);
	struct roci_rx rx = {.src_port = one_in(50) ? (uint16_t)below(65536) : 7,
			     .traffic_class = (uint8_t)below(4),
			     .hop_limit = 64,
			     .congested = one_in(20)};
	size_t len;

	pkt.va = (uintptr_t)world.memory[pkt.rkey == REGION_KEY + 256] +
		 ONE_OF(0, 0, 8, below(REGION), REGION - 8, REGION, (uint64_t)-8, (uint64_t)1 << 63);
	pkt.payload_len = pick_payload(s->qp, info);
	if (info->kind == ROCI_KIND_WRITE && info->first && info->last && !one_in(8))
		pkt.dma_len = pkt.payload_len;
	len = roci_packet_build(&pkt, bytes);
	script_fill(bytes + len, pkt.payload_len < 16 ? pkt.payload_len : 16);
	if (one_in(4) || s == world.slots)
		fill_ours(s->qp, info, bytes + len);
	len += pkt.payload_len + roci_pad_bytes(pkt.payload_len) + ROCI_ICRC_BYTES;
	exact = malloc(len);
	CHECK(exact);
	memcpy(exact, bytes, len);
	CHECK(roci_packet_parse(&rx.pkt, exact, len) == ROCI_PARSE_OK);
	memcpy(rx.dgid, here, 16);
	if (s->type != ROCI_QPT_UD && one_in(16)) {
		memcpy(rx.sgid, stranger, 16);
		receive_in_vain(s->qp, &rx);
	} else {
		memcpy(rx.sgid, peer, 16);
		roci_engine_rx(world.e, world.now, &rx);
	}
	free(exact);
}

/* ---- the story ---- */

static void step(void)
{
	struct slot *s = &world.slots[below(SLOTS)];

	switch (below(20)) {
	case 0:
	case 1: post_recv(s); break;
	case 2:
	case 3:
	case 4: post_send(s); break;
	case 5:
	case 6: send_out(); break;
	case 7: pass_time(world.e, &world.now); break;
	case 8: poll((unsigned)below(40)); break;
	case 9:
		if (one_in(4) || roci_qp_state(s->qp) == ROCI_QPS_ERR)
			change(s);
		break;
	case 10:
		if (one_in(4))
			rearrange();
		break;
	default: attack(s);
	}
	drop_events(world.e);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	static const enum roci_qp_type types[SLOTS] = {ROCI_QPT_RC, ROCI_QPT_RC, ROCI_QPT_UC, ROCI_QPT_UD};

	memset(&world, 0, sizeof(world));
	script_begin(bytes, len);
	world.now = 1000000;
	world.e = roci_engine_create();
	CHECK(world.e);
	CHECK(!roci_cq_create(world.e, one_in(8) ? 16 : 1024, NULL, &world.cq));
	CHECK(!roci_srq_create(world.e, PD, RECEIVES, 3, NULL, &world.srq));
	make_region(0);
	make_region(1);
	CHECK(!roci_mw_create(world.e, PD, 2, WINDOW_KEY, &world.mw));
	for (int i = 0; i < SLOTS; i++) {
		world.slots[i].type = types[i];
		make_qp(&world.slots[i]);
	}
	while (!script_ended())
		step();
	send_out();
	roci_engine_destroy(world.e);
	free(world.memory[0]);
	free(world.memory[1]);
	return 0;
}

#ifndef ROCI_LIBFUZZER

int main(int argc, char **argv)
{
	seeded_scripts(argc, argv, 2000, 24000);
	for (unsigned i = 0; i < sizeof(completions) / sizeof(*completions); i++)
		if (completions[i])
			printf("status %2u: %lu completions\n", i, completions[i]);
	printf("%lu NAKs, %lu longer packets\n", naks, longer);
	return 0;
}

#endif
