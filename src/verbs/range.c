/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Does a range of memory exist, and may it be written? Checked when a region is registered, where an adapter would pin
 * the pages: the program gets an error then, instead of a fault in the engine later.
 */
#include <errno.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "verbs/range.h"

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ  22
#define MADV_POPULATE_WRITE 23
#endif

static bool kernel_populates(void)
{
	static atomic_int answer; /* 0: unknown; threads that race find the same */
	if (!answer) {
		char here;
		long page = sysconf(_SC_PAGESIZE);
		void *start = (void *)((uintptr_t)&here & ~(uintptr_t)(page - 1));
		answer = madvise(start, page, MADV_POPULATE_READ) ? -1 : 1;
	}
	return answer > 0;
}

/* Kernels before 5.14: the mappings must cover the range without a gap, with the right permissions. */
static int check_maps(uintptr_t start, uintptr_t end, bool write)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	if (!maps)
		return 0; /* cannot be checked */
	unsigned long lo, hi;
	char perm[5];
	uintptr_t covered = start;
	while (covered < end && fscanf(maps, "%lx-%lx %4s%*[^\n]", &lo, &hi, perm) == 3) {
		if (hi <= covered)
			continue;
		if (lo > covered || perm[0] != 'r' || (write && perm[1] != 'w'))
			break;
		covered = hi;
	}
	fclose(maps);
	return covered < end ? EFAULT : 0;
}

int vb_range_check(void *addr, size_t len, bool write)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	uintptr_t start = (uintptr_t)addr & ~(page - 1);
	if ((uintptr_t)addr + len < (uintptr_t)addr || (uintptr_t)addr + len > UINTPTR_MAX - page)
		return EFAULT;
	uintptr_t end = ((uintptr_t)addr + len + page - 1) & ~(page - 1);
	if (!kernel_populates())
		return check_maps(start, end, write);
	int saved = errno, result = 0;
	while (madvise((void *)start, end - start, write ? MADV_POPULATE_WRITE : MADV_POPULATE_READ)) {
		if (errno == EAGAIN || errno == EINTR)
			continue;
		/* EINVAL: wrong permission; ENOMEM: a hole; EFAULT: beyond the end of a file. */
		result = EFAULT;
		break;
	}
	errno = saved;
	return result;
}

bool roci_verbs_may_read(const void *addr, size_t len)
{
	return !vb_range_check((void *)(uintptr_t)addr, len, false);
}
