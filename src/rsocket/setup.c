/* SPDX-License-Identifier: BSD-2-Clause */
/* The calls that make, connect and end rsockets. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "rsocket/rsocket.h"

#define RESOLVE_TIMEOUT_MS 2000

/* The id, on a channel of its own, which never blocks: waiting is done with poll(). */
static int create_id(struct rs *rs)
{
	rs->channel = rdma_create_event_channel();
	if (!rs->channel)
		return -errno;
	int flags = fcntl(rs->channel->fd, F_GETFL);
	if (flags < 0 || fcntl(rs->channel->fd, F_SETFL, flags | O_NONBLOCK))
		return -errno;
	rs->fd = rs->channel->fd;
	return rdma_create_id(rs->channel, &rs->id, rs, RDMA_PS_TCP) ? -errno : 0;
}

int rsocket(int domain, int type, int protocol)
{
	int kind = type & ~(SOCK_NONBLOCK | SOCK_CLOEXEC), err = 0;
	if (domain != AF_INET && domain != AF_INET6)
		err = -EAFNOSUPPORT;
	else if ((kind != SOCK_STREAM && kind != SOCK_DGRAM) ||
		 (kind == SOCK_STREAM && protocol && protocol != IPPROTO_TCP) ||
		 (kind == SOCK_DGRAM && protocol && protocol != IPPROTO_UDP))
		err = -EPROTONOSUPPORT;
	if (err)
		return rs_result(err);
	struct rs *rs = rs_new(domain, kind);
	if (!rs)
		return rs_result(-ENOMEM);
	rs->nonblock = type & SOCK_NONBLOCK;
	err = kind == SOCK_DGRAM ? rs_datagram_create(rs) : create_id(rs);
	if (!err)
		err = rs_insert(rs);
	if (err) {
		rs_free(rs);
		return rs_result(err);
	}
	return rs->fd;
}

static int set_id_options(struct rs *rs)
{
	int reuse = rs->reuseaddr, only = rs->v6only;
	if (reuse && rdma_set_option(rs->id, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, &reuse, sizeof(reuse)))
		return -errno;
	if (only && rdma_set_option(rs->id, RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, &only, sizeof(only)))
		return -errno;
	return 0;
}

static int bind_stream(struct rs *rs, const struct sockaddr *addr)
{
	if (rs->state != RS_INIT)
		return -EINVAL;
	int err = set_id_options(rs);
	if (!err && rdma_bind_addr(rs->id, (struct sockaddr *)addr))
		err = -errno;
	if (!err)
		rs->state = RS_BOUND;
	return err;
}

int rbind(int socket, const struct sockaddr *addr, socklen_t addrlen)
{
	struct rs *rs = rs_find(socket);
	if (!rs)
		return -1;
	if (rs->datagram)
		return rs_result(rs_datagram_bind(rs, addr, addrlen));
	pthread_mutex_lock(&rs->lock);
	int err = bind_stream(rs, addr);
	pthread_mutex_unlock(&rs->lock);
	return rs_result(err);
}

int rlisten(int socket, int backlog)
{
	struct rs *rs = rs_find(socket);
	if (!rs)
		return -1;
	if (rs->datagram)
		return rs_result(-EOPNOTSUPP);
	pthread_mutex_lock(&rs->lock);
	int err = rs->state == RS_LISTENING ? 0 : rdma_listen(rs->id, backlog) ? -errno : 0;
	if (!err)
		rs->state = RS_LISTENING;
	pthread_mutex_unlock(&rs->lock);
	return rs_result(err);
}

/* ---- accepting ---- */

static void inherit(struct rs *rs, const struct rs *from)
{
	rs->nodelay = from->nodelay;
	rs->keepalive = from->keepalive;
	rs->sq_size = from->sq_size;
	rs->rq_size = from->rq_size;
	rs->inline_size = from->inline_size;
	rs->sbuf_size = from->sbuf_size;
	rs->rbuf_size = from->rbuf_size;
	rs->iomap_size = from->iomap_size;
}

