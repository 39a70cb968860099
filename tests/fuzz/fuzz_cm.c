/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two connection managers, and a hostile network and hasty consumers between them, all led by a script of bytes: MADs
 * are carried, lost, repeated and mutated, come from elsewhere, and are made of nothing but the script; what consumers
 * may do, they do in any order. Whatever happens, events are of handles that the consumer still has, and when everybody
 * has let go, nothing is left.
 *
 * With -DROCI_LIBFUZZER and -fsanitize=fuzzer a libFuzzer target; without, a program that draws its scripts:
 * fuzz_cm [iterations [seed]].
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cm/cm.h"
#include "cm_inspect.h"
#include "cm/msg.h"
#include "check.h"
#include "random.h"

#define SECOND  1000000000ull
#define FOREVER (1000 * 3600 * SECOND) /* longer than the longest time that a message can ask for */
#define SERVICE (0x01060000 + 22222)

enum { SIDES = 2, MAX_ENDS = 48, MAX_WIRE = 64 };

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

/* A connection or SIDR exchange that a consumer has. */
struct end {
	bool live;
	unsigned side;
	struct roci_conn *conn; /* or */
	struct roci_sidr *sidr;
};

static struct {
	const uint8_t *script;
	size_t left;
	uint64_t now, seed;
	struct roci_cm *cm[SIDES];
	struct roci_listener *listener[SIDES];
	struct end ends[MAX_ENDS];
	struct roci_cm_tx wire[MAX_WIRE]; /* a ring of what was sent; the oldest are lost */
	unsigned wire_next, wire_count, carried;
} world;

/* What happened in all runs: a fuzzer that does not get anywhere finds nothing. */
static unsigned long told[ROCI_CM_EVENT_KINDS], sent[0x20];

static const uint8_t gids[SIDES][16] = {{[10] = 0xff, [11] = 0xff, 10, 0, 0, 1},
					{[10] = 0xff, [11] = 0xff, 10, 0, 0, 2}};

static unsigned take(void)
{
	if (!world.left)
		return 0;
	world.left--;
	return *world.script++;
}

static uint32_t draw(void *context)
{
	return (uint32_t)random_next(&world.seed);
}

/* ---- consumers ---- */

static struct end *new_end(unsigned side)
{
	for (unsigned i = 0; i < MAX_ENDS; i++) {
		if (!world.ends[i].live) {
			world.ends[i] = (struct end){.live = true, .side = side};
			return &world.ends[i];
		}
	}
	return NULL;
}

static void let_go(struct end *end)
{
	if (end->conn)
		roci_conn_destroy(end->conn, world.now);
	else if (end->sidr)
		roci_sidr_destroy(end->sidr, world.now);
	end->live = false;
}

static void told_request(unsigned side, const struct roci_cm_event *ev)
{
	struct end *end = new_end(side);

	CHECK(ev->user == &world.listener[side] && ev->listener == world.listener[side]);
	CHECK(!ev->conn != !ev->sidr);
	if (!end) {
		let_go(&(struct end){.conn = ev->conn, .sidr = ev->sidr});
		return;
	}
	end->conn = ev->conn;
	end->sidr = ev->sidr;
	if (ev->conn)
		roci_conn_set_user(ev->conn, end);
	else
		roci_sidr_set_user(ev->sidr, end);
}

static void tell(unsigned side, const struct roci_cm_event *ev)
{
	const struct end *end = ev->user;

	CHECK(ev->kind < ROCI_CM_EVENT_KINDS && cm_event_name(ev->kind) && ev->path);
	CHECK(ev->private.len <= ROCI_CM_MAX_PRIVATE && (ev->private.data || !ev->private.len));
	told[ev->kind]++;
	if (ev->kind == ROCI_CM_REQ_RECEIVED || ev->kind == ROCI_CM_SIDR_REQ_RECEIVED) {
		told_request(side, ev);
		return;
	}
	CHECK(end >= world.ends && end < world.ends + MAX_ENDS && end->live && end->side == side);
	CHECK(end->conn == ev->conn && end->sidr == ev->sidr);
}

/* ---- the driver ---- */

static void settle(void)
{
	struct roci_cm_event ev;
	struct roci_cm_tx tx;
	struct roci_cm_msg msg;

	for (unsigned side = 0; side < SIDES; side++) {
		while (roci_cm_next_event(world.cm[side], &ev))
			tell(side, &ev);
		while (roci_cm_tx(world.cm[side], world.now, &tx)) {
			CHECK(roci_cm_msg_parse(&msg, tx.mad) == ROCI_CM_PARSE_OK);
			sent[msg.attribute]++;
			world.wire[world.wire_next++ % MAX_WIRE] = tx;
			world.wire_count += world.wire_count < MAX_WIRE;
		}
	}
}

static void pass_time(uint64_t ns)
{
	uint64_t end = world.now + ns;

	for (;;) {
		uint64_t next = end;

		for (unsigned side = 0; side < SIDES; side++) {
			uint64_t deadline = roci_cm_deadline(world.cm[side]);

			next = deadline < next ? deadline : next;
		}
		world.now = next > world.now ? next : world.now;
		if (world.now >= end)
			break;
		for (unsigned side = 0; side < SIDES; side++)
			roci_cm_timers(world.cm[side], world.now);
		settle();
	}
	settle();
}

