/* SPDX-License-Identifier: BSD-2-Clause */
/* Captures into pipes: readers that are slow, stopped and gone. Captures into files that somebody has locked. */
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "capture/reader.h"
#include "device/capture_pipe.h"
#include "device/pcapng.h"

struct ends {
	int reader, writer; /* the writer's own end keeps the pipe open */
	char path[64];
};

static struct ends make_pipe(void)
{
	struct ends ends;
	int fds[2];

	assert_return_code(pipe2(fds, O_CLOEXEC), errno);
	ends.reader = fds[0];
	ends.writer = fds[1];
	snprintf(ends.path, sizeof(ends.path), "/proc/self/fd/%d", fds[1]);
	assert_true(roci_pipe_is(ends.path));
	return ends;
}

static void test_write(void **state)
{
	struct ends ends = make_pipe();
	int fd = roci_pipe_open(ends.path);
	bool stalled = false;
	char got[8] = "";

	assert_true(fd >= 0);
	assert_int_equal(roci_pipe_write(fd, "hello", 5, &stalled), 0);
	assert_int_equal(read(ends.reader, got, sizeof(got)), 5);
	assert_string_equal(got, "hello");
	close(fd);
	close(ends.writer);
	assert_int_equal(read(ends.reader, got, sizeof(got)), 0); /* nobody writes any more: that is the end */
	close(ends.reader);
}

/* Were SIGPIPE raised, this program would end. */
static void test_reader_gone(void **state)
{
	struct ends ends = make_pipe();
	int fd = roci_pipe_open(ends.path);
	bool stalled = false;

	close(ends.reader);
	assert_int_equal(roci_pipe_write(fd, "hello", 5, &stalled), -EPIPE);
	assert_int_equal(roci_pipe_write(fd, "hello", 5, &stalled), -EPIPE);
	close(fd);
	close(ends.writer);
}

/* A named pipe that nobody reads is refused at once. */
static void test_nobody_reads(void **state)
{
	char dir[] = "/tmp/roci-pipe-XXXXXX", path[64];

	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/pipe", dir);
	assert_return_code(mkfifo(path, 0600), errno);
	assert_int_equal(roci_pipe_open(path), -ENXIO);
	unlink(path);
	rmdir(dir);
}

/* What does not fit is left out as a whole. */
static void test_full(void **state)
{
	static char batch[100000];
	struct ends ends = make_pipe();
	int fd = roci_pipe_open(ends.path);
	unsigned written = 0;
	bool stalled = false;
	size_t got = 0;
	ssize_t n;

	while (written < 100 && !roci_pipe_write(fd, batch, sizeof(batch), &stalled))
		written++;
	assert_in_range(written, 1, 99);
	assert_true(stalled);
	assert_int_equal(roci_pipe_write(fd, batch, sizeof(batch), &stalled), -EAGAIN);
	close(fd);
	close(ends.writer);
	while ((n = read(ends.reader, batch, sizeof(batch))) > 0)
		got += (size_t)n;
	assert_int_equal(got, written * sizeof(batch));
	close(ends.reader);
}

/* Reads what is in the pipe. Returns how many packets; *dropped is what it says of missing ones. */
static unsigned count_packets(struct ends *ends, uint64_t *dropped)
{
	FILE *file = fdopen(ends->reader, "r");
	struct capture_reader *r = capture_reader_create(file);
	struct capture_record record;
	enum capture_result result;
	unsigned packets = 0;

	while ((result = capture_reader_next(r, &record)) == CAPTURE_RECORD) {
		packets += record.kind == CAPTURE_PACKET;
		if (record.kind == CAPTURE_DROPPED)
			*dropped = record.dropped;
	}
	assert_int_equal(result, CAPTURE_END);
	capture_reader_destroy(r);
	fclose(file);
	return packets;
}

/* Packets that a pipe has no room for are dropped, and the reader learns how many. */
static void test_dropped(void **state)
{
	static struct roci_pcapng p;
	const struct roci_pcapng_about about = {.time_ns = 1, .pid = 1, .direction = ROCI_PCAPNG_OUTBOUND};
	struct ends ends = make_pipe();
	char some[70000];
	uint64_t dropped = 0;
	unsigned sent = 0;
	ssize_t n;

	assert_int_equal(roci_pcapng_open(&p, ends.path), 0);
	while (!p.dropped && sent < 10000) {
		memset(roci_pcapng_packet(&p, &about, 60000), 0, 60000);
		sent++;
		roci_pcapng_flush(&p);
	}
	assert_true(p.dropped > 0);
	/* The reader takes a packet, and there is room again: for the head, too, to begin the count with. */
	n = read(ends.reader, some, 60 + 28 + 60000 + 24);
	assert_int_equal(n, 60 + 28 + 60000 + 24);
	n = read(ends.reader, some, 28 + 60000 + 24);
	assert_int_equal(n, 28 + 60000 + 24);
	memset(roci_pcapng_packet(&p, &about, 100), 0, 100);
	sent++;
	roci_pcapng_close(&p);
	close(ends.writer);

	/* What is left begins with a packet: put a head in front of it. */
	static struct roci_pcapng file;
	char path[] = "/tmp/roci-pipe-XXXXXX";
	int fd = mkstemp(path);
	assert_true(fd >= 0);
	assert_int_equal(roci_pcapng_open(&file, path), 0);
	roci_pcapng_close(&file);
	lseek(fd, 0, SEEK_END);
	while ((n = read(ends.reader, some, sizeof(some))) > 0)
		assert_int_equal(write(fd, some, (size_t)n), n);
	close(ends.reader);
	lseek(fd, 0, SEEK_SET);
	ends.reader = fd;
	unlink(path);
	assert_int_equal(2 + count_packets(&ends, &dropped) + dropped, sent);
	assert_true(dropped > 0);
}

static void write_packet(struct roci_pcapng *p)
{
	const struct roci_pcapng_about about = {.time_ns = 1, .pid = 1, .direction = ROCI_PCAPNG_OUTBOUND};

	memset(roci_pcapng_packet(p, &about, 100), 0, 100);
	roci_pcapng_flush(p);
}

/* A process that was stopped while it had the file's lock does not stop others. What they lack, the file says later. */
static void test_locked(void **state)
{
	static struct roci_pcapng p, other;
	char path[] = "/tmp/roci-lock-XXXXXX";
	struct ends file = {.reader = mkstemp(path)};
	uint64_t dropped = 0;

	assert_true(file.reader >= 0);
	assert_int_equal(roci_pcapng_open(&p, path), 0);
	write_packet(&p);
	assert_int_equal(flock(file.reader, LOCK_EX), 0);
	assert_int_equal(roci_pcapng_open(&other, path), -EBUSY);
	for (unsigned i = 0; i < 100; i++)
		write_packet(&p);
	assert_int_equal(flock(file.reader, LOCK_UN), 0);
	write_packet(&p);
	write_packet(&p);
	roci_pcapng_close(&p);
	unlink(path);
	assert_int_equal(count_packets(&file, &dropped), 3);
	assert_int_equal(dropped, 100);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_write), cmocka_unit_test(test_reader_gone), cmocka_unit_test(test_nobody_reads),
		cmocka_unit_test(test_full),  cmocka_unit_test(test_dropped),     cmocka_unit_test(test_locked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
