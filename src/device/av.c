/* SPDX-License-Identifier: BSD-2-Clause */
/* Address vectors: where packets of a QP or an address handle go. */
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#include "device/device_state.h"
#include "device/sys.h"
#include "device/udp_socket.h"
#include "engine/why.h"
#include "wire/gid.h"
#include "wire/ip.h"

/* UDP payload that one IP packet takes to where the socket is connected; 0: not known. */
static uint32_t max_datagram(int fd, bool ipv4)
{
	int mtu, overhead = (ipv4 ? ROCI_IPV4_BYTES : ROCI_IPV6_BYTES) + ROCI_UDP_BYTES;
	socklen_t len = sizeof(mtu);

	if (roci_sys_getsockopt(fd, ipv4 ? IPPROTO_IP : IPPROTO_IPV6, ipv4 ? IP_MTU : IPV6_MTU, &mtu, &len))
		return 0;
	return mtu > overhead ? (uint32_t)(mtu - overhead) : 0;
}

/* Asks the kernel whether there is a route, and what it carries. Nothing is sent. */
static int find_route(const struct roci_gid_entry *from, const uint8_t dgid[16], uint32_t *carries)
{
	union udp_name here, there;
	socklen_t len = roci_udp_name(&here, from->gid, from->ifindex);
	bool ipv4 = roci_gid_is_ipv4(dgid);
	int err = 0, fd = roci_sys_socket(ipv4 ? AF_INET : AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -errno;
	if (ipv4)
		here.v4.sin_port = 0;
	else
		here.v6.sin6_port = 0;
	roci_udp_name(&there, dgid, from->ifindex);
	if (roci_sys_bind(fd, &here.any, len) || roci_sys_connect(fd, &there.any, len))
		err = errno == EHOSTUNREACH || errno == EACCES || errno == EINVAL ? -ENETUNREACH : -errno;
	else
		*carries = max_datagram(fd, ipv4);
	roci_sys_close(fd);
	return err;
}

int roci_device_make_av(struct roci_device *dev, const struct roci_ah_params *params, struct roci_av *av)
{
	const struct roci_gid_entry *from;
	uint32_t carries = 0;
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
		err = find_route(from, params->dgid, &carries);
		if (err)
			return ROCI_REFUSE(err, "no route from the address of sgid_index %u to grh.dgid",
					   params->sgid_index);
	}
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
