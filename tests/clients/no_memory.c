/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Every call of verbs and rdma_cm that makes something, while memory runs out: the first allocation of the call fails,
 * then the second, and so on, until the call needs no more. Each time it must say ENOMEM, and give back whatever it
 * took before. malloc() and its family and mmap() are this program's own, so the libraries call them.
 */
#include <errno.h>
#include <malloc.h>
#include <rdma/rdma_cma.h>
#include <rdma/rsocket.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "pair.h"

#define TRIES 200 /* more allocations than any call needs */

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *p, size_t size);
void *__libc_memalign(size_t align, size_t size);
void __libc_free(void *p);

/* ---- allocations, counted ---- */

static _Thread_local bool counting; /* only those of the thread that calls */
static unsigned fail_at, made;      /* the fail_at-th fails, from 1 on */
static long balance;                /* blocks and mappings that this thread has taken and not given back */

static bool fails(void)
{
	return counting && ++made == fail_at;
}

static void *took(void *p)
{
	balance += counting && p;
	if (!p)
		errno = ENOMEM;
	return p;
}

#pragma GCC visibility push(default) /* the libraries call these */

void *malloc(size_t size)
{
	return took(fails() ? NULL : __libc_malloc(size));
}

void *calloc(size_t count, size_t size)
{
	return took(fails() ? NULL : __libc_calloc(count, size));
}

void *realloc(void *p, size_t size)
{
	void *now = fails() ? NULL : __libc_realloc(p, size);

	if (!p)
		return took(now);
	if (!now)
		errno = ENOMEM;
	return now;
}

void *memalign(size_t align, size_t size)
{
	return took(fails() ? NULL : __libc_memalign(align, size));
}

void *aligned_alloc(size_t align, size_t size)
{
	return memalign(align, size);
}

int posix_memalign(void **out, size_t align, size_t size)
{
	*out = memalign(align, size);
	return *out ? 0 : ENOMEM;
}

void free(void *p)
{
	balance -= counting && p;
	__libc_free(p);
}

void *mmap(void *addr, size_t len, int prot, int flags, int fd, off_t at)
{
	if (fails()) {
		errno = ENOMEM;
		return MAP_FAILED;
	}
	balance += counting && !(flags & MAP_FIXED);
	return (void *)syscall(SYS_mmap, addr, len, prot, flags, fd, at);
}

int munmap(void *addr, size_t len)
{
	balance -= counting;
	return (int)syscall(SYS_munmap, addr, len);
}

#pragma GCC visibility pop

/* ---- the calls ---- */

static struct endpoint ep;
static struct ibv_cq *cq;
static struct ibv_qp *qp;
static struct ibv_mr *mr;
static uint8_t memory[4096];
static struct rdma_event_channel *channel;

/* Makes something. NULL with errno, as the verbs do. */
typedef void *make_fn(void);
typedef int drop_fn(void *made);

static void *make_context(void)
{
	int count;
	struct ibv_device **list = ibv_get_device_list(&count);
	struct ibv_context *ctx = list && count ? ibv_open_device(list[0]) : NULL;
	int err = errno;

	if (list)
		ibv_free_device_list(list);
	errno = err;
	return ctx;
}

static int drop_context(void *p)
{
	return ibv_close_device(p);
}

static void *make_list(void)
{
	return ibv_get_device_list(NULL);
}

static int drop_list(void *p)
{
	ibv_free_device_list(p);
	return 0;
}

static void *make_pd(void)
{
	return ibv_alloc_pd(ep.ctx);
}

static int drop_pd(void *p)
{
	return ibv_dealloc_pd(p);
}

static void *make_mr(void)
{
	return ibv_reg_mr(ep.pd, memory, sizeof(memory), IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ);
}

static int drop_mr(void *p)
{
	return ibv_dereg_mr(p);
}

static void *make_mw(void)
{
	return ibv_alloc_mw(ep.pd, IBV_MW_TYPE_2);
}

static int drop_mw(void *p)
{
	return ibv_dealloc_mw(p);
}

static void *make_channel(void)
{
	return ibv_create_comp_channel(ep.ctx);
}

static int drop_channel(void *p)
{
	return ibv_destroy_comp_channel(p);
}

static void *make_cq(void)
{
	return ibv_create_cq(ep.ctx, 100, NULL, NULL, 0);
}

