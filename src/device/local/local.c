/* SPDX-License-Identifier: BSD-2-Clause */
#include "device/local/local.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "device/capture.h"
#include "device/device.h"
#include "device/local/direct.h"
#include "device/local/peer.h"
#include "device/local/rights.h"
#include "device/local/settle.h"
#include "device/local/table.h"
#include "device/rundir.h"
#include "device/side_door.h"
#include "device/sweep.h"
#include "device/local/copy.h"

#define PEERS_MAX  4096 /* numbers of peers that are in use, dead ones whose QPs live still among them */
#define DRAIN_MAX  64   /* packets of one ring before the next one's turn */
#define MAKE_TRIES 2000 /* a millisecond apart: a process that sweeps may wait for a processor */
#define LOOK_EVERY (ROCI_LOCAL_RING_BYTES / 4) /* bytes read between looks whether a peer waits for room */

/* ---- the file ---- */

static bool try_lock(int fd)
{
	struct flock all = {.l_type = F_WRLCK, .l_whence = SEEK_SET};

	return !fcntl(fd, F_OFD_SETLK, &all);
}

/* Removes the files of dead processes: their owners' locks are gone. */
static void sweep(const char *path)
{
	DIR *dir = opendir(path);
	struct dirent *entry;
	unsigned long netns;
	unsigned slot;

	while (dir && (entry = readdir(dir))) {
		int end = 0;

		if (sscanf(entry->d_name, "local-%lu-%u%n", &netns, &slot, &end) == 2 && !entry->d_name[end])
			roci_sweep_name(dirfd(dir), entry->d_name);
	}
	if (dir)
		closedir(dir);
}

