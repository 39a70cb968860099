/* SPDX-License-Identifier: BSD-2-Clause */
#include "cm/msg.h"

#include <assert.h>
#include <stddef.h>
#include <string.h>

#include "wire/bytes.h"

#define MAD_BASE_VERSION  1
#define MAD_CLASS_CM      7
#define MAD_CLASS_VERSION 2
#define MAD_METHOD_SEND   3

/* Where a field is. Bits are counted as in the standard's tables: from the first bit after the MAD header, most
 * significant first. */
struct field {
	uint16_t at;     /* first bit in the message */
	uint16_t bits;   /* a multiple of 8 for a run of bytes */
	uint16_t member; /* byte in struct roci_cm_msg */
	uint8_t size;    /* of the member: 1, 2, 4, 8; 0: a run of bytes */
	uint8_t shift;   /* of a field that is only a part of the member: where in it */
};

#define SIZE_OF(m) sizeof(((struct roci_cm_msg *)0)->m)
#define PART(byte, bit, n, m, shift)                                                                                   \
	{                                                                                                              \
		(byte) * 8 + (bit), (n), offsetof(struct roci_cm_msg, m), SIZE_OF(m), shift                            \
	}
#define NUMBER(byte, bit, n, m) PART(byte, bit, n, m, 0)
#define BYTES(byte, n, m)                                                                                              \
	{                                                                                                              \
		(byte) * 8, (n)*8, offsetof(struct roci_cm_msg, m), 0, 0                                               \
	}

#define PATH(byte, m)                                                                                                  \
	NUMBER((byte) + 0, 0, 16, m.local_lid), NUMBER((byte) + 2, 0, 16, m.remote_lid),                               \
		BYTES((byte) + 4, 16, m.local_gid), BYTES((byte) + 20, 16, m.remote_gid),                              \
		NUMBER((byte) + 36, 0, 20, m.flow_label), NUMBER((byte) + 39, 2, 6, m.rate),                           \
		NUMBER((byte) + 40, 0, 8, m.traffic_class), NUMBER((byte) + 41, 0, 8, m.hop_limit),                    \
		NUMBER((byte) + 42, 0, 4, m.sl), NUMBER((byte) + 42, 4, 1, m.subnet_local),                            \
		NUMBER((byte) + 43, 0, 5, m.ack_timeout)

#define IDS NUMBER(0, 0, 32, local_id), NUMBER(4, 0, 32, remote_id)

/* 12.6.5 table 106 */
static const struct field req_fields[] = {
	NUMBER(0, 0, 32, local_id),
	NUMBER(5, 0, 24, vendor_id),
	NUMBER(8, 0, 64, service_id),
	NUMBER(16, 0, 64, ca_guid),
	NUMBER(28, 0, 32, qkey),
	NUMBER(32, 0, 24, qpn),
	NUMBER(35, 0, 8, responder_resources),
	NUMBER(36, 0, 24, local_eecn),
	NUMBER(39, 0, 8, initiator_depth),
	NUMBER(40, 0, 24, remote_eecn),
	NUMBER(43, 0, 5, remote_response_timeout),
	NUMBER(43, 5, 2, transport),
	NUMBER(43, 7, 1, flow_control),
	NUMBER(44, 0, 24, starting_psn),
	NUMBER(47, 0, 5, local_response_timeout),
	NUMBER(47, 5, 3, retry_count),
	NUMBER(48, 0, 16, pkey),
	NUMBER(50, 0, 4, mtu),
	NUMBER(50, 4, 1, rdc),
	NUMBER(50, 5, 3, rnr_retry_count),
	NUMBER(51, 0, 4, max_cm_retries),
	NUMBER(51, 4, 1, srq),
	NUMBER(51, 5, 3, ext_transport),
	PATH(52, primary),
	PATH(96, alternate),
	BYTES(140, ROCI_CM_REQ_PRIVATE, private),
};

/* 12.6.6 */
static const struct field mra_fields[] = {IDS, NUMBER(8, 0, 2, about), NUMBER(9, 0, 5, service_timeout),
					  BYTES(10, 222, private)};

/* 12.6.7 */
static const struct field rej_fields[] = {
	IDS,
	NUMBER(8, 0, 2, about),
	NUMBER(9, 0, 7, info_len),
	NUMBER(10, 0, 16, reason),
	BYTES(12, ROCI_CM_REJ_ARI, info),
	BYTES(84, ROCI_CM_REJ_PRIVATE, private),
};

