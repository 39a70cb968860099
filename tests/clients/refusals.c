/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Calls that are refused, and datagrams that are dropped, one after the other, for test_why.py: ibv_wr_*, multicast,
 * UD, UC. Before each a line on stderr has its name. Public verbs and rdma_cm only.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/rdma_cma.h>

#include "pair.h"

#define QKEY   0x11111111u
#define BYTES  64u
#define GRH    40u
#define FLOOD  1000
#define MANY   65 /* QPs, one more than a group may have */
#define GROUP  0xefff0101u
#define WAIT_N 100000000u

static struct endpoint ep;
static struct ibv_cq *cq;
static struct ibv_mr *mr;
static uint8_t memory[4096];

static void begin(const char *name)
{
	fprintf(stderr, "case %s\n", name);
}

static void refused(int err)
{
	if (!err)
		die("a call was not refused");
}

static union ibv_gid group(uint32_t address)
{
	union ibv_gid gid = {.raw = {[10] = 0xff, [11] = 0xff}};

	address = htonl(address);
	memcpy(gid.raw + 12, &address, sizeof(address));
	return gid;
}

/* ---- ibv_wr_* ---- */

static struct ibv_qp *extended(enum ibv_qp_type type)
{
	struct ibv_qp_init_attr_ex init = {
		.qp_type = type,
		.send_cq = cq,
		.recv_cq = cq,
		.cap = {.max_send_wr = 4,
			.max_recv_wr = 4,
			.max_send_sge = 1,
			.max_recv_sge = 1,
			.max_inline_data = 16},
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = ep.pd,
		.send_ops_flags = IBV_QP_EX_WITH_SEND,
	};
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1};
	struct ibv_qp *qp = ibv_create_qp_ex(ep.ctx, &init);

	need(qp, "ibv_create_qp_ex");
	need(!ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
	     "ibv_modify_qp");
	return qp;
}

static void wr_read(struct ibv_qp_ex *qp)
{
	ibv_wr_rdma_read(qp, 0, 0);
}

static void wr_flags(struct ibv_qp_ex *qp)
{
	qp->wr_flags = 1u << 20;
	ibv_wr_send(qp);
}

static void wr_many(struct ibv_qp_ex *qp)
{
	for (unsigned i = 0; i < 50; i++)
		ibv_wr_send(qp);
}

static void wr_lone_sge(struct ibv_qp_ex *qp)
{
	ibv_wr_set_sge(qp, mr->lkey, (uintptr_t)memory, 1);
}

static void wr_sges(struct ibv_qp_ex *qp)
{
	struct ibv_sge sges[40] = {{0}};

	ibv_wr_send(qp);
	ibv_wr_set_sge_list(qp, 40, sges);
}

static void wr_inline(struct ibv_qp_ex *qp)
{
	ibv_wr_send(qp);
	ibv_wr_set_inline_data(qp, memory, sizeof(memory));
}

static void wr_address(struct ibv_qp_ex *qp)
{
	ibv_wr_send(qp);
	ibv_wr_set_ud_addr(qp, NULL, 1, QKEY);
}

static void wr_state(struct ibv_qp_ex *qp)
{
	ibv_wr_send(qp);
	ibv_wr_set_sge(qp, mr->lkey, (uintptr_t)memory, 1);
}

static void builder(const char *name, void (*build)(struct ibv_qp_ex *))
{
	struct ibv_qp *qp = extended(IBV_QPT_RC);
	struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(qp);

	begin(name);
	ibv_wr_start(ex);
	build(ex);
	refused(ibv_wr_complete(ex));
	ibv_destroy_qp(qp);
}

static void builders(void)
{
	builder("wr_read", wr_read);
	builder("wr_flags", wr_flags);
	builder("wr_many", wr_many);
	builder("wr_lone_sge", wr_lone_sge);
	builder("wr_sges", wr_sges);
	builder("wr_inline", wr_inline);
	builder("wr_address", wr_address);
	builder("wr_state", wr_state);
}

/* ---- datagrams ---- */

static struct ibv_qp *datagram_qp(void)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_UD,
		.send_cq = cq,
		.recv_cq = cq,
		.cap = {.max_send_wr = FLOOD, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1},
	};
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = QKEY};
	struct ibv_qp *qp = ibv_create_qp(ep.pd, &init);

	need(qp, "ibv_create_qp");
	need(!ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY), "INIT");
	attr.qp_state = IBV_QPS_RTR;
	need(!ibv_modify_qp(qp, &attr, IBV_QP_STATE), "RTR");
	attr.qp_state = IBV_QPS_RTS;
	need(!ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN), "RTS");
	return qp;
}

static void post_receive(struct ibv_qp *qp, uint32_t bytes)
{
	struct ibv_sge sge = {(uintptr_t)memory, bytes, mr->lkey};
	struct ibv_recv_wr wr = {.wr_id = 7, .sg_list = &sge, .num_sge = 1}, *bad;

	need(!ibv_post_recv(qp, &wr, &bad), "ibv_post_recv");
}

