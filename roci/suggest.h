/* SPDX-License-Identifier: BSD-2-Clause */
/* Finds the word for "did you mean". */
#ifndef ROCI_SUGGEST_H
#define ROCI_SUGGEST_H

#include <stddef.h>

/* The word that is nearest to `typed`, or NULL if none is near. `words` ends with NULL. */
const char *suggest(const char *typed, const char *const *words);

#endif
