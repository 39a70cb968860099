/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * errno VERSIONS.TXT: a call of libibverbs that fails says why in errno, too, whatever it returns: NULL, -1, a negative
 * or a positive error number. Programs print errno. The table has every function of versions.txt (the test compares
 * them), and the functions that verbs.h calls through a context.
 */
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STALE 12345 /* no call leaves this number, which is no errno */

int ibv_read_sysfs_file(const char *dir, const char *file, char *buf, size_t size);

static struct ibv_context *ctx;
static struct ibv_pd *pd, *domain;
static struct ibv_cq *cq;
static struct ibv_cq_ex *cq_ex;
static struct ibv_srq *srq;
static struct ibv_qp *qp;
static struct ibv_mw *mw;
static struct ibv_td *td;
static struct ibv_device other_device = {.name = "mlx5_0"};
static struct ibv_context other_ctx = {.device = &other_device};

/* Zeroes, for what is not looked at before the call fails. */
static union {
	char bytes[1024];
	struct ibv_qp_attr qp;
	struct ibv_send_wr send;
	struct ibv_recv_wr recv;
} none;
#define NONE ((void *)&none)

static long post_send(void)
{
	struct ibv_send_wr wr = {.opcode = (enum ibv_wr_opcode)99}, *bad;
	return ibv_post_send(qp, &wr, &bad);
}

static long post_recv(void)
{
	struct ibv_recv_wr wr = {.num_sge = -1}, *bad;
	return ibv_post_recv(qp, &wr, &bad);
}

static long post_srq_recv(void)
{
	struct ibv_recv_wr wr = {.num_sge = -1}, *bad;
	return ibv_post_srq_recv(srq, &wr, &bad);
}

static long post_srq_ops(void)
{
	struct ibv_ops_wr *bad;
	return ibv_post_srq_ops(srq, NONE, &bad);
}

static long wr_complete(void)
{
	struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(qp);
	ibv_wr_start(ex);
	ibv_wr_rdma_read(ex, 0, 0); /* not among the operations that the QP was made for */
	return ibv_wr_complete(ex);
}

static long start_poll(void)
{
	struct ibv_poll_cq_attr attr = {.comp_mask = 1};
	return ibv_start_poll(cq_ex, &attr);
}

static long bind_mw(void)
{
	struct ibv_mw_bind bind = {0};
	return mw->context->ops.bind_mw(NULL, mw, &bind);
}

static long query_rt_values(void)
{
	struct ibv_values_ex values = {.comp_mask = 1U << 31};
	return ibv_query_rt_values_ex(ctx, &values);
}

static long query_port(void)
{
	struct ibv_port_attr attr;
	return ibv_query_port(ctx, 9, &attr);
}

static long query_gid_ex(void)
{
	struct ibv_gid_entry entry;
	return ibv_query_gid_ex(ctx, 9, 0, &entry, 0);
}

static long query_gid_table(void)
{
	struct ibv_gid_entry entry;
	return ibv_query_gid_table(ctx, &entry, 1, 7);
}

static long resolve_eth_l2(void)
{
	uint8_t mac[ETHERNET_LL_SIZE];
	return ibv_resolve_eth_l2_from_gid(ctx, NONE, mac, NULL);
}

static long get_cq_event(void)
{
	return ibv_get_cq_event(NULL, NULL, NULL);
}

/* A call that fails, as an expression; 1 instead of a NULL. */
#define NUMBER(name, call)                                                                                             \
	static long fail_##name(void)                                                                                  \
	{                                                                                                              \
		return call;                                                                                           \
	}
#define POINTER(name, call)                                                                                            \
	static long fail_##name(void)                                                                                  \
	{                                                                                                              \
		return (call) == NULL;                                                                                 \
	}
