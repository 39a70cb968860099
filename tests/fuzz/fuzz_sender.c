/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The mover's sender after the handshake, and a receiver who knows the ticket and breaks the protocol, led by a script
 * of bytes. The whole of mover_send() runs, on a few files in memory. The receiver accepts, answers offers with any
 * verdicts, says that it has chunks, grants windows in all three modes, acknowledges what was never sent, and says any
 * message at any time.
 *
 * No descriptor or object may be left, all that is sent must lie in registered memory, and the session must end.
 *
 * With -DROCI_LIBFUZZER and -fsanitize=fuzzer this is a libFuzzer target. Without them it is a program that draws its
 * scripts at random: fuzz_sender [iterations [seed]].
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "mover/chunk_cipher.h"
#include "mover/stop.h"
#include "mover_peer.h"
#include "room.h"
#include "script.h"
#include "seeded.h"

#define FILES       5
#define CHUNK_BYTES PROTO_MIN_CHUNK

static struct {
	struct mover_peer peer;
	struct rdma_cm_id *control;
	struct proto_terms terms; /* as proposed, then as answered */
	bool proposed, answered, gone, end_came;
	bool hasty;               /* the receiver says things before anything was offered */
	uint32_t offered, judged; /* entries */
	uint16_t offers[FILES];   /* ring: how many entries each offer has that was not answered */
	unsigned offer_first, offer_count;
	enum mover_kind kinds[FILES]; /* by number, */
	uint64_t sizes[FILES];        /* also */
	uint64_t seq;                 /* of the next descriptor */
	uint32_t complete[FILES];     /* entries that were sent to their last segment, and not acknowledged */
	unsigned complete_count;
	struct proto_descriptor last;   /* READ: the one that was granted last, */
	struct proto_descriptor before; /* and the one before it */
} world;

/* The first offer goes before the answer to the terms. What is too many is offered again. */
static void cut_first_offer(void)
{
	if (!world.answered || world.offered <= world.terms.max_entries || world.offer_count != 1 || world.judged)
		return;
	world.offered = world.terms.max_entries;
	world.offers[world.offer_first % FILES] = world.terms.max_entries;
}

/* ---- the receiver's messages ---- */

static bool answer_terms(void)
{
	uint8_t bytes[64];
	struct cursor_out out = cursor_out(bytes, sizeof(bytes));

	world.answered = true;
	world.terms.session = one_in(60) ? 0 : 5;
	/* A hasty peer answers what was not proposed: with zeros. */
	if (world.proposed && one_in(4))
		world.terms.qps = 1;
	if (world.proposed && one_in(4))
		world.terms.windows = (uint16_t)(1 + below(world.terms.windows + one_in(30)));
	if (world.proposed && one_in(4))
		world.terms.max_entries = (uint16_t)(1 + below(one_in(2) ? FILES : world.terms.max_entries));
	cut_first_offer();
	if (one_in(60))
		world.terms.mode = (enum mover_mode)below(3);
	proto_put_terms(&out, &world.terms);
	if (one_in(60))
		script_fill(bytes, 16);
	return mover_peer_say(&world.peer, PROTO_TERMS, &out);
}

static enum proto_verdict any_verdict(uint32_t entry)
{
	enum mover_kind kind = world.kinds[entry % FILES];

	if (one_in(60))
		return (enum proto_verdict)below(7);
	if (one_in(8))
		return one_in(2) ? PROTO_REFUSED : PROTO_UNCHANGED;
	if (world.terms.dry_run)
		return PROTO_WOULD;
	return kind == MOVER_FILE ? PROTO_WANT : PROTO_DONE;
}

static bool say_verdict(void)
{
	uint8_t bytes[2048];
	struct cursor_out out = cursor_out(bytes, sizeof(bytes));
	uint16_t count = world.offer_count ? world.offers[world.offer_first % FILES] : (uint16_t)below(3);

	if (!world.offer_count && !one_in(60))
		return false;
	put_u32(&out, one_in(60) ? (uint32_t)below(9) : world.judged);
	put_u16(&out, one_in(60) ? (uint16_t)below(9) : count);
	for (unsigned i = 0; i < count; i++) {
		struct proto_result result = {.verdict = any_verdict(world.judged + i),
					      .status = (enum mover_status)below(13),
					      .text = proto_text("why")};

		proto_put_result(&out, &result, false);
	}
	if (!mover_peer_say(&world.peer, PROTO_VERDICT, &out))
		return false;
	world.judged += count;
	if (world.offer_count) {
		world.offer_first++;
		world.offer_count--;
	}
	return true;
}

