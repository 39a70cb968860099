/* SPDX-License-Identifier: BSD-2-Clause */
#include "device/udp.h"

#include <errno.h>
#include <netinet/udp.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>

#include "device/gid.h"
#include "device/steer.h"
#include "device/sys.h"
#include "device/udp_socket.h"
#include "wire/gid.h"

#ifndef UDP_NO_CHECK6_RX
#define UDP_NO_CHECK6_RX 102
#endif
#ifndef UDP_GRO
#define UDP_GRO 104
#endif

#define BUFFER_BYTES (8 << 20)

socklen_t roci_udp_name(union udp_name *name, const uint8_t gid[16], uint32_t ifindex)
{
	if (roci_gid_is_ipv4(gid)) {
		name->v4 = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(ROCI_UDP_PORT)};
		roci_gid_to_ipv4(gid, &name->v4.sin_addr);
		return sizeof(name->v4);
	}
	name->v6 = (struct sockaddr_in6){.sin6_family = AF_INET6, .sin6_port = htons(ROCI_UDP_PORT)};
	memcpy(&name->v6.sin6_addr, gid, 16);
	if (IN6_IS_ADDR_LINKLOCAL(&name->v6.sin6_addr) || IN6_IS_ADDR_MULTICAST(&name->v6.sin6_addr))
		name->v6.sin6_scope_id = ifindex;
	return sizeof(name->v6);
}

static int set(int fd, int level, int option, int value)
{
	return roci_sys_setsockopt(fd, level, option, &value, sizeof(value)) ? -errno : 0;
}

/* As large as possible: FORCE needs CAP_NET_ADMIN; without it the sysctl is the limit. */
static void grow_buffers(int fd)
{
	if (set(fd, SOL_SOCKET, SO_RCVBUFFORCE, BUFFER_BYTES))
		set(fd, SOL_SOCKET, SO_RCVBUF, BUFFER_BYTES);
	if (set(fd, SOL_SOCKET, SO_SNDBUFFORCE, BUFFER_BYTES))
		set(fd, SOL_SOCKET, SO_SNDBUF, BUFFER_BYTES);
}

/* The kernel doubles what is asked for, since packets take more memory than their bytes. */
uint64_t roci_udp_receive_room(void)
{
	int fd = roci_sys_socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), bytes = 0;
	socklen_t len = sizeof(bytes);

	if (fd < 0)
		return 0;
	grow_buffers(fd);
	if (roci_sys_getsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, &len))
		bytes = 0;
	roci_sys_close(fd);
	return (uint64_t)bytes / 2;
}

/* PMTUDISC_DO: DF is set; the IPv4 identification of a packet is 0, and its place in the message where GSO cuts one.
 * PMTUDISC_DONT: the kernel fragments what does not fit, and draws the identification; and so do routers over IPv4. */
static int set_fragments(int fd, bool ipv4, bool allowed)
{
	int err;

	if (ipv4)
		return set(fd, IPPROTO_IP, IP_MTU_DISCOVER, allowed ? IP_PMTUDISC_DONT : IP_PMTUDISC_DO);
	err = set(fd, IPPROTO_IPV6, IPV6_MTU_DISCOVER, allowed ? IPV6_PMTUDISC_DONT : IPV6_PMTUDISC_DO);
	return err ? err : set(fd, IPPROTO_IPV6, IPV6_DONTFRAG, !allowed);
}

void roci_udp_allow_fragments(struct udp_socket *s, bool allowed)
{
	if (s->fragments != allowed && !set_fragments(s->fd, s->ipv4, allowed))
		s->fragments = allowed;
}

static int set_ipv4(int fd, uint32_t ifindex)
{
	struct ip_mreqn egress = {.imr_ifindex = (int)ifindex};
	int err = set_fragments(fd, true, false);

	set(fd, IPPROTO_IP, IP_RECVTOS, 1);
	set(fd, IPPROTO_IP, IP_RECVTTL, 1);
	set(fd, IPPROTO_IP, IP_MULTICAST_LOOP, 1);
	if (!err && roci_sys_setsockopt(fd, IPPROTO_IP, IP_MULTICAST_IF, &egress, sizeof(egress)))
		err = -errno;
	return err;
}

