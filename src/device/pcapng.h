/* SPDX-License-Identifier: BSD-2-Clause */
/* A writer of pcapng files (draft-ietf-opsawg-pcapng): one section, one interface of raw IP packets, nanoseconds; and
 * between the packets, records of what the program does (wire/record.h). */
#ifndef ROCI_DEVICE_PCAPNG_H
#define ROCI_DEVICE_PCAPNG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/record.h"

#define ROCI_PCAPNG_INBOUND  1
#define ROCI_PCAPNG_OUTBOUND 2

struct roci_pcapng {
	int fd; /* -1: writing failed, and the capture is over */
	bool pipe, stalled;
	bool locked_out, told_locked_out; /* another process keeps the lock; somebody was told */
	uint32_t packets;                 /* in the buffer */
	uint64_t dropped, told; /* packets that a pipe had no room for, or that came while the capture was locked; of
				   them, those that the reader knows of */
	size_t used;
	uint8_t buffer[1 << 19];
};

/* Writes `path` to `out`, with the process id in place of "%p". Returns 0 or -ENAMETOOLONG. */
int roci_pcapng_name(const char *path, char *out, size_t size);

/* Opens `path` to append to it. It is empty or a capture of this function; another process may be writing it. Or it is
 * a pipe: then each process begins with a head of its own. Returns 0, -EEXIST for a file of another kind, -EBUSY for
 * one that a stopped process has locked, -ENXIO for a pipe that nobody reads, or another negative errno. */
int roci_pcapng_open(struct roci_pcapng *p, const char *path);

/* What the block of an IP packet says beside its bytes. */
struct roci_pcapng_about {
	uint64_t time_ns; /* of CLOCK_REALTIME */
	uint32_t pid;     /* the process that sent or received it */
	uint32_t direction;
	uint32_t original_len; /* bytes that the packet has; 0: all of them are in the capture */
	bool made_up;          /* no packet was sent: it gets ROCI_PCAPNG_MADE_UP as its comment */
};
#define ROCI_PCAPNG_MADE_UP "made up: it went through shared memory (the local path), not as a packet"

/* Makes room for `len` bytes (less than 64 KiB) of an IP packet. Returns where the caller writes them. */
uint8_t *roci_pcapng_packet(struct roci_pcapng *p, const struct roci_pcapng_about *about, uint32_t len);

/* Adds a record. */
void roci_pcapng_record(struct roci_pcapng *p, const struct roci_record *record);

/* Writes what is buffered: whole blocks, in one call. Where that fails (the disk is full, or the file would be larger
 * than `ulimit -f` allows: no SIGXFSZ is raised), the file stays as it was, a line on stderr says so, and nothing more
 * is written. Where a pipe has no room, or another process keeps the lock, the packets are dropped, and a block tells
 * the reader of it later. */
void roci_pcapng_flush(struct roci_pcapng *p);
void roci_pcapng_close(struct roci_pcapng *p);

#endif
