/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <linux/sock_diag.h>
#include <netinet/udp.h>
#include <string.h>

#include "device/sys.h"
#include "device/udp_socket.h"

#ifndef UDP_GRO
#define UDP_GRO 104
#endif

#define LONG_MESSAGES 8  /* read at a time: half a megabyte stays in a second level cache until it is consumed */
#define FAIR_EVERY    16 /* one read of so many goes to another socket than the busy one */

void roci_udp_prepare_recv(struct roci_udp *udp)
{
	struct udp_recv_area *in = &udp->in;

	for (unsigned i = 0; i < UDP_RECV_MESSAGES; i++) {
		in->iov[i] = (struct iovec){in->bytes[i], UDP_RECV_BYTES};
		in->msgs[i].msg_hdr = (struct msghdr){
			.msg_name = &in->names[i],
			.msg_namelen = sizeof(in->names[i]),
			.msg_iov = &in->iov[i],
			.msg_iovlen = 1,
			.msg_control = in->control[i],
			.msg_controllen = UDP_CONTROL_BYTES,
		};
	}
	udp->recv_messages = LONG_MESSAGES;
}

static int int_of(const struct cmsghdr *c)
{
	int value;

	memcpy(&value, CMSG_DATA(c), sizeof(value));
	return value;
}

/* Returns the length of the packets that the kernel joined in this message; 0: it is a single one. */
static unsigned read_control(struct msghdr *msg, struct roci_arrival *from)
{
	unsigned segment = 0;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c)) {
		if (c->cmsg_level == IPPROTO_UDP && c->cmsg_type == UDP_GRO)
			segment = (unsigned)int_of(c);
		else if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_TOS)
			from->traffic_class = *(const uint8_t *)CMSG_DATA(c);
		else if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_TTL)
			from->hop_limit = (uint8_t)int_of(c);
		else if (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_TCLASS)
			from->traffic_class = (uint8_t)int_of(c);
		else if (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_HOPLIMIT)
			from->hop_limit = (uint8_t)int_of(c);
	}
	return segment;
}

static void read_source(const union udp_name *name, struct roci_flow *flow)
{
	roci_udp_name_gid(name, flow->src);
	flow->src_port = roci_udp_name_port(name);
}

/* An acknowledgement that the sender put behind a longer packet, so that both came in one message (seal.c), is the
 * older one: programs expect what it completes before what the other one brings. */
static void ack_first(struct roci_datagram *two)
{
	struct roci_datagram ack = two[1];

	if (ack.len < ROCI_MIN_PACKET_BYTES || ack.len >= two[0].len || ack.bytes[0] != ROCI_OP_ACKNOWLEDGE)
		return;
	two[1] = two[0];
	two[0] = ack;
}

/* Splits message `i`, which arrived at `s`, into packets. Returns how many. */
static unsigned split(struct roci_udp *udp, const struct udp_socket *s, unsigned i, struct roci_datagram *out,
		      unsigned room)
{
	struct mmsghdr *m = &udp->in.msgs[i];
	struct roci_arrival *from = &udp->in.arrivals[i];
	unsigned segment, n = 0;

	if (m->msg_hdr.msg_flags & MSG_TRUNC) {
		udp->config.stats->receive_truncated++;
		return 0;
	}
	from->forwarded = false;
	from->traffic_class = from->hop_limit = 0;
	segment = read_control(&m->msg_hdr, from);
	if (segment < ROCI_MIN_PACKET_BYTES) /* none, or too short for a packet */
		segment = UDP_RECV_BYTES;
	read_source(&udp->in.names[i], &from->flow);
	memcpy(from->flow.dst, s->gid, 16);
	from->flow.dst_port = ROCI_UDP_PORT;
	for (unsigned at = 0; at < m->msg_len && n < room; at += segment, n++) {
		unsigned left = m->msg_len - at;

		out[n] = (struct roci_datagram){
			.bytes = udp->in.bytes[i] + at,
			.len = left < segment ? left : segment,
			.from = from,
		};
	}
	if (n == 2)
		ack_first(out);
	return n;
}

/* Whether messages that wait take more than half of the socket's buffer. A system call. */
static bool filling_up(const struct udp_socket *s)
{
	uint32_t info[SK_MEMINFO_VARS] = {0};
	socklen_t len = sizeof(info);

	if (roci_sys_getsockopt(s->fd, SOL_SOCKET, SO_MEMINFO, info, &len))
		return false;
	return info[SK_MEMINFO_RMEM_ALLOC] > info[SK_MEMINFO_RCVBUF] / 2;
}

/* A socket that had nothing is asked for one message, where they are short. Where they come one at a time, the kernel
 * would look for a second in vain. Long ones are a stream. */
static unsigned read_socket(struct roci_udp *udp, const struct udp_socket *s, struct roci_datagram *out)
{
	struct udp_recv_area *in = &udp->in;
	unsigned ask = udp->quiet && udp->recv_messages > LONG_MESSAGES ? 1 : udp->recv_messages, n = 0, bytes = 0;
	bool congested;
	int got;

	for (unsigned i = 0; i < udp->recv_dirty; i++) {
		in->msgs[i].msg_hdr.msg_namelen = sizeof(in->names[i]);
		in->msgs[i].msg_hdr.msg_controllen = UDP_CONTROL_BYTES;
	}
	got = roci_sys_recvmmsg(s->fd, in->msgs, ask, MSG_DONTWAIT);
	if (got < 0 && errno != EAGAIN && errno != EINTR && roci_udp_take_errors(udp, s))
		got = roci_sys_recvmmsg(s->fd, in->msgs, ask, MSG_DONTWAIT);
	udp->recv_dirty = got > 0 ? (unsigned)got : 0;
	if (got <= 0)
		return 0;
	congested = ask > 1 && udp->recv_dirty == ask && filling_up(s);
	for (unsigned i = 0; i < udp->recv_dirty; i++) {
		in->arrivals[i].congested = congested;
		n += split(udp, s, i, out + n, ROCI_LINK_RECV_BATCH - n);
		bytes += in->msgs[i].msg_len;
	}
	udp->config.stats->received_messages += udp->recv_dirty;
	udp->config.stats->received_packets += n;
	udp->recv_messages = bytes / udp->recv_dirty > UDP_RECV_BYTES / 4 ? LONG_MESSAGES : UDP_RECV_MESSAGES;
	return n;
}

/* Mostly one socket is busy. The others are read in turn: now and then, and when the busy one has nothing. */
unsigned roci_udp_recv(struct roci_link *link, struct roci_datagram *out)
{
	struct roci_udp *udp = (struct roci_udp *)link;
	unsigned n = 0;

	if (!udp->open_count)
		return 0;
	if (udp->open_count == 1 || ++udp->reads % FAIR_EVERY) {
		n = read_socket(udp, &udp->sockets[udp->open[udp->busy]], out);
		udp->quiet = !n;
	}
	if (n || udp->open_count == 1)
		return n;
	udp->turn = (udp->turn + 1) % udp->open_count;
	n = read_socket(udp, &udp->sockets[udp->open[udp->turn]], out);
	if (n) {
		udp->busy = udp->turn;
		udp->quiet = false;
	}
	return n;
}