/* 12.6.8 */
static const struct field rep_fields[] = {
	IDS,
	NUMBER(8, 0, 32, qkey),
	NUMBER(12, 0, 24, qpn),
	PART(15, 0, 8, vendor_id, 16),
	NUMBER(16, 0, 24, local_eecn),
	PART(19, 0, 8, vendor_id, 8),
	NUMBER(20, 0, 24, starting_psn),
	PART(23, 0, 8, vendor_id, 0),
	NUMBER(24, 0, 8, responder_resources),
	NUMBER(25, 0, 8, initiator_depth),
	NUMBER(26, 0, 5, target_ack_delay),
	NUMBER(26, 5, 2, failover),
	NUMBER(26, 7, 1, flow_control),
	NUMBER(27, 0, 3, rnr_retry_count),
	NUMBER(27, 3, 1, srq),
	NUMBER(28, 0, 64, ca_guid),
	BYTES(36, ROCI_CM_REP_PRIVATE, private),
};

/* 12.6.9, 12.6.11 */
static const struct field rtu_fields[] = {IDS, BYTES(8, ROCI_CM_RTU_PRIVATE, private)};

/* 12.6.10 */
static const struct field dreq_fields[] = {IDS, NUMBER(8, 0, 24, qpn), BYTES(12, ROCI_CM_DREQ_PRIVATE, private)};

/* 12.11.1 */
static const struct field sidr_req_fields[] = {NUMBER(0, 0, 32, local_id), NUMBER(4, 0, 16, pkey),
					       NUMBER(8, 0, 64, service_id),
					       BYTES(16, ROCI_CM_SIDR_REQ_PRIVATE, private)};

/* 12.11.2 */
static const struct field sidr_rep_fields[] = {
	NUMBER(0, 0, 32, local_id),
	NUMBER(4, 0, 8, outcome),
	NUMBER(5, 0, 8, info_len),
	NUMBER(8, 0, 24, qpn),
	NUMBER(12, 0, 64, service_id),
	NUMBER(20, 0, 32, qkey),
	BYTES(24, ROCI_CM_SIDR_REP_INFO, info),
	BYTES(96, ROCI_CM_SIDR_REP_PRIVATE, private),
};

/* 12.8.1. Alternate paths are not offered: this is what the APR needs. */
static const struct field lap_fields[] = {IDS};

/* 12.8.2 */
static const struct field apr_fields[] = {IDS, NUMBER(8, 0, 8, info_len), NUMBER(9, 0, 8, outcome), BYTES(12, 72, info),
					  BYTES(84, 148, private)};

struct layout {
	const struct field *fields;
	unsigned count, private_room;
};

#define LAYOUT(f, room)                                                                                                \
	{                                                                                                              \
		f, sizeof(f) / sizeof(*(f)), room                                                                      \
	}

static const struct layout layouts[] = {
	[ROCI_CM_ATTR_REQ] = LAYOUT(req_fields, ROCI_CM_REQ_PRIVATE),
	[ROCI_CM_ATTR_MRA] = LAYOUT(mra_fields, 222),
	[ROCI_CM_ATTR_REJ] = LAYOUT(rej_fields, ROCI_CM_REJ_PRIVATE),
	[ROCI_CM_ATTR_REP] = LAYOUT(rep_fields, ROCI_CM_REP_PRIVATE),
	[ROCI_CM_ATTR_RTU] = LAYOUT(rtu_fields, ROCI_CM_RTU_PRIVATE),
	[ROCI_CM_ATTR_DREQ] = LAYOUT(dreq_fields, ROCI_CM_DREQ_PRIVATE),
	[ROCI_CM_ATTR_DREP] = LAYOUT(rtu_fields, ROCI_CM_DREP_PRIVATE),
	[ROCI_CM_ATTR_SIDR_REQ] = LAYOUT(sidr_req_fields, ROCI_CM_SIDR_REQ_PRIVATE),
	[ROCI_CM_ATTR_SIDR_REP] = LAYOUT(sidr_rep_fields, ROCI_CM_SIDR_REP_PRIVATE),
	[ROCI_CM_ATTR_LAP] = LAYOUT(lap_fields, 0),
	[ROCI_CM_ATTR_APR] = LAYOUT(apr_fields, 148),
};

static const struct layout *layout_of(unsigned attribute)
{
	if (attribute >= sizeof(layouts) / sizeof(*layouts) || !layouts[attribute].fields)
		return NULL;
	return &layouts[attribute];
}

