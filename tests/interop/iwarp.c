/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What iWARP lacks: SEND and WRITE with immediate data, and both atomics (RFC 5040 has none of them). The client posts
 * each on a connection of its own: the post or the request must fail, and nothing may reach the server. On one more
 * connection it posts WRITE and SEND, the replacement for WRITE with immediate: the data must be there when the SEND
 * has arrived. Exit status 0: everything was as expected.
 *
 *     iwarp -b ADDRESS -p PORT    server
 *     iwarp -s ADDRESS -p PORT    client
 */
#include <stdbool.h>
#include <time.h>
#include <unistd.h> /* IWYU pragma: keep (getopt) */

#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>

#include "checks.h"

#define TEXT_BYTES   32
#define WAIT_SECONDS 20 /* for a completion */

static const char WRITTEN[TEXT_BYTES] = "written before", SENT[TEXT_BYTES] = "the message";

static const struct {
	enum ibv_wr_opcode opcode;
	const char *name;
} lacking[] = {
	{IBV_WR_SEND_WITH_IMM, "SEND with immediate"},
	{IBV_WR_RDMA_WRITE_WITH_IMM, "WRITE with immediate"},
	{IBV_WR_ATOMIC_CMP_AND_SWP, "compare and swap"},
	{IBV_WR_ATOMIC_FETCH_AND_ADD, "fetch and add"},
};
#define LACKING_COUNT (sizeof(lacking) / sizeof(lacking[0]))

/* The server's private data: where the client may write. */
struct window {
	uint64_t address;
	uint32_t rkey;
};

static const char *address, *port;
static bool server;
static unsigned failures;

/* An endpoint without a channel: its calls block, and their event is in id->event. */
static struct rdma_cm_id *endpoint(void)
{
	struct rdma_addrinfo hints = {.ai_flags = server ? RAI_PASSIVE : 0, .ai_port_space = RDMA_PS_TCP}, *info;
	struct ibv_qp_init_attr attr = {
		.cap = {.max_send_wr = 2, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
		.sq_sig_all = 1,
	};
	struct rdma_cm_id *id;

	MUST(rdma_getaddrinfo(address, port, &hints, &info));
	MUST(rdma_create_ep(&id, info, NULL, &attr));
	rdma_freeaddrinfo(info);
	return id;
}

/* The status of the next completion; -1: none within WAIT_SECONDS. */
static int await_status(struct ibv_cq *cq)
{
	const struct timespec pause = {.tv_nsec = 1000000};
	time_t end = time(NULL) + WAIT_SECONDS;
	struct ibv_wc wc;
	int n;

	while ((n = ibv_poll_cq(cq, 1, &wc)) == 0 && time(NULL) < end)
		nanosleep(&pause, NULL);
	return n == 1 ? (int)wc.status : -1;
}

static void await_disconnect(struct rdma_cm_id *id)
{
	struct rdma_cm_event *event;

	MUST(rdma_get_cm_event(id->channel, &event));
	CHECK(event->event == RDMA_CM_EVENT_DISCONNECTED);
	rdma_ack_cm_event(event);
}

/* One connection. `nothing`: no message may arrive, and the memory must not change. */
static void serve_one(struct rdma_cm_id *listener, bool nothing)
{
	char memory[2][TEXT_BYTES] = {{0}, {0}}; /* written, received */
	struct rdma_conn_param param = {0};
	struct window window;
	struct rdma_cm_id *id;
	struct ibv_mr *mr;

	MUST(rdma_get_request(listener, &id));
	mr = ibv_reg_mr(id->pd, memory, sizeof(memory),
			IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);
	MUST(!mr);
	MUST(rdma_post_recv(id, NULL, memory[1], TEXT_BYTES, mr));
	window = (struct window){.address = (uintptr_t)memory[0], .rkey = mr->rkey};
	param.private_data = &window;
	param.private_data_len = sizeof(window);
	MUST(rdma_accept(id, &param));
	if (nothing) {
		struct ibv_wc wc;
		await_disconnect(id);
		CHECK(ibv_poll_cq(id->recv_cq, 1, &wc) == 0 || wc.status != IBV_WC_SUCCESS);
		CHECK(!*memory[0] && !*memory[1]);
	} else {
		CHECK(await_status(id->recv_cq) == IBV_WC_SUCCESS);
		CHECK(!memcmp(memory[0], WRITTEN, TEXT_BYTES) && !memcmp(memory[1], SENT, TEXT_BYTES));
		await_disconnect(id);
	}
	ibv_dereg_mr(mr);
	rdma_destroy_ep(id); /* rdma_disconnect() would wait for an event that iWARP does not have */
}

static void serve(void)
{
	struct rdma_cm_id *listener = endpoint();

	MUST(rdma_listen(listener, 1));
	for (size_t i = 0; i < LACKING_COUNT; i++)
		serve_one(listener, true);
	serve_one(listener, false);
	rdma_destroy_ep(listener);
}

static struct rdma_cm_id *connection(struct window *window)
{
	struct rdma_conn_param param = {0};
	struct rdma_cm_id *id = endpoint();

