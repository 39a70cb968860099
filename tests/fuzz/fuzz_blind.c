/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A connection and an attacker who forges its peer's address and does not know all of its secrets, led by a script of
 * bytes. The secrets are a hash of the whole script: an input that is changed in order to come closer changes them, so
 * coverage cannot find them out. The attacker knows the QPN and either everything but the R_Key, or everything but the
 * PSNs and the peer's UDP port.
 *
 * Without the R_Key no memory may change and nothing be read. Without PSNs and port nothing at all may happen that the
 * program sees: memory, completions, states. By chance one packet in 2^32 or more does: docs/SECURITY.md. One that
 * names the very PSN that is expected, or one that is outstanding, needs no port: that is one in 2^24, which some run
 * of many would find, so the attacker here has no such luck.
 *
 * With -DROCI_LIBFUZZER and -fsanitize=fuzzer this is a libFuzzer target. Without them it is a program that draws its
 * scripts at random: fuzz_blind [iterations [seed]].
 */
#include <stdlib.h>
#include <string.h>

#include "engine/cq.h"
#include "engine/qp.h"
#include "engine_steps.h"
#include "script.h"
#include "seeded.h"

enum { REGION = 3000, MTU = 256, QPN = 0x4321, PD = 1 };

static const uint8_t here[16] = {[10] = 0xff, [11] = 0xff, 10, 0, 0, 1};
static const uint8_t peer[16] = {[10] = 0xff, [11] = 0xff, 10, 0, 0, 2};

static struct {
	uint64_t now;
	struct roci_engine *e;
	struct roci_cq *cq;
	struct roci_mr *mr;
	struct roci_qp *qp;
	uint8_t *memory;
	uint32_t rq_psn, sq_psn, rkey; /* secrets */
	uint16_t port;
	bool knows_psns;  /* and the port; else the R_Key */
	uint64_t answers; /* READ responses with content, and atomic ones */
} world;

static unsigned long forged, answered; /* in all runs: packets of the attacker, and of them those that got a NAK */

static void draw_secrets(const uint8_t *bytes, size_t len)
{
	uint64_t hash = 0xcbf29ce484222325u;

	for (size_t i = 0; i < len; i++)
		hash = (hash ^ bytes[i]) * 0x100000001b3u;
	world.rq_psn = (uint32_t)random_next(&hash) & ROCI_PSN_MASK;
	world.sq_psn = (uint32_t)random_next(&hash) & ROCI_PSN_MASK;
	world.rkey = (uint32_t)random_next(&hash) | 0x100;
	world.port = (uint16_t)random_next(&hash);
}

/* ---- the connection ---- */

static void make_region(void)
{
	struct roci_mr_attr attr = {.pd = PD,
				    .key = world.rkey,
				    .len = REGION,
				    .access = ROCI_ACCESS_LOCAL_WRITE | ROCI_ACCESS_REMOTE_WRITE |
					      ROCI_ACCESS_REMOTE_READ | ROCI_ACCESS_REMOTE_ATOMIC};

	world.memory = calloc(1, REGION);
	CHECK(world.memory);
	attr.base = world.memory;
	attr.iova = (uintptr_t)world.memory;
	CHECK(!roci_mr_create(world.e, &attr, &world.mr));
}

static void connect_qp(void)
{
	struct roci_qp_init init = {
		.qpn = QPN,
		.type = ROCI_QPT_RC,
		.pd = PD,
		.send_cq = world.cq,
		.recv_cq = world.cq,
		.cap = {.max_send_wr = 16, .max_recv_wr = 16, .max_send_sge = 1, .max_recv_sge = 1},
		.sq_sig_all = true,
	};
	struct roci_qp_attr a = {.port_num = 1,
				 .access = 0xf,
				 .path_mtu = 1,
				 .dest_qpn = 77,
				 .rq_psn = world.rq_psn,
				 .sq_psn = world.sq_psn,
				 .timeout = 14,
				 .retry_cnt = 7,
				 .rnr_retry = 7,
				 .max_rd_atomic = 4,
				 .max_dest_rd_atomic = 4,
				 .av = {.mtu = MTU, .src_port = 7, .mad_port = ROCI_UDP_PORT}};

	memcpy(a.av.sgid, here, 16);
	memcpy(a.av.dgid, peer, 16);
	CHECK(!roci_qp_create(world.e, &init, &world.qp));
	connect_rc(world.qp, world.now, &a);
}

static void deliver(const struct roci_packet *pkt, uint16_t port)
{
	uint8_t bytes[ROCI_MAX_HEADER_BYTES + 4096 + 8] = {0};
	struct roci_rx rx = {.src_port = port, .hop_limit = 64};
	size_t len = roci_packet_build(pkt, bytes);

	len += pkt->payload_len + roci_pad_bytes(pkt->payload_len) + ROCI_ICRC_BYTES;
	if (roci_packet_parse(&rx.pkt, bytes, len) != ROCI_PARSE_OK)
		return;
	memcpy(rx.sgid, peer, 16);
	memcpy(rx.dgid, here, 16);
	roci_engine_rx(world.e, world.now, &rx);
}

