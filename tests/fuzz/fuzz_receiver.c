/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The mover's receiver after the handshake, and a sender who knows the ticket and breaks the protocol, led by a script
 * of bytes. The whole session runs as in `roci recv`: its loop, its workers, its disk (a folder in memory). The sender
 * offers entries of any kind and name, fills windows in all three modes, and says any message at any time.
 *
 * Nothing may be written outside of the folder, no descriptor or object may be left, and the session must end.
 *
 * With -DROCI_LIBFUZZER and -fsanitize=fuzzer this is a libFuzzer target. Without them it is a program that draws its
 * scripts at random: fuzz_receiver [iterations [seed]].
 */
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "mover/chain.h"
#include "mover/chunk_cipher.h"
#include "mover/receiver.h"
#include "mover/stop.h"
#include "mover_peer.h"
#include "room.h"
#include "script.h"
#include "seeded.h"

#define MAX_GRANTS  16
#define MAX_NAMES   8
#define CHUNK_BYTES PROTO_MIN_CHUNK

struct offered {
	uint64_t size;
	bool stream;
};

static struct {
	struct listener listener;
	struct receiver *r;
	struct mover_peer peer;
	struct proto_terms terms; /* as the receiver has answered */
	bool asked, agreed, joined, gone;
	struct proto_grant grants[MAX_GRANTS];
	unsigned grant_count;
	uint32_t next_entry;
	struct offered offered[64]; /* by number */
	uint32_t wanted[64];        /* ring: entries whose content has not been sent */
	unsigned wanted_first, wanted_count;
	uint64_t next_seq;
} world;

static uint8_t content[CHUNK_BYTES + CHUNK_CIPHER_TAG_BYTES]; /* of the window that is filled, or read */

/* ---- the sender's messages ---- */

/* Lets the workers finish what they do. True: they have. */
static bool let_workers_finish(void)
{
	struct pollfd fds[SESSION_MAX_POLLED];
	unsigned n = world.r->s.role->poll_fds(&world.r->s, fds);

	return poll(fds, n, 2) > 0;
}

static bool say_terms(void)
{
	uint8_t bytes[64];
	struct cursor_out out = cursor_out(bytes, sizeof(bytes));
	struct proto_terms t = {
		.mode = (enum mover_mode)below(3),
		.encrypt = one_in(2),
		.checksum = one_in(4),
		.dry_run = one_in(12),
		.qps = (uint16_t)(1 + below(MOVER_PEER_LANES)),
		.windows = (uint16_t)(1 + below(6)),
		.max_entries = (uint16_t)(1 + below(20)),
		.chunk_bytes = CHUNK_BYTES,
		.entries = ONE_OF(0, 1, 3, 5, 5, 12, 12, 12, UINT64_MAX),
		.bytes = ONE_OF(0, 1000, UINT64_MAX),
	};

	world.asked = true;
	proto_put_terms(&out, &t);
	if (one_in(32))
		script_fill(bytes, 16);
	return mover_peer_say(&world.peer, PROTO_TERMS, &out);
}

static struct mover_entry any_entry(void)
{
	static const char *const names[] = {"a", "b", "c", "d", "d/a", "d/e", "d/e/f", "a/b", "l/outside", "x\ny"};
	static const char *const bad[] = {
		"..", "../outside", "/outside", "d/../../outside", "", ".roci-0123456789abcdef.part"};
	static const char *const targets[] = {"a", "..", "../outside", "/etc", "d/../../outside"};
	const char *name = names[below(sizeof(names) / sizeof(names[0]))];
	const char *target = targets[below(sizeof(targets) / sizeof(targets[0]))];
	struct mover_entry e = {.kind = (enum mover_kind)ONE_OF(0, 0, 0, 1, 2, 3),
				.mode = (uint32_t)ONE_OF(0644, 0755, 07777, 0),
				.mtime_s = (int64_t)ONE_OF(0, 1600000000, INT64_MAX),
				.name = (const uint8_t *)(one_in(6) ? "l" : name)};

