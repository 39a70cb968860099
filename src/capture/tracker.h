/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Follows the conversations of a capture: which two QPs talk, which packets are parts of which message, what was sent
 * again, what came out of order, and how long round trips take.
 *
 *     struct capture_reader *r = capture_reader_create(file);
 *     struct capture_tracker *t = capture_tracker_create();
 *     struct capture_record record;
 *     struct capture_frame frame;
 *     struct capture_event event;
 *
 *     while (capture_reader_next(r, &record) == CAPTURE_RECORD)
 *             if (record.kind == CAPTURE_PACKET) {
 *                     capture_tracker_take(t, &record, &frame, &event);   (reads the packet, fills both)
 *                     do ... while (capture_tracker_more(t, &frame, &event));
 *             }
 *
 * A capture that says the direction of its packets (ours; tcpdump -i any) may hold each packet twice, as it left and as
 * it arrived. These are two views: "sent again" is judged among packets that leave, "duplicate" and "out of order"
 * among those that arrive.
 *
 * Memory is bounded: CAPTURE_CONVERSATIONS are followed. The one that was silent longest is given up for a new one.
 */
#ifndef CAPTURE_TRACKER_H
#define CAPTURE_TRACKER_H

#include "capture/event.h"
#include "capture/percentile.h"
#include "wire/record.h"

#define CAPTURE_CONVERSATIONS 1024

/* What one end of a conversation sent. Each packet is counted once, even where the capture has it twice. */
struct capture_end {
	uint8_t gid[16];
	uint32_t qpn;
	bool qpn_known;
	uint64_t packets, bytes; /* bytes: payload, without what was sent again */
	uint64_t messages;       /* requests that are complete: SEND, WRITE, READ, atomics */
	uint64_t sent_again, duplicates, out_of_order, late;
	uint64_t acks, naks, rnrs, cnps, bad_icrcs;
};

struct capture_conversation {
	uint32_t number; /* as in struct capture_event */
	enum roci_transport transport;
	uint64_t first_ns, last_ns;
	struct capture_end ends[2];
	struct capture_percentiles round_trips[2]; /* nanoseconds; [i]: of requests that end i sent */
};

struct capture_totals {
	uint64_t conversations; /* ever seen */
	uint64_t given_up;      /* of them, for want of room */
	uint64_t packets, roce, cm, not_understood, iwarp, other;
};

struct capture_tracker;

/* NULL: no memory. */
struct capture_tracker *capture_tracker_create(void);
void capture_tracker_destroy(struct capture_tracker *t);

/* Takes the next record, which is a packet. Everything in *frame and *event points into the record, and is valid until
 * the next call. */
void capture_tracker_take(struct capture_tracker *t, const struct capture_record *record, struct capture_frame *frame,
			  struct capture_event *event);

/* A frame may hold several packets (see struct capture_frame). Takes the next one of the same frame into *event. False:
 * there is none. */
bool capture_tracker_more(struct capture_tracker *t, struct capture_frame *frame, struct capture_event *event);

/* Takes a record of the embedded device (wire/record.h). A QP that is ready to receive says who its peer is, so that
 * its packets have a source QP from the first one on. */
void capture_tracker_record(struct capture_tracker *t, const struct roci_record *record);

const struct capture_totals *capture_tracker_totals(const struct capture_tracker *t);

/* Called with a conversation that is given up, before it is forgotten. */
typedef void capture_conversation_fn(void *context, const struct capture_conversation *c);
void capture_tracker_on_given_up(struct capture_tracker *t, capture_conversation_fn *fn, void *context);

/* Calls fn with every conversation that is followed and has packets, by number. */
void capture_tracker_each(const struct capture_tracker *t, capture_conversation_fn *fn, void *context);

#endif
