/* SPDX-License-Identifier: BSD-2-Clause */
/* Prints explanations on standard output: for people, or as JSON. */
#ifndef ROCI_EXPLAIN_SHOW_H
#define ROCI_EXPLAIN_SHOW_H

#include "explain/explain.h"

/* The rows that are sure in full, the others in one line each. */
void explain_show(const struct explain_found *found);
/* {"found": [...], "also": [...], "note": "..."}. note: what a person would be told besides; NULL: nothing. */
void explain_show_json(const struct explain_found *found, const char *note);

/* Of found->general. */
#define EXPLAIN_GENERAL "Nothing is known about this errno of this call in particular"

/* Every row in one line, under the name of its kind. */
void explain_list(void);
/* {"found": [...]} */
void explain_list_json(void);

#endif
