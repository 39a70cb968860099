/* SPDX-License-Identifier: BSD-2-Clause */
#include "mover_peer.h"

#include <stdio.h>
#include <string.h>

#include "check.h"

void mover_peer_init(struct mover_peer *p, struct mover_secure *secure)
{
	CHECK(secure);
	*p = (struct mover_peer){.secure = secure, .takes = (uint16_t)ONE_OF(0, 1, PROTO_DESCRIPTORS, UINT16_MAX)};
}

void mover_peer_destroy(struct mover_peer *p)
{
	mover_secure_destroy(p->secure);
}

static bool deliver(struct mover_peer *p, enum proto_type type, bool sealed, uint8_t *message, size_t body_len)
{
	struct cursor_out head = cursor_out(message, PROTO_HEADER_BYTES);

	proto_put_header(&head, type, sealed, (uint32_t)body_len);
	return p->control && fake_receive(p->control, message, PROTO_HEADER_BYTES + body_len, false, 0);
}

static void shake_hands(struct mover_peer *p, const uint8_t *in, size_t len)
{
	static uint8_t message[PROTO_MESSAGE_BYTES];
	size_t out_len = 16384;
	int result = mover_secure_handshake(p->secure, in, len, message + PROTO_HEADER_BYTES, &out_len);

	CHECK(result >= 0 || p->spoiled);
	if (out_len)
		CHECK(deliver(p, PROTO_HELLO, false, message, out_len));
	p->sealed = mover_secure_can_seal(p->secure);
}

uint8_t mover_peer_answer(struct mover_peer *p, uint8_t answer[PROTO_ANSWER_BYTES])
{
	size_t len = PROTO_ANSWER_BYTES;

	CHECK(mover_secure_handshake(p->secure, NULL, 0, answer, &len) == 0);
	return (uint8_t)len;
}

void mover_peer_begin(struct mover_peer *p, const void *answer, size_t len)
{
	CHECK(proto_get_answer(answer, len) == len);
	shake_hands(p, answer, len);
}

enum proto_type mover_peer_hear(struct mover_peer *p, const struct fake_send *send, struct cursor_in *payload)
{
	static uint8_t opened[PROTO_MESSAGE_BYTES];
	const uint8_t *bytes = (const uint8_t *)(uintptr_t)send->sges[0].addr;
	size_t len = sizeof(opened);
	struct proto_header h;

	CHECK(!proto_get_header(bytes, send->sges[0].length, &h));
	if (!h.sealed) {
		if (h.type == PROTO_HELLO)
			shake_hands(p, bytes + PROTO_HEADER_BYTES, h.body_len);
		return 0;
	}
	CHECK(!mover_secure_open(p->secure, bytes + PROTO_HEADER_BYTES, h.body_len, opened, &len));
	*payload = cursor_in(opened, len);
	CHECK(get_u8(payload) == h.type);
	get_u8(payload);
	get_u16(payload);
	p->credits_due++;
	return h.type;
}

bool mover_peer_say(struct mover_peer *p, enum proto_type type, const struct cursor_out *payload)
{
	static uint8_t plain[PROTO_MESSAGE_BYTES], message[PROTO_MESSAGE_BYTES];
	struct cursor_out out = cursor_out(plain, sizeof(plain));
	size_t sealed = PROTO_BODY_BYTES;

	if (!p->sealed || !p->control || !p->control->recv_count)
		return false;
	put_u8(&out, (uint8_t)type);
	put_u8(&out, (uint8_t)p->credits_due);
	put_u16(&out, p->takes);
	if (payload)
		put_bytes(&out, payload->start, cursor_written(payload));
	CHECK(!out.full &&
	      !mover_secure_seal(p->secure, plain, cursor_written(&out), message + PROTO_HEADER_BYTES, &sealed));
	p->credits_due = 0;
	return deliver(p, type, true, message, sealed);
}

void mover_peer_complete(struct mover_peer *p, enum ibv_wc_status status)
{
	while (fake_complete(p->control, status))
		;
	for (unsigned i = 0; i < MOVER_PEER_LANES; i++)
		while (p->lanes[i] && p->lanes[i]->qp && fake_complete(fake_qp_of(p->lanes[i]), status))
			;
}

/* ---- what was seen ---- */

static unsigned long sessions, stored, statuses[MOVER_INTERRUPTED + 1];

void mover_peer_take_event(void *context, const struct mover_event *event)
{
	stored += event->type == MOVER_ENTRY_DONE && event->outcome == MOVER_STORED;
}

void mover_peer_ended(enum mover_status status)
{
	CHECK(status <= MOVER_INTERRUPTED);
	sessions++;
	statuses[status]++;
}

unsigned long mover_peer_report(void)
{
	printf("%lu sessions, %lu entries stored\n", sessions, stored);
	for (unsigned i = 0; i <= MOVER_INTERRUPTED; i++)
		if (statuses[i])
			printf("%8lu %s\n", statuses[i], mover_status_name((enum mover_status)i));
	return stored;
}
