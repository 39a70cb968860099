/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The examinations of `roci doctor`. Each adds findings. They read and try, and change nothing.
 *
 * A finding says only what was read or tried. Where a cause is not proved, none is named.
 */
#ifndef ROCI_DOCTOR_DOCTOR_H
#define ROCI_DOCTOR_DOCTOR_H

#include "doctor/finding.h"

/* The machine that is examined. */
struct doctor_host {
	const char *root; /* "" or, in tests, a folder that stands for / where files of /proc, /sys, /dev and /lib are
			     read */
	const char *release; /* of the kernel, as uname(2) tells */
};

/* Devices of the kernel: their ports, whether this user can open them, rdma_cm, and whether Soft-RoCE is loaded or can
 * be. */
void doctor_kernel(struct findings *findings, const struct doctor_host *host);

/* Why this kernel does not have a module ("rdma_rxe"), and the command that gets it, where that is known. */
#define DOCTOR_MISSING_CHARS 400
void doctor_module_missing(const struct doctor_host *host, const char *module, char text[DOCTOR_MISSING_CHARS]);

/* Limits of this process and of its sockets, the run directory, ptrace. */
void doctor_limits(struct findings *findings, const struct doctor_host *host);

/* Interfaces, their MTU, and UDP port 4791 of each address. */
void doctor_network(struct findings *findings, const struct doctor_host *host);

/* Versions of Rocinante, the kernel and libibverbs. */
void doctor_versions(struct findings *findings, const struct doctor_host *host);

/* The devices that libibverbs shows to this process: port state, MTU, GIDs and which to use. source: the address from
 * which packets to the peer leave; empty: no peer was named. */
void doctor_verbs(struct findings *findings, const char *source);

#endif
