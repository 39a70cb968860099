/* SPDX-License-Identifier: BSD-2-Clause */
/* A thread with the smallest stack that there is uses verbs and rdma_cm, from opening the device on. Thread-local
 * storage of libraries is taken from that stack. */
#include <netinet/in.h>
#include <limits.h>
#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define CHECK(cond) ((cond) ? (void)0 : fail(__LINE__, #cond))

static void fail(int line, const char *text)
{
	dprintf(STDERR_FILENO, "small_stack.c:%d: %s\n", line, text);
	exit(1);
}

static struct rdma_cm_id *expect(struct rdma_event_channel *channel, enum rdma_cm_event_type type)
{
	struct rdma_cm_event *event;
	struct rdma_cm_id *id;

	CHECK(!rdma_get_cm_event(channel, &event) && event->event == type);
	id = event->id;
	rdma_ack_cm_event(event);
	return id;
}

static void make_qp(struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1},
	};

	CHECK(!rdma_create_qp(id, NULL, &init));
}

static void write_to_itself(struct rdma_cm_id *id)
{
	static char bytes[65536];
	struct ibv_mr *mr = ibv_reg_mr(id->pd, bytes, sizeof(bytes), IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	struct ibv_sge sge = {(uintptr_t)bytes, sizeof(bytes) / 2, mr->lkey};
	struct ibv_send_wr wr = {.sg_list = &sge,
				 .num_sge = 1,
				 .opcode = IBV_WR_RDMA_WRITE,
				 .send_flags = IBV_SEND_SIGNALED,
				 .wr.rdma = {(uintptr_t)bytes + sizeof(bytes) / 2, mr->rkey}},
			   *bad;
	struct ibv_wc wc;

	CHECK(!ibv_post_send(id->qp, &wr, &bad));
	while (!ibv_poll_cq(id->send_cq, 1, &wc))
		;
	CHECK(wc.status == IBV_WC_SUCCESS);
	CHECK(!ibv_dereg_mr(mr));
}

static void *use(void *unused)
{
	struct rdma_event_channel *clients = rdma_create_event_channel(), *servers = rdma_create_event_channel();
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct rdma_cm_id *listener, *client, *server;
	struct rdma_conn_param param = {0};

	CHECK(clients && servers);
	CHECK(!rdma_create_id(servers, &listener, NULL, RDMA_PS_TCP));
	CHECK(!rdma_bind_addr(listener, (struct sockaddr *)&address) && !rdma_listen(listener, 1));
	address.sin_port = rdma_get_src_port(listener);
	CHECK(!rdma_create_id(clients, &client, NULL, RDMA_PS_TCP));
	CHECK(!rdma_resolve_addr(client, NULL, (struct sockaddr *)&address, 5000));
	expect(clients, RDMA_CM_EVENT_ADDR_RESOLVED);
	CHECK(!rdma_resolve_route(client, 5000));
	expect(clients, RDMA_CM_EVENT_ROUTE_RESOLVED);
	make_qp(client);
	CHECK(!rdma_connect(client, &param));
	server = expect(servers, RDMA_CM_EVENT_CONNECT_REQUEST);
	make_qp(server);
	CHECK(!rdma_accept(server, &param));
	expect(clients, RDMA_CM_EVENT_ESTABLISHED);
	expect(servers, RDMA_CM_EVENT_ESTABLISHED);
	write_to_itself(client);
	CHECK(!ibv_create_cq(client->verbs, 0, NULL, NULL, 0)); /* a line says why */
	CHECK(!rdma_disconnect(client));
	expect(servers, RDMA_CM_EVENT_DISCONNECTED);
	rdma_destroy_qp(client);
	rdma_destroy_qp(server);
	CHECK(!rdma_destroy_id(client) && !rdma_destroy_id(server) && !rdma_destroy_id(listener));
	rdma_destroy_event_channel(clients);
	rdma_destroy_event_channel(servers);
	return unused;
}

int main(void)
{
	pthread_attr_t attr;
	pthread_t thread;

	pthread_attr_init(&attr);
	CHECK(!pthread_attr_setstacksize(&attr, (size_t)PTHREAD_STACK_MIN));
	CHECK(!pthread_create(&thread, &attr, use, NULL) && !pthread_join(thread, NULL));
	return 0;
}
