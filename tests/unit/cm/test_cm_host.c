/* SPDX-License-Identifier: BSD-2-Clause */
/* The manager as the device drives it: which peers on this host count as dead, what is learned of a path MTU, which
 * probes go on to another process. */

#include "../device/bench.h"

#include <stdio.h>
#include <stdlib.h>

#include "cm/conn_state.h"
#include "cm/msg.h"
#include "device/cm_host.h"
#include "device/device_state.h"
#include "device/gsi.h"
#include "device/hold.h"
#include "device/ports.h"
#include "wire/mtu_probe.h"

#define SECOND 1000000000ull

static struct roci_conn *disconnected[8];
static unsigned disconnected_count;
static unsigned unended, ends; /* events since the last end, and ends */

static const uint8_t *loopback(void)
{
	static uint8_t gid[16];

	gid_of("127.0.0.1", gid);
	return gid;
}

static void on_event(const struct roci_event *ev)
{
}

static void on_cm_event(const struct roci_cm_event *ev)
{
	if (ev->kind == ROCI_CM_DREQ_RECEIVED)
		disconnected[disconnected_count++] = ev->conn;
	unended++;
}

static void on_cm_end(void)
{
	assert_true(unended); /* never without an event */
	unended = 0;
	ends++;
}

static struct roci_conn *ask(struct roci_device *dev, uint64_t now, uint8_t mtu)
{
	static uint32_t qpn = 0x1000;
	struct roci_cm_connect ask = {
		.qpn = ++qpn, .path = {.mtu = mtu, .packet_life = 16, .hop_limit = 64}, .transport = ROCI_CM_RC};
	struct roci_conn *conn;

	memcpy(ask.path.sgid, loopback(), 16);
	memcpy(ask.path.dgid, loopback(), 16);
	assert_int_equal(roci_conn_connect(roci_cm_host_cm(dev), now, &ask, &conn), 0);
	return conn;
}

/* The peer answers the REQ. */
static void answer(struct roci_device *dev, uint64_t now, const struct roci_conn *conn, struct roci_cm_msg *msg)
{
	uint8_t mad[ROCI_CM_MAD_BYTES];

	msg->tid = conn->tid;
	msg->remote_id = conn->info.local_comm_id;
	roci_cm_msg_build(msg, mad);
	roci_cm_host_rx(dev, now, mad, loopback(), loopback(), msg->local_id, NULL);
}

/* Its communication id has this slot. */
static void accept_from(struct roci_device *dev, uint64_t now, const struct roci_conn *conn, unsigned slot)
{
	uint32_t qpn = conn->info.local_qpn;
	struct roci_cm_msg rep = {
		.attribute = ROCI_CM_ATTR_REP, .local_id = slot << ROCI_COMM_SLOT_SHIFT | qpn, .qpn = qpn};

	answer(dev, now, conn, &rep);
}

/* A connection to a peer at 127.0.0.1 whose communication id has this slot. */
static struct roci_conn *connect_to(struct roci_device *dev, uint64_t now, unsigned slot)
{
	struct roci_conn *conn = ask(dev, now, 3);

	accept_from(dev, now, conn, slot);
	assert_int_equal(roci_conn_establish(conn, now, (struct roci_cm_bytes){0}), 0);
	return conn;
}

/* The process may be of another user or container, who have a registry of their own. */
static void open_elsewhere(struct roci_registry *reg)
{
	char mine[200], other[256];

	snprintf(mine, sizeof(mine), "%s", getenv("ROCI_RUNDIR"));
	snprintf(other, sizeof(other), "%s/other", mine);
	setenv("ROCI_RUNDIR", other, 1);
	assert_int_equal(roci_registry_open(reg), 0);
	setenv("ROCI_RUNDIR", mine, 1);
}

