/* SPDX-License-Identifier: BSD-2-Clause */
#include "capture/record_names.h"

#include <infiniband/verbs.h>

#define COUNT(names) (sizeof(names) / sizeof((names)[0]))

const char *capture_post_name(uint8_t opcode)
{
	switch (opcode) {
	case IBV_WR_RDMA_WRITE: return "WRITE";
	case IBV_WR_RDMA_WRITE_WITH_IMM: return "WRITE with immediate";
	case IBV_WR_SEND: return "SEND";
	case IBV_WR_SEND_WITH_IMM: return "SEND with immediate";
	case IBV_WR_RDMA_READ: return "READ";
	case IBV_WR_ATOMIC_CMP_AND_SWP: return "COMPARE & SWAP";
	case IBV_WR_ATOMIC_FETCH_AND_ADD: return "FETCH & ADD";
	case IBV_WR_LOCAL_INV: return "local invalidate";
	case IBV_WR_BIND_MW: return "bind window";
	case IBV_WR_SEND_WITH_INV: return "SEND with invalidate";
	case 14: return "FLUSH"; /* old headers do not have these two */
	case 15: return "ATOMIC WRITE";
	default: return "request";
	}
}

const char *capture_completion_name(uint8_t opcode)
{
	static const char *const names[] = {
		"SEND", "WRITE", "READ",        "COMPARE & SWAP", "FETCH & ADD", "bind window", "local invalidate",
		"TSO",  "FLUSH", "ATOMIC WRITE"};

	if (opcode == IBV_WC_RECV_RDMA_WITH_IMM)
		return "receive (WRITE with immediate)";
	if (opcode & IBV_WC_RECV)
		return "receive";
	return opcode < COUNT(names) ? names[opcode] : "request";
}

const char *capture_qp_state_name(uint32_t state)
{
	static const char *const names[] = {"RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR"};

	return state < COUNT(names) ? names[state] : "?";
}

const char *capture_cm_event_name(uint8_t event)
{
	/* enum roci_cm_event_kind: docs/WIRE.md */
	static const char *const names[] = {"connection request",
					    "connection reply",
					    "connection established",
					    "connection rejected",
					    "no answer to the connection request",
					    "no answer to the connection reply",
					    "disconnect requested",
					    "disconnected",
					    "no answer to the disconnect request",
					    "time wait is over",
					    "datagram request",
					    "datagram reply",
					    "no answer to the datagram request"};

	return event < COUNT(names) ? names[event] : "connection event";
}

const char *capture_fault_name(uint32_t fault)
{
	static const char *const names[] = {"", "lost", "repeated", "put before the packet before it", "damaged"};

	return fault && fault < COUNT(names) ? names[fault] : "changed";
}
