/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two connection managers with a hostile network and careless consumers between them, all led by a script of bytes. The
 * network carries, loses, repeats and changes MADs, sends them from other addresses, and makes them from nothing but
 * the script. Consumers make any call in any order. Checked: events are for handles that the consumer still has, and
 * when all consumers have let go, nothing is left.
 *
 * With -DROCI_LIBFUZZER and -fsanitize=fuzzer this is a libFuzzer target. Without them it is a program that draws its
 * scripts at random: fuzz_cm [iterations [seed]].
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cm/cm.h"
#include "cm_inspect.h"
#include "cm/msg.h"
#include "script.h"
#include "seeded.h"

#define SECOND  1000000000ull
#define FOREVER (1000 * 3600 * SECOND) /* longer than any time that a message can ask for */
#define SERVICE (0x01060000 + 22222)

enum { SIDES = 2, MAX_ENDS = 48, MAX_WIRE = 64 };

/* A connection or SIDR exchange that a consumer has. */
struct end {
	bool live;
	unsigned side;
	struct roci_conn *conn; /* or */
	struct roci_sidr *sidr;
};

static struct {
	uint64_t now, seed;
	struct roci_cm *cm[SIDES];
	struct roci_listener *listener[SIDES];
	struct end ends[MAX_ENDS];
	struct roci_cm_tx wire[MAX_WIRE]; /* a ring of MADs that were sent; the oldest are lost */
	unsigned wire_next, wire_count, carried;
} world;

/* Counts over all runs: main() checks that every event and message occurs. */
static unsigned long events[ROCI_CM_EVENT_KINDS], sent[0x20];

static const uint8_t gids[SIDES][16] = {{[10] = 0xff, [11] = 0xff, 10, 0, 0, 1},
					{[10] = 0xff, [11] = 0xff, 10, 0, 0, 2}};

static uint32_t random_id(void *context)
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

static void destroy_end(struct end *end)
{
	if (end->conn)
		roci_conn_destroy(end->conn, world.now);
	else if (end->sidr)
		roci_sidr_destroy(end->sidr, world.now);
	end->live = false;
}

static void take_request(unsigned side, const struct roci_cm_event *ev)
{
	struct end *end = new_end(side);

	CHECK(ev->user == &world.listener[side] && ev->listener == world.listener[side]);
	CHECK(!ev->conn != !ev->sidr);
	if (!end) {
		destroy_end(&(struct end){.conn = ev->conn, .sidr = ev->sidr});
		return;
	}
	end->conn = ev->conn;
	end->sidr = ev->sidr;
	if (ev->conn)
		roci_conn_set_user(ev->conn, end);
	else
		roci_sidr_set_user(ev->sidr, end);
}

