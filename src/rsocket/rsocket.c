/* SPDX-License-Identifier: BSD-2-Clause */
/* The socket object, and the calls that make, bind, close and name sockets. */
#include "rsocket/rsocket.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "device/sys.h"
#include "rsocket/datagram.h"
#include "rsocket/dest.h"

#define DEFAULT_QUEUE  384
#define DEFAULT_INLINE 64
#define DEFAULT_BUFFER (1 << 17)

struct rs *rs_new(int domain, int type)
{
	pthread_condattr_t monotonic;
	struct rs *rs = calloc(1, sizeof(*rs));
	if (!rs)
		return NULL;
	rs->fd = rs->wake_fd = -1;
	rs->owner = getpid();
	rs->domain = domain;
	rs->type = type;
	rs->options.sq_size = rs->options.rq_size = DEFAULT_QUEUE;
	rs->options.inline_size = DEFAULT_INLINE;
	rs->options.sbuf_size = rs->options.rbuf_size = DEFAULT_BUFFER;
	rs->options.keepidle = 7200; /* as in tcp(7) */
	rs->options.keepintvl = 75;
	rs->options.keepcnt = 9;
	roci_list_init(&rs->maps);
	pthread_mutex_init(&rs->lock, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&rs->progressed, &monotonic);
	pthread_condattr_destroy(&monotonic);
	return rs;
}

static void free_mr(struct ibv_mr *mr)
{
	if (mr)
		ibv_dereg_mr(mr);
}

void rs_free(struct rs *rs)
{
	if (rs->id)
		rs_conn_destroy_qp(rs->id);
	rs_iomap_free_all(rs);
	free_mr(rs->send.mr);
	free_mr(rs->recv.mr);
	free_mr(rs->send.targets_mr);
	if (rs->id)
		rdma_destroy_id(rs->id);
	if (rs->channel)
		rdma_destroy_event_channel(rs->channel);
	free(rs->send.buf);
	free(rs->recv.buf);
	free(rs->send.targets);
	free(rs->recv.lengths);
	if (rs->wake_fd >= 0)
		roci_sys_close(rs->wake_fd);
	pthread_cond_destroy(&rs->progressed);
	pthread_mutex_destroy(&rs->lock);
	free(rs);
}

/* Makes the id, on its own event channel. The channel never blocks: calls wait with poll(). */
static int create_id(struct rs *rs)
{
	rs->channel = rdma_create_event_channel();
	if (!rs->channel)
		return -errno;
	int err = rs_set_nonblocking(rs->channel->fd);
	if (err)
		return err;
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
		err = rs_table_insert(rs);
	if (err) {
		rs_free(rs);
		return rs_result(err);
	}
	return rs->fd;
}

int rs_set_nonblocking(int fd)
{
	int flags = fcntl(fd, F_GETFL);
	return flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) ? -errno : 0;
}

int rs_apply_id_options(struct rs *rs)
{
	int reuse = rs->options.reuseaddr, only = rs->options.v6only;
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
	int err = rs_apply_id_options(rs);
	if (!err && rdma_bind_addr(rs->id, (struct sockaddr *)addr))
		err = -errno;
	if (!err)
		rs->state = RS_BOUND;
	return err;
}

int rbind(int socket, const struct sockaddr *addr, socklen_t addrlen)
{
	struct rs *rs = rs_table_find(socket);
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
	struct rs *rs = rs_table_find(socket);
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

/* ---- closing, names ---- */

void rs_copy_addr(const struct sockaddr *from, struct sockaddr *addr, socklen_t *addrlen)
{
	socklen_t len = rs_addr_len(from);
	memcpy(addr, from, len < *addrlen ? len : *addrlen);
	*addrlen = len;
}

int rshutdown(int socket, int how)
{
	struct rs *rs = rs_table_find(socket);
	if (!rs)
		return -1;
	if (how != SHUT_RD && how != SHUT_WR && how != SHUT_RDWR)
		return rs_result(-EINVAL);
	if (rs->datagram)
		return 0;
	pthread_mutex_lock(&rs->lock);
	int err = rs_conn_shutdown(rs, how);
	pthread_mutex_unlock(&rs->lock);
	return rs_result(err);
}

int rclose(int socket)
{
	struct rs *rs = rs_table_find(socket);
	if (!rs)
		return -1;
	rs_table_remove(socket);
	if (rs->datagram) {
		rs_datagram_destroy(rs);
	} else {
		pthread_mutex_lock(&rs->lock);
		if (rs->state == RS_CONNECTED)
			rs_conn_shutdown(rs, SHUT_RDWR);
		if (rs->state == RS_DISCONNECTED || rs->state == RS_ERROR)
			rdma_disconnect(rs->id);
		pthread_mutex_unlock(&rs->lock);
	}
	rs_free(rs);
	return 0;
}

/* The name of a datagram's end, or its error. */
static int answer(int err, const struct sockaddr_storage *name, struct sockaddr *addr, socklen_t *addrlen)
{
	if (!err)
		rs_copy_addr((const struct sockaddr *)name, addr, addrlen);
	return rs_result(err);
}

int rgetpeername(int socket, struct sockaddr *addr, socklen_t *addrlen)
{
	struct sockaddr_storage name;
	struct rs *rs = rs_table_find(socket);
	if (!rs)
		return -1;
	if (rs->datagram)
		return answer(rs_datagram_peer_name(rs, &name), &name, addr, addrlen);
	if (rs->state < RS_CONNECTED)
		return rs_result(-ENOTCONN);
	rs_copy_addr(rdma_get_peer_addr(rs->id), addr, addrlen);
	return 0;
}

int rgetsockname(int socket, struct sockaddr *addr, socklen_t *addrlen)
{
	struct rs *rs = rs_table_find(socket);
	if (!rs)
		return -1;
	struct sockaddr_storage own = {.ss_family = (sa_family_t)rs->domain};
	if (rs->datagram)
		return answer(rs_datagram_name(rs, &own), &own, addr, addrlen);
	const struct sockaddr *name = rdma_get_local_addr(rs->id);
	rs_copy_addr(name->sa_family ? name : (struct sockaddr *)&own, addr, addrlen);
	return 0;
}
