/* SPDX-License-Identifier: BSD-2-Clause */
#include "pair.h"
#include "verbs/flush.h"

#include <errno.h>
#include <netdb.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define PAIR_QKEY 0x1234567u

const struct retries pair_retries = {.timeout = 14, .retry_cnt = 7, .rnr_retry = 7, .min_rnr_timer = 12};

_Noreturn void die(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	exit(1);
}

void need(bool ok, const char *what)
{
	if (!ok)
		die("%s: %s", what, strerror(errno));
}

/* ---- verbs ---- */

void endpoint_open(struct endpoint *ep, int gid_index)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_port_attr port;

	need(list != NULL, "ibv_get_device_list");
	if (!list[0])
		die("no device");
	ep->ctx = ibv_open_device(list[0]);
	need(ep->ctx != NULL, "ibv_open_device");
	ibv_free_device_list(list);
	ep->pd = ibv_alloc_pd(ep->ctx);
	need(ep->pd != NULL, "ibv_alloc_pd");
	errno = ibv_query_port(ep->ctx, 1, &port);
	need(!errno, "ibv_query_port");
	need(!ibv_query_gid(ep->ctx, 1, gid_index, &ep->gid), "ibv_query_gid");
	ep->gid_index = gid_index;
	ep->mtu = port.active_mtu;
	ep->mtu_bytes = 128u << port.active_mtu;
}

void endpoint_close(struct endpoint *ep)
{
	errno = ibv_dealloc_pd(ep->pd);
	need(!errno, "ibv_dealloc_pd");
	need(!ibv_close_device(ep->ctx), "ibv_close_device");
}

struct ibv_qp *qp_make(struct endpoint *ep, enum ibv_qp_type type, struct ibv_cq *cq, struct ibv_srq *srq, uint32_t wr,
		       uint32_t sge)
{
	struct ibv_qp_init_attr_ex init = {
		.qp_type = type,
		.send_cq = cq,
		.recv_cq = cq,
		.srq = srq,
		.pd = ep->pd,
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.cap = {.max_send_wr = wr,
			.max_recv_wr = srq ? 0 : wr,
			.max_send_sge = sge,
			.max_recv_sge = srq ? 0 : sge},
	};
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = PAIR_QKEY};
	int mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT;
	struct ibv_qp *qp;

	if (type == IBV_QPT_RC) {
		init.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
		init.send_ops_flags = IBV_QP_EX_WITH_ATOMIC_WRITE | IBV_QP_EX_WITH_FLUSH;
	}
	qp = ibv_create_qp_ex(ep->ctx, &init);
	if (!qp && type == IBV_QPT_RC) { /* Debian 12's libibverbs has no FLUSH for Soft-RoCE */
		init.send_ops_flags &= ~(uint64_t)IBV_QP_EX_WITH_FLUSH;
		qp = ibv_create_qp_ex(ep->ctx, &init);
	}
	if (!qp && type == IBV_QPT_RC) { /* Soft-RoCE of Linux 6.1 has no atomic write */
		init.comp_mask &= ~(uint32_t)IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
		qp = ibv_create_qp_ex(ep->ctx, &init);
	}
	need(qp != NULL, "ibv_create_qp_ex");
	if (type != IBV_QPT_UD)
		attr.qp_access_flags = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
	if (type == IBV_QPT_RC)
		attr.qp_access_flags |= IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
	if (init.send_ops_flags & IBV_QP_EX_WITH_FLUSH)
		attr.qp_access_flags |= IBV_ACCESS_FLUSH_GLOBAL;
	mask |= type == IBV_QPT_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS;
	errno = ibv_modify_qp(qp, &attr, mask);
	need(!errno, "ibv_modify_qp to INIT");
	return qp;
}

static void qp_to_rtr(struct endpoint *ep, struct ibv_qp *qp, const struct address *peer, uint8_t min_rnr_timer)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = ep->mtu_bytes < peer->mtu ? ep->mtu : (enum ibv_mtu)(__builtin_ctz(peer->mtu) - 7),
		.dest_qp_num = peer->qpn,
		.rq_psn = peer->psn,
		.max_dest_rd_atomic = 8,
		.min_rnr_timer = min_rnr_timer,
		.ah_attr = {.is_global = 1,
			    .port_num = 1,
			    .grh = {.dgid = peer->gid, .sgid_index = (uint8_t)ep->gid_index, .hop_limit = 64}},
	};
	int mask = IBV_QP_STATE;

	if (qp->qp_type != IBV_QPT_UD)
		mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
	if (qp->qp_type == IBV_QPT_RC)
		mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	errno = ibv_modify_qp(qp, &attr, mask);
	need(!errno, "ibv_modify_qp to RTR");
}

void qp_connect(struct endpoint *ep, struct ibv_qp *qp, uint32_t psn, const struct address *peer,
		const struct retries *retries)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTS,
		.sq_psn = psn,
		.timeout = retries->timeout,
		.retry_cnt = retries->retry_cnt,
		.rnr_retry = retries->rnr_retry,
		.max_rd_atomic = 8,
	};
	int mask = IBV_QP_STATE | IBV_QP_SQ_PSN;

	qp_to_rtr(ep, qp, peer, retries->min_rnr_timer);
	if (qp->qp_type == IBV_QPT_RC)
		mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
	errno = ibv_modify_qp(qp, &attr, mask);
	need(!errno, "ibv_modify_qp to RTS");
}

uint32_t qp_random_psn(void)
{
	uint32_t psn;

	need(getrandom(&psn, sizeof(psn), 0) == sizeof(psn), "getrandom");
	return psn & 0xffffff;
}

