/* Multicast groups: each has a socket bound to the group's address, so that nothing else arrives on it. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "device/udp_socket.h"

bool roci_gid_is_multicast(const uint8_t gid[16])
{
	return gid[0] == 0xff || (roci_gid_is_ipv4(gid) && (gid[12] & 0xf0) == 0xe0);
}

static int find_group(struct roci_udp *udp, const uint8_t gid[16])
{
	for (int i = ROCI_MAX_GIDS; i < UDP_SOCKETS; i++)
		if (udp->sockets[i].joins && !memcmp(udp->sockets[i].gid, gid, 16))
			return i;
	return -1;
}

static int free_place(const struct roci_udp *udp)
{
	for (int i = ROCI_MAX_GIDS; i < UDP_SOCKETS; i++)
		if (!udp->sockets[i].joins)
			return i;
	return -1;
}

static int join(int fd, const uint8_t gid[16], uint32_t ifindex)
{
	struct ipv6_mreq v6 = {.ipv6mr_interface = ifindex};
	struct ip_mreqn v4 = {.imr_ifindex = (int)ifindex};
	int rc;

	if (roci_gid_is_ipv4(gid)) {
		memcpy(&v4.imr_multiaddr, gid + 12, 4);
		rc = setsockopt(fd, IPPROTO_IP, IP_ADD_MEMBERSHIP, &v4, sizeof v4);
	} else {
		memcpy(&v6.ipv6mr_multiaddr, gid, 16);
		rc = setsockopt(fd, IPPROTO_IPV6, IPV6_JOIN_GROUP, &v6, sizeof v6);
	}
	return rc ? -errno : 0;
}

/* Returns 0 if at least one interface takes it. */
static int join_everywhere(const struct roci_udp_config *config, int fd, const uint8_t gid[16])
{
	int rc = -ENODEV;

	for (int i = 0; i < config->gid_count; i++) {
		const struct roci_gid_entry *entry = &config->gids[i];
		bool repeated = false;
		int one;

		if (roci_gid_is_ipv4(entry->gid) != roci_gid_is_ipv4(gid))
			continue;
		for (int k = 0; k < i; k++)
			repeated |= config->gids[k].ifindex == entry->ifindex &&
				    roci_gid_is_ipv4(config->gids[k].gid) == roci_gid_is_ipv4(gid);
		if (repeated)
			continue;
		one = join(fd, gid, entry->ifindex);
		if (rc)
			rc = one;
	}
	return rc;
}

/* SO_REUSEADDR, not SO_REUSEPORT: each socket on the host gets its copy, other users' too. */
static int group_socket(const struct roci_udp_config *config, const uint8_t gid[16])
{
	uint32_t ifindex = config->gid_count ? config->gids[0].ifindex : 0;
	int fd = roci_udp_socket(gid, ifindex), on = 1, rc;
	union udp_name name;
	socklen_t len = roci_udp_name(&name, gid, ifindex);

	if (fd < 0)
		return fd;
	if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) || bind(fd, &name.any, len))
		rc = -errno;
	else
		rc = join_everywhere(config, fd, gid);
	if (!rc)
		return fd;
	close(fd);
	return rc;
}

int roci_udp_join(struct roci_udp *udp, const uint8_t gid[16])
{
	struct udp_socket *s;
	int i, fd, rc;

	if (!roci_gid_is_multicast(gid))
		return -EINVAL;
	i = find_group(udp, gid);
	if (i >= 0) {
		udp->sockets[i].joins++;
		return 0;
	}
	i = free_place(udp);
	if (i < 0)
		return -ENOMEM;
	fd = group_socket(&udp->config, gid);
	if (fd < 0)
		return fd;
	s = &udp->sockets[i];
	*s = (struct udp_socket){.fd = fd, .ipv4 = roci_gid_is_ipv4(gid), .joins = 1};
	memcpy(s->gid, gid, 16);
	rc = roci_udp_enter(udp, (unsigned)i);
	if (rc) {
		close(fd);
		*s = (struct udp_socket){.fd = -1};
	}
	return rc;
}

int roci_udp_leave(struct roci_udp *udp, const uint8_t gid[16])
{
	int i = find_group(udp, gid);

	if (i < 0)
		return -EINVAL;
	if (--udp->sockets[i].joins)
		return 0;
	close(udp->sockets[i].fd);
	roci_udp_remove(udp, (unsigned)i);
	return 0;
}
