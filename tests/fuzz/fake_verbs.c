/* SPDX-License-Identifier: BSD-2-Clause */
#include "fake_verbs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "check.h"

#define MAX_REGIONS 1024
#define MAX_EVENTS  128
#define MAX_PRIVATE 196
#define FIRST_KEY   0x4000u

struct fake_cq {
	struct ibv_cq cq;
	struct ibv_wc *wcs; /* ring */
	unsigned first, count;
	bool armed;
};

struct fake_event {
	struct rdma_cm_event event;
	uint8_t private_data[MAX_PRIVATE];
};

static struct {
	struct ibv_mr *regions[MAX_REGIONS];
	unsigned access[MAX_REGIONS];
	struct fake_event *events[MAX_EVENTS]; /* of all channels, in order */
	unsigned event_count;
	unsigned objects;
	struct fake_qp *newest_qp;
	uint32_t next_qpn;
} world;

static int poll_cq(struct ibv_cq *cq, int room, struct ibv_wc *out);
static int arm_cq(struct ibv_cq *cq, int solicited);
static int post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
static int post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);

static struct ibv_device device = {.name = "roci0", .dev_name = "roci0", .transport_type = IBV_TRANSPORT_IB};
static struct ibv_context context = {
	.device = &device,
	.ops = {.poll_cq = poll_cq, .req_notify_cq = arm_cq, .post_send = post_send, .post_recv = post_recv}};
static struct ibv_pd pd = {.context = &context};

static void *make(size_t size)
{
	void *p = calloc(1, size);

	CHECK(p);
	world.objects++;
	return p;
}

static void drop(void *p)
{
	CHECK(p && world.objects);
	world.objects--;
	free(p);
}

unsigned fake_objects(void)
{
	return world.objects;
}

/* ---- descriptors that say that something is there ---- */

static void ring_bell(int fd)
{
	eventfd_write(fd, 1);
}

static void silence_bell(int fd)
{
	eventfd_t count;

	eventfd_read(fd, &count);
}

/* ---- memory ---- */

static unsigned region_of(uint32_t key)
{
	return (key - FIRST_KEY) / 256;
}

/* Whether the key's region holds this memory, with these rights. */
static bool may(uint32_t key, uint64_t addr, uint64_t len, unsigned access)
{
	unsigned i = region_of(key);
	const struct ibv_mr *mr = i < MAX_REGIONS ? world.regions[i] : NULL;
	uint64_t begin;

	if (!mr || mr->lkey != key || (world.access[i] & access) != access)
		return false;
	begin = (uintptr_t)mr->addr;
	return addr >= begin && addr - begin <= mr->length && len <= mr->length - (addr - begin);
}

struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *of, void *addr, size_t len, uint64_t iova, unsigned access)
{
	struct ibv_mr *mr = make(sizeof(*mr));
	unsigned i = 0;

	while (world.regions[i])
		CHECK(++i < MAX_REGIONS);
	*mr = (struct ibv_mr){.context = &context, .pd = of, .addr = addr, .length = len};
	mr->lkey = mr->rkey = FIRST_KEY + i * 256;
	world.regions[i] = mr;
	world.access[i] = access;
	return mr;
}

#undef ibv_reg_mr
struct ibv_mr *ibv_reg_mr(struct ibv_pd *of, void *addr, size_t len, int access)
{
	return ibv_reg_mr_iova2(of, addr, len, (uintptr_t)addr, (unsigned)access);
}

int ibv_dereg_mr(struct ibv_mr *mr)
{
	CHECK(world.regions[region_of(mr->lkey)] == mr);
	world.regions[region_of(mr->lkey)] = NULL;
	drop(mr);
	return 0;
}

bool fake_write(uint32_t rkey, uint64_t addr, const void *bytes, size_t len)
{
	if (!may(rkey, addr, len, IBV_ACCESS_REMOTE_WRITE))
		return false;
	memcpy((void *)(uintptr_t)addr, bytes, len);
	return true;
}

/* ---- completion queues ---- */

struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *of)
{
	struct ibv_comp_channel *channel = make(sizeof(*channel));

	channel->context = of;
	channel->fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	CHECK(channel->fd >= 0);
	return channel;
}

int ibv_destroy_comp_channel(struct ibv_comp_channel *channel)
{
	close(channel->fd);
	drop(channel);
	return 0;
}

struct ibv_cq *ibv_create_cq(struct ibv_context *of, int cqe, void *cq_context, struct ibv_comp_channel *channel,
			     int vector)
{
	struct fake_cq *cq = make(sizeof(*cq));

	cq->cq = (struct ibv_cq){.context = of, .channel = channel, .cq_context = cq_context, .cqe = cqe};
	cq->wcs = calloc((size_t)cqe, sizeof(*cq->wcs));
	CHECK(cq->wcs);
	return &cq->cq;
}

