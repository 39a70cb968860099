/* SPDX-License-Identifier: BSD-2-Clause */
/* Who is who: the life lines, and on which of them each event happens. */
#include <string.h>

#include "ladder/store.h"

static bool same_gid(const uint8_t *a, const uint8_t *b)
{
	return !memcmp(a, b, 16);
}

/* ---- conversations ---- */

/* A conversation that the tracker has not any more turned out to be another one: one direction was seen before it was
 * known whose answer it is. Finds that one by the addresses and the QPN of its packets. */
static void merge(struct ladder *l, struct ladder_packet *p)
{
	const struct roci_flow *a = &l->flows[p->flow].addresses;

	for (size_t i = 0; i < l->conversation_count; i++) {
		const struct capture_conversation *c = &l->conversations[i].about;

		for (unsigned end = 0; c->number && end < 2; end++) {
			if (!same_gid(c->ends[end].gid, a->src) || !same_gid(c->ends[!end].gid, a->dst) ||
			    !c->ends[!end].qpn_known || c->ends[!end].qpn != p->qpn)
				continue;
			p->conversation = (int)i;
			p->end = (int)end;
			return;
		}
	}
}

/* One that the tracker has given up, for want of room, or never merged, is known by its packets only. */
static void describe(struct ladder *l, const struct ladder_packet *p)
{
	struct capture_conversation *c = &l->conversations[p->conversation].about;
	const struct roci_flow *a = &l->flows[p->flow].addresses;

	if (c->number)
		return;
	c->number = (uint32_t)p->conversation + 1;
	memcpy(c->ends[p->end].gid, a->src, 16);
	memcpy(c->ends[!p->end].gid, a->dst, 16);
	c->ends[!p->end].qpn = p->qpn;
	c->ends[!p->end].qpn_known = true;
}

static void merge_all(struct ladder *l)
{
	for (size_t i = 0; i < l->packet_count; i++) {
		struct ladder_packet *p = &l->packets[i];
		const struct roci_opcode_info *op = roci_opcode_info(p->opcode);

		if (l->conversations[p->conversation].about.number)
			continue;
		merge(l, p);
		describe(l, p);
		l->flows[p->flow].conversation = p->conversation;
		l->flows[p->flow].end = p->end;
		if (p->message < 0)
			continue;
		l->messages[p->message].conversation = p->conversation;
		l->messages[p->message].end = op && op->response ? !p->end : p->end;
	}
}

/* ---- life lines ---- */

static int line(struct ladder *l, uint32_t pid, const uint8_t *gid, unsigned side)
{
	for (size_t i = 0; i < l->line_count; i++) {
		const struct ladder_line *x = &l->lines[i];

		if (x->side == side && x->pid == pid && (pid || same_gid(x->gid, gid)))
			return (int)i;
	}
	if (!LADDER_GROW(l, lines, line))
		return 0;
	l->lines[l->line_count] = (struct ladder_line){.pid = pid, .side = side};
	memcpy(l->lines[l->line_count].gid, gid, 16);
	return (int)l->line_count++;
}

/* Which process has the QP, as its records say; 0: none says. Several processes have a QP 1. */
static uint32_t pid_of_qp(const struct ladder *l, const struct capture_end *end)
{
	for (size_t i = 0; end->qpn_known && end->qpn > 1 && i < l->event_count; i++)
		if (l->events[i].record.qpn == end->qpn)
			return l->events[i].record.pid;
	return 0;
}

/* Both ends of connection management are QP 1: only the packets tell which processes of one address talk. */
static void find_cm_pids(const struct ladder *l, struct ladder_conversation *c)
{
	bool within = false;

	c->pids[0] = c->pids[1] = 0;
	for (size_t i = 0; i < l->packet_count; i++) {
		const struct ladder_packet *p = &l->packets[i];
		const uint32_t pids[2] = {p->from_pid, p->to_pid};

		for (unsigned k = 0; &l->conversations[p->conversation] == c && k < 2; k++) {
			if (!c->pids[0])
				c->pids[0] = pids[k];
			else if (!c->pids[1] && pids[k] != c->pids[0])
				c->pids[1] = pids[k];
			within = within || (pids[0] && pids[0] == pids[1]);
		}
	}
	if (within && !c->pids[1])
		c->pids[1] = c->pids[0];
}

