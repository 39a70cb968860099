/* SPDX-License-Identifier: BSD-2-Clause */
/* Socket options and flags. Options without a meaning for RDMA are only stored, for rgetsockopt(). */
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <string.h>

#include "device/sys.h"
#include "rsocket/rsocket.h"

#define MIN_QUEUE  16
#define MAX_QUEUE  0xfffe
#define MIN_BUFFER 4096

static uint32_t clamp(int value, uint32_t min, uint32_t max)
{
	return value < 0 || (uint32_t)value < min ? min : (uint32_t)value > max ? max : (uint32_t)value;
}

/* The int of an option. -EINVAL: it is shorter. */
static int int_of(const void *value, socklen_t len, int *out)
{
	if (!value || len < sizeof(*out))
		return -EINVAL;
	memcpy(out, value, sizeof(*out));
	return 0;
}

/* Buffers and queues are made with the connection. */
static bool is_set_up(const struct rs *rs)
{
	return rs->send.buf != NULL;
}

static int set_socket(struct rs *rs, int name, const void *value, socklen_t len, int n)
{
	switch (name) {
	case SO_REUSEADDR: rs->options.reuseaddr = n; return 0;
	case SO_RCVBUF:
		if (!is_set_up(rs))
			rs->options.rbuf_size = clamp(n, MIN_BUFFER, RS_MAX_BUFFER) & ~1u;
		return 0;
	case SO_SNDBUF:
		if (!is_set_up(rs))
			rs->options.sbuf_size = clamp(n, MIN_BUFFER, RS_MAX_BUFFER);
		return 0;
	case SO_LINGER:
		if (len < sizeof(rs->options.linger))
			return -EINVAL;
		memcpy(&rs->options.linger, value, sizeof(rs->options.linger));
		return 0;
	case SO_KEEPALIVE: rs->options.keepalive = n; return 0;
	case SO_OOBINLINE: rs->options.oobinline = n; return 0;
	default: return -ENOPROTOOPT;
	}
}

static int set_tcp(struct rs *rs, int name, int n)
{
	switch (name) {
	case TCP_NODELAY: rs->options.nodelay = n; return 0; /* nothing is ever delayed */
	case TCP_MAXSEG: rs->options.maxseg = n; return 0;
	case TCP_KEEPIDLE: rs->options.keepidle = n; return 0;
	case TCP_KEEPINTVL: rs->options.keepintvl = n; return 0;
	case TCP_KEEPCNT: rs->options.keepcnt = n; return 0;
	default: return -ENOPROTOOPT;
	}
}

static int set_rdma(struct rs *rs, int name, int n)
{
	if (is_set_up(rs) && name != RDMA_ROUTE)
		return -EINVAL;
	switch (name) {
	case RDMA_SQSIZE: rs->options.sq_size = clamp(n, MIN_QUEUE, MAX_QUEUE); return 0;
	case RDMA_RQSIZE: rs->options.rq_size = clamp(n, MIN_QUEUE, MAX_QUEUE); return 0;
	case RDMA_INLINE: rs->options.inline_size = clamp(n, sizeof(struct rs_sge), MAX_QUEUE); return 0;
	case RDMA_IOMAPSIZE: rs->options.iomap_size = (int)(clamp(n, 0, 255 * 8) + 7) / 8 * 8; return 0;
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
		rs->options.v6only = n;
		return 0;
	default: return -ENOPROTOOPT;
	}
}

int rsetsockopt(int socket, int level, int optname, const void *optval, socklen_t optlen)
{
	struct rs *rs = rs_table_find(socket);
	if (!rs)
		return -1;
	if (rs->datagram && level != SOL_RDMA)
		return roci_sys_setsockopt(rs->fd, level, optname, optval, optlen);
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
		OPTION(SOL_SOCKET, SO_REUSEADDR, options.reuseaddr, true),
		OPTION(SOL_SOCKET, SO_RCVBUF, options.rbuf_size, false),
		OPTION(SOL_SOCKET, SO_SNDBUF, options.sbuf_size, false),
		OPTION(SOL_SOCKET, SO_KEEPALIVE, options.keepalive, true),
		OPTION(SOL_SOCKET, SO_OOBINLINE, options.oobinline, true),
		OPTION(SOL_SOCKET, SO_TYPE, type, false),
		OPTION(SOL_SOCKET, SO_DOMAIN, domain, false),
		OPTION(SOL_SOCKET, SO_ERROR, err, false),
		OPTION(IPPROTO_TCP, TCP_NODELAY, options.nodelay, true),
		OPTION(IPPROTO_TCP, TCP_MAXSEG, options.maxseg, false),
		OPTION(IPPROTO_TCP, TCP_KEEPIDLE, options.keepidle, false),
		OPTION(IPPROTO_TCP, TCP_KEEPINTVL, options.keepintvl, false),
		OPTION(IPPROTO_TCP, TCP_KEEPCNT, options.keepcnt, false),
		OPTION(IPPROTO_IPV6, IPV6_V6ONLY, options.v6only, true),
		OPTION(SOL_RDMA, RDMA_SQSIZE, options.sq_size, false),
		OPTION(SOL_RDMA, RDMA_RQSIZE, options.rq_size, false),
		OPTION(SOL_RDMA, RDMA_INLINE, options.inline_size, false),
		OPTION(SOL_RDMA, RDMA_IOMAPSIZE, options.iomap_size, false),
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
		if (*len < sizeof(rs->options.linger))
			return -EINVAL;
		memcpy(value, &rs->options.linger, sizeof(rs->options.linger));
		*len = sizeof(rs->options.linger);
		return 0;
	}
	if (level == SOL_SOCKET && name == SO_ERROR)
		rs_stream_progress(rs);
	int err = get_int(rs, level, name, &n);
	if (err)
		return err;
	if (*len < sizeof(n))
		return -EINVAL;
	memcpy(value, &n, sizeof(n));
	*len = sizeof(n);
	if (level == SOL_SOCKET && name == SO_ERROR)
		rs->err = 0; /* reported once */
	return 0;
}

int rgetsockopt(int socket, int level, int optname, void *optval, socklen_t *optlen)
{
	struct rs *rs = rs_table_find(socket);
	if (!rs)
		return -1;
	if (!optval || !optlen)
		return rs_result(-EFAULT);
	if (rs->datagram && level != SOL_RDMA)
		return roci_sys_getsockopt(rs->fd, level, optname, optval, optlen);
	pthread_mutex_lock(&rs->lock);
	int err = get_option(rs, level, optname, optval, optlen);
	pthread_mutex_unlock(&rs->lock);
	return rs_result(err);
}

/* The descriptor itself never blocks. O_NONBLOCK is a flag of the socket. */
int rfcntl(int socket, int cmd, ...)
{
	struct rs *rs = rs_table_find(socket);
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
