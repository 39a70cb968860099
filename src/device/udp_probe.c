/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Whether the process that has port 4791 of an address is one of ours, of whatever user or container: a packet to a
 * slot that we have taken for the moment comes back by that slot's side door, or it does not.
 */
#include <errno.h>
#include <string.h>

#include "device/abstract_name.h"
#include "device/port_holder.h"
#include "device/seal.h"
#include "device/sys.h"
#include "device/udp_socket.h"

#define TRIES   5
#define WAIT_NS 100000000u /* for each; a machine may be busy */
#define STRANGE 64         /* messages that are none of ours, for each: somebody may flood every door */

/* Takes the name of a free slot's side door. A process that wants the slot just now takes another. */
static int take_door(unsigned *slot)
{
	unsigned start = roci_random32();
	int fd = -EUSERS;

	for (unsigned i = 0; fd < 0 && i < ROCI_SLOTS - 1; i++) {
		struct roci_abstract_name name;

		*slot = 1 + (start + i) % (ROCI_SLOTS - 1);
		name = roci_abstract_name_door(*slot);
		fd = roci_abstract_name_take(&name);
		if (fd < 0 && fd != -EADDRINUSE)
			break;
	}
	return fd;
}

/* A packet that no QP takes, and nobody can foretell. Returns its length. */
static unsigned build_probe(const struct roci_slot_key *key, const uint8_t gid[16], unsigned slot, uint8_t *bytes)
{
	struct roci_packet packet = {
		.opcode = ROCI_TRANSPORT_UC | ROCI_OP_SEND_ONLY,
		.pkey = ROCI_PKEY_DEFAULT,
		.dest_qpn = roci_slot_qpn(key, slot, roci_random32() % ROCI_QPNS_PER_SLOT),
		.psn = roci_random32() & ROCI_PSN_MASK,
	};
	uint8_t header[ROCI_MAX_HEADER_BYTES];
	struct roci_av av = {.src_port = ROCI_UDP_PORT};
	struct roci_frame frame;

	memcpy(av.sgid, gid, 16);
	memcpy(av.dgid, gid, 16);
	frame = roci_frame(&av, header, roci_packet_build(&packet, header), NULL, 0);
	roci_seal_packet(&frame, bytes);
	return frame.len;
}

/* After the deadline, only whether it is there already. */
static bool something_came(int door, uint64_t deadline)
{
	struct pollfd p = {.fd = door, .events = POLLIN};
	uint64_t now = roci_now(), left = now < deadline ? deadline - now : 0;

	return roci_sys_poll(&p, 1, (int)((left + 999999) / 1000000)) > 0;
}

/* The packet is at the end of a side door's message. However slowly other messages drip in, the deadline stays. */
static bool came_back(int door, const uint8_t *probe, unsigned len, uint64_t deadline)
{
	uint8_t bytes[512];
	struct iovec iov = {bytes, sizeof(bytes)};
	struct mmsghdr m = {.msg_hdr = {.msg_iov = &iov, .msg_iovlen = 1}};

	for (unsigned i = 0; i < STRANGE && something_came(door, deadline) && roci_sys_recvmmsg(door, &m, 1, 0) == 1;
	     i++)
		if (m.msg_len >= len && !memcmp(bytes + m.msg_len - len, probe, len))
			return true;
	return false;
}

static bool ask(int fd, int door, const union udp_name *to, socklen_t to_len, uint8_t *probe, unsigned len)
{
	struct iovec iov = {probe, len};
	struct msghdr msg = {.msg_name = (void *)to, .msg_namelen = to_len, .msg_iov = &iov, .msg_iovlen = 1};
	uint64_t start = roci_now();

	for (unsigned i = 1; i <= TRIES; i++) {
		if (roci_sys_sendmsg(fd, &msg, MSG_DONTWAIT) < 0 && errno != EAGAIN && errno != ECONNREFUSED)
			return false;
		if (came_back(door, probe, len, start + (uint64_t)i * WAIT_NS))
			return true;
	}
	return false;
}

static bool see_own(void *context, const struct roci_port_holder *holder)
{
	bool *found = context;

	*found = holder->uid != roci_unmapped_user(ROCI_UID_MAP, ROCI_OVERFLOW_UID);
	return !*found;
}

/* Ours bind each address by itself. Who has all of them at once is not asked (rdma_rxe, say), nor who has no number in
 * our user namespace: our side door does not take his packets. */
static bool has_own_socket(const uint8_t gid[16])
{
	bool found = false;

	roci_port_holders(gid, see_own, &found);
	return found;
}

bool roci_udp_is_relayed(const struct roci_slot_key *key, const uint8_t gid[16], uint32_t ifindex)
{
	uint8_t probe[ROCI_MAX_HEADER_BYTES + ROCI_ICRC_BYTES];
	union udp_name to;
	socklen_t len = roci_udp_name(&to, gid, ifindex);
	unsigned slot;
	int fd, door = has_own_socket(gid) ? take_door(&slot) : -ENOENT;
	bool answered = false;

	if (door < 0)
		return false;
	fd = roci_udp_socket(gid, ifindex);
	if (fd >= 0) {
		answered = ask(fd, door, &to, len, probe, build_probe(key, gid, slot, probe));
		roci_sys_close(fd);
	}
	roci_sys_close(door);
	return answered;
}
