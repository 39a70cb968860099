/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Lesson 6: a file by RDMA WRITE.
 *
 *	06-file-write COPY         the receiver: offers memory, and writes COPY
 *	06-file-write FILE HOST    the sender: writes FILE into that memory
 *
 *	sender                              receiver
 *	HELLO, size, checksum      ----->
 *	                           <-----   MR, address, rkey
 *	WRITE, WRITE, ... WRITE    ----->   (its program sleeps)
 *	FIN                        ----->   verifies
 *	                           <-----   ACK
 *
 * The sender keeps several WRITEs on the way. It reuses nothing and needs no receives for them, so nothing slows it
 *down but the network.
 */
#include "transfer.h"

#include <stdio.h>

static void send_file(struct transfer *t)
{
	uint64_t chunks = transfer_chunks(t), posted = 0, completed = 0;

	transfer_register(t, 0); /* nobody reaches into the sender's memory */
	transfer_tell(t, HELLO);
	transfer_hear(t, MR);
	transfer_expect_message(t); /* for the ACK */
	while (completed < chunks) {
		if (posted < chunks && posted - completed < CHUNKS_AT_A_TIME) {
			check(rdma_post_write(t->ep.id, NULL, transfer_chunk(t, posted),
					      transfer_chunk_bytes(t, posted), t->data_mr, 0,
					      t->peer_address + posted * CHUNK_BYTES, t->peer_rkey),
			      "rdma_post_write");
			posted++;
		} else {
			endpoint_sent(&t->ep, "an RDMA WRITE");
			completed++;
		}
	}
	printf("wrote %lu chunk%s\n", (unsigned long)chunks, chunks == 1 ? "" : "s");
	/* A SEND behind WRITEs on the same QP arrives after them: when FIN is there, all data is. */
	transfer_tell(t, FIN);
	transfer_hear(t, ACK);
}

static void receive_file(struct transfer *t)
{
	transfer_hear(t, HELLO);
	transfer_register(t, IBV_ACCESS_REMOTE_WRITE);
	transfer_expect_message(t); /* for FIN; before we tell the sender that it may begin */
	transfer_tell(t, MR);
	transfer_hear(t, FIN);
	transfer_verify(t);
	transfer_tell(t, ACK);
}

int main(int argc, char **argv)
{
	struct arguments a = arguments_read("pkf", argc, argv);
	struct transfer t;

	transfer_open(&t, 6, &a);
	if (a.host)
		send_file(&t);
	else
		receive_file(&t);
	transfer_close(&t, &a);
	return 0;
}
