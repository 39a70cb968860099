/* SPDX-License-Identifier: BSD-2-Clause */
#include "doctor/peer.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

#include "doctor/child.h"
#include "doctor/ends.h"
#include "target.h"
#include "tour/tour.h"
#include "wire/mtu.h"
#include "wire/packet.h"

#define ICMP_WAIT_MS 500
#define TCP_WAIT_MS  3000
#define LARGE        "65536" /* bytes: many packets of any MTU */
#define PING         "ROCI_PATH=wire roci ping"

static const void *address_bytes(const struct sockaddr_storage *address)
{
	return address->ss_family == AF_INET ? (const void *)&((const struct sockaddr_in *)address)->sin_addr
					     : (const void *)&((const struct sockaddr_in6 *)address)->sin6_addr;
}

static void set_port(struct sockaddr_storage *address, uint16_t port)
{
	((struct sockaddr_in *)address)->sin_port = htons(port); /* sin6_port is at the same place */
}

/* ---- the route ---- */

static bool resolve(struct findings *findings, const struct target *target, struct doctor_peer *peer)
{
	const struct addrinfo hints = {.ai_socktype = SOCK_DGRAM};
	struct addrinfo *list;
	int err = getaddrinfo(target->host, NULL, &hints, &list);

	if (err) {
		struct finding *finding = finding_add(
			findings, FINDING_PROBLEM, "host",
			err == EAI_NONAME ? "%s has no address" : "%s could not be looked up", target->host);
		finding_proof(finding, "getaddrinfo(3): %s", err == EAI_SYSTEM ? strerror(errno) : gai_strerror(err));
		finding_fix(finding, "`getent ahosts %s` looks it up; or name the host by its IP address",
			    target->host);
		return false;
	}
	memcpy(&peer->address, list->ai_addr, list->ai_addrlen);
	peer->address_len = list->ai_addrlen;
	inet_ntop(peer->address.ss_family, address_bytes(&peer->address), peer->text, sizeof(peer->text));
	freeaddrinfo(list);
	return true;
}

/* A UDP socket that is connected to port 4791 of the peer; -1 and errno. */
static int connect_udp(const struct doctor_peer *peer)
{
	struct sockaddr_storage address = peer->address;
	int fd = socket(address.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	set_port(&address, ROCI_UDP_PORT);
	if (fd >= 0 && connect(fd, (struct sockaddr *)&address, peer->address_len)) {
		close(fd);
		fd = -1;
	}
	return fd;
}

static void examine_route(struct findings *findings, struct doctor_peer *peer)
{
	struct sockaddr_storage source;
	socklen_t len = sizeof(source), mtu_len = sizeof(int);
	int fd = connect_udp(peer), mtu = 0;
	bool ipv4 = peer->address.ss_family == AF_INET;
	struct finding *finding;

	if (fd < 0 || getsockname(fd, (struct sockaddr *)&source, &len)) {
		finding = finding_add(findings, FINDING_PROBLEM, "route", "there is no route to %s", peer->text);
		finding_proof(finding, "connect(2) of a UDP socket: %s", strerror(errno));
		finding_fix(finding, "`ip route get %s` shows more", peer->text);
	} else {
		inet_ntop(source.ss_family, address_bytes(&source), peer->source, sizeof(peer->source));
		getsockopt(fd, ipv4 ? IPPROTO_IP : IPPROTO_IPV6, ipv4 ? IP_MTU : IPV6_MTU, &mtu, &mtu_len);
		finding = finding_add(
			findings, FINDING_OK, "route",
			"packets to %s leave from %s; the MTU of the route is %d: RDMA packets of %u bytes", peer->text,
			peer->source, mtu, roci_mtu_bytes(roci_mtu_code_of_interface((uint32_t)mtu)));
		finding_proof(finding, "getsockname(2) and %s of a connected UDP socket", ipv4 ? "IP_MTU" : "IPV6_MTU");
	}
	if (fd >= 0)
		close(fd);
}

bool doctor_peer_find(struct findings *findings, const struct target *target, struct doctor_peer *peer)
{
	uint16_t port = target->port ? target->port : TOUR_DEFAULT_PORT;

	*peer = (struct doctor_peer){0};
	if (!resolve(findings, target, peer))
		return false;
	set_port(&peer->address, port + 1); /* of its two, the one of TCP: roci-serve(1) */
	snprintf(peer->argument, sizeof(peer->argument), strchr(target->host, ':') ? "[%s]:%u" : "%s:%u", target->host,
		 port);
	examine_route(findings, peer);
	return *peer->source;
}

/* ---- what answers ---- */

/* The error that ICMP brings for a byte to UDP port 4791; 0: none came, which proves nothing. */
static int ask_udp(const struct doctor_peer *peer)
{
	int fd = connect_udp(peer), err = 0;
	struct pollfd p = {.fd = fd, .events = POLLIN};
	socklen_t len = sizeof(err);

	if (fd < 0)
		return errno;
	if (send(fd, "", 1, 0) < 0)
		err = errno;
	else if (poll(&p, 1, ICMP_WAIT_MS) > 0)
		getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &len);
	close(fd);
	return err;
}

/* 0: a program listens on the TCP port of `roci serve`; else an errno. */
static int ask_tcp(const struct doctor_peer *peer)
{
	int fd = socket(peer->address.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), err = 0;
	struct pollfd p = {.fd = fd, .events = POLLOUT};
	socklen_t len = sizeof(err);

	if (fd < 0)
		return errno;
	if (connect(fd, (const struct sockaddr *)&peer->address, peer->address_len))
		err = errno;
	if (err == EINPROGRESS) {
		err = ETIMEDOUT;
		if (poll(&p, 1, TCP_WAIT_MS) > 0)
			getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &len);
	}
	close(fd);
	return err;
}

