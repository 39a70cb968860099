/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mt_smoke [-t THREADS] [-n OPERATIONS] [-g GID-INDEX]: worker threads, each of which connects a pair of RC queue pairs
 * in this process, post small SENDs, WRITEs and READs in batches; one more WRITE of every batch goes through the queue
 * pair of the neighbouring thread. All completions come to one shared CQ, whose completion channel one event thread
 * serves. Every byte is verified, and every completion must come exactly once. Also run under the thread sanitizer.
 */
#include "pair.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define BATCH       16u
#define SLOT_BYTES  96u
#define MAX_THREADS 64u

struct worker {
	pthread_t thread;
	unsigned index;
	struct ibv_qp *near, *far; /* near sends requests to far */
	uint8_t source[(BATCH + 1) * SLOT_BYTES], target[(BATCH + 1) * SLOT_BYTES];
	struct ibv_mr *source_mr, *target_mr;
	unsigned operations;

	pthread_mutex_t lock;
	pthread_cond_t changed;
	unsigned requests, receives; /* completions of this batch */
};

static struct endpoint ep;
static struct ibv_comp_channel *channel;
static struct ibv_cq *cq;
static struct worker *workers;
static unsigned thread_count = 4, operation_count = 100000;
static int stop_pipe[2];

/* wr_id: the worker, and whether it is a receive. */
static uint64_t make_wr_id(const struct worker *w, bool receive)
{
	return (uint64_t)w->index << 1 | receive;
}

/* ---- the event thread ---- */

static void deliver(const struct ibv_wc *wc)
{
	struct worker *w = &workers[wc->wr_id >> 1];

	if (wc->status != IBV_WC_SUCCESS)
		die("thread %u: %s", w->index, ibv_wc_status_str(wc->status));
	pthread_mutex_lock(&w->lock);
	if (wc->wr_id & 1)
		w->receives++;
	else
		w->requests++;
	pthread_cond_signal(&w->changed);
	pthread_mutex_unlock(&w->lock);
}

static void drain(void)
{
	struct ibv_wc wc[32];
	int n;

	while ((n = ibv_poll_cq(cq, 32, wc)) > 0)
		for (int i = 0; i < n; i++)
			deliver(&wc[i]);
	need(n == 0, "ibv_poll_cq");
}

static void *serve_events(void *arg)
{
	struct pollfd fds[2] = {{.fd = channel->fd, .events = POLLIN}, {.fd = stop_pipe[0], .events = POLLIN}};
	struct ibv_cq *event_cq;
	unsigned events = 0;
	void *context;

	for (;;) {
		need(poll(fds, 2, -1) > 0, "poll");
		if (fds[1].revents)
			break;
		if (ibv_get_cq_event(channel, &event_cq, &context))
			die("ibv_get_cq_event: %s", strerror(errno));
		if (event_cq != cq)
			die("an event of another CQ");
		events++;
		need(!ibv_req_notify_cq(cq, 0), "ibv_req_notify_cq");
		drain();
	}
	ibv_ack_cq_events(cq, events);
	return NULL;
}

/* ---- a worker ---- */

static enum ibv_wr_opcode slot_opcode(unsigned slot)
{
	static const enum ibv_wr_opcode opcodes[3] = {IBV_WR_SEND, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ};

	return slot == BATCH ? IBV_WR_RDMA_WRITE : opcodes[slot % 3];
}

static void post_slot(struct worker *w, unsigned slot)
{
	size_t at = slot * SLOT_BYTES;
	bool read = slot_opcode(slot) == IBV_WR_RDMA_READ;
	struct ibv_mr *local = read ? w->target_mr : w->source_mr, *remote = read ? w->source_mr : w->target_mr;
	struct ibv_sge sge = {(uintptr_t)local->addr + at, SLOT_BYTES, local->lkey};
	struct ibv_send_wr wr = {.wr_id = make_wr_id(w, false),
				 .sg_list = &sge,
				 .num_sge = 1,
				 .opcode = slot_opcode(slot),
				 .send_flags = IBV_SEND_SIGNALED},
			   *bad;

	wr.wr.rdma.remote_addr = (uintptr_t)remote->addr + at;
	wr.wr.rdma.rkey = remote->rkey;
	errno = ibv_post_send(slot == BATCH ? workers[(w->index + 1) % thread_count].near : w->near, &wr, &bad);
	need(!errno, "ibv_post_send");
}

