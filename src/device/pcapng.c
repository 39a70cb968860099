/* SPDX-License-Identifier: BSD-2-Clause */
#include "device/pcapng.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include "device/capture_pipe.h"
#include "device/held_signal.h"
#include "device/say.h"

#define SECTION_HEADER   0x0a0d0d0au
#define INTERFACE        1u
#define STATISTICS       5u
#define ENHANCED_PACKET  6u
#define BYTE_ORDER_MAGIC 0x1a2b3c4du
#define LINKTYPE_RAW     101
#define SNAP_BYTES       262144
#define HEAD_BYTES       60 /* section header block and interface description block */
#define OPT_COMMENT      1
#define OPT_IF_TSRESOL   9
#define OPT_EPB_FLAGS    2
#define OPT_ISB_IFDROP   5
#define STATISTICS_BYTES 40
#define OPT_EPB_QUEUE    6

/* Head and tail of an enhanced packet block around the padded packet: the tail is queue, flags, end of options,
 * length; and before them the comment, where there is one. */
#define PACKET_HEAD   28
#define PACKET_TAIL   24
#define COMMENT_BYTES (4 + ((sizeof(ROCI_PCAPNG_MADE_UP) - 1 + 3) & ~(size_t)3))

#define LOCK_PAUSE_NS 100000 /* between attempts to have the file's lock */
#define LOCK_TRIES    1000

#define BLOCK_AROUND 12 /* type and length before a body, length behind it */

static void put32(struct roci_pcapng *p, uint32_t value)
{
	memcpy(p->buffer + p->used, &value, 4);
	p->used += 4;
}

static void put16(struct roci_pcapng *p, uint16_t value)
{
	memcpy(p->buffer + p->used, &value, 2);
	p->used += 2;
}

static void put_head(struct roci_pcapng *p)
{
	put32(p, SECTION_HEADER);
	put32(p, 28);
	put32(p, BYTE_ORDER_MAGIC);
	put16(p, 1);
	put16(p, 0);
	put32(p, 0xffffffff); /* section length: unknown */
	put32(p, 0xffffffff);
	put32(p, 28);

	put32(p, INTERFACE);
	put32(p, 32);
	put16(p, LINKTYPE_RAW);
	put16(p, 0);
	put32(p, SNAP_BYTES);
	put16(p, OPT_IF_TSRESOL);
	put16(p, 1);
	put32(p, 9); /* first byte: 10^-9 */
	put32(p, 0); /* end of options */
	put32(p, 32);
}

/* Other processes have the lock for a moment, unless they are stopped. False: one has had it all the time; it is not
 * waited for again before it lets go. */
static bool lock(struct roci_pcapng *p)
{
	const struct timespec pause = {.tv_nsec = LOCK_PAUSE_NS};
	unsigned tries = p->locked_out ? 1 : LOCK_TRIES;
	int err;

	while ((err = flock(p->fd, LOCK_EX | LOCK_NB)) && (errno == EWOULDBLOCK || errno == EINTR) && --tries)
		nanosleep(&pause, NULL);
	p->locked_out = err && errno == EWOULDBLOCK; /* what cannot be locked at all is written without */
	return !p->locked_out;
}

/* Returns how many bytes went into the file, and sets *err where it does not take them all. */
static size_t write_all(int fd, const uint8_t *bytes, size_t len, int *err)
{
	size_t done = 0;

	*err = 0;
	while (done < len && !*err) {
		ssize_t n = write(fd, bytes + done, len - done);

		if (n > 0)
			done += (size_t)n;
		else if (!n || errno != EINTR)
			*err = n ? -errno : -ENOSPC;
	}
	return done;
}

/* Writes what is buffered as a whole or not at all: half a block, on a full disk, would make unreadable what other
 * processes append. The file is locked. Beyond the limit for the sizes of files, SIGXFSZ would end the program. */
static int append(struct roci_pcapng *p)
{
	struct roci_held_signal held;
	size_t done;
	off_t end;
	int err;

	roci_signal_hold(&held, SIGXFSZ);
	done = write_all(p->fd, p->buffer, p->used, &err);
	roci_signal_release(&held, err == -EFBIG);
	if (!err || !done)
		return err;
	end = lseek(p->fd, 0, SEEK_CUR);
	return end < (off_t)done || ftruncate(p->fd, end - (off_t)done) ? -EIO : err;
}

/* Writes the head to an empty file. A capture has it already, and libpcap reads no second one. Any other file is left
 * alone. */
static int begin(struct roci_pcapng *p)
{
	uint8_t there[HEAD_BYTES];
	ssize_t n = pread(p->fd, there, sizeof(there), 0);

	p->used = 0;
	put_head(p);
	if (n < 0)
		return -errno;
	if (!n)
		return append(p);
	return n == HEAD_BYTES && !memcmp(there, p->buffer, HEAD_BYTES) ? 0 : -EEXIST;
}

int roci_pcapng_name(const char *path, char *out, size_t size)
{
	const char *mark = strstr(path, "%p");
	int n = mark ? snprintf(out, size, "%.*s%d%s", (int)(mark - path), path, getpid(), mark + 2)
		     : snprintf(out, size, "%s", path);

	return n < 0 || (size_t)n >= size ? -ENAMETOOLONG : 0;
}

