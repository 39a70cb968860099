/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Multicast groups. Each has a socket that is bound to the group's address, so that nothing else arrives there, and
 * joined on every interface. A link-local group of IPv6 has a socket for each interface, because the kernel binds such
 * an address to one interface, and delivers packets of no other.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "device/sys.h"
#include "device/udp_socket.h"
#include "wire/gid.h"

static bool is_link_local(const uint8_t gid[16])
{
	const struct in6_addr *addr = (const void *)gid;

	return IN6_IS_ADDR_MC_LINKLOCAL(addr) || IN6_IS_ADDR_MC_NODELOCAL(addr);
}

static bool is_of(const struct udp_socket *s, const uint8_t gid[16])
{
	return s->joins && !memcmp(s->gid, gid, 16);
}

static int free_place(struct roci_udp *udp)
{
	for (unsigned i = ROCI_MAX_GIDS; i < udp->sockets_end; i++)
		if (!udp->sockets[i].joins)
			return (int)i;
	return udp->sockets_end < UDP_SOCKETS ? (int)udp->sockets_end++ : -1;
}

static int join(int fd, const uint8_t gid[16], uint32_t ifindex)
{
	struct ipv6_mreq v6 = {.ipv6mr_interface = ifindex};
	struct ip_mreqn v4 = {.imr_ifindex = (int)ifindex};
	int err;

	if (roci_gid_is_ipv4(gid)) {
		roci_gid_to_ipv4(gid, &v4.imr_multiaddr);
		err = roci_sys_setsockopt(fd, IPPROTO_IP, IP_ADD_MEMBERSHIP, &v4, sizeof(v4));
	} else {
		memcpy(&v6.ipv6mr_multiaddr, gid, 16);
		err = roci_sys_setsockopt(fd, IPPROTO_IPV6, IPV6_JOIN_GROUP, &v6, sizeof(v6));
	}
	return err ? -errno : 0;
}

/* Whether to join `gid` on the interface of GID `i`: its family fits, and no earlier GID is on that interface. */
static bool may_join(const struct roci_gids *gids, int i, const uint8_t gid[16])
{
	bool ipv4 = roci_gid_is_ipv4(gid);

	if (!roci_gid_is_present(&gids->entries[i]) || roci_gid_is_ipv4(gids->entries[i].gid) != ipv4)
		return false;
	for (int k = 0; k < i; k++)
		if (roci_gid_is_present(&gids->entries[k]) && gids->entries[k].ifindex == gids->entries[i].ifindex &&
		    roci_gid_is_ipv4(gids->entries[k].gid) == ipv4)
			return false;
	return true;
}

/* Returns 0 if at least one interface takes it. */
static int join_everywhere(const struct roci_udp_config *config, int fd, const uint8_t gid[16])
{
	int err = -ENODEV;

	for (int i = 0; i < config->gids->count; i++) {
		int one = may_join(config->gids, i, gid) ? join(fd, gid, config->gids->entries[i].ifindex) : err;

		if (err)
			err = one;
	}
	return err;
}

/* SO_REUSEADDR, not SO_REUSEPORT: each socket on the host gets a copy, those of other users too. */
static int group_socket(const uint8_t gid[16], uint32_t ifindex)
{
	int fd = roci_udp_socket(gid, ifindex), on = 1, err;
	union udp_name name;
	socklen_t len = roci_udp_name(&name, gid, ifindex);

	if (fd < 0)
		return fd;
	if (!roci_sys_setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) && !roci_sys_bind(fd, &name.any, len))
		return fd;
	err = -errno;
	roci_sys_close(fd);
	return err;
}

static int add_socket(struct roci_udp *udp, int fd, const uint8_t gid[16], uint32_t ifindex, unsigned joins)
{
	int i = free_place(udp), err;
	struct udp_socket *s;

	if (i < 0)
		return -ENOMEM;
	s = &udp->sockets[i];
	*s = (struct udp_socket){.fd = fd, .ipv4 = roci_gid_is_ipv4(gid), .ifindex = ifindex, .joins = joins};
	memcpy(s->gid, gid, 16);
	err = roci_udp_add(udp, (unsigned)i);
	if (err)
		*s = (struct udp_socket){.fd = -1};
	return err;
}

