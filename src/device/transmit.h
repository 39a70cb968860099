/* SPDX-License-Identifier: BSD-2-Clause */
/* Packets to send: from the engine to the links. */
#ifndef ROCI_DEVICE_TRANSMIT_H
#define ROCI_DEVICE_TRANSMIT_H

#include "device/link.h"

struct roci_device;

struct roci_transmit {
	struct roci_tx_batch batch;
	struct roci_frame frames[ROCI_LINK_SEND_BATCH];
	bool by_links; /* something was given to them */
	bool more;     /* there is more to send than one call took */
};

/* Sends what is ready, up to a limit. Returns the number of packets. The lock is held. */
unsigned roci_transmit(struct roci_device *dev, uint64_t now);

#endif
