/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The local path and a hostile sibling: a process of the same user that shares memory with this one, led by a script of
 * bytes. It writes records into its ring and damages them while they are read, moves both ends of both rings, and
 * writes whatever it likes into its own file and into this process's file, tables of regions and QPs included.
 * Meanwhile the program posts, polls, registers and deregisters memory and resets its QPs.
 *
 * Payload that is fetched or written directly is in a second process, which only waits. No registered memory may be
 * overrun, no request may complete twice, and each call must end.
 *
 * With -DROCI_LIBFUZZER and -fsanitize=fuzzer this is a libFuzzer target. Without them it is a program that draws its
 * scripts at random: fuzz_local [iterations [seed]].
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "device/local/local.h"
#include "device/local/copy.h"
#include "device/local/direct.h"
#include "device/local/settle.h"
#include "device/side_door.h"
#include "engine/cq.h"
#include "engine/qp.h"
#include "engine_steps.h"
#include "script.h"
#include "seeded.h"

enum { QPS = 2, REGION = 20000, RECEIVES = 8, SENDS = 16 };

#define PD        1
#define FIRST_QPN 0x4000u
#define KEY       0x1000u
#define PEER_SLOT 3
#define WHOLE     (256u << 10) /* of the memory that both processes have at the same address */

static struct {
	uint64_t now;
	struct roci_engine *e;
	struct roci_cq *cq;
	struct roci_mr *mr;
	struct roci_mr_attr attr;
	uint8_t *memory;
	struct roci_qp *qps[QPS];
	uint64_t posted[QPS], completed[QPS];
	struct roci_local local;
	struct roci_local_peer *peer;
	struct roci_local_writer theirs; /* the sibling's view of its ring */
} world;

/* They last: the process that waits, and what is too large to make for each script. */
static struct {
	pid_t pid;
	uint8_t *there; /* in both processes */
	struct roci_local_shared *own, *shared;
	struct roci_local_ring *in, *out;
	struct roci_registry registry;
	struct roci_side_door *door;
	struct roci_device_stats stats;
} lasting = {.registry.fd = -1};

/* ---- the program ---- */

static void make_region(void)
{
	world.memory = calloc(1, REGION); /* an allocation of its own, so that a sanitizer sees an overrun */
	CHECK(world.memory);
	world.attr = (struct roci_mr_attr){.pd = PD,
					   .key = KEY,
					   .base = world.memory,
					   .iova = (uintptr_t)world.memory,
					   .len = REGION,
					   .access = ROCI_ACCESS_LOCAL_WRITE | ROCI_ACCESS_REMOTE_WRITE |
						     ROCI_ACCESS_REMOTE_READ | ROCI_ACCESS_REMOTE_ATOMIC};
	CHECK(!roci_mr_create(world.e, &world.attr, &world.mr));
	roci_local_add_region(&world.local, &world.attr);
}

static void drop_region(void)
{
	CHECK(!roci_mr_destroy(world.mr));
	roci_local_remove_region(&world.local, &world.attr);
	free(world.memory);
}

static void connect_qp(unsigned i)
{
	struct roci_qp_attr a = {.port_num = 1,
				 .access = 0xf,
				 .path_mtu = 5,
				 .dest_qpn = 77 + i,
				 .rq_psn = 100,
				 .sq_psn = 200,
				 .timeout = (uint8_t)ONE_OF(0, 1, 14),
				 .retry_cnt = 7,
				 .rnr_retry = 7,
				 .max_rd_atomic = 4,
				 .max_dest_rd_atomic = 4,
				 .av = {.mtu = 4096, .src_port = 7, .mad_port = ROCI_UDP_PORT, .local = 1}};

	connect_rc(world.qps[i], world.now, &a);
	roci_local_add_qp(&world.local, world.qps[i], PD, 77 + i);
}