static void place_conversation(struct ladder *l, struct ladder_conversation *c)
{
	bool within;

	if (c->cm && same_gid(c->about.ends[0].gid, c->about.ends[1].gid))
		find_cm_pids(l, c);
	for (unsigned end = 0; end < 2; end++)
		if (!c->pids[end])
			c->pids[end] = pid_of_qp(l, &c->about.ends[end]);
	within = c->pids[0] == c->pids[1] && (c->pids[0] || same_gid(c->about.ends[0].gid, c->about.ends[1].gid));
	for (unsigned end = 0; end < 2; end++)
		c->lines[end] = line(l, c->pids[end], c->about.ends[end].gid, within ? end + 1 : 0);
}

/* ---- packets ---- */

static int line_of_pid(const struct ladder *l, uint32_t pid)
{
	for (size_t i = 0; pid && i < l->line_count; i++)
		if (l->lines[i].pid == pid && !l->lines[i].side)
			return (int)i;
	return -1;
}

/* Both ends of connection management are QP 1, so where two processes of one address talk, or a process talks to
 * itself, addresses and QPNs do not tell who sends. Then processes do, or the sender's communication ID: each is of the
 * side that used it first, and the first of all is of end 0. */
static unsigned cm_end(const struct ladder *l, const struct ladder_packet *p, size_t index)
{
	for (size_t i = index; i-- > 0 && index - i < 64;) {
		const struct ladder_packet *before = &l->packets[i];

		if (before->conversation == p->conversation && before->cm_id == p->cm_id)
			return (unsigned)before->end;
	}
	return p->meaning && strstr(ladder_text(l, p->meaning), "REQ") ? 0 : 1;
}

static void place_packet(struct ladder *l, struct ladder_packet *p, size_t index)
{
	const struct ladder_conversation *c = &l->conversations[p->conversation];
	bool same = c->cm && same_gid(c->about.ends[0].gid, c->about.ends[1].gid);
	int from = same ? line_of_pid(l, p->from_pid) : -1, to = same ? line_of_pid(l, p->to_pid) : -1;

	if (same && from < 0 && to < 0 && p->cm_id)
		p->end = (int)cm_end(l, p, index);
	p->from = from >= 0 ? from : c->lines[p->end];
	p->to = to >= 0 ? to : c->lines[!p->end];
	if (p->from == p->to && l->line_count > 1) /* only one of the two was captured */
		*(from >= 0 ? &p->to : &p->from) = c->lines[0] == p->from ? c->lines[1] : c->lines[0];
}

static const char *process_name(const struct ladder *l, uint32_t pid)
{
	for (size_t i = l->process_count; pid && i-- > 0;)
		if (l->processes[i].pid == pid && l->processes[i].text[0])
			return l->processes[i].text;
	return NULL;
}

static void name_line(struct ladder *l, struct ladder_line *x)
{
	static const uint8_t zero[16];
	static const char *const sides[] = {"", ", one end", ", other end"};
	const char *process = process_name(l, x->pid);
	char gid[LADDER_GID_CHARS] = "";

	if (!same_gid(x->gid, zero))
		ladder_gid(gid, x->gid);
	if (!process) {
		x->name = ladder_print(l, "%s%s", gid[0] ? gid : "?", sides[x->side]);
		return;
	}
	x->name = ladder_print(l, "%s%s", process, sides[x->side]);
	x->about = ladder_print(l, gid[0] ? "pid %u, %s" : "pid %u", x->pid, gid);
}

/* ---- events ---- */

