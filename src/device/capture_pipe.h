/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A capture that goes into a pipe. Its reader may be slow, stopped or gone; the program must not feel much of that. A
 * batch of blocks goes in as a whole or not at all. While a reader keeps up the writer waits for it a little; one that
 * does not read for CAPTURE_PIPE_WAIT_MS is not waited for again before it reads.
 */
#ifndef ROCI_DEVICE_CAPTURE_PIPE_H
#define ROCI_DEVICE_CAPTURE_PIPE_H

#include <stdbool.h>
#include <stddef.h>

#define ROCI_PIPE_WAIT_MS 100
#define ROCI_PIPE_END_MS  5000 /* for the rest of a batch that is half in the pipe */

/* Whether `path` names a pipe that is there. */
bool roci_pipe_is(const char *path);

/* Opens the pipe for writing, which does not wait. Returns a descriptor; -ENXIO: nobody reads it; or another negative
 * errno. Other processes that write it have descriptors of their own, and take flock() turns. */
int roci_pipe_open(const char *path);

/* Writes all bytes. Raises no SIGPIPE. *stalled is the writer's, false at first. Returns 0; -EAGAIN: there was no room,
 * and nothing was written; or another negative errno: nobody reads any more. */
int roci_pipe_write(int fd, const void *bytes, size_t len, bool *stalled);

#endif
