/* SPDX-License-Identifier: BSD-2-Clause */
/* A hostile peer of the file mover: connections, handshake and messages, for programs that break the protocol. It is
 * made of the mover's own parts, so everything is right except what a case makes wrong. It has no ticket: the other
 * side runs with --open. */
#ifndef HOSTILE_H
#define HOSTILE_H

#include "mover/control.h"

#define HOSTILE_LANES    2
#define HOSTILE_REQUESTS 8
#define HOSTILE_BYTES    (1u << 20)

struct hostile {
	struct rdma_event_channel *channel;
	struct rdma_cm_id *listener;
	struct {
		struct rdma_cm_id *id;
		bool data;
	} requests[HOSTILE_REQUESTS]; /* connections that nobody has accepted yet */
	unsigned request_count;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct control control;
	struct connection lanes[HOSTILE_LANES];
	unsigned lane_count;
	struct ibv_mr *mr;
	uint8_t *memory; /* HOSTILE_BYTES, and then greetings */
	struct proto_terms terms;
	void (*spoil_answer)(uint8_t *bytes, size_t *len); /* to the connect request; NULL: it is right */
	uint8_t flight[16384];                             /* of the handshake, to be sent */
	size_t flight_len;

	/* The last message, until the next call. */
	enum proto_type type;
	uint8_t payload[PROTO_MESSAGE_BYTES];
	size_t payload_len;

	/* How the other side has reacted. */
	bool closed, refused;
	bool digests; /* a HAVE has come */
	bool granted; /* a GRANT has come */
	unsigned lane_messages;
	enum proto_reject reject;
	bool error;
	struct proto_end end;
	char text[PROTO_MAX_TEXT + 1];
	enum ibv_wc_status failed; /* of a work request of ours */
};

/* A failure of the test itself or of the machine ends the program with exit status 2. */
_Noreturn void hostile_fail(const char *what);
#define MUST(condition)                                                                                                \
	do {                                                                                                           \
		if (!(condition))                                                                                      \
			hostile_fail(#condition);                                                                      \
	} while (0)

/* Connects the control connection; false if it was rejected. */
bool hostile_connect(struct hostile *h, const char *host, unsigned port, const struct proto_request *request);
/* Listens on any port, which it prints, and accepts one control connection. */
void hostile_accept(struct hostile *h, const char *host);
/* Forgets that connection, and accepts another. */
void hostile_accept_again(struct hostile *h);
/* The handshake of a sender, once it is connected. */
void hostile_enter(struct hostile *h);
/* That of a receiver: takes the sender's flight, after which its messages can be read; then says its own. */
void hostile_hear(struct hostile *h);
void hostile_finish(struct hostile *h);

/* Connects a data connection to the peer of the control connection; false if it was rejected. Or accepts the next. */
bool hostile_connect_lane(struct hostile *h, const struct proto_request *request);
void hostile_accept_lane(struct hostile *h);
/* Rejects the next. */
void hostile_refuse_lane(struct hostile *h);
/* `len` bytes from `memory` on: SEND, or RDMA WRITE where `grant` is given. */
void hostile_post(struct hostile *h, unsigned lane, const struct proto_grant *grant, uint64_t beyond, uint32_t len);
void hostile_done(struct hostile *h, unsigned lane, uint64_t seq, uint16_t window);

/* Messages as the mover makes them, or any bytes. */
struct cursor_out *hostile_begin(struct hostile *h, enum proto_type type);
void hostile_send(struct hostile *h);
void hostile_send_raw(struct hostile *h, const void *bytes, size_t len);
/* A PING after so many KeyUpdates (RFC 8446 s.4.6.3), each of which asks for an answer. 2400 nearly fill a message. */
void hostile_update_keys(struct hostile *h, unsigned updates);

/* Takes what has come. True if it was a message. */
bool hostile_look(struct hostile *h);
/* Waits for the next message, of any type. False if the end comes instead, or nothing for ten seconds. */
bool hostile_next(struct hostile *h);
/* Waits for a message of that type. False if an ERROR or the end comes instead, or nothing for ten seconds. */
bool hostile_expect(struct hostile *h, enum proto_type type);
/* Waits until the other side has closed the connection; false if it does not in 20 seconds. */
bool hostile_wait_closed(struct hostile *h);

#endif
