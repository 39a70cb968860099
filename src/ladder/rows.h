/* SPDX-License-Identifier: BSD-2-Clause */
/* The rows of a still picture: what leaves, arrives or happens, in the order of time. */
#ifndef LADDER_ROWS_H
#define LADDER_ROWS_H

#include "ladder/ladder.h"

enum ladder_row_kind { LADDER_ROW_ARRIVES, LADDER_ROW_EVENT, LADDER_ROW_LEAVES };

struct ladder_row {
	uint64_t time_ns;
	enum ladder_row_kind kind;
	size_t index; /* of the packet or event */
};

/* Of all packets and events; `arrivals`: packets get a second row where they arrive. The caller frees it. NULL: no
 * memory. */
struct ladder_row *ladder_rows(const struct ladder *l, bool arrivals, size_t *count);

/* A few words behind the name of a packet: "PSN 5, sent again". */
#define LADDER_REMARK_CHARS 160
const char *ladder_remark(const struct ladder_packet *p, char text[LADDER_REMARK_CHARS]);

#endif
