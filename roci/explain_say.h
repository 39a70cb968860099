/* SPDX-License-Identifier: BSD-2-Clause */
/* The explanation that goes with an error of a tool: a line for people, two members for programs. */
#ifndef ROCI_EXPLAIN_SAY_H
#define ROCI_EXPLAIN_SAY_H

#include <stdio.h>

#include <jansson.h>

#include "explain/explain.h"
#include "tour/failure.h"

/* What there is to read about a failure of the tour, or about the text of one. NULL: nothing. */
const struct explanation *explain_of_failure(const struct failure *failure);
const struct explanation *explain_of_text(const char *text);

/* "  there is no route to that address; `roci explain ENETUNREACH` tells more". Nothing of NULL. */
void explain_say(FILE *out, const struct explanation *e);

/* "explain", the WHAT for `roci explain`, and "explanation", what it means in one line. Nothing of NULL. */
void explain_say_json(json_t *object, const struct explanation *e);

#endif
