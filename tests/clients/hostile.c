/* SPDX-License-Identifier: BSD-2-Clause */
#include "hostile.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <openssl/ssl.h>

#include "mover/wr_id.h"

#define PATIENCE_MS 10000
#define SLOTS       8 /* greetings */

_Noreturn void hostile_fail(const char *what)
{
	fprintf(stderr, "hostile: %s: %s\n", what, strerror(errno));
	exit(2);
}

static uint64_t now_ms(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* Receiving */

static void got_message(struct hostile *h, const struct ibv_wc *wc)
{
	unsigned buffer = wr_id_index(wc->wr_id);
	struct cursor_in payload;

	/* what is sealed cannot be read before the end of the handshake */
	if (control_received(&h->control, buffer, wc->byte_len, &h->type, &payload)) {
		MUST(!h->control.trusted);
		payload = (struct cursor_in){0};
		h->type = PROTO_TYPES;
	}
	h->payload_len = (size_t)(payload.end - payload.at);
	if (h->payload_len)
		memcpy(h->payload, payload.at, h->payload_len);
	MUST(control_release(&h->control, buffer) == 0);
	h->digests |= h->type == PROTO_HAVE;
	h->granted |= h->type == PROTO_GRANT;
	if (h->type != PROTO_ERROR)
		return;
	payload = cursor_in(h->payload, h->payload_len);
	MUST(proto_get_end(&payload, &h->end) == 0);
	proto_text_copy(h->text, sizeof(h->text), &h->end.text);
	h->error = true;
}

/* One completion; true if it was a message. */
static bool poll_one(struct hostile *h)
{
	struct ibv_wc wc;

	if (!h->cq || ibv_poll_cq(h->cq, 1, &wc) != 1)
		return false;
	if (wc.status != IBV_WC_SUCCESS) {
		if (wc.status != IBV_WC_WR_FLUSH_ERR && !h->failed)
			h->failed = wc.status;
		return false;
	}
	if (wr_id_kind(wc.wr_id) == WR_CONTROL_SEND)
		control_sent(&h->control, wr_id_index(wc.wr_id));
	h->lane_messages += wr_id_kind(wc.wr_id) == WR_LANE_RECV;
	if (wr_id_kind(wc.wr_id) != WR_CONTROL_RECV)
		return false;
	connection_received(&h->control.conn);
	got_message(h, &wc);
	return true;
}

static void poll_event(struct hostile *h)
{
	struct rdma_cm_event *event;
	struct connection *conn;

	if (rdma_get_cm_event(h->channel, &event))
		return;
	conn = event->id->context;
	if (event->event == RDMA_CM_EVENT_CONNECT_REQUEST) {
		struct proto_request request;

		MUST(h->request_count < HOSTILE_REQUESTS);
		MUST(!proto_get_request(event->param.conn.private_data, event->param.conn.private_data_len, &request));
		h->requests[h->request_count].data = request.data;
		h->requests[h->request_count++].id = event->id;
	} else if (conn && connection_event(conn, event) && conn->state == CONNECTION_DOWN) {
		h->closed = true;
	}
	rdma_ack_cm_event(event);
}

static void pause_a_bit(void)
{
	nanosleep(&(struct timespec){0, 1000000}, NULL);
}

bool hostile_look(struct hostile *h)
{
	poll_event(h);
	if (poll_one(h))
		return true;
	pause_a_bit();
	return false;
}

bool hostile_next(struct hostile *h)
{
	uint64_t end = now_ms() + PATIENCE_MS;

	while (now_ms() < end && !h->closed)
		if (hostile_look(h))
			return true;
	return false;
}

bool hostile_expect(struct hostile *h, enum proto_type type)
{
	while (hostile_next(h)) {
		if (h->type == type)
			return true;
		if (h->error)
			return false;
	}
	return false;
}

bool hostile_wait_closed(struct hostile *h)
{
	uint64_t end = now_ms() + 2 * PATIENCE_MS;

	while (now_ms() < end && !h->closed) {
		poll_event(h);
		if (!poll_one(h))
			pause_a_bit();
	}
	for (unsigned i = 0; i < 1000; i++) /* messages that came before the end */
		poll_one(h);
	return h->closed;
}

/* Connections */

static void wait_connection(struct hostile *h, struct connection *conn, enum connection_state state)
{
	uint64_t end = now_ms() + PATIENCE_MS;

	while (conn->state != state && conn->state != CONNECTION_FAILED) {
		MUST(now_ms() < end);
		poll_event(h);
		poll_one(h);
		pause_a_bit();
	}
}

static void open_channel(struct hostile *h)
{
	MUST((h->channel = rdma_create_event_channel()) != NULL);
	fcntl(h->channel->fd, F_SETFL, O_NONBLOCK);
}

static void open_device(struct hostile *h)
{
	struct ibv_context *verbs = h->control.conn.id->verbs;
	struct connection_size size = control_connection_size();

	MUST((h->pd = ibv_alloc_pd(verbs)) != NULL);
	MUST((h->cq = ibv_create_cq(verbs, 1000, NULL, NULL, 0)) != NULL);
	MUST((h->memory = calloc(1, HOSTILE_BYTES + SLOTS * PROTO_DONE_BYTES)) != NULL);
	h->mr = ibv_reg_mr(h->pd, h->memory, HOSTILE_BYTES + SLOTS * PROTO_DONE_BYTES,
			   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE);
	MUST(h->mr != NULL);
	MUST(control_create(&h->control, h->pd) == 0);
	MUST(connection_create_qp(&h->control.conn, h->pd, h->cq, &size) == 0);
	MUST(control_start(&h->control) == 0);
}

/* Whether it is up, or has been rejected. */
static bool connected(struct hostile *h, struct connection *conn, const struct proto_request *request)
{
	MUST(connection_connect(conn, request) == 0);
	wait_connection(h, conn, CONNECTION_UP);
	if (conn->state == CONNECTION_UP)
		return true;
	MUST(conn->rejected);
	h->refused = true;
	h->reject = conn->reject;
	return false;
}

bool hostile_connect(struct hostile *h, const char *host, unsigned port, const struct proto_request *request)
{
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};

	MUST(inet_pton(AF_INET, host, &to.sin_addr) == 1);
	open_channel(h);
	MUST(connection_resolve(&h->control.conn, h->channel, NULL, (struct sockaddr *)&to) == 0);
	wait_connection(h, &h->control.conn, CONNECTION_RESOLVED);
	MUST(h->control.conn.state == CONNECTION_RESOLVED);
	open_device(h);
	return connected(h, &h->control.conn, request);
}