static int accept_request(struct rs *rs, const struct rdma_conn_param *request)
{
	int err = rs_create_qp(rs);
	if (!err)
		err = rs_take_conn_data(rs, request);
	if (err)
		return err;
	struct rs_conn_data data;
	rs_conn_data(rs, &data);
	struct rdma_conn_param param = *request;
	param.private_data = &data;
	param.private_data_len = sizeof(data);
	if (rdma_accept(rs->id, &param))
		return -errno;
	rs->state = RS_CONNECTED;
	rs->readable = rs->writable = true;
	return 0;
}

/* A socket of the request. It moves to a channel, and so to a descriptor, of its own. */
static int take_request(struct rs *listener, struct rdma_cm_event *event, struct rs **out)
{
	struct rs *rs = rs_new(listener->domain, SOCK_STREAM);
	if (!rs) {
		rdma_destroy_id(event->id);
		return -ENOMEM;
	}
	inherit(rs, listener);
	rs->id = event->id;
	rs->id->context = rs;
	int err = 0;
	rs->channel = rdma_create_event_channel();
	if (!rs->channel || fcntl(rs->channel->fd, F_SETFL, O_RDWR | O_NONBLOCK) ||
	    rdma_migrate_id(rs->id, rs->channel))
		err = -errno;
	if (!err) {
		rs->fd = rs->channel->fd;
		err = accept_request(rs, &event->param.conn);
	}
	if (!err)
		err = rs_insert(rs);
	if (err) {
		rdma_reject(rs->id, NULL, 0);
		rs_free(rs);
		return err;
	}
	*out = rs;
	return 0;
}

/* 0 with *out; 0 without: somebody's request came to nothing. */
static int next_request(struct rs *rs, struct rs **out)
{
	struct rdma_cm_event *event;
	if (rdma_get_cm_event(rs->channel, &event))
		return -errno;
	if (event->event == RDMA_CM_EVENT_CONNECT_REQUEST && take_request(rs, event, out))
		*out = NULL;
	rdma_ack_cm_event(event);
	return 0;
}

static socklen_t copy_name(const struct sockaddr *name, struct sockaddr *addr, socklen_t *addrlen)
{
	socklen_t len = name->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
	memcpy(addr, name, len < *addrlen ? len : *addrlen);
	return *addrlen = len;
}

int raccept(int socket, struct sockaddr *addr, socklen_t *addrlen)
{
	struct rs *rs = rs_find(socket), *made = NULL;
	if (!rs)
		return -1;
	if (rs->datagram || rs->state != RS_LISTENING)
		return rs_result(rs->datagram ? -EOPNOTSUPP : -EINVAL);
	while (!made) {
		int err = next_request(rs, &made);
		if (err == -EAGAIN && !rs->nonblock) {
			struct pollfd pfd = {.fd = rs->fd, .events = POLLIN};
			err = poll(&pfd, 1, -1) < 0 ? -errno : 0;
		}
		if (err)
			return rs_result(err);
	}
	if (addr && addrlen)
		copy_name(rdma_get_peer_addr(made->id), addr, addrlen);
	return made->fd;
}

/* ---- connecting ---- */

/* The event of a resolution, which is there as soon as the call returns on this device; on others it is waited for. */
static int expect(struct rs *rs, enum rdma_cm_event_type type)
{
	struct rdma_cm_event *event;
	while (rdma_get_cm_event(rs->channel, &event)) {
		struct pollfd pfd = {.fd = rs->channel->fd, .events = POLLIN};
		if (errno != EAGAIN || poll(&pfd, 1, -1) < 0)
			return -errno;
	}
	int err = event->event == type ? 0 : event->status < 0 ? event->status : -ENETUNREACH;
	rdma_ack_cm_event(event);
	return err;
}

