/* SPDX-License-Identifier: BSD-2-Clause */
/* The parts of `roci ping`: what it was asked for, and what it prints. */
#ifndef ROCI_PING_H
#define ROCI_PING_H

#include <jansson.h>

#include "command.h"
#include "device.h"
#include "tour/near.h"
#include "tour/summary.h"
#include "tour/tour.h"

#define PING_NOT_GIVEN UINT32_MAX

struct ping_choices {
	unsigned op, qp, connect, wait; /* or PING_NOT_GIVEN */
	uint64_t size, sge, count, interval_ms, timeout_ms, port;
	const char *device, *ladder;
	bool inline_data, verify, no_verify, steps, loopback, json, quiet;
};

struct ping {
	const struct command *command;
	const struct ping_choices *choices;
	struct device_choice device;
	struct dial_target target;
};

/* As ping(8): all operations succeeded; one failed; nothing could be tried. */
enum { PING_GOOD = 0, PING_FAILED = 1, PING_CANNOT = 2 };

/* The plan of one operation; the size is what that operation has. */
struct tour_plan ping_plan(const struct ping_choices *choices, enum tour_op op, enum tour_qp qp, enum tour_way way,
			   enum tour_wait wait);

/* --op all: a table of ticks. Returns the exit status. */
int ping_all(const struct ping *ping);

/* Lines for people, or objects of JSON. */
void ping_show_start(const struct ping *ping, const struct tour_plan *plan, const struct dial *dial);
void ping_show_operation(const struct ping *ping, const struct tour_plan *plan, uint32_t seq,
			 const struct near_result *result);
void ping_show_steps(const struct ping *ping, const struct tour_plan *plan, const struct dial *dial, uint32_t seq,
		     const struct near_steps *steps);
void ping_show_summary(const struct ping *ping, const struct summary *summary);
/* Adds the members that tell of a failure. */
void ping_put_failure(json_t *object, const struct failure *failure);
/* A failure that ends the command, on stderr. */
void ping_show_failure(const struct ping *ping, const struct failure *failure);

#endif
