/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The enums and structs that the engine shares with its driver. Values are those of <infiniband/verbs.h>, so src/verbs
 * translates by assignment (it asserts that they are equal). The engine itself includes no verbs header.
 */
#ifndef ROCI_ENGINE_TYPES_H
#define ROCI_ENGINE_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum roci_qp_type {
	ROCI_QPT_RC = 2,
	ROCI_QPT_UC = 3,
	ROCI_QPT_UD = 4,
};

/* IBTA 10.3.1 */
enum roci_qp_state {
	ROCI_QPS_RESET,
	ROCI_QPS_INIT,
	ROCI_QPS_RTR,
	ROCI_QPS_RTS,
	ROCI_QPS_SQD,
	ROCI_QPS_SQE,
	ROCI_QPS_ERR,
};

/* Completion status, IBTA 11.6.2. */
enum roci_wc_status {
	ROCI_WC_SUCCESS = 0,
	ROCI_WC_LOC_LEN_ERR = 1,
	ROCI_WC_LOC_QP_OP_ERR = 2,
	ROCI_WC_LOC_PROT_ERR = 4,
	ROCI_WC_WR_FLUSH_ERR = 5,
	ROCI_WC_MW_BIND_ERR = 6,
	ROCI_WC_BAD_RESP_ERR = 7,
	ROCI_WC_LOC_ACCESS_ERR = 8,
	ROCI_WC_REM_INV_REQ_ERR = 9,
	ROCI_WC_REM_ACCESS_ERR = 10,
	ROCI_WC_REM_OP_ERR = 11,
	ROCI_WC_RETRY_EXC_ERR = 12,
	ROCI_WC_RNR_RETRY_EXC_ERR = 13,
};

enum roci_wc_opcode {
	ROCI_WC_SEND = 0,
	ROCI_WC_RDMA_WRITE = 1,
	ROCI_WC_RDMA_READ = 2,
	ROCI_WC_COMP_SWAP = 3,
	ROCI_WC_FETCH_ADD = 4,
	ROCI_WC_BIND_MW = 5,
	ROCI_WC_LOCAL_INV = 6,
	ROCI_WC_FLUSH = 8,
	ROCI_WC_ATOMIC_WRITE = 9,
	ROCI_WC_RECV = 128,
	ROCI_WC_RECV_RDMA_WITH_IMM = 129,
};

enum roci_wc_flags {
	ROCI_WC_GRH = 1 << 0,
	ROCI_WC_WITH_IMM = 1 << 1,
	ROCI_WC_WITH_INV = 1 << 3,
};

enum roci_wr_opcode {
	ROCI_WR_RDMA_WRITE = 0,
	ROCI_WR_RDMA_WRITE_WITH_IMM = 1,
	ROCI_WR_SEND = 2,
	ROCI_WR_SEND_WITH_IMM = 3,
	ROCI_WR_RDMA_READ = 4,
	ROCI_WR_ATOMIC_CMP_AND_SWP = 5,
	ROCI_WR_ATOMIC_FETCH_AND_ADD = 6,
	ROCI_WR_LOCAL_INV = 7,
	ROCI_WR_BIND_MW = 8,
	ROCI_WR_SEND_WITH_INV = 9,
	ROCI_WR_FLUSH = 14,
	ROCI_WR_ATOMIC_WRITE = 15,
};

enum roci_send_flags {
	ROCI_SEND_FENCE = 1 << 0,
	ROCI_SEND_SIGNALED = 1 << 1,
	ROCI_SEND_SOLICITED = 1 << 2,
	ROCI_SEND_INLINE = 1 << 3,
};

enum roci_access {
	ROCI_ACCESS_LOCAL_WRITE = 1 << 0,
	ROCI_ACCESS_REMOTE_WRITE = 1 << 1,
	ROCI_ACCESS_REMOTE_READ = 1 << 2,
	ROCI_ACCESS_REMOTE_ATOMIC = 1 << 3,
	ROCI_ACCESS_MW_BIND = 1 << 4,
	ROCI_ACCESS_ZERO_BASED = 1 << 5,
	ROCI_ACCESS_FLUSH_GLOBAL = 1 << 8,
	ROCI_ACCESS_FLUSH_PERSISTENT = 1 << 9, /* QPs have it, but no region */
};