/* A link-local group is joined on `ifindex` alone. */
static int open_socket(struct roci_udp *udp, const uint8_t gid[16], uint32_t ifindex, unsigned joins)
{
	int fd = group_socket(gid, ifindex), err;

	if (fd < 0)
		return fd;
	err = is_link_local(gid) ? join(fd, gid, ifindex) : join_everywhere(&udp->config, fd, gid);
	if (!err)
		err = add_socket(udp, fd, gid, ifindex, joins);
	if (err)
		roci_sys_close(fd);
	return err;
}

/* Returns 0 if at least one interface takes it. */
static int open_on_interfaces(struct roci_udp *udp, const uint8_t gid[16])
{
	int err = -ENODEV;

	for (int i = 0; i < udp->config.gids->count; i++) {
		int one = may_join(udp->config.gids, i, gid)
				  ? open_socket(udp, gid, udp->config.gids->entries[i].ifindex, 1)
				  : err;

		if (one == -ENOMEM || one == -EMFILE || one == -ENFILE || one == -ENOBUFS) {
			roci_udp_leave(udp, gid);
			return one;
		}
		if (err)
			err = one;
	}
	return err;
}

int roci_udp_join(struct roci_udp *udp, const uint8_t gid[16])
{
	const struct roci_gid_entry *first;
	bool joined = false;

	if (!roci_gid_is_multicast(gid))
		return -EINVAL;
	for (unsigned i = ROCI_MAX_GIDS; i < udp->sockets_end; i++) {
		if (is_of(&udp->sockets[i], gid)) {
			udp->sockets[i].joins++;
			joined = true;
		}
	}
	if (joined)
		return 0;
	if (is_link_local(gid))
		return open_on_interfaces(udp, gid);
	first = roci_gids_first(udp->config.gids);
	return open_socket(udp, gid, first ? first->ifindex : 0, 1);
}

int roci_udp_leave(struct roci_udp *udp, const uint8_t gid[16])
{
	bool joined = false;

	for (unsigned i = ROCI_MAX_GIDS; i < udp->sockets_end; i++) {
		struct udp_socket *s = &udp->sockets[i];

		if (!is_of(s, gid))
			continue;
		joined = true;
		if (--s->joins)
			continue;
		roci_sys_close(s->fd);
		roci_udp_remove(udp, i);
	}
	return joined ? 0 : -EINVAL;
}

/* The socket of a link-local group on an interface; NULL: there is none. */
static const struct udp_socket *socket_on(const struct roci_udp *udp, const uint8_t gid[16], uint32_t ifindex)
{
	for (unsigned i = ROCI_MAX_GIDS; i < udp->sockets_end; i++)
		if (is_of(&udp->sockets[i], gid) && udp->sockets[i].ifindex == ifindex)
			return &udp->sockets[i];
	return NULL;
}

/* A socket that is a member already says so (EADDRINUSE); what fails otherwise failed for the other interfaces, too. */
void roci_udp_join_on(struct roci_udp *udp, unsigned index)
{
	const struct roci_gid_entry *entry = &udp->config.gids->entries[index];
	bool ipv4 = roci_gid_is_ipv4(entry->gid);

	for (unsigned i = ROCI_MAX_GIDS; i < udp->sockets_end; i++) {
		const struct udp_socket *s = &udp->sockets[i];

		if (!s->joins || s->ipv4 != ipv4)
			continue;
		if (!is_link_local(s->gid))
			(void)join(s->fd, s->gid, entry->ifindex);
		else if (!socket_on(udp, s->gid, entry->ifindex))
			(void)open_socket(udp, s->gid, entry->ifindex, s->joins);
	}
}
