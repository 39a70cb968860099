/* SPDX-License-Identifier: BSD-2-Clause */
#include "rsocket/datagram_header.h"

#include <netinet/in.h>
#include <string.h>

#define UDP_TAG       0x55555555u
#define UDP_BYTES_V4  16
#define UDP_BYTES_V6  28
#define UD_BYTES_V4   8
#define UD_BYTES_V6   24
#define FLOW_INFO_LEN 4

void rs_ud_header_build(struct rs_ud_header *h, const struct sockaddr *local, uint16_t port)
{
	*h = (struct rs_ud_header){.port = htons(port)};
	if (local->sa_family == AF_INET) {
		h->version = 4;
		h->length = UD_BYTES_V4;
		memcpy(h->addr, &((const struct sockaddr_in *)local)->sin_addr, 4);
	} else {
		h->version = 6;
		h->length = UD_BYTES_V6;
		memcpy(h->addr + FLOW_INFO_LEN, &((const struct sockaddr_in6 *)local)->sin6_addr, 16);
	}
}

bool rs_ud_header_parse(const uint8_t *bytes, size_t len, struct sockaddr_storage *from, size_t *header_len)
{
	struct rs_ud_header h = {0};
	if (len < UD_BYTES_V4)
		return false;
	memcpy(&h, bytes, len < sizeof(h) ? len : sizeof(h));
	memset(from, 0, sizeof(*from));
	if (h.version == 4 && h.length == UD_BYTES_V4) {
		struct sockaddr_in *sin = (struct sockaddr_in *)from;
		sin->sin_family = AF_INET;
		sin->sin_port = h.port;
		memcpy(&sin->sin_addr, h.addr, 4);
	} else if (h.version == 6 && h.length == UD_BYTES_V6 && len >= UD_BYTES_V6) {
		struct sockaddr_in6 *sin6 = (struct sockaddr_in6 *)from;
		sin6->sin6_family = AF_INET6;
		sin6->sin6_port = h.port;
		memcpy(&sin6->sin6_addr, h.addr + FLOW_INFO_LEN, 16);
	} else {
		return false;
	}
	*header_len = h.length;
	return true;
}

void rs_udp_header_build(struct rs_udp_header *h, const struct rs_ud_header *own, enum rs_udp_op op, uint32_t qpn)
{
	bool v4 = own->version == 4;
	*h = (struct rs_udp_header){.tag = htonl(UDP_TAG),
				    .version = own->version,
				    .op = (uint8_t)op,
				    .length = v4 ? UDP_BYTES_V4 : UDP_BYTES_V6,
				    .qpn = htonl(qpn << 8)};
	memcpy(h->addr, v4 ? own->addr : own->addr + FLOW_INFO_LEN, v4 ? 4 : 16);
}

bool rs_udp_header_parse(const uint8_t *bytes, size_t len, struct rs_udp_header *h)
{
	if (len < UDP_BYTES_V4)
		return false;
	*h = (struct rs_udp_header){0};
	memcpy(h, bytes, len < sizeof(*h) ? len : sizeof(*h));
	return ntohl(h->tag) == UDP_TAG && h->length <= len &&
	       ((h->version == 4 && h->length == UDP_BYTES_V4) || (h->version == 6 && h->length == UDP_BYTES_V6));
}

uint32_t rs_udp_header_qpn(const struct rs_udp_header *h)
{
	return ntohl(h->qpn) >> 8;
}
