/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The side door: another process of the host, of any user, sends it messages, led by a script of bytes. They are of any
 * length and content, some with descriptors. What comes out must be packets that lie within their message, and goes
 * through the parser and the ICRC as in receive.c. No descriptor may be taken.
 *
 * With -DROCI_LIBFUZZER and -fsanitize=fuzzer this is a libFuzzer target. Without them it is a program that draws its
 * scripts at random: fuzz_door [iterations [seed]].
 */
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "device/side_door.h"
#include "script.h"
#include "seeded.h"
#include "wire/icrc.h"

#define MAX_MESSAGE 70000 /* more than a door takes */

/* As side_door.c has it. */
struct door_header {
	uint32_t magic, len, segment;
	uint16_t src_port;
	uint8_t traffic_class, hop_limit;
	uint8_t src[16], dst[16];
	uint32_t delayed;
};

static struct roci_registry registry;
static struct roci_side_door *door;
static int far_fd = -1;
static unsigned long packets, malformed; /* in all runs, to see that the fuzzer gets far enough */

/* A message that is mostly as a process of this host sends it. Returns its length. */
static size_t make_message(uint8_t *to)
{
	static const uint32_t lens[] = {0, 1, 16, 28, 100, 1000, 4096, 65536, 65537};
	struct door_header h = {
		.magic = 0x524f4345u, .src[10] = 0xff, .src[11] = 0xff, .dst[10] = 0xff, .dst[11] = 0xff};
	size_t body = one_in(3) ? lens[below(sizeof(lens) / sizeof(lens[0]))] : below(400);

	h.len = (uint32_t)body;
	h.segment = one_in(4) ? (uint32_t)below(UINT32_MAX) : 16 + (uint32_t)below(2000);
	h.src_port = (uint16_t)below(65536);
	h.delayed = one_in(4);
	if (one_in(6))
		script_fill(&h, sizeof(h));
	memcpy(to, &h, sizeof(h));
	memset(to + sizeof(h), 0, body);
	script_fill(to + sizeof(h), body < 24 ? body : 24);
	if (one_in(8))
		return below(sizeof(h) + body);
	return sizeof(h) + body;
}

static void say(void)
{
	static uint8_t bytes[MAX_MESSAGE];
	_Alignas(8) uint8_t control[CMSG_SPACE(sizeof(int))] = {0};
	struct iovec iov = {bytes, 0};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
	struct cmsghdr *c;

	iov.iov_len = make_message(bytes);
	if (one_in(8)) {
		msg.msg_control = control;
		msg.msg_controllen = sizeof(control);
		c = CMSG_FIRSTHDR(&msg);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(c), &far_fd, sizeof(int));
	}
	(void)!sendmsg(far_fd, &msg, MSG_DONTWAIT);
}

static void take(const struct roci_datagram *d)
{
	struct roci_packet pkt;
	uint8_t *exact = malloc(d->len); /* so that a sanitizer sees an overrun */

	CHECK(exact && d->len && d->from->forwarded && d->from->uid == getuid());
	memcpy(exact, d->bytes, d->len);
	if (roci_packet_parse(&pkt, exact, d->len) == ROCI_PARSE_OK)
		roci_icrc_check(&d->from->flow, exact, d->len);
	free(exact);
	packets++;
}

static void listen_to(void)
{
	static struct roci_datagram out[ROCI_LINK_RECV_BATCH];
	uint64_t bad = 0;
	unsigned n = roci_side_door_recv(door, registry.door_fd, out, &bad);

	CHECK(n <= ROCI_LINK_RECV_BATCH);
	malformed += bad;
	for (unsigned i = 0; i < n; i++)
		take(&out[i]);
}

static void open_door(void)
{
	int ends[2], yes = 1;

	if (door)
		return;
	CHECK(!socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, ends));
	CHECK(!setsockopt(ends[0], SOL_SOCKET, SO_PASSCRED, &yes, sizeof(yes)));
	registry.door_fd = ends[0];
	far_fd = ends[1];
	CHECK(!roci_side_door_open(&registry, &door));
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	int before;

	open_door();
	before = free_descriptor();
	script_begin(bytes, len);
	while (!script_ended()) {
		say();
		if (one_in(2))
			listen_to();
	}
	for (unsigned i = 0; i < 4; i++)
		listen_to();
	CHECK(free_descriptor() == before);
	return 0;
}

#ifndef ROCI_LIBFUZZER

int main(int argc, char **argv)
{
	unsigned long runs = seeded_scripts(argc, argv, 2000, 1000);

	printf("%lu packets, %lu malformed messages\n", packets, malformed);
	CHECK(runs < 1000 || (packets && malformed));
	return 0;
}

#endif
