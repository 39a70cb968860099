/* SPDX-License-Identifier: BSD-2-Clause */
#include "mover/disk.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <liburing.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "mover/io.h"

#define CALL_BYTES (1u << 30) /* most bytes in one system call */

struct disk {
	bool uring;
	unsigned depth, busy, unflushed;
	struct disk_op *waiting, **waiting_last;
	struct io_uring ring;
	int fd;
	struct worker *worker; /* without io_uring */
	atomic_bool stopped;
	int stop_fd; /* an eventfd: readable when stopped */
};

static const uint8_t zeros[65536];

static bool is_file(int fd)
{
	struct stat st;

	return !fstat(fd, &st) && S_ISREG(st.st_mode);
}

/* How many bytes one call moves. On a pipe: as many as it takes without blocking when poll(2) says that it is writable
 * (pipe(7)). */
static size_t call_bytes(const struct disk_op *op, uint64_t done, bool file)
{
	uint64_t most = !file ? PIPE_BUF : op->buffer ? CALL_BYTES : sizeof(zeros);

	return (size_t)(op->len - done < most ? op->len - done : most);
}

/* Waits until a sequential operation can go on, or the disk is stopped. */
static void wait_ready(const struct disk_op *op)
{
	struct pollfd fds[] = {
		{.fd = op->fd, .events = op->write ? POLLOUT : POLLIN},
		{.fd = op->disk->stop_fd, .events = POLLIN},
	};

	poll(fds, 2, -1);
}

static ssize_t call_once(const struct disk_op *op, uint64_t done, size_t len)
{
	uint8_t *at = op->buffer ? op->buffer + done : (uint8_t *)zeros; /* a write does not change it */
	off_t offset = (off_t)(op->offset + done);

	if (op->offset == DISK_SEQUENTIAL)
		return op->write ? write(op->fd, at, len) : read(op->fd, at, len);
	return op->write ? pwrite(op->fd, at, len, offset) : pread(op->fd, at, len, offset);
}

static bool refuses_direct(int err)
{
	return err == EINVAL || err == EOPNOTSUPP;
}

/* The rest of an operation from `done` on. */
static void run_from(struct disk_op *op, uint64_t done)
{
	bool file = op->offset != DISK_SEQUENTIAL || is_file(op->fd);

	while (done < op->len) {
		ssize_t n;

		if (!file)
			wait_ready(op);
		if (atomic_load(&op->disk->stopped)) {
			op->result = -ECANCELED;
			return;
		}
		n = call_once(op, done, call_bytes(op, done, file));
		if (n < 0 && (errno == EINTR || errno == EAGAIN ||
			      (refuses_direct(errno) && mover_change_direct(op->fd, false))))
			continue;
		if (n < 0) {
			op->result = -errno;
			return;
		}
		if (n == 0)
			break;
		done += (uint64_t)n;
	}
	op->result = (int64_t)done;
}

static void run_job(struct worker_job *job)
{
	run_from((struct disk_op *)job, 0);
}

static int open_ring(struct disk *d)
{
	int err = io_uring_queue_init(d->depth, &d->ring, 0);
	if (err)
		return err;
	d->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	err = d->fd < 0 ? -errno : io_uring_register_eventfd(&d->ring, d->fd);
	if (err) {
		if (d->fd >= 0)
			close(d->fd);
		io_uring_queue_exit(&d->ring);
	}
	return err;
}

static int open_worker(struct disk *d)
{
	int err;

	d->stop_fd = eventfd(0, EFD_CLOEXEC);
	if (d->stop_fd < 0)
		return -errno;
	err = worker_create(&d->worker);
	if (err)
		close(d->stop_fd);
	return err;
}

int disk_create(bool uring, unsigned depth, struct disk **disk)
{
	struct disk *d = calloc(1, sizeof(*d));
	int err;

	if (!d)
		return -ENOMEM;
	d->depth = depth;
	d->waiting_last = &d->waiting;
	d->uring = uring && open_ring(d) == 0;
	d->stop_fd = -1;
	if (!d->uring) {
		err = open_worker(d);
		if (err) {
			free(d);
			return err;
		}
	}
	*disk = d;
	return 0;
}

void disk_stop(struct disk *d)
{
	struct io_uring_cqe *cqe;

	if (!d)
		return;
	if (d->uring) {
		d->waiting = NULL;
		d->waiting_last = &d->waiting;
		disk_flush(d);
		d->busy -= d->unflushed; /* the kernel has no memory for these: they have not begun */
		d->unflushed = 0;
		while (d->busy && io_uring_wait_cqe_nr(&d->ring, &cqe, d->busy) < 0)
			;
		return;
	}
	atomic_store(&d->stopped, true);
	eventfd_write(d->stop_fd, 1);
	worker_stop(d->worker);
}

void disk_destroy(struct disk *d)
{
	if (!d)
		return;
	disk_stop(d);
	if (d->uring) {
		io_uring_queue_exit(&d->ring);
		close(d->fd);
	} else {
		worker_destroy(d->worker);
		close(d->stop_fd);
	}
	free(d);
}

int disk_fd(const struct disk *d)
{
	return d->uring ? d->fd : worker_fd(d->worker);
}

static void start(struct disk *d)
{
	while (d->waiting && d->busy < d->depth) {
		struct disk_op *op = d->waiting;
		struct io_uring_sqe *sqe = io_uring_get_sqe(&d->ring);
		if (!sqe)
			return;
		if (op->write)
			io_uring_prep_write(sqe, op->fd, op->buffer, (unsigned)op->len, op->offset);
		else
			io_uring_prep_read(sqe, op->fd, op->buffer, (unsigned)op->len, op->offset);
		io_uring_sqe_set_data(sqe, op);
		d->waiting = op->next;
		if (!d->waiting)
			d->waiting_last = &d->waiting;
		d->busy++;
		d->unflushed++;
	}
}

void disk_submit(struct disk *d, struct disk_op *op)
{
	op->disk = d;
	if (!d->uring) {
		op->job.run = run_job;
		worker_submit(d->worker, &op->job);
		return;
	}
	op->next = NULL;
	*d->waiting_last = op;
	d->waiting_last = &op->next;
	start(d);
}

void disk_flush(struct disk *d)
{
	if (!d->uring)
		return;
	start(d);
	while (d->unflushed) {
		int n = io_uring_submit(&d->ring);
		if (n > 0)
			d->unflushed -= (unsigned)n < d->unflushed ? (unsigned)n : d->unflushed;
		else if (n != -EINTR)
			break; /* -EAGAIN, -EBUSY: the next round tries again */
	}
}

struct disk_op *disk_reap(struct disk *d)
{
	struct io_uring_cqe *cqe;
	struct disk_op *op;

	if (!d->uring)
		return (struct disk_op *)worker_reap(d->worker);
	if (io_uring_peek_cqe(&d->ring, &cqe)) {
		eventfd_t count;
		eventfd_read(d->fd, &count);
		if (io_uring_peek_cqe(&d->ring, &cqe)) /* one may have come between the two */
			return NULL;
	}
	op = io_uring_cqe_get_data(cqe);
	op->result = cqe->res;
	io_uring_cqe_seen(&d->ring, cqe);
	d->busy--;
	if (op->result == -EINTR || op->result == -EAGAIN || refuses_direct((int)-op->result))
		run_from(op, 0);
	else if (op->result > 0 && (uint64_t)op->result < op->len)
		run_from(op, (uint64_t)op->result); /* cut short, or the end of the file */
	return op;
}