static void make_qp(unsigned i)
{
	struct roci_qp_init init = {
		.qpn = FIRST_QPN + i,
		.type = ROCI_QPT_RC,
		.pd = PD,
		.send_cq = world.cq,
		.recv_cq = world.cq,
		.cap = {.max_send_wr = SENDS, .max_recv_wr = RECEIVES, .max_send_sge = 3, .max_recv_sge = 3},
		.sq_sig_all = true,
		.user = &world.completed[i],
	};

	CHECK(!roci_qp_create(world.e, &init, &world.qps[i]));
	connect_qp(i);
}

static void reset(unsigned i)
{
	struct roci_qp_attr a = {.state = ROCI_QPS_RESET};

	roci_cq_purge(world.cq, world.qps[i]->qpn);
	world.completed[i] = world.posted[i];
	CHECK(!roci_qp_modify(world.qps[i], world.now, &a, ROCI_QP_STATE));
	connect_qp(i);
}

static unsigned make_sges(struct roci_sge *sges, unsigned bytes)
{
	unsigned n = 1 + (unsigned)below(3);

	for (unsigned i = 0; i < n; i++) {
		unsigned len = i + 1 == n ? bytes : (unsigned)below(bytes + 1);

		sges[i] = (struct roci_sge){(uintptr_t)world.memory + below(REGION - len + 1), len, KEY};
		bytes -= len;
	}
	return n;
}

static void post_recv(unsigned i)
{
	struct roci_sge sges[3];
	struct roci_recv_wr wr = {.sges = sges};

	wr.num_sge = make_sges(sges, (unsigned)ONE_OF(0, 8, 100, 5000, 16000));
	roci_qp_post_recv(world.qps[i], &wr);
}

static struct roci_tx_batch batch;

static void post_send(unsigned i)
{
	enum roci_wr_opcode opcode = (enum roci_wr_opcode)ONE_OF(0, 1, 2, 3, 4, 4, 5, 6);
	bool atomic = opcode == ROCI_WR_ATOMIC_CMP_AND_SWP || opcode == ROCI_WR_ATOMIC_FETCH_AND_ADD;
	struct roci_sge sges[3];
	struct roci_send_wr wr = {.wr_id = world.posted[i] + 1,
				  .opcode = opcode,
				  .sges = sges,
				  .rkey = KEY,
				  .remote_addr = (uintptr_t)lasting.there + below(WHOLE)};

	wr.num_sge = make_sges(sges, atomic ? 8 : (unsigned)ONE_OF(0, 1, 100, 4097, 16000));
	if (atomic) {
		wr.num_sge = 1;
		wr.remote_addr &= ~7ull;
	}
	if (roci_qp_check_send(world.qps[i], &wr))
		return;
	if (roci_local_direct(&world.local, world.qps[i], &wr) ||
	    roci_local_prompt(&world.local, world.now, world.qps[i], &wr, &batch) ||
	    !roci_qp_post_send(world.qps[i], &wr))
		world.posted[i]++;
}

static void poll_all(void)
{
	struct roci_cqe cqe;

	while (roci_cq_poll(world.cq, &cqe, 1)) {
		unsigned i = cqe.qpn - FIRST_QPN;

		CHECK(i < QPS);
		if (cqe.opcode & ROCI_WC_RECV)
			continue;
		CHECK(cqe.wr_id > world.completed[i] && cqe.wr_id <= world.posted[i]);
		world.completed[i] = cqe.wr_id;
	}
}

static void send_out(void)
{
	for (unsigned n = 0; n < 64 && roci_engine_tx(world.e, world.now, &batch); n++) {
		for (unsigned i = 0; i < batch.count; i++) {
			const struct roci_tx_packet *tx = &batch.packets[i];

			CHECK(tx->av->local == 1);
			roci_local_send(&world.local, tx, batch.spans + tx->first_span);
		}
		roci_engine_tx_done(world.e, world.now);
	}
	roci_local_flush(&world.local);
}

/* ---- the sibling ---- */

static uint32_t near_psn(const struct roci_qp *qp)
{
	const struct roci_send_window *w = &qp->req.window;
	uint32_t from = (uint32_t)ONE_OF(qp->resp.epsn, qp->resp.epsn, w->una, w->una, w->next, w->max);

	return one_in(4) ? roci_psn_add(from, (uint32_t)below(9) + ROCI_PSN_MASK - 3) : from;
}

