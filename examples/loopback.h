/* SPDX-License-Identifier: BSD-2-Clause */
/* Two QPs of one process, connected to each other over the device: A asks, B answers. So one program shows both sides.
 */
#ifndef EXAMPLES_LOOPBACK_H
#define EXAMPLES_LOOPBACK_H

#include "bare.h"

struct loopback_side {
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	char *memory;    /* LOOPBACK_BYTES, aligned for atomics */
	int flush_right; /* IBV_ACCESS_FLUSH_GLOBAL if the device has FLUSH, otherwise 0 */
};

enum { LOOPBACK_BYTES = 4096 };

struct loopback {
	struct bare bare;
	struct loopback_side a, b;
	struct ibv_comp_channel *channel; /* of B's CQ */
};

/* Opens the device and connects A and B. `qp_access` is what B's QP allows A, and `rnr_retry` how often A tries again
 * when B has no receive posted. B's memory allows everything. Extended operations work where the device has them. */
struct loopback loopback_open(const struct arguments *arguments, int qp_access, uint8_t rnr_retry);
void loopback_close(struct loopback *loopback);

/* Every right that a peer can have and that every device knows. */
#define LOOPBACK_ALL (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)

/* FLUSH came to libibverbs in 2023. */
#ifdef HAVE_IBV_WR_FLUSH
#define LOOPBACK_CAN_FLUSH true
#else
#define LOOPBACK_CAN_FLUSH false
#endif

/* Posts a receive for all of B's memory. */
void loopback_post_receive(struct loopback *loopback);

/* Posts a request of A: fills in what all requests have in common, that is the first `bytes` bytes of A's memory as
 * local data, and a completion. The caller has set the opcode and what else it needs. */
void loopback_post(struct loopback *loopback, struct ibv_send_wr *wr, uint32_t bytes);

/* Waits for the next completion of a CQ, whatever its status is. */
struct ibv_wc loopback_wait(struct ibv_cq *cq);

#endif