static void receive(const struct roci_cm_tx *tx)
{
	unsigned side = memcmp(tx->dgid, gids[0], 16) ? 1 : 0;

	roci_cm_rx(world.cm[side], world.now, tx->mad, tx->sgid, tx->dgid, 1);
	settle();
}

/* ---- what a script can say ---- */

static struct roci_cm_path path_from(unsigned side)
{
	struct roci_cm_path path = {.pkey = 0xffff, .mtu = 3, .packet_life = 16, .hop_limit = 64, .rate = 7};

	memcpy(path.sgid, gids[side], 16);
	memcpy(path.dgid, gids[!side], 16);
	return path;
}

static struct roci_cm_bytes ip_header(unsigned side)
{
	static uint8_t bytes[ROCI_CM_IP_BYTES];
	struct roci_cm_ip ip = {.src_port = 1, .ipv4 = true};

	memcpy(ip.src, gids[side], 16);
	memcpy(ip.dst, gids[!side], 16);
	roci_cm_ip_build(&ip, bytes);
	return (struct roci_cm_bytes){bytes, sizeof(bytes)};
}

static void begin_conn(struct end *end)
{
	struct roci_cm_connect ask = {
		.service_id = SERVICE + (take() % 8 == 0),
		.path = path_from(end->side),
		.qpn = 2 + take() % 64, /* few, so that some are stale */
		.private = ip_header(end->side),
		.user = end,
	};

	CHECK(roci_conn_connect(world.cm[end->side], world.now, &ask, &end->conn) == 0);
}

static void begin_sidr(struct end *end)
{
	struct roci_cm_resolve ask = {.service_id = SERVICE + (take() % 8 == 0),
				      .path = path_from(end->side),
				      .private = ip_header(end->side),
				      .user = end};

	CHECK(roci_sidr_resolve(world.cm[end->side], world.now, &ask, &end->sidr) == 0);
}

static void begin(void)
{
	unsigned how = take();
	struct end *end = new_end(how & 1);

	if (end && how % 8 < 6)
		begin_conn(end);
	else if (end)
		begin_sidr(end);
}

/* What a consumer does next, as a rule. */
static unsigned sensible(const struct roci_conn *conn)
{
	switch (conn->state) {
	case ROCI_CONN_REQ_RECEIVED: return 1;
	case ROCI_CONN_REP_RECEIVED: return 2;
	case ROCI_CONN_ESTABLISHED:
	case ROCI_CONN_DREQ_RECEIVED: return 3;
	default: return 0;
	}
}

/* Something to a handle, mostly when it is the time for it. */
static void act(void)
{
	struct end *end = &world.ends[take() % MAX_ENDS];
	struct roci_cm_accept accept = {.qpn = 2 + take() % 64, .private = {"welcome", 8}};
	struct roci_cm_sidr_answer answer = {.qpn = 7, .status = accept.qpn % 2 ? ROCI_SIDR_SUCCESS : ROCI_SIDR_REJECT};
	const struct roci_cm_bytes none = {0};
	unsigned how = take();

	for (unsigned i = 0; i < MAX_ENDS && !end->live; i++)
		end = &world.ends[(end - world.ends + 1) % MAX_ENDS];
	if (!end->live)
		return;
	if (end->sidr) {
		roci_sidr_fetched(end->sidr, world.now);
		roci_sidr_answer(end->sidr, world.now, &answer);
		return;
	}
	switch (how < 0xc0 ? sensible(end->conn) : how % 6) {
	case 0: roci_conn_fetched(end->conn, world.now); break;
	case 1: roci_conn_accept(end->conn, world.now, &accept); break;
	case 2: roci_conn_establish(end->conn, world.now, none); break;
	case 3: roci_conn_disconnect(end->conn, world.now, none); break;
	case 4: roci_conn_reject(end->conn, world.now, ROCI_REJ_CONSUMER_DEFINED, none, none); break;
	default: roci_conn_notify(end->conn, world.now); break;
	}
}

static void leave(void)
{
	struct end *end = &world.ends[take() % MAX_ENDS];

	if (end->live)
		let_go(end);
}

static void listen(unsigned side)
{
	struct roci_cm_listen ask = {.service_id = SERVICE, .backlog = 1 + take() % 8, .user = &world.listener[side]};

	if (world.listener[side]) {
		roci_listener_destroy(world.listener[side], world.now);
		world.listener[side] = NULL;
	} else {
		CHECK(roci_cm_listen(world.cm[side], &ask, &world.listener[side]) == 0);
	}
}

