/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Lesson 8: a file by RDMA READ.
 *
 *	08-file-read COPY         the receiver: fetches the file, and writes COPY
 *	08-file-read FILE HOST    the sender: offers FILE in its memory
 *
 *	sender                              receiver
 *	HELLO, size, checksum      ----->
 *	MR, address, rkey          ----->
 *	(its program sleeps)       <-----   READ, READ, ... READ
 *	                           <-----   FIN: verified, you may have your memory back
 *	ACK                        ----->
 *
 * The receiver decides when and how fast. A READ costs one trip more than a WRITE: the request travels first. How many
 *may be on the way was agreed when the connection was made (initiator_depth and responder_resources in endpoint.c);
 *more of them wait in the queue.
 */
#include "transfer.h"

#include <stdio.h>

static void send_file(struct transfer *t)
{
	transfer_register(t, IBV_ACCESS_REMOTE_READ);
	transfer_tell(t, HELLO);
	transfer_tell(t, MR);
	transfer_hear(t, FIN); /* until then the memory must stay as it is */
	transfer_tell(t, ACK);
}

static void receive_file(struct transfer *t)
{
	uint64_t chunks, posted = 0, completed = 0;

	transfer_hear(t, HELLO);
	transfer_register(t, 0);
	transfer_expect_message(t); /* for MR: the sender may be faster, then its device tries again */
	transfer_hear(t, MR);
	transfer_expect_message(t); /* for the ACK */
	chunks = transfer_chunks(t);
	while (completed < chunks) {
		if (posted < chunks && posted - completed < CHUNKS_AT_A_TIME) {
			check(rdma_post_read(t->ep.id, NULL, transfer_chunk(t, posted), transfer_chunk_bytes(t, posted),
					     t->data_mr, 0, t->peer_address + posted * CHUNK_BYTES, t->peer_rkey),
			      "rdma_post_read");
			posted++;
		} else {
			endpoint_sent(&t->ep, "an RDMA READ");
			completed++;
		}
	}
	printf("read %lu chunk%s\n", (unsigned long)chunks, chunks == 1 ? "" : "s");
	transfer_verify(t);
	transfer_tell(t, FIN);
	transfer_hear(t, ACK);
}

int main(int argc, char **argv)
{
	struct arguments a = arguments_read("pkf", argc, argv);
	struct transfer t;

	transfer_open(&t, 8, &a);
	if (a.host)
		send_file(&t);
	else
		receive_file(&t);
	transfer_close(&t, &a);
	return 0;
}
