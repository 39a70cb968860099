/* SPDX-License-Identifier: BSD-2-Clause */
#include "mover/terms.h"

#include "mover/control.h"

#define DEFAULT_CHUNK   (1u << 20)
#define DEFAULT_WINDOWS 8
#define FAR_BYTES_PER_S                                                                                                \
	UINT64_C(1250000000) /* what a far path may carry: its round trip's content is in windows, too */
#define WINDOWS_PER_QP 2
#define MIN_WINDOWS    2
#define WINDOW_EXTRA   4096 /* of memory beside its chunk: the tag, rounded up to a page */

/* Memory for windows: what the control connection leaves. */
static uint64_t window_memory(const struct mover_common *common)
{
	uint64_t memory = common->memory_bytes ? common->memory_bytes : MOVER_DEFAULT_MEMORY_BYTES;
	uint64_t least = MIN_WINDOWS * (PROTO_MIN_CHUNK + WINDOW_EXTRA);

	return memory > control_bytes() + least ? memory - control_bytes() : least;
}

static uint32_t limit_chunk(uint32_t chunk_bytes, uint64_t memory)
{
	while (chunk_bytes > PROTO_MIN_CHUNK && chunk_bytes + WINDOW_EXTRA > memory / MIN_WINDOWS)
		chunk_bytes /= 2;
	return chunk_bytes;
}

static uint16_t limit_windows(uint64_t windows, uint32_t chunk_bytes, uint64_t memory)
{
	uint64_t room = memory / (chunk_bytes + WINDOW_EXTRA);

	if (windows > room)
		windows = room;
	if (windows > PROTO_MAX_WINDOWS)
		windows = PROTO_MAX_WINDOWS;
	return (uint16_t)(windows ? windows : 1);
}

/* How many chunks of content there are, as far as the walk can tell. */
static uint64_t count_chunks(const struct mover_send_options *options, uint64_t bytes, uint32_t chunk_bytes)
{
	if (mover_sends_stdin(options->paths, options->path_count))
		return UINT64_MAX; /* standard input ends when it ends */
	return bytes / chunk_bytes + 1;
}

/* A window is filled again a round trip after it was used, at the earliest. */
static uint64_t choose_windows(uint64_t round_trip_ns, uint32_t chunk_bytes)
{
	return DEFAULT_WINDOWS + round_trip_ns / 1000 * (FAR_BYTES_PER_S / 1000000) / chunk_bytes;
}

/* Unless the user has chosen: no more QPs than chunks. Each takes a connection, which a transfer of a small file would
 * spend more time on than on the file; and their windows take memory. */
static void choose_qps(struct proto_terms *terms, const struct mover_common *common, uint64_t chunks, bool roci)
{
	unsigned qps = roci ? MOVER_ROCI_QPS : MOVER_DEFAULT_QPS;

	if (common->cqs > qps)
		qps = common->cqs; /* who wants so many CQs wants QPs for them */
	terms->qps = (uint16_t)(chunks < qps ? chunks : qps);
}

struct proto_terms terms_propose(const struct mover_send_options *options, uint16_t max_entries, uint64_t entries,
				 uint64_t bytes, uint64_t round_trip_ns, bool roci)
{
	const struct mover_common *common = &options->common;
	uint64_t memory = window_memory(common), windows, chunks;
	struct proto_terms terms = {
		.mode = options->mode,
		.encrypt = options->encrypt,
		.checksum = options->checksum,
		.dry_run = options->dry_run,
		.qps = (uint16_t)common->qps,
		.max_entries = max_entries,
		.entries = entries,
		.bytes = bytes,
	};

	terms.chunk_bytes = limit_chunk(common->chunk_bytes ? common->chunk_bytes : DEFAULT_CHUNK, memory);
	windows = choose_windows(round_trip_ns, terms.chunk_bytes);
	if (windows < (uint64_t)terms.qps * WINDOWS_PER_QP)
		windows = (uint64_t)terms.qps * WINDOWS_PER_QP;
	chunks = count_chunks(options, bytes, terms.chunk_bytes);
	if (!common->qps) {
		choose_qps(&terms, common, chunks, roci);
		windows = chunks < windows - 1 ? chunks + 1 : windows;
	}
	terms.windows = limit_windows(windows, terms.chunk_bytes, memory);
	return terms;
}

void terms_limit(struct proto_terms *terms, const struct mover_common *common, uint16_t max_entries, uint64_t session)
{
	uint64_t memory = window_memory(common);

	if (common->qps && terms->qps > common->qps)
		terms->qps = (uint16_t)common->qps;
	terms->chunk_bytes = limit_chunk(terms->chunk_bytes, memory);
	terms->windows = limit_windows(terms->windows, terms->chunk_bytes, memory);
	if (terms->mode == MOVER_SEND && terms->qps > terms->windows)
		terms->qps = terms->windows; /* a data connection without a window would never be used */
	terms->max_entries = max_entries;
	terms->session = session;
}

bool terms_acceptable(const struct proto_terms *proposed, const struct proto_terms *answer)
{
	return answer->session && answer->mode == proposed->mode && answer->encrypt == proposed->encrypt &&
	       answer->dry_run == proposed->dry_run && answer->checksum <= proposed->checksum &&
	       answer->qps <= proposed->qps && answer->chunk_bytes <= proposed->chunk_bytes &&
	       answer->windows <= proposed->windows && answer->max_entries <= proposed->max_entries;
}
