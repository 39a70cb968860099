/* SPDX-License-Identifier: BSD-2-Clause */
/* A packet of a capture with everything that is known of it: where it came from, what it says, and what it means. */
#ifndef CAPTURE_EVENT_H
#define CAPTURE_EVENT_H

#include "capture/frame.h"
#include "cm/msg.h"
#include "wire/packet.h"

/* What kind of thing the packet is. */
enum capture_sort {
	CAPTURE_SORT_ROCE,           /* event.packet is set */
	CAPTURE_SORT_CM,             /* so is event.cm: a message of connection management */
	CAPTURE_SORT_NOT_UNDERSTOOD, /* RoCE that no decoder of ours understands: event.parse says why */
	CAPTURE_SORT_IWARP,          /* RDMA over TCP: named, and not decoded */
	CAPTURE_SORT_ICMP,           /* an ICMP error about a RoCE packet */
	CAPTURE_SORT_FRAGMENT,       /* a later fragment of an IP packet */
	CAPTURE_SORT_OTHER,          /* no RDMA */
};

/* What the tracker noticed. */
enum capture_flag {
	CAPTURE_SENT_AGAIN = 1 << 0,   /* its sender had sent it before */
	CAPTURE_DUPLICATE = 1 << 1,    /* its receiver had got it before */
	CAPTURE_OUT_OF_ORDER = 1 << 2, /* packets before it are missing: `missing` of them, from `expected_psn` on */
	CAPTURE_LATE = 1 << 3,         /* it fills a gap, and nobody asked for it: the network changed the order */
	CAPTURE_AFTER_NAK = 1 << 4,    /* why it is sent again: a NAK, ... */
	CAPTURE_AFTER_RNR =
		1 << 5, /* ... an RNR NAK: `rnr_ns` is what that asked for, `waited_ns` what was waited ... */
	CAPTURE_AFTER_SILENCE = 1 << 6, /* ... or no acknowledgement came for `waited_ns` */
	CAPTURE_NAK = 1 << 7,
	CAPTURE_RNR = 1 << 8,        /* a NAK that asks to wait */
	CAPTURE_BAD_ICRC = 1 << 9,   /* damaged on its way */
	CAPTURE_REJECT = 1 << 10,    /* CM: a REJ, or a SIDR_REP that refuses */
	CAPTURE_CUT = 1 << 11,       /* the capture has only its beginning */
	CAPTURE_CONGESTED = 1 << 12, /* a CNP, or marked on its way */
	CAPTURE_MALFORMED = 1 << 13, /* CAPTURE_SORT_NOT_UNDERSTOOD */
	CAPTURE_PROBE = 1 << 14,     /* an old PSN and no data: it only wants an acknowledgement */
};
/* What `roci dump --errors` shows. */
#define CAPTURE_ERRORS                                                                                                 \
	(CAPTURE_SENT_AGAIN | CAPTURE_DUPLICATE | CAPTURE_OUT_OF_ORDER | CAPTURE_LATE | CAPTURE_NAK | CAPTURE_RNR |    \
	 CAPTURE_BAD_ICRC | CAPTURE_REJECT | CAPTURE_CONGESTED | CAPTURE_MALFORMED)

/* The message of which a packet is a part. Numbers are 0 where they are not known (yet). */
struct capture_message {
	uint64_t id; /* counts the messages of the capture, from 1; 0: not known. Request and response have the same */
	uint64_t bytes;      /* of the whole message. SEND: known with its last packet */
	uint32_t packet;     /* this is packet 1, 2, ... */
	uint32_t packets;    /* ... of so many */
	enum roci_kind kind; /* what the requester asked for */
};

struct capture_event {
	const struct capture_record *record;
	const struct capture_frame *frame;
	enum capture_sort sort;
	enum roci_parse_result parse;
	enum capture_icrc icrc;
	struct roci_packet packet;    /* SORT_ROCE, SORT_CM. The payload may be cut: see capture_payload() */
	const struct roci_cm_msg *cm; /* SORT_CM; NULL otherwise */

	bool src_qpn_known;
	uint32_t src_qpn; /* of the sender: from DETH, from CM, or from what answers what */

	/* Who talks: conversations are numbered from 1. Its end 0 is the one that was heard first. 0: none. */
	uint32_t conversation;
	unsigned end;    /* 0 or 1: the sender of this packet */
	uint32_t merged; /* not 0: the conversation of this number turned out to be the same one, from here on */

	unsigned flags; /* enum capture_flag */
	struct capture_message message;
	uint32_t expected_psn, missing; /* OUT_OF_ORDER */
	uint64_t waited_ns, rnr_ns;     /* AFTER_*, RNR */
	uint64_t round_trip_ns; /* of an acknowledgement: since the packet that it is about was sent; 0: not known */
	uint32_t acknowledged;  /* of an acknowledgement: requests that it is the first to acknowledge */

	/* An inbound packet whose departure is in the same capture: number and time of that record. 0: none */
	uint64_t sent_number, sent_ns;
};

/* The bytes of the payload that are in the capture. */
static inline uint32_t capture_payload(const struct capture_event *e)
{
	uint32_t there = (uint32_t)(e->packet.payload - e->frame->bytes);

	there = e->frame->len > there ? e->frame->len - there : 0;
	return there < e->packet.payload_len ? there : e->packet.payload_len;
}

/* Writes what the packet means, in one line without a line break: "WRITE 1 MiB, packet 3 of 256, sent again after a
 * NAK". Always terminated. */
#define CAPTURE_MEANING_CHARS 320
const char *capture_meaning(const struct capture_event *e, char text[CAPTURE_MEANING_CHARS]);

#endif
