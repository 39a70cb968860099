/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The link that seals: it groups packets into runs, and gives each its IPv4 identification, pad and ICRC.
 *
 * A program may write to memory while peers read it, and the kernel copies payload after the ICRC was computed. So
 * payload that is short, or that must arrive intact (struct roci_tx_packet), is copied first. The rest stays where it
 * lies: a packet whose payload changed in between is lost, and sent again.
 */
#ifndef ROCI_DEVICE_SEAL_H
#define ROCI_DEVICE_SEAL_H

#include "device/link.h"

/* Owns `inner` when it succeeds. -ENOMEM. */
int roci_seal_open(struct roci_link *inner, struct roci_link **out);

/* What it wraps, and to wrap something else from now on. */
struct roci_link *roci_seal_inner(const struct roci_link *seal);
void roci_seal_wrap(struct roci_link *seal, struct roci_link *inner);

/* Writes the packet of an unsealed frame to `bytes`, frame->len of them, as a network would carry it alone. */
void roci_seal_packet(const struct roci_frame *frame, uint8_t *bytes);

#endif
