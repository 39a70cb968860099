/* SPDX-License-Identifier: BSD-2-Clause */
#include "rsocket_peer.h"

#include <endian.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/rsocket.h>

#include "checks.h"

#define TIMEOUT_MS 20000
#define QUEUE      64
#define TARGETS    2

static bool channel_is_ready(const struct peer *p, int timeout_ms)
{
	return poll(&(struct pollfd){.fd = p->channel->fd, .events = POLLIN}, 1, timeout_ms) == 1;
}

static struct rdma_cm_event *next(struct peer *p, enum rdma_cm_event_type type)
{
	struct rdma_cm_event *event;

	MUST(!channel_is_ready(p, TIMEOUT_MS));
	MUST(rdma_get_cm_event(p->channel, &event));
	if (event->event != type) {
		printf("peer: event %s, expected %s\n", rdma_event_str(event->event), rdma_event_str(type));
		exit(1);
	}
	return event;
}

void peer_listen(struct peer *p, struct sockaddr *address)
{
	memset(p, 0, sizeof(*p));
	p->channel = rdma_create_event_channel();
	MUST(!p->channel);
	MUST(rdma_create_id(p->channel, &p->listener, NULL, RDMA_PS_TCP));
	MUST(rdma_bind_addr(p->listener, address));
	MUST(rdma_listen(p->listener, 1));
}

static void create_qp(struct peer *p)
{
	struct ibv_qp_init_attr attr = {
		.cap = {.max_send_wr = QUEUE, .max_recv_wr = QUEUE, .max_send_sge = 1, .max_recv_sge = 1},
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
	};

	p->cq = ibv_create_cq(p->id->verbs, 2 * QUEUE, NULL, NULL, 0);
	MUST(!p->cq);
	attr.send_cq = attr.recv_cq = p->cq;
	MUST(rdma_create_qp(p->id, NULL, &attr));
	p->mr = ibv_reg_mr(p->id->pd, p->memory, sizeof(p->memory), IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	MUST(!p->mr);
}

void peer_post_receives(struct peer *p, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		MUST(ibv_post_recv(p->id->qp, &(struct ibv_recv_wr){0}, &(struct ibv_recv_wr *){NULL}));
}

void peer_accept(struct peer *p, unsigned receives)
{
	struct rdma_cm_event *request = next(p, RDMA_CM_EVENT_CONNECT_REQUEST);
	size_t reserved = TARGETS * sizeof(struct peer_sge);

	p->id = request->id;
	MUST(request->param.conn.private_data_len < sizeof(p->remote));
	memcpy(&p->remote, request->param.conn.private_data, sizeof(p->remote));
	rdma_ack_cm_event(request);
	create_qp(p);
	peer_post_receives(p, receives);

	uintptr_t memory = (uintptr_t)p->memory;
	__be32 key = htobe32(p->mr->rkey);
	struct peer_data own = {
		.version = 1,
		.flags = p->remote.flags & 1, /* the byte order */
		.credits = htobe16(QUEUE),
		.targets = {htobe64(memory), key, htobe32(TARGETS)},
		.buffer = {htobe64(memory + reserved), key, htobe32((uint32_t)(sizeof(p->memory) - reserved))},
	};
	struct rdma_conn_param param = {
		.private_data = &own, .private_data_len = sizeof(own), .retry_count = 7, .rnr_retry_count = 7};
	MUST(rdma_accept(p->id, &param));
}

void peer_established(struct peer *p)
{
	rdma_ack_cm_event(next(p, RDMA_CM_EVENT_ESTABLISHED));
}

/* One completion. */
static bool poll_one(struct peer *p, struct ibv_wc *wc)
{
	int count = ibv_poll_cq(p->cq, 1, wc);

	MUST(count < 0);
	if (count && wc->status != IBV_WC_SUCCESS) {
		printf("peer: %s\n", ibv_wc_status_str(wc->status));
		exit(1);
	}
	return count == 1;
}

bool peer_poll(struct peer *p, uint32_t *msg)
{
	struct ibv_wc wc;

	while (poll_one(p, &wc)) {
		if (wc.opcode != IBV_WC_RECV_RDMA_WITH_IMM)
			continue;
		*msg = ntohl(wc.imm_data);
		if (*msg >> 29 != OP_CREDITS)
			return true;
	}
	return false;
}

bool peer_receive(struct peer *p, uint32_t *msg)
{
	while (!peer_poll(p, msg)) {
		if (!p->disconnected && channel_is_ready(p, 0)) {
			rdma_ack_cm_event(next(p, RDMA_CM_EVENT_DISCONNECTED));
			p->disconnected = true;
		} else if (p->disconnected) {
			return false;
		}
	}
	return true;
}

void peer_write(struct peer *p, uint32_t msg, const void *bytes, uint32_t len)
{
	uint8_t *staged = p->memory + sizeof(p->memory) - len;
	struct ibv_sge sge = {(uintptr_t)staged, len, p->mr->lkey};
	struct ibv_send_wr wr = {
		.sg_list = &sge,
		.num_sge = len ? 1 : 0,
		.opcode = IBV_WR_RDMA_WRITE_WITH_IMM,
		.imm_data = htonl(msg),
		.wr.rdma = {.remote_addr = be64toh(p->remote.buffer.addr), .rkey = be32toh(p->remote.buffer.key)},
	};
	struct ibv_wc wc;

	if (len)
		memcpy(staged, bytes, len);
	MUST(ibv_post_send(p->id->qp, &wr, &(struct ibv_send_wr *){NULL}));
	do {
		while (!poll_one(p, &wc))
			;
		/* Messages that it receives meanwhile are credits. */
	} while (wc.opcode != IBV_WC_RDMA_WRITE);
}

void peer_end(struct peer *p)
{
	rdma_destroy_qp(p->id);
	MUST(ibv_destroy_cq(p->cq));
	MUST(ibv_dereg_mr(p->mr));
	MUST(rdma_destroy_id(p->id));
	MUST(rdma_destroy_id(p->listener));
	rdma_destroy_event_channel(p->channel);
}

void datagram_pair(const struct sockaddr *address, int ends[2])
{
	struct sockaddr_in from;
	socklen_t len = sizeof(from);
	char into[8];

	for (int i = 0; i < 2; i++) {
		ends[i] = rsocket(AF_INET, SOCK_DGRAM, 0);
		MUST(ends[i] < 0);
	}
	MUST(rbind(ends[1], address, sizeof(from)));
	MUST(rconnect(ends[0], address, sizeof(from)));
	MUST(rsend(ends[0], "one", 3, 0) != 3);
	MUST(rrecvfrom(ends[1], into, sizeof(into), 0, (struct sockaddr *)&from, &len) != 3);
	MUST(rconnect(ends[1], (struct sockaddr *)&from, len));
	MUST(rsend(ends[1], "two", 3, 0) != 3);
	MUST(rrecv(ends[0], into, sizeof(into), 0) != 3);
	/* The answers to both messages. */
	MUST(rrecv(ends[0], into, sizeof(into), MSG_DONTWAIT) != -1 || errno != EAGAIN);
	MUST(rrecv(ends[1], into, sizeof(into), MSG_DONTWAIT) != -1 || errno != EAGAIN);
}