void post_message(struct ibv_qp *qp, const struct ibv_mr *mr, void *at, uint32_t len, uint64_t wr_id, bool receive)
{
	struct ibv_sge sge = {(uintptr_t)at, len, mr->lkey};
	struct ibv_send_wr send = {.wr_id = wr_id,
				   .sg_list = &sge,
				   .num_sge = 1,
				   .opcode = IBV_WR_SEND,
				   .send_flags = IBV_SEND_SIGNALED},
			   *bad_send;
	struct ibv_recv_wr recv = {.wr_id = wr_id, .sg_list = &sge, .num_sge = 1}, *bad_recv;

	errno = receive ? ibv_post_recv(qp, &recv, &bad_recv) : ibv_post_send(qp, &send, &bad_send);
	need(!errno, "post");
}

void cq_next(struct ibv_cq *cq, struct ibv_wc *wc)
{
	time_t end = time(NULL) + PAIR_WAIT_S;
	int n;

	while ((n = ibv_poll_cq(cq, 1, wc)) == 0)
		if (time(NULL) > end)
			die("no completion");
	if (n < 0)
		die("ibv_poll_cq: %d", n);
}

void cq_expect(struct ibv_cq *cq, struct ibv_wc *wc, uint64_t wr_id)
{
	cq_next(cq, wc);
	if (wc->wr_id != wr_id || wc->status != IBV_WC_SUCCESS)
		die("completion of request %llu: %s; expected request %llu", (unsigned long long)wc->wr_id,
		    ibv_wc_status_str(wc->status), (unsigned long long)wr_id);
}

struct ibv_mw *mw_bind(struct ibv_qp *qp, struct ibv_mr *mr, size_t len)
{
	struct ibv_mw *mw = ibv_alloc_mw(qp->pd, IBV_MW_TYPE_2);
	struct ibv_send_wr wr = {.wr_id = 1000, .opcode = IBV_WR_BIND_MW, .send_flags = IBV_SEND_SIGNALED}, *bad;
	struct ibv_wc wc;

	need(mw != NULL, "ibv_alloc_mw");
	wr.bind_mw.mw = mw;
	wr.bind_mw.rkey = ibv_inc_rkey(mw->rkey);
	wr.bind_mw.bind_info = (struct ibv_mw_bind_info){
		.mr = mr, .addr = (uintptr_t)mr->addr, .length = len, .mw_access_flags = IBV_ACCESS_REMOTE_WRITE};
	errno = ibv_post_send(qp, &wr, &bad);
	need(!errno, "ibv_post_send of BIND_MW");
	cq_expect(qp->send_cq, &wc, 1000);
	mw->rkey = wr.bind_mw.rkey;
	return mw;
}

/* ---- the peer ---- */

static struct addrinfo *resolve(const char *host, const char *port)
{
	struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = host ? 0 : AI_PASSIVE};
	struct addrinfo *found;
	int error = getaddrinfo(host, port, &hints, &found);

	if (error)
		die("%s port %s: %s", host ? host : "any", port, gai_strerror(error));
	return found;
}

int tcp_serve(const char *port)
{
	struct addrinfo *ai = resolve(NULL, port);
	int listener = socket(ai->ai_family, SOCK_STREAM, 0), one = 1, fd;

	need(listener >= 0, "socket");
	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	need(!bind(listener, ai->ai_addr, ai->ai_addrlen) && !listen(listener, 1), "listen");
	freeaddrinfo(ai);
	fd = accept(listener, NULL, NULL);
	need(fd >= 0, "accept");
	close(listener);
	return fd;
}

int tcp_connect(const char *host, const char *port)
{
	struct addrinfo *ai = resolve(host, port);
	int fd = socket(ai->ai_family, SOCK_STREAM, 0);

	need(fd >= 0, "socket");
	need(!connect(fd, ai->ai_addr, ai->ai_addrlen), "connect");
	freeaddrinfo(ai);
	return fd;
}

/* With a time limit recv() is not restarted after a stop (signal(7)), as of Ctrl-Z or a debugger. */
static void recv_all(int fd, void *p, size_t len)
{
	struct timeval bound = {.tv_sec = PAIR_WAIT_S};
	size_t have = 0;

	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &bound, sizeof(bound));
	while (have < len) {
		ssize_t got = recv(fd, (char *)p + have, len - have, 0);

		if (got <= 0 && !(got < 0 && errno == EINTR))
			die("the peer has gone");
		have += got > 0 ? (size_t)got : 0;
	}
}

void tcp_swap(int fd, const void *mine, void *theirs, size_t len)
{
	char here = 0;

	if (send(fd, len ? mine : &here, len ? len : 1, MSG_NOSIGNAL) < 0)
		die("the peer has gone");
	recv_all(fd, len ? theirs : &here, len ? len : 1);
}

/* ---- data ---- */

static uint8_t pattern_byte(size_t i, uint32_t seed)
{
	uint32_t x = (uint32_t)i * 2654435761u + seed * 40503u;

	return (uint8_t)(x >> 24 ^ x >> 11);
}

void pattern_fill(uint8_t *p, size_t len, uint32_t seed)
{
	for (size_t i = 0; i < len; i++)
		p[i] = pattern_byte(i, seed);
}

bool pattern_holds(const uint8_t *p, size_t len, uint32_t seed)
{
	for (size_t i = 0; i < len; i++)
		if (p[i] != pattern_byte(i, seed))
			return false;
	return true;
}