/* Places in the other process, or anywhere. */
static void make_spans(struct roci_span *spans, unsigned count, uint32_t len)
{
	for (unsigned i = 0; i < count; i++) {
		uint32_t now = i + 1 == count ? len : (uint32_t)below((size_t)len + 1);

		spans[i] = (struct roci_span){lasting.there + below(WHOLE / 2), now};
		if (one_in(10))
			spans[i].base = (void *)(uintptr_t)ONE_OF(0, 1, 4096, UINT64_MAX, 1ull << 46);
		if (one_in(20))
			spans[i].len = ONE_OF(0, UINT32_MAX, UINT64_MAX, 1ull << 31);
		len -= now;
	}
}

static void put_packet(void)
{
	const struct roci_qp *qp = world.qps[below(QPS)];
	uint8_t header[ROCI_MAX_HEADER_BYTES];
	struct roci_span spans[ROCI_MAX_SGE];
	struct roci_packet pkt = {
		.opcode = (uint8_t)(one_in(30) ? below(256) : below(24)),
		.ack_req = one_in(2),
		.pkey = ROCI_PKEY_DEFAULT,
		.dest_qpn = one_in(30) ? (uint32_t)below(1 << 24) : qp->qpn,
		.psn = near_psn(qp),
		.va = (uintptr_t)world.memory + ONE_OF(0, 0, 8, REGION - 8, REGION, UINT64_MAX),
		.rkey = one_in(20) ? 7 : KEY,
		.dma_len = (uint32_t)ONE_OF(0, 1, 8, 100, 4096, 16000, REGION, REGION + 1, UINT32_MAX),
		.syndrome = (uint8_t)ONE_OF(0x1f, 0x1f, 0x20, 0x60, 0x61, 0x62, 0x63, 0x64),
		.payload_len = (uint32_t)ONE_OF(0, 0, 8, 100, 4096, 16000),
	};
	const struct roci_opcode_info *info = roci_opcode_info(pkt.opcode);
	bool far = pkt.payload_len > 4096 || one_in(3);
	unsigned count = 1 + (unsigned)below(4), header_len;

	if (!info)
		return;
	if (info->kind == ROCI_KIND_WRITE && !one_in(8))
		pkt.dma_len = pkt.payload_len;
	header_len = roci_packet_build(&pkt, header);
	if (far)
		make_spans(spans, count, pkt.payload_len);
	else
		spans[0] = (struct roci_span){lasting.there, pkt.payload_len};
	roci_local_ring_put(&world.theirs, header, header_len, spans, far ? count : 1, pkt.payload_len, far);
	if (!one_in(4))
		roci_local_ring_publish(&world.theirs);
}

static void flip(void *memory, size_t len)
{
	uint8_t *at = (uint8_t *)memory + below(len);

	if (one_in(2))
		*at = (uint8_t)below(256);
	else
		*at ^= (uint8_t)(1u << below(8));
}

/* The record that this process takes out next, and what follows it. */
static void damage_record(void)
{
	size_t at = world.peer->in.head % sizeof(lasting.in->bytes), left = sizeof(lasting.in->bytes) - at;

	flip(lasting.in->bytes + at, left < 256 ? left : 256);
}

static void move_end(_Atomic uint64_t *end)
{
	uint64_t was = atomic_load(end);

	atomic_store(end, ONE_OF(was + 64, was - 64, was + 1, 0, UINT64_MAX, was + sizeof(lasting.in->bytes),
				 below(1 << 17)));
}

