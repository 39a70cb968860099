/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a capture of the embedded device records beside the packets: work requests that are posted, completions, states
 * of QPs, events of connections. Each is a block of a pcapng file, of a type for local use
 * (draft-ietf-opsawg-pcapng, section 3.1). Wireshark and libpcap skip it. docs/WIRE.md has the layout.
 */
#ifndef ROCI_WIRE_RECORD_H
#define ROCI_WIRE_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ROCI_RECORD_BLOCK 0xe9636f72u /* block type: bit 31, and "roci" in seven bits each, on a little-endian host */
#define ROCI_RECORD_TEXT  64          /* bytes, with the NUL */
#define ROCI_RECORD_BYTES 176         /* the block's body */

enum roci_record_kind {
	ROCI_RECORD_PROCESS = 1, /* the first of a process: its name is `text` */
	ROCI_RECORD_POST_SEND,
	ROCI_RECORD_POST_RECV,
	ROCI_RECORD_POST_SRQ, /* no QP: `queue` is the number of the SRQ */
	ROCI_RECORD_COMPLETION,
	ROCI_RECORD_QP_STATE, /* the QP has changed to the state `status`; `length` is its path MTU in bytes */
	ROCI_RECORD_CM_EVENT, /* `opcode` is the event, `status` the reason of a REJ, or an errno where bit 31 is set */
	ROCI_RECORD_FAULT,    /* --fault did `status` (below) to a packet: `opcode`, PSN in `imm`, destination `qpn`,
				 `length` of its UDP payload; `flags` 1: before it was sent, 0: after it was received.
				 The GIDs are those of this end and the other one */
	ROCI_RECORD_SEND_TAKEN, /* the device begins with a posted send: `wr_id`, `opcode` and `length` are the post's
				 */
	ROCI_RECORD_RECV_TAKEN, /* a message of the peer takes the receive `wr_id` */
	ROCI_RECORD_EXECUTED, /* the last packet of a WRITE, READ, atomic or FLUSH of the peer was executed: `opcode` */
	ROCI_RECORD_KINDS
};

enum roci_record_fault {
	ROCI_RECORD_LOST = 1,
	ROCI_RECORD_REPEATED,
	ROCI_RECORD_REORDERED, /* it goes before the packet that stood before it */
	ROCI_RECORD_CORRUPTED,
};

/* What does not apply is 0. */
struct roci_record {
	uint64_t time_ns; /* since 1970, as of packets */
	uint32_t pid;     /* also the option epb_queue of the process' packets */
	uint16_t kind;
	uint8_t qp_type;    /* enum ibv_qp_type */
	uint8_t opcode;     /* enum ibv_wr_opcode of a post, ibv_wc_opcode of a completion; of the packet */
	uint32_t status;    /* enum ibv_wc_status, ibv_qp_state */
	uint32_t flags;     /* enum ibv_send_flags of a post, ibv_wc_flags of a completion */
	uint32_t qpn, peer; /* the QP and the one that it is connected to; UD: the one that is addressed */
	uint32_t queue;     /* number of the CQ or SRQ in its process, from 1 */
	uint32_t imm, rkey; /* imm: as it lies in memory, or the key to invalidate */
	uint64_t wr_id;
	uint64_t length; /* bytes of the message, or of room for one */
	uint64_t remote_addr;
	uint8_t local_gid[16], remote_gid[16];
	char text[ROCI_RECORD_TEXT]; /* ends with NUL */
};

/* Writes the body of the block, ROCI_RECORD_BYTES, in the host's byte order. */
void roci_record_build(const struct roci_record *record, uint8_t *out);

/* Reads a body; `swapped`: the file has the other byte order. False: it is no record, or one of a later version. Any
 * bytes may follow the NUL of `text`, and any bytes may be in it. */
bool roci_record_parse(const uint8_t *body, size_t len, bool swapped, struct roci_record *record);

#endif
