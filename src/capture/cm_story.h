/* SPDX-License-Identifier: BSD-2-Clause */
/* What is remembered of messages of connection management: requests that wait for their REP, and what was sent lately.
 */
#ifndef CAPTURE_CM_STORY_H
#define CAPTURE_CM_STORY_H

#include "cm/msg.h"

#define CAPTURE_REQUESTS 64
#define CAPTURE_RECENT   128

struct capture_request {
	bool used;
	uint8_t src[16], dst[16];
	uint32_t local_id, qpn;
	uint8_t transport; /* enum roci_cm_transport */
	uint8_t mtu;       /* code */
};

/* A message that was seen, to know it when it comes again. */
struct capture_recent {
	bool used;
	uint8_t view; /* enum capture_view */
	uint8_t src[16];
	uint64_t tid;
	uint32_t local_id;
	uint16_t attribute;
};

struct capture_cm_story {
	struct roci_cm_msg msg; /* of the last event */
	struct capture_request requests[CAPTURE_REQUESTS];
	unsigned next_request;
	struct capture_recent recent[CAPTURE_RECENT];
	unsigned next_recent;
};

#endif