static void send_out(void)
{
	static struct roci_tx_batch batch;

	while (roci_engine_tx(world.e, world.now, &batch)) {
		for (unsigned i = 0; i < batch.count; i++) {
			const struct roci_opcode_info *info = roci_opcode_info(batch.packets[i].header[0]);

			/* A FLUSH that seems to be a duplicate is acknowledged by an empty READ response, to the peer.
			 */
			world.answers += info->kind == ROCI_KIND_ATOMIC_ACK ||
					 (info->kind == ROCI_KIND_READ_RESPONSE && batch.packets[i].payload_len);
			answered += info->kind == ROCI_KIND_ACK && batch.packets[i].header[12] & ROCI_AETH_NAK;
		}
		roci_engine_tx_done(world.e, world.now);
	}
}

/* The peer says something, so that its port is known; and this side has something outstanding. */
static void begin(void)
{
	struct roci_sge sge = {(uintptr_t)world.memory, 100, world.rkey};
	struct roci_recv_wr recv = {.sges = &sge, .num_sge = 1};
	struct roci_send_wr send = {.wr_id = 1, .opcode = ROCI_WR_SEND, .sges = &sge, .num_sge = 1};
	struct roci_packet hello = {.opcode = ROCI_OP_SEND_ONLY,
				    .pkey = ROCI_PKEY_DEFAULT,
				    .dest_qpn = QPN,
				    .psn = world.rq_psn,
				    .ack_req = true};

	for (unsigned i = 0; i < 4; i++)
		CHECK(!roci_qp_post_recv(world.qp, &recv));
	deliver(&hello, world.port);
	CHECK(world.qp->resp.epsn == roci_psn_add(world.rq_psn, 1));
	send_out();
	if (one_in(2))
		CHECK(!roci_qp_post_send(world.qp, &send));
	send_out();
}

/* ---- the attacker ---- */

static bool is_lucky(uint32_t psn)
{
	const struct roci_send_window *window = &world.qp->req.window;

	return psn == world.qp->resp.epsn ||
	       (roci_psn_diff(psn, window->una) >= 0 && roci_psn_diff(psn, window->max) < 0);
}

static void forge(void)
{
	struct roci_packet pkt = {
		.opcode = (uint8_t)(one_in(30) ? below(256) : below(24)),
		.ack_req = one_in(2),
		.pkey = ROCI_PKEY_DEFAULT,
		.dest_qpn = QPN,
		.src_qpn = 5,
		.va = (uintptr_t)world.memory,
		.dma_len = one_in(2) ? 8 : 1 + (uint32_t)below(REGION), /* nothing needs no key */
		.syndrome = (uint8_t)below(256),
		.payload_len = one_in(2) ? 8 : 1 + (uint32_t)below(MTU),
		.rkey = world.knows_psns ? (uint32_t)below(UINT32_MAX) : world.rkey,
		.psn = (uint32_t)(world.knows_psns ? world.qp->resp.epsn : below(ROCI_PSN_MASK)),
	};
	const struct roci_opcode_info *info = roci_opcode_info(pkt.opcode);
	uint16_t port = world.knows_psns ? world.port : (uint16_t)below(65536);

	if (!info || (!world.knows_psns && is_lucky(pkt.psn)))
		return;
	if (world.knows_psns && info->kind == ROCI_KIND_SEND)
		return; /* it would be received: SEND has no key */
	if (!info->payload)
		pkt.payload_len = 0;
	if (info->kind == ROCI_KIND_WRITE && info->first)
		pkt.dma_len = info->last ? pkt.payload_len : pkt.dma_len;
	forged++;
	deliver(&pkt, port);
	send_out();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	static const uint8_t zeros[REGION];
	enum roci_qp_state state;
	uint32_t tail, epsn;

	memset(&world, 0, sizeof(world));
	script_begin(bytes, len);
	world.now = 1000000;
	draw_secrets(bytes, len);
	world.knows_psns = one_in(2);
	world.e = roci_engine_create();
	CHECK(world.e && !roci_cq_create(world.e, 64, NULL, &world.cq));
	make_region();
	connect_qp();
	begin();
	state = roci_qp_state(world.qp);
	tail = roci_cq_tail(world.cq);
	epsn = world.qp->resp.epsn;
	while (!script_ended())
		forge();
	CHECK(!memcmp(world.memory, zeros, REGION) && !world.answers);
	if (!world.knows_psns)
		CHECK(roci_qp_state(world.qp) == state && roci_cq_tail(world.cq) == tail &&
		      world.qp->resp.epsn == epsn);
	roci_engine_destroy(world.e);
	free(world.memory);
	return 0;
}

#ifndef ROCI_LIBFUZZER

int main(int argc, char **argv)
{
	unsigned long runs = seeded_scripts(argc, argv, 2000, 2000);

	printf("%lu packets forged, %lu NAKs\n", forged, answered);
	CHECK(runs < 1000 || (forged && answered));
	return 0;
}

#endif