/* Chunks of the sparse file are all 7s, or a hole. */
static bool say_have(void)
{
	static uint8_t chunk[CHUNK_BYTES];
	uint8_t bytes[256];
	struct cursor_out out = cursor_out(bytes, sizeof(bytes));
	uint64_t chunks = (world.sizes[world.judged % FILES] + CHUNK_BYTES - 1) / CHUNK_BYTES;
	uint64_t first = one_in(60) ? below(UINT32_MAX) : below(chunks + 1);
	uint16_t count = (uint16_t)(one_in(60) ? below(6) : below(chunks + 1 - (first > chunks ? chunks : first)));
	bool possible = world.judged < world.offered && world.kinds[world.judged % FILES] == MOVER_FILE;
	uint8_t untold = one_in(3);
	struct mover_digest digest;

	if (!possible && !one_in(60))
		return false;
	memset(chunk, 7, sizeof(chunk));
	digest = mover_digest_of(chunk, sizeof(chunk));
	put_u32(&out, one_in(60) ? (uint32_t)below(9) : world.judged);
	put_u64(&out, first);
	put_u8(&out, one_in(60) ? (uint8_t)below(256) : untold);
	put_u16(&out, count);
	for (unsigned i = 0; i < count && !untold; i++) {
		if (one_in(4))
			script_fill(digest.bytes, 1);
		put_bytes(&out, digest.bytes, sizeof(digest.bytes));
	}
	return mover_peer_say(&world.peer, PROTO_HAVE, &out);
}

static bool say_grant(void)
{
	uint8_t bytes[512];
	struct cursor_out out = cursor_out(bytes, sizeof(bytes));
	uint16_t count = (uint16_t)(1 + below(4));

	if (world.terms.mode == MOVER_READ && !one_in(60))
		return false;
	put_u16(&out, one_in(60) ? (uint16_t)below(300) : count);
	for (unsigned i = 0; i < count; i++) {
		struct proto_grant g = {
			.window = (uint16_t)below(8),
			.lane = (uint16_t)(one_in(60) ? below(99) : below(world.terms.qps ? world.terms.qps : 1u)),
			.len = world.terms.chunk_bytes + CHUNK_CIPHER_TAG_BYTES + one_in(60),
			.addr = ONE_OF(0, 4096, UINT64_MAX),
			.rkey = 9,
		};

		proto_put_grant(&out, &g);
	}
	return mover_peer_say(&world.peer, PROTO_GRANT, &out);
}

static bool say_ack(void)
{
	uint8_t bytes[512];
	struct cursor_out out = cursor_out(bytes, sizeof(bytes));
	unsigned count = world.complete_count ? 1 + (unsigned)below(world.complete_count) : one_in(60);

	put_u64(&out, one_in(40) ? below(UINT32_MAX) : world.seq);
	put_u64(&out, below(1000));
	put_u16(&out, (uint16_t)count);
	for (unsigned i = 0; i < count; i++) {
		struct proto_result result = {.verdict = one_in(6) ? PROTO_REFUSED : PROTO_DONE,
					      .entry = world.complete[i],
					      .status = (enum mover_status)below(13),
					      .text = proto_text("why")};

		if (one_in(60))
			result.entry = (uint32_t)below(9);
		proto_put_result(&out, &result, true);
	}
	if (!mover_peer_say(&world.peer, PROTO_ACK, &out))
		return false;
	if (world.complete_count)
		memmove(world.complete, world.complete + count,
			(world.complete_count -= count) * sizeof(world.complete[0]));
	return true;
}

static bool say_fin(void)
{
	uint8_t bytes[64];
	struct cursor_out out = cursor_out(bytes, sizeof(bytes));

	if ((world.terms.mode != MOVER_READ || !world.last.bytes) && !one_in(60))
		return false;
	if (one_in(60))
		world.last.window = (uint16_t)below(300);
	if (world.before.bytes && !one_in(4)) {
		world.before.count = world.before.bytes = 0;
		proto_put_descriptor(&out, &world.before);
	}
	world.last.count = 0;
	world.last.bytes = 0;
	proto_put_descriptor(&out, &world.last);
	return mover_peer_say(&world.peer, PROTO_FIN, &out);
}

static bool say_end(enum proto_type type)
{
	uint8_t bytes[512];
	struct cursor_out out = cursor_out(bytes, sizeof(bytes));
	struct proto_end end = {.status = one_in(3) ? (enum mover_status)below(13) : MOVER_OK,
				.text = proto_text("an end")};

	if (type == PROTO_END && !world.end_came && !one_in(60))
		return false;
	end.failed = below(3);
	proto_put_end(&out, &end);
	return mover_peer_say(&world.peer, type, &out);
}

