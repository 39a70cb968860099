/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lines [-v | --check] [SCENE ...]: bulk transfers over networks of every kind, in virtual time, and what they made of
 * them. A scene is two lines, the flows of ours that share them and, in some, a TCP flow with CUBIC. --check holds the
 * figures against the scene's bounds: the same seed gives the same figures. -v prints forty times what the model of
 * each flow's path is like.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/qp.h"
#include "flow.h"
#include "line.h"
#include "rival.h"
#include "scenes.h"

#define RIVAL    3 /* its flow number on a line */
#define BEGIN_NS (1000 * SECOND)
#define TIMEOUT  14   /* 67 ms, as programs have it */
#define ETHERNET 1472 /* UDP payload of an IPv4 packet of 1,500 bytes */

struct event {
	uint64_t at, seq;
	enum { EV_PACKET, EV_WAKE, EV_RIVAL_PACKET, EV_RIVAL_ACK, EV_RIVAL_WAKE } kind;
	void *obj;
	uint64_t number, sent_at; /* of a rival's packet */
};

static struct world {
	const struct scene *scene;
	uint64_t now, seq;
	struct event *heap;
	size_t count, room;
	struct line data, back;
	struct flow flows[LINE_FLOWS];
	unsigned num_flows;
	struct rival rival;
	uint64_t rival_wake_at, rival_bytes;
	struct flow_packet *free_packets;
} w;

/* ---- events ---- */

static bool before(const struct event *a, const struct event *b)
{
	return a->at != b->at ? a->at < b->at : a->seq < b->seq;
}

static void schedule(struct event ev)
{
	size_t i;

	if (w.count == w.room) {
		w.room = w.room ? 2 * w.room : 1024;
		w.heap = realloc(w.heap, w.room * sizeof(*w.heap));
		if (!w.heap)
			abort();
	}
	ev.seq = w.seq++;
	for (i = w.count++; i && before(&ev, &w.heap[(i - 1) / 2]); i = (i - 1) / 2)
		w.heap[i] = w.heap[(i - 1) / 2];
	w.heap[i] = ev;
}

static struct event next_event(void)
{
	struct event top = w.heap[0], last = w.heap[--w.count];
	size_t i = 0, child;

	while ((child = 2 * i + 1) < w.count) {
		if (child + 1 < w.count && before(&w.heap[child + 1], &w.heap[child]))
			child++;
		if (!before(&w.heap[child], &last))
			break;
		w.heap[i] = w.heap[child];
		i = child;
	}
	w.heap[i] = last;
	return top;
}

/* ---- our flows ---- */

static struct line *line_of(const struct flow *f, unsigned from)
{
	return from == (f->spec.mode == FLOW_READ) ? &w.data : &w.back;
}

static struct flow_packet *new_packet(void)
{
	struct flow_packet *p = w.free_packets;

	if (p)
		w.free_packets = p->next_free;
	else if (!(p = malloc(sizeof(*p))))
		abort();
	return p;
}

static void free_packet(struct flow_packet *p)
{
	p->next_free = w.free_packets;
	w.free_packets = p;
}

static void flow_send(struct flow *f, struct flow_side *from, const struct roci_tx_packet *tx,
		      const struct roci_span *spans, uint32_t wire_bytes)
{
	bool ce = tx->av->traffic_class & 3;
	struct line *line = line_of(f, from->index);
	struct flow_packet *p;
	uint64_t at;

	if (tx->av->max_datagram && wire_bytes > tx->av->max_datagram + FLOW_WIRE_BYTES && line->spec.mtu)
		wire_bytes = line->spec.mtu; /* in fragments, about */
	at = line_send(line, w.now, wire_bytes, f->number, &ce);
	if (!at)
		return;
	p = new_packet();
	p->to = &f->side[1 - from->index];
	p->ce = ce;
	p->src_port = tx->av->src_port;
	p->header_len = tx->header_len;
	p->payload_len = tx->payload_len;
	memcpy(p->header, tx->header, tx->header_len);
	p->payload = tx->span_count ? spans[tx->first_span].base : NULL;
	if (tx->payload_len && tx->payload_len <= FLOW_COPY)
		p->payload = memcpy(p->copy, p->payload, tx->payload_len);
	schedule((struct event){.at = at, .kind = EV_PACKET, .obj = p});
}

