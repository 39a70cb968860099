/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The device of this process: an engine, its sockets and thread, and a slot in the host registry.
 *
 * There is one roci_device in a process. Every ibv_context and rdma_cm channel shares it. The first roci_device_get()
 * opens it, and the last roci_device_put() closes it. A forked child starts without one.
 */
#ifndef ROCI_DEVICE_DEVICE_H
#define ROCI_DEVICE_DEVICE_H

#include <sys/socket.h>

#include "device/gid.h" /* IWYU pragma: export */
#include "engine/engine.h"
#include "engine/list.h"

struct roci_device;

/* Called for each completion and async event as it happens, under the device's lock. Must not block. `user` of the
 * events of the port (ROCI_EVENT_GID_CHANGE, ..._PORT_ACTIVE, ..._PORT_ERR) is the roci_device. */
typedef void roci_event_fn(const struct roci_event *ev);

/* Opens or shares the device. Returns 0, or a negative errno after a line on stderr that names the cause. */
int roci_device_get(roci_event_fn *on_event, struct roci_device **out);
void roci_device_put(struct roci_device *dev);
/* `in_child` is called in each forked child, for the device that it inherits and that does nothing any more. */
void roci_device_on_fork(void (*in_child)(struct roci_device *dev));
/* The program is about to end by _exit(), perhaps in a signal handler: sends what calls and polls have deferred, if
 * there is a device. (At exit() a destructor does that, and more.) */
void roci_device_send_last(void);

/* A list for src/verbs: the contexts that the events of the port go to. Lock held. */
struct roci_list *roci_device_contexts(struct roci_device *dev);

/* The lock for engine calls. lock() sends what earlier calls deferred. unlock() sends what the calls made ready, or
 * defers that while the program polls (turns.h), and wakes the thread where a deadline needs it. */
struct roci_engine *roci_device_lock(struct roci_device *dev);
void roci_device_unlock(struct roci_device *dev);
/* Locks to post work requests. What the last poll deferred (acknowledgements) waits for the unlock, and leaves in one
 * system call with what is posted. roci_device_lock() sends it first, so that no QP is changed or destroyed before its
 * acknowledgement is sent. */
struct roci_engine *roci_device_lock_post(struct roci_device *dev);
/* Unlocks after work requests were posted. As roci_device_unlock(), but connections are left to the next poll, or to
 * the thread. more: the program has more completions to poll, so it calls again soon. */
void roci_device_unlock_post(struct roci_device *dev, bool more);
/* Unlocks after calls that made nothing ready to be sent: receives were posted, a CQ was armed, or something was read.
 * What was deferred stays so, and leaves with the send that such a program posts next. */
void roci_device_unlock_quiet(struct roci_device *dev);
/* For callers that poll: receives, runs timers and sends, unless another thread does at the moment. Never blocks. */
void roci_device_poll(struct roci_device *dev);
/* Whether the event that a thread waits for has come. Called under the device's lock. Must not block. */
typedef bool roci_ready_fn(void *arg);
/* Waits until ready(arg), or until `fd`, which tells of the same event, is readable; drives meanwhile where nobody else
 * waits (turns.h). May return early, too. Returns 0, -EINTR, -EBADF (fd is closed), -EAGAIN: it would sleep, and fd is
 * non-blocking; or -ENODEV: the device is closed, or a forked child's; then wait for fd alone. A point at which the
 * thread may be cancelled. */
int roci_device_wait(struct roci_device *dev, int fd, roci_ready_fn *ready, void *arg);
/* Whether the caller, which has an event that makes `fd` readable, is the thread that waits for it: then nobody has to
 * be woken. Lock held. */
bool roci_device_awaits(const struct roci_device *dev, int fd);
/* Nanoseconds of CLOCK_MONOTONIC. */
uint64_t roci_now(void);

/* ---- addresses ---- */

/* The table as it is now, which sgid_index refers to. It changes under the device's lock; these may be called with it
 * or without. */
void roci_device_gids(struct roci_device *dev, struct roci_gids *out);
/* The entry at `index`. False: the place is empty, as programs see it, or there is none. */
bool roci_device_gid(struct roci_device *dev, unsigned index, struct roci_gid_entry *out);
/* The index of an address of this host, on interface `ifindex` (0: on any), or -1. */
int roci_device_find_gid(struct roci_device *dev, const uint8_t gid[16], uint32_t ifindex);
/* The table of the open device of this process or, where there is none, of the host as it is now. 0 or a negative
 * errno. */
