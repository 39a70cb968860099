/* SPDX-License-Identifier: BSD-2-Clause */
/* For the generated stubs. */
#ifndef ROCI_VERBS_PRIVATE_H
#define ROCI_VERBS_PRIVATE_H

/* Says on stderr that `name` was called; sets errno and returns EOPNOTSUPP. */
int vb_private_stub(const char *name);

#endif