/* A free slot says nothing: the peer may be the kernel's. */
static void only_peers_that_were_alive_can_be_dead(void **state)
{
	struct roci_registry one, two;
	struct roci_conn *foreign, *killed, *alive, *successor;
	uint64_t now = roci_now();
	struct roci_device *dev;
	unsigned slot, free_slot = 1;

	assert_int_equal(roci_device_get(on_event, &dev), 0);
	assert_int_equal(roci_cm_host_attach(dev, on_cm_event, on_cm_end), 0);
	roci_device_lock(dev); /* until the end, so that its thread does not answer what is sent to its own address */
	assert_int_equal(roci_registry_open(&one), 0);
	open_elsewhere(&two);
	while (roci_registry_alive(&one, free_slot))
		free_slot++;
	slot = one.slot;
	killed = connect_to(dev, now, slot);
	foreign = connect_to(dev, now, free_slot);
	roci_registry_close(&one);
	roci_cm_host_drive(dev, now + 2 * SECOND);
	assert_int_equal(disconnected_count, 1);
	assert_ptr_equal(disconnected[0], killed);

	/* Once the dead peer was found, its slot means nothing any more. */
	successor = connect_to(dev, now + 2 * SECOND, slot);
	alive = connect_to(dev, now + 2 * SECOND, two.slot);
	roci_cm_host_drive(dev, now + 4 * SECOND);
	assert_int_equal(disconnected_count, 1);
	roci_registry_close(&two);
	roci_cm_host_drive(dev, now + 6 * SECOND);
	assert_int_equal(disconnected_count, 2);
	assert_ptr_equal(disconnected[1], alive);

	roci_conn_destroy(foreign, now);
	roci_conn_destroy(killed, now);
	roci_conn_destroy(alive, now);
	roci_conn_destroy(successor, now);
	roci_device_unlock(dev);
	roci_device_put(dev);
}

/* The events of one turn end once, when all have been reported. */
static void events_end_with_the_turn(void **state)
{
	uint64_t now = roci_now();
	struct roci_device *dev;
	struct roci_conn *one, *two;

	assert_int_equal(roci_device_get(on_event, &dev), 0);
	assert_int_equal(roci_cm_host_attach(dev, on_cm_event, on_cm_end), 0);
	roci_device_lock(dev);
	ends = unended = 0;
	one = connect_to(dev, now, 0);
	two = connect_to(dev, now, 0);
	assert_int_equal(unended, 2);
	roci_cm_host_drive(dev, now);
	assert_int_equal(unended, 0);
	assert_int_equal(ends, 1);
	roci_cm_host_drive(dev, now);
	assert_int_equal(ends, 1);
	roci_conn_destroy(one, now);
	roci_conn_destroy(two, now);
	roci_device_unlock(dev);
	roci_device_put(dev);
}

/* ---- path MTU ---- */

static void reject(struct roci_device *dev, uint64_t now, const struct roci_conn *conn, uint8_t mtu)
{
	struct roci_cm_msg rej = {
		.attribute = ROCI_CM_ATTR_REJ, .reason = ROCI_REJ_INVALID_MTU, .info = {mtu}, .info_len = 1};

	answer(dev, now, conn, &rej);
}

static uint32_t known(const struct roci_device *dev, uint64_t now)
{
	return roci_path_mtu_carries(&dev->path_mtus, now, loopback(), loopback());
}

/* A connection at `now`, which is over at once. The peer takes a path MTU of `smaller` only, if that is not 0. Returns
 * what is known after that. */
static uint32_t known_after(struct roci_device *dev, uint64_t now, uint8_t mtu, uint8_t smaller)
{
	struct roci_conn *conn = ask(dev, now, mtu);

	if (smaller)
		reject(dev, now, conn, smaller);
	accept_from(dev, now, conn, 0);
	roci_cm_host_drive(dev, now);
	roci_conn_destroy(conn, now);
	return known(dev, now);
}

/* The loopback interface bears 4096 bytes. */
static void a_path_mtu_is_what_was_found_not_what_was_asked(void **state)
{
	const uint64_t now = roci_now();
	struct roci_device *dev;

	assert_int_equal(roci_device_get(on_event, &dev), 0);
	assert_int_equal(roci_cm_host_attach(dev, on_cm_event, on_cm_end), 0);
	roci_device_lock(dev);
	assert_int_equal(known_after(dev, now, 3, 0), 0); /* the program's own choice */
	assert_int_equal(known_after(dev, now, 5, 0), roci_mtu_datagram_bytes(5));
	assert_int_equal(known_after(dev, now + SECOND, 5, 2), roci_mtu_datagram_bytes(2)); /* began before */
	assert_int_equal(known_after(dev, now + 2 * SECOND, 2, 0), roci_mtu_datagram_bytes(2));
	assert_int_equal(known_after(dev, now + 3 * SECOND, 5, 3), roci_mtu_datagram_bytes(2));
	/* Not renewed by the connections that used it. */
	assert_int_not_equal(known(dev, now + SECOND + ROCI_PATH_MTU_NS - 1), 0);
	assert_int_equal(known(dev, now + SECOND + ROCI_PATH_MTU_NS), 0);
	roci_device_unlock(dev);
	roci_device_put(dev);
}