/* X(number or pointer, name, call) */
#define CALLS(X)                                                                                                       \
	X(POINTER, ibv_get_device_name, ibv_get_device_name(NULL))                                                     \
	X(NUMBER, ibv_get_device_index, ibv_get_device_index(&other_device))                                           \
	X(POINTER, ibv_open_device, ibv_open_device(&other_device))                                                    \
	X(NUMBER, ibv_close_device, ibv_close_device(&other_ctx))                                                      \
	X(POINTER, ibv_import_device, ibv_import_device(0))                                                            \
	X(NUMBER, ibv_get_async_event, ibv_get_async_event(ctx, NULL))                                                 \
	X(NUMBER, ibv_get_cq_event, get_cq_event())                                                                    \
	X(POINTER, ibv_create_comp_channel, ibv_create_comp_channel(&other_ctx))                                       \
	X(NUMBER, ibv_destroy_comp_channel, ibv_destroy_comp_channel(NULL))                                            \
	X(NUMBER, ibv_read_sysfs_file, ibv_read_sysfs_file("/nowhere", "x", none.bytes, 8))                            \
	X(POINTER, ibv_alloc_pd, ibv_alloc_pd(&other_ctx))                                                             \
	X(NUMBER, ibv_dealloc_pd, ibv_dealloc_pd(pd)) /* has objects */                                                \
	X(POINTER, ibv_import_pd, ibv_import_pd(ctx, 0))                                                               \
	X(NUMBER, ibv_attach_mcast, ibv_attach_mcast(qp, NONE, 0))                                                     \
	X(NUMBER, ibv_detach_mcast, ibv_detach_mcast(qp, NONE, 0))                                                     \
	X(POINTER, ibv_create_ah, ibv_create_ah(pd, NONE))                                                             \
	X(NUMBER, ibv_destroy_ah, ibv_destroy_ah(NULL))                                                                \
	X(POINTER, ibv_create_ah_from_wc, ibv_create_ah_from_wc(pd, NONE, NULL, 9))                                    \
	X(NUMBER, ibv_init_ah_from_wc, ibv_init_ah_from_wc(ctx, 9, NONE, NULL, NONE))                                  \
	X(NUMBER, ibv_resolve_eth_l2_from_gid, resolve_eth_l2())                                                       \
	X(POINTER, ibv_create_cq, ibv_create_cq(ctx, 0, NULL, NULL, 0))                                                \
	X(NUMBER, ibv_resize_cq, ibv_resize_cq(cq, -1))                                                                \
	X(NUMBER, ibv_destroy_cq, ibv_destroy_cq(cq)) /* has a QP */                                                   \
	X(POINTER, ibv_create_qp, ibv_create_qp(pd, NONE))                                                             \
	X(NUMBER, ibv_modify_qp, ibv_modify_qp(qp, &none.qp, 1 << 30))                                                 \
	X(NUMBER, ibv_query_qp, ibv_query_qp(qp, NULL, 0, NULL))                                                       \
	X(NUMBER, ibv_destroy_qp, ibv_destroy_qp(NULL))                                                                \
	X(POINTER, ibv_qp_to_qp_ex, ibv_qp_to_qp_ex(NULL))                                                             \
	X(POINTER, ibv_create_srq, ibv_create_srq(pd, NONE))                                                           \
	X(NUMBER, ibv_modify_srq, ibv_modify_srq(srq, NONE, 1 << 30))                                                  \
	X(NUMBER, ibv_query_srq, ibv_query_srq(srq, NULL))                                                             \
	X(NUMBER, ibv_destroy_srq, ibv_destroy_srq(NULL))                                                              \
	X(POINTER, ibv_reg_mr, (ibv_reg_mr)(pd, NULL, 8, 0))                                                           \
	X(POINTER, ibv_reg_mr_iova, (ibv_reg_mr_iova)(pd, NULL, 8, 0, 0))                                              \
	X(POINTER, ibv_reg_mr_iova2, ibv_reg_mr_iova2(pd, NULL, 8, 0, 0))                                              \
	X(POINTER, ibv_reg_dmabuf_mr, ibv_reg_dmabuf_mr(pd, 0, 8, 0, 0, 0))                                            \
	X(NUMBER, ibv_rereg_mr, ibv_rereg_mr(NULL, 0, NULL, NULL, 0, 0))                                               \
	X(NUMBER, ibv_dereg_mr, ibv_dereg_mr(NULL))                                                                    \
	X(POINTER, ibv_import_mr, ibv_import_mr(pd, 0))                                                                \
	X(POINTER, ibv_import_dm, ibv_import_dm(ctx, 0))                                                               \
	X(NUMBER, ibv_query_device, ibv_query_device(ctx, NULL))                                                       \
	X(NUMBER, ibv_query_port, (ibv_query_port)(ctx, 9, NONE))                                                      \
	X(NUMBER, ibv_query_gid, ibv_query_gid(ctx, 9, 0, NONE))                                                       \
	X(NUMBER, _ibv_query_gid_ex, query_gid_ex())                                                                   \
	X(NUMBER, _ibv_query_gid_table, query_gid_table())                                                             \
	X(NUMBER, ibv_query_pkey, ibv_query_pkey(ctx, 9, 0, NONE))                                                     \
	X(NUMBER, ibv_get_pkey_index, ibv_get_pkey_index(ctx, 9, 0))                                                   \
	X(NUMBER, ibv_query_ece, ibv_query_ece(qp, NONE))                                                              \
	X(NUMBER, ibv_set_ece, ibv_set_ece(qp, NONE))                                                                  \
	/* through the context */                                                                                      \
	X(NUMBER, query_port, query_port())                                                                            \
	X(NUMBER, query_device_ex, verbs_get_ctx(ctx)->query_device_ex(ctx, NULL, NULL, 0))                            \
	X(NUMBER, query_rt_values, query_rt_values())                                                                  \
	X(NUMBER, advise_mr, ibv_advise_mr(pd, (enum ibv_advise_mr_advice)99, 0, NONE, 1))                             \
	X(POINTER, alloc_td, ibv_alloc_td(ctx, NULL))                                                                  \
	X(NUMBER, dealloc_td, ibv_dealloc_td(td)) /* has a parent domain */                                            \
	X(POINTER, alloc_parent_domain, ibv_alloc_parent_domain(ctx, NONE))                                            \
	X(POINTER, create_cq_ex, ibv_create_cq_ex(ctx, NONE))                                                          \
	X(NUMBER, modify_cq, ibv_modify_cq(cq, NONE))                                                                  \
	X(NUMBER, poll_cq, ibv_poll_cq(cq, -1, NULL))                                                                  \
	X(NUMBER, start_poll, start_poll())                                                                            \
	X(POINTER, create_qp_ex, ibv_create_qp_ex(ctx, NONE))                                                          \
	X(NUMBER, modify_qp_rate_limit, ibv_modify_qp_rate_limit(qp, NONE))                                            \
	X(NUMBER, wr_complete, wr_complete())                                                                          \
	X(NUMBER, post_send, post_send())                                                                              \
	X(NUMBER, post_recv, post_recv())                                                                              \
	X(POINTER, create_srq_ex, ibv_create_srq_ex(ctx, NONE))                                                        \
	X(NUMBER, post_srq_recv, post_srq_recv())                                                                      \
	X(NUMBER, post_srq_ops, post_srq_ops())                                                                        \
	X(NUMBER, get_srq_num, ibv_get_srq_num(srq, NONE))                                                             \
	X(POINTER, alloc_mw, ibv_alloc_mw(pd, (enum ibv_mw_type)99))                                                   \
	X(NUMBER, dealloc_mw, ctx->ops.dealloc_mw(NULL))                                                               \
	X(NUMBER, bind_mw, bind_mw())                                                                                  \
	X(POINTER, open_xrcd, ibv_open_xrcd(ctx, NONE))                                                                \
	X(POINTER, alloc_dm, ibv_alloc_dm(ctx, NONE))                                                                  \
	X(POINTER, alloc_null_mr, ibv_alloc_null_mr(pd))                                                               \
	X(POINTER, create_flow, ibv_create_flow(qp, NONE))                                                             \
	X(POINTER, create_wq, ibv_create_wq(ctx, NONE))                                                                \
	X(POINTER, create_rwq_ind_table, ibv_create_rwq_ind_table(ctx, NONE))                                          \
	X(POINTER, create_counters, ibv_create_counters(ctx, NONE))                                                    \
	X(POINTER, open_qp, ibv_open_qp(ctx, NONE))