int ibv_destroy_cq(struct ibv_cq *cq)
{
	free(((struct fake_cq *)(void *)cq)->wcs);
	drop(cq);
	return 0;
}

static int arm_cq(struct ibv_cq *cq, int solicited)
{
	((struct fake_cq *)(void *)cq)->armed = true;
	return 0;
}

int ibv_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq, void **cq_context)
{
	silence_bell(channel->fd);
	errno = EAGAIN;
	return -1; /* the program polls in any case */
}

void ibv_ack_cq_events(struct ibv_cq *cq, unsigned events)
{
}

static void push(struct ibv_cq *to, const struct ibv_wc *wc)
{
	struct fake_cq *cq = (struct fake_cq *)(void *)to;

	CHECK(cq->count < (unsigned)to->cqe);
	cq->wcs[(cq->first + cq->count++) % (unsigned)to->cqe] = *wc;
	if (cq->armed && to->channel)
		ring_bell(to->channel->fd);
	cq->armed = false;
}

static int poll_cq(struct ibv_cq *from, int room, struct ibv_wc *out)
{
	struct fake_cq *cq = (struct fake_cq *)(void *)from;
	int n = 0;

	if (!cq->count && !fake_peer_turn())
		return 0;
	for (; n < room && cq->count; n++, cq->count--) {
		out[n] = cq->wcs[cq->first];
		cq->first = (cq->first + 1) % (unsigned)from->cqe;
	}
	return n;
}

/* ---- queue pairs ---- */

static int post_recv(struct ibv_qp *of, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	struct fake_qp *qp = (struct fake_qp *)(void *)of;

	for (; wr; wr = wr->next) {
		struct fake_recv *recv = &qp->receives[(qp->recv_first + qp->recv_count++) % qp->cap.max_recv_wr];

		CHECK(qp->recv_count <= qp->cap.max_recv_wr && wr->num_sge <= 1);
		*recv = (struct fake_recv){.wr_id = wr->wr_id};
		if (wr->num_sge)
			recv->sge = *wr->sg_list;
		CHECK(!wr->num_sge || may(recv->sge.lkey, recv->sge.addr, recv->sge.length, IBV_ACCESS_LOCAL_WRITE));
	}
	return 0;
}

static void check_sge(const struct ibv_sge *sge, bool is_inline, unsigned access)
{
	static volatile uint8_t sum;

	CHECK(is_inline || may(sge->lkey, sge->addr, sge->length, access));
	for (uint32_t i = 0; i < sge->length; i += 64) /* for a sanitizer to see */
		sum += ((const uint8_t *)(uintptr_t)sge->addr)[i];
	if (sge->length)
		sum += ((const uint8_t *)(uintptr_t)sge->addr)[sge->length - 1];
}

static int post_send(struct ibv_qp *of, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	struct fake_qp *qp = (struct fake_qp *)(void *)of;

	for (; wr; wr = wr->next) {
		struct fake_send *send = &qp->sends[(qp->send_first + qp->send_count++) % qp->cap.max_send_wr];
		unsigned access = wr->opcode == IBV_WR_RDMA_READ ? IBV_ACCESS_LOCAL_WRITE : 0;

		CHECK(qp->send_count <= qp->cap.max_send_wr && wr->num_sge <= FAKE_MAX_SGE);
		*send = (struct fake_send){.wr = *wr};
		send->silent = !qp->signals_all && !(wr->send_flags & IBV_SEND_SIGNALED);
		for (int i = 0; i < wr->num_sge; i++) {
			send->sges[i] = wr->sg_list[i];
			check_sge(&send->sges[i], wr->send_flags & IBV_SEND_INLINE, access);
		}
		fake_posted(qp, send);
	}
	return 0;
}

bool fake_complete(struct fake_qp *qp, enum ibv_wc_status status)
{
	struct fake_send *send = &qp->sends[qp->send_first];
	struct ibv_wc wc = {.wr_id = send->wr.wr_id, .status = status, .qp_num = qp->qp.qp_num};

	if (!qp->send_count)
		return false;
	qp->send_first = (qp->send_first + 1) % qp->cap.max_send_wr;
	qp->send_count--;
	if (!send->silent || status != IBV_WC_SUCCESS)
		push(qp->qp.send_cq, &wc);
	return true;
}

