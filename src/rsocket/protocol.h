/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The wire protocol of stream rsockets, that of librdmacm's rsockets (tests/captures: rxe-6.1-rstream).
 *
 * A stream moves data by RDMA WRITEs into the peer's receive buffer. The buffer has two halves. The sender has a list
 * of targets (`target_sgl`): the receiver names a half there, and when the program has read the half, names it again,
 * by an RDMA WRITE into that list. Each WRITE has immediate data: an operation (3 bits) and a value (29 bits). Credits
 * keep the number of messages below the number of posted receives.
 *
 * riomap() names memory in a second list of the peer, `iomap`, behind its targets. riowrite() then writes to it without
 * immediate data.
 */
#ifndef ROCI_RSOCKET_PROTOCOL_H
#define ROCI_RSOCKET_PROTOCOL_H

#include <linux/types.h>
#include <stdint.h>

enum rs_op {
	RS_OP_DATA = 0,      /* value: bytes */
	RS_OP_WRITE = 2,     /* riowrite(): only in the sender's completion */
	RS_OP_SGL = 4,       /* value: credits */
	RS_OP_IOMAP_SGL = 6, /* value: index */
	RS_OP_CTRL = 7,      /* value: enum rs_ctrl */
};
enum rs_ctrl { RS_CTRL_DISCONNECT, RS_CTRL_KEEPALIVE, RS_CTRL_SHUTDOWN };

static inline uint32_t rs_msg(enum rs_op op, uint32_t value)
{
	return (uint32_t)op << 29 | value;
}
static inline enum rs_op rs_msg_op(uint32_t msg)
{
	return (enum rs_op)(msg >> 29);
}
static inline uint32_t rs_msg_value(uint32_t msg)
{
	return msg & 0x1fffffff;
}

#define RS_MAX_BUFFER (1u << 28) /* half of it must fit into the value of a message */

/* An entry of target_sgl, in the byte order of its reader. */
struct rs_sge {
	uint64_t addr;
	uint32_t key, length;
};
/* An entry of iomap. Key 0: no mapping. */
struct rs_iomap {
	uint64_t offset;
	struct rs_sge sge;
};

#define RS_VERSION         1
#define RS_CONN_FLAG_NET   1 /* the sender of the message is big-endian */
#define RS_CONN_FLAG_IOMAP 2
#define RS_TARGETS         2 /* entries of our target_sgl */

/* Private data of REQ and REP, big-endian. */
struct rs_conn_data {
	uint8_t version, flags;
	__be16 credits;
	uint8_t reserved[3];
	uint8_t iomap_size;       /* in units of 8 entries */
	struct rs_sge target_sgl; /* the sender's list, for the peer to write to; length: entries */
	struct rs_sge data_buf;   /* the peer's first target */
};

#endif
