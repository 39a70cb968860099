/* SPDX-License-Identifier: BSD-2-Clause */
/* Makes an error happen, so that people can see it: `roci explain --provoke`. Public verbs and rdma_cm only. */
#ifndef ROCI_PROVOKE_H
#define ROCI_PROVOKE_H

#include <stdbool.h>
#include <stdint.h>

#include <infiniband/verbs.h>

#include "explain/explain.h"

#define PROVOKE_BYTES   4096u
#define PROVOKE_WAIT_MS 20000 /* of each wait */

/* The open device, and memory of it with every right. */
struct provoke {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_mr *mr;
	struct ibv_mw *mw; /* of a bind; NULL: none */
	uint8_t bytes[PROVOKE_BYTES];
	union ibv_gid gid; /* index 0 */
	enum ibv_mtu mtu;
};

/* Whether there is a way to provoke the row. */
bool provoke_can(const struct explanation *row);

/* Makes it happen on the device that `name` says, or on the first one (NULL), and prints what the calls answer.
 * Returns 0 if it did happen, else an exit status, after a message. */
int provoke_run(const struct explanation *row, const char *name);

/* The ways, each with a table of its own. They print what they do and what they see. Each returns true if the
 * row's code came; *known is false if the table does not have the row. With p NULL, nothing is done but that. */
bool provoke_request(struct provoke *p, const struct explanation *row, bool *known);
bool provoke_event(struct provoke *p, const struct explanation *row, bool *known);
bool provoke_call(struct provoke *p, const struct explanation *row, bool *known);
bool provoke_cm(struct provoke *p, const struct explanation *row, bool *known);
bool provoke_played(struct provoke *p, const struct explanation *row, bool *known);
bool provoke_address(struct provoke *p, const struct explanation *row, bool *known);
bool provoke_state(struct provoke *p, const struct explanation *row, bool *known);

/* A queue pair and its own CQ, in INIT. depth: of its queues and its CQ; 0: the queues are deeper than the CQ. NULL
 * with errno: it cannot be made. */
struct ibv_qp *provoke_qp(struct provoke *p, uint32_t depth, unsigned access);
void provoke_qp_destroy(struct ibv_qp *qp);
/* Waits for the next completion of the queue pair's CQ, and tells it. True if it has the status. */
bool provoke_completes(const char *who, struct ibv_qp *qp, int status);
/* Waits for the event (enum ibv_event_type), and tells those that come, `head` in front. False: it did not come. */
bool provoke_event_comes(struct provoke *p, const char *head, int type);
/* INIT to RTR, RTR to RTS. `qpn`: the peer's. `timeout`: as of ibv_modify_qp(). Returns 0 or an errno. */
#define PROVOKE_SHORT 8  /* 1 ms, the shortest that roci0 does not lengthen much: for what is to time out */
#define PROVOKE_LONG  18 /* 1 s: the peer is this command, which a busy machine may delay */
int provoke_rtr(struct provoke *p, struct ibv_qp *qp, uint32_t qpn);
/* The same, to a peer at `dgid`. */
int provoke_rtr_to(struct provoke *p, struct ibv_qp *qp, uint32_t qpn, uint8_t sgid_index, const union ibv_gid *dgid);
int provoke_rts(struct ibv_qp *qp, uint8_t max_rd_atomic, uint8_t timeout);

#endif