bool fake_receive(struct fake_qp *qp, const void *bytes, size_t len, bool has_imm, uint32_t imm)
{
	const struct fake_recv *recv = &qp->receives[qp->recv_first];
	struct ibv_wc wc = {.wr_id = recv->wr_id,
			    .byte_len = (uint32_t)len,
			    .qp_num = qp->qp.qp_num,
			    .opcode = has_imm ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV,
			    .wc_flags = has_imm ? IBV_WC_WITH_IMM : 0,
			    .imm_data = htonl(imm)};

	if (!qp->recv_count || len > recv->sge.length)
		return false;
	if (len)
		memcpy((void *)(uintptr_t)recv->sge.addr, bytes, len);
	qp->recv_first = (qp->recv_first + 1) % qp->cap.max_recv_wr;
	qp->recv_count--;
	push(qp->qp.recv_cq, &wc);
	return true;
}

int rdma_create_qp(struct rdma_cm_id *id, struct ibv_pd *of, struct ibv_qp_init_attr *attr)
{
	struct fake_qp *qp = make(sizeof(*qp));

	qp->qp = (struct ibv_qp){.context = &context,
				 .pd = of ? of : &pd,
				 .send_cq = attr->send_cq,
				 .recv_cq = attr->recv_cq,
				 .qp_num = 0x100 + world.next_qpn++ % 4096,
				 .qp_type = attr->qp_type};
	qp->cap = attr->cap;
	qp->signals_all = attr->sq_sig_all;
	qp->receives = calloc(attr->cap.max_recv_wr, sizeof(*qp->receives));
	qp->sends = calloc(attr->cap.max_send_wr, sizeof(*qp->sends));
	CHECK(qp->receives && qp->sends && attr->send_cq && attr->recv_cq && !id->qp);
	id->qp = &qp->qp;
	world.newest_qp = qp;
	return 0;
}

struct fake_qp *fake_newest_qp(void)
{
	return world.newest_qp;
}

void rdma_destroy_qp(struct rdma_cm_id *id)
{
	struct fake_qp *qp = fake_qp_of(id);

	if (!qp)
		return;
	if (qp == world.newest_qp)
		world.newest_qp = NULL;
	free(qp->receives);
	free(qp->sends);
	drop(qp);
	id->qp = NULL;
}

/* ---- what a device says of itself ---- */

int ibv_query_device(struct ibv_context *of, struct ibv_device_attr *attr)
{
	*attr = (struct ibv_device_attr){.max_qp_rd_atom = 16, .max_qp_init_rd_atom = 16};
	return 0;
}

#undef ibv_query_port
int ibv_query_port(struct ibv_context *of, uint8_t port_num, struct _compat_ibv_port_attr *attr)
{
	struct ibv_port_attr full = {.state = IBV_PORT_ACTIVE, .active_mtu = IBV_MTU_1024, .gid_tbl_len = 1};

	memcpy(attr, &full, offsetof(struct ibv_port_attr, port_cap_flags2));
	return 0;
}

int ibv_query_gid(struct ibv_context *of, uint8_t port_num, int index, union ibv_gid *gid)
{
	memset(gid, 0, sizeof(*gid));
	return index ? -1 : 0;
}

const char *ibv_wc_status_str(enum ibv_wc_status status)
{
	return "a status";
}

struct ibv_pd *ibv_alloc_pd(struct ibv_context *of)
{
	struct ibv_pd *made = make(sizeof(*made));

	made->context = of;
	return made;
}

int ibv_dealloc_pd(struct ibv_pd *made)
{
	drop(made);
	return 0;
}

struct ibv_ah *ibv_create_ah(struct ibv_pd *of, struct ibv_ah_attr *attr)
{
	return make(sizeof(struct ibv_ah));
}

int ibv_destroy_ah(struct ibv_ah *ah)
{
	drop(ah);
	return 0;
}

/* ---- rdma_cm ---- */

static struct sockaddr_in address(uint8_t host, uint16_t port)
{
	return (struct sockaddr_in){
		.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(0x0a000000u + host)};
}

struct rdma_cm_id *fake_id(struct rdma_event_channel *channel, void *id_context)
{
	struct rdma_cm_id *id = make(sizeof(*id));
	struct sockaddr_in here = address(1, 7000), there = address(2, 7000);

	id->verbs = &context;
	id->channel = channel;
	id->context = id_context;
	id->pd = &pd;
	id->port_num = 1;
	memcpy(&id->route.addr.src_addr, &here, sizeof(here));
	memcpy(&id->route.addr.dst_addr, &there, sizeof(there));
	id->route.path_rec = calloc(1, sizeof(*id->route.path_rec));
	CHECK(id->route.path_rec);
	return id;
}

struct rdma_event_channel *rdma_create_event_channel(void)
{
	struct rdma_event_channel *channel = make(sizeof(*channel));

	channel->fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	CHECK(channel->fd >= 0);
	return channel;
}

void rdma_destroy_event_channel(struct rdma_event_channel *channel)
{
	close(channel->fd);
	drop(channel);
}

int rdma_create_id(struct rdma_event_channel *channel, struct rdma_cm_id **id, void *id_context,
		   enum rdma_port_space ps)
{
	*id = fake_id(channel, id_context);
	return 0;
}

