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
#include "wire/record.h"

#define TRIM_BYTES      (16u << 20)
#define ENHANCED_PACKET 6u
#define PACKET_HEAD     28u /* of an enhanced packet block, before the packet */
#define BLOCK_HEAD      8u  /* of any block: type and length */
#define BLOCK_MAX       (1u << 17)
#define OUTBOUND        2u
#define MAX_HEADERS     128u /* of IP, UDP and transport: what of a packet is read */
#define HALF_PSN        0x800000u
#define MARK_TRIES      10000
#define MARK_PAUSE_US   100
#define WC_OF_RECEIVES  128u /* and all above it: enum ibv_wc_opcode */

static int fd = -1;
static bool ours; /* the record is in memory, and nobody else's */

/* The user's capture. Of a pipe or a device nothing can be read back: then there is no record. Opening a named pipe to
 * read it would also wait for its writer, which is this process. */
static int open_named(const char *path)
{
	struct stat st;

	fd = open(path, O_RDONLY | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0600);
	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) || !S_ISREG(st.st_mode)) {
		close(fd);
		fd = -1;
	}
	return 0;
}

int record_open(void)
{
	const char *path = getenv("ROCI_CAPTURE");
	char name[64];

	if (fd >= 0)
		return 0;
	if (path && *path)
		return open_named(path);
	fd = memfd_create("roci record", MFD_CLOEXEC);
	if (fd < 0)
		return -errno;
	ours = true;
	snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
	return setenv("ROCI_CAPTURE", name, 1) ? -errno : 0;
}

static uint32_t get32(const uint8_t *bytes)
{
	uint32_t value;

	memcpy(&value, bytes, sizeof(value)); /* the device writes in this machine's order */
	return value;
}

static off_t size_now(void)
{
	struct stat st;

	return fd >= 0 && !fstat(fd, &st) ? st.st_size : 0;
}

bool record_on(void)
{
	return size_now() > 0;
}

/* A block ends with its length, as it begins with its type and that. */
static bool ends_with_block(off_t size)
{
	uint8_t head[BLOCK_HEAD], tail[4];
	uint32_t len;

	if (pread(fd, tail, sizeof(tail), size - (off_t)sizeof(tail)) != sizeof(tail))
		return false;
	len = get32(tail);
	return len >= 12 && len <= BLOCK_MAX && len <= size &&
	       pread(fd, head, sizeof(head), size - len) == sizeof(head) && get32(head + 4) == len;
}

/* The device's thread may be writing, and the file ends at a page of what it writes. From within a block nothing can be
 * read. */
off_t record_mark(void)
{
	off_t size = size_now();

	for (unsigned i = 0; size && !ends_with_block(size) && i < MARK_TRIES; i++) {
		usleep(MARK_PAUSE_US);
		size = size_now();
	}
	return size;
}

void record_trim(void)
{
	if (ours && size_now() > (off_t)TRIM_BYTES && ftruncate(fd, 0))
		ours = false;
}

/* ---- reading the capture ---- */

struct seen {
	enum { SEEN_OTHER, SEEN_PACKET, SEEN_RECORD } what;
	uint64_t time_ns;
	bool outbound; /* of a packet */
	struct roci_packet packet;
	struct roci_record record;
};

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

/* The packet in a block at `at`, of which the first `n` bytes are here. */
static void take_packet(const uint8_t *block, uint32_t n, off_t at, uint32_t block_len, struct seen *seen)
{
	uint32_t len = get32(block + 20), have = n - PACKET_HEAD < len ? n - PACKET_HEAD : len;
	uint8_t flags[4];

	/* the flags are followed by the end of the options and the block's length */
	if (pread(fd, flags, sizeof(flags), at + block_len - 12) != sizeof(flags) ||
	    !parse(block + PACKET_HEAD, have, len, &seen->packet))
		return;
	seen->what = SEEN_PACKET;
	seen->outbound = (get32(flags) & 3) == OUTBOUND;
	seen->time_ns = (uint64_t)get32(block + 12) << 32 | get32(block + 16);
}

