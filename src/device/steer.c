#include "device/steer.h"

#include <errno.h>
#include <linux/filter.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define NO_SOCKET 0xffffffffu /* out of range: the kernel picks by hash */

static struct roci_steered_group *find_group(struct roci_registry *reg, const uint8_t gid[16], uint32_t ifindex)
{
	struct roci_steered_group *unused = NULL;

	for (unsigned i = 0; i < ROCI_STEERED_GROUPS; i++) {
		struct roci_steered_group *group = &reg->file->groups[i];

		if (group->count > ROCI_SLOTS)
			group->count = 0;
		if (!group->count)
			unused = unused ? unused : group;
		else if (!memcmp(group->gid, gid, 16) && group->ifindex == ifindex)
			return group;
	}
	if (unused) {
		memcpy(unused->gid, gid, 16);
		unused->ifindex = ifindex;
	}
	return unused;
}

static void remove_member(struct roci_steered_group *group, unsigned index)
{
	group->members[index] = group->members[--group->count];
}

static void remove_slot(struct roci_steered_group *group, unsigned slot)
{
	for (unsigned i = 0; i < group->count; i++) {
		if (group->members[i] == slot) {
			remove_member(group, i);
			return;
		}
	}
}

/* The kernel closed the sockets of the dead in an order that nobody knows; mostly there is but one. */
static void remove_dead(struct roci_registry *reg, struct roci_steered_group *group)
{
	for (unsigned i = 0; i < group->count;) {
		if (roci_registry_alive(reg, group->members[i]))
			i++;
		else
			remove_member(group, i);
	}
}

/*
 *	ldh [5]			DestQP's upper 16 bits, of the UDP payload
 *	rsh #6			the slot
 *	jeq #member 0, 0, 1
 *	ret #0
 *	...
 *	ret #NO_SOCKET
 */
static void attach(int fd, const struct roci_steered_group *group)
{
	struct sock_filter code[2 * ROCI_SLOTS + 3];
	struct sock_fprog program = {.filter = code};
	unsigned n = 0;

	code[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_H | BPF_ABS, 5);
	code[n++] = (struct sock_filter)BPF_STMT(BPF_ALU | BPF_RSH | BPF_K, ROCI_SLOT_SHIFT - 8);
	for (unsigned i = 0; i < group->count; i++) {
		code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, group->members[i], 0, 1);
		code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, i);
	}
	code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, NO_SOCKET);
	program.len = (unsigned short)n;
	/* Refused (a sandbox, no memory): the kernel then picks by hash, and side doors do the rest. */
	(void)!setsockopt(fd, SOL_SOCKET, SO_ATTACH_REUSEPORT_CBPF, &program, sizeof program);
}

void roci_steer_reset(struct roci_registry *reg)
{
	if (roci_registry_lock(reg))
		return;
	for (unsigned i = 0; i < ROCI_STEERED_GROUPS; i++) {
		struct roci_steered_group *group = &reg->file->groups[i];

		if (group->count <= ROCI_SLOTS)
			remove_slot(group, reg->slot);
	}
	roci_registry_unlock(reg);
}

int roci_steer_bind(struct roci_registry *reg, int fd, const struct sockaddr *addr, unsigned len, const uint8_t gid[16],
		    uint32_t ifindex)
{
	struct roci_steered_group *group;
	int rc = roci_registry_lock(reg);

	if (rc)
		return rc;
	if (bind(fd, addr, len)) {
		rc = -errno;
		goto unlock;
	}
	group = find_group(reg, gid, ifindex);
	if (group) {
		remove_dead(reg, group);
		if (group->count < ROCI_SLOTS)
			group->members[group->count++] = (uint16_t)reg->slot;
		attach(fd, group);
	}
unlock:
	roci_registry_unlock(reg);
	return rc;
}

/* The program is for the group as it will be in a moment: afterwards there is no socket to attach it by. */
static void leave(struct roci_registry *reg, int fd, const uint8_t gid[16], uint32_t ifindex)
{
	struct roci_steered_group *group = find_group(reg, gid, ifindex);

	if (!group)
		return;
	remove_slot(group, reg->slot);
	if (group->count)
		attach(fd, group);
}

void roci_steer_leave(struct roci_registry *reg, int fd, const uint8_t gid[16], uint32_t ifindex)
{
	if (roci_registry_lock(reg))
		return;
	leave(reg, fd, gid, ifindex);
	roci_registry_unlock(reg);
}

void roci_steer_close(struct roci_registry *reg, int fd, const uint8_t gid[16], uint32_t ifindex)
{
	bool locked = !roci_registry_lock(reg);

	if (locked)
		leave(reg, fd, gid, ifindex);
	close(fd);
	if (locked)
		roci_registry_unlock(reg);
}

void roci_steer_repair(struct roci_registry *reg, int fd, const uint8_t gid[16], uint32_t ifindex)
{
	struct roci_steered_group *group;

	if (roci_registry_lock(reg))
		return;
	group = find_group(reg, gid, ifindex);
	if (group && group->count) {
		remove_dead(reg, group);
		attach(fd, group);
	}
	roci_registry_unlock(reg);
}
