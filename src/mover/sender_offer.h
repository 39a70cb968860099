/* SPDX-License-Identifier: BSD-2-Clause */
/* The sender's entries: offered in batches, answered by the receiver, sent, and settled. */
#ifndef ROCI_MOVER_SENDER_OFFER_H
#define ROCI_MOVER_SENDER_OFFER_H

#include "mover/entry.h"
#include "mover/mover.h"

struct cursor_in;
struct sender;

enum chunk_present {
	CHUNK_ABSENT,
	CHUNK_TOLD,   /* the receiver has one with this digest */
	CHUNK_UNTOLD, /* it has one of a file with the same size and time, and does not tell the digest */
};

/* An entry that has been offered and has not finished. */
struct send_entry {
	bool wanted;
	bool sent;     /* its last segment is in a descriptor, */
	uint64_t seq;  /* of this number */
	bool settled;  /* the outcome is known, counted and reported */
	bool refused;  /* ... and was bad: no more of it needs to be sent */
	bool given_up; /* by this side: a refusal may be on its way that the receiver has made before it knew */
	/* Digests of the chunks that the receiver has, by index; NULL: it has none. `present` says which it has. */
	struct mover_digest *have;
	uint8_t *present; /* enum chunk_present */
};

struct offer {
	/* Entry numbers: those below `finished` are over; those below `answered` have a verdict; those below `offered`
	 * have been offered. */
	uint32_t finished, answered, offered;
	unsigned under_way;         /* OFFER messages without a VERDICT */
	struct send_entry *entries; /* entry n is in place n % places */
	uint32_t places;            /* as many as were proposed to be under way */
	enum mover_status status;   /* of the last entry that failed */
};

/* 0 or -ENOMEM. */
int offer_init(struct sender *x);
void offer_destroy(struct sender *x);

/* Together with the terms: offers the first entries. If fewer may be under way than that, the receiver takes the first
 * ones, and offer_limit() makes the others be offered again. */
void offer_first(struct sender *x);
void offer_limit(struct sender *x);

/* Offers what there is room for. Returns whether it sent anything. */
bool offer_pump(struct sender *x);

/* Messages of the receiver. They fail the session if they are wrong. */
void offer_verdict(struct sender *x, struct cursor_in *payload);
void offer_have(struct sender *x, struct cursor_in *payload);
void offer_ack(struct sender *x, struct cursor_in *payload);

/* An entry that is not finished. */
struct send_entry *offer_entry(struct sender *x, uint32_t number);

/* This side gives the entry up, because of an error of its own. */
void offer_give_up(struct sender *x, uint32_t number, enum mover_status status, const char *why);
/* The last segment of an entry goes out with the descriptor that is being made. */
void offer_sent(struct sender *x, uint32_t number);

#endif
