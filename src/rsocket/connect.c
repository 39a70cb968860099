/* SPDX-License-Identifier: BSD-2-Clause */
/* rconnect() and raccept(). */
#include <errno.h>
#include <string.h>

#include "rsocket/datagram.h"
#include "rsocket/rsocket.h"

#define RESOLVE_TIMEOUT_MS 2000

/* ---- accepting ---- */

static void inherit(struct rs *rs, const struct rs *from)
{
	rs->options.nodelay = from->options.nodelay;
	rs->options.keepalive = from->options.keepalive;
	rs->options.sq_size = from->options.sq_size;
	rs->options.rq_size = from->options.rq_size;
	rs->options.inline_size = from->options.inline_size;
	rs->options.sbuf_size = from->options.sbuf_size;
	rs->options.rbuf_size = from->options.rbuf_size;
	rs->options.iomap_size = from->options.iomap_size;
}

static int accept_request(struct rs *rs, const struct rdma_conn_param *request)
{
	int err = rs_conn_create_qp(rs);
	if (!err)
		err = rs_conn_take_data(rs, request);
	if (err)
		return err;
	struct rs_conn_data data;
	rs_conn_fill_data(rs, &data);
	struct rdma_conn_param param = *request;
	param.private_data = &data;
	param.private_data_len = sizeof(data);
	if (rdma_accept(rs->id, &param))
		return -errno;
	rs->state = RS_CONNECTED;
	rs->readable = rs->writable = true;
	return 0;
}

/* Makes the socket of a request. Its id moves to its own channel, which has the descriptor. */
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
	if (!rs->channel)
		err = -errno;
	if (!err)
		err = rs_set_nonblocking(rs->channel->fd);
	if (!err && rdma_migrate_id(rs->id, rs->channel))
		err = -errno;
	if (!err) {
		rs->fd = rs->channel->fd;
		err = accept_request(rs, &event->param.conn);
	}
	if (!err)
		err = rs_table_insert(rs);
	if (err) {
		rdma_reject(rs->id, NULL, 0);
		rs_free(rs);
		return err;
	}
	*out = rs;
	return 0;
}

/* It is the program's matter, as in accept(2). Other errors are the peer's. */
static bool is_shortage(int err)
{
	return err == -EMFILE || err == -ENFILE || err == -ENOMEM;
}

/* 0 with *out, or 0 without: a request failed. */
static int next_request(struct rs *rs, struct rs **out)
{
	struct rdma_cm_event *event;
	if (rdma_get_cm_event(rs->channel, &event))
		return -errno;
	int err = event->event == RDMA_CM_EVENT_CONNECT_REQUEST ? take_request(rs, event, out) : 0;
	rdma_ack_cm_event(event);
	return is_shortage(err) ? err : 0;
}

int raccept(int socket, struct sockaddr *addr, socklen_t *addrlen)
{
	struct rs *rs = rs_table_find(socket), *made = NULL;
	if (!rs)
		return -1;
	if (rs->datagram || rs->state != RS_LISTENING)
		return rs_result(rs->datagram ? -EOPNOTSUPP : -EINVAL);
	while (!made) {
		int err = next_request(rs, &made);
		if (err == -EAGAIN && !rs->nonblock) {
			struct pollfd pfd = {.fd = rs->fd, .events = POLLIN};
			err = rs_sleep(&pfd, 1, -1);
		}
		if (err)
			return rs_result(err);
	}
	if (addr && addrlen)
		rs_copy_addr(rdma_get_peer_addr(made->id), addr, addrlen);
	return made->fd;
}

/* ---- connecting ---- */

/* Waits for the event of a resolution. On this device it is there already. */
static int wait_event(struct rs *rs, enum rdma_cm_event_type type)
{
	struct rdma_cm_event *event;
	while (rdma_get_cm_event(rs->channel, &event)) {
		struct pollfd pfd = {.fd = rs->channel->fd, .events = POLLIN};
		int err = errno == EAGAIN ? rs_sleep(&pfd, 1, -1) : -errno;
		if (err)
			return err;
	}
	int err = event->event == type ? 0 : event->status < 0 ? event->status : -ENETUNREACH;
	rdma_ack_cm_event(event);
	return err;
}

static int start_connect(struct rs *rs, const struct sockaddr *addr)
{
	int err = rs_apply_id_options(rs);
	if (err)
		return err;
	if (rdma_resolve_addr(rs->id, NULL, (struct sockaddr *)addr, RESOLVE_TIMEOUT_MS))
		return -errno;
	err = wait_event(rs, RDMA_CM_EVENT_ADDR_RESOLVED);
	if (err)
		return err;
	if (rdma_resolve_route(rs->id, RESOLVE_TIMEOUT_MS))
		return -errno;
	err = wait_event(rs, RDMA_CM_EVENT_ROUTE_RESOLVED);
	if (!err)
		err = rs_conn_create_qp(rs);
	if (err)
		return err;
	struct rs_conn_data data;
	rs_conn_fill_data(rs, &data);
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
	return -rs->err; /* it stays for SO_ERROR, as with librdmacm */
}

int rconnect(int socket, const struct sockaddr *addr, socklen_t addrlen)
{
	struct rs *rs = rs_table_find(socket);
	if (!rs)
		return -1;
	if (rs->datagram)
		return rs_result(rs_datagram_connect(rs, addr, addrlen));
	pthread_mutex_lock(&rs->lock);
	int err = connect_stream(rs, addr);
	pthread_mutex_unlock(&rs->lock);
	return rs_result(err);
}
