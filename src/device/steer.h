/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Steering: all processes that bind one address share its UDP port (SO_REUSEPORT). A classic BPF program on this group
 * picks the socket by the slot in the packet's destination QPN or, for QP1, in the communication id. So the kernel
 * gives a packet to the right process at once.
 *
 * The program names sockets by their index in the kernel's group: in the order of bind(), and when a socket is closed,
 * the last takes its index. The registry file keeps that order. It is wrong when a process was killed and nobody has
 * noticed yet. Then packets reach another process, which forwards them by the side door: steering is speed, not
 * correctness. So it is left out where a stopped process keeps the registry's lock.
 */
#ifndef ROCI_DEVICE_STEER_H
#define ROCI_DEVICE_STEER_H

#include <sys/socket.h>

#include "device/registry.h"

/* Removes what an earlier owner of our slot left behind. To be called before the first bind. */
void roci_steer_reset(struct roci_registry *reg);

/* Binds UDP socket `fd`, which has SO_REUSEPORT, to the `len` bytes at `addr` (the address of `gid`) and joins the
 * group. Returns 0 or bind's negative errno. -EADDRINUSE also where processes of another registry have the port: those
 * of a container that shares the network and the user. The kernel would let us in, but two registries would steer one
 * group. Close `fd` then: it may be bound. */
int roci_steer_bind(struct roci_registry *reg, int fd, const struct sockaddr *addr, unsigned len, const uint8_t gid[16],
		    uint32_t ifindex);

/* Leaves the group of `gid` and closes `fd`. */
void roci_steer_close(struct roci_registry *reg, int fd, const uint8_t gid[16], uint32_t ifindex);

/* Removes dead processes from the group of `gid` and rebuilds the program; `fd` is a member. For a process that
 * receives packets of others. Costs a few system calls. Does not wait for the registry's lock. */
void roci_steer_repair(struct roci_registry *reg, int fd, const uint8_t gid[16], uint32_t ifindex);

#endif
