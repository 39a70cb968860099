/* SPDX-License-Identifier: BSD-2-Clause */
#include "device/steer.h"

#include <errno.h>
#include <linux/filter.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "cm/msg.h"
#include "device/gsi.h"
#include "device/port_holder.h"
#include "device/sys.h"

#define NO_SOCKET 0xffffffffu /* out of range: the kernel picks by hash */

static void remove_member(struct roci_steered_group *group, unsigned index)
{
	group->members[index] = group->members[--group->count];
	group->inodes[index] = group->inodes[group->count];
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

/* The order in which the kernel closed the sockets of several dead processes is not known. Mostly there is one. */
static void remove_dead(struct roci_registry *reg, struct roci_steered_group *group)
{
	for (unsigned i = 0; i < group->count;) {
		if (roci_registry_alive(reg, group->members[i]))
			i++;
		else
			remove_member(group, i);
	}
}

/* Processes were killed at so many addresses. */
static struct roci_steered_group *free_dead_group(struct roci_registry *reg)
{
	for (unsigned i = 0; i < ROCI_STEERED_GROUPS; i++) {
		struct roci_steered_group *group = &reg->file->groups[i];

		remove_dead(reg, group);
		if (!group->count)
			return group;
	}
	return NULL;
}

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
	unused = unused ? unused : free_dead_group(reg);
	if (unused) {
		memcpy(unused->gid, gid, 16);
		unused->ifindex = ifindex;
	}
	return unused;
}

/* Offsets in the UDP payload of a MAD: BTH, DETH, the MAD's header, the message. */
enum {
	DEST_QP = 4, /* 8 reserved bits, then the QPN */
	MAD = 12 + 8,
	ATTRIBUTE = MAD + 16,
	LOCAL_ID = MAD + ROCI_MAD_HEADER_BYTES,
	REMOTE_ID = LOCAL_ID + 4,
};

/*
 * Leaves in A the slot that the packet is for. A MAD is for the slot in the receiver's communication id. A request has
 * none, and goes to any process: each time to another one, for the first may be stopped. Data is for the slot in its
 * QPN, which has a mask (qpn_slot.h).
 *
 *	    ld [DEST_QP]
 *	    and #0xffffff
 *	    jeq #QPN_GSI, 0, data
 *	    ldh [ATTRIBUTE]
 *	    jeq #REQ, anybody
 *	    jeq #SIDR_REQ, 0, answer
 *	anybody: ld rand
 *	    mod #members
 *	    ret a
 *	answer: jeq #SIDR_REP, 0, other
 *	    ld [LOCAL_ID]
 *	    ja comm
 *	other: ld [REMOTE_ID]
 *	comm: rsh #COMM_SLOT_SHIFT
 *	    ja done
 */
static const struct sock_filter of_mad[] = {
	BPF_STMT(BPF_LD | BPF_W | BPF_ABS, DEST_QP),
	BPF_STMT(BPF_ALU | BPF_AND | BPF_K, 0xffffff),
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ROCI_QPN_GSI, 0, 12),
	BPF_STMT(BPF_LD | BPF_H | BPF_ABS, ATTRIBUTE),
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ROCI_CM_ATTR_REQ, 1, 0),
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ROCI_CM_ATTR_SIDR_REQ, 0, 3),
	BPF_STMT(BPF_LD | BPF_W | BPF_ABS, SKF_AD_OFF + SKF_AD_RANDOM),
	BPF_STMT(BPF_ALU | BPF_MOD | BPF_K, 1), /* put_find_slot(): members */
	BPF_STMT(BPF_RET | BPF_A, 0),
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ROCI_CM_ATTR_SIDR_REP, 0, 2),
	BPF_STMT(BPF_LD | BPF_W | BPF_ABS, LOCAL_ID),
	BPF_STMT(BPF_JMP | BPF_JA, 1),
	BPF_STMT(BPF_LD | BPF_W | BPF_ABS, REMOTE_ID),
	BPF_STMT(BPF_ALU | BPF_RSH | BPF_K, ROCI_COMM_SLOT_SHIFT),
	BPF_STMT(BPF_JMP | BPF_JA, 2 + 5 * ROCI_SLOT_ROUNDS + 5),
};

