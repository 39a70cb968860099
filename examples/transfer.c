/* SPDX-License-Identifier: BSD-2-Clause */
#include "transfer.h"

#include <endian.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_BYTES (UINT64_C(1) << 30) /* all of the file lies in memory; what a peer may ask for needs a limit */

/* FNV-1a: finds accidents. It does not stop an attacker. */
static uint64_t checksum(const char *data, uint64_t bytes)
{
	uint64_t sum = UINT64_C(0xcbf29ce484222325);

	for (uint64_t i = 0; i < bytes; i++)
		sum = (sum ^ (uint8_t)data[i]) * UINT64_C(0x100000001b3);
	return sum;
}

static void load(struct transfer *t, const char *path)
{
	FILE *file = fopen(path, "rb");
	long end;

	check(file ? 0 : -1, path);
	check(fseek(file, 0, SEEK_END), path);
	end = ftell(file);
	if (end < 0 || (uint64_t)end > MOST_BYTES)
		die("%s: not a file of up to %lu bytes", path, (unsigned long)MOST_BYTES);
	check(fseek(file, 0, SEEK_SET), path);
	t->bytes = (uint64_t)end;
	t->data = made(malloc(t->bytes + 1), "malloc");
	if (fread(t->data, 1, t->bytes, file) != t->bytes)
		die("%s: cannot read it", path);
	fclose(file);
	t->sum = checksum(t->data, t->bytes);
}

static void store(const struct transfer *t, const char *path)
{
	FILE *file = fopen(path, "wb");

	check(file ? 0 : -1, path);
	if (fwrite(t->data, 1, t->bytes, file) != t->bytes || fclose(file))
		die("%s: cannot write it", path);
	printf("wrote %s: %lu bytes\n", path, (unsigned long)t->bytes);
}

void transfer_open(struct transfer *t, unsigned lesson, const struct arguments *a)
{
	*t = (struct transfer){.lesson = lesson};
	if (a->host)
		load(t, a->file);
	t->ep = endpoint_open(a, CHUNKS_AT_A_TIME + 1);
	t->in_mr = made(rdma_reg_msgs(t->ep.id, &t->in, sizeof(t->in)), "rdma_reg_msgs");
	t->out_mr = made(rdma_reg_msgs(t->ep.id, &t->out, sizeof(t->out)), "rdma_reg_msgs");
	transfer_expect_message(t);
	endpoint_connect(&t->ep);
	die_if_asked(a);
}

void transfer_expect_message(struct transfer *t)
{
	check(rdma_post_recv(t->ep.id, NULL, &t->in, sizeof(t->in), t->in_mr), "rdma_post_recv");
}

static const char *name_of(enum message_type type)
{
	static const char *const names[] = {[HELLO] = "HELLO", [MR] = "MR", [FIN] = "FIN", [ACK] = "ACK"};

	return names[type];
}

void transfer_tell(struct transfer *t, enum message_type type)
{
	t->out = (struct message){.type = htobe32(type)};
	if (type == HELLO) {
		t->out.bytes = htobe64(t->bytes);
		t->out.sum = htobe64(t->sum);
		t->out.lesson = htobe64(t->lesson);
	} else if (type == MR) {
		t->out.address = htobe64((uintptr_t)t->data);
		t->out.rkey = htobe32(t->data_mr->rkey);
	}
	check(rdma_post_send(t->ep.id, NULL, &t->out, sizeof(t->out), t->out_mr, 0), "rdma_post_send");
	if (type == ACK) /* the last message, or the peer acts on it: we shall hear of it */
		endpoint_sent_last(&t->ep, name_of(type));
	else
		endpoint_sent(&t->ep, name_of(type));
	printf("told:  %s\n", name_of(type));
}

void transfer_hear(struct transfer *t, enum message_type type)
{
	struct ibv_wc wc = endpoint_receive(&t->ep, name_of(type));

	if (wc.byte_len != sizeof(t->in) || be32toh(t->in.type) != (uint32_t)type)
		die("expected %s, and heard something else: does the other side run the same lesson?", name_of(type));
	printf("heard: %s\n", name_of(type));
	if (type == HELLO) {
		if (be64toh(t->in.lesson) != t->lesson)
			die("the other side runs lesson %lu, and this is lesson %u",
			    (unsigned long)be64toh(t->in.lesson), t->lesson);
		t->bytes = be64toh(t->in.bytes);
		t->sum = be64toh(t->in.sum);
		if (t->bytes > MOST_BYTES)
			die("the other side's file is too long: %lu bytes", (unsigned long)t->bytes);
	} else if (type == MR) {
		t->peer_address = be64toh(t->in.address);
		t->peer_rkey = be32toh(t->in.rkey);
	}
}

void transfer_register(struct transfer *t, int access)
{
	if (!t->data)
		t->data = made(malloc(t->bytes + 1), "malloc");
	t->data_mr =
		made(ibv_reg_mr(t->ep.id->pd, t->data, t->bytes + 1, IBV_ACCESS_LOCAL_WRITE | access), "ibv_reg_mr");
}

uint64_t transfer_chunks(const struct transfer *t)
{
	return (t->bytes + CHUNK_BYTES - 1) / CHUNK_BYTES;
}

uint32_t transfer_chunk_bytes(const struct transfer *t, uint64_t chunk)
{
	uint64_t rest = t->bytes - chunk * CHUNK_BYTES;

	return rest < CHUNK_BYTES ? (uint32_t)rest : CHUNK_BYTES;
}

char *transfer_chunk(const struct transfer *t, uint64_t chunk)
{
	return t->data + chunk * CHUNK_BYTES;
}

void transfer_verify(const struct transfer *t)
{
	if (checksum(t->data, t->bytes) != t->sum)
		die("the bytes are not those that were sent");
}

void transfer_close(struct transfer *t, const struct arguments *a)
{
	if (!a->host)
		store(t, a->file);
	check(ibv_dereg_mr(t->data_mr), "ibv_dereg_mr");
	check(rdma_dereg_mr(t->in_mr), "rdma_dereg_mr");
	check(rdma_dereg_mr(t->out_mr), "rdma_dereg_mr");
	endpoint_close(&t->ep);
	free(t->data);
	printf("done\n");
}
