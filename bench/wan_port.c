/* SPDX-License-Identifier: BSD-2-Clause */
#include "wan_port.h"

#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>

#define FRAME_BYTES  69632 /* the longest message, and what the kernel puts in front of it */
#define BLOCK_FRAMES 15
#define BLOCK_BYTES  (1 << 20)
#define BLOCKS       40
#define FRAMES       (BLOCKS * BLOCK_FRAMES)
#define MESSAGE      65000 /* bytes that go together at most */
#define BATCH        32    /* messages that go in one call */
#define PARTS        64    /* of a message: its header, and payloads */

#define IP_LEN    2 /* where fields are in the headers */
#define IP_ID     4
#define IP_PROTO  9
#define IP_SUM    10
#define IP_SOURCE 12
#define TCP_SEQ   4
#define TCP_OFF   12
#define TCP_FLAGS 13
#define TCP_SUM   16
#define UDP_LEN   4
#define UDP_SUM   6
#define TCP_FIN   0x01
#define TCP_PSH   0x08
#define TCP_CWR   0x80

static void need(bool good, const char *what)
{
	if (good)
		return;
	perror(what);
	exit(2);
}

static uint16_t get16(const uint8_t *p)
{
	return (uint16_t)(p[0] << 8 | p[1]);
}

static void put16(uint8_t *p, unsigned value)
{
	p[0] = (uint8_t)(value >> 8);
	p[1] = (uint8_t)value;
}

static uint32_t get32(const uint8_t *p)
{
	return (uint32_t)get16(p) << 16 | get16(p + 2);
}

static void put32(uint8_t *p, uint32_t value)
{
	put16(p, value >> 16);
	put16(p + 2, value & 0xffff);
}

/* Of the 16-bit words of an even number of bytes, in ones' complement. */
static unsigned sum16(const uint8_t *p, unsigned len, unsigned sum)
{
	for (unsigned i = 0; i < len; i += 2)
		sum += get16(p + i);
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return sum;
}

void wan_port_open(struct wan_port *port, const char *device)
{
	static const int version = TPACKET_V2, on = 1;
	struct tpacket_req req = {BLOCK_BYTES, BLOCKS, FRAME_BYTES, FRAMES};
	struct sockaddr_ll name = {.sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL)};

	*port = (struct wan_port){.fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0)};
	need(port->fd >= 0, "socket");
	need(!setsockopt(port->fd, SOL_PACKET, PACKET_VERSION, &version, sizeof(version)), "PACKET_VERSION");
	need(!setsockopt(port->fd, SOL_PACKET, PACKET_VNET_HDR, &on, sizeof(on)), "PACKET_VNET_HDR");
	need(!setsockopt(port->fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, &on, sizeof(on)), "PACKET_IGNORE_OUTGOING");
	need(!setsockopt(port->fd, SOL_PACKET, PACKET_QDISC_BYPASS, &on, sizeof(on)), "PACKET_QDISC_BYPASS");
	need(!setsockopt(port->fd, SOL_PACKET, PACKET_RX_RING, &req, sizeof(req)), "PACKET_RX_RING");
	port->ring = mmap(NULL, (size_t)BLOCKS * BLOCK_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE,
			  port->fd, 0);
	need(port->ring != MAP_FAILED, "mmap");
	name.sll_ifindex = (int)if_nametoindex(device);
	need(name.sll_ifindex > 0, device);
	need(!bind(port->fd, (struct sockaddr *)&name, sizeof(name)), "bind");
}

static struct tpacket2_hdr *next_frame(const struct wan_port *port)
{
	size_t at =
		(size_t)(port->next / BLOCK_FRAMES) * BLOCK_BYTES + (size_t)(port->next % BLOCK_FRAMES) * FRAME_BYTES;

	return (void *)(port->ring + at);
}

bool wan_port_take(struct wan_port *port, struct wan_frame *frame)
{
	struct tpacket2_hdr *h = next_frame(port);

	if (!(__atomic_load_n(&h->tp_status, __ATOMIC_ACQUIRE) & TP_STATUS_USER))
		return false;
	frame->came_at = h->tp_sec * UINT64_C(1000000000) + h->tp_nsec;
	frame->bytes = (uint8_t *)h + h->tp_mac;
	frame->vnet = (const void *)(frame->bytes - sizeof(*frame->vnet));
	frame->len = h->tp_snaplen;
	frame->message = port->messages++;
	return true;
}

void wan_port_taken(struct wan_port *port)
{
	__atomic_store_n(&next_frame(port)->tp_status, TP_STATUS_KERNEL, __ATOMIC_RELEASE);
	port->next = (port->next + 1) % FRAMES;
}

/* Bytes of the headers up to the payload. 0: no packet of TCP or UDP over IPv4. */
static unsigned header_of(const uint8_t *bytes)
{
	const uint8_t *ip = bytes + ETH_HLEN;
	unsigned ip_len = (ip[0] & 15u) * 4;

	if (get16(bytes + ETH_HLEN - 2) != ETH_P_IP || (ip[IP_PROTO] != IPPROTO_TCP && ip[IP_PROTO] != IPPROTO_UDP))
		return 0;
	return ETH_HLEN + ip_len + (ip[IP_PROTO] == IPPROTO_TCP ? (ip[ip_len + TCP_OFF] >> 4) * 4u : 8);
}

/* One packet as it came. */
static bool copy_whole(const struct wan_frame *frame, unsigned place, struct wan_packet *packet)
{
	if (place || frame->len > WAN_PACKET_BYTES)
		return false;
	packet->len = (uint16_t)frame->len;
	packet->header = 0;
	memcpy(packet->bytes, frame->bytes, frame->len);
	return true;
}

