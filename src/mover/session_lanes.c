/* SPDX-License-Identifier: BSD-2-Clause */
/* A session's data connections (lanes), their short messages, and the windows that move over them. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "mover/chunk_cipher.h"
#include "mover/session.h"
#include "mover/wr_id.h"

static size_t messages_bytes(const struct session *s)
{
	return (size_t)s->lanes.count * s->lanes.slots * PROTO_DONE_BYTES;
}

bool session_open_lanes(struct session *s, int local_access)
{
	struct session_lanes *lanes = &s->lanes;
	size_t bytes = s->terms.chunk_bytes + CHUNK_CIPHER_TAG_BYTES;
	int err = window_pool_create(&s->pool, s->dev.pd, s->terms.windows, bytes, local_access);

	lanes->count = s->terms.qps;
	lanes->slots = s->terms.windows + 1u;
	if (!err) {
		lanes->messages = calloc(1, messages_bytes(s));
		err = lanes->messages ? 0 : -ENOMEM;
	}
	if (!err) {
		lanes->mr = ibv_reg_mr(s->dev.pd, lanes->messages, messages_bytes(s), IBV_ACCESS_LOCAL_WRITE);
		err = lanes->mr ? 0 : errno ? -errno : -ENOMEM;
	}
	if (err)
		session_fail_errno(s, err, SESSION_NO_MEMORY);
	return !err;
}

bool session_fit_windows(struct session *s, int local_access)
{
	size_t bytes = s->terms.chunk_bytes + CHUNK_CIPHER_TAG_BYTES;
	int err = 0;

	if (s->pool.count != s->terms.windows || s->pool.window_bytes != bytes) {
		window_pool_destroy(&s->pool);
		err = window_pool_create(&s->pool, s->dev.pd, s->terms.windows, bytes, local_access);
	}
	if (err)
		session_fail_errno(s, err, SESSION_NO_MEMORY);
	return !err;
}

void session_close_lanes(struct session *s)
{
	for (unsigned i = 0; i < MOVER_MAX_QPS; i++)
		connection_destroy(&s->lanes.conns[i]);
	window_pool_destroy(&s->pool);
	if (s->lanes.mr)
		ibv_dereg_mr(s->lanes.mr);
	free(s->lanes.messages);
	s->lanes = (struct session_lanes){0};
}

bool session_lane_create_qp(struct session *s, unsigned lane)
{
	struct connection_size size = {.sends = 2 * s->lanes.slots, .receives = s->lanes.slots};
	struct ibv_cq *cq = s->dev.cqs[lane % s->dev.cq_count];
	int err = connection_create_qp(&s->lanes.conns[lane], s->dev.pd, cq, &size);

	if (err)
		session_fail_errno(s, err, "making a data QP");
	return !err;
}

uint8_t *session_lane_buffer(struct session *s, unsigned lane, unsigned slot)
{
	return s->lanes.messages + ((size_t)lane * s->lanes.slots + slot) * PROTO_DONE_BYTES;
}

bool session_lane_receive(struct session *s, unsigned lane, unsigned slot)
{
	struct ibv_sge sge = {(uintptr_t)session_lane_buffer(s, lane, slot), PROTO_DONE_BYTES, s->lanes.mr->lkey};
	struct ibv_recv_wr *bad, wr = {.wr_id = wr_id_make(WR_LANE_RECV, lane, slot), .sg_list = &sge, .num_sge = 1};
	int err = ibv_post_recv(s->lanes.conns[lane].id->qp, &wr, &bad);

	if (err)
		session_fail(s, MOVER_LOST, "the connection broke: %s", strerror(err));
	return !err;
}

bool session_lane_send(struct session *s, unsigned lane, unsigned slot, uint64_t wr_id, uint64_t seq, uint16_t window)
{
	uint8_t *bytes = session_lane_buffer(s, lane, slot);
	struct ibv_sge sge = {(uintptr_t)bytes, PROTO_DONE_BYTES, s->lanes.mr->lkey};
	struct ibv_send_wr *bad, wr = {
					 .wr_id = wr_id,
					 .sg_list = &sge,
					 .num_sge = 1,
					 .opcode = IBV_WR_SEND,
					 .send_flags = IBV_SEND_SIGNALED,
				 };
	int err;

	proto_put_done(bytes, seq, window);
	err = ibv_post_send(s->lanes.conns[lane].id->qp, &wr, &bad);
	if (err)
		session_fail(s, MOVER_LOST, "the connection broke: %s", strerror(err));
	return !err;
}
