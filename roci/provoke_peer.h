/* SPDX-License-Identifier: BSD-2-Clause */
/* A peer that is made by hand, for `roci explain --provoke`: a UDP socket at an address of this host that no device
 * has. It speaks RoCEv2, and breaks its rules as it is told. */
#ifndef ROCI_PROVOKE_PEER_H
#define ROCI_PROVOKE_PEER_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>

#include "wire/packet.h"

#define PEER_ADDRESS  0x7f000002u /* 127.0.0.2, in host byte order */
#define PEER_QPN      0x123u      /* any: it has no queue pairs */
#define PEER_CM_BYTES 232u        /* a message of the connection manager, behind the header of its MAD */

/* What it has received. */
struct peer_packet {
	struct roci_packet packet;
	struct sockaddr_in from; /* with port 4791, where answers go */
	uint8_t bytes[4400];     /* that `packet` points into */
};

/* Messages of the connection manager, IBTA 12.6. */
enum peer_message { PEER_REQ = 0x10, PEER_REJ = 0x12, PEER_REP = 0x13 };

struct peer_mad {
	enum peer_message message;
	uint64_t tid;
	uint8_t body[PEER_CM_BYTES];
};

/* Takes port 4791 of PEER_ADDRESS. Returns a descriptor for close(), or -1 after a line on stdout. */
int peer_open(void);

/* Waits for a packet with this kind (enum roci_kind). False: none came. */
bool peer_receive(int fd, unsigned kind, struct peer_packet *got);

/* Sends pkt, with pkt->payload. The opcode must be defined. */
bool peer_send(int fd, const struct sockaddr_in *to, const struct roci_packet *pkt);

/* Waits for a message of the connection manager. *from is where it comes from. False: none came. */
bool peer_receive_mad(int fd, enum peer_message message, struct peer_mad *mad, struct sockaddr_in *from);
bool peer_send_mad(int fd, const struct sockaddr_in *to, const struct peer_mad *mad);

#endif