static void check_event(unsigned side, const struct roci_cm_event *ev)
{
	const struct end *end = ev->user;

	CHECK(ev->kind < ROCI_CM_EVENT_KINDS && cm_event_name(ev->kind) && ev->path);
	CHECK(ev->private.len <= ROCI_CM_MAX_PRIVATE && (ev->private.data || !ev->private.len));
	events[ev->kind]++;
	if (ev->kind == ROCI_CM_REQ_RECEIVED || ev->kind == ROCI_CM_SIDR_REQ_RECEIVED) {
		take_request(side, ev);
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
			check_event(side, &ev);
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

/* ---- what a script can do ---- */

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

static void connect_end(struct end *end)
{
	struct roci_cm_connect params = {
		.service_id = SERVICE + (script_byte() % 8 == 0),
		.path = path_from(end->side),
		.qpn = 2 + script_byte() % 64, /* few QPNs, so that some are stale */
		.private = ip_header(end->side),
		.user = end,
	};

	CHECK(roci_conn_connect(world.cm[end->side], world.now, &params, &end->conn) == 0);
}

static void resolve_end(struct end *end)
{
	struct roci_cm_resolve params = {.service_id = SERVICE + (script_byte() % 8 == 0),
					 .path = path_from(end->side),
					 .private = ip_header(end->side),
					 .user = end};

	CHECK(roci_sidr_resolve(world.cm[end->side], world.now, &params, &end->sidr) == 0);
}

static void new_exchange(void)
{
	unsigned how = script_byte();
	struct end *end = new_end(how & 1);

	if (end && how % 8 < 6)
		connect_end(end);
	else if (end)
		resolve_end(end);
}

/* The call that the state asks for, as an index of act(). */
static unsigned expected_call(const struct roci_conn *conn)
{
	switch (conn->state) {
	case ROCI_CONN_REQ_RECEIVED: return 1;
	case ROCI_CONN_REP_RECEIVED: return 2;
	case ROCI_CONN_ESTABLISHED:
	case ROCI_CONN_DREQ_RECEIVED: return 3;
	default: return 0;
	}
}

/* A call on some handle, mostly the expected one. */
static void act(void)
{
	struct end *end = &world.ends[script_byte() % MAX_ENDS];
	struct roci_cm_accept accept = {.qpn = 2 + script_byte() % 64, .private = {"welcome", 8}};
	struct roci_cm_sidr_answer answer = {.qpn = 7, .status = accept.qpn % 2 ? ROCI_SIDR_SUCCESS : ROCI_SIDR_REJECT};
	const struct roci_cm_bytes none = {0};
	unsigned how = script_byte();

	for (unsigned i = 0; i < MAX_ENDS && !end->live; i++)
		end = &world.ends[(end - world.ends + 1) % MAX_ENDS];
	if (!end->live)
		return;
	if (end->sidr) {
		roci_sidr_fetched(end->sidr, world.now, script_byte() & 1);
		roci_sidr_answer(end->sidr, world.now, &answer);
		return;
	}
	switch (how < 0xc0 ? expected_call(end->conn) : how % 6) {
	case 0: roci_conn_fetched(end->conn, world.now, script_byte() & 1); break;
	case 1: roci_conn_accept(end->conn, world.now, &accept); break;
	case 2: roci_conn_establish(end->conn, world.now, none); break;
	case 3: roci_conn_disconnect(end->conn, world.now, none); break;
	case 4: roci_conn_reject(end->conn, world.now, ROCI_REJ_CONSUMER_DEFINED, none, none); break;
	default: roci_conn_notify(end->conn, world.now); break;
	}
}

static void destroy_any(void)
{
	struct end *end = &world.ends[script_byte() % MAX_ENDS];

	if (end->live)
		destroy_end(end);
}

static void listen(unsigned side)
{
	struct roci_cm_listen params = {
		.service_id = SERVICE, .backlog = 1 + script_byte() % 8, .user = &world.listener[side]};

	if (world.listener[side]) {
		roci_listener_destroy(world.listener[side], world.now);
		world.listener[side] = NULL;
	} else {
		CHECK(roci_cm_listen(world.cm[side], &params, &world.listener[side]) == 0);
	}
}

static void mutate(struct roci_cm_tx *tx)
{
	for (unsigned n = 1 + script_byte() % 4; n--;) {
		unsigned how = script_byte(), at = script_byte() % (how & 1 ? 80 : ROCI_CM_MAD_BYTES);

		switch (how >> 1 & 7) {
		case 0: tx->mad[at] = (uint8_t)script_byte(); break;
		case 1: tx->mad[17] = (uint8_t)(ROCI_CM_ATTR_REQ + script_byte() % 12); break;
		case 2: tx->sgid[15] = (uint8_t)script_byte(); break;
		case 3: /* the ids of another MAD, of either side */
			memcpy(tx->mad + ROCI_MAD_HEADER_BYTES,
			       world.wire[at % MAX_WIRE].mad + ROCI_MAD_HEADER_BYTES + (how & 1 ? 4 : 0), 4);
			break;
		case 4:
			memcpy(tx->mad + ROCI_MAD_HEADER_BYTES + 4,
			       world.wire[at % MAX_WIRE].mad + ROCI_MAD_HEADER_BYTES + (how & 1 ? 4 : 0), 4);
			break;
		default: tx->mad[at] ^= (uint8_t)(1u << script_byte() % 8); break;
		}
	}
}

/* The next MAD arrives as it was sent. */
static void carry(void)
{
	if (world.wire_next - world.carried > world.wire_count)
		world.carried = world.wire_next - world.wire_count;
	if (world.carried != world.wire_next) {
		struct roci_cm_tx tx = world.wire[world.carried++ % MAX_WIRE];

		receive(&tx);
	}
}

/* A MAD that was sent lately arrives, mostly changed. */
static void replay(void)
{
	struct roci_cm_tx tx;
	unsigned back = script_byte();

	if (!world.wire_count)
		return;
	tx = world.wire[(world.wire_next - 1 - back % world.wire_count) % MAX_WIRE];
	if (back < 0xc0)
		mutate(&tx);
	receive(&tx);
}

static void inject_random(void)
{
	struct roci_cm_tx tx = {.ifindex = 1};
	unsigned to = script_byte() & 1;

	memcpy(tx.dgid, gids[to], 16);
	memcpy(tx.sgid, gids[!to], 16);
	for (unsigned i = 0; i < ROCI_CM_MAD_BYTES; i++)
		tx.mad[i] = (uint8_t)script_byte();
	if (tx.mad[18] & 1) /* otherwise it may have any class */
		memcpy(tx.mad, (uint8_t[]){1, 7, 2, 3}, 4);
	tx.mad[16] = 0;
	tx.mad[17] = (uint8_t)(ROCI_CM_ATTR_REQ + tx.mad[17] % 12);
	receive(&tx);
}

static void step(void)
{
	switch (script_byte() % 32) {
	case 0:
	case 1:
	case 2: new_exchange(); break;
	case 3: destroy_any(); break;
	case 4: listen(script_byte() & 1); break;
	case 5: inject_random(); break;
	case 6:
	case 7: pass_time(1ull << script_byte() % 36); break;
	case 8:
	case 9:
	case 10: replay(); break;
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
	struct roci_cm_config config = {.id_mask = 0xff,
					.random = random_id}; /* few ids, so that random ones hit some */

	memset(&world, 0, sizeof(world));
	script_begin(bytes, len);
	world.now = SECOND;
	for (unsigned side = 0; side < SIDES; side++) {
		config.id_base = 5u << 22 | side << 10;
		world.cm[side] = roci_cm_create(&config);
		CHECK(world.cm[side]);
		listen(side);
	}
	while (!script_ended())
		step();
	for (unsigned i = 0; i < MAX_ENDS; i++)
		if (world.ends[i].live)
			destroy_end(&world.ends[i]);
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
	unsigned long runs = seeded_scripts(argc, argv, 20000, 1516);

	for (unsigned kind = 0; kind < ROCI_CM_EVENT_KINDS; kind++) {
		printf("%8lu %s\n", events[kind], cm_event_name(kind));
		CHECK(events[kind] || runs < 1000);
	}
	for (unsigned attribute = ROCI_CM_ATTR_REQ; attribute <= ROCI_CM_ATTR_SIDR_REP; attribute++) {
		printf("%8lu %s\n", sent[attribute], cm_message_name(attribute));
		CHECK(sent[attribute] || runs < 1000);
	}
	return 0;
}

#endif
