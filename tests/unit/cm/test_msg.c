/* SPDX-License-Identifier: BSD-2-Clause */
#include "test.h"

#include <stdlib.h>
#include <string.h>

#include "capture.h"
#include "cm_inspect.h"
#include "cm/msg.h"
#include "random.h"
#include "wire/bytes.h"
#include "wire/packet.h"

static struct captures captures;

static int load(void **state)
{
	return captures_load(&captures, NULL) ? 0 : -1;
}

static int unload(void **state)
{
	captures_free(&captures);
	return 0;
}

/* The MAD of a captured packet to QP1, or NULL. */
static const uint8_t *mad_of(const struct capture_packet *captured)
{
	struct roci_packet pkt;

	if (roci_packet_parse(&pkt, captured->bytes, captured->len) != ROCI_PARSE_OK || pkt.dest_qpn != 1)
		return NULL;
	assert_int_equal(pkt.payload_len, ROCI_CM_MAD_BYTES);
	return pkt.payload;
}

static void captured_mads_parse_and_rebuild(void **state)
{
	unsigned seen[0x20] = {0}, count = 0;

	for (size_t i = 0; i < captures.count; i++) {
		const uint8_t *mad = mad_of(&captures.packets[i]);
		uint8_t built[ROCI_CM_MAD_BYTES];
		struct roci_cm_msg msg;

		if (!mad)
			continue;
		count++;
		assert_int_equal(roci_cm_msg_parse(&msg, mad), ROCI_CM_PARSE_OK);
		seen[msg.attribute]++;
		memset(built, 0xaa, sizeof(built));
		roci_cm_msg_build(&msg, built);
		assert_memory_equal(built, mad, sizeof(built));
	}
	assert_true(count > 20);
	for (unsigned attribute = ROCI_CM_ATTR_REQ; attribute <= ROCI_CM_ATTR_SIDR_REP; attribute++)
		if (!seen[attribute])
			fail_msg("no capture has a %s", cm_message_name(attribute));
}

static const uint8_t *first(enum roci_cm_attribute attribute, const char *file, struct roci_cm_msg *msg)
{
	for (size_t i = 0; i < captures.count; i++) {
		const uint8_t *mad = strcmp(captures.packets[i].file, file) ? NULL : mad_of(&captures.packets[i]);

		if (mad && roci_cm_msg_parse(msg, mad) == ROCI_CM_PARSE_OK && msg->attribute == attribute)
			return mad;
	}
	fail_msg("no %s in %s", cm_message_name(attribute), file);
	return NULL;
}

/* The values are those that tshark and the captured program show for the first REQ. */
static void a_captured_req_has_its_fields(void **state)
{
	struct roci_cm_msg msg;
	struct roci_cm_ip ip;

	first(ROCI_CM_ATTR_REQ, "rxe-6.1-cm-ok.pcap", &msg);
	assert_true(roci_cm_service_is_ip(msg.service_id));
	assert_int_equal(roci_cm_service_ps(msg.service_id), ROCI_PS_TCP);
	assert_int_equal(msg.remote_response_timeout, 20);
	assert_int_equal(msg.local_response_timeout, 20);
	assert_int_equal(msg.max_cm_retries, 15);
	assert_int_equal(msg.pkey, 0xffff);
	assert_int_equal(msg.mtu, 3);
	assert_int_equal(msg.primary.local_lid, 0xffff);
	assert_int_equal(msg.primary.ack_timeout, 19);
	assert_true(roci_cm_ip_parse(&ip, msg.private, ROCI_CM_REQ_PRIVATE));
	assert_true(ip.ipv4);
	assert_memory_equal(ip.dst, msg.primary.remote_gid, 16);
	assert_memory_equal(ip.src, msg.primary.local_gid, 16);
}

static void a_captured_rejection_has_its_reason(void **state)
{
	bool reasons[256] = {0};

	for (size_t i = 0; i < captures.count; i++) {
		const uint8_t *mad = mad_of(&captures.packets[i]);
		struct roci_cm_msg msg;

		if (mad && roci_cm_msg_parse(&msg, mad) == ROCI_CM_PARSE_OK && msg.attribute == ROCI_CM_ATTR_REJ)
			reasons[msg.reason & 0xff] = true;
	}
	assert_true(reasons[ROCI_REJ_CONSUMER_DEFINED]);
}

