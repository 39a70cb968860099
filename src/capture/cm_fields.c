/* SPDX-License-Identifier: BSD-2-Clause */
#include "capture/cm_fields.h"

#include <stddef.h>

#include "capture/cm_meaning.h"
#include "cm/cm_ip.h"
#include "explain/explain.h"
#include "wire/bytes.h"

/* A member of struct roci_cm_msg, or of a path of it. */
struct row {
	const char *name;
	uint16_t at;
	uint8_t size;   /* bytes */
	uint8_t digits; /* hexadecimal; 0: decimal */
};

#define SIZE_OF(type, m) sizeof(((struct type *)0)->m)
#define DECIMAL(m)                                                                                                     \
	{                                                                                                              \
#m, offsetof(struct roci_cm_msg, m), SIZE_OF(roci_cm_msg, m), 0                                        \
	}
#define HEX(m, digits)                                                                                                 \
	{                                                                                                              \
#m, offsetof(struct roci_cm_msg, m), SIZE_OF(roci_cm_msg, m), digits                                   \
	}
#define PATH(m, digits)                                                                                                \
	{                                                                                                              \
#m, offsetof(struct roci_cm_msg_path, m), SIZE_OF(roci_cm_msg_path, m), digits                         \
	}
#define END                                                                                                            \
	{                                                                                                              \
		NULL, 0, 0, 0                                                                                          \
	}

#define IDS HEX(local_id, 8), HEX(remote_id, 8)

/* clang-format off */
static const struct row req[] = {
	HEX(local_id, 8), HEX(vendor_id, 6), HEX(service_id, 16), HEX(ca_guid, 16), HEX(qkey, 8), HEX(qpn, 6), DECIMAL(responder_resources),
	HEX(local_eecn, 6), DECIMAL(initiator_depth), HEX(remote_eecn, 6), DECIMAL(remote_response_timeout), DECIMAL(transport),
	DECIMAL(flow_control), DECIMAL(starting_psn), DECIMAL(local_response_timeout), DECIMAL(retry_count), HEX(pkey, 4), DECIMAL(mtu),
	DECIMAL(rdc), DECIMAL(rnr_retry_count), DECIMAL(max_cm_retries), DECIMAL(srq), DECIMAL(ext_transport), END};
static const struct row mra[] = {IDS, DECIMAL(about), DECIMAL(service_timeout), END};
static const struct row rej[] = {IDS, DECIMAL(about), DECIMAL(info_len), END};
static const struct row rep[] = {
	IDS, HEX(qkey, 8), HEX(qpn, 6), HEX(vendor_id, 6), HEX(local_eecn, 6), DECIMAL(starting_psn), DECIMAL(responder_resources),
	DECIMAL(initiator_depth), DECIMAL(target_ack_delay), DECIMAL(failover), DECIMAL(flow_control), DECIMAL(rnr_retry_count),
	DECIMAL(srq), HEX(ca_guid, 16), END};
static const struct row ids[] = {IDS, END};
static const struct row dreq[] = {IDS, HEX(qpn, 6), END};
static const struct row sidr_req[] = {HEX(local_id, 8), HEX(pkey, 4), HEX(service_id, 16), END};
static const struct row sidr_rep[] = {HEX(local_id, 8), DECIMAL(outcome), DECIMAL(info_len), HEX(qpn, 6), HEX(service_id, 16), HEX(qkey, 8), END};
static const struct row apr[] = {IDS, DECIMAL(info_len), DECIMAL(outcome), END};

static const struct row path[] = {
	PATH(local_lid, 4), PATH(remote_lid, 4), PATH(flow_label, 5), PATH(rate, 0), PATH(traffic_class, 0), PATH(hop_limit, 0), PATH(sl, 0),
	PATH(subnet_local, 0), PATH(ack_timeout, 0), END};
/* clang-format on */

static const struct row *const layouts[] = {
	[ROCI_CM_ATTR_REQ] = req,  [ROCI_CM_ATTR_MRA] = mra,           [ROCI_CM_ATTR_REJ] = rej,
	[ROCI_CM_ATTR_REP] = rep,  [ROCI_CM_ATTR_RTU] = ids,           [ROCI_CM_ATTR_DREQ] = dreq,
	[ROCI_CM_ATTR_DREP] = ids, [ROCI_CM_ATTR_SIDR_REQ] = sidr_req, [ROCI_CM_ATTR_SIDR_REP] = sidr_rep,
	[ROCI_CM_ATTR_LAP] = ids,  [ROCI_CM_ATTR_APR] = apr,
};