bool wan_frame_cut(const struct wan_frame *frame, unsigned place, struct wan_packet *packet)
{
	unsigned size = frame->vnet->gso_size, header, from, left, n;
	uint8_t *ip = packet->bytes + ETH_HLEN, *above;

	packet->message = frame->message;
	packet->place = (uint16_t)place;
	packet->vnet = *frame->vnet;
	if (frame->vnet->gso_type == VIRTIO_NET_HDR_GSO_NONE)
		return copy_whole(frame, place, packet);
	header = header_of(frame->bytes);
	from = header + place * size;
	if (!header || from >= frame->len || header + size > WAN_PACKET_BYTES)
		return false;
	left = frame->len - from;
	n = left < size ? left : size;
	packet->len = (uint16_t)(header + n);
	packet->header = (uint16_t)header;
	memcpy(packet->bytes, frame->bytes, header);
	memcpy(packet->bytes + header, frame->bytes + from, n);
	put16(ip + IP_ID, (get16(ip + IP_ID) + place) & 0xffff);
	if (ip[IP_PROTO] != IPPROTO_TCP)
		return true;
	above = ip + (ip[0] & 15u) * 4;
	put32(above + TCP_SEQ, get32(above + TCP_SEQ) + place * size);
	above[TCP_FLAGS] &= (uint8_t) ~((left > size ? TCP_FIN | TCP_PSH : 0) | (place ? TCP_CWR : 0));
	return true;
}

/* The lengths and sums of a message that has so many bytes of payload in all. What the sum of TCP or UDP covers is
 * left to the receiving kernel, which trusts this host, as it trusts its adapter. */
static void finish(struct wan_packet *packet, unsigned payload)
{
	uint8_t *ip = packet->bytes + ETH_HLEN, *above = ip + (ip[0] & 15u) * 4;
	unsigned ip_len = packet->header - ETH_HLEN + payload, len = ip_len - (unsigned)(above - ip);

	put16(ip + IP_LEN, ip_len);
	put16(ip + IP_SUM, 0);
	put16(ip + IP_SUM, ~sum16(ip, (unsigned)(above - ip), 0) & 0xffff);
	if (ip[IP_PROTO] == IPPROTO_UDP)
		put16(above + UDP_LEN, len);
	put16(above + (ip[IP_PROTO] == IPPROTO_TCP ? TCP_SUM : UDP_SUM), sum16(ip + IP_SOURCE, 8, ip[IP_PROTO] + len));
}

struct batch {
	struct mmsghdr msgs[BATCH];
	struct iovec parts[BATCH][PARTS];
	struct virtio_net_hdr vnets[BATCH];
	unsigned count;
};

static void send_all(struct wan_port *port, struct batch *b)
{
	for (unsigned sent = 0; sent < b->count;) {
		int n = sendmmsg(port->fd, b->msgs + sent, b->count - sent, 0);

		if (n <= 0)
			port->failed++;
		sent += n > 0 ? (unsigned)n : 1;
	}
	b->count = 0;
}

static bool follows(const struct wan_packet *before, const struct wan_packet *p)
{
	return before->header && p->header && before->message == p->message && before->place + 1 == p->place;
}

/* Adds the message that begins at `head`, and returns where the next one does. */
static uint32_t join(struct batch *b, struct wan_packet *ring, uint32_t slots, uint32_t head, uint32_t end)
{
	struct wan_packet *first = &ring[head & (slots - 1)], *last = first;
	struct virtio_net_hdr *vnet = &b->vnets[b->count];
	struct iovec *parts = b->parts[b->count];
	unsigned n = 0, bytes = first->len;

	*vnet = first->vnet;
	parts[n++] = (struct iovec){vnet, sizeof(*vnet)};
	parts[n++] = (struct iovec){first->bytes, first->len};
	for (head++; head != end && n < PARTS; head++) {
		struct wan_packet *p = &ring[head & (slots - 1)];

		if (!follows(last, p) || bytes + p->len > MESSAGE)
			break;
		parts[n++] = (struct iovec){p->bytes + p->header, p->len - (size_t)p->header};
		bytes += p->len - p->header;
		last = p;
	}
	if (first->header) {
		uint8_t *ip = first->bytes + ETH_HLEN, above = (uint8_t)((ip[0] & 15u) * 4);
		bool tcp = ip[IP_PROTO] == IPPROTO_TCP;

		if (last != first && tcp)
			ip[above + TCP_FLAGS] |= last->bytes[ETH_HLEN + above + TCP_FLAGS] & (TCP_FIN | TCP_PSH);
		finish(first, bytes - first->header);
		*vnet = (struct virtio_net_hdr){
			.flags = VIRTIO_NET_HDR_F_NEEDS_CSUM,
			.gso_type = last == first ? VIRTIO_NET_HDR_GSO_NONE : first->vnet.gso_type,
			.hdr_len = first->header,
			.gso_size = last == first ? 0 : first->vnet.gso_size,
			.csum_start = (uint16_t)(ETH_HLEN + above),
			.csum_offset = tcp ? TCP_SUM : UDP_SUM,
		};
	}
	b->msgs[b->count++] = (struct mmsghdr){.msg_hdr = {.msg_iov = parts, .msg_iovlen = n}};
	return head;
}

void wan_port_deliver(struct wan_port *port, struct wan_packet *ring, uint32_t slots, uint32_t head, uint32_t end)
{
	static struct batch batch;

	while (head != end) {
		head = join(&batch, ring, slots, head, end);
		if (batch.count == BATCH || head == end)
			send_all(port, &batch);
	}
}

unsigned wan_port_overrun(const struct wan_port *port)
{
	struct tpacket_stats stats = {0};
	socklen_t len = sizeof(stats);

	return getsockopt(port->fd, SOL_PACKET, PACKET_STATISTICS, &stats, &len) ? 0 : stats.tp_drops;
}