/* data: M[0] = A, and A is the lower bits. */
static const struct sock_filter of_data[] = {
	BPF_STMT(BPF_ST, 0),
	BPF_STMT(BPF_ALU | BPF_AND | BPF_K, ROCI_QPNS_PER_SLOT - 1),
};

/* A round of roci_slot_mask(). The first takes a word of the key. */
static const struct sock_filter of_round[] = {
	BPF_STMT(BPF_ALU | BPF_ADD | BPF_K, 0), BPF_STMT(BPF_ALU | BPF_MUL | BPF_K, ROCI_SLOT_MULTIPLIER),
	BPF_STMT(BPF_MISC | BPF_TAX, 0),        BPF_STMT(BPF_ALU | BPF_RSH | BPF_K, ROCI_SLOT_FOLD),
	BPF_STMT(BPF_ALU | BPF_XOR | BPF_X, 0),
};

/* The mask and the upper bits of M[0]. */
static const struct sock_filter of_mask[] = {
	BPF_STMT(BPF_ALU | BPF_RSH | BPF_K, ROCI_SLOT_MASK_SHIFT),
	BPF_STMT(BPF_MISC | BPF_TAX, 0),
	BPF_STMT(BPF_LD | BPF_MEM, 0),
	BPF_STMT(BPF_ALU | BPF_RSH | BPF_K, ROCI_SLOT_SHIFT),
	BPF_STMT(BPF_ALU | BPF_XOR | BPF_X, 0),
};

#define COUNT(code) (sizeof(code) / sizeof(*(code)))
#define FIND_SLOT   (COUNT(of_mad) + COUNT(of_data) + ROCI_SLOT_ROUNDS * COUNT(of_round) + COUNT(of_mask))

static struct sock_filter *append(struct sock_filter *to, const struct sock_filter *code, size_t count)
{
	memcpy(to, code, count * sizeof(*code));
	return to + count;
}

static void put_find_slot(struct sock_filter *to, const struct roci_slot_key *key, unsigned members)
{
	to = append(to, of_mad, COUNT(of_mad));
	for (size_t i = 1; i <= COUNT(of_mad); i++) {
		if (to[-(int)i].code == (BPF_ALU | BPF_MOD | BPF_K))
			to[-(int)i].k = members;
	}
	to = append(to, of_data, COUNT(of_data));
	for (unsigned i = 0; i < ROCI_SLOT_ROUNDS; i++) {
		to = append(to, of_round, COUNT(of_round));
		to[-(int)COUNT(of_round)].k = key->words[i];
	}
	append(to, of_mask, COUNT(of_mask));
}

/*
 *	put_find_slot()
 *	jeq #member 0, 0, 1
 *	ret #0
 *	...
 *	ret #NO_SOCKET
 *
 * Without memory for it, or where it is refused (a sandbox), the kernel picks by hash, or as before, and side doors do
 * the rest.
 */
static void attach(const struct roci_registry *reg, int fd, const struct roci_steered_group *group)
{
	struct sock_filter *code = malloc((FIND_SLOT + 2 * group->count + 1) * sizeof(*code));
	struct sock_fprog program = {.filter = code};
	unsigned n = FIND_SLOT;

	if (!code)
		return;
	put_find_slot(code, &reg->slot_key, group->count);
	for (unsigned i = 0; i < group->count; i++) {
		code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, group->members[i], 0, 1);
		code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, i);
	}
	code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, NO_SOCKET);
	program.len = (unsigned short)n;
	(void)!roci_sys_setsockopt(fd, SOL_SOCKET, SO_ATTACH_REUSEPORT_CBPF, &program, sizeof(program));
	free(code);
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

static uint32_t inode_of(int fd)
{
	struct stat st;

	return fstat(fd, &st) ? 0 : (uint32_t)st.st_ino;
}

static void add_member(struct roci_registry *reg, struct roci_steered_group *group, int fd)
{
	if (group->count == ROCI_SLOTS)
		return;
	group->members[group->count] = (uint16_t)reg->slot;
	group->inodes[group->count++] = inode_of(fd);
}

struct foreigners {
	const struct roci_registry *reg;
	bool found;
};

