/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Ids, the sockets of rdma_cm, and what happens to them: addresses (resolve.c), QPs (qp.c), multicast groups (mcast.c).
 *
 * A field belongs to the thread that calls functions on the id, as the manual demands of programs, unless its comment
 * names a lock.
 */
#ifndef ROCI_RDMACM_ID_H
#define ROCI_RDMACM_ID_H

#include "cm/cm.h" /* IWYU pragma: export */
#include "device/device.h"
#include "rdmacm/channel.h"
#include "rdmacm/error.h" /* IWYU pragma: export */

enum cma_state {
	CMA_IDLE,
	CMA_BOUND,
	CMA_ADDR_RESOLVED,
	CMA_ROUTE_RESOLVED,
	CMA_LISTEN,
	CMA_CONNECT, /* after rdma_connect(), or made by a request */
};

struct cma_id {
	struct rdma_cm_id id;    /* the program's pointer; first, so that a cast leads back */
	struct roci_device *dev; /* where it was made: a forked child's inherited id stays on the inherited device */
	enum cma_state state;
	bool sync; /* synchronous: the channel is ours, and calls wait for their events */

	/* rdma_set_option() */
	bool reuseaddr, afonly, ack_timeout_set;
	uint8_t tos, ack_timeout;

	/* addresses */
	struct ibv_sa_path_rec path; /* id.route.path_rec points to it */

	struct cma_event_count events;

	/* the connection */
	bool passive;                   /* made by a request */
	struct cma_turn turn;           /* passive: when the program has fetched the request */
	bool accepted;                  /* passive; until then only the request is reported. Device's lock */
	bool disconnected;              /* reported. Device's lock */
	bool connect_error;             /* the QP failed to follow: the end of the connection is not reported */
	uint8_t responder_resources;    /* 0: the peer may not read */
	uint32_t psn;                   /* our starting PSN: the first that we expect */
	uint32_t qkey;                  /* 0: RDMA_UDP_QKEY */
	struct rdma_conn_param request; /* passive: what the request asks for, without private data */
	struct ibv_ece local_ece, remote_ece;

	/* in the connection manager: at most one of conn, sidr and a listening service; device's lock */
	struct roci_conn *conn;
	struct roci_sidr *sidr;
	struct roci_cm_service *service; /* the port that is ours, and the listener on it */

	/* queues */
	bool own_send_cq, own_recv_cq; /* made by rdma_create_qp() */
	struct roci_list mcasts;       /* multicast groups */

	/* rdma_create_ep() */
	struct ibv_qp_init_attr *qp_init_attr; /* for the QPs of requests */
	void *connect_data;                    /* precedes the private data */
	size_t connect_len;
};

/* "IDLE (new)", "BOUND (to an address)" ... */
const char *cma_state_name(const struct cma_id *id);

static inline struct cma_id *cma_id(struct rdma_cm_id *id)
{
	return (struct cma_id *)id;
}
static inline bool cma_is_ud(const struct cma_id *id)
{
	return id->id.qp_type == IBV_QPT_UD;
}

/* NULL: out of memory. */
struct cma_id *cma_id_new(struct roci_device *dev, struct rdma_event_channel *channel, void *context,
			  enum rdma_port_space ps, enum ibv_qp_type qp_type);
/* As rdma_create_id(), with a QP type for port space IB. */
int cma_id_create(struct rdma_event_channel *channel, struct cma_id **id, void *context, enum rdma_port_space ps,
		  enum ibv_qp_type qp_type);
/* Ends a call whose result is an event: a synchronous id waits for the event, keeps it in id->event, and returns its
 * failure. In the public convention. */
int cma_complete(struct cma_id *id);
/* Acknowledges the event that a synchronous id keeps. */
void cma_forget_event(struct cma_id *id);

/* ---- addresses ---- */

/* Binds the id to the device by one of its GIDs. -ENODEV: the device has no such GID. */
int cma_bind_gid(struct cma_id *id, const uint8_t gid[16], uint32_t ifindex);
/* Fills the path record of a bound id. */
void cma_fill_route(struct cma_id *id);

/* ---- queue pairs ---- */

/* RDMA_MAX_RESP_RES, RDMA_MAX_INIT_DEPTH: the connection's value. */
int cma_qp_to_rtr(struct cma_id *id, uint8_t responder_resources);
int cma_qp_to_rts(struct cma_id *id, uint8_t initiator_depth);
/* Connected QPs only. No error if there is no QP, or its state does not allow it. */
void cma_qp_to_err(struct cma_id *id);

/* ---- multicast ---- */

/* The id's QP joins the group, if there is a QP and the group is not for sending only. */
int cma_mcast_attach(struct cma_mcast *mc);
/* The id's QP is detached from all groups, because it will be destroyed. The id stays in them. */
void cma_mcast_detach_all(struct cma_id *id);
void cma_mcast_leave_all(struct cma_id *id);

#endif
