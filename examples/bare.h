/* SPDX-License-Identifier: BSD-2-Clause */
/* Verbs without rdma_cm: open a device, bring a QP through its states by hand, and tell the peer by a TCP socket what
 * it must know. bare.c is the heart of lesson 4. */
#ifndef EXAMPLES_BARE_H
#define EXAMPLES_BARE_H

#include "common.h"

#include <stddef.h>

/* A device and one of its addresses. All lessons use port 1. */
struct bare {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_port_attr port;
	union ibv_gid gid;
	int gid_index;
};

/* What one side must know of the other, as it travels: in network byte order. */
struct bare_address {
	uint8_t gid[16];  /* on RoCE: the IP address */
	uint32_t qpn;     /* the number of the QP */
	uint32_t psn;     /* of the first packet that it will send */
	uint16_t lid;     /* InfiniBand's address within a subnet; 0 on RoCE */
	uint16_t mtu;     /* as enum ibv_mtu */
	uint32_t rkey;    /* of the memory that it offers */
	uint64_t address; /* of that memory */
};

struct bare bare_open(const struct arguments *arguments);
void bare_close(struct bare *bare);

/* The address of a QP, with a random PSN. `mr`: the memory that it offers, or NULL. */
struct bare_address bare_address_of(const struct bare *bare, const struct ibv_qp *qp, const struct ibv_mr *mr);

/* Where packets to this peer go. */
struct ibv_ah_attr bare_route(const struct bare *bare, const struct bare_address *peer);

/* RESET to INIT. `access`: what the peer may do with memory through this QP, IBV_ACCESS_REMOTE_*. */
void bare_to_init(struct ibv_qp *qp, int access);
/* INIT to RTR, ready to receive: from here on the QP knows its peer and takes packets. */
void bare_to_rtr(const struct bare *bare, struct ibv_qp *qp, const struct bare_address *peer);
/* RTR to RTS, ready to send. `mine` is what the peer was told. rnr_retry: how often to try again when the peer has no
 * receive posted; 7 is for ever. */
void bare_to_rts(struct ibv_qp *qp, const struct bare_address *mine, uint8_t rnr_retry);

/* A TCP connection to the other side. It does not carry data: it carries what the QPs need before they are connected,
 * and the word that all is done. Both sides send `bytes` bytes and get as many. */
int bare_socket(const struct arguments *arguments);
void bare_exchange(int socket, const void *mine, void *theirs, size_t bytes);

/* Whether the other side has closed the socket. RC tells of a dead peer only to those who send; the socket tells all.
 */
bool bare_peer_gone(int socket);

#endif
