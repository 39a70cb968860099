/* SPDX-License-Identifier: BSD-2-Clause */
/* What the device counted, for people: nothing is decided by it. */
#ifndef ROCI_DEVICE_STATS_H
#define ROCI_DEVICE_STATS_H

#include <stdint.h>
#include <stdio.h>

#include "wire/packet.h"

struct roci_device_stats {
	uint64_t sent_packets, sent_messages;         /* messages: what the kernel was given, GSO counts once */
	uint64_t received_packets, received_messages; /* likewise, GRO */
	uint64_t sent_fragmented; /* packets that did not fit the path's MTU, and went in fragments or pieces */
	uint64_t send_dropped;    /* no room within 10 ms, no route ... */
	uint64_t receive_truncated;
	uint64_t icmp_errors;                  /* about packets that left from port 4791 */
	uint64_t unparsed[ROCI_PARSE_RESULTS]; /* by enum roci_parse_result, ROCI_PARSE_BAD_ICRC included */
	uint64_t rx_ud_bad_icrc;               /* of those, datagrams (UD) for QPs other than QP 1: see nat.h */
	uint64_t forwarded, forward_dropped;   /* packets of other processes, by the side door */
	uint64_t door_received, door_sent, door_malformed;
	uint64_t door_refused; /* from users who have no business at our side door: door_trust.h */
	uint64_t not_ours;     /* for a QPN that is nobody's */
	/* The local path: QPs that took it, requests by the short cut, packets in rings, payload copied from a peer. */
	uint64_t local_qps, local_direct, local_sent, local_received, local_fetched, local_lost, local_wakeups;
	/* by ROCI_FAULT: fault.h */
	uint64_t fault_send_lost, fault_send_duplicated, fault_send_reordered, fault_send_corrupted;
	uint64_t fault_receive_lost, fault_receive_duplicated, fault_receive_reordered, fault_receive_corrupted;
	uint64_t fault_receive_delayed;
	uint64_t mads_received, mads_sent, mads_forwarded, mads_malformed, mads_dropped; /* QP1 */
	uint64_t challenges_sent, challenges_received;                                   /* for QP1, see nat.h */
	uint64_t pieces_refused;                       /* from others than the QP's peer: pieces.h */
	uint64_t mtu_probes_sent, mtu_probes_received; /* see path_mtu.h */
	uint64_t thread_turns, thread_wakeups, thread_naps, poll_turns, wait_turns; /* who drove */
};

struct roci_engine_stats;

/* Gets one counter: its name, its value. */
typedef void roci_counter_fn(void *context, const char *name, uint64_t value);

/* Every counter, in the order in which people read them. */
void roci_device_stats_each(const struct roci_device_stats *d, const struct roci_engine_stats *e, roci_counter_fn *fn,
			    void *context);

/* Writes the counters that are not zero, one a line. ROCI_STATS=1 has it done on stderr when the device ends. */
void roci_device_stats_print(FILE *to, const struct roci_device_stats *d, const struct roci_engine_stats *e);

#endif