	if (one_in(40))
		e.name = (const uint8_t *)bad[below(sizeof(bad) / sizeof(bad[0]))];
	e.name_len = (uint16_t)strlen((const char *)e.name);
	if (e.kind == MOVER_FILE)
		e.size = ONE_OF(0, 1, 100, 4096, CHUNK_BYTES, CHUNK_BYTES + 1, 5 * CHUNK_BYTES, 1ull << 40, INT64_MAX);
	if (e.kind == MOVER_SYMLINK) {
		e.target = (const uint8_t *)target;
		e.target_len = (uint16_t)strlen(target);
		e.size = e.target_len;
	}
	return e;
}

static bool say_offer(void)
{
	uint8_t bytes[2048], *head;
	struct cursor_out out = cursor_out(bytes, sizeof(bytes));
	uint64_t left = world.terms.entries - world.next_entry;
	uint16_t count = (uint16_t)(1 + below(4));

	if (count > left && !one_in(30))
		count = (uint16_t)left;
	if (!count)
		return false;
	put_u32(&out, one_in(60) ? (uint32_t)below(100) : world.next_entry);
	head = cursor_take(&out, 2);
	for (unsigned i = 0; i < count; i++) {
		struct mover_entry e = any_entry();

		world.offered[world.next_entry++ % 64] = (struct offered){e.size, e.kind == MOVER_STREAM};
		proto_put_entry(&out, &e);
	}
	cursor_patch_u16(head, count);
	return mover_peer_say(&world.peer, PROTO_OFFER, &out);
}

/* The next segment of the entry whose turn it is, mostly as it should be. Returns the bytes of content. */
static uint32_t next_segment(struct proto_segment *s, const uint8_t *bytes, struct mover_digest *whole)
{
	uint32_t entry = world.wanted_count ? world.wanted[world.wanted_first] : (uint32_t)below(64);
	const struct offered *o = &world.offered[entry % 64];
	uint64_t chunks = o->size ? (o->size - 1) / CHUNK_BYTES + 1 : 1, left = o->size;

	*s = (struct proto_segment){.kind = (enum proto_segment_kind)(one_in(4) ? 1 + below(4) : PROTO_DATA),
				    .entry = one_in(60) ? (uint32_t)below(64) : entry,
				    .sparse = one_in(4),
				    .count = one_in(60) ? below(UINT32_MAX) : 1,
				    .last = true,
				    .size = o->size};
	if (chunks > 1 && s->kind == PROTO_DATA) { /* the rest is a hole: another segment */
		s->last = false;
		left = CHUNK_BYTES;
	}
	if (s->kind == PROTO_HOLE)
		s->count = chunks;
	s->len = s->kind == PROTO_DATA ? (uint32_t)(o->stream ? below(CHUNK_BYTES) : left) : 0;
	if (o->stream)
		s->size = s->len;
	s->digest = mover_digest_of(bytes, s->len);
	if (s->kind == PROTO_DATA)
		chain_chunk(whole, &s->digest);
	if (s->kind == PROTO_HOLE)
		chain_hole(whole, s->count);
	s->whole = *whole;
	s->text = proto_text("why");
	return s->len;
}

/* Segments of the next entries, with their content in `content`. */
static void fill(struct cursor_out *segments, struct proto_descriptor *d)
{
	unsigned count = 1 + (unsigned)below(3);
	uint32_t room = CHUNK_BYTES;

	memset(content, (int)below(256), sizeof(content));
	for (unsigned i = 0; i < count; i++) {
		struct mover_digest whole = {{0}};
		struct proto_segment s;
		uint32_t len = next_segment(&s, content + d->bytes, &whole);
		uint64_t chunks = (s.size + CHUNK_BYTES - 1) / CHUNK_BYTES;

		if (len > room)
			break;
		room -= len;
		d->bytes += len;
		d->count++;
		proto_put_segment(segments, &s);
		if (!s.last && !one_in(4)) {
			struct proto_segment hole = {.kind = PROTO_HOLE, .last = true, .entry = s.entry, .chunk = 1};

			hole.count = chunks - 1;
			hole.size = s.size;
			chain_hole(&whole, hole.count);
			hole.whole = whole;
			proto_put_segment(segments, &hole);
			d->count++;
		}
		if (!world.wanted_count)
			break;
		world.wanted_first = (world.wanted_first + 1) % 64;
		world.wanted_count--;
	}
}

