/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Lesson 5: unreliable datagrams (UD).
 *
 *	05-datagrams         the server: answers every datagram
 *	05-datagrams HOST    the client: sends until it has an answer
 *
 * A UD QP has no peer. Each request says where it goes: an address handle (AH), a QP number and a Q_Key. Nobody
 *acknowledges and nobody repeats, so the client repeats by itself. There is no RDMA, and a message is one packet.
 */
#include "bare.h"

#include <endian.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* The first 40 bytes of each receive are the GRH: room for the header that the packet came with, and who sent it. */
enum { GRH_BYTES = 40, TEXT_BYTES = 64, TRIES = 10 };

/* A datagram whose Q_Key is not that of the receiving QP is dropped. Programs agree on one. */
#define QKEY 0x11111111u

struct side {
	struct bare bare;
	struct ibv_cq *send_cq, *recv_cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	struct {
		char received[GRH_BYTES + TEXT_BYTES];
		char sent[TEXT_BYTES];
	} memory;
};

static void post_receive(struct side *s)
{
	struct ibv_sge sge = {(uintptr_t)s->memory.received, sizeof(s->memory.received), s->mr->lkey};
	struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;

	check(ibv_post_recv(s->qp, &wr, &bad), "ibv_post_recv");
}

/* Returns when the datagram has left. Whether it arrives, nobody tells. */
static void send_text(struct side *s, const char *text, struct ibv_ah *to, uint32_t qpn)
{
	struct ibv_sge sge = {(uintptr_t)s->memory.sent, (uint32_t)strlen(text) + 1, s->mr->lkey};
	struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND}, *bad;

	strcpy(s->memory.sent, text);
	wr.send_flags = IBV_SEND_SIGNALED;
	wr.wr.ud.ah = to;
	wr.wr.ud.remote_qpn = qpn;
	wr.wr.ud.remote_qkey = QKEY;
	check(ibv_post_send(s->qp, &wr, &bad), "ibv_post_send");
	wait_completion(s->send_cq, "the send of a datagram");
	printf("sent to QP 0x%06x: \"%s\"\n", qpn, text);
}

/* A UD QP needs its Q_Key in INIT, and no peer in RTR. It still takes the usual way through the states. */
static void open_qp(struct side *s)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = QKEY};
	struct ibv_qp_init_attr init = {.qp_type = IBV_QPT_UD, .send_cq = s->send_cq, .recv_cq = s->recv_cq};

	init.cap = (struct ibv_qp_cap){.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1};
	s->qp = made(ibv_create_qp(s->bare.pd, &init), "ibv_create_qp");
	check(ibv_modify_qp(s->qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY),
	      "ibv_modify_qp to INIT");
	attr.qp_state = IBV_QPS_RTR;
	check(ibv_modify_qp(s->qp, &attr, IBV_QP_STATE), "ibv_modify_qp to RTR");
	attr.qp_state = IBV_QPS_RTS;
	attr.sq_psn = 0;
	check(ibv_modify_qp(s->qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN), "ibv_modify_qp to RTS");
}

/* Waits for a datagram until `seconds` have passed or the other side has gone. Returns whether there is one, in *wc. */
static bool receive(struct side *s, struct ibv_wc *wc, int socket, int seconds)
{
	time_t end = time(NULL) + seconds;
	int n;

	while ((n = ibv_poll_cq(s->recv_cq, 1, wc)) == 0)
		if (time(NULL) > end || bare_peer_gone(socket))
			return false;
	if (n < 0)
		die("ibv_poll_cq failed");
	check_completion(wc, "receive");
	if (wc->byte_len <= GRH_BYTES || s->memory.received[wc->byte_len - 1])
		die("the datagram is not a string");
	printf("received from QP 0x%06x: %u bytes, of them %d for the GRH: \"%s\"\n", wc->src_qp, wc->byte_len,
	       GRH_BYTES, s->memory.received + GRH_BYTES);
	return true;
}

/* Answers whoever asks. The completion and the GRH say where the answer goes. */
static void serve(struct side *s, int socket)
{
	bool asked = false;
	struct ibv_ah *back;
	struct ibv_wc wc;

	while (!bare_peer_gone(socket)) {
		if (!receive(s, &wc, socket, 1))
			continue;
		back = made(ibv_create_ah_from_wc(s->bare.pd, &wc, (struct ibv_grh *)s->memory.received, 1),
			    "ibv_create_ah_from_wc");
		post_receive(s);
		send_text(s, "pong", back, wc.src_qp);
		check(ibv_destroy_ah(back), "ibv_destroy_ah");
		asked = true;
	}
	if (!asked)
		die("the other side has gone before it sent a datagram");
}

static void ask(struct side *s, int socket, const struct bare_address *server)
{
	struct ibv_ah_attr route = bare_route(&s->bare, server);
	struct ibv_ah *to = made(ibv_create_ah(s->bare.pd, &route), "ibv_create_ah");
	struct ibv_wc wc;
	int tries = 0;

	do {
		if (tries++ == TRIES || bare_peer_gone(socket))
			die("no answer%s", tries > TRIES ? "" : ": the other side has gone, it closed the socket");
		send_text(s, "ping", to, be32toh(server->qpn));
	} while (!receive(s, &wc, socket, 1));
	check(ibv_destroy_ah(to), "ibv_destroy_ah");
}

int main(int argc, char **argv)
{
	struct arguments a = arguments_read("pdgk", argc, argv);
	struct side s = {.bare = bare_open(&a)};
	struct bare_address mine, server;
	int socket;

	s.send_cq = made(ibv_create_cq(s.bare.context, 1, NULL, NULL, 0), "ibv_create_cq");
	s.recv_cq = made(ibv_create_cq(s.bare.context, 1, NULL, NULL, 0), "ibv_create_cq");
	s.mr = made(ibv_reg_mr(s.bare.pd, &s.memory, sizeof(s.memory), IBV_ACCESS_LOCAL_WRITE), "ibv_reg_mr");
	open_qp(&s);
	post_receive(&s);
	mine = bare_address_of(&s.bare, s.qp, NULL);
	socket = bare_socket(&a);
	bare_exchange(socket, &mine, &server,
		      sizeof(mine)); /* only the client needs it: the server learns from datagrams */
	die_if_asked(&a);
	if (a.host)
		ask(&s, socket, &server);
	else
		serve(&s, socket);
	check(ibv_destroy_qp(s.qp), "ibv_destroy_qp");
	check(ibv_dereg_mr(s.mr), "ibv_dereg_mr");
	check(ibv_destroy_cq(s.recv_cq), "ibv_destroy_cq");
	check(ibv_destroy_cq(s.send_cq), "ibv_destroy_cq");
	bare_close(&s.bare);
	close(socket);
	printf("done\n");
	return 0;
}