static uint64_t load(const uint8_t *member, unsigned size)
{
	switch (size) {
	case 1: return *member;
	case 2: return *(const uint16_t *)(const void *)member;
	case 4: return *(const uint32_t *)(const void *)member;
	default: return *(const uint64_t *)(const void *)member;
	}
}

static void put_rows(struct capture_field_out *out, const char *group, const struct row *row, const void *from)
{
	for (; row->name; row++) {
		uint64_t value = load((const uint8_t *)from + row->at, row->size);

		if (row->digits)
			capture_out_hex(out, group, row->name, value, row->digits, NULL);
		else
			capture_out_number(out, group, row->name, value, NULL);
	}
}

static void put_path(struct capture_field_out *out, const char *group, const struct roci_cm_msg_path *p)
{
	capture_out_bytes(out, group, "local_gid", CAPTURE_FIELD_ADDRESS, p->local_gid, 16);
	capture_out_bytes(out, group, "remote_gid", CAPTURE_FIELD_ADDRESS, p->remote_gid, 16);
	put_rows(out, group, path, p);
}

/* IBTA A11: the addresses of a connection by IP address and port. */
static void put_ip(struct capture_field_out *out, const struct roci_cm_msg *msg)
{
	struct roci_cm_ip ip;

	if (!roci_cm_service_is_ip(msg->service_id) || !roci_cm_ip_parse(&ip, msg->private, ROCI_CM_IP_BYTES))
		return;
	capture_out_bytes(out, "cm_ip", "src", CAPTURE_FIELD_ADDRESS, ip.src, 16);
	capture_out_bytes(out, "cm_ip", "dst", CAPTURE_FIELD_ADDRESS, ip.dst, 16);
	capture_out_number(out, "cm_ip", "src_port", ip.src_port, NULL);
	capture_out_number(out, "cm_ip", "dst_port", roci_cm_service_port(msg->service_id), NULL);
}

static void put_mad(struct capture_field_out *out, const struct roci_cm_msg *msg, const uint8_t *mad)
{
	capture_out_number(out, "mad", "base_version", mad[0], NULL);
	capture_out_number(out, "mad", "class", mad[1], NULL);
	capture_out_number(out, "mad", "class_version", mad[2], NULL);
	capture_out_number(out, "mad", "method", mad[3], NULL);
	capture_out_hex(out, "mad", "status", msg->status, 4, NULL);
	capture_out_hex(out, "mad", "class_specific", roci_get_be16(mad + 6), 4, NULL);
	capture_out_hex(out, "mad", "tid", msg->tid, 16, NULL);
	capture_out_hex(out, "mad", "attribute", msg->attribute, 4, capture_cm_name(msg->attribute));
	capture_out_hex(out, "mad", "modifier", msg->modifier, 8, NULL);
}

static void put_reason(struct capture_field_out *out, const struct roci_cm_msg *msg)
{
	const struct explanation *row = explain_code(EXPLAIN_CM_REJECT, msg->reason);

	capture_out_number(out, "cm", "reason", msg->reason, row ? row->name : NULL);
	capture_out_bytes(out, "cm", "info", CAPTURE_FIELD_BYTES, msg->info, sizeof(msg->info));
}

void capture_cm_fields(struct capture_field_out *out, const struct roci_cm_msg *msg, const uint8_t *mad)
{
	put_mad(out, msg, mad);
	put_rows(out, "cm", layouts[msg->attribute], msg);
	if (msg->attribute == ROCI_CM_ATTR_REJ)
		put_reason(out, msg);
	if (msg->attribute == ROCI_CM_ATTR_REQ) {
		put_path(out, "cm_primary", &msg->primary);
		put_path(out, "cm_alternate", &msg->alternate);
	}
	if (msg->attribute == ROCI_CM_ATTR_REQ || msg->attribute == ROCI_CM_ATTR_SIDR_REQ)
		put_ip(out, msg);
	capture_out_bytes(out, "cm_private", "bytes", CAPTURE_FIELD_BYTES, msg->private,
			  roci_cm_private_room(msg->attribute));
}
