/* SPDX-License-Identifier: BSD-2-Clause */
/* A ladder of packets and records that a test makes. Host 1's QP 0x11 asks, host 2's QP 0x22 answers. */
#ifndef ROCI_TESTS_DRAWN_H
#define ROCI_TESTS_DRAWN_H

#include "test.h"

#include <infiniband/verbs.h>

#include "capture_file.h"
#include "ladder/ladder.h"

#define US 1000ull

struct drawn {
	struct ladder *l;
	struct capture_tracker *tracker;
	uint64_t now_ns, number;
	uint8_t packet[4096];
};

static struct drawn d;

static inline int setup(void **state)
{
	const struct ladder_options options = {.title = "a test", .max_packets = 100};

	d = (struct drawn){
		.l = ladder_create(&options), .tracker = capture_tracker_create(), .now_ns = 1700000000ull << 30};
	return d.l && d.tracker ? 0 : -1;
}

static inline int teardown(void **state)
{
	ladder_destroy(d.l);
	capture_tracker_destroy(d.tracker);
	return 0;
}

/* A packet of len bytes in `d.packet`, captured by process `pid` (0: not told). */
static inline void see(enum capture_direction direction, uint32_t len, uint32_t pid)
{
	struct {
		uint16_t code, len;
		uint32_t value;
	} queue = {6, 4, pid};
	struct capture_record record = {.kind = CAPTURE_PACKET,
					.direction = direction,
					.number = ++d.number,
					.time_ns = d.now_ns += US,
					.link_type = FILE_RAW,
					.bytes = d.packet,
					.len = len,
					.original_len = len,
					.options = (const uint8_t *)&queue,
					.options_len = pid ? sizeof(queue) : 0};
	struct capture_frame frame;
	struct capture_event e;

	capture_tracker_take(d.tracker, &record, &frame, &e);
	ladder_take_packet(d.l, &e);
}

/* Host 1's request of one packet; returns its length. */
static inline uint32_t ask(unsigned operation, uint32_t psn)
{
	return make_roce(d.packet, 1, 2,
			 &(const struct roci_packet){.opcode = (uint8_t)(ROCI_TRANSPORT_RC | operation),
						     .pkey = 0xffff,
						     .dest_qpn = 0x22,
						     .psn = psn,
						     .ack_req = true,
						     .dma_len = 64,
						     .payload_len = 64});
}

static inline uint32_t answer(uint32_t psn, uint8_t syndrome)
{
	return make_roce(d.packet, 2, 1,
			 &(const struct roci_packet){.opcode = ROCI_TRANSPORT_RC | ROCI_OP_ACKNOWLEDGE,
						     .pkey = 0xffff,
						     .dest_qpn = 0x11,
						     .psn = psn,
						     .syndrome = syndrome});
}

/* Of process `pid`: 1 has QP 0x11, 2 has 0x22. */
static inline struct roci_record record_of(enum roci_record_kind kind, uint32_t pid)
{
	struct roci_record r = {.time_ns = d.now_ns += US,
				.pid = pid,
				.kind = (uint16_t)kind,
				.qp_type = IBV_QPT_RC,
				.flags = kind == ROCI_RECORD_POST_SEND ? IBV_SEND_SIGNALED : 0,
				.qpn = pid == 1 ? 0x11 : 0x22,
				.peer = pid == 1 ? 0x22 : 0x11,
				.queue = 1};

	roci_gid_from_ipv4(r.local_gid, (uint8_t[]){10, 0, 0, (uint8_t)pid});
	roci_gid_from_ipv4(r.remote_gid, (uint8_t[]){10, 0, 0, (uint8_t)(3 - pid)});
	return r;
}

static inline void tell(const struct roci_record *r)
{
	capture_tracker_record(d.tracker, r);
	ladder_take_record(d.l, r);
}

/* Both processes, and their QPs ready to receive. */
static inline void begin(void)
{
	for (uint32_t pid = 1; pid <= 2; pid++) {
		struct roci_record r = record_of(ROCI_RECORD_PROCESS, pid);

		snprintf(r.text, sizeof(r.text), "program %u", pid);
		tell(&r);
		r = record_of(ROCI_RECORD_QP_STATE, pid);
		r.status = IBV_QPS_RTR;
		r.length = 1024;
		tell(&r);
	}
}

static inline void finish(void)
{
	assert_int_equal(ladder_finish(d.l, d.tracker), 0);
}

/* Writes the ladder as text of 100 columns into `to`. */
static inline void draw_text(char *to, size_t size, unsigned columns)
{
	FILE *out = fmemopen(to, size, "w");

	assert_non_null(out);
	assert_int_equal(ladder_write_text(d.l, &(const struct ladder_text_options){.columns = columns}, out), 0);
	fclose(out);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

#endif
