/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Lesson 2: RDMA WRITE and RDMA READ, the one-sided operations.
 *
 *	02-write-read         the server: offers memory
 *	02-write-read HOST    the client: writes into that memory, and reads it back
 *
 * To reach memory of another process one needs its address and its rkey. The server tells both in an ordinary SEND.
 *After that it does nothing: no completion and no event tells it that its memory changes. So the client says when it is
 *done.
 */
#include "endpoint.h"

#include <endian.h>
#include <stdio.h>
#include <string.h>

enum { REGION_BYTES = 4096 };

/* What travels in messages. Two machines may store numbers in different orders, so we send them in network byte order.
 */
struct offer {
	uint64_t address;
	uint32_t rkey;
	uint32_t bytes;
};

struct done {
	char text[16];
};

static void serve(struct endpoint *ep, const struct arguments *a)
{
	static char region[REGION_BYTES];
	static struct offer offer;
	static struct done done;
	/* The access rights say what the peer may do. rdma_reg_write() would be short for all of this. */
	struct ibv_mr *mr = made(ibv_reg_mr(ep->id->pd, region, sizeof(region),
					    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ),
				 "ibv_reg_mr");
	struct ibv_mr *offer_mr = made(rdma_reg_msgs(ep->id, &offer, sizeof(offer)), "rdma_reg_msgs");
	struct ibv_mr *done_mr = made(rdma_reg_msgs(ep->id, &done, sizeof(done)), "rdma_reg_msgs");

	check(rdma_post_recv(ep->id, NULL, &done, sizeof(done), done_mr), "rdma_post_recv");
	endpoint_connect(ep);
	offer = (struct offer){
		.address = htobe64((uintptr_t)region), .rkey = htobe32(mr->rkey), .bytes = htobe32(sizeof(region))};
	check(rdma_post_send(ep->id, NULL, &offer, sizeof(offer), offer_mr, 0), "rdma_post_send");
	endpoint_sent(ep, "the send of the offer");
	printf("offered: %zu bytes at address %p, rkey 0x%x\n", sizeof(region), (void *)region, mr->rkey);
	die_if_asked(a);

	/* We sleep now. The client's WRITE changes our memory all the same. */
	endpoint_receive(ep, "the client's \"done\"");
	done.text[sizeof(done.text) - 1] = 0;
	region[REGION_BYTES - 1] = 0;
	printf("received: \"%s\"\n", done.text);
	printf("my memory: \"%s\"\n", region);
	check(rdma_dereg_mr(done_mr), "rdma_dereg_mr");
	check(rdma_dereg_mr(offer_mr), "rdma_dereg_mr");
	check(ibv_dereg_mr(mr), "ibv_dereg_mr");
}

static void use(struct endpoint *ep, const struct arguments *a)
{
	static struct offer offer;
	static char written[] = "written by the client's device", read[sizeof(written)];
	static struct done done = {"done"};
	struct ibv_mr *offer_mr = made(rdma_reg_msgs(ep->id, &offer, sizeof(offer)), "rdma_reg_msgs");
	/* Local memory of a READ needs the right LOCAL_WRITE: our device places the data there. rdma_reg_msgs() gives
	 * it. */
	struct ibv_mr *written_mr = made(rdma_reg_msgs(ep->id, written, sizeof(written)), "rdma_reg_msgs");
	struct ibv_mr *read_mr = made(rdma_reg_msgs(ep->id, read, sizeof(read)), "rdma_reg_msgs");
	struct ibv_mr *done_mr = made(rdma_reg_msgs(ep->id, &done, sizeof(done)), "rdma_reg_msgs");
	uint64_t address;
	uint32_t rkey;

	check(rdma_post_recv(ep->id, NULL, &offer, sizeof(offer), offer_mr), "rdma_post_recv");
	endpoint_connect(ep);
	if (endpoint_receive(ep, "the server's offer").byte_len != sizeof(offer))
		die("the server's offer has the wrong length");
	address = be64toh(offer.address);
	rkey = be32toh(offer.rkey);
	if (be32toh(offer.bytes) < sizeof(written))
		die("the server offers too little memory");
	printf("the server offers %u bytes at address 0x%lx, rkey 0x%x\n", be32toh(offer.bytes), (unsigned long)address,
	       rkey);
	die_if_asked(a);

	check(rdma_post_write(ep->id, NULL, written, sizeof(written), written_mr, 0, address, rkey), "rdma_post_write");
	endpoint_sent(ep, "the RDMA WRITE");
	printf("wrote: \"%s\"\n", written);

	check(rdma_post_read(ep->id, NULL, read, sizeof(read), read_mr, 0, address, rkey), "rdma_post_read");
	endpoint_sent(ep, "the RDMA READ");
	printf("read back: \"%s\"\n", read);
	if (memcmp(written, read, sizeof(read)) != 0)
		die("what was read is not what was written");

	check(rdma_post_send(ep->id, NULL, &done, sizeof(done), done_mr, 0), "rdma_post_send");
	endpoint_sent_last(ep, "the send of \"done\"");
	check(rdma_dereg_mr(done_mr), "rdma_dereg_mr");
	check(rdma_dereg_mr(read_mr), "rdma_dereg_mr");
	check(rdma_dereg_mr(written_mr), "rdma_dereg_mr");
	check(rdma_dereg_mr(offer_mr), "rdma_dereg_mr");
}

int main(int argc, char **argv)
{
	struct arguments a = arguments_read("pk", argc, argv);
	struct endpoint ep = endpoint_open(&a, 4);

	if (a.host)
		use(&ep, &a);
	else
		serve(&ep, &a);
	endpoint_close(&ep);
	printf("done\n");
	return 0;
}
