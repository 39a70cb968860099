/* SPDX-License-Identifier: BSD-2-Clause */
/* Socket options and flags. What has no meaning for RDMA is kept and told back, as programs expect of a socket. */
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stdlib.h>

#include "rsocket/rsocket.h"

#define MIN_QUEUE  16
#define MAX_QUEUE  0xfffe
#define MIN_BUFFER 4096

static uint32_t clamp(int value, uint32_t min, uint32_t max)
{
	return value < 0 || (uint32_t)value < min ? min : (uint32_t)value > max ? max : (uint32_t)value;
}

/* The first int of an option, which may be shorter than it says. */
static int int_of(const void *value, socklen_t len, int *out)
{
	if (!value || len < sizeof(*out))
		return -EINVAL;
	memcpy(out, value, sizeof(*out));
	return 0;
}

/* Buffers and queues are made when the connection is. */
static bool is_set_up(const struct rs *rs)
{
	return rs->sbuf != NULL;
}

static int set_socket(struct rs *rs, int name, const void *value, socklen_t len, int n)
{
	switch (name) {
	case SO_REUSEADDR: rs->reuseaddr = n; return 0;
	case SO_RCVBUF:
		if (!is_set_up(rs))
			rs->rbuf_size = clamp(n, MIN_BUFFER, RS_MAX_BUFFER) & ~1u;
		return 0;
	case SO_SNDBUF:
		if (!is_set_up(rs))
			rs->sbuf_size = clamp(n, MIN_BUFFER, RS_MAX_BUFFER);
		return 0;
	case SO_LINGER:
		if (len < sizeof(rs->linger))
			return -EINVAL;
		memcpy(&rs->linger, value, sizeof(rs->linger));
		return 0;
	case SO_KEEPALIVE: rs->keepalive = n; return 0;
	case SO_OOBINLINE: rs->oobinline = n; return 0;
	default: return -ENOPROTOOPT;
	}
}

static int set_tcp(struct rs *rs, int name, int n)
{
	switch (name) {
	case TCP_NODELAY: rs->nodelay = n; return 0; /* nothing is ever delayed */
	case TCP_MAXSEG: rs->maxseg = n; return 0;
	case TCP_KEEPIDLE: rs->keepidle = n; return 0;
	case TCP_KEEPINTVL: rs->keepintvl = n; return 0;
	case TCP_KEEPCNT: rs->keepcnt = n; return 0;
	default: return -ENOPROTOOPT;
	}
}

static int set_rdma(struct rs *rs, int name, int n)
{
	if (is_set_up(rs) && name != RDMA_ROUTE)
		return -EINVAL;
	switch (name) {
	case RDMA_SQSIZE: rs->sq_size = clamp(n, MIN_QUEUE, MAX_QUEUE); return 0;
	case RDMA_RQSIZE: rs->rq_size = clamp(n, MIN_QUEUE, MAX_QUEUE); return 0;
	case RDMA_INLINE: rs->inline_size = clamp(n, sizeof(struct rs_sge), MAX_QUEUE); return 0;
	case RDMA_IOMAPSIZE: rs->iomap_size = (int)(clamp(n, 0, 255 * 8) + 7) / 8 * 8; return 0;
	case RDMA_ROUTE: return 0; /* on Ethernet the addresses are the route */
	default: return -ENOPROTOOPT;
	}
}

static int set_option(struct rs *rs, int level, int name, const void *value, socklen_t len)
{
	int n = 0;
	bool is_int = !(level == SOL_SOCKET && name == SO_LINGER) && !(level == SOL_RDMA && name == RDMA_ROUTE);
	int err = is_int ? int_of(value, len, &n) : 0;
	if (err)
		return err;
	switch (level) {
	case SOL_SOCKET: return set_socket(rs, name, value, len, n);
	case IPPROTO_TCP: return set_tcp(rs, name, n);
	case SOL_RDMA: return set_rdma(rs, name, n);
	case IPPROTO_IPV6:
		if (name != IPV6_V6ONLY)
			return -ENOPROTOOPT;
		rs->v6only = n;
		return 0;
	default: return -ENOPROTOOPT;
	}
}

int rsetsockopt(int socket, int level, int optname, const void *optval, socklen_t optlen)
{
	struct rs *rs = rs_find(socket);
	if (!rs)
		return -1;
	if (rs->datagram && level != SOL_RDMA)
		return setsockopt(rs->fd, level, optname, optval, optlen);
	pthread_mutex_lock(&rs->lock);
	int err = set_option(rs, level, optname, optval, optlen);
	pthread_mutex_unlock(&rs->lock);
	return rs_result(err);
}

