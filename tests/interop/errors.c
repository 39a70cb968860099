/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * errors -p PORT [-g GID-INDEX] [-w] [-x] [SERVER]: every way in which an RC request fails, one after the other. The
 * client is the requester, the server is the responder. Each prints a line for each case: its name, the status of each
 * completion in order, the state of the queue pair at the end, its asynchronous event or `none`, and its memory: `kept`
 * (unchanged), `written` (as the request says) or `spoilt`. test_errors.py has the expected lines.
 *
 *     -w    with atomic writes
 *     -x    the responder's device has no events: do not wait for them
 */
#include "pair.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define BUFFER_BYTES 4096u
#define REQUESTS     3u /* the one under test, then empty SENDs */
#define ATOMIC       IBV_ACCESS_REMOTE_ATOMIC
#define WRITE        IBV_ACCESS_REMOTE_WRITE
#define READ         IBV_ACCESS_REMOTE_READ
#define LOCAL        IBV_ACCESS_LOCAL_WRITE
#define ACCESS_ERR   IBV_EVENT_QP_ACCESS_ERR
#define REQ_ERR      IBV_EVENT_QP_REQ_ERR
#define NONE         (-1)

struct failure {
	const char *name;
	enum ibv_wr_opcode opcode;
	uint32_t len;
	uint32_t receives;      /* posted by the responder, of 100 bytes each */
	uint32_t received;      /* completions at the responder */
	int event;              /* of the responder's queue pair, IBTA 9.9.3; or NONE */
	int64_t offset;         /* of the remote address */
	uint32_t qp_without;    /* rights that the responder's queue pair lacks */
	uint32_t mr_without;    /* rights that the responder's memory lacks */
	uint32_t local_without; /* rights that the requester's memory lacks */
	uint32_t other_rkey;    /* added to the remote key */
	uint32_t other_qpn;     /* changes the destination */
	uint8_t rnr_retry;
	bool late;        /* the receives are posted after the request */
	bool alone;       /* no SENDs after it */
	bool srq;         /* the responder's receives are in an SRQ */
	bool window;      /* the remote key is a memory window's */
	bool invalidated; /* by a SEND before the request; it counts as one of REQUESTS */
};

