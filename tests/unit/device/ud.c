/* SPDX-License-Identifier: BSD-2-Clause */
#include "ud.h"

#include <time.h>

#define QKEY 0x11111111u
atomic_uint completions;
pthread_mutex_t listeners = PTHREAD_MUTEX_INITIALIZER;
atomic_bool in_event, dawdle;

void on_event(const struct roci_event *ev)
{
	pthread_mutex_lock(&listeners);
	atomic_store(&in_event, true);
	if (atomic_load(&dawdle))
		nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
	pthread_mutex_unlock(&listeners);
	if (ev->kind == ROCI_EV_COMPLETION)
		atomic_fetch_add(&completions, 1);
}

struct roci_device *open_device(void)
{
	struct roci_device *dev;

	assert_int_equal(roci_device_get(on_event, &dev), 0);
	return dev;
}

uint8_t loopback_index(struct roci_device *dev)
{
	uint8_t gid[16];
	int index;

	gid_of("127.0.0.1", gid);
	index = roci_device_find_gid(dev, gid, 0);
	assert_true(index >= 0);
	return (uint8_t)index;
}

static void change(struct ud *u, enum roci_qp_state state, unsigned mask)
{
	struct roci_qp_attr attr = {.state = state, .qkey = QKEY, .port_num = 1};

	assert_int_equal(roci_qp_modify(u->qp, roci_now(), &attr, ROCI_QP_STATE | mask), 0);
}

void ud_open(struct ud *u, struct roci_device *dev)
{
	struct roci_engine *e = roci_device_lock(dev);
	struct roci_mr_attr mr = {
		.pd = 1, .base = u->memory, .len = sizeof(u->memory), .access = ROCI_ACCESS_LOCAL_WRITE};
	struct roci_qp_init init = {.type = ROCI_QPT_UD, .pd = 1, .cap = {16, 16, 1, 1, 0}};
	struct roci_ah_params ah = {.sgid_index = loopback_index(dev), .hop_limit = 64};

	u->dev = dev;
	gid_of("127.0.0.1", ah.dgid);
	assert_int_equal(roci_device_listen(dev, ah.sgid_index), 0);
	assert_int_equal(roci_device_make_av(dev, &ah, &u->self), 0);
	assert_int_equal(roci_cq_create(e, 64, u, &u->cq), 0);
	mr.iova = (uintptr_t)u->memory;
	do
		mr.key = roci_random32();
	while (roci_mr_create(e, &mr, &u->mr));
	u->key = mr.key;
	assert_int_equal(roci_device_alloc_qpn(dev, &u->qpn), 0);
	init.qpn = u->qpn;
	init.send_cq = init.recv_cq = u->cq;
	assert_int_equal(roci_qp_create(e, &init, &u->qp), 0);
	change(u, ROCI_QPS_INIT, ROCI_QP_PKEY_INDEX | ROCI_QP_PORT | ROCI_QP_QKEY);
	change(u, ROCI_QPS_RTR, 0);
	change(u, ROCI_QPS_RTS, ROCI_QP_SQ_PSN);
	roci_device_unlock(dev);
}

void ud_close(struct ud *u)
{
	roci_device_lock(u->dev);
	roci_qp_destroy(u->qp);
	roci_device_free_qpn(u->dev, u->qpn);
	roci_mr_destroy(u->mr);
	roci_cq_destroy(u->cq);
	roci_device_unlock(u->dev);
}

void ud_post(struct ud *u, uint32_t qpn, uint8_t byte, bool receive)
{
	struct roci_sge in = {(uintptr_t)u->memory + 32, 96, u->key}, out = {(uintptr_t)u->memory, 1, u->key};
	struct roci_recv_wr recv = {.wr_id = 2, .sges = &in, .num_sge = 1};
	struct roci_send_wr send = {
		.wr_id = 1,
		.opcode = ROCI_WR_SEND,
		.flags = ROCI_SEND_SIGNALED,
		.sges = &out,
		.num_sge = 1,
		.av = &u->self,
		.remote_qpn = qpn,
		.remote_qkey = QKEY,
	};

	roci_device_lock_post(u->dev);
	if (receive)
		assert_int_equal(roci_qp_post_recv(u->qp, &recv), 0);
	u->memory[0] = byte;
	if (qpn)
		assert_int_equal(roci_qp_post_send(u->qp, &send), 0);
	roci_device_unlock(u->dev);
}

void ud_wait(struct ud *u, unsigned want, bool polling)
{
	uint64_t end = roci_now() + 5000000000u;
	struct roci_cqe cqe;

	while (want) {
		assert_true(roci_now() < end);
		if (polling)
			roci_device_poll(u->dev);
		if (!roci_cq_poll(u->cq, &cqe, 1))
			continue;
		assert_int_equal(cqe.status, ROCI_WC_SUCCESS);
		want--;
	}
}

void *send_to_itself(void *arg)
{
	struct ud *u = arg;

	ud_post(u, u->qpn, 1, true);
	return NULL;
}

/* The thread sanitizer would end the forked child. */
const char *__tsan_default_options(void);
__attribute__((visibility("default"))) const char *__tsan_default_options(void)
{
	return "die_after_fork=0";
}