/* -EAGAIN: somebody sweeps it away. */
static int make_once(struct roci_local *l)
{
	struct stat st;
	int err;

	if (!roci_rundir_may_hold(ROCI_LOCAL_FILE_BYTES))
		return -EFBIG;
	l->fd = open(l->path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (l->fd < 0)
		return -errno;
	err = try_lock(l->fd) && !fstat(l->fd, &st) && st.st_nlink ? 0 : -EAGAIN;
	if (!err && (fallocate(l->fd, 0, 0, sizeof(*l->own)) || ftruncate(l->fd, (off_t)ROCI_LOCAL_FILE_BYTES)))
		err = -errno;
	if (!err)
		l->own = mmap(NULL, sizeof(*l->own), PROT_READ | PROT_WRITE, MAP_SHARED, l->fd, 0);
	if (!err && l->own != MAP_FAILED)
		return 0;
	l->own = NULL;
	close(l->fd);
	l->fd = -1;
	return err ? err : -ENOMEM;
}

/* The slot is ours, and with it the name, as soon as nobody sweeps it away from the process that had the slot before.
 */
static int make_file(struct roci_local *l)
{
	struct timespec pause = {.tv_nsec = 1000000};
	int err = make_once(l);

	for (int i = 0; i < MAKE_TRIES && (err == -EAGAIN || err == -EEXIST); i++) {
		nanosleep(&pause, NULL);
		roci_sweep_name(AT_FDCWD, l->path);
		err = make_once(l);
	}
	return err;
}

static void take_back(void *driver, uint16_t local, uint32_t dest_qpn)
{
	struct roci_local *l = driver;
	struct roci_local_peer *p = l->own && local && local <= l->count ? l->peers[local - 1] : NULL;

	if (!p)
		return;
	roci_local_ring_revoke(&p->out, 0, 0, dest_qpn);
	roci_local_spill_revoke(&p->spill, 0, 0, dest_qpn);
	roci_local_settle(l, p);
}

static void close_window(void *driver, const void *base, uint64_t len)
{
	struct roci_local *l = driver;

	for (unsigned i = 0; l->own && i < l->count; i++)
		if (l->peers[i]) {
			roci_local_ring_revoke_responses(&l->peers[i]->out, (uintptr_t)base, len);
			roci_local_spill_revoke_responses(&l->peers[i]->spill, (uintptr_t)base, len);
			roci_local_settle(l, l->peers[i]);
		}
}

static const struct roci_local_calls calls = {roci_local_fetch, roci_local_may_read, take_back, close_window};

void roci_local_open(struct roci_local *l, const struct roci_registry *registry, struct roci_side_door *door,
		     struct roci_engine *engine, struct roci_device_stats *stats)
{
	uint64_t rights;

	*l = (struct roci_local){.fd = -1, .registry = registry, .door = door, .engine = engine, .stats = stats};
	sweep(registry->dir);
	roci_local_name_file(l->path, registry, registry->slot);
	roci_sweep_name(AT_FDCWD, l->path); /* of a process that had the slot before */
	rights = roci_local_rights(&l->why);
	if (!rights)
		return;
	if (make_file(l)) {
		l->why = "there is no room for its shared memory, or RLIMIT_FSIZE is too small";
		roci_sweep_name(AT_FDCWD, l->path);
		return;
	}
	l->own->incarnation = (uint64_t)roci_random32() << 32 | (roci_random32() & ~UINT32_C(3)) | 4;
	l->own->address = (uintptr_t)l->own;
	l->own->rights = rights;
	l->own->pid = getpid();
	l->own->slot = registry->slot;
	l->own->layout = ROCI_LOCAL_LAYOUT;
	roci_engine_fetch_by(engine, &calls, l);
}

void roci_local_unlink(const struct roci_local *l)
{
	if (l->own)
		unlink(l->path);
}

void roci_local_close(struct roci_local *l)
{
	if (!l->own)
		return;
	unlink(l->path);
	for (unsigned i = 0; i < l->count; i++) {
		struct roci_local_peer *p = l->peers[i];

		if (!p)
			continue;
		atomic_store(&l->own->pairs[p->slot].token, 0);
		roci_local_guard_close(p->token);
		roci_local_settle(l, p);
		roci_local_detach(l, p);
	}
	roci_local_free_spares(l);
	free(l->peers);
	munmap(l->own, sizeof(*l->own));
	close(l->fd);
	*l = (struct roci_local){.fd = -1};
}

void roci_local_close_in_child(struct roci_local *l)
{
	if (!l->own)
		return;
	mmap(l->own, sizeof(*l->own), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	close(l->fd);
	l->own = NULL;
}

/* ---- peers ---- */

struct roci_local_peer *roci_local_peer(const struct roci_local *l, uint16_t local)
{
	struct roci_local_peer *p = local && local <= l->count ? l->peers[local - 1] : NULL;

	return p && !p->dead ? p : NULL;
}

/* The peer's next packet will appear at another place, or its ring is there now, or is gone. */
static void note_place(struct roci_local *l, unsigned i)
{
	const struct roci_local_peer *p = l->peers[i];
	const _Atomic uint32_t *size = NULL;

	if (i >= ROCI_LOCAL_PEEKED)
		return;
	if (p && !p->dead && p->in.ring)
		size = &roci_local_record_at(p->in.ring, p->in.head)->size;
	atomic_store_explicit(&l->peek.sizes[i], size, memory_order_release);
}

/* Frees the peers that have ended and that no QP needs any more. */
static void free_ended(struct roci_local *l)
{
	for (unsigned i = 0; i < l->count; i++) {
		struct roci_local_peer *p = l->peers[i];

		if (!p || (!p->dead && roci_local_is_current(l, p)))
			continue;
		p->dead = true;
		note_place(l, i);
		if (roci_engine_uses_local(l->engine, (uint16_t)(i + 1)))
			continue;
		roci_local_detach(l, p);
		l->peers[i] = NULL;
	}
}

/* A free place for a peer, or -ENOMEM. */
static int free_place(struct roci_local *l)
{
	struct roci_local_peer **more;
	unsigned i = 0;

	while (i < l->count && l->peers[i])
		i++;
	if (i < l->count)
		return (int)i;
	more = l->count < PEERS_MAX ? realloc(l->peers, (l->count + 1) * sizeof(*more)) : NULL;
	if (!more)
		return -ENOMEM;
	l->peers = more;
	l->peers[l->count++] = NULL;
	atomic_store_explicit(&l->peek.count, l->count, memory_order_relaxed);
	return (int)i;
}

/* The peer's ring to us is there once it has attached. */
static void look_at_attached(struct roci_local *l)
{
	for (unsigned i = 0; i < l->count; i++) {
		struct roci_local_peer *p = l->peers[i];

		if (p && !p->dead && !p->in.ring && atomic_load(&l->own->pairs[p->slot].attached) == p->incarnation)
			p->in.ring = p->in_ring;
		note_place(l, i);
	}
}

bool roci_local_has(const struct roci_local *l, uint32_t qpn, const char **why)
{
	unsigned slot = roci_slot_of(&l->registry->slot_key, qpn);

	*why = l->own ? "its QPN is of no process of this user" : l->why;
	return l->own && !roci_ports_slot_is_new(l->registry, slot) && roci_registry_alive(l->registry, slot);
}

int roci_local_find(struct roci_local *l, uint32_t qpn, const char **why)
{
	unsigned slot = roci_slot_of(&l->registry->slot_key, qpn);
	int place, err;

	for (unsigned i = 0; i < l->count; i++)
		if (l->peers[i] && l->peers[i]->slot == slot && !l->peers[i]->dead &&
		    roci_local_is_current(l, l->peers[i]))
			return (int)i + 1;
	free_ended(l);
	place = free_place(l);
	if (place < 0)
		return place;
	err = roci_local_attach(l, slot, &l->peers[place], why);
	if (err == -ENOTCONN)
		l->refused = *why;
	if (err)
		return err == -ENOTCONN ? 0 : err;
	look_at_attached(l);
	return place + 1;
}

/* ---- packets ---- */

static uint64_t readers_place(const struct roci_local_peer *p)
{
	return atomic_load_explicit(&p->out.ring->head, memory_order_acquire);
}

/* The reader has gone on since the last attempt. */
static bool may_pump(const struct roci_local_peer *p)
{
	return !roci_local_spill_is_empty(&p->spill) && readers_place(p) != p->pumped_at;
}

static void pump(struct roci_local_peer *p)
{
	p->pumped_at = readers_place(p);
	roci_local_spill_pump(&p->spill, &p->out);
}

/* Behind those that wait already. */
static bool put(struct roci_local_peer *p, const struct roci_tx_packet *packet, const struct roci_span *spans)
{
	bool by_reference = packet->payload_len > ROCI_LOCAL_INLINE;

	if (may_pump(p))
		pump(p);
	if (roci_local_spill_is_empty(&p->spill)) {
		if (roci_local_ring_put(&p->out, packet->header, packet->header_len, spans, packet->span_count,
					packet->payload_len, by_reference))
			return true;
		p->pumped_at = p->out.head;
	}
	return roci_local_spill_put(&p->spill, packet->header, packet->header_len, spans, packet->span_count,
				    packet->payload_len, by_reference);
}

/* What is copied from memory to memory is not in the capture. */
static void show_sent(const struct roci_local *l, const struct roci_tx_packet *packet, const struct roci_span *spans)
{
	const struct roci_local_sight seen = {
		.av = packet->av,
		.header = packet->header,
		.header_len = packet->header_len,
		.spans = spans,
		.span_count = packet->payload_len <= ROCI_LOCAL_INLINE ? packet->span_count : 0,
		.payload_len = packet->payload_len,
		.outbound = true,
	};

	roci_capture_local(l->watch, &seen);
}

void roci_local_send(struct roci_local *l, const struct roci_tx_packet *packet, const struct roci_span *spans)
{
	struct roci_local_peer *p = roci_local_peer(l, packet->av->local);

	if (!p || !put(p, packet, spans)) {
		l->stats->local_lost++;
		return;
	}
	if (__builtin_expect(l->watch != NULL, 0))
		show_sent(l, packet, spans);
	l->stats->local_sent++;
	l->unpublished = true;
}

static void wake(struct roci_local *l, struct roci_local_peer *p)
{
	if (!atomic_load_explicit(&p->shared->sleeping, memory_order_relaxed) ||
	    !atomic_exchange(&p->shared->sleeping, 0))
		return;
	roci_side_door_wake(l->door, p->slot);
	l->stats->local_wakeups++;
}

/* The peer may have gone to sleep with packets that found the ring full, and nothing else would wake it: these may be
 * answers, and this process may have nothing to say. It found the ring full, so more is read after that than what is
 * read between two looks. (Inlined, its fence would be one that GCC says the thread sanitizer does not know; it leaves
 * out the others, as the header's.) */
__attribute__((noinline)) static void wake_for_room(struct roci_local *l, struct roci_local_peer *p)
{
	if (p->in.head - p->looked_at < LOOK_EVERY)
		return;
	p->looked_at = p->in.head;
	atomic_thread_fence(memory_order_seq_cst); /* see roci_local_sleeps() */
	if (atomic_load_explicit(&p->shared->pairs[l->registry->slot].wants_room, memory_order_relaxed))
		wake(l, p);
}

void roci_local_flush(struct roci_local *l)
{
	if (!l->unpublished)
		return;
	l->unpublished = false;
	for (unsigned i = 0; i < l->count; i++) {
		struct roci_local_peer *p = l->peers[i];

		if (!p || p->dead || !roci_local_ring_publish(&p->out))
			continue;
		atomic_thread_fence(memory_order_seq_cst); /* see roci_local_sleeps() */
		wake(l, p);
	}
}

static void show_received(const struct roci_local *l, const struct roci_local_packet *in)
{
	const struct roci_span payload = {(void *)roci_local_packet_payload(in), in->payload_len};
	const struct roci_local_sight seen = {.av = roci_engine_peer_of(l->engine, roci_dest_qpn(in->header)),
					      .header = in->header,
					      .header_len = in->header_len,
					      .spans = &payload,
					      .span_count = in->payload_len && !in->span_count,
					      .payload_len = in->payload_len};

	if (seen.av)
		roci_capture_local(l->watch, &seen);
}

static bool may_be_far(enum roci_kind kind)
{
	return kind == ROCI_KIND_SEND || kind == ROCI_KIND_WRITE || kind == ROCI_KIND_READ_RESPONSE;
}

static void take(struct roci_local *l, uint64_t now, uint16_t local, const struct roci_local_packet *in)
{
	struct roci_far far = {l->peers[local - 1], in};
	struct roci_packet *pkt = &l->rx.pkt;
	enum roci_parse_result result;

	if (!in->span_count && !l->watch &&
	    roci_engine_rx_promptly(l->engine, now, local, in->header, in->header_len, roci_local_packet_payload(in),
				    in->payload_len))
		return;
	result = roci_packet_parse_headers(pkt, in->header, in->header_len, in->payload_len);
	if (result == ROCI_PARSE_OK && (pkt->opcode & ROCI_TRANSPORT_MASK) != ROCI_TRANSPORT_RC)
		result = ROCI_PARSE_BAD_OPCODE;
	if (result == ROCI_PARSE_OK && in->span_count && !may_be_far(pkt->op->kind))
		result = ROCI_PARSE_BAD_LENGTH;
	if (result != ROCI_PARSE_OK) {
		l->stats->unparsed[result]++;
		return;
	}
	if (__builtin_expect(l->watch != NULL, 0))
		show_received(l, in);
	if (in->span_count)
		pkt->far = &far;
	else
		pkt->payload = roci_local_packet_payload(in);
	l->rx.local = local;
	roci_engine_rx(l->engine, now, &l->rx);
}

static unsigned drain(struct roci_local *l, uint64_t now, uint16_t local, struct roci_local_peer *p)
{
	struct roci_local_packet packet;
	unsigned n = 0;
	int got;

	while (n < DRAIN_MAX && (got = roci_local_ring_get(&p->in, &packet)) > 0) {
		take(l, now, local, &packet);
		roci_local_ring_next(&p->in, &packet);
		n++;
	}
	if (n < DRAIN_MAX && got < 0)
		p->dead = true;
	if (n) {
		roci_local_ring_release(&p->in);
		wake_for_room(l, p);
	}
	note_place(l, local - 1u);
	return n;
}

static void pump_and_show(struct roci_local *l, struct roci_local_peer *p)
{
	pump(p);
	l->unpublished = true;
	roci_local_flush(l);
}

unsigned roci_local_receive(struct roci_local *l, uint64_t now)
{
	unsigned n = 0;

	if (!l->own)
		return 0;
	if (atomic_load_explicit(&l->own->attaches, memory_order_acquire) != l->attaches) {
		l->attaches = atomic_load(&l->own->attaches);
		look_at_attached(l);
	}
	for (unsigned i = 0; i < l->count; i++) {
		struct roci_local_peer *p = l->peers[i];

		if (p && !p->dead && p->in.ring && roci_local_ring_waits(&p->in))
			n += drain(l, now, (uint16_t)(i + 1), p);
		if (p && !p->dead && may_pump(p))
			pump_and_show(l, p);
	}
	l->stats->local_received += n;
	return n;
}

bool roci_local_waits(const struct roci_local *l)
{
	if (!l->own)
		return false;
	if (atomic_load_explicit(&l->own->attaches, memory_order_acquire) != l->attaches)
		return true;
	for (unsigned i = 0; i < l->count; i++) {
		const struct roci_local_peer *p = l->peers[i];

		if (p && !p->dead && ((p->in.ring && roci_local_ring_waits(&p->in)) || may_pump(p)))
			return true;
	}
	return false;
}

/* Peers whose rings were too full. */
static void ask_for_room(struct roci_local *l)
{
	for (unsigned i = 0; i < l->count; i++) {
		const struct roci_local_peer *p = l->peers[i];

		if (p && !p->dead)
			atomic_store_explicit(&l->own->pairs[p->slot].wants_room, !roci_local_spill_is_empty(&p->spill),
					      memory_order_relaxed);
	}
}

/* Either we see what a peer put into its ring, or took from ours, or it sees that we sleep. */
bool roci_local_sleeps(struct roci_local *l)
{
	if (!l->own)
		return true;
	ask_for_room(l);
	atomic_store(&l->own->sleeping, 1);
	atomic_thread_fence(memory_order_seq_cst);
	l->asleep = !roci_local_waits(l);
	return l->asleep;
}

void roci_local_awake(struct roci_local *l)
{
	l->asleep = false;
	if (l->own)
		atomic_store_explicit(&l->own->sleeping, 0, memory_order_relaxed);
}

bool roci_local_wakeup_came(const struct roci_local *l)
{
	return l->own && l->asleep && !atomic_load_explicit(&l->own->sleeping, memory_order_relaxed);
}

void roci_local_watch(struct roci_local *l, struct roci_link *watch)
{
	l->watch = watch;
	if (l->own)
		atomic_store(&l->own->watched, watch != NULL);
}

/* ---- what peers may reach ---- */

void roci_local_add_region(struct roci_local *l, const struct roci_mr_attr *attr)
{
	if (l->own)
		roci_local_publish_region(l->own, attr);
}

void roci_local_remove_region(struct roci_local *l, const struct roci_mr_attr *attr)
{
	if (!l->own)
		return;
	roci_local_revoke_region(l->own, attr->key);
	for (unsigned i = 0; i < l->count; i++)
		if (l->peers[i]) {
			roci_local_ring_revoke(&l->peers[i]->out, (uintptr_t)attr->base, attr->len, 0);
			roci_local_spill_revoke(&l->peers[i]->spill, (uintptr_t)attr->base, attr->len, 0);
			roci_local_settle(l, l->peers[i]);
		}
}

void roci_local_add_qp(struct roci_local *l, struct roci_qp *qp, uint32_t pd, uint32_t dest_qpn)
{
	struct roci_local_qp *q;

	if (!l->own)
		return;
	q = &l->own->qps[roci_qp_number(qp) % ROCI_QPNS_PER_SLOT];
	q->peer_qpn = dest_qpn;
	q->pd = pd;
	roci_qp_publish(qp, &q->state);
}