static const struct failure failures[] = {
	{"write: no such key", IBV_WR_RDMA_WRITE, 100, 2, 2, ACCESS_ERR, .other_rkey = 0x100},
	{"write: behind the end", IBV_WR_RDMA_WRITE, 100, 2, 2, ACCESS_ERR, .offset = BUFFER_BYTES - 99},
	{"write: before the start", IBV_WR_RDMA_WRITE, 100, 2, 2, ACCESS_ERR, .offset = -1},
	{"write: read-only memory", IBV_WR_RDMA_WRITE, 100, 2, 2, ACCESS_ERR, .mr_without = WRITE | ATOMIC},
	{"write: read-only queue pair", IBV_WR_RDMA_WRITE, 100, 2, 2, REQ_ERR, .qp_without = WRITE | ATOMIC},
	{"write of many packets: behind the end", IBV_WR_RDMA_WRITE, BUFFER_BYTES, 2, 2, ACCESS_ERR, .offset = 1},
	{"write with immediate: no such key", IBV_WR_RDMA_WRITE_WITH_IMM, 100, 2, 2, NONE, .other_rkey = 0x100},
	{"write: to a window", IBV_WR_RDMA_WRITE, 100, 2, 2, NONE, .window = true},
	{"write: to a window that was invalidated", IBV_WR_RDMA_WRITE, 100, 2, 2, ACCESS_ERR, .window = true,
	 .invalidated = true},
	{"read: no such key", IBV_WR_RDMA_READ, 100, 2, 2, ACCESS_ERR, .other_rkey = 0x100},
	{"read: behind the end", IBV_WR_RDMA_READ, BUFFER_BYTES, 2, 2, ACCESS_ERR, .offset = 1},
	{"read: memory without the right", IBV_WR_RDMA_READ, 100, 2, 2, ACCESS_ERR, .mr_without = READ},
	{"read: queue pair without the right", IBV_WR_RDMA_READ, 100, 2, 2, REQ_ERR, .qp_without = READ},
	{"read of many packets: memory without the right", IBV_WR_RDMA_READ, BUFFER_BYTES, 2, 2, ACCESS_ERR,
	 .mr_without = READ},
	{"read of many packets: queue pair without the right", IBV_WR_RDMA_READ, BUFFER_BYTES, 2, 2, REQ_ERR,
	 .qp_without = READ},
	{"atomic: no such key", IBV_WR_ATOMIC_FETCH_AND_ADD, 8, 2, 2, ACCESS_ERR, .other_rkey = 0x100},
	{"atomic: memory without the right", IBV_WR_ATOMIC_CMP_AND_SWP, 8, 2, 2, ACCESS_ERR, .mr_without = ATOMIC},
	{"atomic: queue pair without the right", IBV_WR_ATOMIC_CMP_AND_SWP, 8, 2, 2, REQ_ERR, .qp_without = ATOMIC},
	{"atomic write: no such key", IBV_WR_ATOMIC_WRITE, 8, 2, 2, ACCESS_ERR, .other_rkey = 0x100, .alone = true},
	{"atomic write: memory without the right", IBV_WR_ATOMIC_WRITE, 8, 2, 2, ACCESS_ERR,
	 .mr_without = WRITE | ATOMIC, .alone = true},
	{"atomic write: queue pair without the right", IBV_WR_ATOMIC_WRITE, 8, 2, 2, REQ_ERR,
	 .qp_without = WRITE | ATOMIC, .alone = true},
	{"send: longer than the receive", IBV_WR_SEND, 101, 2, 2, NONE, .offset = 0},
	{"send of many packets: longer than the receive", IBV_WR_SEND, BUFFER_BYTES, 2, 2, NONE, .offset = 0},
	{"send with invalidate: no such key", IBV_WR_SEND_WITH_INV, 100, 2, 2, REQ_ERR, .other_rkey = 0x100,
	 .alone = true},
	{"send: never a receive", IBV_WR_SEND, 100, 0, 0, NONE, .rnr_retry = 2},
	{"send: never a receive in the SRQ", IBV_WR_SEND, 100, 0, 0, NONE, .rnr_retry = 2, .srq = true},
	{"write with immediate: never a receive", IBV_WR_RDMA_WRITE_WITH_IMM, 100, 0, 0, NONE, .rnr_retry = 2},
	{"send: a late receive", IBV_WR_SEND, 100, 3, 3, NONE, .late = true, .rnr_retry = 7},
	{"send: a late receive in the SRQ", IBV_WR_SEND, 100, 3, 3, NONE, .late = true, .rnr_retry = 7, .srq = true},
	{"write with immediate: a late receive", IBV_WR_RDMA_WRITE_WITH_IMM, 100, 3, 3, NONE, .late = true,
	 .rnr_retry = 7},
	{"write of many packets with immediate: a late receive", IBV_WR_RDMA_WRITE_WITH_IMM, BUFFER_BYTES, 3, 3, NONE,
	 .late = true, .rnr_retry = 7},
	{"read: into memory of no local write", IBV_WR_RDMA_READ, 100, 0, 0, NONE,
	 .local_without = LOCAL | WRITE | ATOMIC, .alone = true},
	{"send: nobody there", IBV_WR_SEND, 100, 0, 0, NONE, .other_qpn = 0x40000},
};

struct side {
	struct endpoint ep;
	int fd; /* to the peer */
	bool server;
	bool no_events, atomic_writes;
	struct ibv_cq *cq;
	struct ibv_srq *srq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	struct ibv_mw *window;
	uint8_t *memory;
	struct address peer;
};

/* What the memory of each side is filled with: pattern_fill()'s seeds. */
enum { REQUESTER = 1, RESPONDER = 2 };

static uint32_t request_count(const struct failure *f)
{
	return f->alone ? 1 : REQUESTS;
}

static void post_receives(struct side *s, uint32_t count)
{
	struct ibv_sge sge = {(uintptr_t)s->memory, 100, s->mr->lkey};

	for (uint32_t i = 0; i < count; i++) {
		struct ibv_recv_wr wr = {.wr_id = i, .sg_list = &sge, .num_sge = 1}, *bad;

		errno = s->srq ? ibv_post_srq_recv(s->srq, &wr, &bad) : ibv_post_recv(s->qp, &wr, &bad);
		need(!errno, "posting a receive");
	}
}

static struct ibv_send_wr request(const struct failure *f, uint64_t addr, uint32_t rkey)
{
	struct ibv_send_wr wr = {.opcode = f->opcode};

	if (f->opcode == IBV_WR_SEND_WITH_INV) {
		wr.invalidate_rkey = rkey;
	} else if (f->opcode == IBV_WR_ATOMIC_CMP_AND_SWP || f->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.remote_addr = addr;
		wr.wr.atomic.rkey = rkey;
		wr.wr.atomic.compare_add = 1;
	} else {
		wr.wr.rdma.remote_addr = addr;
		wr.wr.rdma.rkey = rkey;
	}
	return wr;
}

