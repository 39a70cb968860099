/* SPDX-License-Identifier: BSD-2-Clause */
#include "../test.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <dlfcn.h>
#include <liburing.h>

#include "mover/disk.h"
#include "random.h"

#define BYTES (1u << 20)

static bool kernel_has_no_room;

/* In place of liburing's. EAGAIN: the kernel has no memory for requests (io_uring_enter(2)). */
int io_uring_submit(struct io_uring *ring)
{
	int (*submit)(struct io_uring *) = (int (*)(struct io_uring *))dlsym(RTLD_NEXT, "io_uring_submit");

	return kernel_has_no_room ? -EAGAIN : submit(ring);
}

static struct disk_op *reap(struct disk *disk)
{
	struct disk_op *op;

	while (!(op = disk_reap(disk)))
		poll(&(struct pollfd){.fd = disk_fd(disk), .events = POLLIN}, 1, -1);
	return op;
}

struct reader {
	int fd;
	uint8_t *bytes;
	size_t len;
};

static void *read_all(void *argument)
{
	struct reader *r = argument;
	ssize_t n;

	while ((n = read(r->fd, r->bytes + r->len, 2 * BYTES - r->len)) > 0)
		r->len += (size_t)n;
	return NULL;
}

/* Bytes and then zeros through a pipe, blocking and non-blocking, and into a file. */
static void sequential_writes_arrive(void **state)
{
	uint8_t *bytes = test_malloc(BYTES), *read_back = test_malloc(2 * BYTES), *zeros = test_calloc(1, 100000);
	uint64_t seed = 1;

	random_fill(&seed, bytes, BYTES);
	for (int flags = 0; flags <= O_NONBLOCK; flags += O_NONBLOCK) {
		struct disk_op data = {.write = true, .buffer = bytes, .len = BYTES, .offset = DISK_SEQUENTIAL};
		struct disk_op hole = {.write = true, .len = 100000, .offset = DISK_SEQUENTIAL};
		struct reader reader = {.bytes = read_back};
		struct disk *disk;
		pthread_t thread;
		int ends[2];

		assert_int_equal(pipe(ends), 0);
		assert_int_equal(fcntl(ends[1], F_SETFL, flags), 0);
		reader.fd = ends[0];
		data.fd = hole.fd = ends[1];
		assert_int_equal(pthread_create(&thread, NULL, read_all, &reader), 0);
		assert_int_equal(disk_create(false, 1, &disk), 0);
		disk_submit(disk, &data);
		disk_submit(disk, &hole);
		assert_ptr_equal(reap(disk), &data);
		assert_int_equal(data.result, BYTES);
		assert_ptr_equal(reap(disk), &hole);
		assert_int_equal(hole.result, 100000);
		disk_destroy(disk);
		close(ends[1]);
		assert_int_equal(pthread_join(thread, NULL), 0);
		close(ends[0]);
		assert_int_equal(reader.len, BYTES + 100000);
		assert_memory_equal(read_back, bytes, BYTES);
		assert_memory_equal(read_back + BYTES, zeros, 100000);
	}
	test_free(bytes);
	test_free(read_back);
	test_free(zeros);
}

/* Nobody reads the pipe, or the write never ends: disk_destroy() waits for neither. */
static void what_cannot_end_is_stopped(void **state)
{
	uint8_t *bytes = test_calloc(1, BYTES);
	struct disk_op data = {.write = true, .buffer = bytes, .len = BYTES, .offset = DISK_SEQUENTIAL};
	struct disk_op hole = {.write = true, .len = INT64_MAX, .offset = DISK_SEQUENTIAL};
	struct disk *disk;
	int ends[2];

	alarm(60);
	assert_int_equal(pipe(ends), 0);
	data.fd = ends[1];
	assert_int_equal(disk_create(false, 1, &disk), 0);
	disk_submit(disk, &data);
	poll(&(struct pollfd){.fd = ends[0], .events = POLLIN}, 1, -1); /* it has begun */
	disk_destroy(disk);
	assert_int_equal(data.result, -ECANCELED);
	close(ends[0]);
	close(ends[1]);

	hole.fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
	assert_true(hole.fd >= 0);
	assert_int_equal(disk_create(false, 1, &disk), 0);
	disk_submit(disk, &hole);
	disk_destroy(disk);
	assert_int_equal(hole.result, -ECANCELED);
	close(hole.fd);
	alarm(0);
	test_free(bytes);
}