/* ---- probes for another process ---- */

#define PORT 4242

/* A process that listens, and does not look at its side door. */
static void open_listener(struct roci_registry *reg)
{
	struct roci_cm_bind bind = {.ps = ROCI_PS_TCP, .port = PORT};
	unsigned index;
	uint16_t port;

	assert_int_equal(roci_registry_open(reg), 0);
	assert_int_equal(roci_ports_bind(reg, &bind, &index, &port), 0);
	assert_int_equal(roci_ports_listen(reg, index), 0);
}

/* An MTU probe for this path MTU arrives, of a REQ to PORT. */
static void receive_probe(struct roci_device *dev, uint64_t now, uint8_t mtu)
{
	static uint8_t bytes[ROCI_MAX_HEADER_BYTES + ROCI_MTU_PROBE_MOST_BYTES + 4], payload[ROCI_MTU_PROBE_MOST_BYTES];
	struct roci_cm_msg req = {.attribute = ROCI_CM_ATTR_REQ,
				  .tid = 77,
				  .local_id = 1,
				  .service_id = roci_cm_service_id(ROCI_PS_TCP, PORT)};
	struct roci_packet pkt = {
		.opcode = ROCI_OPCODE_MTU_PROBE, .dest_qpn = ROCI_QPN_GSI, .payload_len = roci_mtu_probe_bytes(mtu)};
	struct roci_span span = {payload, pkt.payload_len};
	struct roci_hello hello = {.token = req.tid};
	struct roci_av av = {.src_port = ROCI_UDP_PORT};
	uint8_t header[ROCI_MAX_HEADER_BYTES];
	struct roci_arrival from = {0};
	struct roci_datagram d = {.bytes = bytes, .from = &from};
	struct roci_frame frame;

	memcpy(hello.src, loopback(), 16);
	memcpy(hello.dst, loopback(), 16);
	memcpy(av.sgid, loopback(), 16);
	memcpy(av.dgid, loopback(), 16);
	roci_av_flow(&av, &from.flow);
	roci_hello_build(&hello, payload);
	roci_cm_msg_build(&req, payload + ROCI_HELLO_BYTES);
	frame = roci_frame(&av, header, roci_packet_build(&pkt, header), &span, 1);
	roci_seal_packet(&frame, bytes);
	d.len = frame.len;
	assert_int_equal(roci_packet_parse(&pkt, bytes, d.len), ROCI_PARSE_OK);
	assert_true(roci_mtu_probe_parse(pkt.payload, pkt.payload_len, &hello));
	roci_gsi_rx(dev, now, &d, &pkt, &hello);
}

