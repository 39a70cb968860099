/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The conversations of a capture, found by the addresses and QPNs of a packet. A packet of RC or UC names the QP that
 * it goes to, but not the one that it comes from; that is learned from connection management, or from an answer whose
 * PSN fits the requests of one conversation only.
 */
#ifndef CAPTURE_CONVERSATION_H
#define CAPTURE_CONVERSATION_H

#include "capture/psn_set.h"
#include "capture/tracker.h"

#define CAPTURE_SENT_RING    512
#define CAPTURE_TWIN_RING    512
#define CAPTURE_MESSAGE_RING 64

/* Where a capture saw a packet. One that does not tell the direction has one view. */
enum capture_view { CAPTURE_LEAVING, CAPTURE_ARRIVING, CAPTURE_VIEWS };

struct capture_sent {
	uint64_t time_ns;
	uint32_t psn;
	bool used, again;
};

/* A packet that left, to recognize it when it arrives. */
struct capture_twin {
	uint64_t number, time_ns; /* number 0: empty */
	uint32_t icrc, psn;
	bool again;
};

/* A request, of one or more packets. */
struct capture_tracked {
	uint64_t id;             /* 0: empty */
	uint64_t bytes;          /* 0: not known */
	uint32_t first, packets; /* PSN; 0: not known how many */
	uint32_t mtu;            /* payload of its First packet; 0: none was seen */
	enum roci_kind kind;
	bool acknowledged[CAPTURE_VIEWS];
};

/* The last NAK that this end got for its requests. */
struct capture_nak {
	bool any, rnr;
	bool followed; /* the packet that it names was sent again */
	uint32_t psn;
	uint64_t time_ns, rnr_ns;
};

/* What one end sends. */
struct capture_half {
	struct capture_psn_set requests[CAPTURE_VIEWS], responses[CAPTURE_VIEWS];
	struct capture_sent sent[CAPTURE_SENT_RING]; /* requests, by PSN */
	struct capture_twin twins[CAPTURE_TWIN_RING];
	struct capture_tracked messages[CAPTURE_MESSAGE_RING];
	unsigned message_count; /* ever: the newest is at (message_count - 1) % CAPTURE_MESSAGE_RING */
	struct capture_nak nak;
	struct capture_end counts[CAPTURE_VIEWS];
	uint32_t first_psn; /* of its requests */
	bool seen[CAPTURE_VIEWS];
};

struct capture_talk {
	struct capture_conversation about; /* its counts are filled from the halves when somebody asks */
	struct capture_half half[2];
	uint32_t mtu; /* bytes; 0: not known */
	bool used;
	bool heard;        /* a packet of it was seen; it may be known before, from connection management or a record */
	bool tentative;    /* a record told of it, and its ends may still change places */
	uint32_t chain[2]; /* next in the bucket of the packets of end 0, 1 */
	uint32_t newer, older;
};

struct capture_talks;

struct capture_talks *capture_talks_create(void);
void capture_talks_destroy(struct capture_talks *talks);

/* A packet's addresses and QPNs. */
struct capture_key {
	const uint8_t *src, *dst;
	uint32_t dest_qpn;
	uint32_t src_qpn; /* of datagrams, whose header has it */
	enum roci_transport transport;
};

/* The conversation of a packet, and which end sent it; NULL: none is known. */
struct capture_talk *capture_talk_find(struct capture_talks *talks, const struct capture_key *key, unsigned *end);

/* A new conversation; end 0 is the packet's sender. Where there is no room, `given_up` is called with the one that is
 * forgotten. NULL: no memory. */
struct capture_talk *capture_talk_add(struct capture_talks *talks, const struct capture_key *key, uint64_t now_ns,
				      capture_conversation_fn *given_up, void *context);

/* An answer with `psn` came from key->src. Finds the one conversation whose requests it answers, and learns its missing
 * QPN from the packet. NULL: none, or several. *merged is the number of a conversation that turned out to be the same,
 * or 0. */
struct capture_talk *capture_talk_pair(struct capture_talks *talks, const struct capture_key *key, uint32_t psn,
				       unsigned *end, uint32_t *merged);

/* Connection management or a record says which two QPs talk: the packet's destination, and `src_qpn` at its source; and
 * their path MTU (bytes; 0: not known). `tentative`: it does not say which of the two asks; that is settled later. */
void capture_talk_connect(struct capture_talks *talks, const struct capture_key *key, uint32_t src_qpn, uint32_t mtu,
			  bool tentative, uint64_t now_ns, capture_conversation_fn *given_up, void *context);

/* `end` asks, or is heard first: it becomes end 0, unless that was settled before. No packet was taken yet. */
void capture_talk_settle(struct capture_talks *talks, struct capture_talk *talk, unsigned *end);

/* It was heard: it is the last one to be given up. */
void capture_talk_touch(struct capture_talks *talks, struct capture_talk *talk, uint64_t now_ns);

/* Those that were heard, by number. */
void capture_talks_each(struct capture_talks *talks, capture_conversation_fn *fn, void *context);
void capture_talks_totals(const struct capture_talks *talks, struct capture_totals *totals);

#endif