static void a_reader_that_leaves_is_told(void **state)
{
	struct disk_op op = {.write = true, .len = BYTES, .offset = DISK_SEQUENTIAL};
	struct disk *disk;
	int ends[2];

	assert_int_equal(pipe(ends), 0);
	close(ends[0]);
	op.fd = ends[1];
	assert_int_equal(disk_create(false, 1, &disk), 0);
	disk_submit(disk, &op);
	assert_ptr_equal(reap(disk), &op);
	assert_int_equal(op.result, -EPIPE);
	disk_destroy(disk);
	close(ends[1]);
}

/* What was under way is written, and handed out. The rest is stopped before it begins. */
static void what_is_under_way_is_not_lost(void **state)
{
	uint8_t *bytes = test_malloc(BYTES), *read_back = test_malloc(BYTES);
	uint64_t seed = 2;

	random_fill(&seed, bytes, BYTES);
	for (int uring = 0; uring < 2; uring++) {
		struct disk_op ops[2], *done;
		FILE *file = tmpfile();
		unsigned count = 0;
		struct disk *disk;

		assert_non_null(file);
		assert_int_equal(disk_create(uring, 2, &disk), 0);
		for (unsigned i = 0; i < 2; i++) {
			ops[i] = (struct disk_op){
				.write = true, .buffer = bytes, .len = BYTES, .offset = i * BYTES, .fd = fileno(file)};
			disk_submit(disk, &ops[i]);
		}
		disk_stop(disk);
		for (; (done = disk_reap(disk)); count++) {
			if (done->result == -ECANCELED && !uring)
				continue;
			assert_int_equal(done->result, BYTES);
			assert_int_equal(pread(done->fd, read_back, BYTES, (off_t)done->offset), BYTES);
			assert_memory_equal(read_back, bytes, BYTES);
		}
		assert_int_equal(count, 2);
		disk_destroy(disk);
		fclose(file);
	}
	test_free(bytes);
	test_free(read_back);
}

/* A write that is not of whole blocks, to a descriptor with O_DIRECT, goes by the page cache. */
static void a_direct_write_need_not_fit(void **state)
{
	uint8_t *bytes = test_malloc(BYTES), *read_back = test_malloc(BYTES);
	uint64_t seed = 3;

	random_fill(&seed, bytes, BYTES);
	for (int uring = 0; uring < 2; uring++) {
		struct disk_op op = {.write = true, .buffer = bytes + 1, .len = BYTES - 3, .offset = 5};
		FILE *file = tmpfile();
		struct disk *disk;

		assert_non_null(file);
		op.fd = fileno(file);
		if (fcntl(op.fd, F_SETFL, O_DIRECT))
			skip(); /* this file system has no O_DIRECT */
		assert_int_equal(disk_create(uring, 2, &disk), 0);
		disk_submit(disk, &op);
		disk_flush(disk);
		assert_ptr_equal(reap(disk), &op);
		assert_int_equal(op.result, BYTES - 3);
		assert_int_equal(fcntl(op.fd, F_SETFL, 0), 0);
		assert_int_equal(pread(op.fd, read_back, BYTES, 5), BYTES - 3);
		assert_memory_equal(read_back, bytes + 1, BYTES - 3);
		disk_destroy(disk);
		fclose(file);
	}
	test_free(bytes);
	test_free(read_back);
}

/* The kernel takes no requests: nobody waits for them at the end. */
static void what_the_kernel_does_not_take_is_dropped(void **state)
{
	uint8_t *bytes = test_malloc(BYTES);
	FILE *file = tmpfile();
	struct disk *disk;
	struct disk_op op = {.write = true, .buffer = bytes, .len = BYTES};

	assert_non_null(file);
	memset(bytes, 1, BYTES);
	op.fd = fileno(file);
	assert_int_equal(disk_create(true, 2, &disk), 0);
	kernel_has_no_room = true;
	disk_submit(disk, &op);
	disk_flush(disk);
	alarm(20);
	disk_destroy(disk);
	alarm(0);
	kernel_has_no_room = false;
	fclose(file);
	test_free(bytes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sequential_writes_arrive),
		cmocka_unit_test(what_cannot_end_is_stopped),
		cmocka_unit_test(a_reader_that_leaves_is_told),
		cmocka_unit_test(what_is_under_way_is_not_lost),
		cmocka_unit_test(a_direct_write_need_not_fit),
		cmocka_unit_test(what_the_kernel_does_not_take_is_dropped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
