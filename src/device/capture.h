/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A link below the seal link, so that it sees what goes on the wire. It writes packets of both directions to a pcapng
 * file: raw IP, with the IP and UDP headers that the kernel puts around the packets, and the identification that the
 * ICRC covers. (The headers are made up here, because a socket does not show them.) One write a batch.
 */
#ifndef ROCI_DEVICE_CAPTURE_H
#define ROCI_DEVICE_CAPTURE_H

#include "device/link.h"

/* Owns `inner` when it succeeds. "%p" in `path` becomes the process id. An existing capture is appended to, so several
 * processes may write one file. Returns 0 or a negative errno; -EEXIST: the file is something else. */
int roci_capture_open(struct roci_link *inner, const char *path, struct roci_link **out);

/* Closes the file in a forked child, and nothing else. */
void roci_capture_close_in_child(struct roci_link *link);

#endif