static int get_int(struct rs *rs, int level, int name, int *n)
{
	static const struct {
		int level, name;
		size_t offset;
		bool is_bool;
	} options[] = {
#define OPTION(level, name, field, is_bool) {level, name, offsetof(struct rs, field), is_bool}
		OPTION(SOL_SOCKET, SO_REUSEADDR, reuseaddr, true),
		OPTION(SOL_SOCKET, SO_RCVBUF, rbuf_size, false),
		OPTION(SOL_SOCKET, SO_SNDBUF, sbuf_size, false),
		OPTION(SOL_SOCKET, SO_KEEPALIVE, keepalive, true),
		OPTION(SOL_SOCKET, SO_OOBINLINE, oobinline, true),
		OPTION(SOL_SOCKET, SO_TYPE, type, false),
		OPTION(SOL_SOCKET, SO_DOMAIN, domain, false),
		OPTION(SOL_SOCKET, SO_ERROR, err, false),
		OPTION(IPPROTO_TCP, TCP_NODELAY, nodelay, true),
		OPTION(IPPROTO_TCP, TCP_MAXSEG, maxseg, false),
		OPTION(IPPROTO_TCP, TCP_KEEPIDLE, keepidle, false),
		OPTION(IPPROTO_TCP, TCP_KEEPINTVL, keepintvl, false),
		OPTION(IPPROTO_TCP, TCP_KEEPCNT, keepcnt, false),
		OPTION(IPPROTO_IPV6, IPV6_V6ONLY, v6only, true),
		OPTION(SOL_RDMA, RDMA_SQSIZE, sq_size, false),
		OPTION(SOL_RDMA, RDMA_RQSIZE, rq_size, false),
		OPTION(SOL_RDMA, RDMA_INLINE, inline_size, false),
		OPTION(SOL_RDMA, RDMA_IOMAPSIZE, iomap_size, false),
#undef OPTION
	};
	for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++) {
		if (options[i].level != level || options[i].name != name)
			continue;
		const char *field = (const char *)rs + options[i].offset;
		*n = options[i].is_bool ? *(const bool *)field : *(const int *)field;
		return 0;
	}
	return -ENOPROTOOPT;
}

static int get_option(struct rs *rs, int level, int name, void *value, socklen_t *len)
{
	int n;
	if (level == SOL_SOCKET && name == SO_LINGER) {
		if (*len < sizeof(rs->linger))
			return -EINVAL;
		memcpy(value, &rs->linger, sizeof(rs->linger));
		*len = sizeof(rs->linger);
		return 0;
	}
	if (level == SOL_SOCKET && name == SO_ERROR)
		rs_progress(rs);
	int err = get_int(rs, level, name, &n);
	if (err)
		return err;
	if (*len < sizeof(n))
		return -EINVAL;
	memcpy(value, &n, sizeof(n));
	*len = sizeof(n);
	if (level == SOL_SOCKET && name == SO_ERROR)
		rs->err = 0; /* told once */
	return 0;
}

int rgetsockopt(int socket, int level, int optname, void *optval, socklen_t *optlen)
{
	struct rs *rs = rs_find(socket);
	if (!rs)
		return -1;
	if (!optval || !optlen)
		return rs_result(-EFAULT);
	if (rs->datagram && level != SOL_RDMA)
		return getsockopt(rs->fd, level, optname, optval, optlen);
	pthread_mutex_lock(&rs->lock);
	int err = get_option(rs, level, optname, optval, optlen);
	pthread_mutex_unlock(&rs->lock);
	return rs_result(err);
}

/* The descriptor itself never blocks; what the program asks for is kept beside it. */
int rfcntl(int socket, int cmd, ...)
{
	struct rs *rs = rs_find(socket);
	if (!rs)
		return -1;
	va_list args;
	va_start(args, cmd);
	long arg = cmd == F_SETFL ? va_arg(args, long) : 0;
	va_end(args);
	switch (cmd) {
	case F_GETFL: return O_RDWR | (rs->nonblock ? O_NONBLOCK : 0);
	case F_SETFL: rs->nonblock = arg & O_NONBLOCK; return 0;
	default: return rs_result(-ENOTSUP);
	}
}
