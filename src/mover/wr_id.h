/* SPDX-License-Identifier: BSD-2-Clause */
/* What a session's work request IDs say: what the work request is for, on which data connection, and an index: of a
 * buffer, a message or a window. */
#ifndef ROCI_MOVER_WR_ID_H
#define ROCI_MOVER_WR_ID_H

#include <stdint.h>

enum wr_kind {
	WR_CONTROL_RECV,
	WR_CONTROL_SEND,
	WR_LANE_RECV, /* a short message on a data connection: a greeting, or DONE */
	WR_LANE_SEND,
	WR_WINDOW, /* a window's WRITE (with its DONE), READ, SEND, or receive */
};

static inline uint64_t wr_id_make(enum wr_kind kind, unsigned lane, unsigned index)
{
	return (uint64_t)kind << 48 | (uint64_t)lane << 32 | index;
}

static inline enum wr_kind wr_id_kind(uint64_t wr_id)
{
	return (enum wr_kind)(wr_id >> 48);
}

static inline unsigned wr_id_lane(uint64_t wr_id)
{
	return (uint16_t)(wr_id >> 32);
}

static inline unsigned wr_id_index(uint64_t wr_id)
{
	return (uint32_t)wr_id;
}

#endif
