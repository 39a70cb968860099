/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Copies between this process and another one: process_vm_readv(2), process_vm_writev(2). The first byte that a copy
 * touches is in the guard page that the other process has for this one (shared.h). In another address space, or
 * when the page was taken away, the kernel stops there.
 */
#ifndef ROCI_DEVICE_LOCAL_COPY_H
#define ROCI_DEVICE_LOCAL_COPY_H

#include <stdbool.h>

#include "engine/types.h"

/* The memory of another process. */
struct roci_local_memory {
	int32_t pid;
	uint64_t token, token_value; /* the address of the guard, and the 8 bytes that are there */
	/* Asked between two pieces of a long copy: whether the other process has taken the memory back. */
	bool (*is_revoked)(void *arg);
	void *arg;
};

/* Copies from `theirs` to `mine` (read), or the other way round; both are equally long. `last`: the last bytes become
 * visible after all others. Returns 0 or a negative errno, -ECANCELED where m->is_revoked() says so: how much was
 * copied then is not known, but nothing where the guard is gone. */
int roci_local_copy(const struct roci_local_memory *m, bool read, const struct roci_span *mine, unsigned mine_count,
		    const struct roci_span *theirs, unsigned theirs_count, bool last);

/* Whether memory of this process is mapped for reading, or (write) for writing. Says yes where the kernel does not
 * tell. */
bool roci_local_is_mapped(const struct roci_span *spans, unsigned count, bool write);

/* Makes a guard page for a peer. Returns its address, with `value` in its first 8 bytes; 0: no memory. */
uint64_t roci_local_guard_make(uint64_t value);
/* Takes it away: no copy gets past it any more. Its address is not used again. */
void roci_local_guard_close(uint64_t token);
/* Frees it, where no copier is left. */
void roci_local_guard_free(uint64_t token);

#endif