/* Waits for `wanted` receives, and takes all other completions on the way. */
static void receive(unsigned wanted)
{
	struct ibv_wc wc;

	for (unsigned i = 0; wanted && i < WAIT_N; i++)
		if (ibv_poll_cq(cq, 1, &wc) == 1)
			wanted -= (wc.opcode & IBV_WC_RECV) != 0;
	if (wanted)
		die("a datagram did not arrive");
}

static struct ibv_ah *address(union ibv_gid gid)
{
	struct ibv_ah_attr attr = {.is_global = 1, .port_num = 1, .grh = {.dgid = gid, .hop_limit = 1}};
	struct ibv_ah *ah = ibv_create_ah(ep.pd, &attr);

	need(ah, "ibv_create_ah");
	return ah;
}

static void send_to(struct ibv_qp *qp, struct ibv_ah *ah, uint32_t qpn, uint32_t qkey)
{
	struct ibv_sge sge = {(uintptr_t)memory + 2048, BYTES, mr->lkey};
	struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED};
	struct ibv_send_wr *bad;

	wr.wr.ud.ah = ah;
	wr.wr.ud.remote_qpn = qpn;
	wr.wr.ud.remote_qkey = qkey;
	need(!ibv_post_send(qp, &wr, &bad), "ibv_post_send");
}

/* Sends `count` datagrams that are dropped, and behind each one that arrives. */
static void dropped(const char *name, uint32_t room, uint32_t qpn, uint32_t qkey, unsigned count)
{
	struct ibv_qp *target = datagram_qp(), *witness = datagram_qp(), *sender = datagram_qp();
	struct ibv_ah *own = address(ep.gid);

	begin(name);
	if (room)
		post_receive(target, room);
	for (unsigned i = 0; i < count; i++) {
		send_to(sender, own, qpn ? qpn : target->qp_num, qkey);
		post_receive(witness, GRH + BYTES);
		send_to(sender, own, witness->qp_num, QKEY);
		receive(1);
	}
	ibv_destroy_qp(sender);
	ibv_destroy_qp(witness);
	ibv_destroy_qp(target);
	ibv_destroy_ah(own);
}

/* Two members of a group: the first has no receive, the second does. */
static void group_dropped(const char *name)
{
	struct ibv_qp *first = datagram_qp(), *second = datagram_qp();
	union ibv_gid gid = group(GROUP);
	struct ibv_ah *everybody = address(gid);

	begin(name);
	need(!ibv_attach_mcast(first, &gid, 0) && !ibv_attach_mcast(second, &gid, 0), "ibv_attach_mcast");
	post_receive(second, GRH + BYTES);
	send_to(second, everybody, 0xffffff, QKEY);
	receive(1);
	ibv_detach_mcast(second, &gid, 0);
	ibv_detach_mcast(first, &gid, 0);
	ibv_destroy_qp(second);
	ibv_destroy_qp(first);
	ibv_destroy_ah(everybody);
}

static void datagrams(void)
{
	struct ibv_qp *gone = datagram_qp();
	uint32_t qpn = gone->qp_num;

	ibv_destroy_qp(gone);
	dropped("ud_qkey", GRH + BYTES, 0, QKEY + 1, 1);
	dropped("ud_no_receive", 0, 0, QKEY, 1);
	dropped("ud_short_receive", GRH + BYTES - 1, 0, QKEY, 1);
	dropped("ud_no_qp", 0, qpn, QKEY, 1);
	group_dropped("ud_multicast");
	dropped("ud_flood", 0, 0, QKEY, FLOOD);
}

/* A UC QP whose peer is itself. A WRITE behind the message tells when that has been dropped. */
static void unreliable(void)
{
	struct ibv_qp_init_attr init = {.qp_type = IBV_QPT_UC, .send_cq = cq, .recv_cq = cq, .cap = {4, 1, 1, 1, 0}};
	struct ibv_qp *qp = ibv_create_qp(ep.pd, &init);
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = IBV_ACCESS_REMOTE_WRITE};
	struct ibv_sge sge = {(uintptr_t)memory, 1, mr->lkey};
	struct ibv_send_wr write = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE}, send = write, *bad;
	struct ibv_wc wc;
	volatile uint8_t *arrived = memory + 1;

	need(qp, "ibv_create_qp");
	need(!ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS), "INIT");
	attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_1024, .dest_qp_num = qp->qp_num};
	attr.ah_attr = (struct ibv_ah_attr){.is_global = 1, .port_num = 1, .grh = {.dgid = ep.gid, .hop_limit = 1}};
	need(!ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN),
	     "RTR");
	attr.qp_state = IBV_QPS_RTS;
	need(!ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN), "RTS");
	begin("uc_no_receive");
	send.opcode = IBV_WR_SEND;
	send.next = &write;
	write.wr.rdma.remote_addr = (uintptr_t)arrived;
	write.wr.rdma.rkey = mr->rkey;
	memory[0] = 1;
	*arrived = 0;
	need(!ibv_post_send(qp, &send, &bad), "ibv_post_send");
	for (unsigned i = 0; !*arrived && i < WAIT_N; i++)
		ibv_poll_cq(cq, 1, &wc);
	need(*arrived, "the WRITE");
	begin("end");
	ibv_destroy_qp(qp);
}

