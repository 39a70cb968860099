/* SPDX-License-Identifier: BSD-2-Clause */
#include "tour/record.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "wire/packet.h"

#define TRIM_BYTES      (16u << 20)
#define ENHANCED_PACKET 6u
#define PACKET_HEAD     28u /* of an enhanced packet block, before the packet */
#define BLOCK_MAX       (1u << 17)
#define OUTBOUND        2u
#define MAX_HEADERS     128u /* of IP, UDP and transport: what of a packet is read */
#define HALF_PSN        0x800000u

static int fd = -1;
static bool ours; /* the record is in memory, and nobody else's */

int record_open(void)
{
	const char *path = getenv("ROCI_CAPTURE");
	char name[64];

	if (fd >= 0)
		return 0;
	if (path && *path) {
		fd = open(path, O_RDONLY | O_CREAT | O_CLOEXEC, 0600);
		return fd < 0 ? -errno : 0;
	}
	fd = memfd_create("roci record", MFD_CLOEXEC);
	if (fd < 0)
		return -errno;
	ours = true;
	snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
	return setenv("ROCI_CAPTURE", name, 1) ? -errno : 0;
}

bool record_on(void)
{
	return fd >= 0 && record_mark() > 0;
}

off_t record_mark(void)
{
	struct stat st;

	return fd >= 0 && !fstat(fd, &st) ? st.st_size : 0;
}

void record_trim(void)
{
	if (ours && record_mark() > (off_t)TRIM_BYTES && ftruncate(fd, 0))
		ours = false;
}

/* ---- reading the capture ---- */

struct seen {
	uint64_t time_ns;
	bool outbound;
	struct roci_packet packet;
};

static uint32_t get32(const uint8_t *bytes)
{
	uint32_t value;

	memcpy(&value, bytes, sizeof(value)); /* the device writes in this machine's order */
	return value;
}

/* The transport packet in a raw IP packet, of which only the headers are here. */
static bool parse(const uint8_t *ip, uint32_t have, uint32_t len, struct roci_packet *packet)
{
	static _Thread_local uint8_t whole[1 << 16];
	uint32_t before = (have && ip[0] >> 4 == 4 ? (ip[0] & 15u) * 4 : 40u) + 8;

	if (len < before || have < before || len - before > sizeof(whole))
		return false;
	/* The parser checks the length against the headers. The payload itself is not looked at. */
	memcpy(whole, ip + before, have - before);
	return roci_packet_parse(packet, whole, len - before) == ROCI_PARSE_OK;
}

/* Reads the block at *at, and goes on to the next. Returns false at the end of the record. *is: it was a packet. */
static bool next(off_t *at, struct seen *seen, bool *is)
{
	uint8_t block[PACKET_HEAD + MAX_HEADERS];
	ssize_t n = pread(fd, block, sizeof(block), *at);
	uint32_t block_len, len, have;
	uint8_t flags[4];

	*is = false;
	if (n < 12)
		return false;
	block_len = get32(block + 4);
	if (block_len < 12 || block_len > BLOCK_MAX || block_len % 4)
		return false;
	if (get32(block) == ENHANCED_PACKET && n > (ssize_t)PACKET_HEAD) {
		len = get32(block + 20);
		have = (uint32_t)n - PACKET_HEAD < len ? (uint32_t)n - PACKET_HEAD : len;
		/* the flags are followed by the end of the options and the block's length */
		*is = pread(fd, flags, sizeof(flags), *at + block_len - 12) == sizeof(flags) &&
		      parse(block + PACKET_HEAD, have, len, &seen->packet);
		seen->outbound = (get32(flags) & 3) == OUTBOUND;
		seen->time_ns = (uint64_t)get32(block + 12) << 32 | get32(block + 16);
	}
	*at += block_len;
	return true;
}

static unsigned request_kind(enum tour_op op)
{
	switch (op) {
	case TOUR_WRITE:
	case TOUR_WRITE_IMM: return ROCI_KIND_WRITE;
	case TOUR_READ: return ROCI_KIND_READ_REQUEST;
	case TOUR_CAS:
	case TOUR_FAA: return ROCI_KIND_ATOMIC;
	case TOUR_ATOMIC_WRITE: return ROCI_KIND_ATOMIC_WRITE;
	case TOUR_FLUSH: return ROCI_KIND_FLUSH;
	default: return ROCI_KIND_SEND;
	}
}

/* A message or request: its first packet, and how many it has. */
struct request {
	struct seen first;
	unsigned packets;
	bool complete;
};

/* A packet that was sent again does not count: its PSN is not the next one. */
static void take_request(const struct seen *seen, struct request last[2])
{
	bool first = seen->packet.op->first || seen->packet.op->kind == ROCI_KIND_READ_REQUEST;
	uint32_t distance = (seen->packet.psn - last[1].first.packet.psn) & ROCI_PSN_MASK;

	if (first && (!last[1].packets || distance - 1 < HALF_PSN)) {
		last[0] = last[1];
		last[1] = (struct request){.first = *seen};
	} else if (first || distance != last[1].packets) {
		return;
	}
	last[1].packets++;
	last[1].complete |= seen->packet.op->last;
}

/* A READ's response has a kind of its own. Of acknowledgements, those of what follows do not count; unless one of them
 * is the first: then it acknowledges this request, too (IBTA 9.7.5.1.2). */
static void take_response(const struct seen *seen, const struct request *request, struct record_packets *found)
{
	uint32_t distance = (seen->packet.psn - request->first.packet.psn) & ROCI_PSN_MASK;
	bool read = request->first.packet.op->kind == ROCI_KIND_READ_REQUEST;

	if (distance >= HALF_PSN || (read && seen->packet.op->kind != ROCI_KIND_READ_RESPONSE))
		return;
	if (!read && found->response_packets && distance >= request->packets)
		return;
	if (!found->response_packets++) {
		found->response_ns = seen->time_ns;
		snprintf(found->response_name, sizeof(found->response_name), "%s", seen->packet.op->name);
	}
}

/* At the far end of a SEND the control that asks is a SEND, too. */
static bool asked_by_send(bool near, enum tour_op op)
{
	return !near && request_kind(op) == ROCI_KIND_SEND;
}

static void find_request(off_t at, bool near, enum tour_op op, uint32_t qpn, struct request last[2])
{
	struct seen seen;
	bool is;

	while (next(&at, &seen, &is)) {
		if (!is || seen.outbound != near || seen.packet.dest_qpn != qpn ||
		    seen.packet.op->kind != request_kind(op))
			continue;
		if (last[1].complete && !asked_by_send(near, op))
			return; /* what follows is a control, or a repetition */
		take_request(&seen, last);
	}
}

void record_find(off_t mark, bool near, enum tour_op op, uint32_t own_qpn, uint32_t peer_qpn,
		 struct record_packets *found)
{
	struct request last[2] = {0};
	const struct request *request = asked_by_send(near, op) ? &last[0] : &last[1];
	off_t from = mark > record_mark() ? 0 : mark, at;
	struct seen seen;
	bool is;

	*found = (struct record_packets){0};
	find_request(from, near, op, near ? peer_qpn : own_qpn, last);
	if (!request->packets)
		return;
	found->request_ns = request->first.time_ns;
	found->request_packets = request->packets;
	snprintf(found->request_name, sizeof(found->request_name), "%s", request->first.packet.op->name);
	for (at = from; next(&at, &seen, &is);) {
		if (is && seen.outbound != near && seen.packet.op->response &&
		    seen.packet.dest_qpn == (near ? own_qpn : peer_qpn))
			take_response(&seen, request, found);
	}
}
