/* SPDX-License-Identifier: BSD-2-Clause */
/* Address vectors: where packets of a QP or an address handle go. */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "device/device_state.h"
#include "device/udp_socket.h"
#include "engine/why.h"
#include "wire/gid.h"
#include "wire/mtu.h"

int roci_device_route_source(struct roci_device *dev, const struct sockaddr *dst, socklen_t dst_len,
			     struct sockaddr_storage *src)
{
	return dev->dead ? -ENODEV : roci_udp_route_source(dev->links.udp, roci_now(), dst, dst_len, src);
}

int roci_device_source_of(struct roci_device *dev, const uint8_t dgid[16], uint8_t sgid[16])
{
	union udp_name to;
	socklen_t len = roci_udp_name(&to, dgid, 0);
	struct sockaddr_storage from;
	int err = roci_device_route_source(dev, &to.any, len, &from);

	if (!err)
		roci_udp_name_gid((const union udp_name *)&from, sgid);
	return err;
}

int roci_device_make_av(struct roci_device *dev, const struct roci_ah_params *params, struct roci_av *av)
{
	const struct roci_gid_entry *from;
	uint64_t now = roci_now();
	uint32_t carries = 0, found;
	int err;

	if (params->sgid_index >= ROCI_MAX_GIDS)
		return ROCI_REFUSE(-EINVAL, "grh.sgid_index %u: the GID table has %d entries", params->sgid_index,
				   ROCI_MAX_GIDS);
	if (roci_gid_is_any(params->dgid) || roci_gid_is_any_ipv4(params->dgid))
		return ROCI_REFUSE(-EINVAL, "grh.dgid is zero: it must be the peer's GID");
	from = &dev->gids.entries[params->sgid_index];
	if (!roci_gid_is_present(from))
		return ROCI_REFUSE(-EINVAL, "grh.sgid_index %u: this entry of the GID table is empty (ibv_devinfo -v)",
				   params->sgid_index);
	if (roci_gid_is_ipv4(from->gid) != roci_gid_is_ipv4(params->dgid))
		return ROCI_REFUSE(-EINVAL,
				   "grh.dgid is an IPv%d address, and the GID of sgid_index %u an IPv%d address",
				   roci_gid_is_ipv4(params->dgid) ? 4 : 6, params->sgid_index,
				   roci_gid_is_ipv4(from->gid) ? 4 : 6);
	if (!roci_gid_is_multicast(params->dgid)) {
		err = roci_udp_route(dev->links.udp, now, params->sgid_index, params->dgid, &carries);
		if (err == -EADDRNOTAVAIL && from->state == ROCI_GID_TENTATIVE)
			return ROCI_REFUSE(err,
					   "the address of sgid_index %u is tentative: the kernel still asks whether "
					   "another host has it. Try again in two seconds (ip addr)",
					   params->sgid_index);
		if (err)
			return ROCI_REFUSE(err, "no route from the address of sgid_index %u to grh.dgid",
					   params->sgid_index);
	}
	found = roci_path_mtu_carries(&dev->path_mtus, now, from->gid, params->dgid);
	if (found && found < roci_mtu_datagram_bytes(roci_mtu_code(from->path_mtu)))
		carries = !carries || found < carries ? found : carries;
	/* Answers arrive there. Where the port cannot be had, roci_udp_send() uses side doors. */
	roci_udp_listen(dev->links.udp, params->sgid_index);
	*av = (struct roci_av){
		.ifindex = from->ifindex,
		.mtu = from->path_mtu,
		.max_datagram = carries,
		/* Any port, and not one from 0xc000 up, which adapters use: receivers must take any. One socket for
		 * each address keeps sends in order, and system calls few. */
		.src_port = params->datagram ? roci_udp_mad_port(dev->links.udp, params->sgid_index)
					     : roci_udp_source_port(dev->links.udp, params->sgid_index),
		.mad_port = roci_udp_mad_port(dev->links.udp, params->sgid_index),
		.sgid_index = params->sgid_index,
		.traffic_class = params->traffic_class,
		.hop_limit = params->hop_limit,
	};
	memcpy(av->sgid, from->gid, 16);
	memcpy(av->dgid, params->dgid, 16);
	return 0;
}
