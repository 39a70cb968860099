/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Verbs and rdma_cm without a device, for fuzz targets: what is linked with this calls it instead of the libraries, and
 * the target plays the peer. It asserts what a device would refuse: memory without a region, a full queue. One thread.
 */
#ifndef ROCI_TESTS_FAKE_VERBS_H
#define ROCI_TESTS_FAKE_VERBS_H

#include <rdma/rdma_cma.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FAKE_MAX_SGE 4

struct fake_recv {
	uint64_t wr_id;
	struct ibv_sge sge; /* length 0: none */
};

/* A posted send that has not completed yet. */
struct fake_send {
	struct ibv_send_wr wr; /* without its lists */
	struct ibv_sge sges[FAKE_MAX_SGE];
	bool silent; /* no completion of its own */
};

struct fake_qp {
	struct ibv_qp qp; /* first: what the program has is a pointer to it */
	struct ibv_qp_cap cap;
	bool signals_all;
	struct fake_recv *receives; /* rings */
	struct fake_send *sends;
	unsigned recv_first, recv_count, send_first, send_count;
};

/* ---- the target's ---- */

/* The program polls, and there is nothing: the peer may do something. False: nothing happens any more. */
bool fake_peer_turn(void);
/* The program has posted a send; the sends of the QP are in fake_qp. */
void fake_posted(struct fake_qp *qp, const struct fake_send *send);
/* The program connects, accepts, rejects or disconnects. */
enum fake_call { FAKE_CONNECT, FAKE_ACCEPT, FAKE_REJECT, FAKE_DISCONNECT, FAKE_DESTROY };
void fake_called(struct rdma_cm_id *id, enum fake_call call, const struct rdma_conn_param *param);

/* ---- for the target ---- */

static inline struct fake_qp *fake_qp_of(const struct rdma_cm_id *id)
{
	return (struct fake_qp *)(void *)id->qp;
}

/* The QP that was made last; NULL: it is gone. */
struct fake_qp *fake_newest_qp(void);

/* An event for the program. */
void fake_event(struct rdma_cm_id *id, enum rdma_cm_event_type type, int status, const void *private_data,
		uint8_t private_len);
/* A connection request: an id for its listener's channel. The event is queued. */
struct rdma_cm_id *fake_request(struct rdma_cm_id *listener, const void *private_data, uint8_t private_len);
/* A new id with nothing but addresses. */
struct rdma_cm_id *fake_id(struct rdma_event_channel *channel, void *context);

/* A message into the oldest receive. False: none is posted, or it is too short. */
bool fake_receive(struct fake_qp *qp, const void *bytes, size_t len, bool has_imm, uint32_t imm);
/* The oldest send completes. False: there is none. */
bool fake_complete(struct fake_qp *qp, enum ibv_wc_status status);
/* The peer writes to memory or reads it, as the region allows. False: it does not. */
bool fake_write(uint32_t rkey, uint64_t addr, const void *bytes, size_t len);
/* How many objects of the program are there: memory regions, ids, QPs, CQs and so on. */
unsigned fake_objects(void);

#endif
