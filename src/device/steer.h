/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Steering: all processes that bind one address share its UDP port by SO_REUSEPORT, and a classic BPF program on the
 * group picks the socket by the block of the packet's destination QPN, or by the communication id where that is QP1, so
 * that the kernel delivers to the right process at once. The program names sockets by their index in the kernel's
 * group: bind order, the last moved into the place of one that is closed. The registry file keeps that order. Where it
 * is wrong (a process was killed and nobody noticed yet), packets reach a process that hands them over by the side
 * door: steering is speed, not correctness.
 */
#ifndef ROCI_DEVICE_STEER_H
#define ROCI_DEVICE_STEER_H

#include <sys/socket.h>

#include "device/registry.h"

/* Forgets what an earlier owner of our slot left behind; call it before the first bind. */
void roci_steer_reset(struct roci_registry *reg);

/* Binds UDP socket `fd`, which has SO_REUSEPORT, to the `len` bytes at `addr` (the address of `gid`) and joins the
 * group. Returns 0 or bind's negative errno. */
int roci_steer_bind(struct roci_registry *reg, int fd, const struct sockaddr *addr, unsigned len, const uint8_t gid[16],
		    uint32_t ifindex);

/* Leaves the group of `gid`; `fd` is to be closed soon, by the end of the process. */
void roci_steer_leave(struct roci_registry *reg, int fd, const uint8_t gid[16], uint32_t ifindex);

/* Leaves the group of `gid` and closes `fd`. */
void roci_steer_close(struct roci_registry *reg, int fd, const uint8_t gid[16], uint32_t ifindex);

/* Drops the dead from the group of `gid` and rebuilds the program; `fd` is a member. For whoever sees packets that were
 * another process's; costs a few system calls. */
void roci_steer_repair(struct roci_registry *reg, int fd, const uint8_t gid[16], uint32_t ifindex);

#endif