static struct fake_event *take_event(unsigned i)
{
	struct fake_event *e = world.events[i];

	world.event_count--;
	memmove(&world.events[i], &world.events[i + 1], (world.event_count - i) * sizeof(struct fake_event *));
	return e;
}

/* Its events go with it, as an id that nobody has fetched yet. */
int rdma_destroy_id(struct rdma_cm_id *id)
{
	CHECK(!id->qp);
	fake_called(id, FAKE_DESTROY, NULL);
	for (unsigned i = 0; i < world.event_count;)
		if (world.events[i]->event.id == id || world.events[i]->event.listen_id == id)
			free(take_event(i));
		else
			i++;
	free(id->route.path_rec);
	drop(id);
	return 0;
}

void fake_event(struct rdma_cm_id *id, enum rdma_cm_event_type type, int status, const void *private_data,
		uint8_t private_len)
{
	struct fake_event *e = calloc(1, sizeof(*e));

	CHECK(e && world.event_count < MAX_EVENTS && private_len <= MAX_PRIVATE);
	e->event = (struct rdma_cm_event){.id = id, .event = type, .status = status};
	if (private_len) {
		memcpy(e->private_data, private_data, private_len);
		e->event.param.conn.private_data = e->private_data;
		e->event.param.conn.private_data_len = private_len;
	}
	world.events[world.event_count++] = e;
	if (id->channel)
		ring_bell(id->channel->fd);
}

struct rdma_cm_id *fake_request(struct rdma_cm_id *listener, const void *private_data, uint8_t private_len)
{
	struct rdma_cm_id *id = fake_id(listener->channel, listener->context);

	fake_event(id, RDMA_CM_EVENT_CONNECT_REQUEST, 0, private_data, private_len);
	world.events[world.event_count - 1]->event.listen_id = listener;
	return id;
}

int rdma_get_cm_event(struct rdma_event_channel *channel, struct rdma_cm_event **event)
{
	for (unsigned i = 0; i < world.event_count; i++) {
		if (world.events[i]->event.id->channel != channel)
			continue;
		*event = &take_event(i)->event;
		return 0;
	}
	silence_bell(channel->fd);
	errno = EAGAIN;
	return -1;
}

int rdma_ack_cm_event(struct rdma_cm_event *event)
{
	free(event);
	return 0;
}

int rdma_migrate_id(struct rdma_cm_id *id, struct rdma_event_channel *channel)
{
	id->channel = channel;
	ring_bell(channel->fd);
	return 0;
}

int rdma_bind_addr(struct rdma_cm_id *id, struct sockaddr *addr)
{
	return 0;
}

int rdma_listen(struct rdma_cm_id *id, int backlog)
{
	return 0;
}

int rdma_set_option(struct rdma_cm_id *id, int level, int option, void *value, size_t len)
{
	return 0;
}

int rdma_resolve_addr(struct rdma_cm_id *id, struct sockaddr *from, struct sockaddr *to, int timeout_ms)
{
	if (id->channel)
		fake_event(id, RDMA_CM_EVENT_ADDR_RESOLVED, 0, NULL, 0);
	return 0;
}

int rdma_resolve_route(struct rdma_cm_id *id, int timeout_ms)
{
	if (id->channel)
		fake_event(id, RDMA_CM_EVENT_ROUTE_RESOLVED, 0, NULL, 0);
	return 0;
}

int rdma_connect(struct rdma_cm_id *id, struct rdma_conn_param *param)
{
	fake_called(id, FAKE_CONNECT, param);
	return 0;
}

int rdma_accept(struct rdma_cm_id *id, struct rdma_conn_param *param)
{
	fake_called(id, FAKE_ACCEPT, param);
	return 0;
}

int rdma_reject(struct rdma_cm_id *id, const void *private_data, uint8_t private_len)
{
	fake_called(id, FAKE_REJECT, NULL);
	return 0;
}

int rdma_disconnect(struct rdma_cm_id *id)
{
	fake_called(id, FAKE_DISCONNECT, NULL);
	return 0;
}

struct ibv_context **rdma_get_devices(int *count)
{
	struct ibv_context **list = calloc(2, sizeof(struct ibv_context *));

	CHECK(list);
	list[0] = &context;
	*count = 1;
	return list;
}

void rdma_free_devices(struct ibv_context **list)
{
	free(list);
}

__be16 rdma_get_src_port(struct rdma_cm_id *id)
{
	return ((struct sockaddr_in *)&id->route.addr.src_addr)->sin_port;
}

__be16 rdma_get_dst_port(struct rdma_cm_id *id)
{
	return ((struct sockaddr_in *)&id->route.addr.dst_addr)->sin_port;
}