static void post_receive(struct worker *w, unsigned slot)
{
	struct ibv_sge sge = {(uintptr_t)w->target + slot * SLOT_BYTES, SLOT_BYTES, w->target_mr->lkey};
	struct ibv_recv_wr wr = {.wr_id = make_wr_id(w, true), .sg_list = &sge, .num_sge = 1}, *bad;

	errno = ibv_post_recv(w->far, &wr, &bad);
	need(!errno, "ibv_post_recv");
}

static void wait_batch(struct worker *w, unsigned requests, unsigned receives)
{
	struct timespec end;

	clock_gettime(CLOCK_REALTIME, &end);
	end.tv_sec += PAIR_WAIT_S;
	pthread_mutex_lock(&w->lock);
	while (w->requests < requests || w->receives < receives)
		if (pthread_cond_timedwait(&w->changed, &w->lock, &end))
			die("thread %u: %u of %u requests and %u of %u receives have completed", w->index, w->requests,
			    requests, w->receives, receives);
	if (w->requests != requests || w->receives != receives)
		die("thread %u: more completions than requests", w->index);
	w->requests = w->receives = 0;
	pthread_mutex_unlock(&w->lock);
}

/* Data to be read never changes: a repeated READ may be answered long after the first one has completed. */
static uint32_t slot_seed(const struct worker *w, unsigned slot, uint32_t seed)
{
	return slot_opcode(slot) == IBV_WR_RDMA_READ ? w->index : seed;
}

static void run_batch(struct worker *w, uint32_t seed)
{
	unsigned receives = 0;

	memset(w->target, 0, sizeof(w->target));
	for (unsigned slot = 0; slot <= BATCH; slot++)
		if (slot_opcode(slot) != IBV_WR_RDMA_READ)
			pattern_fill(w->source + slot * SLOT_BYTES, SLOT_BYTES, seed + slot);
	for (unsigned slot = 0; slot < BATCH; slot++) {
		if (slot_opcode(slot) == IBV_WR_SEND) {
			post_receive(w, slot);
			receives++;
		}
	}
	for (unsigned slot = 0; slot <= BATCH; slot++)
		post_slot(w, slot);
	wait_batch(w, BATCH + 1, receives);
	for (unsigned slot = 0; slot <= BATCH; slot++)
		if (!pattern_holds(w->target + slot * SLOT_BYTES, SLOT_BYTES, slot_seed(w, slot, seed) + slot))
			die("thread %u: wrong data", w->index);
}

/* ---- set-up ---- */

static pthread_barrier_t all_open; /* a worker uses its neighbour's queue pair, too */

static struct ibv_mr *register_all(void *p, size_t len)
{
	struct ibv_mr *mr =
		ibv_reg_mr(ep.pd, p, len, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);

	need(mr != NULL, "ibv_reg_mr");
	return mr;
}

static void worker_open(struct worker *w)
{
	uint32_t near_psn = qp_random_psn(), far_psn = qp_random_psn();
	struct address near, far;

	w->operations = operation_count / thread_count;
	pthread_mutex_init(&w->lock, NULL);
	pthread_cond_init(&w->changed, NULL);
	w->source_mr = register_all(w->source, sizeof(w->source));
	w->target_mr = register_all(w->target, sizeof(w->target));
	w->near = qp_make(&ep, IBV_QPT_RC, cq, NULL, 2 * (BATCH + 1), 1);
	w->far = qp_make(&ep, IBV_QPT_RC, cq, NULL, 2 * (BATCH + 1), 1);
	near = (struct address){.gid = ep.gid, .qpn = w->near->qp_num, .psn = near_psn, .mtu = ep.mtu_bytes};
	far = (struct address){.gid = ep.gid, .qpn = w->far->qp_num, .psn = far_psn, .mtu = ep.mtu_bytes};
	qp_connect(&ep, w->near, near_psn, &far, &pair_retries);
	qp_connect(&ep, w->far, far_psn, &near, &pair_retries);
}

