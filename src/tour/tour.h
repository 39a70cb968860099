/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The tour: every RDMA operation, on each kind of queue pair, connected in both ways, as plain verbs programs do it.
 * `roci ping` is the near end, `roci serve` the far end.
 */
#ifndef ROCI_TOUR_TOUR_H
#define ROCI_TOUR_TOUR_H

#include <stdbool.h>
#include <stdint.h>

/* Of rdma_cm. IANA has given it to nobody; it is next to perftest's 18515, and below the ports that systems give to
 * clients. */
#define TOUR_DEFAULT_PORT 18517
#define TOUR_MAX_PORT     65534
#define TOUR_MAX_BYTES    (4u << 20) /* of one operation */
#define TOUR_ATOMIC_BYTES 8u

/* The port of TCP: the next one. It cannot be the same, because rdma_cm's ports are TCP's with iWARP. */
static inline uint16_t tour_tcp_port(uint16_t port)
{
	return (uint16_t)(port + 1);
}

enum tour_op {
	TOUR_SEND,
	TOUR_SEND_IMM,
	TOUR_SEND_INV,
	TOUR_WRITE,
	TOUR_WRITE_IMM,
	TOUR_READ,
	TOUR_CAS,
	TOUR_FAA,
	TOUR_ATOMIC_WRITE,
	TOUR_FLUSH,
	TOUR_OPS
};

enum tour_qp { TOUR_RC, TOUR_UC, TOUR_UD, TOUR_QPS };

/* How the QPs of the two ends learn of each other. */
enum tour_way {
	TOUR_CM,     /* rdma_cm */
	TOUR_SOCKET, /* a TCP socket; the program takes its QP through the states itself */
	TOUR_WAYS
};

/* How the near end learns of a completion. */
enum tour_wait {
	TOUR_POLL,  /* ibv_poll_cq() in a loop */
	TOUR_EVENT, /* a thread that sleeps until the completion channel wakes it */
	TOUR_WAITS
};

/* What to do. The far end gets what it must know of it: struct hello_request. */
struct tour_plan {
	enum tour_op op;
	enum tour_qp qp;
	enum tour_way way;
	enum tour_wait wait;
	bool inline_data; /* IBV_SEND_INLINE */
	bool verify;
	bool steps;         /* record when each step happened */
	uint32_t answer_ms; /* how long an answer may take on UC and UD, where nobody repeats what is lost */
	unsigned sges;      /* 1 and more; the data is in so many pieces */
	uint32_t size;      /* bytes; TOUR_ATOMIC_BYTES for the atomic operations */
};

/* What a device can do: bits. */
enum tour_cap {
	TOUR_CAP_RC = 1 << 0,
	TOUR_CAP_UC = 1 << 1,
	TOUR_CAP_UD = 1 << 2,
	TOUR_CAP_IMM = 1 << 3, /* immediate data */
	TOUR_CAP_ATOMIC = 1 << 4,
	TOUR_CAP_ATOMIC_WRITE = 1 << 5,
	TOUR_CAP_FLUSH = 1 << 6,  /* to global visibility */
	TOUR_CAP_WINDOW = 1 << 7, /* memory windows of type 2, whose rkey a SEND can invalidate */
	TOUR_CAP_BARE = 1 << 8,   /* connects without rdma_cm */
	TOUR_CAP_CM_UC = 1 << 9,  /* rdma_cm listens for UC */
};
#define TOUR_CAPS_ALL ((1u << 10) - 1)

/* Names as the options have them: "send-imm", "rc", "cm", "poll". Each list ends with NULL. At TOUR_OPS is "all". */
extern const char *const tour_op_names[], *const tour_qp_names[], *const tour_way_names[], *const tour_wait_names[];

/* The operation's name in the standard: "RDMA WRITE with immediate data". */
const char *tour_op_title(enum tour_op op);

/* Why this cannot be. */
struct tour_refusal {
	enum { TOUR_POSSIBLE, TOUR_BY_STANDARD, TOUR_NEAR_DEVICE, TOUR_FAR_DEVICE } whose;
	const char *reason; /* NULL: it can be */
};

/* Whether an operation can be, on a QP of this type, connected in this way, between devices that can do `near` and
 * `far` (bits of enum tour_cap). */
struct tour_refusal tour_refuse(enum tour_op op, enum tour_qp qp, enum tour_way way, uint32_t near, uint32_t far);

/* Whether the far end's program takes part: it gets a receive completion and answers. Else its device does all. */
bool tour_op_answered(enum tour_op op, enum tour_qp qp);

/* Whether the operation is on eight bytes always. */
bool tour_op_atomic(enum tour_op op);

/* Whether data of the near end leaves with the request, so that it can be inline. */
bool tour_op_carries(enum tour_op op);

#endif
