/* SPDX-License-Identifier: BSD-2-Clause */
/* Connects by a TCP socket: bare verbs without rdma_cm. The program finds the device, exchanges the addresses of the
 * QPs, and takes its QP through the states. */
#include <errno.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tour/clock.h"
#include "tour/dial.h"
#include "tour/stop.h"

#define TIMEOUT_NS UINT64_C(5000000000)

/* Waits until the socket is ready. 0; -ETIMEDOUT; -EINTR: tour_stop(). */
static int wait_for(int fd, short events, uint64_t deadline_ns)
{
	for (;;) {
		struct pollfd fds[] = {{.fd = fd, .events = events}, {.fd = tour_stop_fd(), .events = POLLIN}};
		uint64_t now = tour_now_ns();
		if (tour_stopped())
			return -EINTR;
		if (now >= deadline_ns)
			return -ETIMEDOUT;
		poll(fds, 2, (int)((deadline_ns - now) / 1000000u + 1));
		if (fds[0].revents)
			return 0;
	}
}

static int connect_to(struct dial *d, const struct addrinfo *a, uint64_t deadline_ns)
{
	int err = 0;
	socklen_t len = sizeof(err);

	d->fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (d->fd < 0)
		return -errno;
	getnameinfo(a->ai_addr, a->ai_addrlen, d->address, sizeof(d->address), NULL, 0, NI_NUMERICHOST);
	if (!connect(d->fd, a->ai_addr, a->ai_addrlen))
		return 0;
	if (errno != EINPROGRESS)
		return -errno;
	err = wait_for(d->fd, POLLOUT, deadline_ns);
	if (err)
		return err;
	return getsockopt(d->fd, SOL_SOCKET, SO_ERROR, &err, &len) ? -errno : -err;
}

int dial_tcp(struct dial *d, const struct dial_target *target, struct failure *f)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *list;
	char port[8];
	int err, one = 1;

	snprintf(port, sizeof(port), "%u", tour_tcp_port(target->port));
	err = getaddrinfo(target->host, port, &hints, &list);
	if (err)
		return fail(f, -ENOENT, "%s: %s", target->host, gai_strerror(err));
	for (const struct addrinfo *a = list; a; a = a->ai_next) {
		if (d->fd >= 0)
			close(d->fd);
		err = connect_to(d, a, tour_now_ns() + TIMEOUT_NS);
		if (!err || err == -EINTR)
			break;
	}
	freeaddrinfo(list);
	if (err)
		return fail(f, err, "%s, TCP port %u: %s%s", d->address, tour_tcp_port(target->port), strerror(-err),
			    err == -EINTR ? "" : "; is `roci serve` running there?");
	setsockopt(d->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	return 0;
}

static int exchange(struct dial *d, const struct hello_request *request, struct failure *f)
{
	uint8_t bytes[HELLO_REQUEST_BYTES], answer[HELLO_OFFER_BYTES];
	uint64_t deadline_ns = tour_now_ns() + TIMEOUT_NS;
	size_t got = 0;
	int err;

	hello_put_request(bytes, request);
	if (send(d->fd, bytes, sizeof(bytes), MSG_NOSIGNAL) != (ssize_t)sizeof(bytes))
		return fail_call(f, "send", errno);
	while (got < sizeof(answer)) {
		ssize_t n = read(d->fd, answer + got, sizeof(answer) - got);
		if (!n)
			return fail(f, -EPROTO, "%s closed the connection without an offer: is that `roci serve`?",
				    d->address);
		if (n > 0) {
			got += (size_t)n;
			continue;
		}
		err = errno == EAGAIN || errno == EINTR ? wait_for(d->fd, POLLIN, deadline_ns) : -errno;
		if (err)
			return fail(f, err, "%s sent no offer: %s; is that `roci serve`?", d->address, strerror(-err));
	}
	err = hello_get_offer(answer, sizeof(answer), &d->offer);
	if (err)
		return fail(f, err, "%s is no `roci serve` of this version", d->address);
	return dial_check_offer(d, f);
}

/* Tells the far end where this QP is, and learns where that one is. */
static int connect_qp(struct dial *d, struct endpoint *e, struct hello_request *request, struct failure *f)
{
	struct endpoint_peer peer = {0};
	uint32_t psn = 0;
	int err;

	if (getrandom(&psn, sizeof(psn), 0) != (ssize_t)sizeof(psn))
		return fail_call(f, "getrandom", errno);
	request->qpn = e->qp->qp_num;
	request->psn = psn & 0xffffff;
	request->lid = d->port.lid;
	request->mtu = (uint8_t)d->port.mtu;
	memcpy(request->gid, d->port.gid.raw, sizeof(request->gid));
	err = exchange(d, request, f);
	if (err)
		return err;
	if (!d->offer.mtu || !d->offer.qpn)
		return fail(f, -EPROTO, "%s made an offer without a QP", d->address);
	memcpy(peer.gid.raw, d->offer.gid, sizeof(peer.gid.raw));
	peer.lid = d->offer.lid;
	peer.qpn = d->offer.qpn;
	peer.psn = d->offer.psn;
	peer.qkey = e->own_qkey = d->offer.qkey;
	peer.mtu = (enum ibv_mtu)d->offer.mtu < d->port.mtu ? (enum ibv_mtu)d->offer.mtu : d->port.mtu;
	return endpoint_connect(e, &d->port, &peer, request->psn, f);
}

int dial_socket(struct dial *d, const struct dial_target *target, struct endpoint *e, const struct endpoint_wish *wish,
		struct hello_request *request, struct failure *f)
{
	struct sockaddr_storage own = {0};
	socklen_t len = sizeof(own);
	int err;

	*d = (struct dial){.fd = -1};
	*e = (struct endpoint){0};
	err = dial_tcp(d, target, f);
	if (err)
		return err;
	if (getsockname(d->fd, (struct sockaddr *)&own, &len))
		return fail_call(f, "getsockname", errno);
	err = device_open(target->device, (struct sockaddr *)&own, &d->port, f);
	if (err)
		return err;
	d->device = d->port.verbs->device->name;
	request->caps = d->caps = device_caps(d->port.verbs);
	if (device_is_iwarp(d->port.verbs))
		return fail(f, -EOPNOTSUPP, "%s %s", d->device,
			    tour_refuse(TOUR_SEND, TOUR_RC, TOUR_SOCKET, d->caps, TOUR_CAPS_ALL).reason);
	err = endpoint_create(e, d->port.verbs, NULL, wish, f);
	return err ? err : connect_qp(d, e, request, f);
}
