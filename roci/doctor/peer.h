/* SPDX-License-Identifier: BSD-2-Clause */
/* Examines the way to another host, and sends through it. */
#ifndef ROCI_DOCTOR_PEER_H
#define ROCI_DOCTOR_PEER_H

#include <netinet/in.h>
#include <stdbool.h>
#include <sys/socket.h>

#include "doctor/finding.h"

struct target;

struct doctor_peer {
	struct sockaddr_storage address; /* with the TCP port of `roci serve` */
	socklen_t address_len;
	char text[INET6_ADDRSTRLEN];   /* the address */
	char source[INET6_ADDRSTRLEN]; /* this host's address for packets to it; empty: there is no route */
	char argument[320];            /* for `roci ping` */
};

/* Resolves the host and asks the kernel for the route. Sends nothing. Adds findings. False: there is no way. */
bool doctor_peer_find(struct findings *findings, const struct target *target, struct doctor_peer *peer);

/* Asks UDP port 4791 and `roci serve` there, and compares both ends. Then lets `roci ping` send: a small SEND, and
 * messages of many full packets in each direction. Ends within seconds. */
void doctor_peer_try(struct findings *findings, const struct doctor_peer *peer);

#endif
