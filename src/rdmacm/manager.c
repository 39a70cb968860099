/* SPDX-License-Identifier: BSD-2-Clause */
#include "rdmacm/manager.h"

#include <string.h>

#include "device/cm_host.h"
#include "rdmacm/device.h"

int cma_attach(struct roci_device *dev)
{
	roci_device_lock(dev);
	int err = roci_cm_host_attach(dev, cma_upcall, cma_channel_show);
	roci_device_unlock(dev);
	return err;
}

bool cma_is_alive(const struct cma_id *id)
{
	return roci_cm_host_cm(id->dev);
}

void cma_send_before(const struct cma_id *id)
{
	if (id->conn && roci_conn_has_tx(id->conn))
		roci_cm_host_send(id->dev, roci_now());
}

struct roci_cm *cma_lock_cm(const struct cma_id *id)
{
	if (!cma_is_alive(id))
		return NULL;
	roci_device_lock(id->dev);
	cma_send_before(id);
	return roci_cm_host_cm(id->dev);
}

static void unlock(const struct cma_id *id, bool more)
{
	roci_cm_host_called(id->dev, more);
	roci_device_unlock(id->dev);
}

void cma_unlock_cm_last(const struct cma_id *id)
{
	unlock(id, false);
}

void cma_unlock_cm_disconnected(const struct cma_id *id)
{
	roci_cm_host_disconnected(id->dev);
	roci_device_unlock(id->dev);
}

void cma_unlock_cm(const struct cma_id *id)
{
	unlock(id, cma_channel_has_events(id->id.channel));
}

void cma_send_waiting(void)
{
	struct roci_device *dev = cma_roci_device();
	if (!dev || !roci_cm_host_holds(dev))
		return;
	roci_device_lock(dev);
	roci_cm_host_send(dev, roci_now());
	roci_device_unlock(dev);
}

void cma_request_fetched(struct cma_id *id)
{
	bool in_turn = cma_channel_begin_turn((struct cma_channel *)id->id.channel, &id->turn);
	if (!cma_lock_cm(id))
		return;
	if (id->conn)
		roci_conn_fetched(id->conn, roci_now(), in_turn);
	else if (id->sidr)
		roci_sidr_fetched(id->sidr, roci_now(), in_turn);
	roci_device_unlock(id->dev); /* the program is about to answer it */
}

void cma_request_answered(const struct cma_id *id)
{
	cma_channel_end_turn((struct cma_channel *)id->id.channel, &id->turn);
}

bool cma_conn_info(const struct cma_id *id, struct roci_conn_info *info)
{
	if (!cma_lock_cm(id))
		return false;
	bool connected = id->conn; /* another thread may destroy the id while this one processes its event */
	if (connected)
		*info = *roci_conn_info(id->conn);
	roci_device_unlock_quiet(id->dev);
	return connected;
}

void cma_path_ah(const struct cma_id *id, const struct roci_cm_path *path, struct ibv_ah_attr *ah)
{
	*ah = (struct ibv_ah_attr){
		.is_global = 1,
		.port_num = CMA_PORT_NUM,
		.sl = path->sl,
		.grh = {.flow_label = path->flow_label,
			.sgid_index = cma_sgid_index(id),
			.hop_limit = path->hop_limit,
			.traffic_class = path->traffic_class},
	};
	memcpy(ah->grh.dgid.raw, path->dgid, 16);
}
