/* SPDX-License-Identifier: BSD-2-Clause */
#include "mover/control.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "mover/clock.h"
#include "mover/secure.h"
#include "mover/window.h"
#include "mover/wr_id.h"

#define RECEIVES PROTO_CREDITS
#define SENDS    PROTO_CREDITS
#define RESERVED 1 /* credit for what must get through: ERROR, BYE, and a PING that returns credits */

size_t control_bytes(void)
{
	return (size_t)(RECEIVES + SENDS) * PROTO_MESSAGE_BYTES;
}

struct connection_size control_connection_size(void)
{
	return (struct connection_size){.sends = SENDS + 1, .receives = RECEIVES};
}

int control_create(struct control *c, struct ibv_pd *pd)
{
	c->plain = malloc(PROTO_MESSAGE_BYTES);
	c->opened = malloc(PROTO_MESSAGE_BYTES);
	if (!c->plain || !c->opened)
		return -ENOMEM;
	c->memory = window_map_memory(control_bytes());
	if (!c->memory)
		return -ENOMEM;
	c->mr = ibv_reg_mr(pd, c->memory, control_bytes(), IBV_ACCESS_LOCAL_WRITE);
	if (!c->mr)
		return errno ? -errno : -ENOMEM;
	c->credits = PROTO_CREDITS;
	c->takes = PROTO_DESCRIPTORS;
	c->free_sends = (1u << SENDS) - 1;
	return 0;
}

void control_destroy(struct control *c)
{
	if (c->mr)
		ibv_dereg_mr(c->mr);
	if (c->memory)
		munmap(c->memory, control_bytes());
	free(c->plain);
	free(c->opened);
	mover_secure_destroy(c->secure);
	*c = (struct control){0};
}

static uint8_t *buffer_bytes(const struct control *c, unsigned buffer)
{
	return c->memory + (size_t)buffer * PROTO_MESSAGE_BYTES;
}

static int post_receive(struct control *c, unsigned buffer)
{
	struct ibv_sge sge = {(uintptr_t)buffer_bytes(c, buffer), PROTO_MESSAGE_BYTES, c->mr->lkey};
	struct ibv_recv_wr wr = {.wr_id = wr_id_make(WR_CONTROL_RECV, 0, buffer), .sg_list = &sge, .num_sge = 1};
	struct ibv_recv_wr *bad;
	return -ibv_post_recv(c->conn.id->qp, &wr, &bad);
}

int control_start(struct control *c)
{
	for (unsigned i = 0; i < RECEIVES; i++) {
		int err = post_receive(c, i);
		if (err)
			return err;
	}
	return 0;
}

/* A PING that returns nothing leaves the last credit, too. Else both sides could spend all of theirs on such PINGs
 * while the network is away, and then neither could return what the other waits for. */
bool control_can_send(const struct control *c, enum proto_type type)
{
	bool returns = type == PROTO_PING && c->credits_due;
	unsigned keep = returns || type == PROTO_ERROR || type == PROTO_BYE ? 0 : RESERVED;

	return c->free_sends && c->credits > keep && c->conn.state == CONNECTION_UP;
}

bool control_is_roomy(const struct control *c)
{
	return c->credits > PROTO_CREDITS / 2;
}

bool control_credits_due(const struct control *c)
{
	return c->sealed && c->credits_due >= PROTO_CREDITS / 2;
}

struct cursor_out *control_begin(struct control *c, enum proto_type type)
{
	assert(control_can_send(c, type));
	c->out_type = type;
	c->out = cursor_out(c->plain, PROTO_PREFIX_BYTES + PROTO_PAYLOAD_BYTES);
	if (c->sealed) {
		put_u8(&c->out, (uint8_t)type);
		put_u8(&c->out, (uint8_t)c->credits_due);
		put_u16(&c->out, c->takes);
	}
	return &c->out;
}

/* Writes the whole message to `to`. Returns its length or -errno. */
static int build(struct control *c, uint8_t *to)
{
	struct cursor_out head = cursor_out(to, PROTO_HEADER_BYTES);
	size_t len = PROTO_BODY_BYTES;

	if (c->out.full)
		return -EMSGSIZE;
	if (c->sealed) {
		int err =
			mover_secure_seal(c->secure, c->plain, cursor_written(&c->out), to + PROTO_HEADER_BYTES, &len);
		if (err)
			return err;
	} else {
		len = cursor_written(&c->out);
		memcpy(to + PROTO_HEADER_BYTES, c->plain, len);
	}
	proto_put_header(&head, c->out_type, c->sealed, (uint32_t)len);
	return (int)(PROTO_HEADER_BYTES + len);
}

int control_send(struct control *c)
{
	unsigned slot = (unsigned)__builtin_ctz(c->free_sends);
	unsigned buffer = RECEIVES + slot;
	int len = build(c, buffer_bytes(c, buffer));
	struct ibv_sge sge = {(uintptr_t)buffer_bytes(c, buffer), (uint32_t)len, c->mr->lkey};
	struct ibv_send_wr *bad, wr = {
					 .wr_id = wr_id_make(WR_CONTROL_SEND, 0, buffer),
					 .sg_list = &sge,
					 .num_sge = 1,
					 .opcode = IBV_WR_SEND,
					 .send_flags = IBV_SEND_SIGNALED,
				 };

	if (len < 0)
		return len;
	if (c->sealed)
		c->credits_due = 0;
	c->credits--;
	c->free_sends &= ~(1u << slot);
	c->posted_ns[slot] = mover_now_ns();
	return -ibv_post_send(c->conn.id->qp, &wr, &bad);
}

void control_sent(struct control *c, unsigned buffer)
{
	unsigned slot = buffer - RECEIVES;

	c->free_sends |= 1u << slot;
	round_trip_add(&c->round_trip, mover_now_ns() - c->posted_ns[slot]);
}

int control_received(struct control *c, unsigned buffer, size_t len, enum proto_type *type, struct cursor_in *payload)
{
	const uint8_t *bytes = buffer_bytes(c, buffer);
	struct proto_header header;
	size_t opened = PROTO_MESSAGE_BYTES;
	int err = proto_get_header(bytes, len, &header);

	if (err)
		return err;
	*type = header.type;
	*payload = cursor_in(bytes + PROTO_HEADER_BYTES, header.body_len);
	/* Before the end of the handshake only HELLO may come, or ERROR of a peer that gives up. */
	if (header.sealed != c->trusted)
		return -EPROTO;
	if (!header.sealed)
		return header.type == PROTO_HELLO || header.type == PROTO_ERROR ? 0 : -EPROTO;
	err = mover_secure_open(c->secure, bytes + PROTO_HEADER_BYTES, header.body_len, c->opened, &opened);
	if (err)
		return err;
	*payload = cursor_in(c->opened, opened);
	if (get_u8(payload) != header.type)
		return -EPROTO;
	c->credits += get_u8(payload);
	c->peer_takes = get_u16(payload);
	return payload->bad || c->credits > PROTO_CREDITS ? -EPROTO : 0;
}

int control_release(struct control *c, unsigned buffer)
{
	c->credits_due++;
	return post_receive(c, buffer);
}
