/* SPDX-License-Identifier: BSD-2-Clause */
#include "mover/terms.h"

#include <string.h>

#include "mover/control.h"

#define DEFAULT_CHUNK   (1u << 20)
#define DEFAULT_WINDOWS 8
#define WINDOWS_PER_QP  2
#define MIN_WINDOWS     2
#define WINDOW_EXTRA    4096 /* of memory beside its chunk: the tag, rounded up to a page */

/* Memory for windows: what the control connection leaves. */
static uint64_t window_memory(const struct mover_common *common)
{
	uint64_t memory = common->memory_bytes ? common->memory_bytes : MOVER_DEFAULT_MEMORY_BYTES;
	uint64_t least = MIN_WINDOWS * PROTO_MIN_CHUNK;

	return memory > control_bytes() + least ? memory - control_bytes() : least;
}

static uint32_t limit_chunk(uint32_t chunk_bytes, uint64_t memory)
{
	while (chunk_bytes > PROTO_MIN_CHUNK && chunk_bytes > memory / MIN_WINDOWS)
		chunk_bytes /= 2;
	return chunk_bytes;
}

static uint16_t limit_windows(uint64_t windows, uint32_t chunk_bytes, uint64_t memory)
{
	uint64_t room = memory / (chunk_bytes + WINDOW_EXTRA);

	if (windows > room)
		windows = room;
	return (uint16_t)(windows ? windows : 1);
}

/* How many chunks of content there are, as far as the walk can tell. */
static uint64_t count_chunks(const struct mover_send_options *options, uint64_t bytes, uint32_t chunk_bytes)
{
	for (size_t i = 0; i < options->path_count; i++)
		if (!strcmp(options->paths[i], "-"))
			return UINT64_MAX; /* standard input ends when it ends */
	return bytes / chunk_bytes + 1;
}

/* Unless the user has chosen: no more QPs than chunks. Each takes a connection, which a transfer of a small file would
 * spend more time on than on the file; and their windows take memory. */
static void choose_qps(struct proto_terms *terms, uint64_t chunks, uint64_t *windows)
{
	terms->qps = (uint16_t)(chunks < MOVER_DEFAULT_QPS ? chunks : MOVER_DEFAULT_QPS);
	*windows = chunks < DEFAULT_WINDOWS - 1 ? chunks + 1 : DEFAULT_WINDOWS;
}

struct proto_terms terms_propose(const struct mover_send_options *options, uint16_t max_entries, uint64_t entries,
				 uint64_t bytes)
{
	const struct mover_common *common = &options->common;
	uint64_t memory = window_memory(common), windows;
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
	windows = terms.qps * WINDOWS_PER_QP > DEFAULT_WINDOWS ? terms.qps * WINDOWS_PER_QP : DEFAULT_WINDOWS;
	if (!common->qps)
		choose_qps(&terms, count_chunks(options, bytes, terms.chunk_bytes), &windows);
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