static int drop_cq(void *p)
{
	return ibv_destroy_cq(p);
}

static void *make_cq_ex(void)
{
	struct ibv_cq_init_attr_ex attr = {.cqe = 10, .wc_flags = IBV_WC_STANDARD_FLAGS};

	return ibv_create_cq_ex(ep.ctx, &attr);
}

static int drop_cq_ex(void *p)
{
	return ibv_destroy_cq(ibv_cq_ex_to_cq(p));
}

static void *make_srq(void)
{
	struct ibv_srq_init_attr attr = {.attr = {.max_wr = 100, .max_sge = 2}};

	return ibv_create_srq(ep.pd, &attr);
}

static int drop_srq(void *p)
{
	return ibv_destroy_srq(p);
}

static void *make_qp(void)
{
	struct ibv_qp_init_attr attr = {.send_cq = cq,
					.recv_cq = cq,
					.qp_type = IBV_QPT_RC,
					.cap = {.max_send_wr = 64,
						.max_recv_wr = 64,
						.max_send_sge = 4,
						.max_recv_sge = 4,
						.max_inline_data = 64}};

	return ibv_create_qp(ep.pd, &attr);
}

static void *make_qp_ex(void)
{
	struct ibv_qp_init_attr_ex attr = {
		.send_cq = cq,
		.recv_cq = cq,
		.qp_type = IBV_QPT_UD,
		.pd = ep.pd,
		.cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1},
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.send_ops_flags = IBV_QP_EX_WITH_SEND};

	return ibv_create_qp_ex(ep.ctx, &attr);
}

static int drop_qp(void *p)
{
	return ibv_destroy_qp(p);
}

static void *make_ah(void)
{
	struct ibv_ah_attr attr = {.is_global = 1,
				   .port_num = 1,
				   .grh = {.dgid = ep.gid, .sgid_index = (uint8_t)ep.gid_index, .hop_limit = 64}};

	return ibv_create_ah(ep.pd, &attr);
}

static int drop_ah(void *p)
{
	return ibv_destroy_ah(p);
}

static void *make_events(void)
{
	return rdma_create_event_channel();
}

static int drop_events(void *p)
{
	rdma_destroy_event_channel(p);
	return 0;
}

static void *make_id(void)
{
	struct rdma_cm_id *id;

	return rdma_create_id(channel, &id, NULL, RDMA_PS_TCP) ? NULL : id;
}

static int drop_id(void *p)
{
	return rdma_destroy_id(p);
}

static struct sockaddr_in loopback(uint16_t port)
{
	return (struct sockaddr_in){
		.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

/* A listening id. */
static void *make_listener(void)
{
	struct sockaddr_in to = loopback(0);
	struct rdma_cm_id *id;
	int err;

	if (rdma_create_id(channel, &id, NULL, RDMA_PS_TCP))
		return NULL;
	if (!rdma_bind_addr(id, (struct sockaddr *)&to) && !rdma_listen(id, 4))
		return id;
	err = errno;
	rdma_destroy_id(id);
	errno = err;
	return NULL;
}

/* An id that has found its way and has a QP. */
static void *make_resolved(void)
{
	struct sockaddr_in to = loopback(7);
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1}};
	struct rdma_cm_id *id;
	int err;

	if (rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP))
		return NULL;
	if (!rdma_resolve_addr(id, NULL, (struct sockaddr *)&to, 1000) && !rdma_resolve_route(id, 1000) &&
	    !rdma_create_qp(id, NULL, &attr))
		return id;
	err = errno;
	rdma_destroy_ep(id);
	errno = err;
	return NULL;
}

static int drop_resolved(void *p)
{
	rdma_destroy_ep(p);
	return 0;
}

static void *make_addrinfo(void)
{
	struct rdma_addrinfo hints = {.ai_port_space = RDMA_PS_TCP}, *info;

	return rdma_getaddrinfo("127.0.0.1", "7000", &hints, &info) ? NULL : info;
}

static int drop_addrinfo(void *p)
{
	rdma_freeaddrinfo(p);
	return 0;
}

static void *make_rsocket(int type)
{
	int fd = rsocket(AF_INET, type, 0);

	return fd < 0 ? NULL : (void *)(intptr_t)(fd + 1);
}

static void *make_stream(void)
{
	return make_rsocket(SOCK_STREAM);
}

