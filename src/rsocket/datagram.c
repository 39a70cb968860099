/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Datagram rsockets: an ordinary UDP socket has the address and the port, and sends the first message to each peer; a
 * UD QP sends the others. The first message has a header with the sender's QPN. The peer answers over UDP with its own
 * QPN. Then messages to it go over UD; their header has the sender's address and port.
 */
#include "device/sys.h"
#include "rsocket/datagram.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "rsocket/datagram_header.h"
#include "rsocket/dest.h"
#include "wire/mtu.h"

#define GRH_BYTES    40
#define QUEUE        256   /* less than RS_MAX_DESTS */
#define MAX_MESSAGE  65507 /* of UDP */
#define MAX_PENDING  256   /* messages that wait to be read */
#define VECTOR_BYTES 4096  /* of an iovec: more than any message */
#define UDP_BURST    32    /* that one call reads, so that a flood neither keeps it nor the lock */

struct pending {
	struct roci_list queued; /* node of rs_datagram */
	struct sockaddr_storage from;
	size_t len;
	uint8_t data[];
};

static struct pending *pending_of(struct roci_list *queued)
{
	return roci_container_of(queued, struct pending, queued);
}

struct rs_datagram {
	struct rdma_cm_id *id; /* bound to the local address; has the QP. NULL before the first message */
	struct ibv_mr *mr;
	uint8_t *memory; /* QUEUE receive slots, then QUEUE send slots */
	size_t slot;     /* bytes of each */
	size_t max_payload;
	unsigned sends; /* outstanding */
	unsigned next_send;
	struct rs_dest *send_to[QUEUE]; /* by send slot */
	struct rs_ud_header header;     /* of all messages that we send */
	struct rs_dests dests;
	struct roci_list pending;
	unsigned pending_count;
	uint8_t received[MAX_MESSAGE + 1]; /* what came last over UDP */
};

