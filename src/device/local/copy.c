/* SPDX-License-Identifier: BSD-2-Clause */
#include "device/local/copy.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include "device/device.h"
#include "engine/limits.h"

#define PIECE       (UINT64_C(4) << 20) /* bytes of one system call: who takes its memory back waits for no more */
#define TAIL        8                   /* bytes that become visible last */
#define ADDRESS_MAX UINT64_C(0x3fffffff0000)
#define PARTS       (ROCI_MAX_SGE + 2) /* the guard, the spans, the tail */

#ifdef __x86_64__
#define STORES_IN_ORDER true
#else
#define STORES_IN_ORDER false
#endif

_Static_assert(sizeof(struct iovec) == sizeof(struct roci_span), "a span is laid out as struct iovec");

/* The part [from, from + len) of the spans. Returns the number of parts in out[]. */
static unsigned cut(const struct roci_span *spans, unsigned count, uint64_t from, uint64_t len, struct iovec *out)
{
	unsigned n = 0;

	for (unsigned i = 0; i < count && len; i++) {
		uint64_t part;

		if (from >= spans[i].len) {
			from -= spans[i].len;
			continue;
		}
		part = spans[i].len - from < len ? spans[i].len - from : len;
		/* a number: it may be the peer's, and say anything */
		out[n++] = (struct iovec){(void *)((uintptr_t)spans[i].base + from), part};
		from = 0;
		len -= part;
	}
	return n;
}

/* The kernel copies part by part, so that the tail, as a part of its own, comes last. It looks up each part of the
 * peer's memory, so the parts that are split are this process's: where a processor shows what it writes in order, that
 * does for a WRITE, too. */
static unsigned split_tail(struct iovec *parts, unsigned count)
{
	struct iovec *end = &parts[count - 1];

	if (end->iov_len <= TAIL)
		return count;
	end->iov_len -= TAIL;
	end[1] = (struct iovec){(void *)((uintptr_t)end->iov_base + end->iov_len), TAIL};
	return count + 1;
}

static int copy_piece(const struct roci_local_memory *m, bool read, struct iovec *mine, unsigned mine_count,
		      struct iovec *theirs, unsigned theirs_count, uint64_t len)
{
	uint64_t guard = m->token_value;
	ssize_t n;

	mine[0] = (struct iovec){&guard, sizeof(guard)};
	theirs[0] = (struct iovec){(void *)(uintptr_t)m->token, sizeof(guard)};
	n = read ? process_vm_readv(m->pid, mine, mine_count + 1, theirs, theirs_count + 1, 0)
		 : process_vm_writev(m->pid, mine, mine_count + 1, theirs, theirs_count + 1, 0);
	if (n < 0)
		return -errno;
	return (uint64_t)n == len + sizeof(guard) && guard == m->token_value ? 0 : -EFAULT;
}

static uint64_t length(const struct roci_span *spans, unsigned count)
{
	uint64_t len = 0;

	for (unsigned i = 0; i < count; i++)
		len += spans[i].len;
	return len;
}

int roci_local_copy(const struct roci_local_memory *m, bool read, const struct roci_span *mine, unsigned mine_count,
		    const struct roci_span *theirs, unsigned theirs_count, bool last)
{
	uint64_t len = length(mine, mine_count), at = 0;
	struct iovec here[PARTS], there[PARTS];
	int err = 0;

	if (!m->token || length(theirs, theirs_count) != len)
		return -ESRCH;
	while (!err && at < len) {
		uint64_t piece = len - at < PIECE ? len - at : PIECE;
		unsigned h = cut(mine, mine_count, at, piece, here + 1);
		unsigned t = cut(theirs, theirs_count, at, piece, there + 1);

		if (at && m->is_revoked(m->arg))
			return -ECANCELED;
		at += piece;
		if (last && at == len && (read || STORES_IN_ORDER))
			h = split_tail(here + 1, h);
		else if (last && at == len)
			t = split_tail(there + 1, t);
		err = copy_piece(m, read, here, h, there, t, piece);
	}
	return err;
}

static bool populate(uintptr_t from, uintptr_t end, int advice)
{
	while (madvise((void *)from, end - from, advice))
		if (errno != EAGAIN && errno != EINTR)
			return false;
	return true;
}

bool roci_local_is_mapped(const struct roci_span *spans, unsigned count, bool write)
{
	const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), here = (uintptr_t)&page & ~(page - 1);

	if (!populate(here, here + page, MADV_POPULATE_READ))
		return true; /* Linux before 5.14 */
	for (unsigned i = 0; i < count; i++) {
		uintptr_t from = (uintptr_t)spans[i].base, end = from + spans[i].len;

		if (from != end && !populate(from & ~(page - 1), end, write ? MADV_POPULATE_WRITE : MADV_POPULATE_READ))
			return false;
	}
	return true;
}

/* At a random address, where the machine has it: the kernel's own choice is random, too, but close to other mappings.
 */
uint64_t roci_local_guard_make(uint64_t value)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), where = (uint64_t)roci_random32() << 32 | roci_random32();
	void *wish = (void *)(uintptr_t)(where % ADDRESS_MAX & ~(page - 1));
	uint64_t *guard = mmap(wish, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (guard == MAP_FAILED)
		return 0;
	if (madvise(guard, page, MADV_DONTFORK)) {
		munmap(guard, page);
		return 0;
	}
	*guard = value;
	return (uintptr_t)guard;
}

void roci_local_guard_close(uint64_t token)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);

	/* Mapped without rights: the address must not become somebody else's memory. */
	if (token)
		mmap((void *)(uintptr_t)token, page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE,
		     -1, 0);
}

void roci_local_guard_free(uint64_t token)
{
	if (token)
		munmap((void *)(uintptr_t)token, (size_t)sysconf(_SC_PAGESIZE));
}