static void pump(struct flow_side *s)
{
	uint64_t at;

	flow_pump(s, w.now);
	at = roci_engine_deadline(s->engine);
	if (s->disk_at < at)
		at = s->disk_at;
	if (at == ROCI_NEVER || (s->wake_at <= at && s->wake_at > w.now))
		return;
	s->wake_at = at < w.now ? w.now : at;
	schedule((struct event){.at = s->wake_at, .kind = EV_WAKE, .obj = s});
}

static void wake(struct flow_side *s)
{
	if (s->wake_at <= w.now)
		s->wake_at = ROCI_NEVER;
	roci_engine_timers(s->engine, w.now);
	pump(s);
}

/* ---- the rival ---- */

static void rival_run(void)
{
	uint64_t deadline;

	while (rival_may_send(&w.rival)) {
		bool ce = false;
		uint64_t number = w.rival.next++, at = line_send(&w.data, w.now, RIVAL_BYTES, RIVAL, &ce);

		if (at)
			schedule((struct event){.at = at, .kind = EV_RIVAL_PACKET, .number = number, .sent_at = w.now});
	}
	deadline = rival_deadline(&w.rival);
	if (deadline == UINT64_MAX || w.rival_wake_at > w.now)
		return;
	w.rival_wake_at = deadline;
	schedule((struct event){.at = deadline, .kind = EV_RIVAL_WAKE});
}

static void rival_event(const struct event *ev)
{
	bool ce = false;
	uint64_t at;

	if (ev->kind == EV_RIVAL_PACKET) {
		at = line_send(&w.back, w.now, 60, RIVAL, &ce);
		if (at)
			schedule((struct event){
				.at = at, .kind = EV_RIVAL_ACK, .number = ev->number, .sent_at = ev->sent_at});
		return;
	}
	if (ev->kind == EV_RIVAL_ACK)
		rival_acked(&w.rival, w.now, ev->number, ev->sent_at);
	else if (rival_deadline(&w.rival) <= w.now)
		rival_expired(&w.rival, w.now);
	rival_run();
}

/* ---- other programs ---- */

/* When that side has a processor: now, or when it gets it back. The second side is late at other times. */
static uint64_t awake_at(uint64_t at, unsigned side)
{
	uint64_t every = w.scene->busy_every_ns, least = w.scene->busy_ns, ahead, number, until;

	if (!every || (side && !w.scene->both_busy))
		return at;
	ahead = side * every * 3 / 8;
	number = (at + ahead) / every;
	until = number * every - ahead + least + (number * UINT64_C(0x9e3779b97f4a7c15) >> 32) % (least + 1);
	return until > at ? until : at;
}

/* Puts an event off whose host has no processor now. */
static bool has_to_wait(const struct event *ev)
{
	const struct flow_side *s = ev->kind == EV_PACKET ? ((struct flow_packet *)ev->obj)->to
				    : ev->kind == EV_WAKE ? ev->obj
							  : NULL;
	struct event later = *ev;

	if (!s || awake_at(w.now, s->index) == w.now)
		return false;
	later.at = awake_at(w.now, s->index);
	schedule(later);
	return true;
}

/* ---- a scene ---- */

static void handle(const struct event *ev)
{
	switch (ev->kind) {
	case EV_PACKET: {
		struct flow_packet *p = ev->obj;

		flow_receive(p, w.now);
		pump(p->to);
		free_packet(p);
		break;
	}
	case EV_WAKE: wake(ev->obj); break;
	default: rival_event(ev); break;
	}
}

static struct line_spec back_of(const struct scene *s)
{
	struct line_spec back = s->back;

	if (!back.rate_bps)
		back.rate_bps = s->data.rate_bps;
	if (!back.delay_ns)
		back.delay_ns = s->data.delay_ns;
	if (!back.queue_bytes)
		back.queue_bytes = back.rate_bps / 8 * (back.delay_ns + 100 * MS) / SECOND;
	if (!back.outage_ns && s->data.outage_ns) {
		back.outage_at_ns = s->data.outage_at_ns;
		back.outage_ns = s->data.outage_ns;
	}
	return back;
}

