/* SPDX-License-Identifier: BSD-2-Clause */
/* The device, its contexts and attributes, and what is not supported. */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/stat.h>

#include "api.h"

static void *list_cancelled(void *arg)
{
	pthread_cancel(pthread_self());
	ibv_free_device_list(ibv_get_device_list(NULL));
	return NULL;
}

/* Other threads still get the list. */
void test_device_list_cancel(void)
{
#ifdef __SANITIZE_ADDRESS__
	return; /* it reports the stack frames that cancelling leaves behind */
#endif
	pthread_t thread;
	CHECK(!pthread_create(&thread, NULL, list_cancelled, NULL) && !pthread_join(thread, NULL));
	struct ibv_device **list = ibv_get_device_list(NULL);
	CHECK(list);
	ibv_free_device_list(list);
}

void test_device_list(void)
{
	int count = -1;
	struct ibv_device **list = ibv_get_device_list(&count);
	CHECK(list && count == 1 && list[0] && !list[1]);
	CHECK(!strcmp(ibv_get_device_name(list[0]), "roci0"));
	CHECK(list[0]->node_type == IBV_NODE_CA && list[0]->transport_type == IBV_TRANSPORT_IB);
	CHECK(ibv_get_device_guid(list[0]) != 0);
	CHECK(ibv_get_device_index(list[0]) == -1);
	/* After the public structure there is nothing that a vendor library could take for its own data. */
	static const char zeroes[1024];
	CHECK(!memcmp(list[0] + 1, zeroes, sizeof(zeroes)));
	ibv_free_device_list(list);
	ibv_free_device_list(NULL);
	CHECK(!ibv_get_device_name(NULL));
	CHECK(!ibv_get_device_guid(NULL));
	CHECK(!ibv_fork_init());
	CHECK(ibv_is_fork_initialized() == IBV_FORK_UNNEEDED);
}

void test_device_contexts(void)
{
	struct ibv_device other = {.name = "mlx5_0"};
	CHECK_ERRNO(!ibv_open_device(NULL), EINVAL);
	CHECK_ERRNO(!ibv_open_device(&other), ENODEV);
	CHECK(ibv_close_device(NULL) == EINVAL);

	struct ibv_context *ctx = ibv_open_device(api_device);
	CHECK(ctx && ctx->device == api_device && ctx->abi_compat == (void *)UINTPTR_MAX);
	CHECK(ctx->num_comp_vectors >= 1);
	CHECK(fcntl(ctx->async_fd, F_GETFL) >= 0 && fcntl(ctx->cmd_fd, F_GETFL) >= 0);
	/* Closing it destroys its objects. They may still be destroyed afterwards. */
	struct ibv_pd *pd = ibv_alloc_pd(ctx);
	char buf[4096];
	struct ibv_mr *mr = ibv_reg_mr(pd, buf, sizeof(buf), IBV_ACCESS_LOCAL_WRITE);
	CHECK(mr);
	CHECK(!ibv_close_device(ctx));
	CHECK(!ibv_dereg_mr(mr));
	CHECK(!ibv_dealloc_pd(pd));
}

void test_device_queries(void)
{
	struct ibv_device_attr attr;
	CHECK(ibv_query_device(NULL, &attr) == EINVAL);
	CHECK(ibv_query_device(api_ctx, NULL) == EINVAL);
	CHECK(!ibv_query_device(api_ctx, &attr));
	CHECK(attr.phys_port_cnt == 1 && attr.node_guid == ibv_get_device_guid(api_device));
	CHECK(attr.max_qp > 0 && attr.max_cqe > 0 && attr.max_sge > 0 && attr.atomic_cap == IBV_ATOMIC_HCA);

	struct ibv_device_attr_ex ex;
	struct ibv_query_device_ex_input unknown = {.comp_mask = 1};
	CHECK(ibv_query_device_ex(api_ctx, &unknown, &ex) == EINVAL);
	CHECK(!ibv_query_device_ex(api_ctx, NULL, &ex));
	CHECK(!memcmp(&ex.orig_attr, &attr, sizeof(attr)));
	CHECK(ex.completion_timestamp_mask && ex.hca_core_clock && ex.phys_port_cnt_ex == 1);
	CHECK(!ex.odp_caps.general_caps && !ex.max_dm_size && !ex.tso_caps.max_tso);

	struct ibv_values_ex first = {.comp_mask = IBV_VALUES_MASK_RAW_CLOCK}, second = first;
	CHECK(!ibv_query_rt_values_ex(api_ctx, &first) && !ibv_query_rt_values_ex(api_ctx, &second));
	CHECK(second.raw_clock.tv_nsec >= first.raw_clock.tv_nsec && first.raw_clock.tv_nsec);
	first.comp_mask = IBV_VALUES_MASK_RESERVED;
	CHECK(ibv_query_rt_values_ex(api_ctx, &first) == EINVAL);
}

