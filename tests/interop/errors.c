/*
 * errors -p PORT [-g GID-INDEX] [SERVER]: every way in which a request of RC fails, one after the other. The client is
 * the requester, the server the responder. Each prints a line for each case: its name, the status of each completion in
 * order, and the state of the queue pair at the end. What these have to be, the caller knows.
 */
#include "pair.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define BUFFER_BYTES 4096u
#define REQUESTS     3u /* the one under test, and empty SENDs behind it */
#define ATOMIC       IBV_ACCESS_REMOTE_ATOMIC
#define WRITE        IBV_ACCESS_REMOTE_WRITE
#define READ         IBV_ACCESS_REMOTE_READ
#define LOCAL        IBV_ACCESS_LOCAL_WRITE

struct failure {
	const char *name;
	enum ibv_wr_opcode opcode;
	uint32_t len;
	uint32_t receives;      /* that the responder posts, of 100 bytes each */
	uint32_t received;      /* completions that it gets */
	int64_t offset;         /* of the remote address */
	uint32_t qp_without;    /* rights that the responder's queue pair has not */
	uint32_t mr_without;    /* rights that the responder's memory has not */
	uint32_t local_without; /* rights that the requester's memory has not */
	uint32_t other_rkey;    /* is added to the remote key */
	uint32_t other_qpn;     /* changes the destination */
	uint8_t rnr_retry;
	bool late;  /* the receives come when the requester waits for them */
	bool alone; /* no request behind it */
};

static const struct failure failures[] = {
	{"write: no such key", IBV_WR_RDMA_WRITE, 100, 2, 2, .other_rkey = 0x100},
	{"write: behind the end", IBV_WR_RDMA_WRITE, 100, 2, 2, .offset = BUFFER_BYTES - 99},
	{"write: before the start", IBV_WR_RDMA_WRITE, 100, 2, 2, .offset = -1},
	{"write: read-only memory", IBV_WR_RDMA_WRITE, 100, 2, 2, .mr_without = WRITE | ATOMIC},
	{"write: read-only queue pair", IBV_WR_RDMA_WRITE, 100, 2, 2, .qp_without = WRITE | ATOMIC},
	{"write of many packets: behind the end", IBV_WR_RDMA_WRITE, BUFFER_BYTES, 2, 2, .offset = 1},
	{"write with immediate: no such key", IBV_WR_RDMA_WRITE_WITH_IMM, 100, 2, 2, .other_rkey = 0x100},
	{"read: no such key", IBV_WR_RDMA_READ, 100, 2, 2, .other_rkey = 0x100},
	{"read: behind the end", IBV_WR_RDMA_READ, BUFFER_BYTES, 2, 2, .offset = 1},
	{"read: memory without the right", IBV_WR_RDMA_READ, 100, 2, 2, .mr_without = READ},
	{"read: queue pair without the right", IBV_WR_RDMA_READ, 100, 2, 2, .qp_without = READ},
	{"atomic: no such key", IBV_WR_ATOMIC_FETCH_AND_ADD, 8, 2, 2, .other_rkey = 0x100},
	{"atomic: memory without the right", IBV_WR_ATOMIC_CMP_AND_SWP, 8, 2, 2, .mr_without = ATOMIC},
	{"atomic: queue pair without the right", IBV_WR_ATOMIC_CMP_AND_SWP, 8, 2, 2, .qp_without = ATOMIC},
	{"send: longer than the receive", IBV_WR_SEND, 101, 2, 2, .offset = 0},
	{"send of many packets: longer than the receive", IBV_WR_SEND, BUFFER_BYTES, 2, 2, .offset = 0},
	{"send with invalidate: no such key", IBV_WR_SEND_WITH_INV, 100, 2, 2, .other_rkey = 0x100, .alone = true},
	{"send: never a receive", IBV_WR_SEND, 100, 0, 0, .rnr_retry = 2},
	{"write with immediate: never a receive", IBV_WR_RDMA_WRITE_WITH_IMM, 100, 0, 0, .rnr_retry = 2},
	{"send: a late receive", IBV_WR_SEND, 100, 3, 3, .late = true, .rnr_retry = 7},
	{"read: into memory of no local write", IBV_WR_RDMA_READ, 100, 0, 0, .local_without = LOCAL | WRITE | ATOMIC,
	 .alone = true},
	{"send: nobody there", IBV_WR_SEND, 100, 0, 0, .other_qpn = 0x40000},
};

struct side {
	struct endpoint ep;
	int fd; /* to the peer */
	bool server;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	uint8_t *memory;
	struct address peer;
};

static uint32_t request_count(const struct failure *f)
{
	return f->alone ? 1 : REQUESTS;
}

static void post_receives(struct side *s, uint32_t count)
{
	struct ibv_sge sge = {(uintptr_t)s->memory, 100, s->mr->lkey};

	for (uint32_t i = 0; i < count; i++) {
		struct ibv_recv_wr wr = {.wr_id = i, .sg_list = &sge, .num_sge = 1}, *bad;

		errno = ibv_post_recv(s->qp, &wr, &bad);
		need(!errno, "ibv_post_recv");
	}
}

