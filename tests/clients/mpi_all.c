/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mpi_all: point to point, collective and one-sided MPI operations, over any number of ranks. Every received byte is
 * compared with the sender's computation. Rank 0 prints a line per kind; the first difference ends with MPI_Abort().
 */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, ranks;

#define CHECK(condition)                                                                                               \
	do {                                                                                                           \
		if (!(condition)) {                                                                                    \
			fprintf(stderr, "mpi_all: rank %d, line %d: %s\n", rank, __LINE__, #condition);                \
			MPI_Abort(MPI_COMM_WORLD, 1);                                                                  \
		}                                                                                                      \
	} while (0)

static void say(const char *text)
{
	MPI_Barrier(MPI_COMM_WORLD);
	if (!rank)
		printf("mpi_all: %s\n", text);
	fflush(stdout);
}

/* The message of this size that rank `from` sends. */
static void fill(unsigned char *buf, size_t size, int from)
{
	for (size_t i = 0; i < size; i++)
		buf[i] = (unsigned char)(i * 7 + i / 251 + (size_t)from * 31 + size);
}

static void verify(const unsigned char *buf, size_t size, int from)
{
	for (size_t i = 0; i < size; i++)
		CHECK(buf[i] == (unsigned char)(i * 7 + i / 251 + (size_t)from * 31 + size));
}

static void *allocate(size_t size)
{
	void *p = calloc(1, size);
	CHECK(p);
	return p;
}

/* ---- point to point ---- */

static void ring(size_t size)
{
	int right = (rank + 1) % ranks, left = (rank + ranks - 1) % ranks;
	unsigned char *out = allocate(size + 1), *in = allocate(size + 1);
	fill(out, size, rank);
	MPI_Sendrecv(out, (int)size, MPI_BYTE, right, 1, in, (int)size, MPI_BYTE, left, 1, MPI_COMM_WORLD,
		     MPI_STATUS_IGNORE);
	verify(in, size, left);
	free(out);
	free(in);
}

/* All ranks to all ranks at once, received in the order of arrival; more messages than a queue has entries. */
static void any_source(void)
{
	enum { EACH = 150, SIZE = 900 };
	int count = 0, total = EACH * (ranks - 1);
	MPI_Request *sends = allocate((size_t)total * sizeof(*sends));
	unsigned char *out = allocate(SIZE), in[SIZE];
	int *seen = allocate((size_t)ranks * sizeof(*seen));
	fill(out, SIZE, rank);
	for (int i = 0; i < EACH; i++) {
		for (int to = 0; to < ranks; to++) {
			if (to != rank)
				MPI_Isend(out, SIZE, MPI_BYTE, to, 100 + i, MPI_COMM_WORLD, &sends[count++]);
		}
	}
	for (int i = 0; i < total; i++) {
		MPI_Status status;
		MPI_Recv(in, SIZE, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
		verify(in, SIZE, status.MPI_SOURCE);
		CHECK(status.MPI_TAG == 100 + seen[status.MPI_SOURCE]); /* messages of one sender keep their order */
		seen[status.MPI_SOURCE]++;
	}
	MPI_Waitall(count, sends, MPI_STATUSES_IGNORE);
	MPI_Barrier(MPI_COMM_WORLD); /* or MPI_ANY_TAG would match the next messages */
	free(sends);
	free(out);
	free(seen);
}

/* Every other column of a matrix: a datatype with gaps. */
static void strided(void)
{
	enum { ROWS = 200, COLUMNS = 64 };
	MPI_Datatype columns;
	MPI_Type_vector(ROWS * COLUMNS / 2, 1, 2, MPI_INT, &columns);
	MPI_Type_commit(&columns);
	int *matrix = allocate(sizeof(int) * ROWS * COLUMNS), partner = rank ^ 1;
	for (int i = 0; i < ROWS * COLUMNS; i++)
		matrix[i] = rank * 100000 + i;
	if (partner < ranks) {
		MPI_Sendrecv_replace(matrix, 1, columns, partner, 2, partner, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		for (int i = 0; i < ROWS * COLUMNS; i++)
			CHECK(matrix[i] == (i % 2 ? rank : partner) * 100000 + i);
	}
	MPI_Type_free(&columns);
	free(matrix);
}

static void synchronous(void)
{
	int partner = rank ^ 1, value = rank, got = -1;
	if (partner >= ranks)
		return;
	if (rank < partner) {
		MPI_Ssend(&value, 1, MPI_INT, partner, 3, MPI_COMM_WORLD);
	} else {
		MPI_Status status;
		MPI_Probe(MPI_ANY_SOURCE, 3, MPI_COMM_WORLD, &status);
		MPI_Recv(&got, 1, MPI_INT, status.MPI_SOURCE, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		CHECK(got == partner);
	}
}

static void point_to_point(void)
{
	static const size_t sizes[] = {0, 1, 8, 1000, 1025, 8192, 65536, 1000003, 4 << 20};
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		ring(sizes[i]);
	any_source();
	strided();
	synchronous();
	say("point to point");
}

/* ---- collectives ---- */

static void broadcast_and_reduce(int n)
{
	unsigned char *bytes = allocate((size_t)n);
	for (int root = 0; root < ranks; root++) {
		if (rank == root)
			fill(bytes, (size_t)n, root);
		MPI_Bcast(bytes, n, MPI_BYTE, root, MPI_COMM_WORLD);
		verify(bytes, (size_t)n, root);
	}
	free(bytes);

	int64_t *in = allocate((size_t)n * sizeof(*in)), *sum = allocate((size_t)n * sizeof(*sum));
	for (int i = 0; i < n; i++)
		in[i] = (int64_t)i * (rank + 1);
	MPI_Allreduce(in, sum, n, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
	for (int i = 0; i < n; i++)
		CHECK(sum[i] == (int64_t)i * ranks * (ranks + 1) / 2);
	MPI_Reduce(in, sum, n, MPI_INT64_T, MPI_MAX, ranks - 1, MPI_COMM_WORLD);
	for (int i = 0; rank == ranks - 1 && i < n; i++)
		CHECK(sum[i] == (int64_t)i * ranks);
	MPI_Scan(in, sum, n, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
	for (int i = 0; i < n; i++)
		CHECK(sum[i] == (int64_t)i * (rank + 1) * (rank + 2) / 2);
	free(in);
	free(sum);
}

static void gather_and_scatter(int n)
{
	size_t all = (size_t)n * (size_t)ranks;
	unsigned char *mine = allocate((size_t)n), *theirs = allocate(all), *turned = allocate(all);
	fill(mine, (size_t)n, rank);
	MPI_Allgather(mine, n, MPI_BYTE, theirs, n, MPI_BYTE, MPI_COMM_WORLD);
	for (int r = 0; r < ranks; r++)
		verify(theirs + (size_t)r * (size_t)n, (size_t)n, r);

	memset(theirs, 0, all);
	MPI_Gather(mine, n, MPI_BYTE, theirs, n, MPI_BYTE, 0, MPI_COMM_WORLD);
	for (int r = 0; !rank && r < ranks; r++)
		verify(theirs + (size_t)r * (size_t)n, (size_t)n, r);
	memset(mine, 0, (size_t)n);
	MPI_Scatter(theirs, n, MPI_BYTE, mine, n, MPI_BYTE, 0, MPI_COMM_WORLD);
	verify(mine, (size_t)n, rank);

	for (int r = 0; r < ranks; r++)
		fill(theirs + (size_t)r * (size_t)n, (size_t)n, rank * ranks + r);
	MPI_Alltoall(theirs, n, MPI_BYTE, turned, n, MPI_BYTE, MPI_COMM_WORLD);
	for (int r = 0; r < ranks; r++)
		verify(turned + (size_t)r * (size_t)n, (size_t)n, r * ranks + rank);
	free(mine);
	free(theirs);
	free(turned);
}

static void collectives(void)
{
	static const int sizes[] = {1, 1000, 100000};
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		broadcast_and_reduce(sizes[i]);
		gather_and_scatter(sizes[i]);
	}
	MPI_Comm half;
	int sum;
	MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
	MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, half);
	int want = 0;
	for (int r = rank % 2; r < ranks; r += 2)
		want += r;
	CHECK(sum == want);
	MPI_Comm_free(&half);
	say("collectives");
}

/* ---- one-sided ---- */

/* Each window has a slot of SLOT bytes for each rank. */
enum { SLOT = 50000 };

static void put_and_get(MPI_Win win, unsigned char *window)
{
	unsigned char *out = allocate(SLOT), *in = allocate(SLOT);
	fill(out, SLOT, rank);
	MPI_Win_fence(0, win);
	for (int r = 0; r < ranks; r++)
		MPI_Put(out, SLOT, MPI_BYTE, r, (MPI_Aint)rank * SLOT, SLOT, MPI_BYTE, win);
	MPI_Win_fence(0, win);
	for (int r = 0; r < ranks; r++)
		verify(window + (size_t)r * SLOT, SLOT, r);

	MPI_Win_lock_all(0, win);
	for (int r = 0; r < ranks; r++) {
		int slot = (rank + r) % ranks;
		memset(in, 0, SLOT);
		MPI_Get(in, SLOT, MPI_BYTE, r, (MPI_Aint)slot * SLOT, SLOT, MPI_BYTE, win);
		MPI_Win_flush(r, win);
		verify(in, SLOT, slot);
	}
	MPI_Win_unlock_all(win);
	MPI_Barrier(MPI_COMM_WORLD);
	free(out);
	free(in);
}

/* Post, start, complete, wait: the neighbours only. */
static void pscw(MPI_Win win, unsigned char *window)
{
	int right = (rank + 1) % ranks, left = (rank + ranks - 1) % ranks;
	MPI_Group world, to, from;
	unsigned char out[100];
	MPI_Comm_group(MPI_COMM_WORLD, &world);
	MPI_Group_incl(world, 1, &right, &to);
	MPI_Group_incl(world, 1, &left, &from);
	fill(out, sizeof(out), rank + 1000);
	MPI_Win_post(from, 0, win);
	MPI_Win_start(to, 0, win);
	MPI_Put(out, sizeof(out), MPI_BYTE, right, 0, sizeof(out), MPI_BYTE, win);
	MPI_Win_complete(win);
	MPI_Win_wait(win);
	verify(window, sizeof(out), left + 1000);
	MPI_Group_free(&to);
	MPI_Group_free(&from);
	MPI_Group_free(&world);
	MPI_Barrier(MPI_COMM_WORLD);
}

/* Rank 0 has the counters: a ticket (fetch and add), a lock (compare and swap), a sum that the lock protects, a total.
 * A rank that waits for the lock also probes for messages. With atomics in shared memory UCX performs them in software
 * at the target: without probing, rank 0 would never perform the release of the lock's owner. */
static void atomics(void)
{
	enum { TICKET, LOCK, PLAIN, TOTAL, COUNTERS, TURNS = 10 };
	int64_t *counters, one = 1, zero = 0, got, me = rank + 1, five = 5;
	MPI_Win win;
	MPI_Win_allocate(rank ? 0 : COUNTERS * sizeof(int64_t), sizeof(int64_t), MPI_INFO_NULL, MPI_COMM_WORLD,
			 &counters, &win);
	if (!rank)
		memset(counters, 0, COUNTERS * sizeof(int64_t));
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Win_lock_all(0, win);
	int64_t before = -1;
	for (int i = 0; i < TURNS; i++) {
		MPI_Fetch_and_op(&one, &got, MPI_INT64_T, 0, TICKET, MPI_SUM, win);
		MPI_Win_flush(0, win);
		CHECK(got > before && got < (int64_t)TURNS * ranks);
		before = got;
		do {
			MPI_Compare_and_swap(&me, &zero, &got, MPI_INT64_T, 0, LOCK, win);
			MPI_Win_flush(0, win);
			for (int seen, probes = 0; got && probes < 200; probes++)
				MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &seen, MPI_STATUS_IGNORE);
		} while (got);
		int64_t plain;
		MPI_Get(&plain, 1, MPI_INT64_T, 0, PLAIN, 1, MPI_INT64_T, win);
		MPI_Win_flush(0, win);
		plain += me;
		MPI_Put(&plain, 1, MPI_INT64_T, 0, PLAIN, 1, MPI_INT64_T, win);
		MPI_Win_flush(0, win);
		MPI_Fetch_and_op(&zero, &got, MPI_INT64_T, 0, LOCK, MPI_REPLACE, win);
		MPI_Win_flush(0, win);
		CHECK(got == me);
		MPI_Accumulate(&five, 1, MPI_INT64_T, 0, TOTAL, 1, MPI_INT64_T, MPI_SUM, win);
	}
	MPI_Win_unlock_all(win);
	MPI_Barrier(MPI_COMM_WORLD);
	if (!rank) {
		MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
		CHECK(counters[TICKET] == (int64_t)TURNS * ranks && counters[LOCK] == 0);
		CHECK(counters[PLAIN] == (int64_t)TURNS * ranks * (ranks + 1) / 2);
		CHECK(counters[TOTAL] == (int64_t)TURNS * ranks * 5);
		MPI_Win_unlock(0, win);
	}
	MPI_Win_free(&win);
}

static void one_sided(void)
{
	MPI_Win win;
	size_t size = (size_t)ranks * SLOT;
	unsigned char *window = allocate(size);
	MPI_Win_create(window, (MPI_Aint)size, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
	put_and_get(win, window);
	pscw(win, window);
	MPI_Win_free(&win);
	free(window);
	atomics();
	say("one-sided");
}

int main(int argc, char **argv)
{
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	point_to_point();
	collectives();
	one_sided();
	say("done");
	MPI_Finalize();
	return 0;
}