int roci_device_host_gids(struct roci_gids *out);
/* How often the table of the open device has been written since the process began. Counted before anybody sees that
 * table. */
unsigned roci_device_gid_changes(void);

/* The source address that the routing tables choose for `dst`, whose port must not be 0. Sets a port in *src, too.
 * Returns 0 or a negative errno. Nothing is sent. Lock held. */
int roci_device_route_source(struct roci_device *dev, const struct sockaddr *dst, socklen_t dst_len,
			     struct sockaddr_storage *src);

/* An address handle holds its index: no other address gets it. Holds are counted. QPs need no hold. */
void roci_device_hold_gid(struct roci_device *dev, unsigned index);
void roci_device_release_gid(struct roci_device *dev, unsigned index);

/* Makes an address vector. -EINVAL: no such sgid_index, families differ; -EADDRNOTAVAIL: the address is tentative;
 * -ENETUNREACH: no route. Lock held. */
struct roci_ah_params {
	uint8_t sgid_index, hop_limit, traffic_class;
	uint8_t dgid[16];
	bool datagram; /* for UD: packets leave from port 4791. No receiver judges it, and firewalls let answers in */
};
int roci_device_make_av(struct roci_device *dev, const struct roci_ah_params *params, struct roci_av *av);
/* The path MTU from the address of sgid_index to `dgid`, as far as it is known (path_mtu.h), as enum ibv_mtu; 1,024
 * bytes where there is no such address any more. Lock held. */
uint8_t roci_device_path_mtu(struct roci_device *dev, unsigned sgid_index, const uint8_t dgid[16]);

/* Makes sure that packets to GID `sgid_index` arrive (binds its UDP port 4791), also when the host loses the address
 * and gets it back; -1: to every GID, those of the future too. Lock held. Returns 0, or a negative errno after a
 * warning on stderr: then only processes of this host can send to it. */
int roci_device_listen(struct roci_device *dev, int sgid_index);
/* Join and leave multicast group `gid` on every interface that has an address of its family. Joins are counted. Lock
 * held. Return 0 or a negative errno. */
int roci_device_join(struct roci_device *dev, const uint8_t gid[16]);
int roci_device_leave(struct roci_device *dev, const uint8_t gid[16]);

/* ---- peers on the same host (docs/ARCHITECTURE.md) ----
 *
 * Lock held. */

/* Before an RC QP goes to RTR: sets av->local where QP `dest_qpn` at av->dgid is of a process that is reached by shared
 * memory. Returns 0, or a negative errno: it is, and there is no memory. */
int roci_device_find_local(struct roci_device *dev, struct roci_av *av, uint32_t dest_qpn);
/* After it went there: peers may reach memory by it as its state allows. When it fails, is reset or destroyed, no copy
 * for it is under way any more. */
void roci_device_publish_qp(struct roci_device *dev, struct roci_qp *qp, uint32_t pd);
/* A region was made, or is gone: when this returns, peers do not reach it any more. */
void roci_device_publish_mr(struct roci_device *dev, const struct roci_mr_attr *attr);
void roci_device_revoke_mr(struct roci_device *dev, const struct roci_mr_attr *attr);
/* As roci_qp_post_send(), between roci_device_lock_post() and roci_device_unlock_post(). Where the peer is on this
 * host, a WRITE or READ may be executed at once, and a short SEND goes at once. */
int roci_device_post_send(struct roci_device *dev, struct roci_qp *qp, const struct roci_send_wr *wr);

/* Before an RC or UC QP goes from INIT to RTR with QP `dest_qpn` at dgid: where rdma_cm connected them across a NAT,
 * its packets will do what that needs (docs/ARCHITECTURE.md). 0 or a negative errno. Lock held. */
int roci_device_cross_nat(struct roci_device *dev, struct roci_qp *qp, const uint8_t dgid[16], uint32_t dest_qpn);

/* ---- numbers ---- */

/* A free QPN of this process's block, unpredictable; -ENOMEM. Lock held. */
int roci_device_alloc_qpn(struct roci_device *dev, uint32_t *qpn);
void roci_device_free_qpn(struct roci_device *dev, uint32_t qpn);
/* 32 bits of getrandom(). */
uint32_t roci_random32(void);

#endif