/* ---- what the sender says ---- */

static void hear_offer(struct cursor_in *in)
{
	struct mover_entry e;
	uint32_t first;
	uint16_t count;

	CHECK(!proto_get_list(in, &first, &count, PROTO_MAX_ENTRIES) && first == world.offered && count <= FILES);
	for (unsigned i = 0; i < count; i++) {
		CHECK(!proto_get_entry(in, &e) && first + i < FILES);
		world.kinds[first + i] = e.kind;
		world.sizes[first + i] = e.size;
	}
	world.offered += count;
	world.offers[(world.offer_first + world.offer_count++) % FILES] = count;
	cut_first_offer();
}

/* A descriptor is as the receiver's reader wants it, and counts up. */
static void hear_descriptor(struct cursor_in *in)
{
	struct proto_segment s;
	struct cursor_in segments;

	world.before = world.last;
	CHECK(!proto_get_descriptor(in, &world.last) && !proto_get_segments(in, &world.last, &segments));
	CHECK(world.last.seq == world.seq && world.last.bytes <= world.terms.chunk_bytes);
	world.seq++;
	for (unsigned i = 0; i < world.last.count; i++) {
		CHECK(!proto_get_segment(&segments, &s) && s.entry < world.offered);
		if (s.last && s.kind != PROTO_GIVEN_UP && world.complete_count < FILES)
			world.complete[world.complete_count++] = s.entry;
	}
}

/* A peer that has said how many descriptors it takes gets them together. */
static void hear_fin(struct cursor_in *in)
{
	do
		hear_descriptor(in);
	while (world.peer.takes && in->at != in->end);
	CHECK(in->at == in->end);
}

static void hear_grant(struct cursor_in *in)
{
	uint16_t count = get_u16(in);
	struct proto_grant g;

	CHECK(count && (count == 1 || world.peer.takes) && world.terms.mode == MOVER_READ);
	while (count-- > 0) {
		CHECK(!proto_get_grant(in, &g));
		hear_descriptor(in);
	}
	CHECK(in->at == in->end);
}

static void hear_control(const struct fake_send *send)
{
	struct cursor_in in;

	switch (mover_peer_hear(&world.peer, send, &in)) {
	case PROTO_TERMS:
		CHECK(!proto_get_terms(&in, &world.terms));
		world.proposed = true;
		break;
	case PROTO_OFFER: hear_offer(&in); break;
	case PROTO_FIN: hear_fin(&in); break;
	case PROTO_GRANT: hear_grant(&in); break;
	case PROTO_END: world.end_came = true; break;
	default: break;
	}
}

void fake_posted(struct fake_qp *qp, const struct fake_send *send)
{
	if (qp == world.peer.control)
		hear_control(send);
	else
		CHECK(send->wr.opcode == IBV_WR_SEND || world.terms.mode == MOVER_WRITE);
}

/* ---- connections ---- */

static struct mover_ticket ticket = {.host = "x", .secret = "a secret"};

static void accept_control(struct rdma_cm_id *id)
{
	uint8_t answer[PROTO_ANSWER_BYTES], len;

	if (world.peer.secure)
		mover_peer_destroy(&world.peer); /* the sender tries again */
	mover_peer_init(&world.peer, mover_secure_receiver(ticket.secret));
	world.peer.control = fake_qp_of(id);
	world.control = id;
	world.gone = world.proposed = world.answered = world.end_came = false;
	world.offered = world.judged = 0;
	world.offer_count = world.complete_count = 0;
	world.seq = 0;
	world.last.bytes = world.before.bytes = 0;
	len = mover_peer_answer(&world.peer, answer);
	world.peer.spoiled = one_in(60);
	if (world.peer.spoiled && one_in(2))
		script_fill(answer + below(len), 1);
	else if (world.peer.spoiled)
		len = (uint8_t)below(len);
	fake_event(id, RDMA_CM_EVENT_ESTABLISHED, 0, answer, len);
}