/* ---- numbers of any width, at any bit ---- */

#define BODY_BYTES (ROCI_CM_MAD_BYTES - ROCI_MAD_HEADER_BYTES)

/* All fields lie so that eight bytes from their first one on are in the message. */
static uint64_t get_bits(const uint8_t *from, unsigned at, unsigned bits)
{
	assert(at / 8 + 8 <= BODY_BYTES && at % 8 + bits <= 64);
	return roci_get_be64(from + at / 8) << at % 8 >> (64 - bits);
}

/* The bits at `to` must be zero. */
static void put_bits(uint8_t *to, unsigned at, unsigned bits, uint64_t value)
{
	uint8_t *first = to + at / 8;

	assert(at / 8 + 8 <= BODY_BYTES && at % 8 + bits <= 64);
	roci_put_be64(first, roci_get_be64(first) | value << (64 - bits) >> at % 8);
}

static uint64_t load(const void *member, unsigned size)
{
	switch (size) {
	case 1: return *(const uint8_t *)member;
	case 2: return *(const uint16_t *)member;
	case 4: return *(const uint32_t *)member;
	default: return *(const uint64_t *)member;
	}
}

static void store(void *member, unsigned size, uint64_t value)
{
	switch (size) {
	case 1: *(uint8_t *)member = (uint8_t)value; break;
	case 2: *(uint16_t *)member = (uint16_t)value; break;
	case 4: *(uint32_t *)member = (uint32_t)value; break;
	default: *(uint64_t *)member = value;
	}
}

/* ---- messages ---- */

enum roci_cm_parse_result roci_cm_msg_parse(struct roci_cm_msg *msg, const uint8_t mad[ROCI_CM_MAD_BYTES])
{
	const uint8_t *body = mad + ROCI_MAD_HEADER_BYTES;
	const struct layout *layout;

	if (mad[0] != MAD_BASE_VERSION || mad[1] != MAD_CLASS_CM || mad[2] != MAD_CLASS_VERSION ||
	    mad[3] != MAD_METHOD_SEND)
		return ROCI_CM_PARSE_NOT_CM;
	layout = layout_of(roci_get_be16(mad + 16));
	if (!layout)
		return ROCI_CM_PARSE_UNSUPPORTED;
	memset(msg, 0, sizeof(*msg));
	msg->status = roci_get_be16(mad + 4);
	msg->tid = roci_get_be64(mad + 8);
	msg->attribute = roci_get_be16(mad + 16);
	msg->modifier = roci_get_be32(mad + 20);
	for (unsigned i = 0; i < layout->count; i++) {
		const struct field *f = &layout->fields[i];
		uint8_t *member = (uint8_t *)msg + f->member;

		if (f->size)
			store(member, f->size, load(member, f->size) | get_bits(body, f->at, f->bits) << f->shift);
		else
			memcpy(member, body + f->at / 8, f->bits / 8);
	}
	if (msg->info_len > sizeof(msg->info))
		msg->info_len = sizeof(msg->info);
	return ROCI_CM_PARSE_OK;
}

void roci_cm_msg_build(const struct roci_cm_msg *msg, uint8_t mad[ROCI_CM_MAD_BYTES])
{
	const struct layout *layout = layout_of(msg->attribute);
	uint8_t *body = mad + ROCI_MAD_HEADER_BYTES;

	assert(layout);
	memset(mad, 0, ROCI_CM_MAD_BYTES);
	mad[0] = MAD_BASE_VERSION;
	mad[1] = MAD_CLASS_CM;
	mad[2] = MAD_CLASS_VERSION;
	mad[3] = MAD_METHOD_SEND;
	roci_put_be16(mad + 4, msg->status);
	roci_put_be64(mad + 8, msg->tid);
	roci_put_be16(mad + 16, msg->attribute);
	roci_put_be32(mad + 20, msg->modifier);
	for (unsigned i = 0; i < layout->count; i++) {
		const struct field *f = &layout->fields[i];
		const uint8_t *member = (const uint8_t *)msg + f->member;

		if (f->size)
			put_bits(body, f->at, f->bits, load(member, f->size) >> f->shift);
		else
			memcpy(body + f->at / 8, member, f->bits / 8);
	}
}

unsigned roci_cm_private_room(unsigned attribute)
{
	const struct layout *layout = layout_of(attribute);

	return layout ? layout->private_room : 0;
}
