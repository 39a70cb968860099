/* SPDX-License-Identifier: BSD-2-Clause */
/* The calls that read and write. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "rsocket/datagram.h"

/* ---- sending ---- */

static ssize_t send_stream(struct rs *rs, const uint8_t *buf, size_t len, bool nonblock)
{
	size_t done = 0;
	int err = 0;
	while (done < len) {
		if (!rs_stream_can_send(rs)) {
			err = rs_wait(rs, nonblock, rs_stream_send_is_decided);
			if (err)
				break;
		}
		if (!rs_stream_can_send(rs)) {
			err = rs->state == RS_CONNECTED || rs->state == RS_DISCONNECTED ? -EPIPE
			      : rs->err                                                 ? -rs->err
											: -ENOTCONN;
			break;
		}
		size_t left = len - done;
		done += rs_stream_send(rs, buf + done, left > UINT32_MAX ? UINT32_MAX : (uint32_t)left);
	}
	return done ? (ssize_t)done : err;
}

/* The public result: the number of bytes, or -1 with errno. */
static ssize_t io_result(ssize_t result)
{
	if (result >= 0)
		return result;
	errno = (int)-result;
	return -1;
}

ssize_t rsend(int socket, const void *buf, size_t len, int flags)
{
	struct rs *rs = rs_table_find(socket);
	if (!rs)
		return -1;
	if (rs->datagram)
		return io_result(rs_datagram_send(rs, buf, len, flags, NULL, 0));
	pthread_mutex_lock(&rs->lock);
	ssize_t result = send_stream(rs, buf, len, rs->nonblock || (flags & MSG_DONTWAIT));
	pthread_mutex_unlock(&rs->lock);
	return io_result(result);
}

ssize_t rsendto(int socket, const void *buf, size_t len, int flags, const struct sockaddr *dest_addr, socklen_t addrlen)
{
	struct rs *rs = rs_table_find(socket);
	if (!rs)
		return -1;
	if (rs->datagram)
		return io_result(rs_datagram_send(rs, buf, len, flags, dest_addr, addrlen));
	return dest_addr || addrlen ? io_result(-EISCONN) : rsend(socket, buf, len, flags);
}

static ssize_t send_vector(int socket, const struct iovec *iov, size_t count, int flags)
{
	struct rs *rs = rs_table_find(socket);
	if (!rs)
		return -1;
	if (rs->datagram)
		return io_result(rs_datagram_sendv(rs, iov, count, flags));
	ssize_t total = 0;
	pthread_mutex_lock(&rs->lock);
	for (size_t i = 0; i < count; i++) {
		ssize_t result =
			send_stream(rs, iov[i].iov_base, iov[i].iov_len, rs->nonblock || (flags & MSG_DONTWAIT));
		if (result < 0 && !total)
			total = result;
		else if (result > 0)
			total += result;
		if (result < (ssize_t)iov[i].iov_len)
			break;
	}
	pthread_mutex_unlock(&rs->lock);
	return io_result(total);
}

ssize_t rwritev(int socket, const struct iovec *iov, int iovcnt)
{
	return iovcnt < 0 ? io_result(-EINVAL) : send_vector(socket, iov, (size_t)iovcnt, 0);
}

/* -ENOTSUP: there is no ancillary data. */
static int check_msg(const struct msghdr *msg)
{
	if (!msg)
		return -EFAULT;
	return msg->msg_control && msg->msg_controllen ? -ENOTSUP : 0;
}

ssize_t rsendmsg(int socket, const struct msghdr *msg, int flags)
{
	int err = check_msg(msg);
	return err ? io_result(err) : send_vector(socket, msg->msg_iov, msg->msg_iovlen, flags);
}

ssize_t rwrite(int socket, const void *buf, size_t count)
{
	return rsend(socket, buf, count, 0);
}

/* ---- receiving ---- */

static void copy_in(const struct rs *rs, uint32_t offset, uint8_t *to, uint32_t len)
{
	uint32_t to_end = rs_ring_size(rs) - offset, first = len < to_end ? len : to_end;
	memcpy(to, rs->recv.buf + offset, first);
	memcpy(to + first, rs->recv.buf, len - first);
}

static size_t take(struct rs *rs, uint8_t *buf, size_t len)
{
	size_t done = 0;
	while (done < len && rs_stream_has_data(rs)) {
		uint32_t *message = &rs->recv.lengths[rs->recv.first], now = *message;
		if (now > len - done)
			now = (uint32_t)(len - done);
		copy_in(rs, rs->recv.offset, buf + done, now);
		rs->recv.offset = (rs->recv.offset + now) % rs_ring_size(rs);
		rs->recv.freed += now;
		rs->recv.unread -= now;
		*message -= now;
		if (!*message) {
			rs->recv.first = (rs->recv.first + 1) % (rs->options.rq_size + 1);
			rs->recv.messages++;
		}
		done += now;
	}
	if (rs->state == RS_CONNECTED)
		rs_stream_give_credits(rs);
	return done;
}