static bool examine_ports(struct findings *findings, const struct doctor_peer *peer)
{
	int udp = ask_udp(peer), tcp = ask_tcp(peer);
	unsigned port = ntohs(((const struct sockaddr_in *)&peer->address)->sin_port);
	struct finding *finding;

	if (udp) {
		finding = finding_add(findings, FINDING_PROBLEM, "peer-4791",
				      udp == ECONNREFUSED ? "nothing listens on UDP port %d of %s"
							  : "UDP port %d of %s cannot be reached",
				      ROCI_UDP_PORT, peer->text);
		finding_proof(finding, "ICMP answered a packet to it: %s", strerror(udp));
		if (udp == ECONNREFUSED)
			finding_fix(finding, "on %s: roci serve, or the RDMA program that is to wait there",
				    peer->text);
		else
			finding_fix(finding, "`ping %s` and `ip route get %s` show more", peer->text, peer->text);
	}
	if (!tcp)
		return true;
	finding = finding_add(findings, FINDING_PROBLEM, "peer-serve",
			      tcp == ECONNREFUSED
				      ? "no `roci serve` listens on TCP port %u of %s: nothing more can be tried"
				      : "TCP port %u of %s, where `roci serve` would listen, does not answer: nothing "
					"more can be tried",
			      port, peer->text);
	finding_proof(finding, "connect(2): %s", strerror(tcp));
	if (port == TOUR_DEFAULT_PORT + 1)
		finding_fix(finding, "on %s: roci serve", peer->text);
	else
		finding_fix(finding, "on %s: roci serve --port %u", peer->text, port - 1);
	return false;
}

/* ---- sending through ---- */

/* What `roci ping --json` says at its start. */
static void get_devices(const char *lines, char near[64], char far[64])
{
	json_t *start = json_loads(lines, JSON_DISABLE_EOF_CHECK, NULL);
	const char *one = json_string_value(json_object_get(start, "device"));
	const char *other = json_string_value(json_object_get(start, "far_device"));

	snprintf(near, 64, "%s", one ? one : "?");
	snprintf(far, 64, "%s", other ? other : "?");
	json_decref(start);
}

/* Names the explanation of a failure, which the last line of `roci ping --json` has. */
static void say_more(struct finding *finding, const char *lines)
{
	const char *last = lines ? strstr(lines, "\"explain\"") : NULL;
	json_t *line;

	while (last && last > lines && last[-1] != '\n')
		last--;
	line = last ? json_loads(last, JSON_DISABLE_EOF_CHECK, NULL) : NULL;
	if (line)
		finding_fix(finding, "`roci explain %s`: %s", json_string_value(json_object_get(line, "explain")),
			    json_string_value(json_object_get(line, "explanation")));
	json_decref(line);
}

/* Lets `roci ping` do one operation. Adds a finding. */
static bool try_operation(struct findings *findings, const struct doctor_peer *peer, const char *id, const char *op,
			  const char *size, const char *works, const char *fails)
{
	const char *const argv[] = {"roci", "ping",   "--json", "--count",      "1", "--op",
				    op,     "--size", size,     peer->argument, NULL};
	struct child child = child_run(argv, NULL);
	bool good = child_succeeded(&child);
	char near[64], far[64], end[32];
	struct finding *finding =
		finding_add(findings, good ? FINDING_OK : FINDING_PROBLEM, id, "%s", good ? works : fails);

	if (good) {
		get_devices(child.out, near, far);
		finding_proof(finding,
			      "`" PING " --count 1 --op %s --size %s %s`, %s here and %s there, compared the bytes", op,
			      size, peer->argument, near, far);
	} else {
		if (child.err)
			child.err[strcspn(child.err, "\n")] = '\0';
		finding_proof(finding, "`" PING " --count 1 --op %s --size %s %s`: %s: %s", op, size, peer->argument,
			      child_end(&child, end), child.err ? child.err : "");
		say_more(finding, child.out);
		if (!*finding->fix)
			finding_fix(finding, "`" PING " --steps --count 1 --op %s --size %s %s` shows more", op, size,
				    peer->argument);
	}
	child_free(&child);
	return good;
}

/* What both ends tell each other before the first RDMA packet. */
static void compare_ends(struct findings *findings, const struct doctor_peer *peer)
{
	const char *const argv[] = {"roci",    "ping", "--json", "--connect", "socket",       "--op", "send",
				    "--count", "1",    "--size", "64",        peer->argument, NULL};
	struct child child = child_run(argv, NULL);
	struct end near, far;

	if (ends_parse(child.out, &near, &far))
		ends_compare(findings, &near, &far);
	child_free(&child);
}

void doctor_peer_try(struct findings *findings, const struct doctor_peer *peer)
{
	if (!examine_ports(findings, peer))
		return;
	/* Where HOST is this one, its processes would exchange no packets, and prove nothing of them. */
	setenv("ROCI_PATH", "wire", 1);
	compare_ends(findings, peer);
	if (!try_operation(findings, peer, "peer-send", "send", "64",
			   "rdma_cm connects, and a small SEND gets through and is answered",
			   "no small SEND gets through and is answered"))
		return;
	try_operation(findings, peer, "peer-out", "write", LARGE, "full packets get there: RDMA WRITE of 64 KiB",
		      "full packets do not get there, though small ones do: RDMA WRITE of 64 KiB");
	try_operation(findings, peer, "peer-in", "read", LARGE, "full packets come back: RDMA READ of 64 KiB",
		      "full packets do not come back, though small ones do: RDMA READ of 64 KiB");
}
