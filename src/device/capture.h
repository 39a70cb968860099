/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A link below the seal link, so that it sees what goes on the wire. It writes packets of both directions to a pcapng
 * file: raw IP, with the IP and UDP headers that the kernel puts around the packets, and the identification that the
 * ICRC covers. (The headers are made up here, because a socket does not show them.) One write a batch.
 *
 * The same file gets records of what the program does: posts, completions, states of QPs, events of connections
 * (wire/record.h). They go with the next batch; driving the device is one, with packets or without.
 */
#ifndef ROCI_DEVICE_CAPTURE_H
#define ROCI_DEVICE_CAPTURE_H

#include "cm/cm.h"
#include "device/link.h"

/* Owns `inner` when it succeeds. "%p" in `path` becomes the process id. An existing capture is appended to, so several
 * processes may write one file. Returns 0 or a negative errno; -EEXIST: the file is something else. */
int roci_capture_open(struct roci_link *inner, const char *path, struct roci_link **out);

/* What went through the ring of a process of this host (local/ring.h), as the engine knows it. */
struct roci_local_sight {
	const struct roci_av *av; /* of the QP that sent or received it */
	const uint8_t *header;
	const struct roci_span *spans; /* the payload; none where it did not go through the ring */
	uint32_t payload_len;
	unsigned header_len, span_count; /* ROCI_MAX_SGE at most */
	bool outbound;
};
/* Makes up the packet that it would have been, with a comment that says so. A payload without spans is cut off. */
void roci_capture_local(struct roci_link *link, const struct roci_local_sight *seen);

/* Who records in it: for roci_engine_trace(). Valid until the link is closed. */
struct roci_trace *roci_capture_trace(struct roci_link *link);
void roci_capture_cm_event(struct roci_link *link, const struct roci_cm_event *event);
/* Writes what is buffered. */
void roci_capture_flush(struct roci_link *link);

/* False: its file or pipe is closed after a failure, and nothing is written any more. */
bool roci_capture_is_read(const struct roci_link *link);
/* Ends the capture. Returns what it wrapped, which is the caller's again. */
struct roci_link *roci_capture_unwrap(struct roci_link *link);

/* Closes the file in a forked child, and nothing else. */
void roci_capture_close_in_child(struct roci_link *link);

#endif