/* What is in the sibling's file about its memory: a region for this process, sensible or not. */
static void write_tables(struct roci_local_shared *file)
{
	unsigned place = (KEY >> 8) * UINT32_C(0x9e3779b1) / (UINT32_MAX / ROCI_LOCAL_REGIONS + 1);
	struct roci_local_region *r = &file->regions[(place + below(3)) % ROCI_LOCAL_REGIONS];
	struct roci_local_qp *q = &file->qps[one_in(4) ? below(QPS + 1) + (FIRST_QPN & 0x3fff) : 77 + below(QPS)];

	r->pd = PD;
	r->access = (uint32_t)(one_in(4) ? below(256) : 0xf);
	r->base = one_in(8) ? ONE_OF(0, 1, UINT64_MAX) : (uintptr_t)lasting.there;
	r->iova = one_in(8) ? 0 : (uintptr_t)lasting.there;
	r->len = one_in(8) ? UINT64_MAX : WHOLE;
	atomic_store(&r->key, one_in(8) ? 0 : KEY);
	q->pd = PD;
	q->peer_qpn = FIRST_QPN + (uint32_t)below(QPS);
	atomic_store(&q->state, ROCI_PUBLISHED | (uint32_t)(one_in(4) ? ROCI_PUBLISHED_NEW : 0) | 0xf);
}

static void write_pair(struct roci_local_shared *file, unsigned slot)
{
	struct roci_local_pair *pair = &file->pairs[slot];

	switch (below(4)) {
	case 0: atomic_store(&pair->token, ONE_OF(0, 1, (uintptr_t)lasting.there)); break;
	case 1: pair->token_value = ONE_OF(0, 7); break;
	case 2: atomic_store(&pair->attached, ONE_OF(0, 8, 12)); break;
	default: atomic_store(&pair->hazard, one_in(16) ? 0x3fffffff : 0);
	}
}

static void sibling(void)
{
	switch (below(14)) {
	case 0: flip(lasting.in, sizeof(*lasting.in)); break;
	case 1: flip(lasting.out, one_in(2) ? 4096 : sizeof(*lasting.out)); break;
	case 2: move_end(one_in(2) ? &lasting.in->tail : &lasting.out->head); break;
	case 3: move_end(one_in(2) ? &lasting.in->head : &lasting.out->tail); break;
	case 4: damage_record(); break;
	case 5: write_tables(one_in(8) ? lasting.own : lasting.shared); break;
	case 6: write_pair(one_in(2) ? lasting.own : lasting.shared, one_in(2) ? PEER_SLOT : 1); break;
	case 7:
		atomic_store(&lasting.shared->sleeping, (uint32_t)below(3));
		atomic_store(&lasting.own->attaches, (uint32_t)below(256));
		break;
	default: put_packet();
	}
}

/* ---- the story ---- */

/* A ring that makes no sense is read no more. Another process takes the sibling's place, so that the script goes on. */
static void revive(void)
{
	struct roci_local_peer *p = world.peer;

	p->dead = false;
	memset(lasting.in, 0, sizeof(*lasting.in));
	atomic_store(&lasting.in->tail, 0);
	atomic_store(&lasting.in->head, 0);
	p->in.head = 0;
	world.theirs = (struct roci_local_writer){.ring = lasting.in};
}

static void step(void)
{
	unsigned i = (unsigned)below(QPS);

	switch (below(16)) {
	case 0:
	case 1: post_recv(i); break;
	case 2:
	case 3: post_send(i); break;
	case 4:
	case 5: send_out(); break;
	case 6: pass_time(world.e, &world.now); break;
	case 7: poll_all(); break;
	case 8:
		if (one_in(4))
			drop_region(), make_region();
		if (one_in(4) || roci_qp_state(world.qps[i]) == ROCI_QPS_ERR)
			reset(i);
		if (world.peer->dead)
			revive();
		break;
	case 9:
	case 10: roci_local_receive(&world.local, world.now); break;
	default: sibling();
	}
	drop_events(world.e);
}

static void *map_shared(size_t len)
{
	void *p = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(p != MAP_FAILED);
	return p;
}

