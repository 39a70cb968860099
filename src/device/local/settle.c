/* SPDX-License-Identifier: BSD-2-Clause */
#include "device/local/settle.h"
#include "device/local/copy.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define SPINS    2000
#define PAUSE_NS 50000
#define PATIENCE 20 /* pauses before the peer is looked at: a copy of 4 MiB takes a millisecond */

enum copier { RUNS, STOPPED, GONE };

static enum copier look_at(int32_t pid, uint32_t tid)
{
	char path[64], text[512];
	const char *state;
	ssize_t n;
	int fd;

	if (syscall(SYS_tgkill, (pid_t)pid, (pid_t)tid, 0) && errno == ESRCH)
		return GONE;
	snprintf(path, sizeof(path), "/proc/%d/task/%u/stat", (int)pid, tid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return RUNS;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	text[n > 0 ? n : 0] = '\0';
	state = strrchr(text, ')'); /* proc_pid_stat(5): the name may hold anything */
	if (!state || state[1] != ' ')
		return RUNS;
	switch (state[2]) {
	case 'T':
	case 't': return STOPPED;
	case 'Z': /* it has ended, and its parent has not asked yet how */
	case 'X': return GONE;
	default: return RUNS;
	}
}

/* Until the copier is known to be harmless, the peer has no guard page, and copies nothing. */
static void take_guard(struct roci_local_peer *p, struct roci_local_pair *pair)
{
	atomic_store(&pair->token, 0);
	roci_local_guard_close(p->token);
	p->token = 0;
}

static void give_guard(struct roci_local_peer *p, struct roci_local_pair *pair)
{
	p->token = roci_local_guard_make(pair->token_value);
	atomic_store(&pair->token, p->token);
}

/* True where the hazard means nothing any more: its process or thread has ended, or its thread is stopped before the
 * copy, which will fail. Another process may have the slot by now, which announces its own hazard at this place: so the
 * hazard stays, unless nobody has the slot. */
static bool is_harmless(struct roci_local *l, struct roci_local_peer *p, struct roci_local_pair *pair, uint32_t tid)
{
	if (!roci_registry_alive(l->registry, p->slot)) {
		atomic_store(&pair->hazard, 0);
		return true;
	}
	switch (look_at(p->pid, tid)) {
	case RUNS: return false;
	case GONE: return true;
	case STOPPED: break;
	}
	if (p->token)
		take_guard(p, pair);
	return look_at(p->pid, tid) != RUNS; /* it was not continued between the two, so it has not begun before */
}

/* Whether the peer may be copying what it found before the call of roci_local_settle(). `pieces`: as they were then. */
static uint32_t may_copy(struct roci_local_pair *pair, uint32_t pieces)
{
	uint32_t tid = atomic_load(&pair->hazard);

	return atomic_load(&pair->pieces) == pieces ? tid : 0;
}

void roci_local_settle(struct roci_local *l, struct roci_local_peer *peer)
{
	const struct timespec pause = {.tv_nsec = PAUSE_NS};
	struct roci_local_pair *pair = &l->own->pairs[peer->slot];
	bool harmless = false;
	uint32_t tid, pieces;

	atomic_thread_fence(memory_order_seq_cst);
	pieces = atomic_load(&pair->pieces);
	for (unsigned i = 0; i < SPINS; i++)
		if (!may_copy(pair, pieces))
			return;
	for (unsigned i = 0; !harmless && (tid = may_copy(pair, pieces)); i++) {
		harmless = i >= PATIENCE && is_harmless(l, peer, pair, tid);
		if (!harmless)
			nanosleep(&pause, NULL);
	}
	if (!peer->token)
		give_guard(peer, pair);
}