void test_port_tables(void)
{
	struct ibv_port_attr port;
	CHECK(ibv_query_port(api_ctx, 0, &port) == EINVAL);
	CHECK(ibv_query_port(api_ctx, 2, &port) == EINVAL);
	CHECK(!ibv_query_port(api_ctx, 1, &port));
	CHECK(port.state == IBV_PORT_ACTIVE && port.link_layer == IBV_LINK_LAYER_ETHERNET && port.gid_tbl_len > 0);
	CHECK(port.max_msg_sz == 0x80000000u && port.pkey_tbl_len == 1);
	CHECK(port.active_mtu >= IBV_MTU_256 && port.active_mtu <= port.max_mtu);

	union ibv_gid gid;
	struct ibv_gid_entry entry, table[64];
	ssize_t count = ibv_query_gid_table(api_ctx, table, 64, 0);
	CHECK(count > 0 && count <= port.gid_tbl_len);
	CHECK(ibv_query_gid_table(api_ctx, table, (size_t)count - 1, 0) == -EINVAL);
	CHECK(ibv_query_gid_table(api_ctx, table, 64, 1) == -EOPNOTSUPP);
	CHECK(!ibv_query_gid(api_ctx, 1, port.gid_tbl_len - 1, &gid));
	CHECK(ibv_query_gid(api_ctx, 1, port.gid_tbl_len, &gid) == -1);
	CHECK(ibv_query_gid(api_ctx, 1, -1, &gid) == -1);
	CHECK(ibv_query_gid(api_ctx, 2, 0, &gid) == -1);
	for (uint32_t i = 0; i < (uint32_t)count; i++) {
		CHECK(!ibv_query_gid_ex(api_ctx, 1, i, &entry, 0) && !memcmp(&table[i], &entry, sizeof(entry)));
		CHECK(entry.gid_type == IBV_GID_TYPE_ROCE_V2 && entry.port_num == 1 && entry.ndev_ifindex);
		CHECK(!ibv_query_gid(api_ctx, 1, (int)i, &gid) && !memcmp(&gid, &entry.gid, 16) &&
		      entry.gid_index == i);
	}
	for (uint32_t i = (uint32_t)count; i < (uint32_t)port.gid_tbl_len; i++)
		CHECK(ibv_query_gid_ex(api_ctx, 1, i, &entry, 0) == ENODATA);
	CHECK(ibv_query_gid_ex(api_ctx, 1, (uint32_t)port.gid_tbl_len, &entry, 0) == EINVAL);
	CHECK(ibv_query_gid_ex(api_ctx, 2, 0, &entry, 0) == EINVAL);
	CHECK(ibv_query_gid_ex(api_ctx, 1, 0, &entry, 1) == EOPNOTSUPP);

	__be16 pkey;
	CHECK(!ibv_query_pkey(api_ctx, 1, 0, &pkey) && pkey == 0xffff);
	CHECK(ibv_query_pkey(api_ctx, 1, 1, &pkey) == -1);
	CHECK(ibv_get_pkey_index(api_ctx, 1, 0xffff) == 0);
	CHECK(ibv_get_pkey_index(api_ctx, 1, 0x1234) == -1);
}

static bool reads(const char *file, const char *text)
{
	char path[512], buf[64] = "";
	snprintf(path, sizeof(path), "%s/%s", api_device->ibdev_path, file);
	FILE *f = fopen(path, "r");
	bool same = f && fgets(buf, sizeof(buf), f) && !strcmp(buf, text);
	if (f)
		fclose(f);
	return same;
}

