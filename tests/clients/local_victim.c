/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * local_victim CASE: two processes of one host, one of which writes to the other's memory as fast as it can while that
 * takes its memory back, is killed, calls exec, or forks. Where a byte is written that must not be, the program says so
 * and ends with status 1.
 *
 * The processes are forked before they open the device, and share a board for what they tell each other.
 */
#include "pair.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MARGIN  (1u << 20) /* on either side of the region */
#define REGION  (2u << 20)
#define PIECE   (256u << 10)
#define MESSAGE 30000u
#define DEPTH   16
#define ROUNDS  25
#define LONG    (64u << 20) /* 16 pieces of a copy */
#define ACCESS  (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE)

static struct board {
	struct address address[2];
	_Atomic unsigned posted[2]; /* round whose address is there */
	_Atomic unsigned ready[2];  /* round in which the QP is connected */
	_Atomic unsigned failed;    /* round in which the writer's request has failed ... */
	_Atomic int status;         /* ... with this */
	_Atomic unsigned writes;    /* that succeeded, or READs */
	_Atomic unsigned bound;     /* round whose window is there ... */
	uint32_t window;            /* ... with this rkey */
} * board;

static struct endpoint ep;
static uint8_t *arena; /* margin, region, margin */
static struct ibv_cq *cq;

static void snooze(unsigned us)
{
	const struct timespec t = {.tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000L};

	nanosleep(&t, NULL);
}

static void wait_for(_Atomic unsigned *what, unsigned least)
{
	time_t end = time(NULL) + PAIR_WAIT_S;

	while (atomic_load(what) < least) {
		if (time(NULL) > end)
			die("the other process does not answer");
		snooze(50);
	}
}

