/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Under `roci run`: programs that dlopen() libibverbs (NCCL), and vendor libraries that other libraries load (perftest,
 * UCX, pyverbs), find their symbols. Bound at once (RTLD_NOW), as these are.
 */
#include <dlfcn.h>
#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void need(bool ok, const char *what, const char *detail)
{
	if (ok)
		return;
	fprintf(stderr, "FAIL: %s: %s\n", what, detail ? detail : "");
	exit(1);
}

static void *open_now(const char *name)
{
	return dlopen(name, RTLD_NOW | RTLD_LOCAL);
}

/* True: `symbol` is in the library that LD_PRELOAD names. */
static bool is_ours(void *symbol)
{
	Dl_info info;
	const char *preload = getenv("LD_PRELOAD");
	return dladdr(symbol, &info) && preload && strstr(preload, info.dli_fname);
}

/* The symbols of NCCL (ibvsymbols.cc), by version. */
static const struct {
	const char *version, *names[32];
} wanted[] = {
	{"IBVERBS_1.0", {"ibv_get_device_list", "ibv_create_comp_channel", "ibv_destroy_comp_channel"}},
	{"IBVERBS_1.1",
	 {"ibv_get_device_list", "ibv_free_device_list", "ibv_get_device_name", "ibv_open_device", "ibv_close_device",
	  "ibv_get_async_event", "ibv_ack_async_event",  "ibv_query_device",    "ibv_query_port",  "ibv_query_gid",
	  "ibv_query_qp",        "ibv_alloc_pd",         "ibv_dealloc_pd",      "ibv_reg_mr",      "ibv_dereg_mr",
	  "ibv_create_cq",       "ibv_destroy_cq",       "ibv_create_qp",       "ibv_modify_qp",   "ibv_destroy_qp",
	  "ibv_fork_init",       "ibv_event_type_str"}},
	{"IBVERBS_1.8", {"ibv_reg_mr_iova2"}},
	{"IBVERBS_1.10", {"ibv_query_ece", "ibv_set_ece"}},
	{"IBVERBS_1.11", {"_ibv_query_gid_ex", "_ibv_query_gid_table"}},
	{"IBVERBS_1.12", {"ibv_reg_dmabuf_mr"}},
	{"IBVERBS_1.14", {"ibv_query_qp_data_in_order"}},
};

static void check_versions(void *lib)
{
	for (size_t v = 0; v < sizeof(wanted) / sizeof(wanted[0]); v++) {
		for (const char *const *name = wanted[v].names; *name; name++) {
			void *symbol = dlvsym(lib, *name, wanted[v].version);
			need(symbol, *name, dlerror());
			need(is_ours(symbol), *name, "comes from another library");
		}
	}
	need(dlvsym(lib, "ibv_open_device", "IBVERBS_1.0") == dlvsym(lib, "ibv_open_device", "IBVERBS_1.1"),
	     "ibv_open_device", "1.0 is not 1.1");
	need(!dlvsym(lib, "ibv_open_device", "IBVERBS_1.99"), "ibv_open_device", "has a version that does not exist");
}

static struct ibv_device *check_device(void *lib)
{
	struct ibv_device **(*get_list)(int *) = dlvsym(lib, "ibv_get_device_list", "IBVERBS_1.1");
	void (*free_list)(struct ibv_device **) = dlvsym(lib, "ibv_free_device_list", "IBVERBS_1.1");
	struct ibv_context *(*open_device)(struct ibv_device *) = dlvsym(lib, "ibv_open_device", "IBVERBS_1.1");
	int (*close_device)(struct ibv_context *) = dlvsym(lib, "ibv_close_device", "IBVERBS_1.1");
	int (*query_port)(struct ibv_context *, uint8_t, void *) = dlvsym(lib, "ibv_query_port", "IBVERBS_1.1");

	int count = 0;
	struct ibv_device **list = get_list(&count);
	need(list && count == 1 && list[0] && !list[1], "device list", "is not one device");
	need(!strcmp(list[0]->name, "roci0"), "device name", list[0]->name);
	struct ibv_device *device = list[0];
	free_list(list);
	struct ibv_context *ctx = open_device(device);
	need(ctx, "ibv_open_device", NULL);
	/* The function, unlike the macro, fills the old structure: 48 bytes. */
	unsigned char attr[64];
	memset(attr, 0xee, sizeof(attr));
	need(!query_port(ctx, 1, attr), "ibv_query_port", NULL);
	need(attr[47] == 1 && attr[48] == 0xee, "ibv_query_port", "does not fill 48 bytes");
	need(!close_device(ctx), "ibv_close_device", NULL);
	return device;
}

/* A library that is not installed is no failure; one that fails to load is. */
static void check_vendor(const char *name, const char *probe, struct ibv_device *device)
{
	void *lib = open_now(name);
	if (!lib) {
		const char *why = dlerror();
		need(strstr(why, "No such file"), name, why);
		printf("%s is not installed\n", name);
		return;
	}
	if (probe) {
		bool (*is_supported)(struct ibv_device *) = dlsym(lib, probe);
		need(is_supported, probe, "missing");
		need(!is_supported(device), probe, "accepts roci0 as its own device");
	}
}

/* A stub of the private node prints a message and fails. */
static void check_stub(void *lib)
{
	int (*stub)(void) = dlsym(lib, "ibv_cmd_alloc_pd");
	need(!stub || stub() != 0, "ibv_cmd_alloc_pd", "succeeds");
}

int main(void)
{
	void *lib = open_now("libibverbs.so.1");
	need(lib, "libibverbs.so.1", lib ? NULL : dlerror());
	check_versions(lib);
	struct ibv_device *device = check_device(lib);
	check_vendor("libmlx5.so.1", "mlx5dv_is_supported", device);
	check_vendor("libmlx4.so.1", NULL, device);
	check_vendor("libefa.so.1", NULL, device);
	check_stub(lib);
	return 0;
}