static void seal(const struct proto_descriptor *d)
{
	if (!one_in(24))
		mover_secure_seal_chunk(world.peer.secure, world.terms.encrypt, d->seq, content, d->bytes);
}

static struct fake_qp *lane_qp(unsigned lane)
{
	return lane < MOVER_PEER_LANES && world.peer.lanes[lane] ? fake_qp_of(world.peer.lanes[lane]) : NULL;
}

static void say_done(unsigned lane, uint64_t seq, uint16_t window)
{
	uint8_t bytes[PROTO_DONE_BYTES];

	proto_put_done(bytes, seq, window);
	if (one_in(40))
		script_fill(bytes, sizeof(bytes));
	if (lane_qp(lane))
		fake_receive(lane_qp(lane), bytes, sizeof(bytes), false, 0);
}

/* By WRITE or SEND, where a window was granted. */
static void move_content(struct proto_descriptor *d)
{
	struct proto_grant g = world.grants[--world.grant_count];

	d->window = g.window;
	d->lane = world.terms.mode == MOVER_SEND ? g.lane : (uint16_t)below(MOVER_PEER_LANES);
	seal(d);
	if (world.terms.mode == MOVER_SEND) {
		if (lane_qp(d->lane))
			fake_receive(lane_qp(d->lane), content, d->bytes + CHUNK_CIPHER_TAG_BYTES, false, 0);
		return;
	}
	if (!one_in(24))
		CHECK(fake_write(g.rkey, g.addr, content, d->bytes + CHUNK_CIPHER_TAG_BYTES) || world.gone);
	say_done(d->lane, one_in(40) ? below(9) : d->seq, d->window);
}

static bool has_content(void)
{
	return world.wanted_count && (world.grant_count || world.terms.mode == MOVER_READ);
}

/* Puts the next descriptor into a message, with its grant in mode READ. Returns whether there is one. */
static bool put_content(struct cursor_out *out)
{
	uint8_t segments[1024];
	struct cursor_out list = cursor_out(segments, sizeof(segments));
	struct proto_descriptor d = {.window = PROTO_NO_WINDOW};
	bool read;

	d.seq = one_in(60) ? below(9) : world.next_seq++;
	fill(&list, &d);
	read = d.bytes && world.terms.mode == MOVER_READ;
	if (read) {
		struct proto_grant g = {.window = (uint16_t)below(4),
					.len = d.bytes + CHUNK_CIPHER_TAG_BYTES,
					.addr = (uintptr_t)content,
					.rkey = 5};

		d.window = g.window;
		seal(&d);
		put_u16(out, 1);
		proto_put_grant(out, &g);
	} else if (d.bytes && world.grant_count) {
		move_content(&d);
	}
	proto_put_descriptor(out, &d);
	put_bytes(out, segments, cursor_written(&list));
	return read;
}

static bool say_content(void)
{
	uint8_t bytes[4096];
	struct cursor_out out = cursor_out(bytes, sizeof(bytes));
	unsigned more = 3;
	bool read;

	if (!has_content() && !one_in(60))
		return let_workers_finish();
	read = put_content(&out);
	while (world.terms.mode != MOVER_READ && has_content() && more-- && !one_in(3))
		put_content(&out);
	return mover_peer_say(&world.peer, read ? PROTO_GRANT : PROTO_FIN, &out);
}

static bool say_end(enum proto_type type)
{
	bool done = world.next_entry == world.terms.entries && !world.wanted_count;
	uint8_t bytes[512];
	struct cursor_out out = cursor_out(bytes, sizeof(bytes));
	struct proto_end end = {.status = (enum mover_status)below(13), .text = proto_text("an end")};

	if (type == PROTO_END && !done && !one_in(60))
		return false;
	proto_put_end(&out, &end);
	return mover_peer_say(&world.peer, type, &out);
}

/* ---- connections ---- */