/* The conversation and the end of a QP; false: it has none. */
static bool find_qp(const struct ladder *l, uint32_t pid, uint32_t qpn, int *conversation, unsigned *end)
{
	for (size_t i = 0; qpn > 1 && i < l->conversation_count; i++) {
		const struct ladder_conversation *c = &l->conversations[i];

		for (unsigned k = 0; c->about.number && k < 2; k++) {
			if (c->about.ends[k].qpn_known && c->about.ends[k].qpn == qpn && c->pids[k] == pid) {
				*conversation = (int)i;
				*end = k;
				return true;
			}
		}
	}
	return false;
}

static int line_of_process(struct ladder *l, uint32_t pid)
{
	static const uint8_t nowhere[16];

	for (size_t i = 0; i < l->line_count; i++)
		if (l->lines[i].pid == pid)
			return (int)i;
	return line(l, pid, nowhere, 0);
}

/* An event of a connection follows the message that it is about: it belongs to the end where that arrived. */
static int line_of_message(const struct ladder *l, const struct roci_record *r, size_t *from)
{
	int found = -1;

	for (; *from < l->packet_count && l->packets[*from].sent_ns <= r->time_ns; (*from)++)
		;
	for (size_t i = *from; i-- > 0 && *from - i < 256 && found < 0;) {
		const struct ladder_packet *p = &l->packets[i];
		uint64_t there = p->arrived_ns == LADDER_NEVER ? p->sent_ns : p->arrived_ns;

		if (p->flags & LADDER_CM && there <= r->time_ns && l->lines[p->to].pid == r->pid)
			found = p->to;
	}
	return found;
}

static void place_event(struct ladder *l, struct ladder_event *e, size_t *from)
{
	const struct roci_record *r = &e->record;
	int conversation;
	unsigned end;

	if (find_qp(l, r->pid, e->kind == LADDER_FAULT && r->flags ? 0 : r->qpn, &conversation, &end)) {
		e->conversation = conversation;
		e->end = l->conversations[conversation].lines[end];
		return;
	}
	if (e->kind == LADDER_CONNECTION)
		e->end = line_of_message(l, r, from);
	if (e->end < 0)
		e->end = line_of_process(l, r->pid);
}

/* Posts of receives in a row, and completions that are flushed in a row, become one. */
static bool joins(const struct ladder_event *a, const struct ladder_event *b)
{
	const struct roci_record *x = &a->record, *y = &b->record;

	return a->kind == b->kind && a->end == b->end && x->qpn == y->qpn && x->queue == y->queue &&
	       x->status == y->status && x->opcode == y->opcode && y->time_ns - x->time_ns < 1000000 &&
	       (a->kind == LADDER_POST_RECV ? x->length == y->length : a->kind == LADDER_COMPLETION && x->status == 5);
}

static void join_events(struct ladder *l)
{
	size_t kept = 0;

	for (size_t i = 0; i < l->event_count; i++) {
		if (kept && joins(&l->events[kept - 1], &l->events[i])) {
			l->events[kept - 1].count++;
			l->events[kept - 1].last_wr_id = l->events[i].record.wr_id;
		} else {
			l->events[kept++] = l->events[i];
		}
	}
	l->event_count = kept;
}

void ladder_find_ends(struct ladder *l)
{
	size_t from = 0;

	merge_all(l);
	for (size_t i = 0; i < l->conversation_count; i++)
		if (l->conversations[i].about.number)
			place_conversation(l, &l->conversations[i]);
	for (size_t i = 0; i < l->packet_count; i++)
		place_packet(l, &l->packets[i], i);
	for (size_t i = 0; i < l->event_count; i++)
		place_event(l, &l->events[i], &from);
	join_events(l);
	for (size_t i = 0; i < l->event_count && !l->out_of_memory; i++)
		ladder_word_event(l, &l->events[i]);
	for (size_t i = 0; i < l->line_count; i++)
		name_line(l, &l->lines[i]);
}