/* ibv_post_send() has no atomic writes. */
static void post_atomic_write(struct side *s, uint64_t addr, uint32_t rkey)
{
	struct ibv_qp_ex *qpx = ibv_qp_to_qp_ex(s->qp);

	need(qpx != NULL, "ibv_qp_to_qp_ex");
	ibv_wr_start(qpx);
	qpx->wr_id = 0;
	qpx->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_atomic_write(qpx, rkey, addr, s->memory);
	errno = ibv_wr_complete(qpx);
	need(!errno, "ibv_wr_complete");
}

/* In one call, so that the SENDs are queued when the first request fails. */
static void post_requests(struct side *s, const struct failure *f)
{
	struct ibv_sge sge = {(uintptr_t)s->memory, f->len, s->mr->lkey};
	struct ibv_send_wr wr[REQUESTS] = {0}, *bad;
	uint32_t rkey = s->peer.rkey + f->other_rkey, first = f->invalidated ? 1 : 0;
	uint64_t addr = s->peer.addr + (uint64_t)f->offset;

	if (f->opcode == IBV_WR_ATOMIC_WRITE) {
		post_atomic_write(s, addr, rkey);
		return;
	}
	for (uint32_t i = 0; i < request_count(f); i++) {
		wr[i] = i == first ? request(f, addr, rkey) : (struct ibv_send_wr){.opcode = IBV_WR_SEND};
		wr[i].wr_id = i;
		wr[i].send_flags = IBV_SEND_SIGNALED;
		wr[i].next = i + 1 < request_count(f) ? &wr[i + 1] : NULL;
	}
	wr[first].sg_list = &sge;
	wr[first].num_sge = 1;
	if (f->invalidated) {
		wr[0].opcode = IBV_WR_SEND_WITH_INV;
		wr[0].invalidate_rkey = rkey;
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

/* The queue pair's asynchronous event; there must be no other. */
static const char *async_event(struct side *s, const struct failure *f)
{
	struct pollfd ready = {.fd = s->ep.ctx->async_fd, .events = POLLIN};
	bool due = s->server && f->event != NONE && !s->no_events;
	struct ibv_async_event event;

	if (!poll(&ready, 1, due ? PAIR_WAIT_S * 1000 : 0))
		return "none";
	need(!ibv_get_async_event(s->ep.ctx, &event), "ibv_get_async_event");
	ibv_ack_async_event(&event);
	if (poll(&ready, 1, 0))
		die("more than one event; the first: %s", ibv_event_type_str(event.event_type));
	switch (event.event_type) {
	case IBV_EVENT_QP_ACCESS_ERR: return "ACCESS_ERR";
	case IBV_EVENT_QP_REQ_ERR: return "REQ_ERR";
	default: die("an unexpected event: %s", ibv_event_type_str(event.event_type));
	}
}

static const char *memory(const struct side *s, const struct failure *f)
{
	if (pattern_holds(s->memory, BUFFER_BYTES, s->server ? RESPONDER : REQUESTER))
		return "kept";
	if (!s->server || !pattern_holds(s->memory, f->len, REQUESTER))
		return "spoilt";
	pattern_fill(s->memory, f->len, RESPONDER); /* the rest must be unchanged */
	return pattern_holds(s->memory, BUFFER_BYTES, RESPONDER) ? "written" : "spoilt";
}

static void finish(struct side *s, const struct failure *f)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	struct ibv_wc wc;

	errno = ibv_query_qp(s->qp, &attr, IBV_QP_STATE, &init);
	need(!errno, "ibv_query_qp");
	printf(" %s %s %s\n",
	       attr.qp_state == IBV_QPS_RTS   ? "RTS"
	       : attr.qp_state == IBV_QPS_ERR ? "ERR"
					      : "other",
	       async_event(s, f), memory(s, f));
	fflush(stdout);
	if (ibv_poll_cq(s->cq, 1, &wc))
		die("one completion too many: request %llu, status %d", (unsigned long long)wc.wr_id, wc.status);
}

static void make_queue_pair(struct side *s, const struct failure *f)
{
	struct ibv_qp_attr rights = {.qp_access_flags = (LOCAL | READ | WRITE | ATOMIC) & ~f->qp_without};
	struct ibv_srq_init_attr attr = {.attr = {.max_wr = 8, .max_sge = 1}};

	s->srq = NULL;
	if (s->server && f->srq) {
		s->srq = ibv_create_srq(s->ep.pd, &attr);
		need(s->srq != NULL, "ibv_create_srq");
	}
	s->qp = qp_make(&s->ep, IBV_QPT_RC, s->cq, s->srq, 8, 1);
	if (s->server) {
		errno = ibv_modify_qp(s->qp, &rights, IBV_QP_ACCESS_FLAGS);
		need(!errno, "ibv_modify_qp");
	}
}

static void set_up(struct side *s, const struct failure *f)
{
	/* On a slow machine three requests take longer than a short timeout. Where nobody answers, a short one is
	 * enough. */
	struct retries retries = {.timeout = f->other_qpn ? 12 : 17,
				  .retry_cnt = f->other_qpn ? 2 : 6,
				  .rnr_retry = f->rnr_retry,
				  .min_rnr_timer = 12};
	uint32_t missing = s->server ? f->mr_without : f->local_without;
	struct address mine = {.gid = s->ep.gid, .psn = qp_random_psn(), .mtu = s->ep.mtu_bytes};

	pattern_fill(s->memory, BUFFER_BYTES, s->server ? RESPONDER : REQUESTER);
	s->cq = ibv_create_cq(s->ep.ctx, 16, NULL, NULL, 0);
	need(s->cq != NULL, "ibv_create_cq");
	make_queue_pair(s, f);
	s->mr = ibv_reg_mr(s->ep.pd, s->memory, BUFFER_BYTES,
			   (int)((LOCAL | READ | WRITE | ATOMIC | (f->window ? IBV_ACCESS_MW_BIND : 0)) & ~missing));
	need(s->mr != NULL, "ibv_reg_mr");
	mine.qpn = s->qp->qp_num;
	mine.rkey = s->mr->rkey;
	mine.addr = (uintptr_t)s->memory;
	tcp_swap(s->fd, &mine, &s->peer, sizeof(mine));
	if (!s->server)
		s->peer.qpn ^= f->other_qpn;
	qp_connect(&s->ep, s->qp, mine.psn, &s->peer, &retries);
	s->window = s->server && f->window ? mw_bind(s->qp, s->mr, BUFFER_BYTES) : NULL;
}

static void tear_down(struct side *s)
{
	errno = s->window ? ibv_dealloc_mw(s->window) : 0;
	need(!errno, "ibv_dealloc_mw");
	errno = ibv_destroy_qp(s->qp);
	need(!errno, "ibv_destroy_qp");
	errno = s->srq ? ibv_destroy_srq(s->srq) : 0;
	need(!errno, "ibv_destroy_srq");
	errno = ibv_destroy_cq(s->cq);
	need(!errno, "ibv_destroy_cq");
	errno = ibv_dereg_mr(s->mr);
	need(!errno, "ibv_dereg_mr");
}

/* Both are ready. The responder sends the key of its window, if it has one. */
static void meet(struct side *s)
{
	uint32_t key = s->window ? s->window->rkey : 0, theirs;

	tcp_swap(s->fd, &key, &theirs, sizeof(key));
	if (theirs)
		s->peer.rkey = theirs;
}

static void run(struct side *s, const struct failure *f)
{
	set_up(s, f);
	printf("%s:", f->name);
	if (s->server && !f->late)
		post_receives(s, f->receives);
	meet(s);
	if (!s->server)
		post_requests(s, f);
	if (f->late)
		tcp_swap(s->fd, NULL, NULL, 0); /* the requests are posted */
	if (s->server && f->late) {
		nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
		post_receives(s, f->receives);
	}
	collect(s, s->server ? f->received : request_count(f));
	tcp_swap(s->fd, NULL, NULL, 0); /* nothing is in flight */
	finish(s, f);
	tcp_swap(s->fd, NULL, NULL, 0);
	tear_down(s);
}

int main(int argc, char **argv)
{
	const char *port = "18515";
	struct side s = {0};
	int gid_index = 0, option;

	while ((option = getopt(argc, argv, "p:g:wx")) != -1) {
		switch (option) {
		case 'p': port = optarg; break;
		case 'g': gid_index = atoi(optarg); break;
		case 'w': s.atomic_writes = true; break;
		case 'x': s.no_events = true; break;
		default: die("usage: errors -p PORT [-g GID-INDEX] [-w] [-x] [SERVER]");
		}
	}
	s.server = optind == argc;
	endpoint_open(&s.ep, gid_index);
	s.memory = aligned_alloc(4096, BUFFER_BYTES);
	need(s.memory != NULL, "aligned_alloc");
	s.fd = s.server ? tcp_serve(port) : tcp_connect(argv[optind], port);
	for (size_t i = 0; i < sizeof(failures) / sizeof(failures[0]); i++)
		if (s.atomic_writes || failures[i].opcode != IBV_WR_ATOMIC_WRITE)
			run(&s, &failures[i]);
	free(s.memory);
	endpoint_close(&s.ep);
	close(s.fd);
	return 0;
}