/* The newest that waits; NULL: there is none. */
static struct rdma_cm_id *take_request(struct hostile *h, bool data)
{
	struct rdma_cm_id *id;

	for (unsigned i = h->request_count; i--;)
		if (h->requests[i].data == data) {
			id = h->requests[i].id;
			h->requests[i] = h->requests[--h->request_count];
			return id;
		}
	return NULL;
}

/* A sender asks for its data connections at once: one of a session that is over may still be there. */
static struct rdma_cm_id *wait_request(struct hostile *h, bool data)
{
	uint64_t end = now_ms() + 2 * PATIENCE_MS;
	struct rdma_cm_id *id;

	while (!(id = take_request(h, data))) {
		MUST(now_ms() < end);
		poll_event(h);
		poll_one(h);
		pause_a_bit();
	}
	return id;
}

/* The next step, of the handshake. Returns the length of what the other side has to get. */
static size_t next_step(struct hostile *h, int expected, const void *in, size_t in_len)
{
	h->flight_len = sizeof(h->flight);
	MUST(mover_secure_handshake(h->control.secure, in, in_len, h->flight, &h->flight_len) == expected);
	h->control.trusted = expected == 1;
	return h->flight_len;
}

static void accept_control(struct hostile *h)
{
	h->control.conn.id = wait_request(h, false);
	h->control.conn.id->context = &h->control.conn;
	open_device(h);
	MUST((h->control.secure = mover_secure_receiver(NULL)) != NULL);
	MUST(next_step(h, 0, NULL, 0) <= PROTO_ANSWER_BYTES);
	if (h->spoil_answer)
		h->spoil_answer(h->flight, &h->flight_len);
	MUST(connection_accept(&h->control.conn, h->flight, h->flight_len) == 0);
}

void hostile_accept(struct hostile *h, const char *host)
{
	struct sockaddr_in own = {.sin_family = AF_INET};

	MUST(inet_pton(AF_INET, host, &own.sin_addr) == 1);
	open_channel(h);
	MUST(rdma_create_id(h->channel, &h->listener, NULL, RDMA_PS_TCP) == 0);
	MUST(rdma_bind_addr(h->listener, (struct sockaddr *)&own) == 0);
	MUST(rdma_listen(h->listener, 8) == 0);
	printf("port %u\n", ntohs(rdma_get_src_port(h->listener)));
	fflush(stdout);
	accept_control(h);
}

void hostile_accept_again(struct hostile *h)
{
	h->control = (struct control){0};
	h->closed = h->error = false;
	accept_control(h);
}

static void create_lane(struct hostile *h, struct connection *conn)
{
	struct connection_size size = {.sends = 64, .receives = 64};

	conn->id->context = conn;
	MUST(connection_create_qp(conn, h->pd, h->cq, &size) == 0);
	for (unsigned i = 0; i < 32; i++) {
		struct ibv_sge sge = {(uintptr_t)h->memory, HOSTILE_BYTES, h->mr->lkey};
		struct ibv_recv_wr *bad, wr = {.wr_id = wr_id_make(WR_LANE_RECV, 0, 0), .sg_list = &sge, .num_sge = 1};
		MUST(ibv_post_recv(conn->id->qp, &wr, &bad) == 0);
	}
}

bool hostile_connect_lane(struct hostile *h, const struct proto_request *request)
{
	struct connection *conn = &h->lanes[h->lane_count];

	MUST(connection_resolve(conn, h->channel, NULL, rdma_get_peer_addr(h->control.conn.id)) == 0);
	wait_connection(h, conn, CONNECTION_RESOLVED);
	MUST(conn->state == CONNECTION_RESOLVED);
	create_lane(h, conn);
	if (!connected(h, conn, request))
		return false;
	hostile_done(h, h->lane_count++, UINT64_MAX, PROTO_NO_WINDOW);
	return true;
}

