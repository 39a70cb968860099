/* SPDX-License-Identifier: BSD-2-Clause */
/* What lessons 6, 7 and 8 have in common: a file in memory, and four short messages about it.
 *
 *	HELLO  a file of so many bytes, with this checksum, by the way of this lesson
 *	MR     here is memory: its address and rkey
 *	FIN    all bytes have been moved
 *	ACK    I agree
 *
 * The lessons differ in who moves the bytes, and how. */
#ifndef EXAMPLES_TRANSFER_H
#define EXAMPLES_TRANSFER_H

#include "endpoint.h"

enum message_type { HELLO = 1, MR, FIN, ACK };

/* As it travels: in network byte order. */
struct message {
	uint32_t type;
	uint32_t rkey;    /* MR */
	uint64_t address; /* MR */
	uint64_t bytes;   /* HELLO */
	uint64_t sum;     /* HELLO */
	uint64_t lesson;  /* HELLO */
};

/* The file moves in chunks of this size, so many at a time. */
enum { CHUNK_BYTES = 64 << 10, CHUNKS_AT_A_TIME = 8 };

struct transfer {
	unsigned lesson; /* 6, 7 or 8 */
	struct endpoint ep;
	struct message in, out;
	struct ibv_mr *in_mr, *out_mr;
	char *data; /* the whole file */
	uint64_t bytes, sum;
	struct ibv_mr *data_mr;
	uint64_t peer_address; /* what the peer's MR said */
	uint32_t peer_rkey;
};

/* Connects for this lesson. The side with a HOST is the sender, and reads the file first. Both can take one message
 * then. */
void transfer_open(struct transfer *t, unsigned lesson, const struct arguments *arguments);

/* Posts a receive for one message. To be called before the peer sends it. */
void transfer_expect_message(struct transfer *t);

/* Sends a message, filled from *t, and waits until the peer's device has it. */
void transfer_tell(struct transfer *t, enum message_type type);

/* Waits for a message, which must be of this type, and takes what it says into *t. */
void transfer_hear(struct transfer *t, enum message_type type);

/* Registers the memory of the file; the receiver, which knows the size by now, also gets that memory. `access`: what
 * the peer may do. */
void transfer_register(struct transfer *t, int access);

/* Of how many chunks the file consists; how long one is, and where it lies in memory. */
uint64_t transfer_chunks(const struct transfer *t);
uint32_t transfer_chunk_bytes(const struct transfer *t, uint64_t chunk);
char *transfer_chunk(const struct transfer *t, uint64_t chunk);

/* At the receiver: ends the program if the bytes are not those of the checksum. */
void transfer_verify(const struct transfer *t);

/* Disconnects. The receiver writes its file. */
void transfer_close(struct transfer *t, const struct arguments *arguments);

#endif
