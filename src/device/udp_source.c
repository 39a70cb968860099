/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The sockets that packets of RC and UC leave from. Each local address has one, on a random port: who does not see our
 * packets cannot know the port, and a peer that expects it drops what is forged. Nothing is received there.
 */
#include <errno.h>
#include <linux/filter.h>

#include "device/sys.h"
#include "device/udp_socket.h"
#include "wire/gid.h"

/* Above 4791: Wireshark asks the decoder of the lower one of two ports first, and many below have one. And it takes
 * packets from 30 ports for traceroute's. */
#define PORT_MIN         (ROCI_UDP_PORT + 1)
#define TRACEROUTE_MIN   33435
#define TRACEROUTE_PORTS 30
#define PORTS            (65536 - PORT_MIN - TRACEROUTE_PORTS)
#define DRAWS            64 /* then the kernel chooses one of its ephemeral ports */

int roci_udp_receive_nothing(int fd)
{
	struct sock_filter drop = BPF_STMT(BPF_RET | BPF_K, 0);
	struct sock_fprog program = {.len = 1, .filter = &drop};

	return roci_sys_setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program)) ? -errno : 0;
}

int roci_udp_bind(int fd, const struct roci_gid_entry *from, uint16_t port)
{
	union udp_name name;
	socklen_t len = roci_udp_name(&name, from->gid, from->ifindex);

	roci_udp_name_set_port(&name, port);
	return roci_sys_bind(fd, &name.any, len) ? -errno : 0;
}

uint16_t roci_udp_port_for(uint32_t random)
{
	uint32_t port = PORT_MIN + random % PORTS;

	return (uint16_t)(port < TRACEROUTE_MIN ? port : port + TRACEROUTE_PORTS);
}

static int bind_somewhere(int fd, const struct roci_gid_entry *from)
{
	for (unsigned i = 0; i < DRAWS; i++) {
		int err = roci_udp_bind(fd, from, roci_udp_port_for(roci_random32()));

		if (err != -EADDRINUSE && err != -EACCES)
			return err;
	}
	return roci_udp_bind(fd, from, 0);
}

static uint16_t port_of(int fd)
{
	union udp_name name;
	socklen_t len = sizeof(name);

	if (roci_sys_getsockname(fd, &name.any, &len))
		return 0;
	return roci_udp_name_port(&name);
}

/* A socket that has been on `port` before takes it again if it can: address vectors name the port. */
static int open_source(const struct roci_gid_entry *from, uint16_t *port)
{
	int fd = roci_udp_socket(from->gid, from->ifindex), err;

	if (fd < 0)
		return fd;
	err = roci_udp_receive_nothing(fd);
	if (!err && (!*port || roci_udp_bind(fd, from, *port)))
		err = bind_somewhere(fd, from);
	if (!err) {
		*port = port_of(fd);
		return fd;
	}
	roci_sys_close(fd);
	return err;
}

uint16_t roci_udp_source_port(struct roci_udp *udp, unsigned index)
{
	const struct roci_gid_entry *from = &udp->config.gids->entries[index];
	struct udp_socket *s = &udp->sources[index];

	if (s->fd < 0) {
		s->fd = open_source(from, &s->port);
		s->ipv4 = roci_gid_is_ipv4(from->gid);
		s->ifindex = from->ifindex;
		s->gso = UDP_GSO_UNTRIED;
		s->fragments = false;
	}
	return s->fd < 0 ? ROCI_UDP_PORT : s->port;
}

struct udp_socket *roci_udp_source_of(struct roci_udp *udp, const struct roci_av *av)
{
	struct udp_socket *source = &udp->sources[av->sgid_index];

	return source->fd >= 0 && source->port == av->src_port ? source : &udp->sockets[av->sgid_index];
}

void roci_udp_close_source(struct roci_udp *udp, unsigned index, bool forget)
{
	struct udp_socket *s = &udp->sources[index];

	roci_udp_close_question(udp, index);
	if (s->fd >= 0)
		roci_sys_close(s->fd);
	s->fd = -1;
	if (forget)
		s->port = 0;
}

void roci_udp_close_sources(struct roci_udp *udp)
{
	for (unsigned i = 0; i < ROCI_MAX_GIDS; i++)
		roci_udp_close_source(udp, i, true);
	roci_udp_close_source_questions(udp);
}