void test_sysfs(void)
{
	struct stat st;
	CHECK(!stat(api_device->ibdev_path, &st) && S_ISDIR(st.st_mode) && !(st.st_mode & 077));
	CHECK(reads("node_type", "1: CA\n"));
	CHECK(reads("ports/1/gid_attrs/types/0", "RoCE v2\n"));
	CHECK(reads("ports/1/state", "4: ACTIVE\n"));
	CHECK(reads("device/numa_node", "-1\n"));

	/* The file has the same GID as the call returns. */
	union ibv_gid gid;
	char text[48], *p = text;
	CHECK(!ibv_query_gid(api_ctx, 1, 0, &gid));
	for (int i = 0; i < 16; i += 2)
		p += sprintf(p, "%02x%02x%c", gid.raw[i], gid.raw[i + 1], i < 14 ? ':' : '\n');
	CHECK(reads("ports/1/gids/0", text));
	CHECK(!reads("ports/1/gids/1000", text));
}

void test_unsupported(void)
{
	struct ibv_xrcd_init_attr xrcd = {0};
	struct ibv_alloc_dm_attr dm = {.length = 64};
	struct ibv_counters_init_attr counters = {0};
	struct ibv_wq_init_attr wq = {0};
	struct ibv_qp_open_attr open_attr = {0};
	CHECK_ERRNO(!ibv_open_xrcd(api_ctx, &xrcd), EOPNOTSUPP);
	CHECK_ERRNO(!ibv_alloc_dm(api_ctx, &dm), EOPNOTSUPP);
	CHECK_ERRNO(!ibv_create_counters(api_ctx, &counters), EOPNOTSUPP);
	CHECK_ERRNO(!ibv_create_wq(api_ctx, &wq), EOPNOTSUPP);
	CHECK_ERRNO(!ibv_open_qp(api_ctx, &open_attr), EOPNOTSUPP);
	CHECK_ERRNO(!ibv_alloc_null_mr(api_pd), EOPNOTSUPP);
	CHECK_ERRNO(!ibv_import_device(api_ctx->cmd_fd), EOPNOTSUPP);
	CHECK_ERRNO(!ibv_import_pd(api_ctx, 1), EOPNOTSUPP);
	CHECK_ERRNO(!ibv_import_mr(api_pd, 1), EOPNOTSUPP);
	CHECK_ERRNO(!ibv_reg_dmabuf_mr(api_pd, 0, 4096, 0, -1, 0), EOPNOTSUPP);
}

void test_pd(void)
{
	CHECK_ERRNO(!ibv_alloc_pd(NULL), EINVAL);
	CHECK(ibv_dealloc_pd(NULL) == EINVAL);
	struct ibv_pd *pd = ibv_alloc_pd(api_ctx);
	char buf[64];
	struct ibv_mr *mr = ibv_reg_mr(pd, buf, sizeof(buf), 0);
	CHECK(mr && mr->pd == pd);
	CHECK(ibv_dealloc_pd(pd) == EBUSY);
	CHECK(!ibv_dereg_mr(mr));

	struct ibv_td_init_attr td_attr = {0};
	struct ibv_td *td = ibv_alloc_td(api_ctx, &td_attr);
	struct ibv_parent_domain_init_attr attr = {.pd = pd, .td = td};
	struct ibv_pd *parent = ibv_alloc_parent_domain(api_ctx, &attr);
	CHECK(td && parent);
	CHECK(ibv_dealloc_pd(pd) == EBUSY && ibv_dealloc_td(td) == EBUSY);
	CHECK(!ibv_dealloc_pd(parent) && !ibv_dealloc_td(td));
	attr = (struct ibv_parent_domain_init_attr){.pd = pd, .comp_mask = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS};
	CHECK_ERRNO(!ibv_alloc_parent_domain(api_ctx, &attr), EOPNOTSUPP);
	attr = (struct ibv_parent_domain_init_attr){.pd = NULL};
	CHECK_ERRNO(!ibv_alloc_parent_domain(api_ctx, &attr), EINVAL);
	CHECK(!ibv_dealloc_pd(pd));
}