static size_t peek(const struct rs *rs, uint8_t *buf, size_t len)
{
	size_t done = 0;
	uint32_t offset = rs->recv.offset;
	for (unsigned i = rs->recv.first; done < len && i != rs->recv.last; i = (i + 1) % (rs->options.rq_size + 1)) {
		uint32_t now = rs->recv.lengths[i];
		if (now > len - done)
			now = (uint32_t)(len - done);
		copy_in(rs, offset, buf + done, now);
		offset = (offset + now) % rs_ring_size(rs);
		done += now;
	}
	return done;
}

/* 0: the end of the stream. */
static ssize_t recv_stream(struct rs *rs, uint8_t *buf, size_t len, int flags)
{
	bool nonblock = rs->nonblock || (flags & MSG_DONTWAIT);
	size_t done = 0;
	int err = 0;
	while (done < len) {
		if (!rs_stream_has_data(rs)) {
			err = rs_wait(rs, nonblock, rs_stream_recv_is_decided);
			if (err)
				break;
		}
		if (!rs_stream_has_data(rs)) {
			if (rs->state == RS_ERROR)
				err = rs->err ? -rs->err : -ENOTCONN;
			else if (rs->state < RS_CONNECTED)
				err = -ENOTCONN;
			break;
		}
		if (flags & MSG_PEEK)
			return (ssize_t)peek(rs, buf, len);
		done += take(rs, buf + done, len - done);
		if (!(flags & MSG_WAITALL))
			break;
	}
	return done ? (ssize_t)done : err;
}

ssize_t rrecv(int socket, void *buf, size_t len, int flags)
{
	struct rs *rs = rs_table_find(socket);
	if (!rs)
		return -1;
	if (rs->datagram)
		return io_result(rs_datagram_recv(rs, buf, len, flags, NULL, NULL));
	pthread_mutex_lock(&rs->lock);
	ssize_t result = recv_stream(rs, buf, len, flags);
	pthread_mutex_unlock(&rs->lock);
	return io_result(result);
}

ssize_t rrecvfrom(int socket, void *buf, size_t len, int flags, struct sockaddr *src_addr, socklen_t *addrlen)
{
	struct rs *rs = rs_table_find(socket);
	if (!rs)
		return -1;
	if (rs->datagram)
		return io_result(rs_datagram_recv(rs, buf, len, flags, src_addr, addrlen));
	ssize_t result = rrecv(socket, buf, len, flags);
	if (result > 0 && src_addr && addrlen)
		rgetpeername(socket, src_addr, addrlen);
	return result;
}

/* One receive, of at most RS_MAX_BUFFER bytes, scattered over the vector. */
static ssize_t recv_scattered(struct rs *rs, const struct iovec *iov, size_t count, int flags)
{
	size_t room = 0, done = 0;
	for (size_t i = 0; i < count; i++)
		room += iov[i].iov_len < RS_MAX_BUFFER - room ? iov[i].iov_len : RS_MAX_BUFFER - room;
	uint8_t *bytes = malloc(room + 1);
	if (!bytes)
		return io_result(-ENOMEM);
	ssize_t result = rrecv(rs->fd, bytes, room, flags);
	for (size_t i = 0; result > 0 && done < (size_t)result; i++) {
		size_t left = (size_t)result - done, now = iov[i].iov_len < left ? iov[i].iov_len : left;
		memcpy(iov[i].iov_base, bytes + done, now);
		done += now;
	}
	free(bytes);
	return result;
}

/* For a stream, waits for the first entry of the vector only. */
static ssize_t recv_vector(int socket, const struct iovec *iov, size_t count, int flags)
{
	struct rs *rs = rs_table_find(socket);
	if (!rs)
		return -1;
	/* One call: a second one would read another datagram, or peek at the same bytes. */
	if (rs->datagram || (flags & MSG_PEEK))
		return recv_scattered(rs, iov, count, flags);
	ssize_t total = 0;
	for (size_t i = 0; i < count; i++) {
		ssize_t result = rrecv(socket, iov[i].iov_base, iov[i].iov_len, total ? flags | MSG_DONTWAIT : flags);
		if (result < 0)
			return total ? total : -1;
		total += result;
		if ((size_t)result < iov[i].iov_len)
			break;
	}
	return total;
}

ssize_t rrecvmsg(int socket, struct msghdr *msg, int flags)
{
	int err = check_msg(msg);
	return err ? io_result(err) : recv_vector(socket, msg->msg_iov, msg->msg_iovlen, flags);
}

ssize_t rread(int socket, void *buf, size_t count)
{
	return rrecv(socket, buf, count, 0);
}

ssize_t rreadv(int socket, const struct iovec *iov, int iovcnt)
{
	return iovcnt < 0 ? io_result(-EINVAL) : recv_vector(socket, iov, (size_t)iovcnt, 0);
}