static void join(unsigned lane)
{
	struct proto_request request = {.data = true, .session = world.terms.session, .index = (uint16_t)lane};

	mover_secure_token(world.peer.secure, request.token);
	if (one_in(24))
		request.index = (uint16_t)below(70);
	if (one_in(40))
		request.token[0] ^= 1;
	listener_data_request(&world.listener, fake_id(world.listener.channel, NULL), &request);
}

static void hang_up(struct rdma_cm_id *id)
{
	fake_event(id, RDMA_CM_EVENT_DISCONNECTED, 0, NULL, 0);
}

static void hang_up_control(void)
{
	if (world.gone)
		return;
	world.gone = true;
	hang_up(world.r->s.control.conn.id);
}

void fake_called(struct rdma_cm_id *id, enum fake_call call, const struct rdma_conn_param *param)
{
	if (call != FAKE_ACCEPT || world.gone)
		return;
	fake_event(id, RDMA_CM_EVENT_ESTABLISHED, 0, NULL, 0);
	if (id == world.r->s.control.conn.id) {
		world.peer.control = fake_qp_of(id);
		mover_peer_begin(&world.peer, param->private_data, param->private_data_len);
		return;
	}
	for (unsigned i = 0; i < MOVER_PEER_LANES; i++)
		if (&world.r->s.lanes.conns[i] == id->context)
			world.peer.lanes[i] = id;
}

/* ---- what the receiver says ---- */

static void hear_grants(struct cursor_in *in)
{
	unsigned count = get_u16(in);

	for (unsigned i = 0; i < count && world.grant_count < MAX_GRANTS; i++)
		CHECK(!proto_get_grant(in, &world.grants[world.grant_count++]));
}

static void hear_verdicts(struct cursor_in *in)
{
	struct proto_result result;
	uint32_t first;
	uint16_t count;

	CHECK(!proto_get_list(in, &first, &count, PROTO_MAX_ENTRIES));
	for (uint32_t i = 0; i < count; i++) {
		CHECK(!proto_get_result(in, &result, false));
		if (result.verdict == PROTO_WANT && world.wanted_count < 64)
			world.wanted[(world.wanted_first + world.wanted_count++) % 64] = first + i;
	}
}

static void hear_control(const struct fake_send *send)
{
	struct cursor_in in;

	switch (mover_peer_hear(&world.peer, send, &in)) {
	case PROTO_TERMS:
		CHECK(!proto_get_terms(&in, &world.terms));
		world.agreed = true;
		break;
	case PROTO_GRANT: hear_grants(&in); break;
	case PROTO_VERDICT: hear_verdicts(&in); break;
	default: break;
	}
}

/* A READ: what the sender has there, as its grant says. */
static void answer_read(const struct fake_send *send)
{
	uint64_t at = send->wr.wr.rdma.remote_addr - (uintptr_t)content;

	CHECK(at <= sizeof(content) && send->sges[0].length <= sizeof(content) - at);
	memcpy((void *)(uintptr_t)send->sges[0].addr, content + at, send->sges[0].length);
}

void fake_posted(struct fake_qp *qp, const struct fake_send *send)
{
	if (qp == world.peer.control)
		hear_control(send);
	else if (send->wr.opcode == IBV_WR_RDMA_READ)
		answer_read(send);
}

/* ---- the story ---- */

