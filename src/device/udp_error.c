/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What ICMP says about packets that left from port 4791: nothing listens there, or no such host. The kernel has found
 * our socket by the addresses and ports that the message quotes, and keeps the rest of the quotation in the socket's
 * error queue (IP_RECVERR, ip(7)). It also fails the socket's next call once, which is how a polling program notices;
 * the device's thread sees EPOLLERR. Packets cost nothing.
 */
#include <errno.h>
#include <string.h>
#include <time.h> /* IWYU pragma: keep: linux/errqueue.h needs it first */

#include <linux/errqueue.h>

#include "device/sys.h"
#include "device/udp_socket.h"

#define TAKE_MAX 16 /* messages that one call takes: a flood must not hold the lock */

/* 0: the message says nothing of use. */
static int meaning(const struct sock_extended_err *e)
{
	if (e->ee_errno != ECONNREFUSED && e->ee_errno != EHOSTUNREACH && e->ee_errno != ENETUNREACH)
		return 0;
	return -(int)e->ee_errno;
}

/* False: not from ICMP, but about a call of ours that failed (EMSGSIZE). */
static bool read_control(struct msghdr *msg, int *err)
{
	struct sock_extended_err e;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c)) {
		if ((c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_RECVERR) ||
		    (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_RECVERR)) {
			memcpy(&e, CMSG_DATA(c), sizeof(e));
			*err = meaning(&e);
			return e.ee_origin == SO_EE_ORIGIN_ICMP || e.ee_origin == SO_EE_ORIGIN_ICMP6;
		}
	}
	return false;
}

/* Writes where the quoted packet went. False: not to our port. */
static bool read_destination(const union udp_name *name, uint8_t dgid[16])
{
	roci_udp_name_gid(name, dgid);
	return roci_udp_name_port(name) == ROCI_UDP_PORT;
}

enum taken { NOTHING, OTHER, ICMP, ICMP_UNREACHABLE };

static enum taken take_one(int fd, struct roci_udp_error *e)
{
	_Alignas(8) uint8_t control[UDP_CONTROL_BYTES];
	struct iovec iov = {e->quoted, sizeof(e->quoted)};
	union udp_name name;
	struct msghdr msg = {.msg_name = &name,
			     .msg_namelen = sizeof(name),
			     .msg_iov = &iov,
			     .msg_iovlen = 1,
			     .msg_control = control,
			     .msg_controllen = sizeof(control)};
	ssize_t len = roci_sys_recvmsg(fd, &msg, MSG_ERRQUEUE | MSG_DONTWAIT);

	if (len < 0)
		return NOTHING;
	e->len = (uint16_t)len;
	if (!read_control(&msg, &e->err))
		return OTHER;
	return e->err && read_destination(&name, e->dgid) ? ICMP_UNREACHABLE : ICMP;
}

void roci_udp_report_errors(int fd, bool ipv4)
{
	int on = 1;

	roci_sys_setsockopt(fd, ipv4 ? IPPROTO_IP : IPPROTO_IPV6, ipv4 ? IP_RECVERR : IPV6_RECVERR, &on, sizeof(on));
}

unsigned roci_udp_take_errors(struct roci_udp *udp, const struct udp_socket *s)
{
	unsigned icmp = 0;

	for (unsigned i = 0; i < TAKE_MAX; i++) {
		struct roci_udp_error e;
		enum taken taken = take_one(s->fd, &e);

		if (taken == NOTHING)
			break;
		if (taken == ICMP_UNREACHABLE && udp->error_count < UDP_ERRORS)
			udp->errors[udp->error_count++] = e;
		icmp += taken >= ICMP;
	}
	udp->config.stats->icmp_errors += icmp;
	return icmp;
}

bool roci_udp_next_error(struct roci_udp *udp, struct roci_udp_error *out)
{
	if (!udp->error_count)
		return false;
	*out = udp->errors[--udp->error_count];
	return true;
}
