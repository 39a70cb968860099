/* SPDX-License-Identifier: BSD-2-Clause */
#include "device/stats.h"

#include <assert.h>
#include <stdio.h>

#include "engine/engine.h"

struct line {
	const char *name;
	uint64_t value;
};

static void each(const struct line *lines, unsigned count, roci_counter_fn *fn, void *context)
{
	for (unsigned i = 0; i < count; i++)
		fn(context, lines[i].name, lines[i].value);
}

#define LINE(from, field)                                                                                              \
	{                                                                                                              \
#field, (from)->field                                                                                  \
	}

void roci_device_stats_each(const struct roci_device_stats *d, const struct roci_engine_stats *e, roci_counter_fn *fn,
			    void *context)
{
	const struct line device[] = {
		LINE(d, sent_packets),
		LINE(d, sent_messages),
		LINE(d, received_packets),
		LINE(d, received_messages),
		LINE(d, sent_fragmented),
		LINE(d, send_dropped),
		LINE(d, receive_truncated),
		LINE(d, icmp_errors),
		LINE(d, forwarded),
		LINE(d, forward_dropped),
		LINE(d, door_received),
		LINE(d, door_sent),
		LINE(d, door_malformed),
		LINE(d, door_refused),
		LINE(d, not_ours),
		LINE(d, local_qps),
		LINE(d, local_direct),
		LINE(d, local_sent),
		LINE(d, local_received),
		LINE(d, local_fetched),
		LINE(d, local_lost),
		LINE(d, local_wakeups),
		LINE(d, mads_received),
		LINE(d, mads_sent),
		LINE(d, mads_forwarded),
		LINE(d, mads_malformed),
		LINE(d, mads_dropped),
		LINE(d, challenges_sent),
		LINE(d, challenges_received),
		LINE(d, pieces_refused),
		LINE(d, mtu_probes_sent),
		LINE(d, mtu_probes_received),
		LINE(d, thread_turns),
		LINE(d, thread_wakeups),
		LINE(d, thread_naps),
		LINE(d, poll_turns),
		LINE(d, wait_turns),
		LINE(d, fault_send_lost),
		LINE(d, fault_send_duplicated),
		LINE(d, fault_send_reordered),
		LINE(d, fault_send_corrupted),
		LINE(d, fault_receive_lost),
		LINE(d, fault_receive_duplicated),
		LINE(d, fault_receive_reordered),
		LINE(d, fault_receive_corrupted),
		LINE(d, fault_receive_delayed),
	};
	const struct line engine[] = {
		LINE(e, rx_no_qp),      LINE(e, rx_wrong_state), LINE(e, rx_wrong_type),   LINE(e, rx_wrong_source),
		LINE(e, rx_wrong_port), LINE(e, rx_far),         LINE(e, rx_bad_pkey),     LINE(e, rx_bad_qkey),
		LINE(e, rx_malformed),  LINE(e, rx_duplicate),   LINE(e, rx_out_of_order), LINE(e, rx_no_wqe),
		LINE(e, naks_sent),     LINE(e, naks_received),  LINE(e, rnr_sent),        LINE(e, rnr_received),
		LINE(e, retransmits),   LINE(e, timeouts),       LINE(e, probes),          LINE(e, cnp_received),
		LINE(e, cnp_refused),   LINE(e, peers_lost),     LINE(e, peers_moved),     LINE(e, black_holes),
	};

	const struct line unparsed[] = {
		{"rx_too_short", d->unparsed[ROCI_PARSE_TOO_SHORT]},
		{"rx_bad_version", d->unparsed[ROCI_PARSE_BAD_TVER]},
		{"rx_bad_opcode", d->unparsed[ROCI_PARSE_BAD_OPCODE]},
		{"rx_bad_length", d->unparsed[ROCI_PARSE_BAD_LENGTH]},
		{"rx_bad_icrc", d->unparsed[ROCI_PARSE_BAD_ICRC]},
		LINE(d, rx_ud_bad_icrc),
	};

	static_assert(sizeof(unparsed) / sizeof(unparsed[0]) == ROCI_PARSE_RESULTS - 1 + 1, "each has a name");
	each(device, sizeof(device) / sizeof(device[0]), fn, context);
	each(unparsed, sizeof(unparsed) / sizeof(unparsed[0]), fn, context);
	each(engine, sizeof(engine) / sizeof(engine[0]), fn, context);
}

static void print(void *to, const char *name, uint64_t value)
{
	if (value)
		fprintf(to, "roci: %-24s %12llu\n", name, (unsigned long long)value);
}

void roci_device_stats_print(FILE *to, const struct roci_device_stats *d, const struct roci_engine_stats *e)
{
	roci_device_stats_each(d, e, print, to);
}