void fake_called(struct rdma_cm_id *id, enum fake_call call, const struct rdma_conn_param *param)
{
	struct proto_request request;

	for (unsigned i = 0; i < MOVER_PEER_LANES && call == FAKE_DESTROY; i++)
		if (world.peer.lanes[i] == id)
			world.peer.lanes[i] = NULL;
	if (call != FAKE_CONNECT)
		return;
	CHECK(!proto_get_request(param->private_data, param->private_data_len, &request));
	if (request.data && one_in(60)) {
		fake_event(id, RDMA_CM_EVENT_REJECTED, (int)below(30), &request, (uint8_t)below(17));
		return;
	}
	if (!request.data) {
		accept_control(id);
		return;
	}
	world.peer.lanes[request.index % MOVER_PEER_LANES] = id;
	fake_event(id, RDMA_CM_EVENT_ESTABLISHED, 0, NULL, 0);
}

static void hang_up(void)
{
	if (!world.gone)
		fake_event(world.control, RDMA_CM_EVENT_DISCONNECTED, 0, NULL, 0);
	world.gone = true;
}

/* ---- the story ---- */

/* True: there is something for the sender. */
static bool peer_step(void)
{
	if (world.proposed && !world.answered)
		return answer_terms();
	if (!world.offered && !world.hasty)
		return false;
	switch (below(20)) {
	case 0: return one_in(24) && mover_peer_say_anything(&world.peer);
	case 1: return say_end(PROTO_END);
	case 2: return one_in(60) && say_end(PROTO_ERROR);
	case 3: return mover_peer_say(&world.peer, PROTO_PING, NULL);
	case 4:
		if (one_in(100))
			mover_peer_complete(&world.peer, IBV_WC_RETRY_EXC_ERR);
		return false;
	case 5:
		if (one_in(60))
			hang_up();
		return world.gone;
	case 6: return one_in(60) && answer_terms();
	case 7: return say_have();
	case 8:
	case 9:
	case 10: return say_verdict();
	case 11:
	case 12: return say_grant();
	case 13:
	case 14: return say_ack();
	case 15: return say_fin();
	default: usleep(100); return false; /* reads of files end */
	}
}

bool fake_peer_turn(void)
{
	if (!world.peer.control || world.gone)
		return false;
	if (world.peer.control->send_count && !one_in(4)) {
		mover_peer_complete(&world.peer, IBV_WC_SUCCESS);
		return true;
	}
	if (!script_ended())
		return peer_step();
	hang_up();
	return false;
}

static void run_session(void)
{
	const char *const paths[] = {room_path()};
	struct mover_send_options options = {
		.common = {.memory_bytes = 1u << 20,
			   .chunk_bytes = CHUNK_BYTES,
			   .qps = MOVER_PEER_LANES,
			   .no_uring = true,
			   .poll = true,
			   .retry_ms = one_in(8) ? 20 : 0},
		.paths = paths,
		.path_count = 1,
		.host = "127.0.0.1",
		.port = 7,
		.ticket = &ticket,
		.mode = (enum mover_mode)below(3),
		.encrypt = one_in(2),
		.checksum = one_in(4),
		.dry_run = one_in(12),
	};
	enum mover_status status;

	world.hasty = one_in(30);
	status = mover_send(&options, mover_peer_take_event, NULL);

	mover_peer_ended(status);
	if (world.peer.secure)
		mover_peer_destroy(&world.peer);
}

static void put_file(const char *name, size_t len, off_t hole)
{
	char path[128];
	uint8_t *bytes = malloc(len + 1);
	int fd;

	snprintf(path, sizeof(path), "%s/%s", room_path(), name);
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	CHECK(bytes && fd >= 0);
	memset(bytes, 7, len);
	CHECK(write(fd, bytes, len) == (ssize_t)len && !ftruncate(fd, (off_t)len + hole));
	close(fd);
	free(bytes);
}

/* With the folder itself there are FILES of them. */
static void prepare(void)
{
	static bool ready;
	char path[128];

	if (ready)
		return;
	ready = true;
	put_file("empty", 0, 0);
	put_file("long", 3 * CHUNK_BYTES + 100, 2 * CHUNK_BYTES);
	put_file("short", 100, 0);
	snprintf(path, sizeof(path), "%s/link", room_path());
	CHECK(!symlink("short", path));
	mover_stop_fd();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	int before;

	prepare();
	before = free_descriptor();
	memset(&world, 0, sizeof(world));
	script_begin(bytes, len);
	run_session();
	CHECK(!fake_objects());
	CHECK(free_descriptor() == before); /* none is left */
	return 0;
}

#ifndef ROCI_LIBFUZZER

int main(int argc, char **argv)
{
	unsigned long runs = seeded_scripts(argc, argv, 300, 1000), stored = mover_peer_report();

	CHECK(runs < 300 || stored);
	return 0;
}

#endif
