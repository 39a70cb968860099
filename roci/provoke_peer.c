/* SPDX-License-Identifier: BSD-2-Clause */
#include "provoke_peer.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "provoke.h"
#include "wire/bytes.h"
#include "wire/gid.h"
#include "wire/icrc.h"

#define MAD_HEADER_BYTES 24u
#define MAD_TID_AT       8u
#define MAD_ATTRIBUTE_AT 16u
#define GSI_QPN          1u
#define GSI_QKEY         0x80010000u
#define PACKETS_MAX      1000 /* that are read while one is waited for */

int peer_open(void)
{
	struct sockaddr_in name = {
		.sin_family = AF_INET, .sin_port = htons(ROCI_UDP_PORT), .sin_addr.s_addr = htonl(PEER_ADDRESS)};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), discover = IP_PMTUDISC_DO;

	/* With DF set, as every ICRC assumes. */
	if (fd >= 0 && !setsockopt(fd, IPPROTO_IP, IP_MTU_DISCOVER, &discover, sizeof(discover)) &&
	    !bind(fd, (struct sockaddr *)&name, sizeof(name)))
		return fd;
	printf("  UDP port %d of 127.0.0.2 cannot be had: %s\n", ROCI_UDP_PORT, strerror(errno));
	if (fd >= 0)
		close(fd);
	return -1;
}

bool peer_receive(int fd, unsigned kind, struct peer_packet *got)
{
	struct pollfd wait = {.fd = fd, .events = POLLIN};

	for (unsigned i = 0; i < PACKETS_MAX; i++) {
		socklen_t len = sizeof(got->from);
		ssize_t bytes;

		if (poll(&wait, 1, PROVOKE_WAIT_MS) != 1)
			return false;
		bytes = recvfrom(fd, got->bytes, sizeof(got->bytes), 0, (struct sockaddr *)&got->from, &len);
		if (bytes < 0 || roci_packet_parse(&got->packet, got->bytes, (size_t)bytes) ||
		    got->packet.op->kind != kind)
			continue;
		got->from.sin_port = htons(ROCI_UDP_PORT);
		return true;
	}
	return false;
}

bool peer_send(int fd, const struct sockaddr_in *to, const struct roci_packet *pkt)
{
	uint8_t bytes[ROCI_MAX_HEADER_BYTES + MAD_HEADER_BYTES + PEER_CM_BYTES + 8] = {0};
	unsigned head = roci_packet_build(pkt, bytes), padded = pkt->payload_len + roci_pad_bytes(pkt->payload_len);
	size_t len = head + padded + ROCI_ICRC_BYTES;
	struct roci_flow flow = {.src_port = ROCI_UDP_PORT, .dst_port = ROCI_UDP_PORT};
	const uint32_t own = htonl(PEER_ADDRESS);
	uint32_t crc;

	roci_gid_from_ipv4(flow.src, &own);
	roci_gid_from_ipv4(flow.dst, &to->sin_addr);
	if (pkt->payload_len)
		memcpy(bytes + head, pkt->payload, pkt->payload_len);
	crc = roci_icrc_headers(roci_icrc_begin(&flow, 0, len), bytes, head);
	roci_icrc_store(roci_icrc_update(crc, bytes + head, padded), bytes + head + padded);
	return sendto(fd, bytes, len, 0, (const struct sockaddr *)to, sizeof(*to)) == (ssize_t)len;
}

bool peer_receive_mad(int fd, enum peer_message message, struct peer_mad *mad, struct sockaddr_in *from)
{
	struct peer_packet got;

	for (unsigned i = 0; i < PACKETS_MAX; i++) {
		const uint8_t *at;

		if (!peer_receive(fd, ROCI_KIND_SEND, &got))
			return false;
		at = got.packet.payload;
		if (got.packet.payload_len != MAD_HEADER_BYTES + PEER_CM_BYTES ||
		    roci_get_be16(at + MAD_ATTRIBUTE_AT) != message)
			continue;
		mad->message = message;
		mad->tid = roci_get_be64(at + MAD_TID_AT);
		memcpy(mad->body, at + MAD_HEADER_BYTES, PEER_CM_BYTES);
		*from = got.from;
		return true;
	}
	return false;
}

/* In a UD SEND Only to QP 1. MAD header: IBTA 13.4.3; base version 1, class 7, class version 2, method Send. */
bool peer_send_mad(int fd, const struct sockaddr_in *to, const struct peer_mad *mad)
{
	uint8_t bytes[MAD_HEADER_BYTES + PEER_CM_BYTES] = {1, 7, 2, 3};
	const struct roci_packet pkt = {
		.opcode = ROCI_TRANSPORT_UD | ROCI_OP_SEND_ONLY,
		.pkey = ROCI_PKEY_DEFAULT,
		.dest_qpn = GSI_QPN,
		.qkey = GSI_QKEY,
		.src_qpn = GSI_QPN,
		.payload = bytes,
		.payload_len = sizeof(bytes),
	};

	roci_put_be64(bytes + MAD_TID_AT, mad->tid);
	roci_put_be16(bytes + MAD_ATTRIBUTE_AT, (uint16_t)mad->message);
	memcpy(bytes + MAD_HEADER_BYTES, mad->body, PEER_CM_BYTES);
	return peer_send(fd, to, &pkt);
}