/* `ours`: else there is nobody on the line but a CUBIC flow. */
static void begin(const struct scene *s, bool ours)
{
	struct line_spec back = back_of(s);
	struct flow_spec spec = {.mode = s->mode,
				 .mtu = 3,
				 .traffic_class = s->ecn ? 2 : 0,
				 .standard = s->standard,
				 .disk_bps = s->disk_bps,
				 .timeout = s->timeout ? s->timeout : TIMEOUT,
				 .max_datagram = s->longer ? ETHERNET : 0};

	w.scene = s;
	w.now = BEGIN_NS;
	w.seq = 0;
	w.rival_wake_at = w.rival_bytes = 0;
	line_init(&w.data, &s->data, 1, w.now);
	line_init(&w.back, &back, 2, w.now);
	w.num_flows = !ours ? 0 : s->flows ? s->flows : 1;
	memset(w.flows, 0, sizeof(w.flows));
	for (unsigned i = 0; i < w.num_flows; i++) {
		flow_create(&w.flows[i], i, &spec, w.now);
		w.flows[i].send = flow_send;
		pump(&w.flows[i].side[0]);
	}
	if (s->rival || !ours) {
		rival_init(&w.rival, w.now);
		rival_run();
	}
}

static void print_path(const struct flow *f)
{
	static const char *const states[] = {"STARTUP", "DRAIN", "DOWN", "CRUISE", "REFILL", "UP", "RTT"};
	const struct roci_qp *qp = f->side[0].qp;
	const struct roci_path *p = qp->req.far_read ? qp->req.far_read->path : qp->path;
	const struct roci_bbr *b = &p->bbr;

	printf("%7.3f s %-8s rate %8.1f Mbit/s  window %9llu  flight %9llu  inflight_hi %9lld  srtt %6.1f ms  random "
	       "%2u"
	       "  lost %9llu  done %6.1f MB\n",
	       (double)(w.now - BEGIN_NS) / 1e9, p->far ? states[b->state] : "near", (double)b->rate * 8 / 1e6,
	       (unsigned long long)roci_path_window(p), (unsigned long long)p->flight,
	       b->inflight_hi == ROCI_BBR_NONE ? -1 : (long long)b->inflight_hi, (double)p->srtt / 1e6, b->random,
	       (unsigned long long)p->lost, (double)f->done / 1e6);
}

static void run(const struct scene *s, bool ours, bool verbose)
{
	uint64_t end = BEGIN_NS + (uint64_t)(s->seconds * 1e9), step = (end - BEGIN_NS) / 40,
		 print_at = BEGIN_NS + step;

	begin(s, ours);
	while (w.count) {
		struct event ev = next_event();

		for (; verbose && ev.at > print_at && print_at <= end; print_at += step)
			for (unsigned i = 0; i < w.num_flows; i++)
				print_path(&w.flows[i]);

		if (ev.at > end) {
			if (ev.kind == EV_PACKET)
				free_packet(ev.obj);
			continue;
		}
		w.now = ev.at;
		if (!has_to_wait(&ev))
			handle(&ev);
	}
}

/* ---- figures ---- */

struct figures {
	double share, rival, jain, queue_ms, queue_max_ms, resent, lost, burst;
	double failed_s; /* after the beginning; 0: no work request failed */
};

#define PAYLOAD (1024.0 / (1024 + 44)) /* of a packet */

/* The part of the line's rate that payload can have: packets have headers, some are lost. */
static double possible(const struct scene *s)
{
	double rate = (double)(s->data.police_bps ? s->data.police_bps : s->data.rate_bps);

	if (s->disk_bps)
		return (double)s->disk_bps / 8 * s->seconds;
	return rate / 8 * (s->seconds - (double)s->data.outage_ns / 1e9) * PAYLOAD * (1 - s->data.loss_ppm / 1e6);
}

static struct figures measure(const struct scene *s)
{
	struct figures r = {0};
	double sum = 0, squares = 0;
	uint64_t batches = 0, packets = 0, resent = 0;

	for (unsigned i = 0; i < w.num_flows; i++) {
		struct flow *f = &w.flows[i];
		/* What of UC arrives, nobody but the line knows. */
		uint64_t bytes = s->mode == FLOW_UC ? w.data.bytes[i] * 1024 / (1024 + 44) : f->done;
		double part = (double)bytes / possible(s); /* longer packets carry up to 1.013 */

		sum += part;
		squares += part * part;
		batches += f->batches;
		packets += f->packets;
		resent += roci_engine_stats(f->side[0].engine)->retransmits;
		if (f->failed_at)
			r.failed_s = (double)(f->failed_at - BEGIN_NS) / 1e9;
	}
	r.share = sum;
	r.jain = squares > 0 ? sum * sum / (w.num_flows * squares) : 0;
	r.rival = (double)w.data.bytes[RIVAL] / ((double)s->data.rate_bps / 8 * s->seconds);
	r.queue_ms = (double)w.data.queued_ns / 1e6 / (double)(w.data.packets ? w.data.packets : 1);
	r.queue_max_ms = (double)w.data.queued_max_ns / 1e6;
	r.resent = (double)resent / (double)(packets ? packets : 1);
	r.lost = (double)(w.data.dropped + w.data.lost) / (double)(w.data.packets ? w.data.packets : 1);
	r.burst = (double)packets / (double)(batches ? batches : 1);
	return r;
}

