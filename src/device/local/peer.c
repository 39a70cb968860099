/* SPDX-License-Identifier: BSD-2-Clause */
#include "device/local/peer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "device/device.h"
#include "device/local/copy.h"
#include "device/local/pairing.h"
#include "device/local/rights.h"

void roci_local_name_file(char path[ROCI_LOCAL_PATH], const struct roci_registry *registry, unsigned slot)
{
	snprintf(path, ROCI_LOCAL_PATH, "%s/local-%lu-%u", registry->dir, registry->netns, slot);
}

static void *map(int fd, off_t at, size_t len)
{
	void *p = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, at);

	return p == MAP_FAILED ? NULL : p;
}

/* -ENOTCONN: what is in the file is not for us. */
static int check_shared(const struct roci_local *l, const struct roci_local_shared *s, unsigned slot, const char **why)
{
	*why = "";
	if (s->layout != ROCI_LOCAL_LAYOUT || s->slot != slot)
		*why = "the peer runs another version";
	else if (s->rights != l->own->rights)
		*why = "the peer has other rights (IDs, capabilities, namespaces) than this process";
	return **why ? -ENOTCONN : 0;
}

/* At a place where another peer's ring was, if there is one. */
static struct roci_local_ring *map_in_ring(struct roci_local *l, int fd)
{
	const off_t at = roci_local_ring_at(l->registry->slot);
	const size_t len = sizeof(struct roci_local_ring);
	void *ring;

	if (!l->spare_count)
		return map(fd, at, len);
	ring = mmap(l->spare_rings[l->spare_count - 1], len, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, at);
	if (ring == MAP_FAILED)
		return NULL;
	l->spare_count--;
	return ring;
}

/* Polls without the lock may look at its place still: it stays mapped, empty, for the ring of another peer. */
static void unmap_in_ring(struct roci_local *l, struct roci_local_ring *ring)
{
	const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE;
	void **more = realloc(l->spare_rings, (l->spare_count + 1) * sizeof(*more));

	if (!more)
		return; /* and so does the ring */
	l->spare_rings = more;
	if (mmap(ring, sizeof(*ring), PROT_READ, flags, -1, 0) != MAP_FAILED)
		l->spare_rings[l->spare_count++] = ring;
}

void roci_local_free_spares(struct roci_local *l)
{
	while (l->spare_count)
		munmap(l->spare_rings[--l->spare_count], sizeof(struct roci_local_ring));
	free(l->spare_rings);
}

static int map_peer(struct roci_local *l, struct roci_local_peer *p, const char **why)
{
	char path[ROCI_LOCAL_PATH];
	struct stat st;
	int err, fd;

	roci_local_name_file(path, l->registry, p->slot);
	fd = open(path, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0) {
		*why = "the peer takes no part (ROCI_PATH, ROCI_CAPTURE, ROCI_FAULT, a filter of system calls, or "
		       "another user)";
		return errno == ENOENT ? -ENOTCONN : -errno;
	}
	err = fstat(fd, &st) ? -errno : 0;
	if (!err && (st.st_size != (off_t)ROCI_LOCAL_FILE_BYTES || st.st_uid != geteuid())) {
		*why = "the peer runs another version";
		err = -ENOTCONN;
	}
	if (err)
		goto out;
	err = -ENOMEM;
	p->shared = map(fd, 0, sizeof(*p->shared));
	p->in_ring = map_in_ring(l, fd);
	if (p->shared && p->in_ring)
		err = check_shared(l, p->shared, p->slot, why);
	if (!err)
		err = roci_local_pair_up(l->own, l->fd, p->shared, fd, why);
out:
	close(fd);
	return err;
}

/* Our ring to the peer, where another process with the slot may have had one. */
static int make_ring(struct roci_local *l, struct roci_local_peer *p)
{
	struct roci_local_ring *ring;

	int err = roci_local_reserve(l->fd, p->slot);

	if (err)
		return err;
	ring = map(l->fd, roci_local_ring_at(p->slot), sizeof(*ring));
	if (!ring)
		return -ENOMEM;
	roci_local_ring_init(ring);
	p->out = (struct roci_local_writer){.ring = ring};
	return 0;
}

static int make_guard(struct roci_local *l, struct roci_local_peer *p)
{
	struct roci_local_pair *pair = &l->own->pairs[p->slot];
	uint64_t value = (uint64_t)roci_random32() << 32 | roci_random32();

	p->token = roci_local_guard_make(value);
	if (!p->token)
		return -ENOMEM;
	pair->token_value = value;
	atomic_store(&pair->token, p->token);
	return 0;
}

static void unmap(struct roci_local *l, struct roci_local_peer *p)
{
	if (p->out.ring)
		munmap(p->out.ring, sizeof(*p->out.ring));
	if (p->in_ring)
		unmap_in_ring(l, p->in_ring);
	if (p->shared)
		munmap(p->shared, sizeof(*p->shared));
	roci_local_spill_free(&p->spill);
	free(p);
}

int roci_local_attach(struct roci_local *l, unsigned slot, struct roci_local_peer **out, const char **why)
{
	_Atomic uint64_t *attached = &l->own->pairs[slot].attached;
	struct roci_local_peer *p = calloc(1, sizeof(*p));
	uint64_t before = atomic_load(attached);
	struct roci_local_pair *there;
	int err;

	if (!p)
		return -ENOMEM;
	p->slot = slot;
	err = map_peer(l, p, why);
	err = err ? err : make_ring(l, p);
	err = err ? err : roci_local_allow_peers();
	err = err ? err : make_guard(l, p);
	if (err) {
		unmap(l, p);
		return err;
	}
	p->incarnation = p->shared->incarnation;
	p->pid = p->shared->pid;
	if (before != p->incarnation) /* of a process that had the peer's slot; the peer itself may attach now */
		atomic_compare_exchange_strong(attached, &before, 0);
	there = &p->shared->pairs[l->registry->slot];
	atomic_store(&there->hazard, 0); /* of a process that had our slot before */
	atomic_store(&there->attached, l->own->incarnation);
	atomic_fetch_add(&p->shared->attaches, 1);
	*out = p;
	return 0;
}

bool roci_local_is_current(const struct roci_local *l, const struct roci_local_peer *peer)
{
	char path[ROCI_LOCAL_PATH];
	uint64_t head[2] = {0};
	bool same;
	int fd;

	if (!roci_registry_alive(l->registry, peer->slot))
		return false;
	roci_local_name_file(path, l->registry, peer->slot);
	fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return errno != ENOENT; /* no descriptor is free: that says nothing about the peer */
	same = pread(fd, head, sizeof(head), 0) == sizeof(head) && head[1] == peer->incarnation;
	close(fd);
	return same;
}

/* The pair and the ring may be those of another process with the same slot by now: this one has attached to it, or it
 * has attached here, which has reserved the ring's room. */
void roci_local_detach(struct roci_local *l, struct roci_local_peer *p)
{
	struct roci_local_pair *pair = &l->own->pairs[p->slot];

	if (atomic_load(&pair->token) == p->token) {
		uint64_t attached = atomic_load(&pair->attached);

		atomic_store(&pair->token, 0);
		if (!attached || attached == p->incarnation)
			roci_local_unreserve(l->fd, p->slot);
	}
	roci_local_guard_free(p->token);
	unmap(l, p);
}