void hostile_accept_lane(struct hostile *h)
{
	struct connection *conn = &h->lanes[h->lane_count++];

	conn->id = wait_request(h, true);
	create_lane(h, conn);
	MUST(connection_accept(conn, NULL, 0) == 0);
}

void hostile_refuse_lane(struct hostile *h)
{
	struct rdma_cm_id *id = wait_request(h, true);

	connection_reject(id, PROTO_REJECT_UNKNOWN);
	MUST(rdma_destroy_id(id) == 0);
}

void hostile_post(struct hostile *h, unsigned lane, const struct proto_grant *grant, uint64_t beyond, uint32_t len)
{
	struct ibv_sge sge = {(uintptr_t)h->memory, len, h->mr->lkey};
	struct ibv_send_wr *bad, wr = {.wr_id = wr_id_make(WR_WINDOW, lane, 0),
				       .sg_list = &sge,
				       .num_sge = 1,
				       .opcode = grant ? IBV_WR_RDMA_WRITE : IBV_WR_SEND,
				       .send_flags = IBV_SEND_SIGNALED};

	if (grant) {
		wr.wr.rdma.remote_addr = grant->addr + beyond;
		wr.wr.rdma.rkey = grant->rkey;
	}
	MUST(ibv_post_send(h->lanes[lane].id->qp, &wr, &bad) == 0);
}

void hostile_done(struct hostile *h, unsigned lane, uint64_t seq, uint16_t window)
{
	static unsigned slot;
	uint8_t *bytes = h->memory + HOSTILE_BYTES + (slot++ % SLOTS) * PROTO_DONE_BYTES;
	struct ibv_sge sge = {(uintptr_t)bytes, PROTO_DONE_BYTES, h->mr->lkey};
	struct ibv_send_wr *bad, wr = {.wr_id = wr_id_make(WR_LANE_SEND, lane, 0),
				       .sg_list = &sge,
				       .num_sge = 1,
				       .opcode = IBV_WR_SEND,
				       .send_flags = IBV_SEND_SIGNALED};

	proto_put_done(bytes, seq, window);
	MUST(ibv_post_send(h->lanes[lane].id->qp, &wr, &bad) == 0);
}

/* Messages */

struct cursor_out *hostile_begin(struct hostile *h, enum proto_type type)
{
	uint64_t end = now_ms() + PATIENCE_MS;

	while (!control_can_send(&h->control, type) && !h->closed) {
		MUST(now_ms() < end);
		poll_event(h);
		poll_one(h);
	}
	MUST(!h->closed);
	return control_begin(&h->control, type);
}

void hostile_send(struct hostile *h)
{
	MUST(control_send(&h->control) == 0);
}

void hostile_send_raw(struct hostile *h, const void *bytes, size_t len)
{
	struct ibv_sge sge = {(uintptr_t)h->memory, (uint32_t)len, h->mr->lkey};
	struct ibv_send_wr *bad, wr = {.wr_id = wr_id_make(WR_LANE_SEND, 0, 0),
				       .sg_list = &sge,
				       .num_sge = 1,
				       .opcode = IBV_WR_SEND,
				       .send_flags = IBV_SEND_SIGNALED};

	MUST(len <= HOSTILE_BYTES);
	memcpy(h->memory, bytes, len);
	MUST(ibv_post_send(h->control.conn.id->qp, &wr, &bad) == 0);
}

void hostile_update_keys(struct hostile *h, unsigned updates)
{
	SSL *tls = mover_secure_tls(h->control.secure);

	hostile_begin(h, PROTO_PING);
	for (unsigned i = 0; i < updates; i++) {
		MUST(SSL_key_update(tls, SSL_KEY_UPDATE_REQUESTED) == 1);
		MUST(SSL_do_handshake(tls) == 1);
	}
	hostile_send(h);
}

static void say_hello(struct hostile *h, const void *bytes, size_t len)
{
	put_bytes(hostile_begin(h, PROTO_HELLO), bytes, len);
	hostile_send(h);
}

void hostile_enter(struct hostile *h)
{
	const struct connection *conn = &h->control.conn;

	MUST((h->control.secure = mover_secure_sender(NULL)) != NULL);
	MUST(next_step(h, 0, conn->answer, proto_get_answer(conn->answer, conn->answer_len)));
	say_hello(h, h->flight, h->flight_len);
	h->control.sealed = true;
	MUST(hostile_expect(h, PROTO_HELLO));
	MUST(next_step(h, 1, h->payload, h->payload_len) == 0);
}

void hostile_hear(struct hostile *h)
{
	MUST(hostile_expect(h, PROTO_HELLO));
	MUST(next_step(h, 1, h->payload, h->payload_len));
}

void hostile_finish(struct hostile *h)
{
	say_hello(h, h->flight, h->flight_len);
	h->control.sealed = true;
}
