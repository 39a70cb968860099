/* SPDX-License-Identifier: BSD-2-Clause */
/* Explains what the demo's two processes did, to a reader who sees RDMA for the first time. */
#ifndef ROCI_DEMO_STORY_H
#define ROCI_DEMO_STORY_H

struct demo_pair;

/* Prints each step of the transfer once, in the order of time: who did it, what it means, which function does it and
 * which packets cross the network. `mode` is that of the transfer ("write", "read", "send"). */
void demo_story_print(const struct demo_pair *pair, const char *mode);

#endif