	MUST(rdma_connect(id, &param));
	MUST(id->event->param.conn.private_data_len < sizeof(*window));
	memcpy(window, id->event->param.conn.private_data, sizeof(*window));
	return id;
}

static void end(struct rdma_cm_id *id, struct ibv_mr *mr)
{
	rdma_disconnect(id);
	ibv_dereg_mr(mr);
	rdma_destroy_ep(id);
}

/* A program can ask the device first. */
static void check_device(const struct rdma_cm_id *id)
{
	struct ibv_device_attr attr;

	MUST(ibv_query_device(id->verbs, &attr));
	CHECK(attr.atomic_cap == IBV_ATOMIC_NONE);
	CHECK(id->verbs->device->transport_type == IBV_TRANSPORT_IWARP);
}

static void try_lacking(enum ibv_wr_opcode opcode, const char *name)
{
	bool atomic = opcode == IBV_WR_ATOMIC_CMP_AND_SWP || opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
	uint64_t memory[TEXT_BYTES / 8] = {1};
	struct window window;
	struct rdma_cm_id *id = connection(&window);
	struct ibv_mr *mr = rdma_reg_msgs(id, memory, sizeof(memory));
	struct ibv_sge sge = {.addr = (uintptr_t)memory, .length = atomic ? 8 : TEXT_BYTES, .lkey = mr ? mr->lkey : 0};
	struct ibv_send_wr wr = {.opcode = opcode, .sg_list = &sge, .num_sge = 1, .imm_data = 1}, *bad;
	int err, status = -1;

	MUST(!mr);
	check_device(id);
	if (atomic) {
		wr.wr.atomic.remote_addr = window.address;
		wr.wr.atomic.rkey = window.rkey;
		wr.wr.atomic.compare_add = 1;
	} else {
		wr.wr.rdma.remote_addr = window.address;
		wr.wr.rdma.rkey = window.rkey;
	}
	err = ibv_post_send(id->qp, &wr, &bad);
	if (!err) {
		status = await_status(id->send_cq);
		CHECK(status > IBV_WC_SUCCESS);
	}
	printf("%s: %s\n", name, err ? "not taken" : status < 0 ? "no completion" : ibv_wc_status_str(status));
	end(id, mr);
}

static void write_and_send(void)
{
	char memory[2][TEXT_BYTES];
	struct window window;
	struct rdma_cm_id *id = connection(&window);
	struct ibv_mr *mr = rdma_reg_msgs(id, memory, sizeof(memory));

	MUST(!mr);
	memcpy(memory[0], WRITTEN, TEXT_BYTES);
	memcpy(memory[1], SENT, TEXT_BYTES);
	MUST(rdma_post_write(id, NULL, memory[0], TEXT_BYTES, mr, 0, window.address, window.rkey));
	MUST(rdma_post_send(id, NULL, memory[1], TEXT_BYTES, mr, 0));
	CHECK(await_status(id->send_cq) == IBV_WC_SUCCESS);
	CHECK(await_status(id->send_cq) == IBV_WC_SUCCESS);
	end(id, mr);
}

int main(int argc, char **argv)
{
	for (int opt; (opt = getopt(argc, argv, "b:s:p:")) != -1;) {
		switch (opt) {
		case 'b': server = true; /* fall through */
		case 's': address = optarg; break;
		case 'p': port = optarg; break;
		default: return 2;
		}
	}
	if (!address || !port) {
		fprintf(stderr, "iwarp: -b or -s ADDRESS, and -p PORT\n");
		return 2;
	}
	if (server) {
		serve();
	} else {
		for (size_t i = 0; i < LACKING_COUNT; i++)
			try_lacking(lacking[i].opcode, lacking[i].name);
		write_and_send();
	}
	printf("%u failures\n", failures);
	return failures ? 1 : 0;
}