static void note_socket(struct roci_registry *reg, int fd)
{
	uint32_t at = atomic_fetch_add(&reg->file->recent_next, 1) % ROCI_RECENT_SOCKETS;

	atomic_store(&reg->file->recent[at], inode_of(fd));
}

static bool is_recent(const struct roci_registry *reg, uint32_t inode)
{
	for (unsigned i = 0; i < ROCI_RECENT_SOCKETS; i++)
		if (atomic_load_explicit(&reg->file->recent[i], memory_order_relaxed) == inode)
			return true;
	return false;
}

static bool is_member(const struct roci_registry *reg, const struct roci_port_holder *socket)
{
	for (unsigned i = 0; i < ROCI_STEERED_GROUPS; i++) {
		const struct roci_steered_group *group = &reg->file->groups[i];
		unsigned count = group->count <= ROCI_SLOTS ? group->count : 0;

		if (memcmp(group->gid, socket->gid, 16))
			continue;
		for (unsigned k = 0; k < count; k++)
			if (group->inodes[k] == socket->inode)
				return true;
	}
	return false;
}

static bool see_socket(void *context, const struct roci_port_holder *socket)
{
	struct foreigners *foreigners = context;

	foreigners->found = !is_member(foreigners->reg, socket) && !is_recent(foreigners->reg, socket->inode);
	return !foreigners->found;
}

/* Sockets that are not this registry's have the port of exactly this address. One of every address is in another group
 * of the kernel's. */
static bool has_foreigners(const struct roci_registry *reg, const uint8_t gid[16])
{
	struct foreigners foreigners = {reg, false};

	roci_port_holders(gid, see_socket, &foreigners);
	return foreigners.found;
}

/* Two registries may bind at the same moment. So the first of a group looks again when it is bound. */
static int bind_and_join(struct roci_registry *reg, int fd, const struct sockaddr *addr, unsigned len,
			 const uint8_t gid[16], uint32_t ifindex)
{
	struct roci_steered_group *group;

	if (has_foreigners(reg, gid))
		return -EADDRINUSE;
	if (roci_sys_bind(fd, addr, len))
		return -errno;
	group = find_group(reg, gid, ifindex);
	if (!group)
		return 0;
	remove_dead(reg, group);
	add_member(reg, group, fd);
	if (group->count == 1 && has_foreigners(reg, gid)) {
		remove_slot(group, reg->slot);
		return -EADDRINUSE;
	}
	attach(reg, fd, group);
	return 0;
}

int roci_steer_bind(struct roci_registry *reg, int fd, const struct sockaddr *addr, unsigned len, const uint8_t gid[16],
		    uint32_t ifindex)
{
	int err;

	note_socket(reg, fd);
	err = roci_registry_lock(reg);
	/* Without the lock the order is not kept: the socket is bound all the same. */
	if (err == -ETIMEDOUT)
		return roci_sys_bind(fd, addr, len) ? -errno : 0;
	if (err)
		return err;
	err = bind_and_join(reg, fd, addr, len, gid, ifindex);
	roci_registry_unlock(reg);
	return err;
}

/* Attaches the program for the group without our socket before that is closed: afterwards there is nothing to attach
 * by. */
static void leave(struct roci_registry *reg, int fd, const uint8_t gid[16], uint32_t ifindex)
{
	struct roci_steered_group *group = find_group(reg, gid, ifindex);

	if (!group)
		return;
	remove_slot(group, reg->slot);
	if (group->count)
		attach(reg, fd, group);
}

void roci_steer_close(struct roci_registry *reg, int fd, const uint8_t gid[16], uint32_t ifindex)
{
	bool locked = !roci_registry_lock(reg);

	if (locked)
		leave(reg, fd, gid, ifindex);
	roci_sys_close(fd);
	if (locked)
		roci_registry_unlock(reg);
}

void roci_steer_repair(struct roci_registry *reg, int fd, const uint8_t gid[16], uint32_t ifindex)
{
	struct roci_steered_group *group;

	if (roci_registry_try_lock(reg))
		return;
	group = find_group(reg, gid, ifindex);
	if (group && group->count) {
		remove_dead(reg, group);
		attach(reg, fd, group);
	}
	roci_registry_unlock(reg);
}