/* Without UDP_NO_CHECK6_RX the kernel drops packets of Soft-RoCE, whose UDP checksum is 0. */
static int set_ipv6(int fd, uint32_t ifindex)
{
	int err = set(fd, IPPROTO_IPV6, IPV6_V6ONLY, 1);

	err = err ? err : set_fragments(fd, false, false);
	err = err ? err : set(fd, IPPROTO_UDP, UDP_NO_CHECK6_RX, 1);
	set(fd, IPPROTO_IPV6, IPV6_RECVTCLASS, 1);
	set(fd, IPPROTO_IPV6, IPV6_RECVHOPLIMIT, 1);
	set(fd, IPPROTO_IPV6, IPV6_MULTICAST_LOOP, 1);
	return err ? err : set(fd, IPPROTO_IPV6, IPV6_MULTICAST_IF, (int)ifindex);
}

int roci_udp_socket(const uint8_t gid[16], uint32_t ifindex)
{
	bool ipv4 = roci_gid_is_ipv4(gid);
	int fd = roci_sys_socket(ipv4 ? AF_INET : AF_INET6, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	int err;

	if (fd < 0)
		return -errno;
	err = ipv4 ? set_ipv4(fd, ifindex) : set_ipv6(fd, ifindex);
	if (err) {
		roci_sys_close(fd);
		return err;
	}
	grow_buffers(fd);
	set(fd, IPPROTO_UDP, UDP_GRO, 1);
	return fd;
}

int roci_udp_add(struct roci_udp *udp, unsigned index)
{
	struct epoll_event ev = {.events = EPOLLIN, .data.u64 = index};

	if (epoll_ctl(udp->config.epoll_fd, EPOLL_CTL_ADD, udp->sockets[index].fd, &ev))
		return -errno;
	udp->open[udp->open_count++] = index;
	return 0;
}

void roci_udp_remove(struct roci_udp *udp, unsigned index)
{
	for (unsigned i = 0; i < udp->open_count; i++) {
		if (udp->open[i] == index) {
			udp->open[i] = udp->open[--udp->open_count];
			break;
		}
	}
	udp->busy = udp->turn = 0;
	udp->sockets[index].fd = -1;
}

void roci_udp_ready(struct roci_udp *udp, uint64_t event_data, bool error)
{
	for (unsigned i = 0; i < udp->open_count; i++) {
		if (udp->open[i] != event_data)
			continue;
		udp->busy = i;
		if (error)
			roci_udp_take_errors(udp, &udp->sockets[event_data]);
	}
}

static int bind_port(struct roci_udp *udp, unsigned index)
{
	const struct roci_gid_entry *entry = &udp->config.gids->entries[index];
	struct udp_socket *s = &udp->sockets[index], before = *s;
	union udp_name name;
	socklen_t len;
	int fd, err;

	fd = roci_udp_socket(entry->gid, entry->ifindex);
	err = fd < 0 ? fd : set(fd, SOL_SOCKET, SO_REUSEPORT, 1);
	if (err)
		goto err_close;
	roci_udp_report_errors(fd, roci_gid_is_ipv4(entry->gid));
	len = roci_udp_name(&name, entry->gid, entry->ifindex);
	err = roci_steer_bind(udp->config.registry, fd, &name.any, len, entry->gid, entry->ifindex);
	if (err)
		goto err_close;
	*s = (struct udp_socket){
		.fd = fd,
		.ipv4 = roci_gid_is_ipv4(entry->gid),
		.ifindex = entry->ifindex,
		.asked = s->asked,
	};
	memcpy(s->gid, entry->gid, 16);
	err = roci_udp_add(udp, index);
	if (!err)
		return 0;
	*s = before; /* a wanted one stays wanted */
	roci_steer_close(udp->config.registry, fd, entry->gid, entry->ifindex);
	fd = -1;
err_close:
	if (fd >= 0)
		roci_sys_close(fd);
	return err;
}

/* ---- a port that cannot be had ---- */

#define RETRY_NS 1000000000u /* between attempts to bind it */
#define USE_NS   2000000000u /* so long after the last packet, retry_soon_ns */
#define SHARE    16          /* attempts take one part of so many of the time: others fill the kernel's lists */

/* Not all at the same moment: two registries that bind together both give way. */
static void plan_retry(struct roci_udp *udp, uint64_t now)
{
	uint64_t pause = udp->used_at && now - udp->used_at < USE_NS ? udp->retry_soon_ns : RETRY_NS;

	udp->retry_at = now + pause - roci_random32() % (pause / 4);
}

/* The first time it is found out whether packets come to us all the same. */
static int do_without(struct roci_udp *udp, unsigned index, int err)
{
	const struct roci_gid_entry *entry = &udp->config.gids->entries[index];
	struct udp_socket *s = &udp->sockets[index];

	if (!s->wanted) {
		s->wanted = true;
		s->error = err;
		if (err == -EADDRINUSE)
			roci_udp_inquire(udp, index, roci_now());
		if (udp->retry_at == UINT64_MAX)
			plan_retry(udp, roci_now());
	}
	if (s->error)
		roci_udp_warn(s, entry->gid, s->error);
	return s->error;
}

int roci_udp_listen(struct roci_udp *udp, int index)
{
	const struct roci_gid_entry *entry;
	struct udp_socket *s;
	int err;

	if (index < 0 || index >= ROCI_MAX_GIDS)
		return -EINVAL;
	entry = &udp->config.gids->entries[index];
	s = &udp->sockets[index];
	if (!roci_gid_is_present(entry))
		return -EINVAL;
	s->asked = true;
	if (s->fd >= 0)
		return 0;
	if (entry->state == ROCI_GID_TENTATIVE)
		return -EADDRNOTAVAIL;
	if (s->wanted)
		return s->error;
	err = bind_port(udp, (unsigned)index);
	return err ? do_without(udp, (unsigned)index, err) : 0;
}

/* One reading tells of all addresses which it is no use to bind. In case it errs, each is tried once in a second. */
static bool bind_missing(struct roci_udp *udp, uint64_t now)
{
	struct udp_survey survey;
	bool missing = false;

	roci_udp_survey(udp, &survey);
	for (unsigned i = 0; i < ROCI_MAX_GIDS; i++) {
		struct udp_socket *s = &udp->sockets[i];

		if (!roci_udp_is_missing(s))
			continue;
		if ((survey.same & 1u << i) && now - s->tried_at < RETRY_NS) {
			missing = true;
		} else if (bind_port(udp, i)) {
			missing = true;
			s->tried_at = now;
			s->holder = survey.holders[i];
		}
		if (roci_udp_is_missing(s))
			roci_udp_inquire_again(udp, i, survey.holders[i], now);
	}
	return missing;
}

static uint64_t clamp(uint64_t value, uint64_t low, uint64_t high)
{
	return value < low ? low : value > high ? high : value;
}

void roci_udp_timers(struct roci_udp *udp, uint64_t now)
{
	uint64_t start = roci_now();
	bool missing = bind_missing(udp, now);

	udp->retry_soon_ns = clamp(SHARE * (roci_now() - start), UDP_RETRY_SOON_NS, RETRY_NS);
	if (missing)
		plan_retry(udp, now);
	else
		udp->retry_at = UINT64_MAX;
}

uint64_t roci_udp_deadline(const struct roci_udp *udp)
{
	return udp->retry_at;
}

uint16_t roci_udp_mad_port(struct roci_udp *udp, unsigned index)
{
	return udp->sockets[index].fd >= 0 ? ROCI_UDP_PORT : roci_udp_source_port(udp, index);
}

/* ---- addresses that come and go ---- */

int roci_udp_listen_everywhere(struct roci_udp *udp)
{
	const struct roci_gids *gids = udp->config.gids;
	int err = 0;

	udp->everywhere = true;
	for (int i = 0; i < gids->count; i++) {
		int one = gids->entries[i].state == ROCI_GID_READY ? roci_udp_listen(udp, i) : 0;

		err = err ? err : one;
	}
	return err;
}

static void close_socket(struct roci_udp *udp, unsigned index)
{
	struct udp_socket *s = &udp->sockets[index];

	if (s->fd < 0)
		return;
	roci_steer_close(udp->config.registry, s->fd, s->gid, s->ifindex);
	roci_udp_remove(udp, index);
}

void roci_udp_follow(struct roci_udp *udp, const struct roci_gid_change *change)
{
	roci_kept_forget(&udp->kept);
	for (unsigned i = 0; i < ROCI_MAX_GIDS; i++) {
		uint32_t bit = 1u << i;
		struct udp_socket *s = &udp->sockets[i];

		if ((change->unready | change->renewed) & bit) {
			close_socket(udp, i);
			roci_udp_close_source(udp, i, change->renewed & bit);
			s->wanted = false;
		}
		if (change->renewed & bit)
			s->asked = s->warned = false;
		if (!(change->ready & bit))
			continue;
		if (s->asked || udp->everywhere)
			(void)roci_udp_listen(udp, (int)i); /* it warned */
		if (udp->sources[i].port)
			(void)roci_udp_source_port(udp, i);
		roci_udp_join_on(udp, i);
	}
}

void roci_udp_repair(struct roci_udp *udp)
{
	for (unsigned i = 0; i < ROCI_MAX_GIDS; i++)
		if (udp->sockets[i].fd >= 0)
			roci_steer_repair(udp->config.registry, udp->sockets[i].fd, udp->sockets[i].gid,
					  udp->sockets[i].ifindex);
}

void roci_udp_leave_host(struct roci_udp *udp)
{
	udp->retry_at = UINT64_MAX;
	for (unsigned i = 0; i < ROCI_MAX_GIDS; i++) {
		struct udp_socket *s = &udp->sockets[i];

		if (s->fd >= 0) {
			roci_steer_close(udp->config.registry, s->fd, s->gid, s->ifindex);
			roci_udp_remove(udp, i);
		}
		s->wanted = true; /* and not to be had again: another thread may still use the device */
		s->error = -ESHUTDOWN;
	}
}

void roci_udp_close_in_child(struct roci_udp *udp)
{
	for (unsigned i = 0; i < udp->open_count; i++)
		roci_sys_close(udp->sockets[udp->open[i]].fd);
	roci_udp_close_sources(udp);
}

static void udp_close(struct roci_link *link)
{
	struct roci_udp *udp = (struct roci_udp *)link;

	roci_udp_close_sources(udp);
	for (unsigned i = 0; i < udp->sockets_end; i++) {
		struct udp_socket *s = &udp->sockets[i];

		if (s->fd < 0)
			continue;
		if (i < ROCI_MAX_GIDS)
			roci_steer_close(udp->config.registry, s->fd, s->gid, s->ifindex);
		else
			roci_sys_close(s->fd);
	}
	munmap(udp, sizeof(*udp));
}

int roci_udp_open(const struct roci_udp_config *config, struct roci_udp **out)
{
	static const struct roci_link_ops ops = {
		.max_run = roci_udp_max_run,
		.send = roci_udp_send,
		.recv = roci_udp_recv,
		.close = udp_close,
	};
	/* mmap: the bytes for received messages cost nothing until something arrives. */
	struct roci_udp *udp = mmap(NULL, sizeof(*udp), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (udp == MAP_FAILED)
		return -ENOMEM;
	udp->link.ops = &ops;
	udp->config = *config;
	udp->sockets_end = ROCI_MAX_GIDS;
	for (unsigned i = 0; i < ROCI_MAX_GIDS; i++)
		udp->sockets[i].fd = udp->sources[i].fd = udp->questions[i] = -1;
	udp->source_questions[0] = udp->source_questions[1] = -1;
	udp->retry_at = UINT64_MAX;
	udp->retry_soon_ns = UDP_RETRY_SOON_NS;
	roci_udp_prepare_recv(udp);
	*out = udp;
	return 0;
}

struct roci_link *roci_udp_link(struct roci_udp *udp)
{
	return &udp->link;
}
