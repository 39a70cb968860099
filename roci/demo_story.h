/* SPDX-License-Identifier: BSD-2-Clause */
/* What the demo's two processes did, for somebody who sees RDMA for the first time. */
#ifndef ROCI_DEMO_STORY_H
#define ROCI_DEMO_STORY_H

struct demo_pair;

/* Prints the steps of both sides in their order, each explained where it first happens; what repeats is told once. */
void demo_story_print(const struct demo_pair *pair);

#endif
