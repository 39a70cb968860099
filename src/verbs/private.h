/* SPDX-License-Identifier: BSD-2-Clause */
/* The function that the generated stubs of the private node call. */
#ifndef ROCI_VERBS_PRIVATE_H
#define ROCI_VERBS_PRIVATE_H

/* Prints on stderr that `name` was called. Sets errno to EOPNOTSUPP and returns it. */
int vb_private_stub(const char *name);

#endif
