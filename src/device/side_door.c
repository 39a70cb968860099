/* SPDX-License-Identifier: BSD-2-Clause */
#include "device/side_door.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "device/abstract_name.h"
#include "device/port_holder.h"
#include "device/sys.h"
#include "wire/gid.h"

#define MAGIC         0x524f4345u /* this layout of struct door_header, in this host's byte order */
#define WAKE_UP       0x6b6e6f63u /* a message of these four bytes only wakes */
#define MESSAGES      8
#define RECIPIENTS    32
#define CONTROL_BYTES CMSG_SPACE(sizeof(struct ucred)) /* no room for descriptors that somebody may send */

_Static_assert(ROCI_SIDE_DOOR_PACKETS == ROCI_LINK_RECV_BATCH / MESSAGES, "each message has room");

struct door_header {
	uint32_t magic;
	uint32_t len;     /* bytes that follow */
	uint32_t segment; /* bytes of each packet in them but the last */
	uint16_t src_port;
	uint8_t traffic_class, hop_limit;
	uint8_t src[16], dst[16];
	uint32_t delayed; /* 0 or 1 */
};

/* A process that was sent to. What it does not read takes room of the socket that sent it, so each has its own. */
struct recipient {
	uint32_t who; /* slot, or port space and port: those are larger */
	int fd;
};

struct roci_side_door {
	int fd;       /* the registry's; nothing is sent from it */
	int spare_fd; /* for the next recipient: nothing that it sent is unread; -1: could not be opened */
	unsigned recipient_count;
	struct recipient recipients[RECIPIENTS]; /* the one that was sent to last is first */
	struct door_header out;
	struct mmsghdr msgs[MESSAGES];
	struct iovec iov[MESSAGES][2];
	struct door_header in[MESSAGES];
	struct roci_arrival arrivals[MESSAGES];
	_Alignas(8) uint8_t control[MESSAGES][CONTROL_BYTES];
	uint8_t bytes[MESSAGES][ROCI_SIDE_DOOR_BYTES];
};

static int open_spare(void)
{
	return roci_sys_socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
}

