/* SPDX-License-Identifier: BSD-2-Clause */
/* The verbs objects of one end: protection domain, completion queue, queue pair, registered memory. */
#ifndef ROCI_TOUR_ENDPOINT_H
#define ROCI_TOUR_ENDPOINT_H

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>
#include <stdint.h>

#include "tour/device.h"
#include "tour/failure.h"
#include "tour/tour.h"

#define ENDPOINT_SLOTS      8u /* receives that are posted, at most */
#define ENDPOINT_LONG_SLOTS 2u /* of more than ENDPOINT_LONG_BYTES: one is answered while the other waits */
#define ENDPOINT_LONG_BYTES 65536u
#define ENDPOINT_SENDS      16u  /* work requests under way at most */
#define ENDPOINT_GRH_BYTES  40u  /* in front of each datagram (IBTA 11.4.1.2) */
#define ENDPOINT_SLOT_BYTES 128u /* at least: an answer, a control */
#define ENDPOINT_MAX_SGES   16u

/* Registered memory. */
struct region {
	uint8_t *bytes;
	uint32_t len;
	struct ibv_mr *mr;
	uint64_t registered_ns; /* CLOCK_REALTIME */
};

/* wr_ids: what completes, and the number of a slot. */
enum wr_kind { WR_RECEIVE = 1, WR_ANSWER, WR_CONTROL, WR_OPERATION, WR_READ_BACK, WR_BIND };

static inline uint64_t wr_id(enum wr_kind kind, unsigned slot)
{
	return (uint64_t)kind << 32 | slot;
}

static inline enum wr_kind wr_kind(uint64_t id)
{
	return (enum wr_kind)(id >> 32);
}

struct endpoint {
	struct ibv_context *verbs; /* belongs to rdma_cm or to the caller */
	struct rdma_cm_id *id;     /* by rdma_cm: owns the QP. NULL by socket */
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel; /* its descriptor does not block */
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	enum tour_op op;
	enum tour_qp type;
	unsigned cq_events;  /* not acknowledged */
	uint32_t slot_bytes; /* of a receive, without the GRH */
	unsigned slot_count;
	struct region slots;                    /* receives */
	uint64_t posted_ns[ENDPOINT_SLOTS];     /* when, CLOCK_REALTIME */
	struct ibv_ah *ah;                      /* of UD: to the peer */
	uint32_t peer_qpn, peer_qkey, own_qkey; /* of UD */
	uint8_t rd_atomic; /* READs and atomics under way in each direction; 0 counts as 1. By socket */
};

struct endpoint_wish {
	enum tour_op op;
	enum tour_qp type;
	uint32_t slot_bytes; /* of a receive; less than ENDPOINT_SLOT_BYTES counts as that */
	unsigned sges;       /* of a request */
	uint32_t inline_bytes;
};

/* Makes PD, CQ and QP, and the memory of the receives. With `id`, that gets the QP and takes it through its states;
 * else endpoint_connect() does. Call endpoint_destroy() after a failure, too. 0 or negative, with *f. */
int endpoint_create(struct endpoint *e, struct ibv_context *verbs, struct rdma_cm_id *id,
		    const struct endpoint_wish *wish, struct failure *f);
void endpoint_destroy(struct endpoint *e);

/* Where the peer is, by socket. */
struct endpoint_peer {
	union ibv_gid gid;
	uint16_t lid;
	uint32_t qpn, psn, qkey;
	enum ibv_mtu mtu; /* the smaller one of both */
};

/* Takes the QP from RESET to INIT, RTR and RTS, with `psn` for its first packet. Posts the receives in between. */
int endpoint_connect(struct endpoint *e, const struct tour_port *port, const struct endpoint_peer *peer, uint32_t psn,
		     struct failure *f);

/* Posts the receives of all slots, or that of one. */
int endpoint_post_slots(struct endpoint *e, struct failure *f);
int endpoint_post_slot(struct endpoint *e, unsigned slot, struct failure *f);
/* The message in a slot. */
const uint8_t *endpoint_message(const struct endpoint *e, unsigned slot);
/* Its length, from its completion. */
uint32_t endpoint_message_len(const struct endpoint *e, const struct ibv_wc *wc);

/* SENDs a short message. The bytes are copied: `from` may change at once if the region has ENDPOINT_SLOTS places of
 * ENDPOINT_SLOT_BYTES, of which this uses the slot's. */
int endpoint_send(struct endpoint *e, struct region *from, unsigned slot, enum wr_kind kind, const void *bytes,
		  uint32_t len, struct failure *f);

/* Registers fresh memory of `len` bytes (0: of one, which nobody may touch), with rights of enum ibv_access_flags. */
int region_create(struct region *r, struct ibv_pd *pd, uint32_t len, unsigned access, struct failure *f);
void region_destroy(struct region *r);

/* The rights that an operation needs to the far end's memory, and not one more. With `verify`, to read it back, too. */
unsigned endpoint_rights(enum tour_op op, enum tour_qp qp, bool verify);

#endif