static int start_connect(struct rs *rs, const struct sockaddr *addr)
{
	int err = set_id_options(rs);
	if (err)
		return err;
	if (rdma_resolve_addr(rs->id, NULL, (struct sockaddr *)addr, RESOLVE_TIMEOUT_MS))
		return -errno;
	err = expect(rs, RDMA_CM_EVENT_ADDR_RESOLVED);
	if (err)
		return err;
	if (rdma_resolve_route(rs->id, RESOLVE_TIMEOUT_MS))
		return -errno;
	err = expect(rs, RDMA_CM_EVENT_ROUTE_RESOLVED);
	if (!err)
		err = rs_create_qp(rs);
	if (err)
		return err;
	struct rs_conn_data data;
	rs_conn_data(rs, &data);
	struct rdma_conn_param param = {.private_data = &data,
					.private_data_len = sizeof(data),
					.flow_control = 1,
					.retry_count = 7,
					.rnr_retry_count = 7};
	if (rdma_connect(rs->id, &param))
		return -errno;
	rs->state = RS_CONNECTING;
	return 0;
}

static bool connect_is_decided(const struct rs *rs)
{
	return rs->state != RS_CONNECTING;
}

static int connect_stream(struct rs *rs, const struct sockaddr *addr)
{
	switch (rs->state) {
	case RS_INIT:
	case RS_BOUND: break;
	case RS_CONNECTING: return -EALREADY;
	case RS_CONNECTED: return -EISCONN;
	default: return -EINVAL;
	}
	int err = start_connect(rs, addr);
	if (err) {
		rs->state = RS_ERROR;
		rs->err = -err;
		return err;
	}
	err = rs_wait(rs, rs->nonblock, connect_is_decided);
	if (err)
		return err == -EAGAIN ? -EINPROGRESS : err;
	if (rs->state != RS_ERROR)
		return 0;
	err = -rs->err;
	rs->err = 0;
	return err;
}

int rconnect(int socket, const struct sockaddr *addr, socklen_t addrlen)
{
	struct rs *rs = rs_find(socket);
	if (!rs)
		return -1;
	if (rs->datagram)
		return rs_result(rs_datagram_connect(rs, addr, addrlen));
	pthread_mutex_lock(&rs->lock);
	int err = connect_stream(rs, addr);
	pthread_mutex_unlock(&rs->lock);
	return rs_result(err);
}

/* ---- the end ---- */

int rshutdown(int socket, int how)
{
	struct rs *rs = rs_find(socket);
	if (!rs)
		return -1;
	if (how != SHUT_RD && how != SHUT_WR && how != SHUT_RDWR)
		return rs_result(-EINVAL);
	if (rs->datagram)
		return 0;
	pthread_mutex_lock(&rs->lock);
	int err = rs_shutdown(rs, how);
	pthread_mutex_unlock(&rs->lock);
	return rs_result(err);
}

int rclose(int socket)
{
	struct rs *rs = rs_find(socket);
	if (!rs)
		return -1;
	rs_remove(socket);
	if (rs->datagram) {
		rs_datagram_destroy(rs);
	} else {
		pthread_mutex_lock(&rs->lock);
		if (rs->state == RS_CONNECTED)
			rs_shutdown(rs, SHUT_RDWR);
		if (rs->state == RS_DISCONNECTED || rs->state == RS_ERROR)
			rdma_disconnect(rs->id);
		pthread_mutex_unlock(&rs->lock);
	}
	rs_free(rs);
	return 0;
}

int rgetpeername(int socket, struct sockaddr *addr, socklen_t *addrlen)
{
	struct rs *rs = rs_find(socket);
	if (!rs)
		return -1;
	if (rs->datagram)
		return getpeername(rs->fd, addr, addrlen);
	if (rs->state < RS_CONNECTED)
		return rs_result(-ENOTCONN);
	copy_name(rdma_get_peer_addr(rs->id), addr, addrlen);
	return 0;
}

int rgetsockname(int socket, struct sockaddr *addr, socklen_t *addrlen)
{
	struct rs *rs = rs_find(socket);
	if (!rs)
		return -1;
	if (rs->datagram)
		return getsockname(rs->fd, addr, addrlen);
	struct sockaddr_storage none = {.ss_family = (sa_family_t)rs->domain};
	const struct sockaddr *name = rdma_get_local_addr(rs->id);
	copy_name(name->sa_family ? name : (struct sockaddr *)&none, addr, addrlen);
	return 0;
}
