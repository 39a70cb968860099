/* SPDX-License-Identifier: BSD-2-Clause */
/* Calls of verbs that are refused. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "provoke.h"

#define RIGHTS (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE)

/* The errno of a call that returns a pointer. */
#define REFUSED(pointer) ((pointer) ? 0 : errno)

static int reg_mr(struct provoke *p)
{
	return REFUSED(ibv_reg_mr(p->pd, p->bytes, sizeof(p->bytes), IBV_ACCESS_REMOTE_WRITE));
}

/* A page that was given back. */
static int reg_unmapped(struct provoke *p)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	void *gone = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (gone == MAP_FAILED || munmap(gone, page))
		return 0;
	return REFUSED(ibv_reg_mr(p->pd, gone, page, IBV_ACCESS_LOCAL_WRITE));
}

static int reg_on_demand(struct provoke *p)
{
	return REFUSED(ibv_reg_mr(p->pd, p->bytes, sizeof(p->bytes), IBV_ACCESS_ON_DEMAND));
}

static int create_cq(struct provoke *p)
{
	return REFUSED(ibv_create_cq(p->context, 0, NULL, NULL, 0));
}

static int create_qp_of(struct provoke *p, enum ibv_qp_type type, uint32_t depth)
{
	struct ibv_cq *cq = ibv_create_cq(p->context, 1, NULL, NULL, 0);
	struct ibv_qp_init_attr init = {.send_cq = cq, .recv_cq = cq, .qp_type = type, .cap = {.max_send_wr = depth}};
	int err = cq ? REFUSED(ibv_create_qp(p->pd, &init)) : 0;

	if (cq)
		ibv_destroy_cq(cq);
	return err;
}

static int create_qp(struct provoke *p)
{
	return create_qp_of(p, IBV_QPT_RC, 1u << 24);
}

static int create_raw_qp(struct provoke *p)
{
	return create_qp_of(p, IBV_QPT_RAW_PACKET, 1);
}

/* Calls `act` with a queue pair in INIT. */
static int with_qp(struct provoke *p, int (*act)(struct provoke *, struct ibv_qp *))
{
	struct ibv_qp *qp = provoke_qp(p, 4, RIGHTS);
	int err = qp ? act(p, qp) : 0;

	if (qp)
		provoke_qp_destroy(qp);
	return err;
}

static int to_rtr(struct provoke *p, struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTR, .path_mtu = p->mtu};

	return ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PATH_MTU);
}

static int to_rts(struct provoke *p, struct ibv_qp *qp)
{
	return provoke_rts(qp, 1, PROVOKE_SHORT);
}

static int alternate_path(struct provoke *p, struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT};

	return ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_ALT_PATH);
}

static int send_one(struct provoke *p, struct ibv_qp *qp)
{
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED}, *bad;

	return ibv_post_send(qp, &wr, &bad);
}

/* Nothing is polled, so no entry of the queue becomes free. */
static int send_many(struct provoke *p, struct ibv_qp *qp)
{
	int err = provoke_rtr(p, qp, qp->qp_num);

	if (!err)
		err = provoke_rts(qp, 1, PROVOKE_SHORT);
	for (unsigned i = 0; !err && i < 100000; i++)
		err = send_one(p, qp);
	return err;
}

static int receive_one(struct ibv_qp *qp, int num_sge)
{
	struct ibv_sge sge[64] = {{0}};
	struct ibv_recv_wr wr = {.sg_list = sge, .num_sge = num_sge}, *bad;

	return ibv_post_recv(qp, &wr, &bad);
}

static int receive_many(struct provoke *p, struct ibv_qp *qp)
{
	int err = 0;

	for (unsigned i = 0; !err && i < 100000; i++)
		err = receive_one(qp, 0);
	return err;
}

static int receive_wide(struct provoke *p, struct ibv_qp *qp)
{
	return receive_one(qp, 64);
}

static int create_ah(struct provoke *p)
{
	struct ibv_ah_attr attr = {.port_num = 1};

	return REFUSED(ibv_create_ah(p->pd, &attr));
}

static int destroy_cq(struct provoke *p, struct ibv_qp *qp)
{
	return ibv_destroy_cq(qp->recv_cq);
}

static const struct {
	const char *name, *story;
	int (*call)(struct provoke *p);
	int (*with_qp)(struct provoke *p, struct ibv_qp *qp);
} calls[] = {
	{"ibv_reg_mr: EINVAL", "ibv_reg_mr() with IBV_ACCESS_REMOTE_WRITE, without IBV_ACCESS_LOCAL_WRITE", reg_mr,
	 NULL},
	{"ibv_reg_mr: EFAULT", "ibv_reg_mr() of a page that munmap() has taken away", reg_unmapped, NULL},
	{"ibv_reg_mr: EOPNOTSUPP", "ibv_reg_mr() with IBV_ACCESS_ON_DEMAND", reg_on_demand, NULL},
	{"ibv_create_cq: EINVAL", "ibv_create_cq() with 0 entries", create_cq, NULL},
	{"ibv_create_qp: EINVAL", "ibv_create_qp() with max_send_wr 16777216", create_qp, NULL},
	{"ibv_create_qp: EOPNOTSUPP", "ibv_create_qp() with IBV_QPT_RAW_PACKET", create_raw_qp, NULL},
	{"ibv_modify_qp to RTR: EINVAL", "ibv_modify_qp() from INIT to RTR without the peer's address", NULL, to_rtr},
	{"ibv_modify_qp: EINVAL", "ibv_modify_qp() from INIT to RTS, without RTR between", NULL, to_rts},
	{"ibv_modify_qp: EOPNOTSUPP", "ibv_modify_qp() with IBV_QP_ALT_PATH", NULL, alternate_path},
	{"ibv_post_send: ENOMEM", "ibv_post_send() again and again, without ibv_poll_cq()", NULL, send_many},
	{"ibv_post_send: EINVAL", "ibv_post_send() to a queue pair in INIT", NULL, send_one},
	{"ibv_post_recv: ENOMEM", "ibv_post_recv() again and again, and nothing is sent", NULL, receive_many},
	{"ibv_post_recv: EINVAL", "ibv_post_recv() with 64 SGEs to a queue pair with max_recv_sge 1", NULL,
	 receive_wide},
	{"ibv_create_ah: EINVAL", "ibv_create_ah() with is_global 0", create_ah, NULL},
	{"ibv_destroy: EBUSY", "ibv_destroy_cq() while a queue pair uses the CQ", NULL, destroy_cq},
};

bool provoke_call(struct provoke *p, const struct explanation *row, bool *known)
{
	*known = false;
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		int err;

		if (strcmp(calls[i].name, row->name))
			continue;
		*known = true;
		if (!p)
			return false;
		err = calls[i].call ? calls[i].call(p) : with_qp(p, calls[i].with_qp);
		printf("%s\n  answers %d, %s (%s)\n", calls[i].story, err, strerrorname_np(err), strerror(err));
		return err == row->code;
	}
	return false;
}
