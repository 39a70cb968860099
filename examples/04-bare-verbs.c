/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Lesson 4: verbs without rdma_cm.
 *
 *	04-bare-verbs         the server: offers memory
 *	04-bare-verbs HOST    the client: writes into it
 *
 * A QP knows nothing of names and ports. Somebody must tell each side the other's GID (or LID), QP number and first
 *PSN, and, for one-sided operations, address and rkey. rdma_cm does that with packets of its own. Here a TCP socket
 *does it, and the program moves its QP from RESET over INIT and RTR to RTS itself: see bare.c.
 */
#include "bare.h"

#include <arpa/inet.h>
#include <endian.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static char region[4096];

static void print_address(const char *whose, const struct bare_address *a)
{
	char gid[INET6_ADDRSTRLEN];

	printf("%s GID %s, LID %u, QPN 0x%06x, PSN 0x%06x, rkey 0x%08x, address 0x%lx\n", whose,
	       inet_ntop(AF_INET6, a->gid, gid, sizeof(gid)), be16toh(a->lid), be32toh(a->qpn), be32toh(a->psn),
	       be32toh(a->rkey), (unsigned long)be64toh(a->address));
}

/* One RDMA WRITE to the address that the peer told. */
static void post_write(struct ibv_qp *qp, const struct ibv_mr *mr, uint32_t bytes, const struct bare_address *peer)
{
	struct ibv_sge sge = {(uintptr_t)region, bytes, mr->lkey};
	struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE}, *bad;

	wr.send_flags = IBV_SEND_SIGNALED;
	wr.wr.rdma.remote_addr = be64toh(peer->address);
	wr.wr.rdma.rkey = be32toh(peer->rkey);
	check(ibv_post_send(qp, &wr, &bad), "ibv_post_send");
}

/* Waits for the completion, and for the socket's end: who waits for a dead peer may wait long, or for ever. */
static void wait_watching(struct ibv_cq *cq, int socket, const char *what)
{
	struct ibv_wc wc;
	int n;

	while ((n = ibv_poll_cq(cq, 1, &wc)) == 0)
		if (bare_peer_gone(socket))
			die("while waiting for %s: the other side has gone, it closed the socket", what);
	if (n < 0)
		die("ibv_poll_cq failed while waiting for %s", what);
	check_completion(&wc, what);
}

int main(int argc, char **argv)
{
	struct arguments a = arguments_read("pdgk", argc, argv);
	struct bare bare = bare_open(&a);
	struct ibv_cq *cq = made(ibv_create_cq(bare.context, 4, NULL, NULL, 0), "ibv_create_cq");
	struct ibv_mr *mr =
		made(ibv_reg_mr(bare.pd, region, sizeof(region), IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE),
		     "ibv_reg_mr");
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC,
		.send_cq = cq,
		.recv_cq = cq,
		.cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1}};
	struct ibv_qp *qp = made(ibv_create_qp(bare.pd, &init), "ibv_create_qp");
	struct bare_address mine = bare_address_of(&bare, qp, mr), peer;
	char word[8] = "ready", answer[8];
	int socket = bare_socket(&a);

	/* 1. Tell each other. */
	bare_exchange(socket, &mine, &peer, sizeof(mine));
	print_address("mine:  ", &mine);
	print_address("theirs:", &peer);

	/* 2. Connect the QPs. */
	printf("QP: RESET");
	bare_to_init(qp, IBV_ACCESS_REMOTE_WRITE);
	printf(" -> INIT");
	bare_to_rtr(&bare, qp, &peer);
	printf(" -> RTR");
	bare_to_rts(qp, &mine, 7);
	printf(" -> RTS\n");

	/* 3. Wait for each other. What is sent to a QP before it is in RTR is lost. */
	bare_exchange(socket, word, answer, sizeof(word));
	die_if_asked(&a);

	/* 4. Work. */
	if (a.host) {
		strcpy(region, "written without rdma_cm");
		post_write(qp, mr, (uint32_t)strlen(region) + 1, &peer);
		wait_watching(cq, socket, "the RDMA WRITE");
		printf("wrote: \"%s\"\n", region);
	}

	/* 5. Done. Without this word the server would not know when to look, and could free memory that is still in
	 * use. */
	strcpy(word, "done");
	bare_exchange(socket, word, answer, sizeof(word));
	if (strncmp(answer, "done", sizeof(answer)) != 0)
		die("the other side did not say \"done\"");
	region[sizeof(region) - 1] = 0;
	if (!a.host)
		printf("my memory: \"%s\"\n", region);
	check(ibv_destroy_qp(qp), "ibv_destroy_qp");
	check(ibv_dereg_mr(mr), "ibv_dereg_mr");
	check(ibv_destroy_cq(cq), "ibv_destroy_cq");
	bare_close(&bare);
	close(socket);
	printf("done\n");
	return 0;
}
