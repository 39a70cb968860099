/* SPDX-License-Identifier: BSD-2-Clause */
/* "Did you mean": the nearest of some words. */
#ifndef ROCI_SUGGEST_H
#define ROCI_SUGGEST_H

#include <stddef.h>

/* The word a typist who wrote `typed` may have meant, or NULL. `words` ends with NULL. */
const char *suggest(const char *typed, const char *const *words);

#endif
