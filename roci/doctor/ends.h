/* SPDX-License-Identifier: BSD-2-Clause */
/* Compares the two ends of a connection: GID types, MTU and subnets. */
#ifndef ROCI_DOCTOR_ENDS_H
#define ROCI_DOCTOR_ENDS_H

#include <netinet/in.h>
#include <stdbool.h>

#include "doctor/finding.h"

struct end {
	char gid[INET6_ADDRSTRLEN]; /* as an address */
	char type[16];              /* "RoCE v2"; "unknown": it was not told */
	unsigned prefix;            /* bits of its subnet; 0: not told */
	unsigned port_mtu;          /* bytes of an RDMA packet that the port's active MTU allows */
	unsigned network_mtu;       /* bytes that its interface carries whole; 0: not told */
};

/* Reads both ends from the first line of `roci ping --json --connect socket`. False: it does not have them. */
bool ends_parse(const char *line, struct end *near, struct end *far);

/* Adds a finding for each of GID types, MTU, fragments (if there will be any) and subnets. */
void ends_compare(struct findings *findings, const struct end *near, const struct end *far);

#endif
