/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Whether there is a route to a peer, what it carries, and which address it leaves from. Each local address has a
 * socket for the first two questions, and each address family has one for the third. They are connected to one peer
 * after the other: nothing is sent, and it costs a seventh to a third of a socket for each question. Answers are kept
 * for a millisecond.
 */
#include <errno.h>
#include <netinet/in.h>

#include "device/sys.h"
#include "device/udp_socket.h"
#include "wire/gid.h"
#include "wire/ip.h"

/* UDP payload that one IP packet takes to where the socket is connected; 0: not known. */
static uint32_t max_datagram(int fd, bool ipv4)
{
	int mtu, overhead = (ipv4 ? ROCI_IPV4_BYTES : ROCI_IPV6_BYTES) + ROCI_UDP_BYTES;
	socklen_t len = sizeof(mtu);

	if (roci_sys_getsockopt(fd, ipv4 ? IPPROTO_IP : IPPROTO_IPV6, ipv4 ? IP_MTU : IPV6_MTU, &mtu, &len))
		return 0;
	return mtu > overhead ? (uint32_t)(mtu - overhead) : 0;
}

static int open_question(const struct roci_gid_entry *from)
{
	int fd = roci_sys_socket(roci_gid_is_ipv4(from->gid) ? AF_INET : AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0), err;

	if (fd < 0)
		return -errno;
	err = roci_udp_receive_nothing(fd);
	if (!err)
		err = roci_udp_bind(fd, from, 0);
	if (!err)
		return fd;
	roci_sys_close(fd);
	return err;
}

/* A socket without an address. */
static int open_source_question(int family)
{
	int fd = roci_sys_socket(family, SOCK_DGRAM | SOCK_CLOEXEC, 0), err;

	if (fd < 0)
		return -errno;
	err = roci_udp_receive_nothing(fd);
	if (!err)
		return fd;
	roci_sys_close(fd);
	return err;
}

/* The kernel gives the socket an address and a port while it is connected, and takes them back. */
static int ask_source(struct roci_udp *udp, const struct sockaddr *dst, socklen_t dst_len, struct sockaddr_storage *src)
{
	static const struct sockaddr nobody = {.sa_family = AF_UNSPEC};
	int *fd = &udp->source_questions[dst->sa_family == AF_INET6], err = 0;
	socklen_t len = sizeof(*src);

	if (*fd < 0)
		*fd = open_source_question(dst->sa_family);
	if (*fd < 0)
		return *fd;
	if (roci_sys_connect(*fd, dst, dst_len) || roci_sys_getsockname(*fd, (struct sockaddr *)src, &len))
		err = -errno;
	if (!roci_sys_connect(*fd, &nobody, sizeof(nobody)))
		return err;
	roci_sys_close(*fd);
	*fd = -1;
	return err;
}

/* Of GID `index`, and of no GID: for the source. */
static struct roci_kept question_of(unsigned index, const void *to, socklen_t len)
{
	struct roci_kept q = {.bytes = {(uint8_t)index}};

	memcpy(q.bytes + 1, to, len);
	return q;
}

_Static_assert(sizeof(union udp_name) < ROCI_KEPT_BYTES && ROCI_MAX_GIDS < UINT8_MAX, "a question has room");

int roci_udp_route_source(struct roci_udp *udp, uint64_t now, const struct sockaddr *dst, socklen_t dst_len,
			  struct sockaddr_storage *src)
{
	struct roci_kept question = question_of(ROCI_MAX_GIDS, dst, dst_len), answer = {0};
	const struct roci_kept *known = roci_kept_find(&udp->kept, now, &question);
	int err;

	if (known) {
		memcpy(src, known, sizeof(union udp_name));
		return 0;
	}
	err = ask_source(udp, dst, dst_len, src);
	if (err)
		return err;
	memcpy(&answer, src, sizeof(union udp_name));
	roci_kept_add(&udp->kept, now, &question, &answer);
	return 0;
}

void roci_udp_close_source_questions(struct roci_udp *udp)
{
	for (unsigned i = 0; i < 2; i++) {
		if (udp->source_questions[i] >= 0)
			roci_sys_close(udp->source_questions[i]);
		udp->source_questions[i] = -1;
	}
}

static int unreachable(int err)
{
	return err == -EHOSTUNREACH || err == -EACCES || err == -EINVAL ? -ENETUNREACH : err;
}

int roci_udp_route(struct roci_udp *udp, uint64_t now, unsigned index, const uint8_t dgid[16], uint32_t *carries)
{
	struct roci_kept question = question_of(index, dgid, 16);
	const struct roci_kept *known = roci_kept_find(&udp->kept, now, &question);

	if (!known)
		return roci_udp_route_afresh(udp, now, index, dgid, carries);
	memcpy(carries, known, sizeof(*carries));
	return 0;
}

int roci_udp_route_afresh(struct roci_udp *udp, uint64_t now, unsigned index, const uint8_t dgid[16], uint32_t *carries)
{
	struct roci_kept question = question_of(index, dgid, 16), answer = {0};
	const struct roci_gid_entry *from = &udp->config.gids->entries[index];
	union udp_name there;
	socklen_t len = roci_udp_name(&there, dgid, from->ifindex);
	int fd = udp->questions[index];

	if (fd < 0)
		fd = open_question(from);
	if (fd < 0)
		return unreachable(fd);
	udp->questions[index] = fd;
	if (roci_sys_connect(fd, &there.any, len))
		return unreachable(-errno);
	*carries = max_datagram(fd, roci_gid_is_ipv4(dgid));
	memcpy(&answer, carries, sizeof(*carries));
	roci_kept_add(&udp->kept, now, &question, &answer);
	return 0;
}

void roci_udp_close_question(struct roci_udp *udp, unsigned index)
{
	if (udp->questions[index] >= 0)
		roci_sys_close(udp->questions[index]);
	udp->questions[index] = -1;
}
