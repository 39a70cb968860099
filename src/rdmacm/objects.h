/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What stands behind the public objects. The public structure comes first in each, so that a cast leads from the one to
 * the other.
 *
 * Locks: cma_lock guards event queues, the channel of an id, and the counts of events that wait for acknowledgement. It
 * may be taken under the device's lock (the connection manager's upcall does that), never the other way round. An id's
 * other fields belong to the thread that calls functions on it, as the manual demands of programs; what an upcall needs
 * of them is under cma_lock, too.
 *
 * Functions of the public API return -1 with errno (cma_error()). Those declared here return 0 or a negative errno.
 */
#ifndef ROCI_RDMACM_OBJECTS_H
#define ROCI_RDMACM_OBJECTS_H

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "cm/cm.h"
#include "device/device.h"
#include "rdmacm/public.h"

#define CMA_PORT_NUM 1
#define CMA_PKEY     0xffff
/* What the path records of Ethernet say, where no subnet manager tells: 4.096 us << 16, about a quarter of a second. */
#define CMA_PACKET_LIFE_TIME 16
#define CMA_MAX_PRIVATE_DATA 256

extern pthread_mutex_t cma_lock;
/* Broadcast when an event is acknowledged. */
extern pthread_cond_t cma_acked;

/* Sets errno (from a positive or negative error number) and returns -1. */
static inline int cma_error(int err)
{
	errno = err < 0 ? -err : err;
	return -1;
}
/* The public convention of a negative errno or 0. */
static inline int cma_result(int err)
{
	return err ? cma_error(err) : 0;
}

/* ---- event channels ---- */

struct cma_id;
struct cma_mcast;

struct cma_event {
	struct rdma_cm_event event; /* what the program holds */
	struct cma_event *next;
	struct cma_id *owner;    /* the id that waits for the acknowledgement: the listener for a connect request */
	struct cma_mcast *mcast; /* or NULL */
	uint8_t private_data[CMA_MAX_PRIVATE_DATA];
};

struct cma_channel {
	struct rdma_event_channel channel;
	struct cma_event *head, **tail;
};

/* A new event about `id`, not queued yet; NULL: out of memory. */
struct cma_event *cma_event_new(struct cma_id *id, enum rdma_cm_event_type type, int status);
/* Queues it on its owner's channel. cma_lock held. */
void cma_event_push(struct cma_event *ev);
/* Both at once, for events without data. -ENOMEM. */
int cma_event_post(struct cma_id *id, enum rdma_cm_event_type type, int status);
/* The oldest event of the channel, counted as delivered, or NULL. */
struct cma_event *cma_channel_pop(struct cma_channel *ch);
/* Waits for an event. -1 with errno: EAGAIN where the descriptor does not block, EINTR, EBADF: the channel is gone. */
int cma_channel_wait(struct cma_channel *ch);
/* Moves the events that the id owns from its channel to `to`, and makes that its channel; NULL: out of the queues, to
 * be freed by the caller. Waits first until every delivered event is acknowledged. */
struct cma_event *cma_channel_move(struct cma_id *id, struct cma_channel *to);
/* The same for the events of one multicast group. */
struct cma_event *cma_channel_purge_mcast(struct cma_id *id, struct cma_mcast *mc);
/* Frees an event that nobody holds. */
void cma_event_free(struct cma_event *ev);

/* ---- ids ---- */

enum cma_state {
	CMA_IDLE,
	CMA_BOUND,
	CMA_ADDR_RESOLVED,
	CMA_ROUTE_RESOLVED,
	CMA_LISTEN,
	CMA_CONNECT, /* rdma_connect() was called, or a request came in */
};

struct cma_mcast {
	struct cma_mcast *next;
	struct cma_id *id;
	void *context;
	union ibv_gid gid;
	bool send_only, attached;
	uint32_t delivered, acked; /* events, under cma_lock */
	struct sockaddr_storage addr;
};

struct cma_id {
	struct rdma_cm_id id;    /* what the program holds */
	struct roci_device *dev; /* where it was made: a forked child's inherited ids stay on the inherited device */
	enum cma_state state;
	bool sync;                     /* the channel is ours: calls block until their event comes */
	bool passive;                  /* made by a request */
	bool accepted;                 /* passive: before, nothing is told but the request. Device's lock */
	bool disconnected;             /* told. Device's lock */
	bool connect_error;            /* the QP could not follow: the end of the connection is not told */
	bool own_send_cq, own_recv_cq; /* made by rdma_create_qp() */
	bool reuseaddr, afonly, ack_timeout_set;
	uint8_t tos, ack_timeout;
	uint8_t sgid_index;          /* valid once id.verbs is set */
	uint8_t responder_resources; /* decides whether the peer may read */
	uint32_t delivered, acked;   /* events, under cma_lock */
	uint32_t psn;                /* the starting PSN we tell: the first we expect */
	uint32_t qkey;               /* 0: RDMA_UDP_QKEY */
	/* In the manager, at most one of them; changed under the device's lock. */
	struct roci_conn *conn;
	struct roci_sidr *sidr;
	struct roci_cm_service *service; /* the port that is ours, and the listener on it */
	struct rdma_conn_param request;  /* passive: what it asked for, without private data */
	struct cma_mcast *mcasts;
	struct ibv_ece local_ece, remote_ece;
	struct ibv_sa_path_rec path; /* what id.route.path_rec points to */
	/* Of rdma_create_ep(): for the QPs of requests, and data to go in front of the private data. */
	struct ibv_qp_init_attr *qp_init_attr;
	void *connect_data;
	size_t connect_len;
};

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
/* After a call that ends in an event: a synchronous id waits for it, keeps it in id->event, and returns its failure. In
 * the public convention. */