static void end(void)
{
	for (unsigned i = 0; i < w.num_flows; i++)
		flow_destroy(&w.flows[i]);
}

/* The queue that one CUBIC flow alone keeps on the line of *s, in ms. */
static double cubic_queue_ms(const struct scene *s)
{
	struct figures r;

	run(s, false, false);
	r = measure(s);
	printf("%-18s %-34s %-5s %7s %7.3f %7s %9.2f %9.2f\n", "", "  the same with CUBIC alone", "", "-", r.rival, "-",
	       r.queue_ms, r.queue_max_ms);
	return r.queue_ms;
}

static bool holds(const struct scene *s, const struct figures *r)
{
	return (r->failed_s > 0) == (s->fails_s > 0) && r->failed_s <= s->fails_s && r->share >= s->least &&
	       (!s->most || r->share <= s->most) && r->jain >= s->jain &&
	       (!s->queue_ms || r->queue_ms <= s->queue_ms) && (!s->most_resent || r->resent <= s->most_resent) &&
	       (!s->most_lost || r->lost <= s->most_lost);
}

static void print_head(void)
{
	printf("%-18s %-34s %-5s %7s %7s %7s %9s %9s %7s %7s %6s %8s\n", "scene", "line", "mode", "share", "CUBIC",
	       "Jain", "queue ms", "max", "lost %", "resent%", "burst", "packets");
}

static void print(const struct scene *s, const struct figures *r, const char *verdict)
{
	static const char *const modes[] = {"WRITE", "SEND", "READ", "UC"};
	char rival[16] = "-", jain[16] = "-", failed[32] = "";

	if (s->rival)
		snprintf(rival, sizeof(rival), "%.3f", r->rival);
	if (w.num_flows > 1)
		snprintf(jain, sizeof(jain), "%.3f", r->jain);
	if (r->failed_s > 0)
		snprintf(failed, sizeof(failed), "  failed after %.1f s", r->failed_s);
	printf("%-18s %-34s %-5s %7.3f %7s %7s %9.2f %9.2f %7.2f %7.2f %6.1f %8llu%s%s\n", s->name, s->title,
	       modes[s->mode], r->share, rival, jain, r->queue_ms, r->queue_max_ms, 100 * r->lost, 100 * r->resent,
	       r->burst, (unsigned long long)w.data.packets, failed, verdict);
	fflush(stdout);
}

/* True where a scene is wanted: all are where none is named. */
static bool wanted(const char *name, char **names)
{
	if (!*names)
		return true;
	for (; *names; names++)
		if (!strcmp(name, *names))
			return true;
	return false;
}

int main(int argc, char **argv)
{
	bool verbose = argc > 1 && !strcmp(argv[1], "-v"), check = argc > 1 && !strcmp(argv[1], "--check");
	char **names = argv + 1 + (verbose || check);
	unsigned ran = 0, broken = 0;

	print_head();
	for (unsigned i = 0; i < sizeof(scenes) / sizeof(*scenes); i++) {
		struct figures r;
		bool good;

		if (!wanted(scenes[i].name, names))
			continue;
		run(&scenes[i], true, verbose);
		r = measure(&scenes[i]);
		good = holds(&scenes[i], &r);
		print(&scenes[i], &r, check && !good ? "  OUT OF BOUNDS" : "");
		end();
		if (scenes[i].beside_cubic && cubic_queue_ms(&scenes[i]) < 4 * r.queue_ms) {
			printf("%s: CUBIC alone keeps no queue that is four times as long\n", scenes[i].name);
			good = false;
		}
		ran++;
		broken += !good;
	}
	if (!ran)
		fprintf(stderr, "lines: there is no such scene\n");
	return !ran || (check && broken);
}