/* Every bit that a field covers survives; reserved bits become zero and stay zero. */
static void any_bytes_reach_a_fixed_point(void **state)
{
	uint64_t seed = 3;

	for (unsigned round = 0; round < 20000; round++) {
		uint8_t mad[ROCI_CM_MAD_BYTES], once[ROCI_CM_MAD_BYTES], twice[ROCI_CM_MAD_BYTES];
		struct roci_cm_msg msg, again;

		random_fill(&seed, mad, sizeof(mad));
		mad[0] = 1;
		mad[1] = 7;
		mad[2] = 2;
		mad[3] = 3;
		mad[16] = 0;
		mad[17] = (uint8_t)(0x0f + random_below(&seed, 13));
		if (mad[17] == 0x0f || mad[17] == 0x1b) {
			assert_int_equal(roci_cm_msg_parse(&msg, mad), ROCI_CM_PARSE_UNSUPPORTED);
			continue;
		}
		assert_int_equal(roci_cm_msg_parse(&msg, mad), ROCI_CM_PARSE_OK);
		assert_true(msg.info_len <= sizeof(msg.info));
		roci_cm_msg_build(&msg, once);
		assert_int_equal(roci_cm_msg_parse(&again, once), ROCI_CM_PARSE_OK);
		assert_memory_equal(&again, &msg, sizeof(msg));
		roci_cm_msg_build(&again, twice);
		assert_memory_equal(once, twice, sizeof(once));
	}
}

static void other_classes_are_not_cm(void **state)
{
	uint8_t mad[ROCI_CM_MAD_BYTES] = {1, 7, 2, 3, [17] = ROCI_CM_ATTR_RTU};
	struct roci_cm_msg msg;

	assert_int_equal(roci_cm_msg_parse(&msg, mad), ROCI_CM_PARSE_OK);
	for (unsigned i = 0; i < 4; i++) {
		mad[i] ^= 0x80;
		assert_int_equal(roci_cm_msg_parse(&msg, mad), ROCI_CM_PARSE_NOT_CM);
		mad[i] ^= 0x80;
	}
	mad[16] = 1;
	assert_int_equal(roci_cm_msg_parse(&msg, mad), ROCI_CM_PARSE_UNSUPPORTED);
	assert_int_equal(roci_cm_private_room(0x1b), 0);
}

/* Where Linux has it (include/rdma/ibta_vol1_c12.h, CM_REQ_VENDOR_ID and CM_REP_VENDOR_ID_H, _M, _L). */
static void the_vendor_id_is_where_linux_has_it(void **state)
{
	struct roci_cm_msg msg = {.attribute = ROCI_CM_ATTR_REQ, .vendor_id = 0x123456, .modifier = 0x789abcde}, got;
	uint8_t mad[ROCI_CM_MAD_BYTES];

	roci_cm_msg_build(&msg, mad);
	assert_int_equal(roci_get_be32(mad + 24 + 4), 0x123456);
	assert_int_equal(roci_get_be32(mad + 20), 0x789abcde);
	msg.attribute = ROCI_CM_ATTR_REP;
	msg.qpn = msg.starting_psn = 0xffffff;
	roci_cm_msg_build(&msg, mad);
	assert_int_equal(mad[24 + 15], 0x12);
	assert_int_equal(mad[24 + 19], 0x34);
	assert_int_equal(mad[24 + 23], 0x56);
	assert_int_equal(roci_cm_msg_parse(&got, mad), ROCI_CM_PARSE_OK);
	assert_memory_equal(&got, &msg, sizeof(msg));
}

static void fields_too_wide_are_cut(void **state)
{
	struct roci_cm_msg msg = {.attribute = ROCI_CM_ATTR_DREQ, .qpn = 0xab123456}, got;
	uint8_t mad[ROCI_CM_MAD_BYTES];

	roci_cm_msg_build(&msg, mad);
	assert_int_equal(roci_cm_msg_parse(&got, mad), ROCI_CM_PARSE_OK);
	assert_int_equal(got.qpn, 0x123456);
	assert_int_equal(mad[24 + 11], 0); /* the next field is untouched */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(captured_mads_parse_and_rebuild),
		cmocka_unit_test(a_captured_req_has_its_fields),
		cmocka_unit_test(a_captured_rejection_has_its_reason),
		cmocka_unit_test(any_bytes_reach_a_fixed_point),
		cmocka_unit_test(other_classes_are_not_cm),
		cmocka_unit_test(the_vendor_id_is_where_linux_has_it),
		cmocka_unit_test(fields_too_wide_are_cut),
	};

	return cmocka_run_group_tests(tests, load, unload);
}
