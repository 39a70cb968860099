/* SPDX-License-Identifier: BSD-2-Clause */
/* What the files of the tracker share. */
#ifndef CAPTURE_TRACKER_INTERNAL_H
#define CAPTURE_TRACKER_INTERNAL_H

#include "capture/cm_story.h"
#include "capture/conversation.h"
#include "capture/iwarp.h"
#include "capture/rewritten.h"

struct capture_tracker {
	struct capture_talks *talks;
	struct capture_totals totals;
	uint64_t messages; /* numbered so far */
	struct capture_iwarp iwarp;
	struct capture_cm_story cm;
	struct capture_rewritten rewritten;
	capture_conversation_fn *given_up;
	void *given_up_context;
};

/* Reads a datagram to QP1. Fills event->cm, and learns which QPs will talk. False: it is no message of CM. */
bool capture_take_cm(struct capture_tracker *t, struct capture_event *e);

#endif