/* True: there is something for the receiver, or it shall look around. */
static bool peer_step(void)
{
	if (!world.asked && !one_in(16))
		return say_terms();
	if (world.agreed && !world.joined) {
		world.joined = true;
		for (unsigned i = 0; i < world.terms.qps; i++)
			join(i);
		return true;
	}
	for (unsigned i = 0; i < MOVER_PEER_LANES; i++)
		if (world.peer.lanes[i] && !world.r->s.lanes.conns[i].greeted) {
			say_done(i, UINT64_MAX, PROTO_NO_WINDOW);
			return true;
		}
	switch (below(20)) {
	case 0: return one_in(24) && mover_peer_say_anything(&world.peer);
	case 1: return say_end(PROTO_END);
	case 2: return one_in(60) && say_end(PROTO_ERROR);
	case 3: return mover_peer_say(&world.peer, world.r->end.sent || one_in(60) ? PROTO_BYE : PROTO_PING, NULL);
	case 4:
		if (one_in(100))
			mover_peer_complete(&world.peer, IBV_WC_RETRY_EXC_ERR);
		return false;
	case 5:
		if (one_in(60))
			hang_up_control();
		return world.gone;
	case 6:
		if (one_in(60))
			say_done((unsigned)below(MOVER_PEER_LANES), below(9), (uint16_t)below(8));
		return true;
	case 7: return one_in(60) && say_terms();
	case 8:
	case 9:
	case 10:
	case 11: return say_offer();
	case 12:
	case 13:
	case 14:
	case 15:
	case 16: return say_content();
	default: return let_workers_finish();
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
	while (!script_ended() && !world.gone)
		if (peer_step())
			return true;
	hang_up_control();
	return false;
}

static void check_outside(const char *outside)
{
	char bytes[16] = {0};
	int fd = open(outside, O_RDONLY | O_CLOEXEC);

	CHECK(fd >= 0 && read(fd, bytes, sizeof(bytes)) == 7 && !memcmp(bytes, "outside", 7));
	close(fd);
}

static void run_session(const char *dir)
{
	static const struct mover_ticket ticket = {.host = "x", .secret = "a secret"};
	struct mover_recv_options options = {.common = {.memory_bytes = 1u << 20, .no_uring = true},
					     .dir = dir,
					     .keep = one_in(6),
					     .links = one_in(6),
					     .compare = one_in(3),
					     .ticket = &ticket,
					     .keep_ticket = true};
	struct listener *l = &world.listener;
	struct receiver *r = calloc(1, sizeof(*r));

	*l = (struct listener){.options = &options, .over_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), .free_fds = 100};
	l->channel = rdma_create_event_channel();
	pthread_mutex_init(&l->lock, NULL);
	events_init(&l->events, mover_peer_take_event, NULL);
	listener_set_ticket(l, &ticket);
	CHECK(r && l->over_fd >= 0 && !mover_tree_open(dir, &l->tree));
	if (options.keep)
		mover_tree_keep_existing(l->tree);
	world.r = l->sessions = r;
	r->reg = (struct registration){.listener = l,
				       .wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK),
				       .id = 77,
				       .number = 78,
				       .place = {.proved = true}};
	r->tree = l->tree;
	CHECK(!session_init(&r->s, &receiver_role, &options.common, &l->events, 1));
	r->s.control.conn.id = fake_id(r->s.channel, &r->s.control.conn);
	mover_peer_init(&world.peer, mover_secure_sender(ticket.secret));
	receiver_thread(r);
	CHECK(r->reg.over);
	mover_peer_ended(r->s.status);
	for (unsigned i = 0; i < MOVER_MAX_QPS; i++)
		if (r->reg.arrivals[i].id)
			rdma_destroy_id(r->reg.arrivals[i].id);
	receiver_destroy(r);
	mover_peer_destroy(&world.peer);
	rdma_destroy_event_channel(l->channel);
	mover_tree_close(l->tree);
	events_destroy(&l->events);
	pthread_mutex_destroy(&l->lock);
	close(l->over_fd);
}

/* A folder for the session, a link out of it, and a file beside it. */
static void prepare(char *dir, char *outside, size_t room)
{
	char link[128];
	int fd;

	snprintf(dir, room, "%s/in", room_path());
	snprintf(outside, room, "%s/outside", room_path());
	room_empty(room_path());
	fd = open(outside, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	CHECK(fd >= 0 && write(fd, "outside", 7) == 7 && !mkdir(dir, 0700));
	close(fd);
	snprintf(link, sizeof(link), "%s/l", dir);
	if (one_in(4))
		CHECK(!symlink("..", link));
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	char dir[96], outside[96];
	int before;

	mover_stop_fd();
	before = free_descriptor();
	memset(&world, 0, sizeof(world));
	script_begin(bytes, len);
	prepare(dir, outside, sizeof(dir));
	run_session(dir);
	check_outside(outside);
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