static void mutate(struct roci_cm_tx *tx)
{
	for (unsigned n = 1 + take() % 4; n--;) {
		unsigned how = take(), at = take() % (how & 1 ? 80 : ROCI_CM_MAD_BYTES);

		switch (how >> 1 & 7) {
		case 0: tx->mad[at] = (uint8_t)take(); break;
		case 1: tx->mad[17] = (uint8_t)(ROCI_CM_ATTR_REQ + take() % 12); break;
		case 2: tx->sgid[15] = (uint8_t)take(); break;
		case 3: /* the ids of another message, of either side */
			memcpy(tx->mad + ROCI_MAD_HEADER_BYTES,
			       world.wire[at % MAX_WIRE].mad + ROCI_MAD_HEADER_BYTES + (how & 1 ? 4 : 0), 4);
			break;
		case 4:
			memcpy(tx->mad + ROCI_MAD_HEADER_BYTES + 4,
			       world.wire[at % MAX_WIRE].mad + ROCI_MAD_HEADER_BYTES + (how & 1 ? 4 : 0), 4);
			break;
		default: tx->mad[at] ^= (uint8_t)(1u << take() % 8); break;
		}
	}
}

/* The next message arrives as it is. */
static void carry(void)
{
	if (world.wire_next - world.carried > world.wire_count)
		world.carried = world.wire_next - world.wire_count;
	if (world.carried != world.wire_next) {
		struct roci_cm_tx tx = world.wire[world.carried++ % MAX_WIRE];

		receive(&tx);
	}
}

/* Any of those that were sent lately arrives, mostly not as it was. */
static void haunt(void)
{
	struct roci_cm_tx tx;
	unsigned back = take();

	if (!world.wire_count)
		return;
	tx = world.wire[(world.wire_next - 1 - back % world.wire_count) % MAX_WIRE];
	if (back < 0xc0)
		mutate(&tx);
	receive(&tx);
}

static void invent(void)
{
	struct roci_cm_tx tx = {.ifindex = 1};
	unsigned to = take() & 1;

	memcpy(tx.dgid, gids[to], 16);
	memcpy(tx.sgid, gids[!to], 16);
	for (unsigned i = 0; i < ROCI_CM_MAD_BYTES; i++)
		tx.mad[i] = (uint8_t)take();
	if (tx.mad[18] & 1) /* else it may be of any class */
		memcpy(tx.mad, (uint8_t[]){1, 7, 2, 3}, 4);
	tx.mad[16] = 0;
	tx.mad[17] = (uint8_t)(ROCI_CM_ATTR_REQ + tx.mad[17] % 12);
	receive(&tx);
}

static void step(void)
{
	switch (take() % 32) {
	case 0:
	case 1:
	case 2: begin(); break;
	case 3: leave(); break;
	case 4: listen(take() & 1); break;
	case 5: invent(); break;
	case 6:
	case 7: pass_time(1ull << take() % 36); break;
	case 8:
	case 9:
	case 10: haunt(); break;
	case 11:
		world.carried += world.carried != world.wire_next; /* lost */
		break;
	case 12:
	case 13:
	case 14:
	case 15:
	case 16:
	case 17:
	case 18: act(); break;
	default: carry(); break;
	}
	settle();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	struct roci_cm_config config = {.id_mask = 0xff, .random = draw}; /* ids are few, so that strangers hit some */

	memset(&world, 0, sizeof(world));
	world.script = bytes;
	world.left = len;
	world.now = SECOND;
	for (unsigned side = 0; side < SIDES; side++) {
		config.id_base = 5u << 22 | side << 10;
		world.cm[side] = roci_cm_create(&config);
		CHECK(world.cm[side]);
		listen(side);
	}
	while (world.left)
		step();
	for (unsigned i = 0; i < MAX_ENDS; i++)
		if (world.ends[i].live)
			let_go(&world.ends[i]);
	for (unsigned side = 0; side < SIDES; side++)
		if (world.listener[side])
			listen(side);
	settle();
	pass_time(FOREVER);
	for (unsigned side = 0; side < SIDES; side++) {
		CHECK(cm_object_count(world.cm[side]) == 0);
		CHECK(roci_cm_deadline(world.cm[side]) == ROCI_CM_NEVER);
		roci_cm_destroy(world.cm[side]);
	}
	return 0;
}

#ifndef ROCI_LIBFUZZER

int main(int argc, char **argv)
{
	unsigned long iterations = argc > 1 ? strtoul(argv[1], NULL, 0) : 20000;
	uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 0) : 1;

	for (unsigned long i = 0; i < iterations; i++) {
		size_t len = 16 + random_below(&seed, 1500);
		uint8_t *script = malloc(len);

		CHECK(script);
		random_fill(&seed, script, len);
		LLVMFuzzerTestOneInput(script, len);
		free(script);
	}
	for (unsigned kind = 0; kind < ROCI_CM_EVENT_KINDS; kind++) {
		printf("%8lu %s\n", told[kind], cm_event_name(kind));
		CHECK(told[kind] || iterations < 1000);
	}
	for (unsigned attribute = ROCI_CM_ATTR_REQ; attribute <= ROCI_CM_ATTR_SIDR_REP; attribute++) {
		printf("%8lu %s\n", sent[attribute], cm_message_name(attribute));
		CHECK(sent[attribute] || iterations < 1000);
	}
	return 0;
}

#endif
