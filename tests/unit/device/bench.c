/* SPDX-License-Identifier: BSD-2-Clause */
#include "bench.h"

#include <arpa/inet.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "device/capture.h"
#include "device/gsi.h"
#include "wire/gid.h"

static char rundir[] = "/tmp/roci-test-XXXXXX";

/* Without the right to it the test uses the host's loopback. */
static void own_network(void)
{
	struct ifreq lo = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING | IFF_LOOPBACK};
	int fd;

	if (unshare(CLONE_NEWNET) && unshare(CLONE_NEWUSER | CLONE_NEWNET))
		return;
	fd = socket(AF_INET, SOCK_DGRAM, 0);
	assert_int_equal(ioctl(fd, SIOCSIFFLAGS, &lo), 0);
	close(fd);
}

int private_rundir(void **state)
{
	own_network();
	return mkdtemp(rundir) ? setenv("ROCI_RUNDIR", rundir, 1) : -1;
}

int remove_rundir(void **state)
{
	char command[64];

	snprintf(command, sizeof(command), "rm -rf %s", rundir);
	return system(command);
}

void gid_of(const char *text, uint8_t gid[16])
{
	struct in_addr ipv4;

	if (inet_pton(AF_INET, text, &ipv4) == 1)
		roci_gid_from_ipv4(gid, &ipv4);
	else
		assert_int_equal(inet_pton(AF_INET6, text, gid), 1);
}

/* path: of a capture, or NULL. */
static void open_station(struct station *s, const char *address, const char *path)
{
	struct roci_udp_config config = {.gids = &s->gids, .registry = &s->registry, .stats = &s->stats};

	memset(s, 0, sizeof(*s));
	gid_of(address, s->gids.entries[0].gid);
	s->gids.count = 1;
	s->gids.entries[0].state = ROCI_GID_READY;
	s->gids.entries[0].ifindex = 1;
	s->gids.entries[0].path_mtu = 4096;
	assert_int_equal(roci_registry_open(&s->registry), 0);
	roci_steer_reset(&s->registry);
	assert_int_equal(roci_side_door_open(&s->registry, &s->door), 0);
	assert_int_equal(roci_door_queue_open(s->door, &s->stats.send_dropped, &s->door_queue), 0);
	s->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	config.door = s->door_queue;
	config.epoll_fd = s->epoll_fd;
	assert_int_equal(roci_udp_open(&config, &s->udp), 0);
	s->link = roci_udp_link(s->udp);
	if (path)
		assert_int_equal(roci_capture_open(s->link, path, &s->link), 0);
	assert_int_equal(roci_seal_open(s->link, &s->link), 0);
}

void station_open(struct station *s, const char *address)
{
	open_station(s, address, NULL);
}

void station_open_captured(struct station *s, const char *address, const char *path)
{
	open_station(s, address, path);
}

void station_close(struct station *s)
{
	roci_link_close(s->link);
	roci_door_queue_close(s->door_queue);
	roci_side_door_close(s->door);
	roci_registry_close(&s->registry);
	close(s->epoll_fd);
}

unsigned station_wait(struct station *s, struct roci_datagram *out)
{
	struct pollfd p = {.fd = s->epoll_fd, .events = POLLIN};
	unsigned n = roci_link_recv(s->link, out);

	while (!n && poll(&p, 1, 1000) > 0)
		n = roci_link_recv(s->link, out);
	return n;
}

void outgoing_start(struct outgoing *o, const struct station *from, const char *to)
{
	o->count = 0;
	o->av = (struct roci_av){.ifindex = from->gids.entries[0].ifindex, .mtu = 4096, .src_port = ROCI_UDP_PORT};
	memcpy(o->av.sgid, from->gids.entries[0].gid, 16);
	gid_of(to, o->av.dgid);
}

uint32_t qpn_of(const struct station *s, unsigned slot, uint32_t offset)
{
	return roci_slot_qpn(&s->registry.slot_key, slot, offset);
}

void outgoing_add(struct outgoing *o, uint32_t qpn, uint32_t psn, unsigned len)
{
	static uint8_t pattern[256 + 4096];
	unsigned i = o->count++;
	struct roci_packet packet = {
		.opcode = ROCI_TRANSPORT_UC | ROCI_OP_SEND_ONLY,
		.pkey = ROCI_PKEY_DEFAULT,
		.dest_qpn = qpn,
		.psn = psn,
		.payload_len = len,
	};
	uint8_t *start = pattern + (uint8_t)psn;

	for (unsigned k = 0; k < sizeof(pattern); k++)
		pattern[k] = (uint8_t)k;
	o->spans[i][0] = (struct roci_span){start, len / 3};
	o->spans[i][1] = (struct roci_span){start + len / 3, len - len / 3};
	o->frames[i] = roci_frame(&o->av, o->headers[i], roci_packet_build(&packet, o->headers[i]), o->spans[i], 2);
}

void outgoing_add_mad(struct outgoing *o, const uint8_t *mad)
{
	unsigned i = o->count++;
	struct roci_packet packet = {
		.opcode = ROCI_TRANSPORT_UD | ROCI_OP_SEND_ONLY,
		.pkey = ROCI_PKEY_DEFAULT,
		.dest_qpn = ROCI_QPN_GSI,
		.src_qpn = ROCI_QPN_GSI,
		.qkey = ROCI_QKEY_GSI,
		.payload_len = ROCI_CM_MAD_BYTES,
	};

	o->spans[i][0] = (struct roci_span){(void *)(uintptr_t)mad, ROCI_CM_MAD_BYTES};
	o->frames[i] = roci_frame(&o->av, o->headers[i], roci_packet_build(&packet, o->headers[i]), o->spans[i], 1);
}

void outgoing_send(struct outgoing *o, struct roci_link *link)
{
	memcpy(o->sent, o->frames, o->count * sizeof(o->sent[0]));
	roci_link_send(link, o->sent, o->count);
}

bool icrc_is_right(const struct roci_datagram *d)
{
	return roci_icrc_check(&d->from->flow, d->bytes, d->len) >= 0;
}

uint32_t check_datagram(const struct roci_datagram *d)
{
	struct roci_packet packet;

	assert_int_equal(roci_packet_parse(&packet, d->bytes, d->len), ROCI_PARSE_OK);
	assert_true(icrc_is_right(d));
	for (unsigned i = 0; i < packet.payload_len; i++)
		assert_int_equal(packet.payload[i], (uint8_t)(packet.psn + i));
	return packet.psn;
}
