/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Lesson 7: a file by SEND.
 *
 *	07-file-send COPY         the receiver: posts receives, and writes COPY
 *	07-file-send FILE HOST    the sender: sends FILE
 *
 *	sender                              receiver
 *	HELLO, size, checksum      ----->
 *	                           <-----   ACK: the first receives are posted
 *	SEND, SEND, ... SEND       ----->   a completion for each; posts the next receive
 *	FIN                        ----->   verifies
 *	                           <-----   ACK
 *
 * The receiver has no address to tell, and says itself where each message goes. For that its program has to work: each
 *SEND needs a receive. If the sender is faster, the receiver's device answers "RNR, receiver not ready", and the
 *sender's device waits and tries again, as rnr_retry says.
 */
#include "transfer.h"

#include <stdio.h>

static void send_file(struct transfer *t)
{
	uint64_t chunks = transfer_chunks(t), posted = 0, completed = 0;

	transfer_register(t, 0);
	transfer_tell(t, HELLO);
	transfer_hear(t, ACK);
	transfer_expect_message(t); /* for the second ACK */
	while (completed < chunks) {
		if (posted < chunks && posted - completed < CHUNKS_AT_A_TIME) {
			check(rdma_post_send(t->ep.id, NULL, transfer_chunk(t, posted), transfer_chunk_bytes(t, posted),
					     t->data_mr, 0),
			      "rdma_post_send");
			posted++;
		} else {
			endpoint_sent(&t->ep, "a SEND");
			completed++;
		}
	}
	printf("sent %lu chunk%s\n", (unsigned long)chunks, chunks == 1 ? "" : "s");
	transfer_tell(t, FIN);
	transfer_hear(t, ACK);
}

/* Receives are used in the order in which they were posted, so each chunk goes to its own place, and FIN comes last. */
static void post_receive(struct transfer *t, uint64_t chunk)
{
	if (chunk < transfer_chunks(t))
		check(rdma_post_recv(t->ep.id, NULL, transfer_chunk(t, chunk), transfer_chunk_bytes(t, chunk),
				     t->data_mr),
		      "rdma_post_recv");
	else if (chunk == transfer_chunks(t))
		transfer_expect_message(t);
}

static void receive_file(struct transfer *t)
{
	uint64_t chunks;

	transfer_hear(t, HELLO);
	transfer_register(t, 0);
	chunks = transfer_chunks(t);
	for (uint64_t chunk = 0; chunk < CHUNKS_AT_A_TIME; chunk++)
		post_receive(t, chunk);
	transfer_tell(t, ACK);
	for (uint64_t chunk = 0; chunk < chunks; chunk++) {
		if (endpoint_receive(&t->ep, "a chunk").byte_len != transfer_chunk_bytes(t, chunk))
			die("chunk %lu has the wrong length", (unsigned long)chunk);
		post_receive(t, chunk + CHUNKS_AT_A_TIME);
	}
	printf("received %lu chunk%s\n", (unsigned long)chunks, chunks == 1 ? "" : "s");
	transfer_hear(t, FIN);
	transfer_verify(t);
	transfer_tell(t, ACK);
}

int main(int argc, char **argv)
{
	struct arguments a = arguments_read("pkf", argc, argv);
	struct transfer t;

	transfer_open(&t, 7, &a);
	if (a.host)
		send_file(&t);
	else
		receive_file(&t);
	transfer_close(&t, &a);
	return 0;
}