static int open_pipe(struct roci_pcapng *p, const char *path)
{
	p->fd = roci_pipe_open(path);
	if (p->fd < 0)
		return p->fd;
	p->pipe = true;
	put_head(p);
	roci_pcapng_flush(p);
	return p->fd < 0 ? -EPIPE : 0;
}

int roci_pcapng_open(struct roci_pcapng *p, const char *path)
{
	int err;

	p->used = p->packets = 0;
	p->pipe = p->stalled = p->locked_out = p->told_locked_out = false;
	p->dropped = p->told = 0;
	if (roci_pipe_is(path))
		return open_pipe(p, path);
	p->fd = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	if (p->fd < 0)
		return -errno;
	err = lock(p) ? begin(p) : -EBUSY;
	flock(p->fd, LOCK_UN);
	p->used = 0;
	if (err)
		close(p->fd);
	return err;
}

static void put_comment(struct roci_pcapng *p)
{
	const size_t len = sizeof(ROCI_PCAPNG_MADE_UP) - 1;

	put16(p, OPT_COMMENT);
	put16(p, (uint16_t)len);
	memset(p->buffer + p->used, 0, COMMENT_BYTES - 4);
	memcpy(p->buffer + p->used, ROCI_PCAPNG_MADE_UP, len);
	p->used += COMMENT_BYTES - 4;
}

uint8_t *roci_pcapng_packet(struct roci_pcapng *p, const struct roci_pcapng_about *about, uint32_t len)
{
	uint32_t padded = (len + 3) & ~3u, block = PACKET_HEAD + padded + PACKET_TAIL;
	uint8_t *bytes;

	block += about->made_up ? (uint32_t)COMMENT_BYTES : 0;
	if (p->used + block + STATISTICS_BYTES > sizeof(p->buffer))
		roci_pcapng_flush(p);
	p->packets++;
	put32(p, ENHANCED_PACKET);
	put32(p, block);
	put32(p, 0); /* interface */
	put32(p, (uint32_t)(about->time_ns >> 32));
	put32(p, (uint32_t)about->time_ns);
	put32(p, len);
	put32(p, about->original_len ? about->original_len : len);
	bytes = p->buffer + p->used;
	memset(bytes + len, 0, padded - len);
	p->used += padded;
	if (about->made_up)
		put_comment(p);
	put16(p, OPT_EPB_QUEUE);
	put16(p, 4);
	put32(p, about->pid);
	put16(p, OPT_EPB_FLAGS);
	put16(p, 4);
	put32(p, about->direction);
	put32(p, 0);
	put32(p, block);
	return bytes;
}

void roci_pcapng_record(struct roci_pcapng *p, const struct roci_record *record)
{
	const uint32_t block = BLOCK_AROUND + ROCI_RECORD_BYTES;

	if (p->used + block + STATISTICS_BYTES > sizeof(p->buffer))
		roci_pcapng_flush(p);
	put32(p, ROCI_RECORD_BLOCK);
	put32(p, block);
	roci_record_build(record, p->buffer + p->used);
	p->used += ROCI_RECORD_BYTES;
	put32(p, block);
}

/* An interface statistics block: how many packets are not in the capture. */
static void put_dropped(struct roci_pcapng *p)
{
	put32(p, STATISTICS);
	put32(p, STATISTICS_BYTES);
	put32(p, 0); /* interface */
	put32(p, 0); /* time: not told */
	put32(p, 0);
	put16(p, OPT_ISB_IFDROP);
	put16(p, 8);
	put32(p, (uint32_t)p->dropped);
	put32(p, (uint32_t)(p->dropped >> 32));
	put32(p, 0); /* end of options */
	put32(p, STATISTICS_BYTES);
}

/* Once. */
static void say_locked_out(struct roci_pcapng *p)
{
	if (!p->told_locked_out)
		roci_device_say("roci: another process keeps the capture's lock; it is stopped or hangs. Until it goes "
				"on or ends, packets are not in the capture.\n");
	p->told_locked_out = true;
}

/* Writes the buffer, or drops it. */
static int write_out(struct roci_pcapng *p)
{
	int err;

	if (!lock(p)) {
		say_locked_out(p);
		p->dropped += p->packets;
		return 0;
	}
	if (p->told < p->dropped)
		put_dropped(p);
	err = p->pipe ? roci_pipe_write(p->fd, p->buffer, p->used, &p->stalled) : append(p);
	flock(p->fd, LOCK_UN);
	if (err == -EAGAIN) {
		p->dropped += p->packets;
		return 0;
	}
	p->told = p->dropped;
	return err;
}

void roci_pcapng_flush(struct roci_pcapng *p)
{
	int err;

	if (!p->used || p->fd < 0)
		return;
	err = write_out(p);
	p->used = p->packets = 0;
	if (!err)
		return;
	if (err != -EPIPE) /* a reader that has seen enough is no failure */
		roci_device_say("roci: the capture ends early: %s%s; what is in the file is good, later packets are "
				"not in it\n",
				strerror(-err), err == -EFBIG ? " (see `ulimit -f`)" : "");
	close(p->fd);
	p->fd = -1;
}

void roci_pcapng_close(struct roci_pcapng *p)
{
	roci_pcapng_flush(p);
	if (p->fd >= 0)
		close(p->fd);
}
