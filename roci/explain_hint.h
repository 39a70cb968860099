/* SPDX-License-Identifier: BSD-2-Clause */
/* Which explanation belongs to the message of a failed transfer. */
#ifndef ROCI_EXPLAIN_HINT_H
#define ROCI_EXPLAIN_HINT_H

#include "explain/explain.h"
#include "mover/mover.h"

/* The explanation that fits a session's end, or NULL. An errno counts only where the network failed: what it means for
 * a file is another matter. */
const struct explanation *explain_hint(enum mover_status status, const char *text);

#endif