int rs_datagram_create(struct rs *rs)
{
	struct rs_datagram *d = calloc(1, sizeof(*d));
	if (!d)
		return -ENOMEM;
	rs_dests_init(&d->dests);
	roci_list_init(&d->pending);
	rs->datagram = d;
	rs->fd = roci_sys_socket(rs->domain, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (rs->fd >= 0)
		return 0;
	int err = -errno;
	rs->datagram = NULL;
	free(d);
	return err;
}

static void destroy_qp(struct rs_datagram *d)
{
	rs_conn_destroy_qp(d->id);
	if (d->mr)
		ibv_dereg_mr(d->mr);
	d->mr = NULL;
	rdma_destroy_id(d->id);
	d->id = NULL;
	free(d->memory);
	d->memory = NULL;
}

void rs_datagram_destroy(struct rs *rs)
{
	struct rs_datagram *d = rs->datagram;
	rs_dests_free(&d->dests);
	struct roci_list *queued;
	while ((queued = roci_list_take_first(&d->pending)))
		free(pending_of(queued));
	if (d->id)
		destroy_qp(d);
	roci_sys_close(rs->fd);
	free(d);
	rs->datagram = NULL;
}

int rs_datagram_bind(struct rs *rs, const struct sockaddr *addr, socklen_t len)
{
	return roci_sys_bind(rs->fd, addr, len) ? -errno : 0;
}

/* ---- the QP, made as soon as the local address is known ---- */

static int post_slot(struct rs_datagram *d, unsigned slot)
{
	struct ibv_sge sge = {(uintptr_t)d->memory + slot * d->slot, (uint32_t)d->slot, d->mr->lkey};
	struct ibv_recv_wr wr = {.wr_id = slot, .sg_list = &sge, .num_sge = 1}, *bad;
	return -ibv_post_recv(d->id->qp, &wr, &bad);
}

static int create_memory(struct rs_datagram *d)
{
	struct ibv_port_attr port;
	if (ibv_query_port(d->id->verbs, d->id->port_num, &port))
		return -errno;
	size_t mtu = roci_mtu_bytes(port.active_mtu);
	d->max_payload = mtu - d->header.length;
	d->slot = mtu + GRH_BYTES;
	d->memory = calloc(2 * QUEUE, d->slot);
	if (!d->memory)
		return -ENOMEM;
	d->mr = ibv_reg_mr(d->id->pd, d->memory, 2 * QUEUE * d->slot, IBV_ACCESS_LOCAL_WRITE);
	if (!d->mr)
		return -errno;
	int err = 0;
	for (unsigned i = 0; !err && i < QUEUE; i++)
		err = post_slot(d, i);
	return err;
}

static int create_qp(struct rs_datagram *d, const struct sockaddr_storage *local)
{
	struct sockaddr_storage any_port = *local;
	uint16_t port = ntohs(((struct sockaddr_in *)&any_port)->sin_port); /* the same place in both families */
	((struct sockaddr_in *)&any_port)->sin_port = 0;
	if (rdma_create_id(NULL, &d->id, NULL, RDMA_PS_UDP))
		return -errno;
	if (rdma_bind_addr(d->id, (struct sockaddr *)&any_port))
		return -errno;
	int err = rs_conn_create_cq(d->id, 2 * QUEUE);
	if (err)
		return err;
	struct ibv_qp_init_attr attr = {
		.send_cq = d->id->recv_cq,
		.recv_cq = d->id->recv_cq,
		.cap = {.max_send_wr = QUEUE, .max_recv_wr = QUEUE, .max_send_sge = 1, .max_recv_sge = 1},
		.qp_type = IBV_QPT_UD,
		.sq_sig_all = 1,
	};
	if (rdma_create_qp(d->id, NULL, &attr))
		return -errno;
	rs_ud_header_build(&d->header, (const struct sockaddr *)local, port);
	return create_memory(d);
}

/* The local address that the kernel chooses towards `to`, with our port. */
static int local_name(struct rs *rs, const struct sockaddr_storage *to, struct sockaddr_storage *local)
{
	socklen_t len = sizeof(*local);
	if (roci_sys_getsockname(rs->fd, (struct sockaddr *)local, &len))
		return -errno;
	if (!((struct sockaddr_in *)local)->sin_port) {
		struct sockaddr_storage any = {.ss_family = (sa_family_t)rs->domain};
		if (roci_sys_bind(rs->fd, (struct sockaddr *)&any, rs_addr_len((struct sockaddr *)&any)))
			return -errno;
		len = sizeof(*local);
		roci_sys_getsockname(rs->fd, (struct sockaddr *)local, &len);
	}
	uint16_t port = ((struct sockaddr_in *)local)->sin_port;
	int fd = roci_sys_socket(rs->domain, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	len = sizeof(*local);
	int err = roci_sys_connect(fd, (const struct sockaddr *)to, rs_addr_len((const struct sockaddr *)to)) ||
				  roci_sys_getsockname(fd, (struct sockaddr *)local, &len)
			  ? -errno
			  : 0;
	roci_sys_close(fd);
	((struct sockaddr_in *)local)->sin_port = port;
	return err;
}

static int ensure_qp(struct rs *rs, const struct sockaddr_storage *to)
{
	struct rs_datagram *d = rs->datagram;
	struct sockaddr_storage local;
	if (d->mr)
		return 0;
	int err = local_name(rs, to, &local);
	if (err)
		return err;
	err = create_qp(d, &local);
	if (err && d->id)
		destroy_qp(d);
	return err;
}

/* ---- over UDP ---- */

static ssize_t send_udp(struct rs *rs, const struct sockaddr_storage *to, enum rs_udp_op op, const void *buf,
			size_t len)
{
	struct rs_datagram *d = rs->datagram;
	struct rs_udp_header h;
	rs_udp_header_build(&h, &d->header, op, d->id->qp->qp_num);
	struct iovec iov[2] = {{&h, h.length}, {(void *)buf, len}};
	struct msghdr msg = {.msg_name = (void *)to,
			     .msg_namelen = rs_addr_len((const struct sockaddr *)to),
			     .msg_iov = iov,
			     .msg_iovlen = 2};
	return roci_sys_sendmsg(rs->fd, &msg, MSG_DONTWAIT) < 0 ? -errno : (ssize_t)len;
}

/* Datagrams may be lost: this one is, if there is no room or no memory. */
static void enqueue(struct rs_datagram *d, const struct sockaddr_storage *from, const uint8_t *data, size_t len)
{
	struct pending *p = d->pending_count < MAX_PENDING ? malloc(sizeof(*p) + len) : NULL;
	if (!p)
		return;
	p->from = *from;
	p->len = len;
	memcpy(p->data, data, len);
	roci_list_append(&d->pending, &p->queued);
	d->pending_count++;
}

static void process_udp(struct rs *rs, const struct sockaddr_storage *from, const uint8_t *bytes, size_t len)
{
	struct rs_datagram *d = rs->datagram;
	struct rs_udp_header h;
	if (!rs_udp_header_parse(bytes, len, &h) || ensure_qp(rs, from))
		return;
	rs_dest_heard(&d->dests, from, d->id, rs_udp_header_qpn(&h), h.op == RS_UDP_CTRL);
	if (h.op != RS_UDP_DATA)
		return;
	send_udp(rs, from, RS_UDP_CTRL, NULL, 0);
	enqueue(d, from, bytes + h.length, len - h.length);
}

/* What is left is there at the next call: the socket stays readable. */
static void receive_udp(struct rs *rs)
{
	struct rs_datagram *d = rs->datagram;
	for (unsigned i = 0; i < UDP_BURST; i++) {
		struct sockaddr_storage from = {0};
		socklen_t from_len = sizeof(from);
		ssize_t len = roci_sys_recvfrom(rs->fd, d->received, sizeof(d->received), MSG_DONTWAIT,
						(struct sockaddr *)&from, &from_len);
		if (len < 0)
			return;
		process_udp(rs, &from, d->received, (size_t)len);
	}
}

/* ---- over UD ---- */

static void received(struct rs_datagram *d, const struct ibv_wc *wc)
{
	struct sockaddr_storage from;
	size_t header_len;
	const uint8_t *bytes = d->memory + wc->wr_id * d->slot + GRH_BYTES;
	if (wc->status != IBV_WC_SUCCESS)
		return;
	size_t len = wc->byte_len > GRH_BYTES ? wc->byte_len - GRH_BYTES : 0;
	if (rs_ud_header_parse(bytes, len, &from, &header_len))
		enqueue(d, &from, bytes + header_len, len - header_len);
	post_slot(d, (unsigned)wc->wr_id);
}

static void sent(struct rs_datagram *d, unsigned send)
{
	d->send_to[send]->sends--;
	d->sends--;
}

static void progress(struct rs *rs)
{
	struct rs_datagram *d = rs->datagram;
	struct ibv_wc wcs[16];
	int count;
	receive_udp(rs);
	if (!d->mr)
		return;
	/* The rest stays in the CQ while our queue is full. */
	while (d->pending_count + 16 <= MAX_PENDING && (count = ibv_poll_cq(d->id->recv_cq, 16, wcs)) > 0) {
		for (int i = 0; i < count; i++) {
			if (wcs[i].wr_id >= QUEUE)
				sent(d, (unsigned)wcs[i].wr_id - QUEUE);
			else
				received(d, &wcs[i]);
		}
	}
}

static void take_cq_events(struct rs_datagram *d)
{
	struct ibv_cq *cq;
	void *context;
	while (d->mr && !ibv_get_cq_event(d->id->recv_cq_channel, &cq, &context))
		ibv_ack_cq_events(cq, 1);
}

static void arm(struct rs_datagram *d)
{
	take_cq_events(d);
	if (d->mr)
		ibv_req_notify_cq(d->id->recv_cq, 0);
}

int rs_datagram_cq_fd(const struct rs *rs)
{
	return rs->datagram->mr ? rs->datagram->id->recv_cq_channel->fd : -1;
}

short rs_datagram_events(struct rs *rs, short asked, bool arm_it)
{
	struct rs_datagram *d = rs->datagram;
	pthread_mutex_lock(&rs->lock);
	if (arm_it)
		arm(d);
	progress(rs);
	short events = 0;
	if (!roci_list_empty(&d->pending))
		events |= POLLIN | POLLRDNORM;
	if (d->sends < QUEUE)
		events |= POLLOUT | POLLWRNORM;
	pthread_mutex_unlock(&rs->lock);
	return events & asked;
}

/* Sleeps until something happens, with the lock released. */
static int wait_for_more(struct rs *rs)
{
	struct rs_datagram *d = rs->datagram;
	unsigned pending = d->pending_count, sends = d->sends;
	arm(d);
	progress(rs);
	if (d->pending_count != pending || d->sends != sends)
		return 0;
	struct pollfd fds[2] = {{.fd = rs->fd, .events = POLLIN}, {.fd = rs_datagram_cq_fd(rs), .events = POLLIN}};
	pthread_mutex_unlock(&rs->lock);
	int err = rs_sleep(fds, 2, 100); /* again soon: another thread may take our event */
	pthread_mutex_lock(&rs->lock);
	return err;
}

/* ---- the calls ---- */

static ssize_t send_ud(struct rs_datagram *d, struct rs_dest *dest, const void *buf, size_t len)
{
	unsigned slot = QUEUE + d->next_send;
	uint8_t *bytes = d->memory + slot * d->slot;
	memcpy(bytes, &d->header, d->header.length);
	memcpy(bytes + d->header.length, buf, len);
	struct ibv_sge sge = {(uintptr_t)bytes, (uint32_t)(d->header.length + len), d->mr->lkey};
	struct ibv_send_wr wr =
				   {
					   .wr_id = slot,
					   .sg_list = &sge,
					   .num_sge = 1,
					   .opcode = IBV_WR_SEND,
					   .wr.ud = {.ah = dest->ah,
						     .remote_qpn = dest->qpn,
						     .remote_qkey = RDMA_UDP_QKEY},
				   },
			   *bad;
	int err = -ibv_post_send(d->id->qp, &wr, &bad);
	if (err)
		return err;
	d->send_to[d->next_send] = dest;
	dest->sends++;
	d->next_send = (d->next_send + 1) % QUEUE;
	d->sends++;
	return (ssize_t)len;
}

static ssize_t send_locked(struct rs *rs, const void *buf, size_t len, bool nonblock, const struct sockaddr_storage *to)
{
	struct rs_datagram *d = rs->datagram;
	if (!to && !d->dests.peer)
		return -EDESTADDRREQ;
	struct sockaddr_storage name = to ? *to : d->dests.peer->addr;
	int err = ensure_qp(rs, &name);
	if (err)
		return err;
	progress(rs);
	if (len > d->max_payload)
		return -EMSGSIZE;
	while (d->sends == QUEUE) {
		if (nonblock)
			return -EAGAIN;
		err = wait_for_more(rs);
		if (err)
			return err;
		progress(rs);
	}
	/* Only now: rs_dest_use() may forget a destination, and the lock was released. */
	struct rs_dest *dest = rs_dest_use(&d->dests, &name);
	if (!dest)
		return -ENOMEM;
	if (rs_dest_is_known(dest))
		return send_ud(d, dest, buf, len);
	dest->asked = true;
	return send_udp(rs, &dest->addr, RS_UDP_DATA, buf, len);
}

ssize_t rs_datagram_send(struct rs *rs, const void *buf, size_t len, int flags, const struct sockaddr *addr,
			 socklen_t addrlen)
{
	struct sockaddr_storage to = {0};
	if (addr) {
		if (addrlen > sizeof(to) || addr->sa_family != rs->domain)
			return -EINVAL;
		memcpy(&to, addr, addrlen);
	}
	pthread_mutex_lock(&rs->lock);
	ssize_t result = send_locked(rs, buf, len, rs->nonblock || (flags & MSG_DONTWAIT), addr ? &to : NULL);
	pthread_mutex_unlock(&rs->lock);
	return result;
}

ssize_t rs_datagram_sendv(struct rs *rs, const struct iovec *iov, size_t count, int flags)
{
	size_t len = 0, done = 0;
	for (size_t i = 0; i < count; i++) {
		if (iov[i].iov_len > VECTOR_BYTES - len)
			return -EMSGSIZE;
		len += iov[i].iov_len;
	}
	uint8_t *bytes = malloc(VECTOR_BYTES);
	if (!bytes)
		return -ENOMEM;
	for (size_t i = 0; i < count; done += iov[i++].iov_len)
		memcpy(bytes + done, iov[i].iov_base, iov[i].iov_len);
	ssize_t result = rs_datagram_send(rs, bytes, len, flags, NULL, 0);
	free(bytes);
	return result;
}

ssize_t rs_datagram_recv(struct rs *rs, void *buf, size_t len, int flags, struct sockaddr *addr, socklen_t *addrlen)
{
	struct rs_datagram *d = rs->datagram;
	int err = 0;
	pthread_mutex_lock(&rs->lock);
	for (;;) {
		if (roci_list_empty(&d->pending))
			progress(rs);
		if (!roci_list_empty(&d->pending))
			break;
		err = rs->nonblock || (flags & MSG_DONTWAIT) ? -EAGAIN : wait_for_more(rs);
		if (err)
			break;
	}
	ssize_t result = err;
	if (!roci_list_empty(&d->pending)) {
		struct pending *p = pending_of(d->pending.next);
		result = (ssize_t)(p->len < len ? p->len : len);
		memcpy(buf, p->data, (size_t)result);
		if (addr && addrlen) {
			rs_copy_addr((const struct sockaddr *)&p->from, addr, addrlen);
		}
		if (!(flags & MSG_PEEK)) {
			roci_list_remove(&p->queued);
			d->pending_count--;
			free(p);
		}
	}
	pthread_mutex_unlock(&rs->lock);
	return result;
}

int rs_datagram_connect(struct rs *rs, const struct sockaddr *addr, socklen_t len)
{
	struct sockaddr_storage to = {0};
	if (len > sizeof(to) || addr->sa_family != rs->domain)
		return -EINVAL;
	memcpy(&to, addr, len);
	pthread_mutex_lock(&rs->lock);
	struct rs_dest *peer = rs_dest_use(&rs->datagram->dests, &to);
	rs->datagram->dests.peer = peer;
	pthread_mutex_unlock(&rs->lock);
	return peer ? 0 : -ENOMEM;
}

/* The UDP socket is not connected: its peer is ours. */
int rs_datagram_peer_name(struct rs *rs, struct sockaddr_storage *name)
{
	pthread_mutex_lock(&rs->lock);
	const struct rs_dest *peer = rs->datagram->dests.peer;
	if (peer)
		*name = peer->addr;
	pthread_mutex_unlock(&rs->lock);
	return peer ? 0 : -ENOTCONN;
}

int rs_datagram_name(struct rs *rs, struct sockaddr_storage *name)
{
	socklen_t len = sizeof(*name);
	pthread_mutex_lock(&rs->lock);
	const struct rs_dest *peer = rs->datagram->dests.peer;
	int err = 0;
	if (peer)
		err = local_name(rs, &peer->addr, name);
	else if (roci_sys_getsockname(rs->fd, (struct sockaddr *)name, &len))
		err = -errno;
	pthread_mutex_unlock(&rs->lock);
	return err;
}