#define DEFINE(kind, name, call) kind(name, call)
#define ENTRY(kind, name, call)  {#name, fail_##name},
CALLS(DEFINE)

static const struct {
	const char *name;
	long (*fail)(void);
} calls[] = {CALLS(ENTRY)};

/* These return nothing, cannot fail, or (the rates) answer a question. */
static const char *const no_failure[] = {
	"ibv_copy_path_rec_from_kern",
	"ibv_copy_path_rec_to_kern",
	"ibv_copy_qp_attr_from_kern",
	"ibv_copy_ah_attr_from_kern",
	"ibv_get_sysfs_path",
	"ibv_rate_to_mult",
	"mult_to_ibv_rate",
	"ibv_rate_to_mbps",
	"mbps_to_ibv_rate",
	"ibv_ack_async_event",
	"ibv_ack_cq_events",
	"ibv_get_device_list", /* only for want of memory */
	"ibv_free_device_list",
	"ibv_get_device_guid",
	"ibv_fork_init",
	"ibv_dofork_range",
	"ibv_dontfork_range",
	"ibv_is_fork_initialized",
	"ibv_event_type_str",
	"ibv_node_type_str",
	"ibv_port_state_str",
	"ibv_wc_status_str",
	"ibv_unimport_mr",
	"ibv_unimport_pd",
	"ibv_unimport_dm",
	"ibv_query_qp_data_in_order",
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static bool is_listed(const char *name)
{
	for (size_t i = 0; i < COUNT(calls); i++) {
		if (!strcmp(calls[i].name, name))
			return true;
	}
	for (size_t i = 0; i < COUNT(no_failure); i++) {
		if (!strcmp(no_failure[i], name))
			return true;
	}
	return false;
}

/* How many functions of versions.txt no table has. */
static int missing(const char *path)
{
	char line[512];
	int failed = 0, seen = 0;
	FILE *f = fopen(path, "r");
	while (f && fgets(line, sizeof(line), f)) {
		line[strcspn(line, "#\n")] = '\0';
		char *word = strtok(line, " \t"); /* the version */
		while (word && (word = strtok(NULL, " \t"))) {
			seen++;
			if (!is_listed(word)) {
				printf("%s: not in the table of this test\n", word);
				failed++;
			}
		}
	}
	if (f)
		fclose(f);
	return seen ? failed : 1;
}

/* True if the function failed and errno says why. */
static bool check(const char *name, long (*fail)(void))
{
	errno = STALE;
	long result = fail();
	int said = errno;
	if (!result) {
		printf("%s: did not fail\n", name);
		return false;
	}
	/* 1 is a NULL, or EPERM, which no call here returns. -1 and IBV_REREG_MR_ERR_INPUT are no error numbers. */
	bool is_number = (result > 1 || result < -1);
	if (said != STALE && said > 0 && (!is_number || labs(result) == said))
		return true;
	printf("%s: returned %ld, errno is %d\n", name, result, said);
	return false;
}

static bool set_up(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	ctx = list ? ibv_open_device(list[0]) : NULL;
	pd = ctx ? ibv_alloc_pd(ctx) : NULL;
	if (!pd)
		return false;
	ibv_free_device_list(list);
	struct ibv_cq_init_attr_ex cq_init = {.cqe = 8};
	struct ibv_srq_init_attr srq_init = {.attr = {.max_wr = 4, .max_sge = 1}};
	struct ibv_td_init_attr td_init = {0};
	cq_ex = ibv_create_cq_ex(ctx, &cq_init);
	cq = ibv_cq_ex_to_cq(cq_ex);
	srq = ibv_create_srq(pd, &srq_init);
	mw = ibv_alloc_mw(pd, IBV_MW_TYPE_1);
	td = ibv_alloc_td(ctx, &td_init);
	struct ibv_parent_domain_init_attr parent = {.pd = pd, .td = td};
	struct ibv_qp_init_attr_ex init = {
		.qp_type = IBV_QPT_RC,
		.send_cq = cq,
		.recv_cq = cq,
		.cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1},
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = pd,
		.send_ops_flags = IBV_QP_EX_WITH_SEND,
	};
	qp = ibv_create_qp_ex(ctx, &init);
	domain = ibv_alloc_parent_domain(ctx, &parent);
	return qp && srq && mw && td && domain;
}

int main(int argc, char **argv)
{
	if (argc < 2 || !set_up())
		return 2;
	int failed = missing(argv[1]);
	for (size_t i = 0; i < COUNT(calls); i++)
		failed += !check(calls[i].name, calls[i].fail);
	failed += ibv_dealloc_pd(domain) != 0;
	printf("%zu calls, %d failures\n", COUNT(calls), failed);
	return failed != 0;
}
