/* SPDX-License-Identifier: BSD-2-Clause */
#include "rdmacm/device.h"

#include <stdlib.h>
#include <string.h>

#include "rdmacm/address.h"
#include "rdmacm/manager.h"

static pthread_mutex_t device_lock = PTHREAD_MUTEX_INITIALIZER; /* to open the device and to allocate the PD */
static struct ibv_context *the_context;
static struct ibv_pd *the_pd;
static struct roci_device *the_device;
static struct ibv_device_attr the_attr;

/* A forked child has no device (device/device.h). It opens its own when it needs one. */
static void after_fork_in_child(void)
{
	pthread_mutex_init(&device_lock, NULL);
	cma_channel_after_fork();
	the_context = NULL;
	the_pd = NULL;
	the_device = NULL;
}

static void watch_forks(void)
{
	pthread_atfork(NULL, NULL, after_fork_in_child);
}

/* device_lock held. 0 or a negative errno. */
static int open_device(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	pthread_once(&once, watch_forks);

	struct ibv_device **list = ibv_get_device_list(NULL);
	if (!list)
		return -errno;
	struct ibv_context *context = list[0] ? ibv_open_device(list[0]) : NULL;
	int err = context ? 0 : list[0] ? -errno : -ENODEV;
	ibv_free_device_list(list);
	if (err)
		return err;
	err = -ibv_query_device(context, &the_attr);
	if (err)
		goto err_close;
	/* The context has opened the device and set the function for its events; this only counts a user. */
	err = roci_device_get(NULL, &the_device);
	if (err)
		goto err_close;
	err = cma_attach(the_device);
	if (err)
		goto err_put;
	the_context = context;
	return 0;

err_put:
	roci_device_put(the_device);
err_close:
	ibv_close_device(context);
	return err;
}

struct ibv_context *cma_device(void)
{
	int before;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before); /* or device_lock would stay locked */
	pthread_mutex_lock(&device_lock);
	int err = the_context ? 0 : open_device();
	struct ibv_context *context = the_context;
	pthread_mutex_unlock(&device_lock);
	pthread_setcancelstate(before, NULL);
	if (err)
		errno = -err;
	return err ? NULL : context;
}

struct ibv_context *cma_device_context(void)
{
	return the_context;
}

struct roci_device *cma_roci_device(void)
{
	return the_device;
}

struct ibv_pd *cma_default_pd(void)
{
	struct ibv_context *context = cma_device();
	if (!context)
		return NULL;
	pthread_mutex_lock(&device_lock);
	if (!the_pd)
		the_pd = ibv_alloc_pd(context);
	struct ibv_pd *pd = the_pd;
	pthread_mutex_unlock(&device_lock);
	return pd;
}

struct cma_limits cma_device_limits(void)
{
	return (struct cma_limits){.responder_resources = (uint8_t)the_attr.max_qp_rd_atom,
				   .initiator_depth = (uint8_t)the_attr.max_qp_init_rd_atom};
}

int cma_gid_index(const struct cma_id *id, const uint8_t gid[16], uint32_t ifindex)
{
	return roci_device_find_gid(id->dev, gid, ifindex);
}

uint8_t cma_sgid_index(const struct cma_id *id)
{
	const struct rdma_addr *addr = &id->id.route.addr;
	int index = cma_gid_index(id, addr->addr.ibaddr.sgid.raw, cma_addr_scope(&addr->src_addr));
	return index < 0 ? CMA_NO_GID : (uint8_t)index;
}

bool cma_gid_entry(const struct cma_id *id, struct roci_gid_entry *entry)
{
	return roci_device_gid(id->dev, cma_sgid_index(id), entry);
}

struct ibv_context **rdma_get_devices(int *num_devices)
{
	if (num_devices)
		*num_devices = 0;
	struct ibv_context *context = cma_device();
	if (!context)
		return NULL;
	struct ibv_context **list = calloc(2, sizeof(*list));
	if (!list)
		return NULL;
	list[0] = context;
	if (num_devices)
		*num_devices = 1;
	return list;
}

void rdma_free_devices(struct ibv_context **list)
{
	free(list);
}
