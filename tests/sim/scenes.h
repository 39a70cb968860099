/* SPDX-License-Identifier: BSD-2-Clause */
/* The scenes of lines.c, and what each has to come up to. The figures are exact, so the bounds are close to them. */
#ifndef ROCI_SIM_SCENES_H
#define ROCI_SIM_SCENES_H

#include <stdbool.h>
#include <stdint.h>

#include "flow.h"
#include "line.h"

#define MS     UINT64_C(1000000)
#define SECOND UINT64_C(1000000000)
#define MBIT   UINT64_C(1000000)
#define GBIT   UINT64_C(1000000000)

struct scene {
	const char *name, *title;
	struct line_spec data, back; /* back.rate_bps 0: as data, with its queue, and without what goes wrong */
	double seconds;
	enum flow_mode mode;
	unsigned flows; /* 0: one */
	bool rival, standard, ecn;
	/* bounds: our part of what the line can carry, together; 0: none */
	double least, most;
	double jain;
	double queue_ms;    /* on average */
	double most_resent; /* part of the packets */
};

#define LINE(rate, one_way_ms) .data.rate_bps = (rate), .data.delay_ns = (uint64_t)((one_way_ms)*1e6)

static const struct scene scenes[] = {
	/* near */
	{.name = "lan",
	 .title = "1 Gbit/s 0.2 ms",
	 LINE(GBIT, 0.1),
	 .data.queue_bytes = 128 << 10,
	 .seconds = 2,
	 .least = 0.95},
	{.name = "lan-read",
	 .title = "1 Gbit/s 0.2 ms",
	 LINE(GBIT, 0.1),
	 .data.queue_bytes = 128 << 10,
	 .seconds = 2,
	 .mode = FLOW_READ,
	 .least = 0.94},
	/* far */
	{.name = "short",
	 .title = "50 Mbit/s 5 ms, queue 64 KB",
	 LINE(50 * MBIT, 2.5),
	 .data.queue_bytes = 64 << 10,
	 .seconds = 10,
	 .least = 0.96,
	 .queue_ms = 2},
	{.name = "far", .title = "1 Gbit/s 20 ms", LINE(GBIT, 10), .seconds = 5, .least = 0.96, .queue_ms = 2},
	{.name = "far-send",
	 .title = "1 Gbit/s 20 ms",
	 LINE(GBIT, 10),
	 .seconds = 5,
	 .mode = FLOW_SEND,
	 .least = 0.96,
	 .queue_ms = 2},
	{.name = "farther",
	 .title = "100 Mbit/s 100 ms",
	 LINE(100 * MBIT, 50),
	 .seconds = 10,
	 .least = 0.93,
	 .queue_ms = 10},
	{.name = "satellite", .title = "1 Gbit/s 300 ms", LINE(GBIT, 150), .seconds = 15, .least = 0.75},
	{.name = "thick", .title = "10 Gbit/s 100 ms", LINE(10 * GBIT, 50), .seconds = 4, .least = 0.67},
	/* loss */
	{.name = "far-lossy",
	 .title = "1 Gbit/s 20 ms, 0.1% lost",
	 LINE(GBIT, 10),
	 .data.loss_ppm = 1000,
	 .seconds = 5,
	 .least = 0.955},
	{.name = "farther-lossy",
	 .title = "100 Mbit/s 100 ms, 1% lost",
	 LINE(100 * MBIT, 50),
	 .data.loss_ppm = 10000,
	 .seconds = 10,
	 .least = 0.91},
	{.name = "farther-lossy-send",
	 .title = "100 Mbit/s 100 ms, 1% lost",
	 LINE(100 * MBIT, 50),
	 .data.loss_ppm = 10000,
	 .seconds = 10,
	 .mode = FLOW_SEND,
	 .least = 0.91},
	{.name = "very-lossy",
	 .title = "1 Gbit/s 20 ms, 5% lost",
	 LINE(GBIT, 10),
	 .data.loss_ppm = 50000,
	 .seconds = 5,
	 .least = 0.81},
	{.name = "thick-lossy",
	 .title = "10 Gbit/s 100 ms, 5% lost",
	 LINE(10 * GBIT, 50),
	 .data.loss_ppm = 50000,
	 .seconds = 4,
	 .least = 0.14},
	{.name = "acks-lost",
	 .title = "100 Mbit/s 40 ms, 20% of acks lost",
	 LINE(100 * MBIT, 20),
	 .back.loss_ppm = 200000,
	 .seconds = 10,
	 .least = 0.97,
	 .queue_ms = 3},
	{.name = "outage",
	 .title = "100 Mbit/s 40 ms, 2 s outage",
	 LINE(100 * MBIT, 20),
	 .data.outage_at_ns = 3 * SECOND,
	 .data.outage_ns = 2 * SECOND,
	 .seconds = 10,
	 .least = 0.945},
	/* others on the line */
	{.name = "with-cubic",
	 .title = "100 Mbit/s 20 ms, with CUBIC",
	 LINE(100 * MBIT, 10),
	 .seconds = 60,
	 .rival = true,
	 .least = 0.3,
	 .most = 0.7},
	{.name = "four",
	 .title = "100 Mbit/s 20 ms, four of ours",
	 LINE(100 * MBIT, 10),
	 .seconds = 60,
	 .flows = 4,
	 .least = 0.95,
	 .jain = 0.9},
	/* what networks do */
	{.name = "reordering",
	 .title = "1 Gbit/s 20 ms, 1.6% 100 late",
	 LINE(GBIT, 10),
	 .data.late_ppm = 16000,
	 .data.late_ns = 850000,
	 .seconds = 5,
	 .least = 0.96,
	 .most_resent = 0.005},
	{.name = "jitter",
	 .title = "100 Mbit/s 40 ms, jitter 20 ms",
	 LINE(100 * MBIT, 20),
	 .data.jitter_ns = 20 * MS,
	 .seconds = 10,
	 .least = 0.92,
	 .most_resent = 0.01},
	{.name = "policer",
	 .title = "1 Gbit/s 20 ms, policed to 50 Mbit",
	 LINE(GBIT, 10),
	 .data.police_bps = 50 * MBIT,
	 .data.police_bytes = 100000,
	 .seconds = 10,
	 .least = 0.93,
	 .most_resent = 0.08},
	{.name = "short-queue",
	 .title = "100 Mbit/s 40 ms, queue of 20",
	 LINE(100 * MBIT, 20),
	 .data.queue_bytes = 20 * 1068,
	 .seconds = 10,
	 .least = 0.91,
	 .most_resent = 0.02},
	{.name = "bufferbloat",
	 .title = "20 Mbit/s 20 ms, queue of 2 s",
	 LINE(20 * MBIT, 10),
	 .data.queue_bytes = 5000000,
	 .seconds = 20,
	 .least = 0.97,
	 .queue_ms = 7},
	{.name = "asymmetric",
	 .title = "100/2 Mbit/s 40 ms",
	 LINE(100 * MBIT, 20),
	 .back.rate_bps = 2 * MBIT,
	 .back.queue_bytes = 30000,
	 .seconds = 10,
	 .least = 0.97,
	 .queue_ms = 3},
	{.name = "narrow",
	 .title = "1 Mbit/s 50 ms",
	 LINE(MBIT, 25),
	 .data.queue_bytes = 20000,
	 .seconds = 20,
	 .least = 0.9,
	 .queue_ms = 30},
	{.name = "marks",
	 .title = "100 Mbit/s 20 ms, ECN",
	 LINE(100 * MBIT, 10),
	 .data.mark_bytes = 50000,
	 .ecn = true,
	 .seconds = 10,
	 .least = 0.97,
	 .queue_ms = 2},
	/* a peer that knows the standard only: go-back-N, and a window that follows the delay */
	{.name = "standard-far",
	 .title = "1 Gbit/s 20 ms, standard peer",
	 LINE(GBIT, 10),
	 .standard = true,
	 .seconds = 5,
	 .least = 0.65},
	{.name = "standard-lossy",
	 .title = "100 Mbit/s 100 ms, 1% lost, std",
	 LINE(100 * MBIT, 50),
	 .data.loss_ppm = 10000,
	 .standard = true,
	 .seconds = 10,
	 .least = 0.02},
	/* READs: as many as the standard allows, so far */
	{.name = "far-read", .title = "1 Gbit/s 20 ms", LINE(GBIT, 10), .seconds = 5, .mode = FLOW_READ, .least = 0.1},
};

#endif