int roci_side_door_open(const struct roci_registry *reg, struct roci_side_door **out)
{
	/* mmap: the buffers cost nothing until something arrives. */
	struct roci_side_door *door =
		mmap(NULL, sizeof(*door), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int err;

	if (door == MAP_FAILED)
		return -ENOMEM;
	door->fd = reg->door_fd;
	door->spare_fd = open_spare();
	if (door->spare_fd < 0) {
		err = -errno;
		munmap(door, sizeof(*door));
		return err;
	}
	for (unsigned i = 0; i < MESSAGES; i++) {
		door->iov[i][0] = (struct iovec){&door->in[i], sizeof(door->in[i])};
		door->iov[i][1] = (struct iovec){door->bytes[i], ROCI_SIDE_DOOR_BYTES};
		door->msgs[i].msg_hdr =
			(struct msghdr){.msg_iov = door->iov[i], .msg_iovlen = 2, .msg_control = door->control[i]};
	}
	*out = door;
	return 0;
}

void roci_side_door_shut(struct roci_side_door *door)
{
	roci_sys_shutdown(door->fd, SHUT_RD);
}

void roci_side_door_close_in_child(struct roci_side_door *door)
{
	for (unsigned i = 0; i < door->recipient_count; i++)
		roci_sys_close(door->recipients[i].fd);
	if (door->spare_fd >= 0)
		roci_sys_close(door->spare_fd);
}

void roci_side_door_close(struct roci_side_door *door)
{
	roci_side_door_close_in_child(door);
	munmap(door, sizeof(*door));
}

int roci_side_door_fd(const struct roci_side_door *door)
{
	return door->fd;
}

static int send_to(struct roci_side_door *door, int fd, struct roci_abstract_name *name,
		   const struct roci_arrival *from, uint32_t segment, struct iovec *iov, unsigned iov_count)
{
	struct msghdr msg = {
		.msg_name = &name->addr, .msg_namelen = name->len, .msg_iov = iov, .msg_iovlen = iov_count};
	size_t len = 0;

	for (unsigned i = 1; i < iov_count; i++)
		len += iov[i].iov_len;
	if (len > ROCI_SIDE_DOOR_BYTES)
		return -EMSGSIZE;
	door->out = (struct door_header){
		.magic = MAGIC,
		.len = (uint32_t)len,
		.segment = segment,
		.src_port = from->flow.src_port,
		.traffic_class = from->traffic_class,
		.hop_limit = from->hop_limit,
		.delayed = from->delayed,
	};
	memcpy(door->out.src, from->flow.src, 16);
	memcpy(door->out.dst, from->flow.dst, 16);
	iov[0] = (struct iovec){&door->out, sizeof(door->out)};
	if (roci_sys_sendmsg(fd, &msg, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0)
		return 0;
	/* EPIPE: it is shut. */
	return errno == ECONNREFUSED || errno == EPIPE ? -ESRCH : -errno;
}

static void put_first(struct roci_side_door *door, unsigned i, struct recipient s)
{
	memmove(door->recipients + 1, door->recipients, i * sizeof(s));
	door->recipients[0] = s;
}

/* The spare socket has sent to `who`: it stays theirs, in the place of the one that was not sent to for longest. */
static void keep_spare(struct roci_side_door *door, uint32_t who)
{
	if (door->recipient_count == RECIPIENTS)
		roci_sys_close(door->recipients[--door->recipient_count].fd);
	put_first(door, door->recipient_count++, (struct recipient){who, door->spare_fd});
	door->spare_fd = open_spare();
}

/* Where the process has all the descriptors that it may have, recipients share what there is. */
static void want_spare(struct roci_side_door *door)
{
	if (door->spare_fd < 0)
		door->spare_fd = open_spare();
	if (door->spare_fd < 0 && door->recipient_count)
		door->spare_fd = door->recipients[--door->recipient_count].fd;
}

/* -1: none has been kept. */
static int recipient_fd(struct roci_side_door *door, uint32_t who)
{
	for (unsigned i = 0; i < door->recipient_count; i++) {
		if (door->recipients[i].who != who)
			continue;
		put_first(door, i, door->recipients[i]);
		return door->recipients[0].fd;
	}
	return -1;
}

static int send_to_recipient(struct roci_side_door *door, uint32_t who, struct roci_abstract_name *name,
			     const struct roci_arrival *from, uint32_t segment, struct iovec *iov, unsigned iov_count)
{
	int fd = recipient_fd(door, who), err;

	if (fd >= 0)
		return send_to(door, fd, name, from, segment, iov, iov_count);
	want_spare(door);
	err = send_to(door, door->spare_fd, name, from, segment, iov, iov_count);
	if (!err)
		keep_spare(door, who);
	return err;
}

int roci_side_door_send(struct roci_side_door *door, unsigned slot, const struct roci_arrival *from, uint32_t segment,
			struct iovec *iov, unsigned iov_count)
{
	struct roci_abstract_name name = roci_abstract_name_door(slot);

	return send_to_recipient(door, slot, &name, from, segment, iov, iov_count);
}

int roci_side_door_offer(struct roci_side_door *door, unsigned ps, uint16_t port, const struct roci_arrival *from,
			 uint32_t segment, struct iovec *iov, unsigned iov_count)
{
	struct roci_abstract_name name = roci_abstract_name_port(ps, port);

	return send_to_recipient(door, (uint32_t)ps << 16 | port, &name, from, segment, iov, iov_count);
}

/* Where the queue is full, it wakes from that. */
void roci_side_door_wake(struct roci_side_door *door, unsigned slot)
{
	struct roci_abstract_name name = roci_abstract_name_door(slot);
	uint32_t word = WAKE_UP;
	struct iovec iov = {&word, sizeof(word)};
	struct msghdr msg = {.msg_name = &name.addr, .msg_namelen = name.len, .msg_iov = &iov, .msg_iovlen = 1};

	roci_sys_sendmsg(door->fd, &msg, MSG_DONTWAIT | MSG_NOSIGNAL);
}

bool roci_side_door_alive(unsigned slot)
{
	struct roci_abstract_name name = roci_abstract_name_door(slot);
	int asker = -1;
	bool alive = slot && slot < ROCI_SLOTS && roci_abstract_name_taken(&asker, &name);

	roci_abstract_name_close(&asker);
	return alive;
}

static bool header_ok(const struct door_header *in, size_t received)
{
	return received >= sizeof(*in) && in->magic == MAGIC && in->len == received - sizeof(*in) &&
	       in->len >= ROCI_MIN_PACKET_BYTES && in->segment >= ROCI_MIN_PACKET_BYTES &&
	       in->len <= (uint64_t)ROCI_SIDE_DOOR_PACKETS * in->segment &&
	       roci_gid_is_ipv4(in->src) == roci_gid_is_ipv4(in->dst);
}

/* roci_unmapped_user(): of a user that this user namespace has no number for. ROCI_NO_USER: the kernel did not say. */
static uint32_t sender_of(struct msghdr *msg)
{
	struct ucred who = {.uid = ROCI_NO_USER};

	for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c))
		if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_CREDENTIALS)
			memcpy(&who, CMSG_DATA(c), sizeof(who));
	return who.uid;
}

static unsigned split(struct roci_side_door *door, unsigned i, struct roci_datagram *out, unsigned room)
{
	const struct door_header *in = &door->in[i];
	struct roci_arrival *from = &door->arrivals[i];
	unsigned n = 0;

	*from = (struct roci_arrival){
		.offered = from->offered,
		.flow = {.src_port = in->src_port, .dst_port = ROCI_UDP_PORT},
		.traffic_class = in->traffic_class,
		.hop_limit = in->hop_limit,
		.forwarded = true,
		.delayed = in->delayed,
		.uid = sender_of(&door->msgs[i].msg_hdr),
	};
	memcpy(from->flow.src, in->src, 16);
	memcpy(from->flow.dst, in->dst, 16);
	for (uint32_t at = 0; at < in->len && n < room; at += in->segment, n++) {
		uint32_t left = in->len - at;

		out[n] = (struct roci_datagram){
			.bytes = door->bytes[i] + at,
			.len = left < in->segment ? left : in->segment,
			.from = from,
		};
	}
	return n;
}

unsigned roci_side_door_recv(struct roci_side_door *door, int fd, struct roci_datagram *out, uint64_t *malformed)
{
	unsigned n = 0;
	int got;

	for (unsigned i = 0; i < MESSAGES; i++)
		door->msgs[i].msg_hdr.msg_controllen = CONTROL_BYTES;
	got = roci_sys_recvmmsg(fd, door->msgs, MESSAGES, MSG_DONTWAIT);
	for (int i = 0; i < got; i++) {
		door->arrivals[i].offered = fd != door->fd;
		if (door->msgs[i].msg_len == sizeof(uint32_t) && door->in[i].magic == WAKE_UP)
			continue;
		if ((door->msgs[i].msg_hdr.msg_flags & MSG_TRUNC) || !header_ok(&door->in[i], door->msgs[i].msg_len))
			++*malformed;
		else
			n += split(door, (unsigned)i, out + n, ROCI_LINK_RECV_BATCH - n);
	}
	return n;
}