static void start(void)
{
	endpoint_open(&ep, 0);
	cq = ibv_create_cq(ep.ctx, 4 * DEPTH, NULL, NULL, 0);
	need(cq != NULL, "ibv_create_cq");
	arena = mmap(NULL, MARGIN + REGION + MARGIN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	need(arena != MAP_FAILED, "mmap");
}

static struct ibv_qp *join(int side, unsigned round, const struct ibv_mr *mr)
{
	struct ibv_qp *qp = qp_make(&ep, IBV_QPT_RC, cq, NULL, DEPTH, 1);
	struct address *mine = &board->address[side];

	*mine = (struct address){.gid = ep.gid,
				 .qpn = qp->qp_num,
				 .psn = qp_random_psn(),
				 .mtu = ep.mtu_bytes,
				 .rkey = mr ? mr->rkey : 0,
				 .addr = mr ? (uintptr_t)mr->addr : 0};
	atomic_store(&board->posted[side], round);
	wait_for(&board->posted[!side], round);
	qp_connect(&ep, qp, mine->psn, &board->address[!side], &pair_retries);
	atomic_store(&board->ready[side], round);
	wait_for(&board->ready[!side], round);
	return qp;
}

static void leave(struct ibv_qp *qp)
{
	errno = ibv_destroy_qp(qp);
	need(!errno, "ibv_destroy_qp");
}

/* ---- the writer ---- */

static bool write_piece(struct ibv_qp *qp, const struct ibv_mr *mr, unsigned n, unsigned round)
{
	struct ibv_sge sge = {(uintptr_t)arena, PIECE, mr->lkey};
	struct ibv_send_wr *bad,
		wr = {.sg_list = &sge,
		      .num_sge = 1,
		      .opcode = IBV_WR_RDMA_WRITE,
		      .send_flags = IBV_SEND_SIGNALED,
		      .wr.rdma = {board->address[0].addr + n % (REGION / PIECE) * PIECE, board->address[0].rkey}};
	struct ibv_wc wc;

	errno = ibv_post_send(qp, &wr, &bad);
	need(!errno, "ibv_post_send");
	cq_next(cq, &wc);
	if (wc.status == IBV_WC_SUCCESS) {
		atomic_fetch_add(&board->writes, 1);
		return true;
	}
	atomic_store(&board->status, (int)wc.status);
	atomic_store(&board->failed, round);
	return false;
}

static int writer(unsigned rounds)
{
	struct ibv_mr *mr;

	start();
	memset(arena, 0xc5, PIECE);
	mr = ibv_reg_mr(ep.pd, arena, PIECE, IBV_ACCESS_LOCAL_WRITE);
	need(mr != NULL, "ibv_reg_mr");
	for (unsigned round = 1; round <= rounds; round++) {
		struct ibv_qp *qp = join(1, round, NULL);
		unsigned n = 0;

		while (write_piece(qp, mr, n, round))
			n++;
		leave(qp);
	}
	return 0;
}

static pid_t spawn(int (*role)(unsigned), unsigned argument)
{
	pid_t pid = fork();

	need(pid >= 0, "fork");
	if (!pid)
		exit(role(argument));
	return pid;
}

static void expect_end(pid_t pid)
{
	int status;

	need(waitpid(pid, &status, 0) == pid, "waitpid");
	if (status)
		die("a process ended with status 0x%x", status);
}

/* ---- the owner takes its memory back ---- */

static void check_all(const uint8_t *p, size_t len, uint8_t value, const char *what)
{
	for (size_t i = 0; i < len; i++)
		if (p[i] != value)
			die("%s: byte %zu was written", what, i);
}

static void check_margins(void)
{
	check_all(arena, MARGIN, 0, "before the region");
	check_all(arena + MARGIN + REGION, MARGIN, 0, "behind the region");
}

static struct ibv_mr *open_region(void)
{
	struct ibv_mr *mr = ibv_reg_mr(ep.pd, arena + MARGIN, REGION, ACCESS);

	need(mr != NULL, "ibv_reg_mr");
	return mr;
}

/* One round: the writer is at it, and is stopped where `pid` is not 0; then the region is deregistered. What it is used
 * for from then on stays as it is. */
static void take_back(unsigned round, pid_t pid)
{
	struct ibv_mr *mr = open_region();
	struct ibv_qp *qp = join(0, round, mr);

	wait_for(&board->writes, atomic_load(&board->writes) + 1);
	snooze((unsigned)rand() % 2000);
	if (pid)
		need(!kill(pid, SIGSTOP), "kill");
	errno = ibv_dereg_mr(mr);
	need(!errno, "ibv_dereg_mr");
	memset(arena + MARGIN, 0xaa, REGION);
	if (pid)
		need(!kill(pid, SIGCONT), "kill");
	wait_for(&board->failed, round);
	check_all(arena + MARGIN, REGION, 0xaa, "the region after ibv_dereg_mr");
	check_margins();
	if (board->status != IBV_WC_REM_ACCESS_ERR)
		die("the writer got %s", ibv_wc_status_str((enum ibv_wc_status)board->status));
	leave(qp);
}

static void deregister(bool stop)
{
	pid_t pid = spawn(writer, ROUNDS);

	start();
	for (unsigned round = 1; round <= ROUNDS; round++)
		take_back(round, stop ? pid : 0);
	expect_end(pid);
}

/* The QP goes to ERR instead of the region: nothing is written after that returns. */
static void take_qp_back(bool reset)
{
	struct ibv_qp_attr attr = {.qp_state = reset ? IBV_QPS_RESET : IBV_QPS_ERR};
	pid_t pid;

	pid = spawn(writer, 3);
	start();
	for (unsigned round = 1; round <= 3; round++) {
		struct ibv_mr *mr = open_region();
		struct ibv_qp *qp = join(0, round, mr);

		wait_for(&board->writes, atomic_load(&board->writes) + 1);
		snooze((unsigned)rand() % 2000);
		errno = ibv_modify_qp(qp, &attr, IBV_QP_STATE);
		need(!errno, "ibv_modify_qp");
		memset(arena + MARGIN, 0xaa, REGION);
		wait_for(&board->failed, round);
		check_all(arena + MARGIN, REGION, 0xaa, "the region after ibv_modify_qp");
		if (board->status != IBV_WC_RETRY_EXC_ERR)
			die("the writer got %s", ibv_wc_status_str((enum ibv_wc_status)board->status));
		leave(qp);
		errno = ibv_dereg_mr(mr);
		need(!errno, "ibv_dereg_mr");
	}
	expect_end(pid);
}

/* ---- a WRITE of many pieces ---- */

static int long_writer(unsigned rounds)
{
	uint8_t *zeros = mmap(NULL, LONG, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	struct ibv_mr *mr;

	need(zeros != MAP_FAILED, "mmap");
	start();
	mr = ibv_reg_mr(ep.pd, zeros, LONG, IBV_ACCESS_LOCAL_WRITE);
	need(mr != NULL, "ibv_reg_mr");
	for (unsigned round = 1; round <= rounds; round++) {
		struct ibv_qp *qp = join(1, round, NULL);
		struct ibv_sge sge = {(uintptr_t)zeros, LONG, mr->lkey};
		struct ibv_send_wr *bad, wr = {.sg_list = &sge,
					       .num_sge = 1,
					       .opcode = IBV_WR_RDMA_WRITE,
					       .send_flags = IBV_SEND_SIGNALED,
					       .wr.rdma = {board->address[0].addr, board->address[0].rkey}};
		struct ibv_wc wc;

		errno = ibv_post_send(qp, &wr, &bad);
		need(!errno, "ibv_post_send");
		cq_next(cq, &wc);
		board->status = (int)wc.status;
		atomic_store(&board->failed, round);
		leave(qp);
	}
	return 0;
}

/* The region is deregistered while a WRITE is copied. True where the rest of it was not written. */
static bool cut_short(unsigned round, volatile uint8_t *region)
{
	struct ibv_mr *mr;
	struct ibv_qp *qp;
	bool cut;

	memset((uint8_t *)region, 0x11, LONG);
	mr = ibv_reg_mr(ep.pd, (uint8_t *)region, LONG, ACCESS);
	need(mr != NULL, "ibv_reg_mr");
	qp = join(0, round, mr);
	while (region[0])
		;
	errno = ibv_dereg_mr(mr);
	need(!errno, "ibv_dereg_mr");
	cut = region[LONG - 1] != 0;
	wait_for(&board->failed, round);
	if (cut != (region[LONG - 1] != 0))
		die("round %u: the region was written after ibv_dereg_mr", round);
	if (cut && board->status != IBV_WC_REM_ACCESS_ERR)
		die("round %u: the writer got %s", round, ibv_wc_status_str((enum ibv_wc_status)board->status));
	leave(qp);
	return cut;
}

/* In one round at least: whoever deregisters may get no processor until the WRITE is over. */
static void deregister_at_once(void)
{
	pid_t pid = spawn(long_writer, ROUNDS);
	uint8_t *region = mmap(NULL, LONG, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	unsigned cut = 0;

	need(region != MAP_FAILED, "mmap");
	start();
	for (unsigned round = 1; round <= ROUNDS; round++)
		cut += cut_short(round, region);
	if (!cut)
		die("ibv_dereg_mr has waited for all of each WRITE");
	expect_end(pid);
}

/* ---- a memory window ends ---- */

/* Where `stop` is set the process stops before it can take the answer. */
static bool read_region(struct ibv_qp *qp, const struct ibv_mr *mr, unsigned round, bool stop)
{
	struct ibv_sge sge = {(uintptr_t)arena, REGION, mr->lkey};
	struct ibv_send_wr *bad, wr = {.sg_list = &sge,
				       .num_sge = 1,
				       .opcode = IBV_WR_RDMA_READ,
				       .send_flags = IBV_SEND_SIGNALED,
				       .wr.rdma = {board->address[0].addr, board->window}};
	struct ibv_wc wc;

	errno = ibv_post_send(qp, &wr, &bad);
	need(!errno, "ibv_post_send");
	if (stop)
		raise(SIGSTOP);
	cq_next(cq, &wc);
	if (wc.status == IBV_WC_SUCCESS) {
		atomic_fetch_add(&board->writes, 1);
		return true;
	}
	atomic_store(&board->status, (int)wc.status);
	atomic_store(&board->failed, round);
	return false;
}

/* What the READs bring was there while the window was. */
static int reader(unsigned rounds)
{
	struct ibv_mr *mr;

	start();
	mr = ibv_reg_mr(ep.pd, arena, REGION, IBV_ACCESS_LOCAL_WRITE);
	need(mr != NULL, "ibv_reg_mr");
	for (unsigned round = 1; round <= rounds; round++) {
		struct ibv_qp *qp = join(1, round, NULL);

		wait_for(&board->bound, round);
		for (unsigned n = 0; read_region(qp, mr, round, n == 3); n++)
			if (memchr(arena, 0xaa, REGION))
				die("round %u: a READ brought bytes from after the end of the window", round);
		leave(qp);
	}
	return 0;
}

static struct ibv_mw *bind_window(struct ibv_qp *qp, struct ibv_mr *mr)
{
	struct ibv_mw *mw = ibv_alloc_mw(ep.pd, IBV_MW_TYPE_2);
	struct ibv_send_wr *bad, wr = {.opcode = IBV_WR_BIND_MW, .send_flags = IBV_SEND_SIGNALED};
	struct ibv_wc wc;

	need(mw != NULL, "ibv_alloc_mw");
	wr.bind_mw.mw = mw;
	wr.bind_mw.rkey = ibv_inc_rkey(mw->rkey);
	wr.bind_mw.bind_info = (struct ibv_mw_bind_info){mr, (uintptr_t)mr->addr, REGION, IBV_ACCESS_REMOTE_READ};
	errno = ibv_post_send(qp, &wr, &bad);
	need(!errno, "ibv_post_send");
	cq_next(cq, &wc);
	if (wc.status != IBV_WC_SUCCESS)
		die("binding a window: %s", ibv_wc_status_str(wc.status));
	board->window = wr.bind_mw.rkey;
	return mw;
}

static void end_window(void)
{
	pid_t pid = spawn(reader, 3);

	start();
	for (unsigned round = 1; round <= 3; round++) {
		struct ibv_mr *mr = ibv_reg_mr(ep.pd, arena + MARGIN, REGION, ACCESS | IBV_ACCESS_MW_BIND);
		struct ibv_mw *mw;
		struct ibv_qp *qp;

		need(mr != NULL, "ibv_reg_mr");
		memset(arena + MARGIN, 0x11, REGION);
		qp = join(0, round, mr);
		mw = bind_window(qp, mr);
		atomic_store(&board->bound, round);
		need(waitpid(pid, NULL, WUNTRACED) == pid, "waitpid");
		snooze(20000); /* our thread has answered by now, if it is not very late */
		errno = ibv_dealloc_mw(mw);
		need(!errno, "ibv_dealloc_mw");
		memset(arena + MARGIN, 0xaa, REGION);
		need(!kill(pid, SIGCONT), "kill");
		wait_for(&board->failed, round);
		leave(qp);
		errno = ibv_dereg_mr(mr);
		need(!errno, "ibv_dereg_mr");
	}
	expect_end(pid);
}

/* ---- the sender is killed ---- */

static _Noreturn int sender(unsigned round)
{
	struct ibv_mr *mr;
	struct ibv_qp *qp;
	struct ibv_wc wc;

	start();
	mr = ibv_reg_mr(ep.pd, arena, REGION, IBV_ACCESS_LOCAL_WRITE);
	need(mr != NULL, "ibv_reg_mr");
	qp = join(1, round, NULL);
	for (unsigned n = 0;; n++) {
		uint8_t *at = arena + n % DEPTH * MESSAGE;

		if (n >= DEPTH)
			cq_next(cq, &wc);
		memset(at, (int)n, MESSAGE);
		post_message(qp, mr, at, n % 2 ? MESSAGE : 100, n, false);
	}
}

/* Each message is whole, and none is missing before the last that came. */
static void receive_until_silence(struct ibv_qp *qp, struct ibv_mr *mr, pid_t pid)
{
	unsigned n = 0, quiet = 0, last = 200 + (unsigned)rand() % 400;
	struct ibv_wc wc;

	while (quiet < 200) {
		uint8_t *at = arena + MARGIN + n % DEPTH * MESSAGE;

		if (!ibv_poll_cq(cq, 1, &wc)) {
			quiet += n > last;
			snooze(n > last ? 1000 : 0);
			continue;
		}
		if (wc.status != IBV_WC_SUCCESS || wc.byte_len != (n % 2 ? MESSAGE : 100))
			die("message %u: %s, %u bytes", n, ibv_wc_status_str(wc.status), wc.byte_len);
		for (unsigned i = 0; i < wc.byte_len; i++)
			if (at[i] != (uint8_t)n)
				die("message %u has byte %u of another one", n, i);
		post_message(qp, mr, at, MESSAGE, 0, true);
		if (n++ == last)
			need(!kill(pid, SIGKILL), "kill");
	}
}

static void kill_sender(void)
{
	for (unsigned round = 1; round <= 8; round++) {
		pid_t pid = spawn(sender, round);
		struct ibv_mr *mr;
		struct ibv_qp *qp;

		if (!ep.ctx)
			start();
		mr = open_region();
		qp = join(0, round, mr);
		for (unsigned i = 0; i < DEPTH; i++)
			post_message(qp, mr, arena + MARGIN + i * MESSAGE, MESSAGE, 0, true);
		receive_until_silence(qp, mr, pid);
		need(waitpid(pid, NULL, 0) == pid, "waitpid");
		leave(qp);
		errno = ibv_dereg_mr(mr); /* waits for nobody who is dead */
		need(!errno, "ibv_dereg_mr");
		check_margins();
	}
}

/* ---- the owner ends ---- */

static int owner(unsigned how)
{
	struct ibv_qp *qp;

	start();
	qp = join(0, 1, open_region());
	wait_for(&board->writes, 3);
	snooze((unsigned)rand() % 2000);
	if (how == 1)
		execl("/proc/self/exe", "local_victim", "watch", NULL);
	(void)qp;
	raise(SIGKILL);
	return 1;
}

/* After exec: a new address space, with the same pid. */
static int watch(void)
{
	uint8_t *all = mmap(NULL, 64u << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	need(all != MAP_FAILED, "mmap");
	memset(all, 0x77, 64u << 20);
	snooze(1500000);
	check_all(all, 64u << 20, 0x77, "the memory of the program that exec started");
	return 0;
}

static void owner_ends(unsigned how)
{
	pid_t w = spawn(writer, 1), o = spawn(owner, how);
	int status;

	wait_for(&board->failed, 1);
	if (board->status != IBV_WC_RETRY_EXC_ERR)
		die("the writer got %s", ibv_wc_status_str((enum ibv_wc_status)board->status));
	expect_end(w);
	need(waitpid(o, &status, 0) == o, "waitpid");
	if (how == 1 && status)
		die("the program that exec started ended with 0x%x", status);
}

/* ---- memory that a program takes away while it is registered ---- */

static void take_away(void *start, size_t len)
{
	need(!mprotect(start, len, PROT_NONE), "mprotect");
}

/* The target's: its QP has an error of its own, and the program goes on. */
static void unmap_target(void)
{
	pid_t pid = spawn(writer, 1);
	struct ibv_mr *mr;
	struct ibv_qp *qp;

	start();
	mr = open_region();
	qp = join(0, 1, mr);
	wait_for(&board->writes, 3);
	take_away(arena + MARGIN, REGION);
	wait_for(&board->failed, 1);
	if (board->status != IBV_WC_REM_OP_ERR)
		die("the writer got %s", ibv_wc_status_str((enum ibv_wc_status)board->status));
	check_all(arena, MARGIN, 0, "before the region");
	expect_end(pid);
	leave(qp);
	errno = ibv_dereg_mr(mr);
	need(!errno, "ibv_dereg_mr");
}

static int blind_writer(unsigned round)
{
	struct ibv_mr *mr;
	struct ibv_qp *qp;
	unsigned n = 0;

	start();
	memset(arena, 0xc5, PIECE);
	mr = ibv_reg_mr(ep.pd, arena, PIECE, IBV_ACCESS_LOCAL_WRITE);
	need(mr != NULL, "ibv_reg_mr");
	qp = join(1, round, NULL);
	while (write_piece(qp, mr, n, round))
		if (++n == 3)
			take_away(arena, PIECE);
	leave(qp);
	return 0;
}

/* The initiator's. */
static void unmap_source(void)
{
	pid_t pid = spawn(blind_writer, 1);
	struct ibv_mr *mr;
	struct ibv_qp *qp;

	start();
	mr = open_region();
	qp = join(0, 1, mr);
	wait_for(&board->failed, 1);
	if (board->status != IBV_WC_LOC_PROT_ERR || board->writes != 3)
		die("the writer got %s after %u writes", ibv_wc_status_str((enum ibv_wc_status)board->status),
		    board->writes);
	check_margins();
	expect_end(pid);
	leave(qp);
}

/* ---- the owner forks ---- */

/* The child's copy of the region stays as it is while the parent's is written. */
static void owner_forks(void)
{
	pid_t w = spawn(writer, 1), child;
	struct ibv_mr *mr;
	struct ibv_qp *qp;
	unsigned before;

	start();
	mr = open_region();
	qp = join(0, 1, mr);
	child = fork();
	need(child >= 0, "fork");
	if (!child) {
		uint8_t *copy = malloc(REGION);

		memcpy(copy, arena + MARGIN, REGION);
		snooze(300000);
		_exit(memcmp(copy, arena + MARGIN, REGION) ? 1 : 0);
	}
	before = atomic_load(&board->writes);
	wait_for(&board->writes, before + 10);
	check_all(arena + MARGIN, PIECE, 0xc5, "not written: the region");
	expect_end(child);
	errno = ibv_dereg_mr(mr);
	need(!errno, "ibv_dereg_mr");
	wait_for(&board->failed, 1);
	expect_end(w);
	leave(qp);
}

int main(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : "";

	if (!strcmp(name, "watch"))
		return watch();
	srand((unsigned)getpid());
	board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	need(board != MAP_FAILED, "mmap");
	if (!strcmp(name, "deregister"))
		deregister(false);
	else if (!strcmp(name, "stopped"))
		deregister(true);
	else if (!strcmp(name, "error"))
		take_qp_back(false);
	else if (!strcmp(name, "reset"))
		take_qp_back(true);
	else if (!strcmp(name, "long"))
		deregister_at_once();
	else if (!strcmp(name, "window"))
		end_window();
	else if (!strcmp(name, "sender-killed"))
		kill_sender();
	else if (!strcmp(name, "owner-killed"))
		owner_ends(0);
	else if (!strcmp(name, "exec"))
		owner_ends(1);
	else if (!strcmp(name, "fork"))
		owner_forks();
	else if (!strcmp(name, "target-unmapped"))
		unmap_target();
	else if (!strcmp(name, "source-unmapped"))
		unmap_source();
	else
		die("no such case: %s", name);
	printf("local_victim %s: passed after %u writes\n", name, atomic_load(&board->writes));
	return 0;
}