/* ---- groups ---- */

static void groups(void)
{
	union ibv_gid gid = group(GROUP), host = ep.gid;
	struct ibv_qp *qps[MANY], *rc = extended(IBV_QPT_RC);
	int err = 0;

	begin("attach_rc");
	refused(ibv_attach_mcast(rc, &gid, 0));
	ibv_destroy_qp(rc);
	for (unsigned i = 0; i < MANY; i++)
		qps[i] = datagram_qp();
	begin("attach_host");
	refused(ibv_attach_mcast(qps[0], &host, 0));
	begin("detach");
	refused(ibv_detach_mcast(qps[0], &gid, 0));
	begin("attach_many");
	for (unsigned i = 0; i < MANY; i++)
		err = ibv_attach_mcast(qps[i], &gid, 0);
	refused(err);
	begin("destroy_member");
	refused(ibv_destroy_qp(qps[0]));
	for (unsigned i = 0; i < MANY; i++) {
		if (i < MANY - 1)
			ibv_detach_mcast(qps[i], &gid, 0);
		ibv_destroy_qp(qps[i]);
	}
}

static void joins(void)
{
	struct sockaddr_in all = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(GROUP)},
			   host = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_id *stream, *datagram;

	need(channel, "rdma_create_event_channel");
	need(!rdma_create_id(channel, &stream, NULL, RDMA_PS_TCP), "rdma_create_id");
	need(!rdma_create_id(channel, &datagram, NULL, RDMA_PS_UDP), "rdma_create_id");
	begin("join_stream");
	refused(rdma_join_multicast(stream, (struct sockaddr *)&all, NULL));
	begin("join_early");
	refused(rdma_join_multicast(datagram, (struct sockaddr *)&all, NULL));
	need(!rdma_bind_addr(datagram, (struct sockaddr *)&host), "rdma_bind_addr");
	begin("join_host");
	refused(rdma_join_multicast(datagram, (struct sockaddr *)&host, NULL));
	begin("leave");
	refused(rdma_leave_multicast(datagram, (struct sockaddr *)&all));
	rdma_destroy_id(datagram);
	rdma_destroy_id(stream);
	rdma_destroy_event_channel(channel);
}

/* ---- queries, changes, and kinds of objects that there are not ---- */

static void queries(void)
{
	struct ibv_device_attr *nowhere = NULL;
	struct ibv_sge sge = {.lkey = 7, .length = 1};
	struct ibv_gid_entry entry;
	struct ibv_port_attr port;
	union ibv_gid gid;

	begin("port");
	refused(ibv_query_port(ep.ctx, 2, &port));
	begin("gid_index");
	refused(ibv_query_gid(ep.ctx, 1, 999, &gid));
	begin("gid_flags");
	refused(ibv_query_gid_ex(ep.ctx, 1, 0, &entry, 1));
	begin("resize");
	refused(ibv_resize_cq(cq, 0));
	begin("rereg");
	refused(ibv_rereg_mr(mr, 0, NULL, NULL, 0, 0));
	begin("advise");
	refused(ibv_advise_mr(ep.pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, &sge, 1));
	begin("null");
	refused(ibv_query_device(ep.ctx, nowhere));
}

static void kinds(void)
{
	struct ibv_xrcd_init_attr xrcd = {0};
	struct ibv_alloc_dm_attr dm = {.length = 64};
	struct ibv_wq_init_attr wq = {0};
	struct ibv_flow_attr flow = {0};
	struct ibv_qp *qp = extended(IBV_QPT_RC);

	begin("window");
	refused(!ibv_alloc_mw(ep.pd, (enum ibv_mw_type)7));
	begin("xrc");
	refused(!ibv_open_xrcd(ep.ctx, &xrcd));
	begin("device_memory");
	refused(!ibv_alloc_dm(ep.ctx, &dm));
	begin("work_queue");
	refused(!ibv_create_wq(ep.ctx, &wq));
	begin("flow");
	refused(!ibv_create_flow(qp, &flow));
	begin("import");
	refused(!ibv_import_pd(ep.ctx, 1));
	begin("end");
	ibv_destroy_qp(qp);
}

int main(void)
{
	endpoint_open(&ep, 0);
	cq = ibv_create_cq(ep.ctx, 2 * FLOOD, NULL, NULL, 0);
	mr = ibv_reg_mr(ep.pd, memory, sizeof(memory), IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	need(cq && mr, "ibv_create_cq, ibv_reg_mr");
	builders();
	datagrams();
	unreliable();
	groups();
	joins();
	queries();
	kinds();
	ibv_dereg_mr(mr);
	ibv_destroy_cq(cq);
	endpoint_close(&ep);
	return 0;
}