/* Empties the side door. Returns how many messages it held. */
static unsigned drain(const struct roci_registry *reg)
{
	uint8_t bytes[8192];
	unsigned n = 0;

	while (recv(reg->door_fd, bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
		n++;
	return n;
}

/* Of a REQ's probes the longest is lost at a door, not on the path: the listener must not take it for that. */
static void no_probe_passes_a_longer_one_that_found_no_room(void **state)
{
	uint64_t now = roci_now();
	struct roci_registry listener;
	struct roci_device *dev;
	unsigned sent = 0;

	assert_int_equal(roci_device_get(on_event, &dev), 0);
	assert_int_equal(roci_cm_host_attach(dev, on_cm_event, on_cm_end), 0);
	roci_device_lock(dev);
	open_listener(&listener);
	while (!dev->stats->mads_dropped && sent++ < 10000)
		receive_probe(dev, now, 5);
	assert_int_equal(drain(&listener), sent - 1);
	for (uint8_t mtu = 4; mtu; mtu--)
		receive_probe(dev, now + 1, mtu);
	assert_int_equal(drain(&listener), 0);

	now += SECOND;
	roci_cm_host_drive(dev, now);
	assert_int_equal(drain(&listener), 0);
	receive_probe(dev, now, 5);
	assert_int_equal(drain(&listener), 1);
	roci_registry_close(&listener);
	roci_device_unlock(dev);
	roci_device_put(dev);
}

static struct roci_device *open_locked(void)
{
	struct roci_device *dev;

	assert_int_equal(roci_device_get(on_event, &dev), 0);
	assert_int_equal(roci_cm_host_attach(dev, on_cm_event, on_cm_end), 0);
	roci_device_lock(dev);
	return dev;
}

/* What a program asks for while it has more events to take is sent with what it asks for next. */
static void mads_of_a_busy_program_leave_together(void **state)
{
	const uint64_t now = roci_now();
	struct roci_device *dev = open_locked();
	uint64_t before = dev->stats->mads_sent;

	for (unsigned i = 1; i < ROCI_HOLD_CALLS; i++) {
		ask(dev, now, 3);
		roci_cm_host_called(dev, true);
		roci_cm_host_drive(dev, now);
		assert_true(roci_cm_host_holds(dev));
		assert_int_equal(dev->stats->mads_sent, before);
	}
	assert_true(roci_cm_host_deadline(dev) <= roci_now() + ROCI_HOLD_NS);
	ask(dev, now, 3);
	roci_cm_host_called(dev, true);
	roci_cm_host_drive(dev, now);
	assert_false(roci_cm_host_holds(dev));
	assert_int_equal(dev->stats->mads_sent - before, ROCI_HOLD_CALLS);
	roci_device_unlock(dev);
	roci_device_put(dev);
}

/* A test that has no processor for a while begins another row. */
static void mads_of_disconnects_in_a_row_wait(void **state)
{
	const unsigned most = 1000;
	struct roci_device *dev = open_locked();
	unsigned calls = 0;

	while (calls < most && !roci_cm_host_holds(dev)) {
		ask(dev, roci_now(), 3);
		roci_cm_host_disconnected(dev);
		roci_cm_host_drive(dev, roci_now());
		calls++;
	}
	assert_in_range(calls, ROCI_HOLD_ROW + 1, most - 1);
	roci_device_unlock(dev);
	roci_device_put(dev);
}

/* Answers to peers have few places: many that come at once take those that wait along. */
static void answers_wait_for_no_program(void **state)
{
	const unsigned many = 1000;
	const uint64_t now = roci_now();
	struct roci_device *dev = open_locked();
	uint64_t before = dev->stats->mads_sent;

	ask(dev, now, 3);
	roci_cm_host_called(dev, true);
	for (unsigned i = 0; i < many; i++) { /* disconnects of connections that nobody knows */
		struct roci_cm_msg dreq = {.attribute = ROCI_CM_ATTR_DREQ,
					   .tid = i,
					   .local_id = 0x12340000 + i,
					   .remote_id = 0x777000 + i};
		uint8_t mad[ROCI_CM_MAD_BYTES];

		roci_cm_msg_build(&dreq, mad);
		roci_cm_host_rx(dev, now, mad, loopback(), loopback(), dreq.local_id, NULL);
	}
	roci_cm_host_send(dev, now);
	assert_int_equal(dev->stats->mads_sent - before, many + 1);
	roci_device_unlock(dev);
	roci_device_put(dev);
}

/* The program has stopped, or has taken its last event, or the process ends. */
static void no_mad_waits_for_ever(void **state)
{
	struct roci_device *dev = open_locked();
	uint64_t now = roci_now(), before = dev->stats->mads_sent;

	ask(dev, now, 3);
	roci_cm_host_called(dev, true);
	roci_cm_host_drive(dev, roci_now() + ROCI_HOLD_NS);
	assert_int_equal(dev->stats->mads_sent - before, 1);

	ask(dev, now, 3);
	roci_cm_host_called(dev, true);
	ask(dev, now, 3);
	roci_cm_host_called(dev, false);
	roci_cm_host_drive(dev, now);
	assert_int_equal(dev->stats->mads_sent - before, 3);

	ask(dev, now, 3);
	roci_cm_host_called(dev, true);
	roci_cm_host_send(dev, now);
	assert_int_equal(dev->stats->mads_sent - before, 4);
	roci_device_unlock(dev);
	roci_device_put(dev);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(mads_of_a_busy_program_leave_together),
		cmocka_unit_test(mads_of_disconnects_in_a_row_wait),
		cmocka_unit_test(answers_wait_for_no_program),
		cmocka_unit_test(no_mad_waits_for_ever),
		cmocka_unit_test(only_peers_that_were_alive_can_be_dead),
		cmocka_unit_test(events_end_with_the_turn),
		cmocka_unit_test(a_path_mtu_is_what_was_found_not_what_was_asked),
		cmocka_unit_test(no_probe_passes_a_longer_one_that_found_no_room),
	};

	return cmocka_run_group_tests(tests, private_rundir, remove_rundir);
}
