/* SPDX-License-Identifier: BSD-2-Clause */
#include "test.h"

#include <string.h>

#include "wire/opcode.h"
#include "wire/packet.h"

/* Header lengths from IBTA 9.3. The table must agree. */
static const unsigned header_length[ROCI_HDR_COUNT] = {
	[ROCI_HDR_DETH] = 8,         [ROCI_HDR_XRCETH] = 4,     [ROCI_HDR_FETH] = 4,
	[ROCI_HDR_RETH] = 16,        [ROCI_HDR_ATOMICETH] = 28, [ROCI_HDR_AETH] = 4,
	[ROCI_HDR_ATOMICACKETH] = 8, [ROCI_HDR_IMMDT] = 4,      [ROCI_HDR_IETH] = 4,
};

static bool should_be_defined(unsigned opcode)
{
	unsigned operation = opcode & ROCI_OPERATION_MASK;

	switch (opcode & ROCI_TRANSPORT_MASK) {
	case ROCI_TRANSPORT_RC:
		return operation <= 20 || operation == 22 || operation == 23 || operation == 28 || operation == 29;
	case ROCI_TRANSPORT_UC: return operation <= 11;
	case ROCI_TRANSPORT_UD: return operation == 4 || operation == 5;
	default: return opcode == 0x81 || (opcode >= 0xc1 && opcode <= 0xc6);
	}
}

static void defines_what_rocev2_carries(void **state)
{
	for (unsigned opcode = 0; opcode < 256; opcode++)
		assert_int_equal(roci_opcode_info((uint8_t)opcode) != NULL, should_be_defined(opcode));
}

static void header_bytes_follow_from_headers(void **state)
{
	for (unsigned opcode = 0; opcode < 256; opcode++) {
		const struct roci_opcode_info *info = roci_opcode_info((uint8_t)opcode);
		unsigned offset = ROCI_BTH_BYTES;

		if (!info)
			continue;
		for (unsigned hdr = 0; hdr < ROCI_HDR_COUNT; hdr++) {
			if (info->headers & 1u << hdr)
				offset += header_length[hdr];
		}
		assert_int_equal(info->header_bytes, offset);
		assert_true(info->header_bytes <= ROCI_MAX_HEADER_BYTES);
	}
}

/* Names and flags are written by hand: they must agree. */
static void names_agree_with_flags(void **state)
{
	for (unsigned opcode = 0; opcode < 256; opcode++) {
		const struct roci_opcode_info *info = roci_opcode_info((uint8_t)opcode);

		if (!info)
			continue;
		if (opcode != ROCI_OPCODE_CNP && opcode >> 5 != ROCI_TRANSPORT_OWN >> 5)
			assert_memory_equal(info->name,
					    (opcode >> 5) == 0   ? "RC "
					    : (opcode >> 5) == 1 ? "UC "
								 : "UD ",
					    3);
		if (strstr(info->name, " First"))
			assert_true(info->first && !info->last);
		else if (strstr(info->name, " Middle"))
			assert_true(!info->first && !info->last);
		else if (strstr(info->name, " Last"))
			assert_true(!info->first && info->last);
		else
			assert_true(info->first && info->last);
		assert_int_equal(strstr(info->name, "Immediate") != NULL, (info->headers >> ROCI_HDR_IMMDT) & 1);
		assert_int_equal(strstr(info->name, "Invalidate") != NULL, (info->headers >> ROCI_HDR_IETH) & 1);
		assert_int_equal(strstr(info->name, "SEND") != NULL, info->kind == ROCI_KIND_SEND);
		assert_int_equal(strstr(info->name, "RDMA WRITE") != NULL, info->kind == ROCI_KIND_WRITE);
		for (unsigned other = 0; other < opcode; other++)
			if (roci_opcode_info((uint8_t)other))
				assert_string_not_equal(info->name, roci_opcode_info((uint8_t)other)->name);
	}
}

static void responses_are_read_ack_and_atomic_ack(void **state)
{
	for (unsigned opcode = 0; opcode < 256; opcode++) {
		const struct roci_opcode_info *info = roci_opcode_info((uint8_t)opcode);

		if (info)
			assert_int_equal(info->response,
					 opcode >= ROCI_OP_READ_RESPONSE_FIRST && opcode <= ROCI_OP_ATOMIC_ACKNOWLEDGE);
	}
}

static void payload_is_for_data_only(void **state)
{
	static const uint8_t without[] = {ROCI_OP_READ_REQUEST, ROCI_OP_ACKNOWLEDGE, ROCI_OP_ATOMIC_ACKNOWLEDGE,
					  ROCI_OP_COMPARE_SWAP, ROCI_OP_FETCH_ADD,   ROCI_OP_FLUSH};

	for (unsigned opcode = 0; opcode < 256; opcode++) {
		const struct roci_opcode_info *info = roci_opcode_info((uint8_t)opcode);

		if (info)
			assert_int_equal(info->payload, !memchr(without, (int)opcode, sizeof(without)));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(defines_what_rocev2_carries), cmocka_unit_test(header_bytes_follow_from_headers),
		cmocka_unit_test(names_agree_with_flags),      cmocka_unit_test(responses_are_read_ack_and_atomic_ack),
		cmocka_unit_test(payload_is_for_data_only),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