enum roci_async_type {
	ROCI_EVENT_CQ_ERR = 0,
	ROCI_EVENT_QP_FATAL = 1,
	ROCI_EVENT_QP_REQ_ERR = 2,
	ROCI_EVENT_QP_ACCESS_ERR = 3,
	ROCI_EVENT_COMM_EST = 4,
	ROCI_EVENT_SQ_DRAINED = 5,
	ROCI_EVENT_PORT_ACTIVE = 9, /* this and the next: the device raises them */
	ROCI_EVENT_PORT_ERR = 10,
	ROCI_EVENT_SRQ_LIMIT_REACHED = 15,
	ROCI_EVENT_QP_LAST_WQE_REACHED = 16,
	ROCI_EVENT_GID_CHANGE = 18, /* the device */
};

/* Which attributes a modify carries: the bits of enum ibv_qp_attr_mask. */
enum roci_qp_attr_mask {
	ROCI_QP_STATE = 1 << 0,
	ROCI_QP_CUR_STATE = 1 << 1,
	ROCI_QP_EN_SQD_ASYNC_NOTIFY = 1 << 2,
	ROCI_QP_ACCESS_FLAGS = 1 << 3,
	ROCI_QP_PKEY_INDEX = 1 << 4,
	ROCI_QP_PORT = 1 << 5,
	ROCI_QP_QKEY = 1 << 6,
	ROCI_QP_AV = 1 << 7,
	ROCI_QP_PATH_MTU = 1 << 8,
	ROCI_QP_TIMEOUT = 1 << 9,
	ROCI_QP_RETRY_CNT = 1 << 10,
	ROCI_QP_RNR_RETRY = 1 << 11,
	ROCI_QP_RQ_PSN = 1 << 12,
	ROCI_QP_MAX_QP_RD_ATOMIC = 1 << 13,
	ROCI_QP_ALT_PATH = 1 << 14,
	ROCI_QP_MIN_RNR_TIMER = 1 << 15,
	ROCI_QP_SQ_PSN = 1 << 16,
	ROCI_QP_MAX_DEST_RD_ATOMIC = 1 << 17,
	ROCI_QP_PATH_MIG_STATE = 1 << 18,
	ROCI_QP_CAP = 1 << 19,
	ROCI_QP_DEST_QPN = 1 << 20,
};

/* A piece of memory; laid out as struct iovec. */
struct roci_span {
	void *base;
	size_t len;
};

/* Laid out as struct ibv_sge. */
struct roci_sge {
	uint64_t addr;
	uint32_t len; /* bytes; 0 means 0 */
	uint32_t lkey;
};

struct roci_nat_way;

/* Where the packets of a QP or an address handle go. The device makes it from an ibv_ah_attr; the engine uses the GIDs
 * and the MTU, which limits datagrams. A QP's path MTU may be larger: then the kernel sends IP fragments. */
struct roci_av {
	uint8_t sgid[16], dgid[16]; /* IPv4 as ::ffff:a.b.c.d */
	uint32_t ifindex;           /* of sgid; the scope of link-local addresses */
	uint32_t mtu;               /* IB path MTU in bytes that the interface of sgid allows, 256..4096 */
	uint32_t max_datagram;      /* UDP payload that one IP packet to dgid takes, bytes; 0: not known */
	uint16_t src_port;          /* UDP source port */
	uint16_t mad_port;          /* UDP port that MADs leave from: 4791, where it is ours */
	uint16_t peer_port;         /* UDP port that the QP's peer sends from; 0: not known. The engine sets it */
	uint16_t local;             /* the driver's number of a process of this host; 0: the wire. See engine.h */
	uint8_t sgid_index;
	uint8_t traffic_class;
	uint8_t hop_limit;
	bool pieces; /* what is longer than max_datagram goes in pieces (wire/piece.h). The engine sets it */
	const struct roci_nat_way *nat; /* where the peer is behind a NAT (wire/nat.h); borrowed. NULL: it is not */
};

/* A completion. imm: immediate data in network byte order, or the invalidated rkey, as flags say. */
struct roci_cqe {
	uint64_t wr_id;
	uint64_t timestamp_ns;
	uint32_t status; /* enum roci_wc_status */
	uint32_t opcode; /* enum roci_wc_opcode */
	uint32_t byte_len;
	uint32_t imm;
	uint32_t qpn;
	uint32_t src_qpn;
	uint32_t flags; /* enum roci_wc_flags */
	uint8_t sl;
};

#endif