static void *make_datagrams(void)
{
	return make_rsocket(SOCK_DGRAM);
}

static int drop_rsocket(void *p)
{
	return rclose((int)(intptr_t)p - 1);
}

/* Resizing makes nothing new: the queue itself stands for it. */
static void *resize_cq(void)
{
	static int entries = 200;
	int err;

	entries += 100;
	err = ibv_resize_cq(cq, entries);
	errno = err;
	return err ? NULL : cq;
}

static int keep(void *p)
{
	return 0;
}

/* A program may post as much as it has asked for, whatever memory there is. */
static void *post(void)
{
	struct ibv_sge sge = {(uintptr_t)memory, 64, mr->lkey};
	struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;
	int err = ibv_post_recv(qp, &wr, &bad);

	errno = err;
	return err ? NULL : qp;
}

static const struct {
	const char *name;
	make_fn *make;
	drop_fn *drop;
} cases[] = {
	{"ibv_get_device_list", make_list, drop_list},
	{"ibv_open_device", make_context, drop_context},
	{"ibv_alloc_pd", make_pd, drop_pd},
	{"ibv_reg_mr", make_mr, drop_mr},
	{"ibv_alloc_mw", make_mw, drop_mw},
	{"ibv_create_comp_channel", make_channel, drop_channel},
	{"ibv_create_cq", make_cq, drop_cq},
	{"ibv_create_cq_ex", make_cq_ex, drop_cq_ex},
	{"ibv_resize_cq", resize_cq, keep},
	{"ibv_create_srq", make_srq, drop_srq},
	{"ibv_create_qp", make_qp, drop_qp},
	{"ibv_create_qp_ex", make_qp_ex, drop_qp},
	{"ibv_create_ah", make_ah, drop_ah},
	{"ibv_post_recv", post, keep},
	{"rdma_create_event_channel", make_events, drop_events},
	{"rdma_create_id", make_id, drop_id},
	{"rdma_listen", make_listener, drop_id},
	{"rdma_create_qp", make_resolved, drop_resolved},
	{"rdma_getaddrinfo", make_addrinfo, drop_addrinfo},
	{"rsocket, stream", make_stream, drop_rsocket},
	{"rsocket, datagrams", make_datagrams, drop_rsocket},
};

#define CASES (sizeof(cases) / sizeof(cases[0]))

static bool run_out(unsigned c)
{
	unsigned refused = 0;

	/* Once with all the memory it wants: what is kept for good is there then. */
	cases[c].drop(cases[c].make());
	for (fail_at = 1; fail_at < TRIES; fail_at++) {
		void *thing;
		int err;

		made = 0;
		balance = 0;
		errno = 0;
		counting = true;
		thing = cases[c].make();
		err = errno;
		if (thing)
			cases[c].drop(thing);
		counting = false;
		if (!thing && err != ENOMEM) {
			printf("%s: allocation %u fails: errno %d (%s), not ENOMEM\n", cases[c].name, fail_at, err,
			       strerror(err));
			return false;
		}
		refused += !thing;
		if (balance > 0 && cases[c].drop != keep) {
			printf("%s: allocation %u fails: %ld blocks are lost\n", cases[c].name, fail_at, balance);
			return false;
		}
		if (made < fail_at) {
			printf("%-26s %3u allocations, %3u times ENOMEM\n", cases[c].name, fail_at - 1, refused);
			return true;
		}
	}
	printf("%s: more than %u allocations\n", cases[c].name, TRIES);
	return false;
}

int main(int argc, char **argv)
{
	unsigned failed = 0;

	setvbuf(stdout, NULL, _IONBF, 0);
	/* The device itself: each time it is opened and closed, as nobody else has it open. */
	failed += !run_out(0);
	failed += !run_out(1);
	endpoint_open(&ep, atoi(argv[argc > 1 ? 1 : 0]));
	cq = make_cq();
	qp = qp_make(&ep, IBV_QPT_RC, cq, NULL, 1000, 1);
	mr = make_mr();
	channel = make_events();
	need(cq && qp && mr && channel, "objects");
	for (unsigned i = 0; i < 100; i++) /* the memory of the last 64 is kept */
		drop_events(make_events());
	for (unsigned c = 2; c < CASES; c++)
		failed += !run_out(c);
	return failed != 0;
}