/* The other process: its memory is read and written, and it does nothing. */
static void make_lasting(void)
{
	if (lasting.pid)
		return;
	lasting.there = map_shared(WHOLE);
	lasting.own = map_shared(sizeof(*lasting.own));
	lasting.shared = map_shared(sizeof(*lasting.shared));
	lasting.in = map_shared(sizeof(*lasting.in));
	lasting.out = map_shared(sizeof(*lasting.out));
	*(uint64_t *)(void *)lasting.there = 7;
	lasting.pid = fork();
	CHECK(lasting.pid >= 0);
	if (!lasting.pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pause();
	}
	lasting.registry.slot = 1;
	lasting.registry.door_fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	CHECK(lasting.registry.door_fd >= 0 && !roci_side_door_open(&lasting.registry, &lasting.door));
}

static void take_back(void *driver, uint16_t local, uint32_t dest_qpn)
{
	roci_local_ring_revoke(&world.peer->out, 0, 0, dest_qpn);
	roci_local_spill_revoke(&world.peer->spill, 0, 0, dest_qpn);
	roci_local_settle(driver, world.peer);
}

static bool may_read(void *driver, const struct roci_span *spans, unsigned count)
{
	return true; /* this program takes no memory away that it has sent from */
}

static const struct roci_local_calls calls = {.fetch = roci_local_fetch, .may_read = may_read, .take_back = take_back};

static void open_local(void)
{
	struct roci_local *l = &world.local;

	memset(lasting.own->pairs, 0, sizeof(lasting.own->pairs));
	memset(lasting.own->regions, 0, sizeof(lasting.own->regions));
	memset(lasting.shared->pairs, 0, sizeof(lasting.shared->pairs));
	memset(lasting.shared->regions, 0, sizeof(lasting.own->regions));
	memset(lasting.shared->qps, 0, sizeof(lasting.shared->qps));
	memset(lasting.in, 0, sizeof(*lasting.in));
	memset(lasting.out, 0, sizeof(*lasting.out));
	atomic_store(&lasting.own->attaches, 0);
	*l = (struct roci_local){.own = lasting.own,
				 .fd = -1,
				 .registry = &lasting.registry,
				 .door = lasting.door,
				 .engine = world.e,
				 .stats = &lasting.stats,
				 .count = 1};
	l->own->incarnation = 4;
	l->own->rights = 1;
	l->peers = calloc(1, sizeof(struct roci_local_peer *));
	world.peer = calloc(1, sizeof(*world.peer));
	CHECK(l->peers && world.peer);
	l->peers[0] = world.peer;
	*world.peer = (struct roci_local_peer){.slot = PEER_SLOT,
					       .incarnation = 8,
					       .pid = lasting.pid,
					       .shared = lasting.shared,
					       .in_ring = lasting.in,
					       .in = {.ring = lasting.in},
					       .out = {.ring = lasting.out}};
	world.theirs = (struct roci_local_writer){.ring = lasting.in};
	atomic_store(&lasting.shared->pairs[1].token, (uintptr_t)lasting.there);
	lasting.shared->pairs[1].token_value = 7;
	roci_engine_fetch_by(world.e, &calls, l);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	make_lasting();
	memset(&world, 0, sizeof(world));
	script_begin(bytes, len);
	world.now = 1000000;
	world.e = roci_engine_create();
	CHECK(world.e && !roci_cq_create(world.e, 1024, NULL, &world.cq));
	open_local();
	make_region();
	for (unsigned i = 0; i < QPS; i++)
		make_qp(i);
	while (!script_ended())
		step();
	send_out();
	poll_all();
	drop_region();
	roci_engine_destroy(world.e);
	roci_local_guard_free(world.peer->token);
	roci_local_spill_free(&world.peer->spill);
	free(world.peer);
	free(world.local.peers);
	return 0;
}

#ifndef ROCI_LIBFUZZER

int main(int argc, char **argv)
{
	unsigned long runs = seeded_scripts(argc, argv, 2000, 4000);
	const struct roci_device_stats *s = &lasting.stats;

	printf("%lu packets received, %lu payloads fetched, %lu sent, %lu direct\n", s->local_received,
	       s->local_fetched, s->local_sent, s->local_direct);
	CHECK(runs < 1000 || (s->local_received && s->local_fetched && s->local_sent && s->local_direct));
	kill(lasting.pid, SIGKILL);
	return 0;
}

#endif