/* Reads the block at *at, and goes on to the next. Returns false at the end of the record. */
static bool next(off_t *at, struct seen *seen)
{
	uint8_t block[BLOCK_HEAD + ROCI_RECORD_BYTES];
	ssize_t n = pread(fd, block, sizeof(block), *at);
	uint32_t block_len;

	_Static_assert(sizeof(block) >= PACKET_HEAD + MAX_HEADERS, "room for the headers of a packet");
	seen->what = SEEN_OTHER;
	if (n < 12)
		return false;
	block_len = get32(block + 4);
	if (block_len < 12 || block_len > BLOCK_MAX || block_len % 4)
		return false;
	if (get32(block) == ENHANCED_PACKET && n > (ssize_t)PACKET_HEAD) {
		take_packet(block, (uint32_t)n, *at, block_len, seen);
	} else if (get32(block) == ROCI_RECORD_BLOCK &&
		   roci_record_parse(block + BLOCK_HEAD, (size_t)n - BLOCK_HEAD, false, &seen->record)) {
		seen->what = SEEN_RECORD;
		seen->time_ns = seen->record.time_ns;
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
static void take_response(const struct seen *seen, const struct request *request, struct record_operation *found)
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

	while (next(&at, &seen)) {
		if (seen.what != SEEN_PACKET || seen.outbound != near || seen.packet.dest_qpn != qpn ||
		    seen.packet.op->kind != request_kind(op))
			continue;
		if (last[1].complete && !asked_by_send(near, op))
			return; /* what follows is a control, or a repetition */
		take_request(&seen, last);
	}
}

/* The record that the device took a WQE, or executed a request. */
static bool is_taken(const struct roci_record *r, bool near, enum tour_op op)
{
	if (near)
		return r->kind == ROCI_RECORD_SEND_TAKEN;
	if (request_kind(op) == ROCI_KIND_SEND || op == TOUR_WRITE_IMM)
		return r->kind == ROCI_RECORD_RECV_TAKEN;
	return r->kind == ROCI_RECORD_EXECUTED && roci_opcode_info(r->opcode) &&
	       roci_opcode_info(r->opcode)->kind == request_kind(op);
}

/* What the device did at this end. The near device takes the WQE before the request's packet leaves, and the far one
 * acts after it came; so at the near end the last record before the packet is the operation's, at the far end the first
 * one after it. The completion follows, with the same wr_id. */
static void find_work(off_t at, bool near, enum tour_op op, uint32_t own_qpn, struct record_operation *found)
{
	uint64_t wr_id = 0;
	struct seen seen;

	while (!found->cqe_ns && next(&at, &seen)) {
		const struct roci_record *r = &seen.record;

		if (seen.what != SEEN_RECORD || r->qpn != own_qpn)
			continue;
		if (is_taken(r, near, op) &&
		    (near ? r->time_ns <= found->request_ns : !found->taken_ns && r->time_ns >= found->request_ns)) {
			found->taken_ns = r->time_ns;
			wr_id = r->wr_id;
			if (r->kind == ROCI_RECORD_EXECUTED)
				return; /* it completes nothing here */
		} else if (r->kind == ROCI_RECORD_COMPLETION && (r->opcode >= WC_OF_RECEIVES) == !near &&
			   found->taken_ns && r->wr_id == wr_id && (!near || r->time_ns >= found->request_ns)) {
			found->cqe_ns = r->time_ns;
		}
	}
}

void record_find(off_t mark, bool near, enum tour_op op, uint32_t own_qpn, uint32_t peer_qpn,
		 struct record_operation *found)
{
	struct request last[2] = {0};
	const struct request *request = asked_by_send(near, op) ? &last[0] : &last[1];
	off_t from = mark > size_now() ? 0 : mark, at;
	struct seen seen;

	*found = (struct record_operation){0};
	find_request(from, near, op, near ? peer_qpn : own_qpn, last);
	if (!request->packets)
		return;
	found->request_ns = request->first.time_ns;
	found->request_packets = request->packets;
	snprintf(found->request_name, sizeof(found->request_name), "%s", request->first.packet.op->name);
	find_work(from, near, op, own_qpn, found);
	for (at = from; next(&at, &seen);) {
		if (seen.what == SEEN_PACKET && seen.outbound != near && seen.packet.op->response &&
		    seen.packet.dest_qpn == (near ? own_qpn : peer_qpn))
			take_response(&seen, request, found);
	}
}