int cma_complete(struct cma_id *id);
/* Acknowledges the event that a synchronous id keeps. */
void cma_forget_event(struct cma_id *id);

/* ---- the device ---- */

/* The context that all ids share, opened on first use. NULL: errno. */
struct ibv_context *cma_device(void);
/* The same, where an id says that it was opened; takes no lock. */
struct ibv_context *cma_context(void);
struct roci_device *cma_roci_device(void);
/* The PD that stands in where the program names none. NULL: errno. */
struct ibv_pd *cma_default_pd(void);
/* The most that rdma_conn_param may ask for. */
struct cma_limits {
	uint8_t responder_resources, initiator_depth;
};
struct cma_limits cma_device_limits(void);
/* The index of a GID of ours (on interface `ifindex`, if not 0), or -1. */
int cma_find_gid(const struct cma_id *id, const uint8_t gid[16], uint32_t ifindex);
/* The GID of a bound id. NULL: no such index. */
const struct roci_gid_entry *cma_source_gid(const struct cma_id *id);

/* ---- addresses ---- */

/* Length of the address of a family that we speak, 0 for others and NULL. The functions below want no others. */
socklen_t cma_addr_len(const struct sockaddr *addr);
bool cma_addr_is_any(const struct sockaddr *addr); /* true for one that is not set, too */
bool cma_addr_is_multicast(const struct sockaddr *addr);
bool cma_addr_is_link_local(const struct sockaddr *addr);
uint32_t cma_addr_scope(const struct sockaddr *addr); /* the interface of a link-local address, else 0 */
uint16_t cma_addr_port(const struct sockaddr *addr);  /* host order */
void cma_addr_set_port(struct sockaddr *addr, uint16_t port);
bool cma_addr_same_host(const struct sockaddr *a, const struct sockaddr *b);
/* IPv4 as ::ffff:a.b.c.d, and back. */
void cma_addr_gid(const struct sockaddr *addr, union ibv_gid *gid);
void cma_gid_addr(const uint8_t gid[16], bool ipv4, uint32_t ifindex, struct sockaddr *addr);

/* Ties the id to the device by its GID. -ENODEV: the GID is none of the device's. */
int cma_bind_gid(struct cma_id *id, const uint8_t gid[16], uint32_t ifindex);
/* Fills the path record of a bound id. */
void cma_fill_route(struct cma_id *id);

/* ---- queue pairs ---- */

/* RDMA_MAX_RESP_RES, RDMA_MAX_INIT_DEPTH: as the connection says. */
int cma_qp_to_rtr(struct cma_id *id, uint8_t responder_resources);
int cma_qp_to_rts(struct cma_id *id, uint8_t initiator_depth);
/* Connected QPs only; a QP that is not there, or is in no state to fail, is no error. */
void cma_qp_to_err(struct cma_id *id);

/* ---- multicast ---- */

/* The QP of the group's id joins. */
int cma_mcast_attach(struct cma_mcast *mc);
void cma_leave_all(struct cma_id *id);

/* ---- the connection manager ---- */

/* From now on, its events come to cma_upcall(). */
int cma_attach(struct roci_device *dev);
/* The manager of the id, under the device's lock. NULL, and not locked: a forked child's inherited id, whose manager is
 * the parent's (-ENODEV to callers). */
struct roci_cm *cma_lock_cm(const struct cma_id *id);
void cma_unlock_cm(const struct cma_id *id);
/* False: a forked child's inherited id. */
bool cma_is_alive(const struct cma_id *id);
/* Under the device's lock. */
void cma_upcall(const struct roci_cm_event *from);

/* Takes the port of the id's source address, or chooses one where that is 0. -EADDRINUSE. */
int cma_bind_port(struct cma_id *id);
/* The id's connection, exchange, listener and port go; its events cease. */
void cma_release(struct cma_id *id);
/* The program has the request. */
void cma_request_taken(struct cma_id *id);
uint32_t cma_random_psn(void);
/* Answers the peer's answer. */
int cma_establish(struct cma_id *id);
/* A copy; false where there is no connection. */
bool cma_conn_info(const struct cma_id *id, struct roci_conn_info *info);
void cma_path_ah(const struct cma_id *id, const struct roci_cm_path *path, struct ibv_ah_attr *ah);

#endif