static void worker_close(struct worker *w)
{
	errno = ibv_destroy_qp(w->near);
	need(!errno, "ibv_destroy_qp");
	errno = ibv_destroy_qp(w->far);
	need(!errno, "ibv_destroy_qp");
	errno = ibv_dereg_mr(w->source_mr);
	need(!errno, "ibv_dereg_mr");
	errno = ibv_dereg_mr(w->target_mr);
	need(!errno, "ibv_dereg_mr");
	pthread_mutex_destroy(&w->lock);
	pthread_cond_destroy(&w->changed);
}

static void *work(void *arg)
{
	struct worker *w = arg;

	worker_open(w);
	pthread_barrier_wait(&all_open);
	for (unsigned slot = 0; slot <= BATCH; slot++)
		pattern_fill(w->source + slot * SLOT_BYTES, SLOT_BYTES, w->index + slot);
	for (unsigned done = 0; done < w->operations; done += BATCH + 1)
		run_batch(w, w->index << 24 | done);
	return NULL;
}

static void run_threads(void)
{
	pthread_t events;

	need(!pipe2(stop_pipe, O_CLOEXEC), "pipe2");
	need(!ibv_req_notify_cq(cq, 0), "ibv_req_notify_cq");
	errno = pthread_create(&events, NULL, serve_events, NULL);
	need(!errno, "pthread_create");
	errno = pthread_barrier_init(&all_open, NULL, thread_count);
	need(!errno, "pthread_barrier_init");
	for (unsigned i = 0; i < thread_count; i++) {
		workers[i].index = i;
		errno = pthread_create(&workers[i].thread, NULL, work, &workers[i]);
		need(!errno, "pthread_create");
	}
	for (unsigned i = 0; i < thread_count; i++)
		pthread_join(workers[i].thread, NULL);
	pthread_barrier_destroy(&all_open);
	need(write(stop_pipe[1], "", 1) == 1, "write");
	pthread_join(events, NULL);
	close(stop_pipe[0]);
	close(stop_pipe[1]);
}

int main(int argc, char **argv)
{
	int gid_index = 0, option;

	while ((option = getopt(argc, argv, "t:n:g:")) != -1) {
		switch (option) {
		case 't': thread_count = (unsigned)atoi(optarg); break;
		case 'n': operation_count = (unsigned)atoi(optarg); break;
		case 'g': gid_index = atoi(optarg); break;
		default: die("usage: mt_smoke [-t THREADS] [-n OPERATIONS] [-g GID-INDEX]");
		}
	}
	if (thread_count < 1 || thread_count > MAX_THREADS)
		die("1 to %u threads", MAX_THREADS);
	endpoint_open(&ep, gid_index);
	channel = ibv_create_comp_channel(ep.ctx);
	need(channel != NULL, "ibv_create_comp_channel");
	cq = ibv_create_cq(ep.ctx, (int)(thread_count * 2 * (BATCH + 1)), NULL, channel, 0);
	need(cq != NULL, "ibv_create_cq");
	workers = calloc(thread_count, sizeof(*workers));
	need(workers != NULL, "calloc");
	run_threads();
	for (unsigned i = 0; i < thread_count; i++)
		worker_close(&workers[i]);
	errno = ibv_destroy_cq(cq);
	need(!errno, "ibv_destroy_cq");
	errno = ibv_destroy_comp_channel(channel);
	need(!errno, "ibv_destroy_comp_channel");
	free(workers);
	endpoint_close(&ep);
	printf("%u threads, %u operations each\n", thread_count, operation_count / thread_count);
	return 0;
}
