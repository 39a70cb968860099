/* SPDX-License-Identifier: BSD-2-Clause */
/* Calls of verbs and rdma_cm that are refused, and why: `roci run --why`. */
#ifndef ROCI_VERBS_WHY_H
#define ROCI_VERBS_WHY_H

#define WHY_EXPORT __attribute__((visibility("default")))

/* Sets errno to `err`, positive. If ROCI_WHY is set, prints a line first: the call, the error, and what the failed
 * check noted (engine/why.h). `call` is the name of the function; a "vb_" at its beginning is read as "ibv_". */
WHY_EXPORT void roci_verbs_refused(const char *call, int err);

/* For src/rdmacm: roci_why_note(), if somebody asks. */
WHY_EXPORT __attribute__((format(printf, 1, 2))) void roci_verbs_why(const char *format, ...);

#endif
