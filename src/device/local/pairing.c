/* SPDX-License-Identifier: BSD-2-Clause */
#include "device/local/pairing.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include "device/local/rights.h"

/* The low bits of roci_local_pair.verdict, under the incarnation of the process with the upper slot. */
enum verdict { UNDECIDED, LOCAL, NO_ROOM, NO_COPY, VERDICT_MASK = 3 };

off_t roci_local_ring_at(unsigned slot)
{
	return (off_t)(offsetof(struct roci_local_shared, rings) + slot * sizeof(struct roci_local_ring));
}

int roci_local_reserve(int fd, unsigned slot)
{
	while (fallocate(fd, FALLOC_FL_KEEP_SIZE, roci_local_ring_at(slot), sizeof(struct roci_local_ring)))
		if (errno != EINTR)
			return -errno;
	return 0;
}

void roci_local_unreserve(int fd, unsigned slot)
{
	fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, roci_local_ring_at(slot),
		  sizeof(struct roci_local_ring));
}

/* Other programs need the file system, too (MPI, databases): a quarter stays free. One without limits has no blocks. */
static bool has_room(int fd)
{
	const uint64_t ring = sizeof(struct roci_local_ring);
	const uint64_t most = sizeof(struct roci_local_shared) + ROCI_LOCAL_RINGS_MAX * ring;
	struct statvfs fs;
	struct stat st;

	if (fstat(fd, &st) || (uint64_t)st.st_blocks * 512 + ring > most || fstatvfs(fd, &fs))
		return false;
	return !fs.f_blocks || fs.f_bavail * fs.f_frsize >= fs.f_blocks / 4 * fs.f_frsize + 2 * ring;
}

static enum verdict decide(const struct roci_local_shared *own, int fd, const struct roci_local_shared *peer,
			   int peer_fd)
{
	if (!roci_local_try_copy(peer->pid, peer->address + offsetof(struct roci_local_shared, incarnation),
				 peer->incarnation))
		return NO_COPY;
	if (!has_room(fd) || !has_room(peer_fd) || roci_local_reserve(fd, peer->slot))
		return NO_ROOM;
	if (!roci_local_reserve(peer_fd, own->slot))
		return LOCAL;
	roci_local_unreserve(fd, peer->slot);
	return NO_ROOM;
}

int roci_local_pair_up(struct roci_local_shared *own, int fd, struct roci_local_shared *peer, int peer_fd,
		       const char **why)
{
	struct roci_local_shared *lower = own->slot < peer->slot ? own : peer, *upper = lower == own ? peer : own;
	_Atomic uint64_t *word = &lower->pairs[upper->slot].verdict;
	uint64_t seen = atomic_load(word), mine;

	if ((seen & ~(uint64_t)VERDICT_MASK) != upper->incarnation) {
		mine = upper->incarnation | decide(own, fd, peer, peer_fd);
		if (atomic_compare_exchange_strong(word, &seen, mine))
			seen = mine;
	}
	switch ((enum verdict)(seen & VERDICT_MASK)) {
	case LOCAL: return 0;
	case NO_COPY: *why = "the kernel refuses to copy from the peer's memory"; break;
	default: *why = "there is no room for more shared memory, or either process has too many peers"; break;
	}
	return -ENOTCONN;
}