/* In one call, so that what comes behind is queued when the first one fails. */
static void post_requests(struct side *s, const struct failure *f)
{
	struct ibv_sge sge = {(uintptr_t)s->memory, f->len, s->mr->lkey};
	struct ibv_send_wr wr[REQUESTS] = {{.opcode = f->opcode, .sg_list = &sge, .num_sge = 1}}, *bad;
	uint32_t rkey = s->peer.rkey + f->other_rkey;
	uint64_t addr = s->peer.addr + (uint64_t)f->offset;

	if (f->opcode == IBV_WR_SEND_WITH_INV) {
		wr[0].invalidate_rkey = rkey;
	} else if (f->opcode == IBV_WR_ATOMIC_CMP_AND_SWP || f->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr[0].wr.atomic.remote_addr = addr;
		wr[0].wr.atomic.rkey = rkey;
	} else {
		wr[0].wr.rdma.remote_addr = addr;
		wr[0].wr.rdma.rkey = rkey;
	}
	for (uint32_t i = 0; i < request_count(f); i++) {
		wr[i].wr_id = i;
		wr[i].send_flags = IBV_SEND_SIGNALED;
		wr[i].next = i + 1 < request_count(f) ? &wr[i + 1] : NULL;
		if (i)
			wr[i].opcode = IBV_WR_SEND;
	}
	errno = ibv_post_send(s->qp, wr, &bad);
	need(!errno, "ibv_post_send");
}

static void collect(struct side *s, uint32_t count)
{
	struct ibv_wc wc;

	for (uint32_t i = 0; i < count; i++) {
		cq_next(s->cq, &wc);
		if (wc.wr_id != i || wc.qp_num != s->qp->qp_num)
			die("request %llu completed, not %u", (unsigned long long)wc.wr_id, i);
		printf(" %d", wc.status);
	}
}

static void finish(struct side *s)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	struct ibv_wc wc;

	errno = ibv_query_qp(s->qp, &attr, IBV_QP_STATE, &init);
	need(!errno, "ibv_query_qp");
	printf(" %s\n", attr.qp_state == IBV_QPS_RTS ? "RTS" : attr.qp_state == IBV_QPS_ERR ? "ERR" : "other");
	fflush(stdout);
	if (ibv_poll_cq(s->cq, 1, &wc))
		die("one completion too many: request %llu, status %d", (unsigned long long)wc.wr_id, wc.status);
}

static void set_up(struct side *s, const struct failure *f)
{
	/* Three requests do not fit into one timeout of a slow machine; nobody there is certain after fewer. */
	struct patience patience = {.timeout = f->other_qpn ? 12 : 17,
				    .retry_cnt = f->other_qpn ? 2 : 6,
				    .rnr_retry = f->rnr_retry,
				    .min_rnr_timer = 12};
	struct ibv_qp_attr rights = {.qp_access_flags = (LOCAL | READ | WRITE | ATOMIC) & ~f->qp_without};
	uint32_t missing = s->server ? f->mr_without : f->local_without;
	struct address mine = {.gid = s->ep.gid, .psn = qp_random_psn(), .mtu = s->ep.mtu_bytes};

	s->cq = ibv_create_cq(s->ep.ctx, 16, NULL, NULL, 0);
	need(s->cq != NULL, "ibv_create_cq");
	s->qp = qp_make(&s->ep, IBV_QPT_RC, s->cq, NULL, 8, 1);
	if (s->server) {
		errno = ibv_modify_qp(s->qp, &rights, IBV_QP_ACCESS_FLAGS);
		need(!errno, "ibv_modify_qp");
	}
	s->mr = ibv_reg_mr(s->ep.pd, s->memory, BUFFER_BYTES, (int)((LOCAL | READ | WRITE | ATOMIC) & ~missing));
	need(s->mr != NULL, "ibv_reg_mr");
	mine.qpn = s->qp->qp_num;
	mine.rkey = s->mr->rkey;
	mine.addr = (uintptr_t)s->memory;
	tcp_swap(s->fd, &mine, &s->peer, sizeof(mine));
	if (!s->server)
		s->peer.qpn ^= f->other_qpn;
	qp_connect(&s->ep, s->qp, mine.psn, &s->peer, &patience);
}

static void tear_down(struct side *s)
{
	errno = ibv_destroy_qp(s->qp);
	need(!errno, "ibv_destroy_qp");
	errno = ibv_destroy_cq(s->cq);
	need(!errno, "ibv_destroy_cq");
	errno = ibv_dereg_mr(s->mr);
	need(!errno, "ibv_dereg_mr");
}

static void run(struct side *s, const struct failure *f)
{
	set_up(s, f);
	printf("%s:", f->name);
	if (s->server && !f->late)
		post_receives(s, f->receives);
	tcp_swap(s->fd, NULL, NULL, 0); /* the responder is ready */
	if (!s->server)
		post_requests(s, f);
	if (f->late)
		tcp_swap(s->fd, NULL, NULL, 0); /* they are posted */
	if (s->server && f->late) {
		nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
		post_receives(s, f->receives);
	}
	collect(s, s->server ? f->received : request_count(f));
	tcp_swap(s->fd, NULL, NULL, 0); /* nothing is in flight */
	finish(s);
	tcp_swap(s->fd, NULL, NULL, 0);
	tear_down(s);
}

int main(int argc, char **argv)
{
	const char *port = "18515";
	struct side s = {0};
	int gid_index = 0, option;

	while ((option = getopt(argc, argv, "p:g:")) != -1) {
		switch (option) {
		case 'p': port = optarg; break;
		case 'g': gid_index = atoi(optarg); break;
		default: die("usage: errors -p PORT [-g GID-INDEX] [SERVER]");
		}
	}
	s.server = optind == argc;
	endpoint_open(&s.ep, gid_index);
	s.memory = aligned_alloc(4096, BUFFER_BYTES);
	need(s.memory != NULL, "aligned_alloc");
	s.fd = s.server ? tcp_serve(port) : tcp_connect(argv[optind], port);
	for (size_t i = 0; i < sizeof(failures) / sizeof(failures[0]); i++)
		run(&s, &failures[i]);
	free(s.memory);
	endpoint_close(&s.ep);
	close(s.fd);
	return 0;
}
