/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The embedded device's own record: when packets left and came, when it took a work request from a queue, and when it
 * put a completion into one. No verbs call tells that. The device writes a capture (see roci-run(1)); this reads it.
 * Other devices have none.
 */
#ifndef ROCI_TOUR_RECORD_H
#define ROCI_TOUR_RECORD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "tour/tour.h"

/* Has the device write a capture to memory; or, if $ROCI_CAPTURE is set, to that file, as it would anyway. Call it
 * before the device is opened. 0 or a negative errno. */
int record_open(void);
bool record_on(void);

/* Where the record ends now, and its next block will begin. Waits for one that is being written. */
off_t record_mark(void);

/* Forgets what is recorded if it has become long. Not when the record is the user's file. */
void record_trim(void);

/* One operation: its request, the device's response to it, and what the device did for it at this end. 0: there was no
 * such packet or record. CLOCK_REALTIME. */
struct record_operation {
	uint64_t request_ns, response_ns;           /* the first packet of each */
	unsigned request_packets, response_packets; /* of this operation alone */
	char request_name[48], response_name[48];   /* "RC SEND Only" */
	uint64_t taken_ns; /* near: the device began with the WQE. Far: it took the receive; without one, it had
			      executed the request */
	uint64_t cqe_ns;   /* the completion entered the CQ */
};

/* Finds what there is of an operation between two QPs. The near end asks for what left first after `mark`; the far end
 * for what came last, apart from the control that asked. */
void record_find(off_t mark, bool near, enum tour_op op, uint32_t own_qpn, uint32_t peer_qpn,
		 struct record_operation *found);

#endif
